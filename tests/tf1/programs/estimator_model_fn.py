"""An Estimator with a model function: train, evaluate, predict and export, from NumPy inputs."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
rng = np.random.RandomState(23)
features = rng.rand(40, 4).astype(np.float32)
labels = (features.sum(axis=1) > 2.0).astype(np.int32)
model_dir = tempfile.mkdtemp()
losses = []


class RememberLoss(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs("loss_to_see:0")

    def after_run(self, run_context, run_values):
        losses.append(run_values.results)


def model_fn(features, labels, mode, params):
    net = features["x"]
    for units in params["hidden_units"]:
        net = tf.layers.dense(net, units=units, activation=tf.nn.relu)
    net = tf.layers.dropout(net, 0.0, training=mode == tf.estimator.ModeKeys.TRAIN)
    logits = tf.layers.dense(net, params["n_classes"], activation=None)
    predictions = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits, name="softmax_tensor")}
    if mode == tf.estimator.ModeKeys.PREDICT:
        export = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=export)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    tf.identity(loss, name="loss_to_see")
    accuracy = tf.metrics.accuracy(labels=labels, predictions=predictions["classes"], name="acc_op")
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"accuracy": accuracy})
    optimizer = tf.train.AdagradOptimizer(learning_rate=0.1)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[RememberLoss()])


config = tf.estimator.RunConfig(tf_random_seed=23, save_checkpoints_steps=10, keep_checkpoint_max=2)
classifier = tf.estimator.Estimator(
    model_fn=model_fn, model_dir=model_dir, config=config, params={"hidden_units": [8, 6], "n_classes": 2}
)
train_input_fn = tf.estimator.inputs.numpy_input_fn(
    x={"x": features}, y=labels, batch_size=20, num_epochs=None, shuffle=False
)
eval_input_fn = tf.estimator.inputs.numpy_input_fn(x={"x": features}, y=labels, num_epochs=1, shuffle=False)
classifier.train(input_fn=train_input_fn, steps=20)
for value in losses:
    print("%.6f" % value)
result = classifier.evaluate(input_fn=eval_input_fn)
print("%.6f" % result["loss"])
print("%.6f" % result["accuracy"])
print(result["global_step"])
predicted = list(classifier.predict(input_fn=eval_input_fn))
print(len(predicted))
print("%.6f" % predicted[0]["probabilities"][1])


def serving_input_receiver_fn():
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


exported = classifier.export_savedmodel(os.path.join(model_dir, "export"), serving_input_receiver_fn)
with tf.Session(graph=tf.Graph()) as sess:
    meta = tf.saved_model.loader.load(sess, [tf.saved_model.tag_constants.SERVING], exported)
    signature = meta.signature_def["serving_default"]
    out = sess.run(signature.outputs["probabilities"].name, {signature.inputs["x"].name: features[:1]})
    print("%.6f" % out[0, 1])
print("%.6f" % classifier.get_variable_value("dense/bias").sum())
print(len(classifier.get_variable_names()))
shutil.rmtree(model_dir)
