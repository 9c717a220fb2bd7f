"""Calls whose nodes are not TensorFlow's, and why. The test fails when one of them is the same by now."""

from tests.tf1.calls import images, ragged, replicas

_BY_REASON: dict[str, list[str]] = {
    "TensorFlow computes whole subgraphs of constants to know a shape": [
        "tf.repeat(f(2, 3), [1, 2], 0)",
    ],
    "TensorFlow 2.21 writes a name for debuggers into handles": [
        "v = tf.Variable([1.0, 2.0, 3.0], use_resource=True, name='v')\ntf.scatter_nd_update(v, [[0]], [5.0], name='n')",
    ],
    "handles as above, and a plain list is converted once": replicas.DIFFERING,
    "TensorFlow has tried the name of a constant before": [
        "tf.repeat(f(3), 2)",
        "tf.repeat(3, 4)",
        "tf.convert_to_tensor([[f(), 1.0], [2.0, 3.0]])",
    ],
    "TensorFlow 2.21 counts in two ways, by a cond; the ratio is the same": [
        "tf.nn.zero_fraction(f(2))",
    ],
    "as above": [
        "tf.nn.zero_fraction(i(2), name='n')",
    ],
    "TensorFlow converts a plain value twice, once for its rank; here once": [
        "tf.reduce_sum([1.0, 2.0])",
    ],
    "the client spells this function in other nodes of the same values": [
        "tf.nn.softmax(f(2, 3, 4), axis=1)",
        "tf.nn.fused_batch_norm(f(1, 4, 4, 3), f(3), f(3))",
        "tf.nn.fused_batch_norm(f(1, 4, 4, 3), f(3), f(3), f(3), f(3), is_training=False, name='n')",
        "tf.nn.in_top_k(f(2, 3), i(2), 1, name='n')",
    ],
    "names inside of the initializer or the snapshot are the client's": [
        "tf.get_variable('v', [2], use_resource=True)",
        "tf.get_variable('v', [4], initializer=tf.constant_initializer(0.5), regularizer=lambda x: tf.nn.l2_loss(x))",
    ],
    "the client spells an empty group otherwise": [
        "tf.group()",
    ],
    "constants of tags and metadata stand in another order, or say more": [
        "tf.summary.audio('a', f(1, 10), 8000)",
        "tf.summary.audio('b', f(1, 10), 8000, max_outputs=1)",
        "tf.summary.text('a', s())",
        "tf.summary.text('b', tf.constant('x'))",
    ],
    "conditionals in functions are those of TensorFlow 1, Switch and Merge": [
        "def fn(x):\n  return tf.cond(x>1,lambda: x*2,lambda: x)\ntf.data.Dataset.range(5).map(fn)",
    ],
    "partitions of rows are asked for in other nodes of the same values: test_ragged": ragged.OTHER_NODES,
    "TensorFlow tries constants before the type or the structure is known: once more, of another type or name": [
        "tf.signal.frame(f(None, 10, 3), 4, 2, axis=1)",
        "tf.signal.frame(f(None, None), 4, 3, pad_end=True)",
        "tf.signal.frame(tf.placeholder(tf.float32, None), 3, 2)",
        "tf.signal.stft(f(None, None), 20, 10, 64, None, True, name='n')",
        "tf.spectral.dct(d(None, None), 2, n=5)",
        "tf.spectral.idct(d(None, None), 2, n=5)",
        "tf.signal.mdct(f(64), i())",
    ],
    "TensorFlow 2 computes it by loops over tiles in a function; here it is 1.15's op, for each picture of a batch": [
        "tf.image.non_max_suppression_padded(f(5, 4), f(5), 3)",
        "tf.image.non_max_suppression_padded(f(2, 5, 4), f(2, 5), 3, pad_to_max_output_size=True)",
    ],
    "more sizes are known here, and known ones are constants": [
        *images.CALLS["image.ssim"],
        *images.CALLS["image.ssim_multiscale"],
    ],
    "what an assertion says is of our own words": [
        "fc = tf.feature_column\nfc.input_layer({'x': tf.placeholder(tf.float32)}, [fc.numeric_column('x')])",
        "tf.linalg.pinv(tf.placeholder(tf.float32), validate_args=True)",
        "tf.linalg.lu_solve(f(None, None), i(None), f(None, 1), validate_args=True)",
    ],
    "TensorFlow writes the settings of its process into calls; what they call: test_polymorphic_functions": [
        "tf.function(lambda x: x * 2.0)(f(2))",
        "tf.function(lambda a, b: (a, b + 1), reduce_retracing=True)(f(2), b=i())",
    ],
    "steps of slices by int64 tensors are cast constants": [
        (
            "d = tf.data.Dataset.range(6)\n"
            "d.bucket_by_sequence_length(lambda x: tf.cast(x,tf.int32),[3,5],[2,2,2],padded_shapes=[])"
        ),
    ],
}

DIFFERING: dict[str, str] = {code: reason for reason, codes in _BY_REASON.items() for code in codes}
