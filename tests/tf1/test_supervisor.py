"""Supervisors, servers, device names and tensors kept in sessions do as TensorFlow's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tf1.calls import separated
from tests.tf1.test_monitored_sessions import both, counting, events
from toolkit import tensorflow as ours
from toolkit.errors import UsageError

pytestmark = pytest.mark.tensorflow


def test_a_supervisor_trains_saves_and_goes_on(tmp_path: Path) -> None:
    def scenario(tf: Any, folder: str) -> Any:
        told: list[Any] = []
        for _ in range(2):
            with tf.Graph().as_default():
                train_op, loss = counting(tf)
                sv = tf.train.Supervisor(logdir=folder, save_model_secs=0, save_summaries_secs=0)
                told += [
                    sv.is_chief, sv.init_op.name, sv.ready_op.name, sv.ready_for_local_init_op, sv.summary_op.name,
                    sv.global_step.name, sv.saver.saver_def.save_tensor_name, Path(sv.save_path).name,
                    tf.get_default_graph().finalized,
                ]  # fmt: skip
                with sv.managed_session() as session:
                    for _ in range(3):
                        session.run(train_op)
                    told.append(round(float(session.run(loss)), 5))
                    sv.saver.save(session, sv.save_path, global_step=sv.global_step)
                    sv.summary_computed(session, session.run(sv.summary_op))
                told.append(sv.should_stop())
            told.append(events(folder))
        return told, sorted(path.name for path in Path(folder).iterdir())

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


SCENARIOS = separated("""
train_op, loss = counting(tf)
sv = tf.train.Supervisor(logdir=None)
try:
    with sv.managed_session() as session:
        raise KeyError('mine')
except KeyError:
    told.append('raised')
with sv.managed_session() as session:
    raise tf.errors.OutOfRangeError(None, None, 'the end')
told.append(sv.should_stop())
---
q = tf.FIFOQueue(10, tf.int32)
tf.train.add_queue_runner(tf.train.QueueRunner(q, [q.enqueue_many([[1, 2, 3]])]))
x = q.dequeue()
sv = tf.train.Supervisor()
with sv.managed_session() as session:
    told += [int(session.run(x)) for _ in range(4)]
told.append(sv.should_stop())
---
train_op, loss = counting(tf)
sv = tf.train.Supervisor(logdir=folder, save_model_secs=0, save_summaries_secs=0)
def step(session, by, more=0):
    session.run(train_op)
    told.append(by + more)
    if len(told) == 3:
        sv.request_stop()
tf.train.basic_train_loop(sv, step, args=(1,), kwargs={'more': 2})
---
coord = tf.train.Coordinator()
def count():
    told.append(1)
    if len(told) == 4:
        coord.request_stop()
thread = tf.train.LooperThread.loop(coord, 0, count)
coord.join([thread])
told.append(coord.should_stop())
---
coord = tf.train.Coordinator()
def fails():
    raise KeyError('mine')
threads = [tf.train.LooperThread(coord, None, target=fails)]
threads[0].start()
try:
    coord.join(threads, stop_grace_period_secs=5)
except KeyError:
    told.append('raised')
---
spec = tf.train.ClusterSpec({'worker': ['a:1', 'b:2'], 'ps': {1: 'c:3'}})
told += [spec.as_dict(), spec.jobs, spec.num_tasks('worker'), spec.task_indices('ps'), spec.task_address('worker', 1),
         spec.job_tasks('ps'), bool(spec), repr(spec), spec == tf.train.ClusterSpec(spec.as_cluster_def()),
         spec != tf.train.ClusterSpec({}), bool(tf.train.ClusterSpec({}))]
told.append(str(spec.as_cluster_def()))
---
for bad in [lambda: tf.train.ClusterSpec(3), lambda: tf.train.ClusterSpec({'a': 3}), lambda: spec.num_tasks('x'),
            lambda: spec.task_address('a', 3)]:
    spec = tf.train.ClusterSpec({'a': ['b:1']})
    try:
        bad()
    except Exception as error:
        told.append(type(error).__name__)
---
spec = tf.DeviceSpec(job='ps', replica=0, task=1, device_type='gpu', device_index=3)
told += [spec.to_string(), repr(spec), spec.job, spec.task, spec.device_type, spec.device_index]
other = tf.DeviceSpec.from_string('/job:worker/device:CPU:*')
told += [other.to_string(), spec.make_merged_spec(other).to_string(), spec.replace(task=2).to_string()]
other.merge_from(tf.DeviceSpec(task=4))
told += [other.to_string(), other == tf.DeviceSpec.from_string(other.to_string()), hash(spec) == hash(spec)]
other.device_index = 1
told += [other.to_string(), tf.DeviceSpec().parse_from_string('/gpu:0').to_string()]
---
a = tf.constant([1.0, 2.0]) * 2.0
handle = tf.get_session_handle(a, name='h')
with tf.Session() as session:
    kept = session.run(handle)
    told += [kept.eval().tolist(), kept.handle.split(';')[0], str(kept) == kept.handle]
    holder, tensor = tf.get_session_tensor(kept.handle, tf.float32)
    told.append(session.run(tensor * 2.0, {holder: kept.handle}).tolist())
    more = session.run({'b': [handle, a]})['b']
    told += [more[0].eval().tolist(), more[1].tolist()]
    gone, delete = tf.delete_session_tensor(more[0].handle)
    session.run(delete, {gone: more[0].get_raw_handle()})
    kept.delete()
    try:
        kept.eval()
    except TypeError:
        told.append('deleted')
---
template = tf.make_template('t', lambda x: x * tf.get_variable('w', [2], initializer=tf.ones_initializer()))
told += [template.name, template.variable_scope_name, template.variables]
template(tf.zeros([2]))
told += [template.variable_scope.name, template.var_scope.name, template.variable_scope_name]
told += [[v.name for v in template.variables], [v.name for v in template.trainable_variables],
         template.non_trainable_variables, template.local_variables, len(template.weights)]
---
def bad(x):
    return x * tf.Variable(1.0)
template = tf.make_template('t', bad)
template(1.0)
try:
    template(1.0)
except Exception:
    told.append('refused')
""")


@pytest.mark.parametrize("code", SCENARIOS)
def test_as_in_tensorflow(code: str, tmp_path: Path) -> None:
    def scenario(tf: Any, folder: str) -> list[Any]:
        told: list[Any] = []
        exec(compile(code, "<scenario>", "exec"), {"tf": tf, "told": told, "counting": counting, "folder": folder})
        return told

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


def test_sessions_of_a_server_share_their_variables() -> None:
    tf = ours
    with tf.Graph().as_default():
        v = tf.Variable(1.0)
        server = tf.train.Server.create_local_server()
        assert server.server_def.job_name == "localhost"
        with tf.Session(server.target) as session:
            session.run(v.initializer)
            session.run(v.assign_add(1.0))
        with tf.Session(server.target) as session:
            assert session.run(v) == 2.0
        other = tf.train.Server.create_local_server().target
        with tf.Session(other) as session, pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)


def test_servers_tell_what_is_wrong_in_one_line() -> None:
    pytest.importorskip("grpc")
    tf = ours
    cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:2", "c:3"]})
    with pytest.raises(UsageError, match="could be used by anybody") as caught:
        tf.train.Server(cluster, "worker", 0)
    assert "\n" not in caught.value.message
    with pytest.raises(UsageError, match="the cluster has no /job:chief/replica:0/task:0"):
        tf.train.Server(cluster, "chief", 0)
    with pytest.raises(ValueError, match="say which with job_name="):
        tf.train.Server(cluster)
    with pytest.raises(ValueError, match="say which with task_index="):
        tf.train.Server(cluster, "worker")


def test_handles_tell_mistakes() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        handle = session.run(tf.get_session_handle(tf.constant([1.0])))
        with pytest.raises(TypeError, match="data is a tensor, not float"):
            tf.get_session_handle(1.0)
        holder, wrong = tf.get_session_tensor(handle.handle, tf.int32)
        with pytest.raises(tf.errors.InvalidArgumentError, match="has type float32, not int32"):
            session.run(wrong, {holder: handle.handle})
        gone, delete = tf.delete_session_tensor(handle.handle)
        session.run(delete, {gone: handle.handle})
        with pytest.raises(tf.errors.NotFoundError, match="was it deleted before"):
            session.run(delete, {gone: handle.handle})


def test_what_is_kept_is_not_changed() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([1.0, 2.0])
        session.run(v.initializer)
        kept = session.run(tf.get_session_handle(v.read_value()))
        session.run(v.assign_add([1.0, 1.0]))
        np.testing.assert_array_equal(kept.eval(), [1.0, 2.0])
