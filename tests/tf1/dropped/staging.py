"""tf.contrib.staging, which input pipelines for accelerators used."""

from __future__ import annotations

from tests.tf1.calls import separated

CALLS: dict[str, list[str]] = {
    "contrib.staging.StagingArea": separated("""
a = tf.contrib.staging.StagingArea([tf.float32])
a.put(f(2, 3))
a.put([f(2, 3)], name='n')
a.get()
a.get('m')
---
a = tf.contrib.staging.StagingArea([tf.float32, tf.int32], [[2, 3], [None]], capacity=2, memory_limit=64)
a.put([f(2, 3), i(4)])
a.peek(0)
a.size()
a.clear()
tf.add(a.get()[0], 1.0)
---
a = tf.contrib.staging.StagingArea([tf.float32, tf.int32], names=['x', 'y'], shared_name='area')
a.put({'y': i(4), 'x': f()})
tf.add(a.get()['y'], 1)
a.put({'x': f()})
---
with tf.device('/cpu:0'):
    a = tf.contrib.staging.StagingArea([tf.float32])
a.put([f(2)])
a.get()
---
with tf.name_scope('s'):
    a = tf.contrib.staging.StagingArea([tf.string])
    a.put(s(2))
a.get()
"""),
}

VALUES: dict[str, list[str]] = {
    "contrib.staging.StagingArea": separated("""
a = tf.contrib.staging.StagingArea([tf.float32], [[2]], ['x'], capacity=3)
result = [a.name, a.names, a.capacity, a.memory_limit, [str(t) for t in a.shapes], len(a.dtypes)]
---
a = tf.contrib.staging.StagingArea([tf.float32])
puts = [a.put(tf.constant(float(k))) for k in range(3)]
with tf.Session() as other:
    for put in puts:
        other.run(put)
    result = [other.run(a.peek(1)), other.run(a.get()), other.run(a.size())]
"""),
}
