"""Digits learned by several workers that share variables at parameter servers (between-graph replication).

Every worker runs this program with its own number and its own server:

    graphmill python parameter_servers.py --master=grpc://localhost:2232 --task=0
    graphmill python parameter_servers.py --master=grpc://localhost:2233 --task=1

Each takes the variables as they are and pushes its gradients when it has them. With --sync the gradients of all workers
are averaged first, and what comes for a step that is over is dropped. Worker 0 is the chief: it initializes, saves
checkpoints, and restores the last one when a server was lost.
"""

import os

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("master", "", "The server of this worker: grpc://host:port.")
flags.DEFINE_integer("task", 0, "The number of this worker.")
flags.DEFINE_integer("workers", 2, "How many workers there are.")
flags.DEFINE_integer("ps", 1, "How many parameter servers there are.")
flags.DEFINE_integer("steps", 150, "Steps of all workers together.")
flags.DEFINE_boolean("sync", False, "Average the gradients of all workers.")
flags.DEFINE_string("folder", "", "Where checkpoints go; none are written without.")
FLAGS = flags.FLAGS

digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))


def main(_):
    is_chief = FLAGS.task == 0
    setter = tf.train.replica_device_setter(ps_tasks=FLAGS.ps, worker_device="/job:worker/task:%d" % FLAGS.task)
    with tf.device(setter):
        global_step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="x")
        y = tf.placeholder(tf.int64, [None], name="y")
        net = tf.layers.conv2d(x, 16, 3, padding="same", activation=tf.nn.relu)
        net = tf.layers.max_pooling2d(net, 2, 2)
        logits = tf.layers.dense(tf.reshape(net, [-1, 256]), 10)
        loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
        optimizer = tf.train.AdamOptimizer(0.01)
        hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
        if FLAGS.sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, FLAGS.workers, total_num_replicas=FLAGS.workers)
            hooks.append(optimizer.make_session_run_hook(is_chief, num_tokens=0))
        train = optimizer.minimize(loss, global_step=global_step)

    test = {x: digits["x_test"], y: digits["y_test"]}
    # A worker needs its own server and the parameter servers, not the other workers, which may come and go.
    filters = ["/job:ps", "/job:worker/task:%d" % FLAGS.task]
    random = np.random.RandomState(FLAGS.task)
    first, last, right, steps = None, None, None, 0
    with tf.train.MonitoredTrainingSession(
        FLAGS.master,
        is_chief,
        FLAGS.folder or None,
        hooks=hooks,
        max_wait_secs=600,
        stop_grace_period_secs=2,
        config=tf.ConfigProto(device_filters=filters),
    ) as session:
        # In step, nobody may begin what the others do not take part in any more: so each looks before it goes on.
        reached = 0
        while not session.should_stop() and reached < FLAGS.steps:
            rows = random.randint(len(digits["x_train"]), size=64)
            last, _ = session.run([loss, train], {x: digits["x_train"][rows], y: digits["y_train"][rows]})
            first = last if first is None else first
            steps += 1
            right, reached = session.run_step_fn(
                lambda step_context: step_context.session.run([accuracy, global_step], test))
    print("worker %d: %d steps" % (FLAGS.task, steps))
    if steps:
        print("loss %.4f -> %.4f" % (first, last))
        print("accuracy %.4f" % right)


if __name__ == "__main__":
    tf.app.run()
