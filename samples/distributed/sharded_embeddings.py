"""An embedding too large for one machine, cut into shards over several servers (a partitioned variable).

    graphmill python sharded_embeddings.py --master=grpc://localhost:2232 --ps=2

Each server looks up, and updates, the rows it has. Numbers are told by vectors whether they are even.
"""

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("master", "", "Any server of the cluster: grpc://host:port.")
flags.DEFINE_string("ps_job", "ps", "The job that has the shards.")
flags.DEFINE_integer("ps", 2, "How many tasks it has.")
flags.DEFINE_integer("steps", 100, "How many steps to train.")
FLAGS = flags.FLAGS

ROWS, WIDTH, BATCH = 1000, 8, 256


def main(_):
    tf.set_random_seed(6)
    setter = tf.train.replica_device_setter(FLAGS.ps, "/job:%s" % FLAGS.ps_job, "/job:worker/task:0")
    with tf.device(setter):
        ids = tf.placeholder(tf.int64, [BATCH], name="ids")
        table = tf.get_variable(
            "table",
            [ROWS, WIDTH],
            initializer=tf.random_normal_initializer(stddev=0.1),
            partitioner=tf.fixed_size_partitioner(FLAGS.ps),
        )
        vectors = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
        logits = tf.squeeze(tf.layers.dense(vectors, 1), 1)
        labels = tf.cast(tf.equal(ids % 2, 0), tf.float32)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdagradOptimizer(1.0).minimize(loss)

    random = np.random.RandomState(0)
    with tf.Session(FLAGS.master) as session:
        session.run(tf.global_variables_initializer())
        print("shards on " + ", ".join(sorted({shard.device for shard in table})))
        found = [session.run([loss, train], {ids: random.randint(ROWS, size=BATCH)})[0] for _ in range(FLAGS.steps)]
        print("loss %.4f -> %.4f" % (found[0], found[-1]))


if __name__ == "__main__":
    tf.app.run()
