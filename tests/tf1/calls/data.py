"""Datasets and iterators."""

from tests.tf1.calls import separated

CALLS: dict[str, list[str]] = {
    "data.TFRecordDataset": separated("""
tf.data.TFRecordDataset('f').repeat(3).shuffle(10).batch(4).prefetch(2)
---
tf.data.TFRecordDataset(['a','b'])
---
tf.data.TFRecordDataset(s(2), compression_type='GZIP', num_parallel_reads=2)
"""),
    "data.TextLineDataset": separated("""
tf.data.TextLineDataset(['a', 'b'], compression_type='ZLIB', buffer_size=100)
---
tf.data.TextLineDataset('a').skip(1)
"""),
    "data.FixedLengthRecordDataset": separated("""
tf.data.FixedLengthRecordDataset(['a'], tf.constant(3, tf.int64), footer_bytes=1, num_parallel_reads=2)
---
tf.data.FixedLengthRecordDataset('a',10,header_bytes=2)
"""),
    "data.Iterator": separated("""
it=tf.data.Iterator.from_structure((tf.float32,tf.int32),(tf.TensorShape([None]),tf.TensorShape([])))
it.get_next()
it.make_initializer(tf.data.Dataset.from_tensors((f(3),1)))
---
it=tf.data.Iterator.from_string_handle(s(),tf.int32,tf.TensorShape([]))
it.get_next()
it.string_handle()
---
h=tf.placeholder(tf.string,[])
d=tf.data.Dataset.range(5)
it=tf.data.Iterator.from_string_handle(h,d.output_types,d.output_shapes)
it.get_next()
d.make_one_shot_iterator().string_handle()
"""),
    "data.Options": separated("""
o=tf.data.Options()
o.experimental_deterministic=False
tf.data.Dataset.range(5).with_options(o).make_initializable_iterator()
---
o=tf.data.Options()
o.experimental_optimization.map_parallelization=True
o.experimental_threading.private_threadpool_size=4
o.autotune.enabled=True
o.experimental_slack=True
tf.data.Dataset.range(5).with_options(o).map(lambda x:x).make_initializable_iterator()
"""),
    "data.Dataset": separated("""
tf.data.Dataset.from_tensors({'a':1,'b':(2.0,[1,2])})
---
tf.data.Dataset.from_tensor_slices((f(3,2),[1,2,3])).batch(2, drop_remainder=True)
---
tf.data.Dataset.range(5).shuffle(3)
---
tf.data.Dataset.range(5).shuffle(3,seed=1,reshuffle_each_iteration=False).repeat().take(2).skip(1)
---
tf.data.Dataset.range(1,5,2).interleave(lambda x: tf.data.Dataset.range(x), cycle_length=2)
---
d = tf.data.Dataset.range(5)
d.interleave(lambda x: tf.data.Dataset.range(x), cycle_length=2, block_length=3, num_parallel_calls=2)
---
tf.data.Dataset.range(5).flat_map(lambda x: tf.data.Dataset.range(x)).prefetch(tf.data.AUTOTUNE)
---
tf.data.Dataset.range(5).map(lambda x: tf.fill([x],x)).padded_batch(2,padded_shapes=[None])
---
tf.data.Dataset.range(5).map(lambda x: ({'a':[x,x],'b':x},[x])).batch(2)
---
tf.data.Dataset.range(5).cache().shard(2,1).concatenate(tf.data.Dataset.range(2))
---
tf.data.Dataset.range(5).cache('f').enumerate().window(2)
---
tf.data.Dataset.zip((tf.data.Dataset.range(3),tf.data.Dataset.range(4)))
---
tf.data.Dataset.list_files('a*')
---
tf.data.Dataset.list_files('a*',shuffle=False)
---
tf.data.Dataset.from_tensor_slices(f(3,2)).unbatch()
---
tf.data.Dataset.range(5).reduce(np.int64(0), lambda s,x: s+x)
---
tf.data.Dataset.range(5).apply(tf.data.experimental.shuffle_and_repeat(3))
---
tf.data.Dataset.random(seed=1)
---
tf.data.Dataset.range(5).scan(np.int64(0), lambda s,x: (s+x,x))
---
tf.data.Dataset.range(5).take_while(lambda x: x<3).unique().ignore_errors()
---
tf.data.Dataset.range(5).group_by_window(lambda x: x%2, lambda k,d: d.batch(2), window_size=2)
---
d, e = tf.data.Dataset.range(5), tf.data.Dataset.range(3)
tf.data.Dataset.sample_from_datasets([d, e],[0.5,0.5],seed=1)
---
d, e = tf.data.Dataset.range(5), tf.data.Dataset.range(3)
tf.data.Dataset.choose_from_datasets([d, e],tf.data.Dataset.range(2))
---
tf.data.Dataset.range(5).map(lambda x: x).filter(lambda x: x>1).make_one_shot_iterator().get_next()
---
d = tf.data.Dataset.from_tensor_slices({'a': f(4, 2), 'b': i(4)})
d = d.map(lambda d: (d['a']*2, d['b']), num_parallel_calls=4).batch(2)
d.make_initializable_iterator(shared_name='s').get_next(name='n')
---
x=f()
w=tf.get_variable('w',[2])
tf.data.Dataset.range(3).map(lambda v: tf.to_float(v)*x+w).filter(lambda v: tf.reduce_all(v>x))
---
d = tf.data.Dataset.range(10).batch(3, num_parallel_calls=2)
d.padded_batch(2,padded_shapes=[5],padding_values=np.int64(7),drop_remainder=True)
---
d = tf.data.Dataset.from_tensor_slices((f(3), f(3, None)))
d.padded_batch(2,padded_shapes=([],[None]),padding_values=(1.0,0.0))
---
tf.data.Dataset.range(10).window(3,shift=1,drop_remainder=True).flat_map(lambda w: w.batch(3))
---
tf.data.Dataset.zip({'a':tf.data.Dataset.range(3),'b':(tf.data.Dataset.range(4),)}).map(lambda d: d['a'])
---
tf.data.Dataset.range(10).apply(tf.data.experimental.map_and_batch(lambda x:(x,x),4,drop_remainder=True))
---
tf.data.Dataset.from_tensor_slices(tf.SparseTensor([[0,1],[1,0]],[1.0,2.0],[2,2])).map(lambda s: s)
---
t = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
tf.data.Dataset.from_tensors(t).batch(1).make_one_shot_iterator().get_next()
---
tf.data.Dataset.from_sparse_tensor_slices(tf.SparseTensor([[0,1],[1,0]],[1.0,2.0],[2,2]))
---
tf.data.Dataset.from_tensor_slices([[1,2],[3,4]]).sparse_batch(2,[4])
---
d = tf.data.Dataset.range(6)
d.bucket_by_sequence_length(lambda x: tf.cast(x,tf.int32),[3,5],[2,2,2],padded_shapes=[])
---
tf.data.Dataset.range(3).get_single_element()
---
tf.data.Dataset.range(3).cardinality()
---
tf.set_random_seed(5)
tf.data.Dataset.range(3).shuffle(4).map(lambda x: tf.random_uniform([]))
---
tf.data.Dataset.from_tensor_slices((['a'],[1])).map(lambda n,l: (tf.image.decode_png(tf.read_file(n)), l))
---
tf.data.Dataset.counter(3).take(2)
---
def fn(x):
  return tf.cond(x>1,lambda: x*2,lambda: x)
tf.data.Dataset.range(5).map(fn)
---
def fn(x):
  v=tf.Print(x,[x])
  with tf.control_dependencies([tf.assert_equal(x,x)] if False else []):
    return v
tf.data.Dataset.range(5).map(fn)
---
tf.data.Dataset.range(5).map(lambda x: [x,x+1]).map(lambda a,b: {'z':a,'y':3})
---
tf.data.Dataset.range(5).skip(tf.constant(2,tf.int64)).batch(tf.placeholder(tf.int64,[]), drop_remainder=True)
"""),
    "data.make_one_shot_iterator": separated("""
tf.data.make_one_shot_iterator(tf.data.Dataset.range(3))
---
d = tf.data.Dataset.range(3)
tf.data.make_one_shot_iterator(d).get_next()
"""),
    "data.make_initializable_iterator": separated("""
tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
---
tf.data.make_initializable_iterator(tf.data.Dataset.range(3), shared_name='s')
"""),
}  # fmt: skip
