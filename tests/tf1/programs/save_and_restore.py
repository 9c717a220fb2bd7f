"""Training goes on from what was saved, in a graph that was read from its file."""

import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
data = np.linspace(-1, 1, 32).reshape(16, 2).astype(np.float32)


def build():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(0.3))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0), name="loss")
    step = tf.train.get_or_create_global_step()
    return x, loss, tf.train.RMSPropOptimizer(0.05).minimize(loss, global_step=step), step


with tf.Graph().as_default(), tf.Session() as sess:
    x, loss, train, step = build()
    saver = tf.train.Saver(max_to_keep=2)
    writer = tf.summary.FileWriter(os.path.join(folder, "logs"), sess.graph)
    sess.run(tf.global_variables_initializer())
    for _ in range(10):
        _, value = sess.run([train, loss], {x: data})
        print("%.8f" % value)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=value)]), sess.run(step))
        saver.save(sess, os.path.join(folder, "model.ckpt"), global_step=step)
    writer.close()

assert tf.gfile.Exists(os.path.join(folder, "checkpoint"))
assert len(tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths) == 2

tf.reset_default_graph()
with tf.Session() as sess:
    latest = tf.train.latest_checkpoint(folder)
    saver = tf.train.import_meta_graph(latest + ".meta")
    saver.restore(sess, latest)
    graph = tf.get_default_graph()
    loss = graph.get_tensor_by_name("loss:0")
    train = graph.get_operation_by_name("RMSProp")
    print(sess.run("global_step:0"))
    for _ in range(10):
        _, value = sess.run([train, loss], {"x:0": data})
        print("%.8f" % value)
reader = tf.train.NewCheckpointReader(latest)
shapes = reader.get_variable_to_shape_map()
assert (
    shapes
    == dict(tf.train.list_variables(folder))
    == {"layer/w": [2, 1], "layer/w/RMSProp": [2, 1], "layer/w/RMSProp_1": [2, 1], "global_step": []}
)
assert reader.get_variable_to_dtype_map()["layer/w"] == tf.float32
for value in reader.get_tensor("layer/w").ravel():
    print("%.8f" % value)
tf.gfile.DeleteRecursively(folder)
