"""Barriers, staging areas and accumulators: the same scripts in TensorFlow and here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.oracle import Both
from tests.runtime.queues.waiting import Action, Close, Join, Outcome, Run, Start, check_script
from toolkit.errors import InvalidArgumentError, OpError
from toolkit.kernels.queues.accumulators import Accumulator
from toolkit.kernels.queues.barrier import Barrier
from toolkit.kernels.queues.staging import StagingArea, StagingMap
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


def waiting(session: Session) -> list[Any]:
    kinds = (Accumulator, Barrier, StagingArea, StagingMap)
    return [waiter for kind in kinds for found in session.resources.all_of(kind) for waiter in found.waiting()]


def play(both: Both, *script: Action) -> list[Outcome | None]:
    return check_script(both, script, waiting)


# -- barriers --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def barrier(tf: ModuleType) -> Both:
    def build(v1: Any) -> None:
        raw = tf.raw_ops
        keys = v1.placeholder("string", None, name="k")
        x = v1.placeholder("float32", None, name="x")
        y = v1.placeholder("int32", None, name="y")
        count = v1.placeholder("int32", [], name="n")
        b = raw.Barrier(component_types=["float32", "int32"], shapes=[[2], []], name="barrier")
        raw.BarrierInsertMany(handle=b, keys=keys, values=x, component_index=0, name="insert_x")
        raw.BarrierInsertMany(handle=b, keys=keys, values=y, component_index=1, name="insert_y")
        raw.BarrierInsertMany(handle=b, keys=keys, values=y, component_index=2, name="insert_z")
        raw.BarrierInsertMany(handle=b, keys=keys, values=y, component_index=0, name="insert_wrong")
        for name, small in (("take", False), ("take_small", True)):
            out = raw.BarrierTakeMany(
                handle=b, num_elements=count, component_types=["float32", "int32"], allow_small_batch=small
            )
            v1.identity_n([out[0], out[1], *out[2]], name=name)
        raw.BarrierClose(handle=b, name="close")
        raw.BarrierClose(handle=b, cancel_pending_enqueues=True, name="cancel")
        raw.BarrierReadySize(handle=b, name="ready")
        raw.BarrierIncompleteSize(handle=b, name="incomplete")

    return Both(tf, build)


TAKE, TAKE_SMALL = ([f"{name}:{i}" for i in range(4)] for name in ("take", "take_small"))
SIZES = ["ready:0", "incomplete:0"]


def insert(what: str, keys: str, first: int = 0) -> Run:
    size = len(keys)
    x = np.arange(first, first + 2 * size).reshape(size, 2)
    values = {"x:0": x.astype(np.float32)} if what == "insert_x" else {"y:0": np.arange(first, first + size)}
    return Run(what, {"k:0": list(keys), **values})


def n(count: int) -> dict[str, Any]:
    return {"n:0": count}


def test_barrier_completes_tuples(barrier: Both) -> None:
    play(
        barrier,
        insert("insert_x", "abc"),
        Run(SIZES),
        insert("insert_y", "dcb"),
        Run(SIZES),
        insert("insert_x", "a"),  # has it already
        Start("a", TAKE, n(4)),
        insert("insert_y", "a", 10),
        insert("insert_x", "d", 10),
        Join("a"),
        Run(SIZES),
        Run(TAKE, n(0)),
    )


def test_barrier_order_and_small_batches(barrier: Both) -> None:
    play(
        barrier,
        insert("insert_x", "ab"),
        insert("insert_x", "cd"),
        insert("insert_y", "d"),
        insert("insert_y", "ca"),
        Run("close"),
        Run("close"),
        insert("insert_x", "z"),
        insert("insert_x", ""),
        Run(TAKE, n(5)),
        Run(TAKE_SMALL, n(2)),
        Run(TAKE_SMALL, n(2)),
        Run(TAKE_SMALL, n(2)),
        Start("a", TAKE, n(1)),
        insert("insert_y", "b"),
        Join("a"),
        Run(TAKE, n(1)),
        Run(SIZES),
    )


def test_barrier_cancelled(barrier: Both) -> None:
    play(barrier, insert("insert_x", "ab"), insert("insert_y", "a"), Run("cancel"), insert("insert_y", "b"), Run(SIZES))
    play(barrier, insert("insert_x", "ab"), Run("close"), Run("cancel"), Run("cancel"), Run(TAKE, n(1)))
    play(barrier, Start("a", TAKE, n(1)), Run("close"), Join("a"))
    play(barrier, Start("a", TAKE, n(1)), Close(), Join("a"))


@pytest.mark.parametrize(
    ("fetch", "feeds"),
    [
        ("insert_z", {"k:0": ["a"], "y:0": [1]}),
        ("insert_wrong", {"k:0": ["a"], "y:0": [1]}),
    ],
)
def test_barrier_errors(tf: ModuleType, barrier: Both, fetch: str, feeds: dict[str, Any]) -> None:
    check_status(tf, barrier, fetch, feeds)


@pytest.mark.parametrize(
    ("fetch", "feeds"),
    [
        ("insert_y", {"k:0": "a", "y:0": [1]}),
        ("insert_y", {"k:0": ["a"], "y:0": [1, 2]}),
        ("insert_x", {"k:0": ["a"], "x:0": [[1.0]]}),
        ("take:0", {"n:0": -1}),
    ],
)
def test_barrier_refuses_at_once(barrier: Both, fetch: str, feeds: dict[str, Any]) -> None:
    """TensorFlow lets these pass, and fails, or waits for ever, when the tuple leaves."""
    with Session(barrier.graph) as session, pytest.raises(InvalidArgumentError):
        session.run(fetch, feeds)


def check_status(tf: ModuleType, both: Both, fetch: str, feeds: dict[str, Any]) -> None:
    """Both fail, with the same status."""
    with Session(both.graph) as ours, pytest.raises(OpError) as mine:
        ours.run(fetch, feeds)
    with both.v1.Session(graph=both.tf_graph) as theirs, pytest.raises(tf.errors.OpError) as reference:
        theirs.run(fetch, feeds)
    assert mine.value.code == reference.value.error_code, f"{mine.value}; TensorFlow: {reference.value.message}"


# -- staging ---------------------------------------------------------------------------------------------


def test_staging_area(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        raw = tf.raw_ops
        x = v1.placeholder("float32", None, name="x")
        index = v1.placeholder("int32", [], name="n")
        area: dict[str, Any] = {"dtypes": ["float32", "float32"], "shared_name": "area", "capacity": 2}
        raw.Stage(values=[x, x * 2], shared_name="area", capacity=2, name="stage")
        v1.identity_n(raw.Unstage(**area), name="get")
        v1.identity_n(raw.StagePeek(index=index, **area), name="peek")
        raw.StageSize(**area, name="size")
        raw.StageClear(**area, name="clear")

    both = Both(tf, build)
    unstage, peek = ["get:0", "get:1"], ["peek:0", "peek:1"]
    play(
        both,
        Start("early", unstage),
        Run("stage", {"x:0": [1.0]}),
        Join("early"),
        Run("stage", {"x:0": 2.0}),
        Start("peek", peek, n(1)),
        Run("stage", {"x:0": [[3.0]]}),
        Join("peek"),
        Start("full", "stage", {"x:0": 4.0}),
        Run(unstage),
        Join("full"),
        Run("size:0"),
        Start("full", "stage", {"x:0": 5.0}),
        Run("clear"),
        Join("full"),
        Run(unstage),
        Run("size:0"),
    )


def test_staging_area_memory_limit(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        raw = tf.raw_ops
        x = v1.placeholder("float32", None, name="x")
        raw.Stage(values=[x], shared_name="area", memory_limit=20, name="stage")
        raw.Unstage(dtypes=["float32"], shared_name="area", memory_limit=20, name="unstage")

    play(
        Both(tf, build),
        Run("stage", {"x:0": np.zeros(3)}),
        Run("stage", {"x:0": np.zeros(6)}),
        Start("a", "stage", {"x:0": np.ones(4)}),
        Run("unstage:0"),
        Join("a"),
        Run("unstage:0"),
    )


@pytest.mark.parametrize("prefix", ["", "Ordered"])
def test_staging_map(tf: ModuleType, prefix: str) -> None:
    def build(v1: Any) -> None:
        raw = tf.raw_ops
        x = v1.placeholder("float32", None, name="x")
        key = v1.placeholder("int64", [], name="k")
        area: dict[str, Any] = {"dtypes": ["float32", "int32"], "shared_name": "area", "capacity": 2}
        make = getattr(raw, prefix + "MapStage")
        make(key=key, indices=[0, 1], values=[x, v1.cast(x, "int32")], name="both", **area)
        make(key=key, indices=[0], values=[x], name="first", **area)
        make(key=key, indices=[1], values=[v1.cast(x, "int32")], name="second", **area)
        make(key=key, indices=[5], values=[x], name="outside", **area)
        make(key=key, indices=[1, 0], values=[v1.cast(x, "int32"), x], name="disordered", **area)
        v1.identity_n(getattr(raw, prefix + "MapUnstage")(key=key, indices=[0, 1], **area), name="unstage")
        getattr(raw, prefix + "MapUnstage")(
            key=key, indices=[0], dtypes=["float32", "int32"], shared_name="area", capacity=2, name="unusable"
        )
        v1.identity_n(getattr(raw, prefix + "MapPeek")(key=key, indices=[0, 1], **area), name="peek")
        any_key = getattr(raw, prefix + "MapUnstageNoKey")(indices=[0, 1], **area)
        v1.identity_n([any_key.key, *any_key.values], name="any")
        getattr(raw, prefix + "MapSize")(name="size", **area)
        getattr(raw, prefix + "MapIncompleteSize")(name="incomplete", **area)
        getattr(raw, prefix + "MapClear")(name="clear", **area)

    both = Both(tf, build)
    sizes = ["size:0", "incomplete:0"]
    unstage, peek, any_key = ["unstage:0", "unstage:1"], ["peek:0", "peek:1"], ["any:0", "any:1", "any:2"]

    def kx(key: int, x: float) -> dict[str, Any]:
        return {"k:0": key, "x:0": x}

    play(
        both,
        Run("both", kx(7, 1.5)),
        Run("first", kx(3, 2.5)),
        Run(sizes),
        Run("first", kx(3, 2.5)),
        Run("outside", kx(3, 2.5)),
        Run("disordered", kx(3, 2.5)),
        Start("wait", unstage, {"k:0": 3}),
        Run(peek, {"k:0": 7}),
        Run("second", kx(3, 9.0)),
        Join("wait"),
        Run(any_key),
        Start("any", any_key),
        Run("both", kx(1, 4.0)),
        Join("any"),
        Run("both", kx(1, 4.0)),
        Run("clear"),
        Run(sizes),
    )
    if prefix:
        play(both, Run("both", kx(9, 1.0)), Run("both", kx(4, 2.0)), Run(any_key), Run(any_key))


# -- accumulators ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
@pytest.mark.parametrize("resource", [False, True])
def test_dense_accumulator(tf: ModuleType, reduction: str, resource: bool) -> None:
    def build(v1: Any) -> None:
        prefix = "Resource" if resource else ""

        def raw(name: str) -> Any:
            return getattr(tf.raw_ops, prefix + name)

        x = v1.placeholder("float32", None, name="x")
        step = v1.placeholder("int64", [], name="s")
        count = v1.placeholder("int32", [], name="n")
        a = raw("ConditionalAccumulator")(dtype="float32", shape=[None, 2], reduction_type=reduction, name="a")
        raw("AccumulatorApplyGradient")(handle=a, local_step=step, gradient=x, name="apply")
        raw("AccumulatorTakeGradient")(handle=a, num_required=count, dtype="float32", name="take")
        raw("AccumulatorNumAccumulated")(handle=a, name="size")
        raw("AccumulatorSetGlobalStep")(handle=a, new_global_step=step, name="set")

    both = Both(tf, build)

    def gradient(step: int, value: float, rows: int = 1) -> dict[str, Any]:
        return {"s:0": step, "x:0": np.full((rows, 2), value, np.float32)}

    play(
        both,
        Run("apply", gradient(0, 1)),
        Start("a", "take:0", n(3)),
        Run("apply", gradient(0, 2.5)),
        Run("size:0"),
        Run("apply", gradient(0, 4)),
        Join("a"),
        Run("apply", gradient(0, 4)),  # stale: the step is 1 now
        Run("size:0"),
        Run("apply", gradient(1, 4)),
        Run("apply", gradient(1, 4, 2)),
        Run("set", {"s:0": 5}),
        Run("apply", gradient(4, 4)),
        Run("apply", gradient(5, 4)),
        Run("size:0"),
        Run("take:0", n(1)),
        Run("take:0", n(0)),
        Start("b", "take:0", n(2)),
        Start("c", "take:0", n(1)),
        Run("apply", gradient(9, 4)),
        Run("size:0"),
        Run("apply", gradient(9, 4)),
        Join("b"),
        Run("apply", gradient(9, 1)),
        Join("c"),
    )
    play(both, Start("a", "take:0", n(1)), Close(), Join("a"))
    check_status(tf, both, "apply", {"s:0": 1, "x:0": [1.0]})


@pytest.mark.parametrize("reduction", ["MEAN", "SUM"])
@pytest.mark.parametrize("shape", [None, [6, 2]])
def test_sparse_accumulator(tf: ModuleType, reduction: str, shape: Any) -> None:
    def build(v1: Any) -> None:
        raw = tf.raw_ops
        x = v1.placeholder("float32", None, name="x")
        indices = v1.placeholder("int64", None, name="i")
        dims = v1.placeholder("int64", None, name="d")
        step = v1.placeholder("int64", [], name="s")
        count = v1.placeholder("int32", [], name="n")
        a = raw.SparseConditionalAccumulator(dtype="float32", shape=shape, reduction_type=reduction, name="a")
        raw.SparseAccumulatorApplyGradient(
            handle=a,
            local_step=step,
            gradient_indices=indices,
            gradient_values=x,
            gradient_shape=dims,
            has_known_shape=True,
            name="apply",
        )
        v1.identity_n(raw.SparseAccumulatorTakeGradient(handle=a, num_required=count, dtype="float32"), name="take")

    both = Both(tf, build)

    def gradient(step: int, indices: list[int], value: float, dims: Any = (6, 2), width: int = 2) -> dict[str, Any]:
        values = value + np.arange(len(indices) * width, dtype=np.float32).reshape(-1, width)
        return {"s:0": step, "i:0": indices, "x:0": values, "d:0": list(dims)}

    take = ["take:0", "take:1", "take:2"]
    play(
        both,
        Run("apply", gradient(0, [1, 4], 1)),
        Start("a", take, n(3)),
        Run("apply", gradient(0, [0, 4, 5], 10)),
        Run("apply", gradient(0, [4], 0.5)),
        Join("a"),
        Run("apply", gradient(0, [4], 0.5)),
        Run("apply", gradient(1, [2], 0.5)),
        Run(take, n(1)),
    )
    bad = [gradient(0, [1], 1), gradient(0, [1], 1), gradient(0, [1], 1, (6, 3), 3), gradient(0, [1], 1, (7, 2))]
    bad[0]["x:0"] = [1.0]
    bad[1]["i:0"] = [1, 2]
    for feeds in bad if shape else ():  # without a shape TensorFlow checks nothing
        check_status(tf, both, "apply", feeds)
