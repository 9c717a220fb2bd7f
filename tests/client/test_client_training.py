"""Training graphs made by us, run by TensorFlow, beside the same graphs made by TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.client.client_programs import tf1_semantics
from toolkit import client as gm
from toolkit.client.spec import build_spec
from toolkit.errors import GraphError, UsageError
from toolkit.formats.models.metagraph import to_proto
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
SAMPLES = Path(__file__).parents[2] / "samples"


def _import(tf: ModuleType, meta: Any) -> Any:
    """Import a MetaGraph of ours into a new TensorFlow graph; returns the graph and the restored Saver."""
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        saver = v1.train.import_meta_graph(v1.MetaGraphDef.FromString(to_proto(meta).SerializeToString()))
    return graph, saver


OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda: gm.train.GradientDescent(0.1), lambda t: t.GradientDescentOptimizer(0.1)),
    "momentum": (lambda: gm.train.Momentum(0.1, 0.9), lambda t: t.MomentumOptimizer(0.1, 0.9)),
    "nesterov": (
        lambda: gm.train.Momentum(0.1, 0.9, use_nesterov=True),
        lambda t: t.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    ),
    "adam": (lambda: gm.train.Adam(0.1), lambda t: t.AdamOptimizer(0.1)),
    "adagrad": (lambda: gm.train.Adagrad(0.1), lambda t: t.AdagradOptimizer(0.1)),
    "adadelta": (lambda: gm.train.Adadelta(0.5), lambda t: t.AdadeltaOptimizer(0.5)),
    "rmsprop": (lambda: gm.train.RMSProp(0.1, momentum=0.5), lambda t: t.RMSPropOptimizer(0.1, momentum=0.5)),
    "centered": (lambda: gm.train.RMSProp(0.1, centered=True), lambda t: t.RMSPropOptimizer(0.1, centered=True)),
    "ftrl": (
        lambda: gm.train.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
        lambda t: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("resource", [False, True])
def test_optimizers(tf: ModuleType, name: str, resource: bool) -> None:
    """Five steps over a dense and a sparse gradient change the variables as TensorFlow's optimizer does."""
    v1 = tf.compat.v1
    start = np.array([[0.5, -0.3], [0.2, 0.9], [1.0, -1.0]], np.float32)
    weights = np.array([[1.0], [2.0]], np.float32)
    ours, theirs = OPTIMIZERS[name]

    graph = gm.Graph()
    with graph.as_default():
        v = gm.Variable(start, name="v", use_resource=resource)
        w = gm.Variable(weights, name="w", use_resource=resource)
        loss = gm.reduce_sum(gm.square(gm.matmul(gm.gather(v, [0, 2, 2]), w)), name="loss")
        step = gm.train.get_or_create_global_step()
        optimizer = ours()
        train = optimizer.minimize(loss, step)
        gm.global_variables_initializer()
        names = [train.name, loss.name, v.snapshot.name, w.snapshot.name, step.snapshot.name]
        slots = sorted(slot.name for slot in optimizer.variables())
        meta = gm.to_meta_graph()
    imported, _ = _import(tf, meta)
    with v1.Session(graph=imported) as session:
        session.run("init")
        for _ in range(5):
            session.run(names[0])
        found = session.run(names[1:])

    reference = tf.Graph()
    with reference.as_default(), tf1_semantics(tf):
        rv = v1.Variable(start, name="v", use_resource=resource)
        rw = v1.Variable(weights, name="w", use_resource=resource)
        rloss = v1.reduce_sum(v1.square(v1.matmul(v1.gather(rv, [0, 2, 2]), rw)))
        rstep = v1.train.get_or_create_global_step()
        roptimizer = theirs(v1.train)
        rtrain = roptimizer.minimize(rloss, rstep)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(5):
                session.run(rtrain)
            expected = session.run([rloss, rv, rw, rstep])
        assert slots == sorted(slot.name for slot in roptimizer.variables())

    def work(running: Session) -> list[Any]:
        running.run("init")
        for _ in range(5):
            running.run(names[0])
        return running.run(names[1:])

    perturbation.assert_agree([found, expected], lambda: perturbation.of_work(graph, work))


def test_digits_train_as_the_same_network_made_by_tensorflow(tf: ModuleType) -> None:
    """Ten steps of the sample give the losses of the same CNN written with TensorFlow's API and the same seed."""
    v1 = tf.compat.v1
    data = np.load(SAMPLES / "digits.npz")
    batches = [(data["x_train"][i * 64 : i * 64 + 64], data["y_train"][i * 64 : i * 64 + 64]) for i in range(10)]
    imported, _ = _import(tf, build_spec(SAMPLES / "digits_cnn.yaml"))
    found = _losses(v1, imported, "init", "train", "loss:0", batches)

    reference = tf.Graph()
    with reference.as_default(), tf1_semantics(tf):
        v1.set_random_seed(7)
        x = v1.placeholder(tf.float32, [None, 8, 8, 1], name="x")
        y = v1.placeholder(tf.int64, [None], name="y")
        he = v1.variance_scaling_initializer(2.0, "fan_in", "uniform")
        h = x
        for i, filters in enumerate((16, 32, 64), 1):
            with v1.variable_scope(f"conv{i}"):
                w = v1.get_variable("kernel", [3, 3, h.shape[-1], filters], initializer=he)
                b = v1.get_variable("bias", [filters], initializer=v1.zeros_initializer())
                h = v1.nn.relu(v1.nn.bias_add(v1.nn.conv2d(h, w, [1, 1, 1, 1], "SAME"), b))
            if i > 1:
                h = v1.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        with v1.variable_scope("logits"):
            w = v1.get_variable("kernel", [256, 10])
            b = v1.get_variable("bias", [10], initializer=v1.zeros_initializer())
            logits = v1.nn.bias_add(v1.matmul(v1.reshape(h, [-1, 256]), w), b)
        loss = v1.reduce_mean(v1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = v1.train.AdamOptimizer(0.002).minimize(loss)
        init = v1.global_variables_initializer()
        expected = _losses(v1, reference, init.name, train.name, loss.name, batches)
    assert found[0] > 1.5 and found[-1] < found[0]

    def work(running: Session) -> list[Any]:
        running.run("init")
        return [running.run(["loss:0", "train"], {"x:0": x, "y:0": y})[0] for x, y in batches]

    far = lambda: perturbation.of_work(build_spec(SAMPLES / "digits_cnn.yaml"), work)  # noqa: E731
    perturbation.assert_agree([found, expected], far)


def _losses(v1: Any, graph: Any, init: str, train: str, loss: str, batches: list[Any]) -> list[float]:
    with v1.Session(graph=graph) as session:
        session.run(init)
        return [session.run([loss, train], {"x:0": x, "y:0": y})[0] for x, y in batches]


@pytest.mark.parametrize("sharded", [False, True])
def test_saver_nodes_save_and_restore(tf: ModuleType, tmp_path: Path, sharded: bool) -> None:
    graph = gm.Graph()
    with graph.as_default():
        with gm.device("/device:CPU:0"):
            gm.get_variable("a", [3], initializer=gm.initializers.Constant(2.0))
        gm.get_variable("r", [2], initializer=gm.initializers.Ones(), use_resource=True)
        with gm.variable_scope("parts", partitioner=gm.fixed_size_partitioner(2)):
            whole = gm.get_variable("p", [5, 2], initializer=gm.initializers.Constant(np.float32(4)))
        assert [p.shape.as_list() for p in whole.parts] == [[3, 2], [2, 2]]
        gm.identity(whole.to_tensor(), name="joined")
        gm.global_variables_initializer()
        cleared = gm.group([v.assign(gm.zeros(v.shape)) for v in gm.global_variables()], name="clear")
        assert cleared.name == "clear"
        saver = gm.train.Saver(sharded=sharded, max_to_keep=3)
        meta = gm.to_meta_graph(saver_def=saver.saver_def)
    imported, restored = _import(tf, meta)
    v1 = tf.compat.v1
    with v1.Session(graph=imported) as session:
        session.run("init")
        prefix = restored.save(session, str(tmp_path / "model"))
        session.run("clear")
        assert not session.run("joined:0").any()
        restored.restore(session, prefix)
        assert session.run("a:0").tolist() == [2, 2, 2]
        assert session.run("r/Read/ReadVariableOp:0").tolist() == [1, 1]
        assert session.run("joined:0").tolist() == [[4, 4]] * 5
    reader = tf.train.load_checkpoint(prefix)
    assert reader.get_variable_to_shape_map() == {"a": [3], "r": [2], "parts/p": [5, 2]}


def test_collections_come_back(tf: ModuleType) -> None:
    """TensorFlow finds variables, their initializers, the train op and the global step in what we write."""
    imported, _ = _import(tf, build_spec(SAMPLES / "digits_cnn.yaml"))
    v1 = tf.compat.v1
    with imported.as_default():
        assert len(v1.trainable_variables()) == 8
        assert len(v1.global_variables()) == 8 + 16 + 2 + 1
        assert v1.train.get_global_step().name == "global_step:0"
        assert [op.name for op in v1.get_collection("train_op")] == ["train"]
        assert [op.name for op in v1.get_collection("init_op")] == ["init"]
        kernel = v1.trainable_variables()[0]
        assert (kernel.name, kernel.initializer.name, kernel.value().name) == (
            "conv1/kernel:0", "conv1/kernel/Assign", "conv1/kernel/read:0",
        )  # fmt: skip
        assert kernel.initial_value.name == "conv1/kernel/Initializer/random_uniform:0"


def test_initial_values_that_need_other_variables(tf: ModuleType) -> None:
    """All initializers run in one step, in any order."""
    graph = gm.Graph()
    with graph.as_default():
        a = gm.Variable(2.0, name="a")
        b = gm.Variable(a * 3.0 + 1.0, name="b")
        gm.Variable(b.to_tensor() + a, name="c")
        gm.global_variables_initializer()
        meta = gm.to_meta_graph()
    imported, _ = _import(tf, meta)
    with tf.compat.v1.Session(graph=imported) as session:
        session.run("init")
        assert session.run(["a:0", "b:0", "c:0"]) == [2.0, 7.0, 9.0]


def test_moving_averages(tf: ModuleType) -> None:
    graph = gm.Graph()
    with graph.as_default():
        v = gm.Variable(1.0, name="v")
        average = gm.train.ExponentialMovingAverage(0.9)
        apply = average.apply([v])
        v.assign_add(1.0, name="more")
        gm.global_variables_initializer()
        shadow = average.average(v)
        assert shadow is not None and shadow.op.name == "v/ExponentialMovingAverage" == average.average_name(v)
        meta = gm.to_meta_graph()
    imported, _ = _import(tf, meta)
    with tf.compat.v1.Session(graph=imported) as session:
        session.run("init")
        session.run("more")
        session.run(apply.name)
        # 1 - decay, a difference, a product and a sum are rounded, all of numbers up to 1.1
        assert session.run(shadow.name) == pytest.approx(1.1, rel=tolerance.gamma(4))


def test_queues_run(tf: ModuleType) -> None:
    graph = gm.Graph()
    with graph.as_default():
        queue = gm.input_pipelines.input_producer(gm.constant([[1.0, 2.0], [3.0, 4.0]]), num_epochs=2, shuffle=False)
        row = queue.dequeue()
        assert row.shape.as_list() == [2]
        pair = gm.input_pipelines.batch([row], 2, name="pairs")
        assert pair.shape.as_list() == [2, 2]
        gm.group([v.initializer for v in gm.local_variables()], name="local")
        meta = gm.to_meta_graph()
    imported, _ = _import(tf, meta)
    v1 = tf.compat.v1
    with v1.Session(graph=imported) as session, imported.as_default():
        session.run("local")
        coordinator = tf.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        assert len(threads) >= 2
        found = [session.run(pair.name).tolist() for _ in range(2)]
        assert found == [[[1, 2], [3, 4]]] * 2
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(pair.name)
        coordinator.request_stop()
        coordinator.join(threads)


def test_batch_normalization_by_a_flag(tf: ModuleType) -> None:
    """A boolean tensor chooses between the batch's and the kept statistics, and guards their update."""
    graph = gm.Graph()
    with graph.as_default():
        x = gm.placeholder(gm.float32, [None, 4, 4, 2], name="x")
        training = gm.placeholder_with_default(False, [], name="training")
        y = gm.layers.batch_normalization(x, training, momentum=0.5, name="bn")
        updates = gm.get_default_graph().get_collection("update_ops")
        gm.group(updates, name="update")
        gm.global_variables_initializer()
        meta = gm.to_meta_graph()
    imported, _ = _import(tf, meta)
    data = np.random.default_rng(0).normal(3.0, 2.0, (8, 4, 4, 2)).astype(np.float32)
    with tf.compat.v1.Session(graph=imported) as session:
        session.run("init")
        session.run("update", {"x:0": data})
        assert session.run("bn/moving_mean:0").tolist() == [0, 0]
        session.run("update", {"x:0": data, "training:0": True})
        exact, axes = data.astype(np.float64), (0, 1, 2)
        mean, deviation = exact.mean(axes), np.sqrt(exact.var(axes) + 1e-3)
        # sums of 128 numbers, and a few roundings more
        relative = tolerance.likely(8 * 4 * 4 + 8)
        tolerance.assert_within(session.run("bn/moving_mean:0"), mean / 2, relative * np.abs(exact).mean(axes))
        normal = session.run(y.name, {"x:0": data, "training:0": True})
        wanted = (exact - mean) / deviation
        sizes = (np.abs(exact) + np.abs(exact).mean(axes)) / deviation + np.abs(wanted)
        tolerance.assert_within(normal, wanted, relative * sizes)
        kept = session.run(y.name, {"x:0": data})
        assert kept.mean() > 0.5


def test_clipping(tf: ModuleType) -> None:
    graph = gm.Graph()
    with graph.as_default():
        a, b = gm.constant([3.0, 0.0]), gm.constant([0.0, 4.0])
        clipped, norm = gm.clip_by_global_norm([a, None, b], 1.0)
        same = gm.clip_by_norm(a, 10.0)
        limited = gm.clip_by_value(a, -1.0, 1.0)
    assert clipped[1] is None
    imported = tf.Graph()
    with imported.as_default():
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with tf.compat.v1.Session() as session:
            found = session.run([clipped[0].name, clipped[2].name, norm.name, same.name, limited.name])  # type: ignore[union-attr]
    # the norm is exact; its reciprocal and a product are rounded, as 0.6 and 0.8 are
    np.testing.assert_allclose(np.concatenate(found[:2]), [0.6, 0, 0, 0.8], rtol=tolerance.gamma(3))
    assert found[2] == 5.0 and found[3].tolist() == [3, 0] and found[4].tolist() == [1, 0]


def test_errors_of_optimizers_and_savers() -> None:
    with gm.Graph().as_default():
        x = gm.placeholder(gm.float32, [])
        with pytest.raises(GraphError, match="there are no variables to optimize"):
            gm.train.Adam().minimize(x)
        with pytest.raises(UsageError, match="there are no variables to save"):
            gm.train.Saver()
        v = gm.Variable(1.0, name="v")
        with pytest.raises(GraphError, match="the loss 'Placeholder:0' depends on none of: v:0"):
            gm.train.Adam().minimize(x)
        with pytest.raises(UsageError, match="two variables would be saved as 'v'"):
            gm.train.Saver([v, v])
        with pytest.raises(UsageError, match="initial_accumulator_value must be positive"):
            gm.train.Adagrad(0.1, initial_accumulator_value=0)
        with pytest.raises(GraphError, match="has type int32; a floating point type is needed"):
            gm.train.Adam().minimize(gm.constant(1))
        gm.train.create_global_step()
        with pytest.raises(GraphError, match="has a global step already"):
            gm.train.create_global_step()
