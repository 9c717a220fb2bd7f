# what is looked at may be anything
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
"""Graphs, operations, tensors and sessions do what TensorFlow's do, and refuse what TensorFlow refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tf1 import call_scope, node_oracle
from tests.tf1.calls import separated
from toolkit import tensorflow as ours

pytestmark = pytest.mark.tensorflow

# what is left in `r` is compared, and the nodes that were made; `g` is the graph
CODES = separated("""
x=f(2,3)
for a in x: pass
---
x=f(2,3)
a,b=x
---
x=f(None,3); list(x)
---
x=f(); list(x)
---
x=f(2); r=len(x)
---
x=f(2)
if x: pass
---
x=f(2); x==x; r=(x==x)
---
x=f(2); r={x:1}[x]
---
x=f(2); y=x in [x]; r=y
---
x=f(2); r= x!=x
---
x=f(2); r=1.0 in x
---
x=f(2,3); r=[x.shape.as_list(), x.get_shape().as_list(), x.name, x.op.name, x.value_index, x.device]
---
x=f(2,3); r=str(x)
---
x=f(2,3); r=repr(x)
---
x=f(2,3); r=str(x.op)
---
x=f(2,3); r=repr(x.op)
---
r=g.version
---
a=f(2); b=a+1; r=str(g.as_graph_def(add_shapes=True))
---
a=f(2); r=str(g.graph_def_versions.producer>0)
---
r=g.get_operation_by_name('nope')
---
a=f(2); r=g.get_operation_by_name('x:0')
---
a=f(2); r=g.get_operation_by_name(3)
---
a=f(2); r=g.get_tensor_by_name('x')
---
a=f(2); r=g.get_tensor_by_name('x:5')
---
a=f(2); r=g.get_tensor_by_name('x:a')
---
a=f(2); r=g.get_tensor_by_name(3)
---
a=f(2); r=g.get_tensor_by_name('nope:0')
---
a=f(2); r=g.as_graph_element('x')
---
a=f(2); r=g.as_graph_element('x:0')
---
a=f(2); r=g.as_graph_element(3)
---
a=f(2); r=g.as_graph_element(a, allow_tensor=False)
---
a=f(2); r=g.as_graph_element('x', allow_operation=False)
---
a=f(2); r=g.as_graph_element('x:0', allow_tensor=False)
---
a=f(2); r=g.as_graph_element(a, allow_tensor=False, allow_operation=False)
---
with tf.Graph().as_default(): b=tf.constant(1)
r=g.as_graph_element(b)
---
v=tf.Variable(1.); r=g.as_graph_element(v)
---
g.finalize(); tf.constant(1)
---
g.finalize(); r=g.finalized
---
g.finalize(); g.add_to_collection('a',1)
---
g.finalize(); g.get_collection_ref('a').append(1); r=g.get_collection('a')
---
a=f(2); g.prevent_feeding(a); r=[g.is_feedable(a), tf.Session().run(a+1,{a:[1,2]})]
---
a=f(2); b=a+1; g.prevent_fetching(b.op); r=[g.is_fetchable(b),g.is_fetchable(b.op)]; tf.Session().run(b,{a:[1,2]})
---
a=f(2); b=a+1; g.prevent_fetching(b.op); tf.Session().run(b.op,{a:[1,2]})
---
tf.set_random_seed(5); r=[g.seed, norm(tf.random_normal([2])), norm(tf.random_normal([2],seed=3))]
---
r=[tf.get_seed(None) if hasattr(tf,'get_seed') else 0]
---
tf.random_normal([2]); tf.set_random_seed(5); tf.random_normal([2]); tf.random_uniform([2],seed=1)
---
with g.gradient_override_map({'Square':'Custom'}): r=tf.square(f(2))
---
with g.gradient_override_map(3): pass
---
with g.gradient_override_map({3:'a'}): tf.square(f(2))
---
with g.gradient_override_map({'Square':3}): tf.square(f(2))
---
a=f(2)
with tf.control_dependencies([a]):
  with tf.control_dependencies(None): b=tf.constant(1)
  c=tf.constant(2)
---
a=f(2)
with tf.control_dependencies([a]): b=a+1; c=b*2
---
a=f(2)
with tf.control_dependencies(a): b=a+1
---
with tf.control_dependencies(['x']): pass
---
with tf.control_dependencies([3]): pass
---
v=tf.Variable(1.)
with tf.control_dependencies([v, v.initializer]): b=tf.constant(1)
---
a=tf.constant(1); c=tf.constant(2)
with tf.colocate_with(a):
  b=tf.constant(1)
  with tf.colocate_with(c): d=tf.constant(2)
  with tf.colocate_with(c,ignore_existing=True): e=tf.constant(2)
---
with tf.device('/cpu:0'): a=tf.constant(1)
with tf.device('/gpu:1'):
  with tf.colocate_with(a): b=tf.constant(2);
---
with tf.colocate_with(None): pass
---
with tf.colocate_with(None, ignore_existing=True): a=tf.constant(1)
---
with tf.name_scope('a b'): pass
---
with tf.name_scope(''): r=tf.constant(1).name
---
with tf.name_scope(None): r=tf.constant(1).name
---
with tf.name_scope('a') as s:
  with tf.name_scope(s): tf.constant(1,name='x')
  with tf.name_scope('b') as t: pass
  with tf.name_scope(t): tf.constant(1,name='x')
  with tf.name_scope(None): tf.constant(1,name='x')
with tf.name_scope('a') as u: tf.constant(1,name='x')
r=[s,t,u]
---
with tf.name_scope('a') as s: r=g.get_name_scope()
---
with g.name_scope('a/b/'):
  r=[g.unique_name('x'), g.unique_name('x'), g.unique_name('x',mark_as_used=False), g.get_name_scope()]
---
tf.constant(1,name='bad name')
---
tf.constant(1,name='_bad')
---
tf.constant(1,name='a/b/c')
---
with tf.name_scope('s'): tf.constant(1,name='_ok')
---
with tf.device('/job:ps'):
  with tf.device('/task:1/cpu:0'): tf.constant(1)
  with tf.device(None): tf.constant(2)
  with tf.device('/job:w/gpu:1'): tf.constant(3)
---
with tf.device('nonsense'): tf.constant(1)
---
with tf.device(lambda op: '/cpu:3' if op.type=='Const' else '/job:a'): tf.constant(1)+tf.constant(2)
---
with tf.device(lambda op: None): tf.constant(1)
---
with tf.device('/job:a'):
  with tf.device(lambda op: '/cpu:%d'%len(op.name)): tf.constant(1)
---
with tf.device(lambda op: 3): tf.constant(1)
---
with tf.device(tf.train.replica_device_setter(2)): tf.Variable(1.); tf.Variable(1.); tf.constant(1)
---
a=f(2); r=a.op.get_attr('nope')
---
a=f(2); r=str(a.op.node_def)
---
a=f(2); r=[a.op.values()]
---
c=tf.constant([1,2]); r=str(c.op.get_attr('value'))
---
a=f(2,3); a.set_shape([2,4])
---
a=f(None,3); a.set_shape([2,None]); r=a.shape.as_list()
---
a=f(2); b=f(3); a+b
---
with tf.Graph().as_default(): b=tf.constant(1.)
f(2)+b
---
a=f(2); r=a.eval()
---
a=f(2); r=tf.Session().run('x:0',{a:[1,2]}).tolist()
---
a=f(2); r=tf.Session().run('nope:0')
---
a=f(2); r=tf.Session().run(3)
---
a=f(2); r=tf.Session().run(None)
---
a=f(2); r=tf.Session().run([])
---
a=f(2); r=tf.Session().run(a)
---
a=f(2); r=tf.Session().run(a,{a:[1,2,3]})
---
a=f(2); r=tf.Session().run(a,{'x':[1,2]})
---
a=f(2); r=tf.Session().run(a,{a.op:[1,2]})
---
a=f(2); r=tf.Session().run(a,{a:a})
---
a=f(2); r=tf.Session().run(a,3)
---
s=tf.Session(); s.close(); s.run(tf.constant(1))
---
g.add_to_collections(['a','b','a'],1)
r=[g.get_collection('a'),g.get_collection('b'),sorted(g.get_all_collection_keys())]
---
g.add_to_collections('ab',1); r=[g.get_collection('ab')]
---
g.add_to_collection(3,1); r=g.get_collection(3)
---
tf.add_to_collection('a',tf.constant(1,name='q/w')); tf.add_to_collection('a',3); r=g.get_collection('a','q')
---
g.get_collection_ref('x').append(1); g.clear_collection('x'); r=g.get_collection('x')
---
a=f(2); a[0]=3
---
a=f(2); del a[0]
---
a=f(2); r=float(a)
---
a=f(2); r=int(a)
---
a=f(2); r=hash(a)==hash(a)
---
a=f(2); a.name='x'
---
a=f(2); r=a.numpy()
---
a=f(2); r=a.T
---
a=f(2); r=a<b(2)
---
a=f(2)
r=[-a, abs(a), a ** 2, 2 ** a, a // 2, a % 2, 2 / a, a / 2, 1 - a]
---
x=b(2); r=[norm(~x), norm(x&x), norm(x|True), norm(x^x)]
---
r=g.building_function
---
with g.as_default() as h: r=h is g
---
r=[tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.VARIABLES, tf.GraphKeys.SAVERS]
---
with g.device('/cpu:0'), g.control_dependencies([]), g.container('a'), g.colocate_with(tf.constant(1)):
  r=tf.Variable(1.).name
---
r=tf.get_default_graph().get_operations()
---
a = f(2)
b = a + 1
r = [n.name for n in g.as_graph_def(from_version=1).node]
---
with tf.container('c1'):
  tf.Variable(1.)
  with tf.container('c2'): tf.FIFOQueue(2, tf.float32)
""")


def _plain(value: Any) -> Any:
    """Values as both can show them: tensors and operations by their names."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if hasattr(value, "name") and hasattr(value, "graph"):
        return f"{'operation' if hasattr(value, 'node_def') else 'tensor'} {value.name}"
    return value if isinstance(value, int | str | bool | float | bytes | None) else repr(value)


def _outcome(tf: Any, code: str) -> tuple[Any, list[str]] | Exception:
    with tf.Graph().as_default() as graph:
        scope = {**call_scope.scope(tf), "g": graph, "norm": _plain}
        try:
            exec(compile(code, "<call>", "exec"), scope)
        except Exception as error:
            return error
        return _plain(scope.get("r")), node_oracle.described(graph.as_graph_def())


@pytest.mark.parametrize("code", CODES)
def test_graphs_behave_as_tensorflows(code: str) -> None:
    with node_oracle.semantics():
        wanted = _outcome(node_oracle.theirs(), code)
    found = _outcome(ours, code)
    if isinstance(wanted, Exception):
        # of a standard type that programs catch
        kind = next(each for each in type(wanted).__mro__ if each.__module__ == "builtins")
        assert isinstance(found, kind), f"{found!r}, where TensorFlow says {wanted!r}"
    else:
        assert found == wanted


COLLECTIONS = separated("""
v = tf.Variable(1.0)
w = tf.Variable(1.0, trainable=False, collections=['mine'])
u = tf.get_variable('u', [2], regularizer=lambda x: tf.reduce_sum(x), use_resource=True)
l = tf.get_local_variable('l', [2])
---
x = f(4, 3)
y = tf.matmul(x, tf.get_variable('w', [3, 2], regularizer=tf.nn.l2_loss))
tf.losses.mean_squared_error(f(4, 2), y)
tf.losses.add_loss(tf.reduce_sum(y), None)
tf.train.GradientDescentOptimizer(0.1).minimize(tf.losses.get_total_loss(), tf.train.create_global_step())
---
tf.metrics.accuracy(i(3), i(3), metrics_collections=['m'], updates_collections=['u'])
tf.metrics.mean(f(3))
---
tf.summary.scalar('a', f())
tf.summary.histogram('b', f(3), collections=['mine'])
tf.summary.merge_all()
tf.assert_positive(f(3))
---
q = tf.train.string_input_producer(['a', 'b'])
tf.train.batch([q.dequeue()], 2)
---
tf.cond(b(), lambda: tf.constant(1), lambda: tf.constant(2))
tf.while_loop(lambda i: i < 3, lambda i: tf.cond(i > 1, lambda: i + 1, lambda: i + 2), [tf.constant(0)])
---
v = tf.Variable(1.0)
tf.train.ExponentialMovingAverage(0.9).apply([v])
tf.train.AdamOptimizer().minimize(v)
tf.train.Scaffold().finalize()
---
tf.get_variable('p', [4, 2], partitioner=tf.fixed_size_partitioner(2))
tf.train.Saver()
tf.model_variables()
tf.add_to_collection(tf.GraphKeys.TRAIN_OP, tf.no_op())
---
t = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(['a'], [1]), -1)
d = tf.data.make_initializable_iterator(tf.data.Dataset.range(3))
d.get_next()
tf.nn.dropout(f(2), 0.5)
""")


def _collections(tf: Any, code: str) -> dict[str, list[str]]:
    with tf.Graph().as_default() as graph:
        exec(compile(code, "<call>", "exec"), call_scope.scope(tf))
        return {
            str(key): [str(getattr(each, "name", type(each).__name__)) for each in graph.get_collection(key)]
            for key in graph.get_all_collection_keys()
        }


@pytest.mark.parametrize("argument", ["target", "graph", "config"])
def test_sessions_are_made_of_what_they_need(argument: str) -> None:
    with pytest.raises(TypeError, match="int"):
        ours.Session(**{argument: 3})


@pytest.mark.parametrize("code", COLLECTIONS)
def test_collections_hold_what_tensorflow_puts_there(code: str) -> None:
    with node_oracle.semantics():
        wanted = _collections(node_oracle.theirs(), code)
    assert _collections(ours, code) == wanted
