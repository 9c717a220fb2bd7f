"""Queues, readers, accumulators and input pipelines by queues."""

from tests.tf1.calls import separated

CALLS: dict[str, list[str]] = {
    "queue.FIFOQueue": separated("""
q = tf.FIFOQueue(10, [tf.float32, tf.int32], shapes=[[2], []])
q.enqueue([f(2), i()])
q.dequeue_many(3)
q.size()
q.close()
---
q = tf.FIFOQueue(3, tf.float32, names=['a'], shapes=[[]], shared_name='s', name='n')
q.enqueue({'a': 1.0})
q.dequeue()
q.is_closed()
---
tf.QueueBase.from_list(i(), [tf.FIFOQueue(3, tf.float32), tf.FIFOQueue(4, tf.float32)]).dequeue()
"""),
    "queue.PaddingFIFOQueue": separated("""
q = tf.PaddingFIFOQueue(10, [tf.float32], [[None]])
q.enqueue([f(2)])
tf.train.QueueRunner(q, [q.enqueue([f(3)])] * 2)
---
tf.PaddingFIFOQueue(10, [tf.float32, tf.string], [[None, 2], []], name='n').dequeue_up_to(2)
"""),
    "queue.RandomShuffleQueue": separated("""
q = tf.RandomShuffleQueue(10, 2, tf.float32)
q.enqueue_many(f(3))
q.dequeue()
q.dequeue_up_to(2)
---
tf.RandomShuffleQueue(10, 2, [tf.float32], [[2]], seed=3, name='n').dequeue_many(2, name='m')
"""),
    "queue.PriorityQueue": separated("""
q = tf.PriorityQueue(3, tf.string, [[]])
q.enqueue((l(), s()))
q.dequeue()
---
tf.PriorityQueue(3, [tf.string, tf.float32], [[], [2]], name='n')
"""),
    "WholeFileReader": ["tf.WholeFileReader().read(tf.FIFOQueue(3, tf.string))", "tf.WholeFileReader(name='n').reset()"],
    "IdentityReader": ["tf.IdentityReader().read(tf.FIFOQueue(3, tf.string))", "tf.IdentityReader('n').restore_state(s())"],
    "TFRecordReader": [
        "tf.TFRecordReader().read(tf.FIFOQueue(3, tf.string))",
        "tf.TFRecordReader(options=tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP))",
    ],
    "TextLineReader": [
        "tf.TextLineReader(skip_header_lines=1).read_up_to(tf.FIFOQueue(3, tf.string), 2)", "tf.TextLineReader()",
    ],
    "FixedLengthRecordReader": separated("""
r = tf.FixedLengthRecordReader(10, header_bytes=1)
r.num_records_produced()
r.num_work_units_completed()
r.reset()
r.serialize_state()
---
tf.FixedLengthRecordReader(10, 1, 2, 3, name='n', encoding='ZLIB')
"""),
    "ConditionalAccumulator": separated("""
a = tf.ConditionalAccumulator(tf.float32, shape=[2])
a.apply_grad(f(2), local_step=1)
a.take_grad(2)
a.set_global_step(3)
a.num_accumulated()
---
tf.ConditionalAccumulator(tf.float32, reduction_type='SUM', name='n').take_grad(1, name='t')
"""),
    "train.input_producer": ["tf.train.input_producer(f(3, 2))", "tf.train.input_producer(f(3), shuffle=False, name='n')"],
    "train.string_input_producer": separated("""
q = tf.train.string_input_producer(['a', 'b'], num_epochs=2, shuffle=False)
k, v = tf.TFRecordReader().read(q)
tf.train.shuffle_batch([v], 4, 100, 10, num_threads=2)
---
tf.train.string_input_producer(['a', 'b'])
---
tf.train.string_input_producer(s(3), seed=1, capacity=5, name='n')
"""),
    "train.range_input_producer": ["tf.train.range_input_producer(5).dequeue()", "tf.train.range_input_producer(5, 2, name='n')"],
    "train.slice_input_producer": separated("""
a, b = tf.train.slice_input_producer([f(3, 2), [1, 2, 3]], shuffle=True, seed=1)
tf.train.batch([a, b], 2, allow_smaller_final_batch=True)
---
tf.train.slice_input_producer([f(3, 2)], num_epochs=1, shuffle=False, name='n')
"""),
    "train.batch": separated("""
tf.train.batch({'a': f(2), 'b': i()}, 3, dynamic_pad=True, num_threads=2, name='n')
---
tf.train.batch([f(4, 2), i(4)], 3, enqueue_many=True, capacity=10)
"""),
    "train.batch_join": ["tf.train.batch_join([[f(2)], [f(2)]], 3)", "tf.train.batch_join([[f(2)]], 3, name='n')"],
    "train.maybe_batch": ["tf.train.maybe_batch([f(2)], True, 3)", "tf.train.maybe_batch([f(2)], True, 3, name='n')"],
    "train.maybe_batch_join": [
        "tf.train.maybe_batch_join([[f(2)], [f(2)]], True, 3)", "tf.train.maybe_batch_join([[f(2)]], True, 3, name='n')",
    ],
    "train.shuffle_batch": [
        "tf.train.shuffle_batch([f(2)], 3, 20, 5)", "tf.train.shuffle_batch([f(3, 2)], 3, 20, 5, 2, 7, True, name='n')",
    ],
    "train.shuffle_batch_join": [
        "tf.train.shuffle_batch_join([[f(2)], [f(2)]], 3, 20, 5, seed=1)",
        "tf.train.shuffle_batch_join([[f(2)], [f(2)]], 3, 20, 5, name='n')",
    ],
    "train.maybe_shuffle_batch": [
        "tf.train.maybe_shuffle_batch([f(2)], 3, 20, 5, True)",
        "tf.train.maybe_shuffle_batch([f(2)], 3, 20, 5, True, seed=1, name='n')",
    ],
    "train.maybe_shuffle_batch_join": [
        "tf.train.maybe_shuffle_batch_join([[f(2)], [f(2)]], 3, 20, 5, True)",
        "tf.train.maybe_shuffle_batch_join([[f(2)]], 3, 20, 5, True, name='n')",
    ],
    "train.limit_epochs": ["tf.train.limit_epochs(f(2), 3)", "tf.train.limit_epochs(f(2), 3, name='n')"],
    "io.match_filenames_once": ["tf.train.match_filenames_once('a*')", "tf.train.match_filenames_once(s(), name='n')"],
}  # fmt: skip
