"""tf.contrib.quantize: what rewritten networks compute and learn, and what their variables are called."""

_NETWORK = """
import zlib
c = tf.contrib.layers
x = tf.constant(np.random.RandomState(1).randn(2, 6, 6, 3).astype('f'))
def network(x, training):
    norm = dict(normalizer_fn=c.batch_norm, normalizer_params={'is_training': training, 'scale': True, 'decay': 0.9})
    y = c.conv2d(x, 4, 3, activation_fn=tf.nn.relu6, scope='first', **norm)
    y = c.separable_conv2d(y, None, 3, 1, activation_fn=tf.nn.relu, scope='deep', **norm)
    z = c.conv2d(y, 4, 1, activation_fn=None, scope='block/side')
    y = tf.nn.relu(y + z, name='block/Relu')
    y = c.max_pool2d(y, 2)
    z = c.conv2d(y, 4, 1, scope='more')
    y = y * z
    return c.fully_connected(c.flatten(y), 3, activation_fn=None, scope='logits')
def values(v):
    drawn = np.random.RandomState(zlib.crc32(v.name.encode()) %% 2**31).uniform(-0.5, 0.5, v.get_shape().as_list())
    kinds = {'variance': np.abs(drawn) + 0.5, 'gamma': drawn + 1.0, 'min': -1.0 + drawn * 0.5, 'max': 2.0 + drawn}
    return kinds.get(v.op.name.rpartition('/')[2].replace('moving_', ''), drawn)
def run(fetches, steps=1, loaded=('weights', 'depthwise_weights', 'biases', 'gamma', 'beta', 'moving_mean', 'moving_variance'), after=()):
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        for v in tf.global_variables():
            if v.op.name.rpartition('/')[2] in loaded:
                v.load(values(v).astype(v.dtype.base_dtype.as_numpy_dtype), s)
        found = [[s.run(fetches), [s.run(each) for each in after]][0] for _ in range(steps)]
        return [found, [s.run(v) for v in sorted(tf.global_variables(), key=lambda v: v.name)]]
"""
_LEARNED = (
    _NETWORK
    + """
y = network(x, True)
loss = tf.reduce_mean(tf.square(y - 1.0))
%s
updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
gradients = tf.gradients(loss, tf.trainable_variables())
result = run([loss, gradients], %d, after=updates)
"""
)
_STEPS = (
    _NETWORK
    + """
y = network(x, True)
loss = tf.reduce_mean(tf.square(y - 1.0))
tf.contrib.quantize.create_training_graph(quant_delay=%d)
train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
result = run([loss, train], 3)[1]
"""
)
_EVALUATED = (
    _NETWORK
    + """
y = network(x, False)
out = tf.identity(y, name='out')
%s
result = run(out, 1, ('weights', 'depthwise_weights', 'biases', 'gamma', 'beta', 'moving_mean', 'moving_variance', 'min', 'max'))
"""
)
_PLAIN = """
x = tf.constant(np.random.RandomState(1).randn(4, 5).astype('f'))
v = tf.Variable(np.random.RandomState(2).randn(5, 3).astype('f'), name='fc/w')
%s
with tf.Session() as s:
    s.run(tf.global_variables_initializer())
    result = [s.run(y) for _ in range(3)]
"""
#: what lies at the edge between two steps falls to one side there and to the other here
BITS = {
    "contrib.quantize.create_training_graph": 8,
    "contrib.quantize.create_eval_graph": 8,
    "contrib.quantize.experimental_create_training_graph": 4,
    "contrib.quantize.experimental_create_eval_graph": 5,
}
VALUES: dict[str, list[str]] = {
    "contrib.quantize.create_training_graph": [
        _LEARNED % ("tf.contrib.quantize.create_training_graph()", 1),
        _LEARNED % ("tf.contrib.quantize.create_training_graph(tf.get_default_graph(), quant_delay=2)", 3),
        _STEPS % 4,
        _PLAIN
        % "with tf.name_scope('fc'):\n    y = tf.nn.relu(tf.matmul(x, v))\ny = y + 0.0\ntf.contrib.quantize.create_training_graph()",
    ],
    "contrib.quantize.create_eval_graph": [
        _EVALUATED % "tf.contrib.quantize.create_eval_graph()",
        _PLAIN
        % "with tf.name_scope('fc'):\n    y = tf.nn.relu(tf.matmul(x, v) + 1.0)\ny = tf.identity(y)\ntf.contrib.quantize.create_eval_graph(tf.get_default_graph())",
    ],
    "contrib.quantize.experimental_create_training_graph": [
        _LEARNED
        % (
            "tf.contrib.quantize.experimental_create_training_graph(weight_bits=4, activation_bits=6, symmetric=True)",
            1,
        ),
        _LEARNED % ("tf.contrib.quantize.experimental_create_training_graph(quant_delay=1, freeze_bn_delay=2)", 3),
        _LEARNED % ("tf.contrib.quantize.experimental_create_training_graph(scope='block')", 1),
    ],
    "contrib.quantize.experimental_create_eval_graph": [
        _EVALUATED % "tf.contrib.quantize.experimental_create_eval_graph(weight_bits=5, symmetric=True)",
        _EVALUATED
        % "tf.contrib.quantize.experimental_create_eval_graph(activation_bits=5, quant_delay=4, scope='deep')",
    ],
}
