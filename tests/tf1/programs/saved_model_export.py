"""Train, save with simple_save and the builder, load by tags and signature, freeze, import the frozen graph."""

import os
import tempfile

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(49)
xs, ys = rng.randn(20, 4).astype("f"), rng.randint(0, 2, 20)
folder = tempfile.mkdtemp()
with tf.Graph().as_default(), tf.Session() as sess:
    tf.set_random_seed(49)
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    y = tf.placeholder(tf.int32, [None], name="y")
    with tf.name_scope("network"):
        hidden = tf.layers.dense(x, 6, activation=tf.nn.selu, name="hidden")
        logits = tf.layers.dense(hidden, 2, name="logits")
    probabilities = tf.nn.softmax(logits, name="probabilities")
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits, scope="loss")
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    sess.run(tf.global_variables_initializer())
    for _ in range(18):
        _, value = sess.run([train, loss], {x: xs, y: ys})
        print("%.6f" % value)
    tf.saved_model.simple_save(sess, os.path.join(folder, "simple"), {"x": x}, {"probabilities": probabilities})
    builder = tf.saved_model.builder.SavedModelBuilder(os.path.join(folder, "built"))
    signature = tf.saved_model.signature_def_utils.build_signature_def(
        {"input": tf.saved_model.utils.build_tensor_info(x)},
        {"output": tf.saved_model.utils.build_tensor_info(probabilities)},
        tf.saved_model.signature_constants.PREDICT_METHOD_NAME,
    )
    builder.add_meta_graph_and_variables(
        sess, [tf.saved_model.tag_constants.SERVING], signature_def_map={"predict": signature}
    )
    builder.save()
    frozen = tf.graph_util.convert_variables_to_constants(sess, sess.graph.as_graph_def(), ["probabilities"])
    with tf.gfile.FastGFile(os.path.join(folder, "frozen.pb"), "wb") as f:
        f.write(frozen.SerializeToString())
    print(len(frozen.node))

with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.loader.load(sess, ["serve"], os.path.join(folder, "built"))
    s = meta.signature_def["predict"]
    print("%.6f" % sess.run(s.outputs["output"].name, {s.inputs["input"].name: xs})[0, 0])
with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.loader.load(sess, ["serve"], os.path.join(folder, "simple"))
    s = meta.signature_def["serving_default"]
    print("%.6f" % sess.run(s.outputs["probabilities"].name, {s.inputs["x"].name: xs})[1, 0])
graph_def = tf.GraphDef()
with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "rb") as f:
    graph_def.ParseFromString(f.read())
with tf.Graph().as_default() as graph:
    mine = tf.placeholder(tf.float32, [None, 4])
    (out,) = tf.import_graph_def(graph_def, input_map={"x:0": mine}, return_elements=["probabilities:0"], name="again")
    with tf.Session() as sess:
        print("%.6f" % sess.run(out, {mine: xs})[2, 0])
    print(len([op for op in graph.get_operations() if op.type == "Const"]))
