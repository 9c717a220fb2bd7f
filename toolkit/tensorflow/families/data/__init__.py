"""tf.data, tf.io, queues and readers, and the files of courses."""
