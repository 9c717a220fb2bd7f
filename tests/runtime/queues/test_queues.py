"""Queues in sessions: the same scripts of waiting operations in TensorFlow and here."""

from __future__ import annotations

import gc
import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.patience import HUNG
from tests.runtime.oracle import Both
from tests.runtime.queues.waiting import Action, Close, Join, Outcome, Run, Start, check_script
from toolkit.errors import CancelledError, DeadlineExceededError, OpError
from toolkit.kernels.queues.base import QueueResource
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


def waiting(session: Session) -> list[Any]:
    queues = session.resources.all_of(QueueResource)
    return [a for q in queues for a in [*q._enqueues, *q._dequeues]]  # pyright: ignore[reportPrivateUsage]


def play(both: Both, *script: Action) -> list[Outcome | None]:
    return check_script(both, script, waiting)


def batch(size: int, start: int = 0) -> dict[str, Any]:
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2) + start
    return {"x:0": x, "t:0": [b"%d" % (start + i) for i in range(size)]}


ONE = {"x:0": [1, 2], "t:0": "a"}
ENQUEUE, ENQUEUE_MANY, CLOSE, CANCEL = "enqueue", "enqueue_many", "close", "cancel"
DEQUEUE, MANY, UP_TO = (["dequeue:0", "dequeue:1"], ["many:0", "many:1"], ["up_to:0", "up_to:1"])
SIZE, CLOSED = "size:0", "closed:0"


def n(count: int) -> dict[str, Any]:
    return {"n:0": count}


@pytest.fixture(scope="module")
def fifo(tf: ModuleType) -> Both:
    def build(v1: Any) -> None:
        q = v1.FIFOQueue(3, ["float32", "string"], [[2], []], name="q")
        x = v1.placeholder("float32", None, name="x")
        t = v1.placeholder("string", None, name="t")
        count = v1.placeholder("int32", [], name="n")
        v1.identity_n(q.dequeue(), name="dequeue")
        v1.identity_n(q.dequeue_many(count), name="many")
        v1.identity_n(q.dequeue_up_to(count), name="up_to")
        q.enqueue((v1.reshape(x, [2]), v1.reshape(t, [])), name=ENQUEUE)
        q.enqueue_many((v1.reshape(x, [-1, 2]), v1.reshape(t, [-1])), name=ENQUEUE_MANY)
        q.close(name=CLOSE)
        q.close(True, name=CANCEL)
        q.size(name="size")
        q.is_closed(name="closed")

    return Both(tf, build)


def test_waiting_in_order(fifo: Both) -> None:
    play(
        fifo,
        Run(ENQUEUE_MANY, batch(2)),
        Start("a", MANY, n(3)),
        Run(SIZE),  # the waiting batch has taken both
        Start("b", ENQUEUE_MANY, batch(5)),
        Join("a"),
        Run(SIZE),
        Start("c", CLOSE),  # waits after b
        Run(CLOSED),
        Run(UP_TO, n(3)),
        Join("b"),
        Join("c"),
        Run(CLOSED),
        Run(UP_TO, n(3)),
        Run(DEQUEUE),
        Run(ENQUEUE, ONE),
        Run(MANY, n(-1)),
        Run(CLOSE),
        Run(CANCEL),
    )


@pytest.mark.parametrize("how", [CLOSE, CANCEL])
def test_a_batch_that_cannot_be_filled_goes_back(fifo: Both, how: str) -> None:
    script = [Run(ENQUEUE_MANY, batch(2)), Start("a", MANY, n(3)), Start("b", MANY, n(2)), Run(how)]
    outcomes = play(fifo, *script, Join("a"), Join("b"), Run(SIZE))
    assert outcomes[4] is not None and "(requested 1, current size 0)" in outcomes[4][1]


def test_cancelling_pending_enqueues(fifo: Both) -> None:
    script = [Run(ENQUEUE_MANY, batch(1)), Start("a", ENQUEUE_MANY, batch(6)), Start("b", ENQUEUE, ONE), Run(CANCEL)]
    play(fifo, *script, Join("a"), Join("b"), Run(UP_TO, n(9)), Run(UP_TO, n(9)))


def test_empty_batches(fifo: Both) -> None:
    empty = {"x:0": np.zeros((0, 2), np.float32), "t:0": np.zeros(0, object)}
    play(fifo, Run(ENQUEUE_MANY, empty), Run(MANY, n(0)), Run(UP_TO, n(0)), Run(SIZE), Run(CLOSE), Run(MANY, n(0)))


def test_closing_the_session_cancels(fifo: Both) -> None:
    play(
        fifo, Run(ENQUEUE_MANY, batch(2)), Start("a", MANY, n(4)), Start("b", MANY, n(5)), Close(), Join("a"), Join("b")
    )
    play(
        fifo,
        Start("a", ENQUEUE_MANY, batch(4)),
        Start("b", ENQUEUE, ONE),
        Start("c", CLOSE),
        Close(),
        Join("a"),
        Join("b"),
    )


def test_shuffling_is_tensorflows(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        p = v1.placeholder("int64", None, name="p")
        count = v1.placeholder("int32", [], name="n")
        q = v1.RandomShuffleQueue(20, 2, ["int64"], [[]], seed=3, name="q")
        q.enqueue_many([p], name="enqueue_many")
        q.dequeue_many(count, name="many")
        q.dequeue_up_to(count, name="up_to")
        q.dequeue(name="dequeue")
        q.close(name="close")
        q.size(name="size")

    def some(low: int, high: int) -> dict[str, Any]:
        return {"p:0": np.arange(low, high)}

    both = Both(tf, build)
    play(
        both,
        Run(ENQUEUE_MANY, some(0, 15)),
        Run("many:0", n(7)),
        Start("a", "many:0", n(9)),
        Run(ENQUEUE_MANY, some(20, 25)),
        Run(CLOSE),
        Join("a"),
        Run("up_to:0", n(50)),
        Run("up_to:0", n(50)),
    )
    play(
        both, Run(ENQUEUE_MANY, some(0, 3)), Run("dequeue:0"), Start("a", "dequeue:0"), Run(SIZE), Run(CLOSE), Join("a")
    )
    play(both, Run(ENQUEUE_MANY, some(0, 9)), Start("a", "many:0", n(12)), Run(CLOSE), Join("a"), Run("up_to:0", n(9)))


def test_padding(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", None, name="x")
        t = v1.placeholder("string", None, name="t")
        count = v1.placeholder("int32", [], name="n")
        q = v1.PaddingFIFOQueue(10, ["float32", "string"], [[None, 2], [None]], name="q")
        q.enqueue([x, t], name="enqueue")
        q.enqueue_many([x, t], name="enqueue_many")
        v1.identity_n(q.dequeue_many(count), name="many")
        v1.identity_n(q.dequeue_up_to(count), name="up_to")
        q.close(name="close")
        q.size(name="size")

    both = Both(tf, build)
    sizes = [(1, 2), (3, 0), (2, 1)]
    play(
        both,
        *[Run(ENQUEUE, {"x:0": np.ones((a, 2), np.float32), "t:0": [b"z"] * b}) for a, b in sizes],
        Run(ENQUEUE, {"x:0": np.ones((2, 3), np.float32), "t:0": ["a"]}),
        Run(MANY, n(2)),
        Run(ENQUEUE_MANY, {"x:0": np.ones((2, 2, 2), np.float32), "t:0": [["a"], ["b"]]}),
        Run(ENQUEUE_MANY, {"x:0": np.ones((2, 2, 2), np.float32), "t:0": [["a"]]}),
        Run(ENQUEUE_MANY, {"x:0": np.ones((2, 2, 2), np.float32), "t:0": ["a"]}),
        Run(SIZE),
        Start("a", MANY, n(5)),
        Run(CLOSE),
        Join("a"),
        Run(UP_TO, n(12)),
        Run(MANY, n(0)),
    )


def test_priorities_and_their_ties(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        p = v1.placeholder("int64", None, name="p")
        count = v1.placeholder("int32", [], name="n")
        q = v1.PriorityQueue(80, ["int64"], [[]], name="q")
        q.enqueue_many([p, v1.range(v1.cast(v1.size(p), "int64"), dtype="int64")], name="enqueue_many")
        q.enqueue([p, v1.constant(5, "int64")], name="enqueue")
        v1.identity_n(q.dequeue_many(count), name="many")
        v1.identity_n(q.dequeue(), name="dequeue")
        q.close(name="close")

    rng = np.random.default_rng(0)

    def some(size: int) -> dict[str, Any]:
        return {"p:0": rng.integers(0, 5, size)}

    first, second = some(40), some(20)
    play(
        Both(tf, build),
        Run(ENQUEUE_MANY, first),
        Run(MANY, n(13)),
        Run(ENQUEUE_MANY, second),
        *[Run(DEQUEUE)] * 3,
        Run(MANY, n(30)),
        Run(ENQUEUE, {"p:0": [1]}),
        Run(ENQUEUE, {"p:0": 1}),
        Start("a", MANY, n(44)),
        Run(CLOSE),
        Join("a"),
        *[Run(DEQUEUE)] * 16,
    )


def test_string_handles_and_shared_queues(tf: ModuleType) -> None:
    """The ops of old graphs name their queue by a pair of strings; two ops may share one queue."""

    def build(v1: Any) -> None:
        raw = tf.raw_ops
        x = v1.placeholder("int32", None, name="x")
        count = v1.placeholder("int32", [], name="n")
        first = raw.FIFOQueue(component_types=["int32"], shapes=[[]], capacity=5, shared_name="both", name="first")
        second = raw.FIFOQueue(component_types=["int32"], shapes=[[]], capacity=5, shared_name="both", name="second")
        raw.FIFOQueue(component_types=["int32"], shapes=[[]], capacity=6, shared_name="both", name="larger")
        raw.FIFOQueue(component_types=["int64"], shapes=[[]], capacity=5, shared_name="both", name="wider")
        raw.RandomShuffleQueue(component_types=["int32"], shapes=[[]], capacity=5, shared_name="both", name="shuffled")
        raw.QueueEnqueueMany(handle=first, components=[x], name="enqueue_many")
        raw.QueueEnqueue(handle=first, components=[x], name="enqueue")
        raw.QueueDequeue(handle=second, component_types=["int32"], name="dequeue")
        raw.QueueDequeueMany(handle=second, n=count, component_types=["int32"], name="many")
        raw.QueueDequeueUpTo(handle=second, n=count, component_types=["int32"], name="up_to")
        raw.QueueDequeue(handle=second, component_types=["float32"], name="other_type")
        raw.QueueSize(handle=first, name="size")
        raw.QueueClose(handle=first, name="close")

    both = Both(tf, build)
    play(
        both,
        Run("first:0"),
        Run(ENQUEUE_MANY, {"x:0": [1, 2, 3]}),
        Run("dequeue:0"),
        Run(ENQUEUE, {"x:0": 9}),
        Run("many:0", n(2)),
        Run(SIZE),
        Run(CLOSE),
        Run("up_to:0", n(4)),
        Run("dequeue:0"),
    )
    with Session(both.graph) as ours, both.v1.Session(graph=both.tf_graph) as theirs:
        ours.run("first:0")
        theirs.run("first:0")
        for name in ["larger", "wider", "shuffled", "other_type"]:
            with pytest.raises(OpError) as mine:
                ours.run(name)
            with pytest.raises(tf.errors.OpError) as reference:
                theirs.run(name)
            assert mine.value.code == reference.value.error_code, name


@pytest.mark.parametrize("op", ["FIFOQueue", "RandomShuffleQueue", "PriorityQueue", "PaddingFIFOQueue", "Barrier"])
@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("shapes", [[], [[]], [[2]], [None], [[None]], [[], []]], ids=str)
def test_shapes_that_a_queue_may_have(tf: ModuleType, op: str, version: str, shapes: list[Any]) -> None:
    """A priority queue needs them; one that is not known at all is a scalar's, but where queues pad."""
    if op == "Barrier" and version:
        return

    def build(v1: Any) -> None:
        getattr(tf.raw_ops, op + version)(component_types=["float32"], shapes=shapes, name="q")

    _same_status(tf, Both(tf, build), ["q"])


@pytest.mark.parametrize("keep", [0, 2**31 - 1])
@pytest.mark.parametrize("capacity", [-1, 2**31 - 1])
def test_what_a_shuffling_queue_keeps_is_below_its_capacity(tf: ModuleType, keep: int, capacity: int) -> None:
    def build(v1: Any) -> None:
        tf.raw_ops.RandomShuffleQueueV2(
            component_types=["float32"], shapes=[[]], capacity=capacity, min_after_dequeue=keep, name="q"
        )

    _same_status(tf, Both(tf, build), ["q"])


def test_a_queue_of_an_unknown_shape_holds_scalars(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", None, name="x")
        q = tf.raw_ops.FIFOQueueV2(component_types=["float32"], shapes=[None], capacity=5, name="q")
        tf.raw_ops.QueueEnqueueV2(handle=q, components=[x], name="enqueue")
        v1.identity(tf.raw_ops.QueueDequeueV2(handle=q, component_types=["float32"])[0], name="dequeue")

    play(Both(tf, build), Run(ENQUEUE, {"x:0": 3.0}), Run(ENQUEUE, {"x:0": [3.0]}), Run("dequeue:0"))


def _same_status(tf: Any, both: Both, names: list[str]) -> None:
    """Each of the nodes runs in both, or fails in both in the same way."""
    with Session(both.graph) as ours, both.v1.Session(graph=both.tf_graph) as theirs:
        for name in names:
            codes: list[Any] = []
            for session, errors in ((ours, OpError), (theirs, tf.errors.OpError)):
                try:
                    session.run(name if session is ours else session.graph.get_operation_by_name(name))
                    codes.append(None)
                except errors as error:
                    codes.append(error.code if session is ours else error.error_code)
            assert codes[0] == codes[1], (name, codes)


def test_components_without_shapes(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", None, name="x")
        y = v1.placeholder("float32", None, name="y")
        count = v1.placeholder("int32", [], name="n")
        q = v1.FIFOQueue(-1, ["float32", "float32"], name="q")
        q.enqueue([x, y], name="enqueue")
        q.enqueue_many([x, y], name="enqueue_many")
        v1.identity_n(q.dequeue(), name="dequeue")
        v1.identity_n(tf.raw_ops.QueueDequeueManyV2(handle=q.queue_ref, n=count, component_types=q.dtypes), name="many")
        q.size(name="size")

    play(
        Both(tf, build),
        Run(ENQUEUE, {"x:0": 1.0, "y:0": [[2.0]]}),
        Run(ENQUEUE_MANY, {"x:0": [1.0, 2], "y:0": [[2.0], [3.0]]}),
        Run(ENQUEUE_MANY, {"x:0": [1.0, 2, 3], "y:0": [[2.0], [3.0]]}),
        Run(DEQUEUE),
        Run(DEQUEUE),
        Run(MANY, n(1)),
        Run(SIZE),
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue_many"), st.integers(1, 5)),
        st.tuples(st.sampled_from(["many", "up_to"]), st.integers(1, 4)),
        st.tuples(st.just("dequeue"), st.just(0)),
        st.tuples(st.just("close"), st.just(0)),
        st.tuples(st.just("size"), st.just(0)),
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps)
def test_interleavings_are_tensorflows(fifo: Both, chosen: list[tuple[str, int]]) -> None:
    """Any order of operations, waiting or not, closed in between or not, ends the same way."""
    script: list[Action] = []
    names: list[str] = []
    for position, (what, count) in enumerate(chosen):
        if what == "size":
            script.append(Run(SIZE))
            continue
        names.append(f"{position} {what}")
        fetch = {"many": MANY, "up_to": UP_TO, "dequeue": DEQUEUE}.get(what, what)
        feeds = batch(count, 10 * position) if what == "enqueue_many" else n(count) if what in ("many", "up_to") else {}
        script.append(Start(names[-1], fetch, feeds))
    play(fifo, *script, Run(CANCEL), *map(Join, names), Run(SIZE))


def test_a_step_that_times_out_gives_its_elements_back(fifo: Both) -> None:
    """TensorFlow loses what a cancelled batch had taken; here the elements return to the front."""
    with Session(fifo.graph) as session:
        session.run(ENQUEUE_MANY, batch(2))
        with pytest.raises(DeadlineExceededError):
            session.run(MANY, n(3), timeout_ms=50)
        assert session.run(SIZE) == 2
        assert session.run(DEQUEUE)[1] == b"0"
        session.run(ENQUEUE_MANY, batch(2))
        with pytest.raises(DeadlineExceededError):
            session.run(ENQUEUE, ONE, timeout_ms=50)
        assert session.run(SIZE) == 3


def test_elements_are_the_queues_own(tf: ModuleType) -> None:
    """A fed array that the caller changes, and a variable that is updated in place, leave elements alone."""

    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [2], name="x")
        variable = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
        q = v1.FIFOQueue(9, ["float32"], [[2]], name="q")
        q.enqueue([x], name="enqueue")
        q.enqueue([variable], name="enqueue_variable")
        v1.assign_add(variable, [5.0, 5.0], name="bump")
        q.dequeue(name="dequeue")
        v1.global_variables_initializer()

    with Session(Both(tf, build).graph) as session:
        fed = np.array([1, 2], np.float32)
        session.run("enqueue", {"x:0": fed})
        fed[:] = 7
        session.run("init")
        session.run("enqueue_variable")
        session.run("bump")
        for _ in range(2):
            np.testing.assert_array_equal(session.run("dequeue:0"), [1, 2])


def test_producers_and_consumers(fifo: Both) -> None:
    """Many threads against each other: nothing is lost, nothing comes twice, and a full queue holds producers back."""
    session = Session(fifo.graph)
    put, got = 4 * 60, list[bytes]()
    lock = threading.Lock()
    largest = 0

    def produce(worker: int) -> None:
        for i in range(20):
            session.run(ENQUEUE_MANY, batch(3, 1000 * worker + 10 * i))

    def consume() -> None:
        nonlocal largest
        while True:
            try:
                values = session.run(["up_to:1", SIZE], n(2))
            except OpError as error:
                assert error.status == "OUT_OF_RANGE"
                return
            with lock:
                got.extend(values[0].tolist())
                largest = max(largest, int(values[1]))

    producers = [threading.Thread(target=produce, args=(i,)) for i in range(4)]
    consumers = [threading.Thread(target=consume) for _ in range(3)]
    for thread in [*producers, *consumers]:
        thread.start()
    for thread in producers:
        thread.join(HUNG)
    session.run(CLOSE)
    for thread in consumers:
        thread.join(HUNG)
    assert len(got) == put and len(set(got)) == put
    assert largest <= 3
    assert not waiting(session)


def test_finished_operations_leave_nothing_behind(fifo: Both) -> None:
    session = Session(fifo.graph)
    session.run(ENQUEUE, ONE)
    session.run(DEQUEUE)

    def objects() -> int:
        gc.collect()
        return len(gc.get_objects())

    before = objects()
    for _ in range(200):
        session.run(ENQUEUE, ONE)
        session.run(DEQUEUE)
    assert objects() - before < 100


class Cancellations:
    """A cancellation that the test pulls."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.callbacks: dict[int, Any] = {}
        self.count = 0

    def register(self, callback: Any) -> int:
        if self.is_cancelled:
            return -1
        self.count += 1
        self.callbacks[self.count] = callback
        return self.count

    def deregister(self, token: int) -> None:
        self.callbacks.pop(token, None)

    def cancel(self) -> None:
        self.is_cancelled = True
        for callback in list(self.callbacks.values()):
            callback()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["put", "many", "up_to"]), st.integers(1, 4)),
            st.tuples(st.sampled_from(["take", "close", "kill"]), st.just(0)),
            st.tuples(st.just("cancel"), st.integers(0, 6)),
        ),
        max_size=25,
    )
)
def test_nothing_is_lost_or_doubled(chosen: list[tuple[str, int]]) -> None:
    """Whatever is closed or cancelled: what went in came out in order, is still inside, or was refused."""
    from toolkit.graph import dtypes
    from toolkit.graph.shape import SCALAR

    queue = QueueResource("q", [dtypes.int32], [SCALAR], 3)
    operations: list[tuple[str, list[int], Cancellations, list[Any]]] = []
    serial = 0
    for what, count in chosen:
        if what == "cancel":
            if count < len(operations):
                operations[count][2].cancel()
            continue
        cancellations, result, values = Cancellations(), list[Any](), list[int]()
        if what == "put":
            values = list(range(serial, serial + count))
            serial += count
            queue.enqueue_many([np.array(values, np.int32)], cancellations, result.append)
        elif what == "take":
            queue.dequeue(cancellations, result.append)
        elif what in ("close", "kill"):
            queue.close(what == "kill", result.append)
        else:
            queue.dequeue_many(count, what == "up_to", cancellations, result.append)
        operations.append((what, values, cancellations, result))
    for _, _, cancellations, _ in operations:
        cancellations.cancel()
    queue.close(True, lambda _: None)
    inside: list[Any] = []
    while queue.size():
        queue.dequeue(Cancellations(), lambda element: inside.append(int(element[0])))
    out: list[int] = []
    for what, _, cancellations, result in operations:
        assert len(result) == 1, f"{what} called back {len(result)} times"
        assert not cancellations.callbacks or cancellations.is_cancelled
        if what in ("take", "many", "up_to") and not isinstance(result[0], Exception):
            out += np.atleast_1d(result[0][0]).tolist()
    assert len(set(out) | set(inside)) == len(out) + len(inside)
    assert inside == sorted(inside)
    for what, values, _, result in operations:
        if what == "put" and not isinstance(result[0], Exception):
            assert set(values) <= set(out) | set(inside)
        elif what == "put":
            assert isinstance(result[0], CancelledError)
