"""tf.test, tf.config, tf.resource_loader and files of checkpoints; loops of tf.contrib.training."""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tf1.calls import separated
from tests.tf1.test_monitored_sessions import both, counting, events
from toolkit import tensorflow as tf

pytestmark = pytest.mark.tensorflow

#: a body of a test, and whether it passes
BODIES = separated("""
self.assertAllClose(tf.constant([1.0, 2.0]), [1.0, 2.0 + 1e-7])
---
self.assertAllClose({'a': tf.constant(1.0), 'b': [1.0, (2.0,)]}, {'a': 1.0, 'b': [1.0, (2.0,)]})
---
self.assertAllClose([1.0, 2.0], [1.0, 2.1])
---
self.assertAllClose([1.0], [1.0, 1.0])
---
self.assertNotAllClose([1.0], [1.1])
---
self.assertAllEqual(tf.constant([b'a', b'b']), ['a', 'b'])
---
self.assertAllEqual([float('nan'), 1.0], [float('nan'), 1.0])
---
self.assertAllEqual([1, 2], [1, 3])
---
self.assertAllGreater([2, 3], 1); self.assertAllLessEqual([2, 3], 3); self.assertAllInRange([0.5], 0, 1)
---
self.assertAllInSet([1, 2, 1], [1, 2])
---
self.assertAllInSet([1, 4], [1, 2])
---
self.assertShapeEqual(np.zeros([2, 3]), tf.zeros([2, 3])); self.assertDTypeEqual(tf.zeros([1]), np.float32)
---
self.assertArrayNear([1.0, 2.0], [1.01, 2.0], 0.1); self.assertNear(1.0, 1.05, 0.1); self.assertLen([1], 1)
---
self.assertProtoEquals('float_val: 1.0', tf.TensorProto(float_val=[1.0]))
---
with self.assertRaisesOpError('oops'):
    tf.debugging.Assert(tf.constant(False), ['oops']).run()
---
with self.assertRaisesRegexp(ValueError, 'x'):
    raise ValueError('y')
---
self.assertEqual(list(self.evaluate([tf.constant(1), tf.constant(2)])), [1, 2])
---
v = tf.Variable(1.0)
v.initializer.run()
with self.cached_session():
    self.assertAllEqual(v, 1.0)
with self.test_session() as again:
    self.assertAllEqual(again.run(v), 1.0)
---
thread = self.checkedThread(target=lambda: self.fail('in a thread'))
thread.start()
thread.join()
---
self.assertItemsEqual([1, 2], [2, 1]); self.assertBetween(1, 0, 2); self.assertContainsSubset([1], [1, 2])
---
self.assertAllCloseAccordingToType(np.float16(1.0), np.float16(1.0005))
---
self.assertEqual(self.get_temp_dir(), self.get_temp_dir())
""")


@pytest.mark.parametrize("body", BODIES)
def test_cases_pass_and_fail_as_tensorflows(body: str, tmp_path: Path) -> None:
    def scenario(library: Any, folder: str) -> bool:
        def check(self: Any) -> None:
            with self.cached_session():
                exec(compile(body, "<body>", "exec"), {"self": self, "tf": library, "np": np})

        case = type("Case", (library.test.TestCase,), {"test_it": check})("test_it")
        result = unittest.TestResult()
        case.run(result)
        return result.wasSuccessful()

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


def test_gradients_are_compared_with_differences() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, [2, 3])
        y = tf.sin(x) * 2.0
        exact, measured = tf.test.compute_gradient(x, [2, 3], y, [2, 3])
        assert exact.shape == (6, 6)
        # differences over 1e-3 err by a sixth of its square times the third derivative, which is 2 at most
        assert np.abs(exact - measured).max() < 1e-6
        assert tf.test.compute_gradient_error([x], [[2, 3]], y, [2, 3]) < 1e-6


def test_graphs_are_compared_by_node() -> None:
    def graph(value: float) -> Any:
        with tf.Graph().as_default() as made:
            tf.constant(value, name="c")
        return made.as_graph_def()

    tf.test.assert_equal_graph_def(graph(1.0), graph(1.0))
    with pytest.raises(AssertionError, match="the node 'c' differs"):
        tf.test.assert_equal_graph_def(graph(1.0), graph(2.0))
    with pytest.raises(TypeError, match="a GraphDef is compared, not int"):
        tf.test.assert_equal_graph_def(1, graph(1.0))


def test_attributes_are_replaced_and_come_back() -> None:
    class Holder:
        value = 1

    stubs = tf.test.StubOutForTesting()
    stubs.Set(Holder, "value", 2)
    stubs.SmartSet(Holder, "value", 3)
    assert Holder.value == 3
    stubs.CleanUp()
    assert Holder.value == 1
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        stubs.SmartSet(Holder, "other", 1)


def test_a_cluster_in_one_process() -> None:
    workers, servers = tf.test.create_local_cluster(2, 1)
    assert [len(workers), len(servers)] == [2, 1]
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0)
        with tf.Session(workers[0].target) as session:
            session.run(v.initializer)
        with tf.Session(workers[1].target) as session:
            assert session.run(v) == 1.0
    tf.Session.reset(workers[0].target)


def test_what_the_machine_has() -> None:
    assert [device.device_type for device in tf.config.list_physical_devices()] == ["CPU"]
    assert tf.config.list_physical_devices("GPU") == []
    assert tf.test.is_built_with_xla() is False
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
        tf.config.threading.set_intra_op_parallelism_threads(1)
        assert [each.name for each in tf.config.list_logical_devices()] == [f"/device:CPU:{n}" for n in range(3)]
        with tf.Graph().as_default(), tf.Session() as session:
            devices = session.list_devices()
            assert [each.name[-5:] for each in devices] == ["CPU:0", "CPU:1", "CPU:2"]
            assert {(each.device_type, each.memory_limit_bytes) for each in devices} == {("CPU", 1 << 28)}
            assert all(
                -(1 << 63) <= each.incarnation < 1 << 63 and str(each.incarnation) in str(each) for each in devices
            )
        assert tf.config.threading.get_intra_op_parallelism_threads() == 1
    finally:
        tf.config.set_logical_device_configuration(cpu, [])
        tf.config.threading.set_intra_op_parallelism_threads(0)
    for mistake, line in [
        (
            lambda: tf.config.set_visible_devices([tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")]),
            "no device",
        ),
        (lambda: tf.config.experimental.set_memory_growth(cpu, True), "memory growth is a setting of GPUs"),
        (lambda: tf.config.experimental.set_device_policy("other"), "'other' is no policy"),
    ]:
        with pytest.raises(ValueError, match=line):
            mistake()
    for missing in (
        lambda: tf.config.run_functions_eagerly(True),
        tf.config.experimental_connect_to_host,
        tf.sysconfig.get_lib,
    ):
        with pytest.raises(tf.errors.UnimplementedError):
            missing()
    tf.config.optimizer.set_jit(True)
    tf.config.optimizer.set_experimental_options({"constant_folding": True})
    assert tf.config.optimizer.get_jit() == "autoclustering"
    assert tf.config.optimizer.get_experimental_options() == {"constant_folding": True}


def test_files_beside_the_program() -> None:
    assert tf.resource_loader.get_path_to_datafile("x.txt") == str(Path(__file__).parent / "x.txt")
    assert tf.resource_loader.load_resource(Path(__file__).name) == Path(__file__).read_bytes()
    with pytest.raises(OSError, match="cannot be read"):
        tf.resource_loader.load_resource("nowhere.txt")


def test_errors_by_code(tmp_path: Path) -> None:
    def scenario(library: Any, folder: str) -> list[str]:
        kinds = [library.errors.exception_type_from_error_code(code) for code in range(1, 17)]
        return [f"{kind.__name__} {library.errors.error_code_from_exception_type(kind)}" for kind in kinds]

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


def test_checkpoints_as_files(tmp_path: Path) -> None:
    def scenario(library: Any, folder: str) -> Any:
        train = library.train
        made = str(train.generate_checkpoint_state_proto("a", "a/m-2", ["a/m-1"], [1.0, 2.0], 0.5))
        v = library.Variable(1.0)
        with library.Session() as session:
            session.run(v.initializer)
            saver = train.Saver()
            paths = [saver.save(session, f"{folder}/m", global_step=step) for step in (1, 2)]
        train.update_checkpoint_state(folder, paths[0], list(paths))  # TensorFlow adds to the list
        state = (Path(folder) / "checkpoint").read_text().replace(folder, "")
        times = [len(train.get_checkpoint_mtimes(paths))]
        found = [Path(path).name for path in train.checkpoints_iterator(folder, timeout=0)]
        train.remove_checkpoint(paths[0])
        return made, state, times, found, sorted(path.name for path in Path(folder).iterdir())

    theirs, here = both(scenario, tmp_path)
    assert here == theirs


def test_training_and_evaluation_loops(tmp_path: Path) -> None:
    training = tf.contrib.training
    folder = str(tmp_path)
    with tf.Graph().as_default():
        train_op, loss = counting(tf)
        with tf.control_dependencies([train_op]):
            value = tf.identity(loss)
        last = training.train(value, folder, hooks=[tf.train.StopAtStepHook(3)], save_summaries_steps=None)
        assert last is not None
    tf.summary.FileWriterCache.clear()
    with tf.Graph().as_default():
        counting(tf)
        batches = tf.Variable(0, collections=["local_variables"], trainable=False)
        count = batches.assign_add(1)
        step = tf.train.get_global_step()
        hooks = [training.StopAfterNEvalsHook(4), training.SummaryAtEndHook(f"{folder}/eval")]
        final = training.evaluate_repeatedly(
            folder, eval_ops=count, final_ops=[batches, step], hooks=hooks, eval_interval_secs=0,
            max_number_of_evaluations=1,
        )  # fmt: skip
        assert [int(each) for each in final] == [4, 3]
        assert training.get_or_create_eval_step() is training.get_or_create_eval_step()
        latest = training.wait_for_new_checkpoint(folder)
        once = training.evaluate_once(
            latest, eval_ops=[count], final_ops={"n": batches}, hooks=[training.StopAfterNEvalsHook(2)]
        )
        assert once["n"] == 2
        assert training.wait_for_new_checkpoint(folder, latest, 0, timeout=-1) is None
        assert list(training.checkpoints_iterator(folder, timeout=0)) == [latest]
    tf.summary.FileWriterCache.clear()
    assert [event[:2] for event in events(f"{folder}/eval") if event[1] == "loss"] == [(3, "loss")]
    with pytest.raises(ValueError, match="logdir is None"):
        training.train(None, None)
    with pytest.raises(ValueError, match="give log_dir or summary_writer"):
        training.SummaryAtEndHook()


def test_a_test_may_reset_its_default_graph() -> None:
    before = tf.get_default_graph()

    class Resetting(tf.test.TestCase):
        def test_it(self) -> None:
            tf.constant(1, name="gone")
            tf.reset_default_graph()
            tf.constant(2, name="kept")
            with self.test_session() as session:
                assert [each.name for each in session.graph.get_operations()] == ["kept"]

    outcome = unittest.TestResult()
    Resetting("test_it").run(outcome)
    assert outcome.wasSuccessful(), outcome.failures + outcome.errors
    assert tf.get_default_graph() is before
