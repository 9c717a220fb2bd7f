import numpy as np
import tensorflow as tf

rng = np.random.RandomState(3)
images = rng.rand(8, 12, 12, 1).astype(np.float32)
labels = np.eye(3, dtype=np.float32)[rng.randint(0, 3, 8)]


def weight(shape):
    return tf.Variable(tf.constant(rng.randn(*shape).astype(np.float32) * 0.1))


x = tf.placeholder(tf.float32, [None, 12, 12, 1], name="images")
y_ = tf.placeholder(tf.float32, [None, 3], name="labels")
keep_prob = tf.placeholder(tf.float32)
h = tf.nn.relu(tf.nn.conv2d(x, weight([3, 3, 1, 4]), strides=[1, 1, 1, 1], padding="SAME") + weight([4]))
h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
flat = tf.reshape(h, [-1, 6 * 6 * 4])
assert flat.get_shape().as_list() == [None, 144]
drop = tf.nn.dropout(flat, keep_prob)
y = tf.matmul(drop, weight([144, 3])) + weight([3])
cross_entropy = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
train_step = tf.train.AdamOptimizer(1e-2).minimize(cross_entropy)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1)), tf.float32))

sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
for i in range(20):
    feed = {x: images, y_: labels, keep_prob: 1.0}
    print("%.8f" % cross_entropy.eval(feed_dict=feed))
    train_step.run(feed_dict=feed)
print("%.4f" % accuracy.eval(feed_dict={x: images, y_: labels, keep_prob: 1.0}))
