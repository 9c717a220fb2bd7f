"""MonitoredTrainingSession with hooks; it goes on from its checkpoint."""

import os
import tempfile

import numpy as np
import tensorflow as tf

folder = tempfile.mkdtemp()
rng = np.random.RandomState(29)
xs, ys = rng.rand(16, 3).astype("f"), rng.rand(16, 1).astype("f")


class PrintHook(tf.train.SessionRunHook):
    def __init__(self, tensor):
        self.tensor = tensor

    def begin(self):
        self.step = tf.train.get_global_step()

    def after_create_session(self, session, coord):
        print(session.run(self.step))

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self.tensor, self.step])

    def after_run(self, run_context, run_values):
        print("%.6f" % run_values.results[0])

    def end(self, session):
        print(session.run(self.step))


def train(last_step):
    with tf.Graph().as_default():
        tf.set_random_seed(29)
        x, y = tf.constant(xs), tf.constant(ys)
        prediction = tf.layers.dense(tf.layers.dense(x, 4, tf.nn.tanh), 1)
        loss = tf.reduce_mean(tf.abs(prediction - y)) + tf.losses.get_regularization_loss()
        global_step = tf.train.get_or_create_global_step()
        ema = tf.train.ExponentialMovingAverage(0.9, global_step)
        train_op = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=global_step)
        with tf.control_dependencies([train_op]):
            train_op = ema.apply(tf.trainable_variables())
        hooks = [
            tf.train.StopAtStepHook(last_step=last_step), PrintHook(loss), tf.train.NanTensorHook(loss),
            tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=5),
        ]
        scaffold = tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=3))
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=folder, hooks=hooks, scaffold=scaffold, save_checkpoint_secs=None, save_checkpoint_steps=4,
            save_summaries_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train_op)


train(12)
print(os.path.basename(tf.train.latest_checkpoint(folder)).split("-")[1])
train(20)
reader = tf.train.load_checkpoint(folder)
print("%.6f" % reader.get_tensor("dense/kernel/ExponentialMovingAverage").sum())
