"""An Estimator: trained on digits with checkpoints, evaluated, exported, and asked again from what was exported."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))


def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(tf.layers.flatten(features["image"]), params["units"], tf.nn.relu)
    if mode == tf.estimator.ModeKeys.TRAIN:
        hidden = tf.layers.dropout(hidden, 0.2, training=True)
    logits = tf.layers.dense(hidden, 10)
    predictions = {"digit": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        train = tf.train.AdamOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["digit"])}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train, metrics)


def input_fn(part, training):
    return tf.estimator.inputs.numpy_input_fn(
        {"image": digits["x_" + part]}, digits["y_" + part], batch_size=64, shuffle=training,
        num_epochs=None if training else 1,
    )  # fmt: skip


def serving_input_receiver_fn():
    image = tf.placeholder(tf.float32, [None, 8, 8, 1], name="image")
    return tf.estimator.export.ServingInputReceiver({"image": image}, {"image": image})


folder = tempfile.mkdtemp()
try:
    config = tf.estimator.RunConfig(os.path.join(folder, "model"), tf_random_seed=13, save_checkpoints_steps=100)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"units": 64, "rate": 0.005})
    estimator.train(input_fn("train", True), steps=1)
    first = estimator.evaluate(input_fn("test", False))
    estimator.train(input_fn("train", True), steps=200)
    last = estimator.evaluate(input_fn("test", False))
    print("step %d, checkpoint %s" % (last["global_step"], os.path.basename(estimator.latest_checkpoint())))
    exported = estimator.export_savedmodel(os.path.join(folder, "export"), serving_input_receiver_fn)
    with tf.Session(graph=tf.Graph()) as sess:
        model = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], exported.decode())
        signature = model.signature_def["serving_default"]
        feed = {signature.inputs["image"].name: digits["x_test"][:5]}
        print("exported: %s, right: %s" % (sess.run(signature.outputs["digit"].name, feed), digits["y_test"][:5]))
    print("accuracy %.2f" % last["accuracy"])
    print("loss %.4f -> %.4f" % (first["loss"], last["loss"]))
finally:
    shutil.rmtree(folder)
