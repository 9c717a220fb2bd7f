"""Loops and branches that tensors decide, as conditional nodes of a step's CUDA graph, on the fake driver."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.runtime.gpu.decided_graphs import FED, GRAPHS, X, halving, large
from toolkit import Session
from toolkit import client as gm
from toolkit.client.flow import functional_flow
from toolkit.client.flow.tensor_list_array import TensorListArray
from toolkit.compiler.backends.cuda.conditionals import array_kernels as conditional_arrays
from toolkit.compiler.backends.cuda.conditionals import growing as conditional_growing
from toolkit.compiler.backends.cuda.conditionals import lists as conditional_lists
from toolkit.errors import GraphmillError, InvalidArgumentError
from toolkit.kernels.cuda import draws
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.base import CONDITIONS_FROM
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.kernels.cuda.driver.fake_schedule import FakeGraph, FakeStream
from toolkit.kernels.cuda.simt import ptx

CPU, GPU = "/device:CPU:0", "/device:GPU:0"


class Steps:
    """Steps of a graph on a fake GPU, and beside them on the CPU.

    Attributes:
        replays: how many CUDA graphs were launched.
    """

    def __init__(self, make: Callable[[Any], Any], *, seed: int = 0, version: int = CONDITIONS_FROM):
        self.driver = FakeDriver(seed=seed, version=version)
        self.replays = 0
        context = self.driver.open(0)
        replay = context.replay

        def counted(graph: FakeGraph, stream: FakeStream) -> None:
            self.replays += 1
            replay(graph, stream)

        context.replay = counted
        self._steps = {there: self._made(make, there) for there in (CPU, GPU)}
        self.session = self._steps[GPU][0]

    def _made(self, make: Callable[[Any], Any], there: str) -> tuple[Session, Any, Any]:
        with gm.Graph().as_default() as graph, graph.device(there), choose.using(self.driver):
            x = gm.placeholder(gm.float32, [4, 3])
            fetched = make(x)
            session = Session(graph, devices={"CPU": 1, "GPU": 1})
            if gm.global_variables():
                session.run(gm.global_variables_initializer())
            return session, x, fetched

    def run(self, there: str, x: Any) -> list[Any]:
        """What a step gives."""
        session, placeholder, fetched = self._steps[there]
        with choose.using(self.driver):
            found = session.run(fetched, {placeholder: x})
        return found if isinstance(found, list) else [found]

    def compare(self, x: Any) -> None:
        """A step there, beside the CPU's."""
        for found, wanted in zip(self.run(GPU, x), self.run(CPU, x), strict=True):
            assert found.dtype == wanted.dtype
            # a dozen roundings of numbers around 1
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

    def refuse_larger(self, told: str) -> None:
        """What is fine for one iteration is an error of a replay's that has more, which the CPU tells likewise; the
        next replay is fine again."""
        once = X * np.float32(np.sqrt(0.6 / np.square(X).sum()))
        for _ in range(3):
            self.compare(once)
        assert self.replays == 2, self.notes
        for there in (GPU, CPU):
            with pytest.raises(InvalidArgumentError, match=told):
                self.run(there, X * 3)
        self.compare(once)
        assert self.replays == 4

    @property
    def notes(self) -> list[str]:
        return [note for note in self.session.notes() if "launch by launch" in note or "host decides" in note]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_is_one_launch_that_gives_the_cpus_numbers(name: str, seed: int) -> None:
    steps = Steps(GRAPHS[name], seed=seed)
    for x in FED:
        steps.compare(x)
    assert steps.notes == [] and steps.replays == len(FED) - 1, "all steps but the first are replays"


def test_an_older_driver_lets_the_host_decide() -> None:
    steps = Steps(halving, version=12020)
    for x in FED:
        steps.compare(x)
    told = "NVIDIA's driver is for CUDA 12.2; graphs have conditional nodes from 12.4 on"
    assert not steps.replays and any(told in note for note in steps.notes)


# -- variables -------------------------------------------------------------------------------------------------------


def trained_in_a_loop(x: Any) -> Any:
    """A variable learns until the loss is small, in one step."""
    w = gm.Variable(np.full((3, 2), 0.5, np.float32), use_resource=True)

    def loss() -> Any:
        return gm.reduce_mean(gm.square(gm.matmul(x, w.value()) - 0.25))

    def body(before: Any, n: Any) -> Any:
        update = gm.train.GradientDescent(0.5).minimize(loss())
        with gm.get_default_graph().control_dependencies([update]):
            return [loss(), n + 1]

    last, n = gm.while_loop(lambda before, n: gm.ops.logical_and(before > 0.02, n < 6), body, [loss(), gm.constant(0)])
    with gm.get_default_graph().control_dependencies([n]):
        return [last, n, w.read_value()]


def assigned_on_a_branch(x: Any) -> Any:
    """The variable keeps what one branch gave it."""
    w = gm.Variable(np.zeros((4, 3), np.float32), use_resource=True)

    def add() -> Any:
        with gm.get_default_graph().control_dependencies([w.assign_add(x)]):
            return gm.identity(x)

    y = gm.cond(gm.reduce_sum(x) > 1.0, add, lambda: x * 2.0)
    with gm.get_default_graph().control_dependencies([y]):
        return [y, w.read_value()]


@pytest.mark.parametrize("make", [trained_in_a_loop, assigned_on_a_branch], ids=lambda make: make.__name__)
def test_variables_change_in_place(make: Callable[[Any], Any]) -> None:
    steps = Steps(make)
    for x in [np.abs(X), *FED]:  # the first one changes the variable, which then has an array of its own
        steps.compare(x)
    assert steps.notes == [] and steps.replays == len(FED)


# -- what stays the host's ---------------------------------------------------------------------------------------------


def growing(x: Any) -> Any:
    """A state that has more rows each time."""
    y = gm.while_loop(
        lambda y: gm.reduce_sum(gm.square(y)) < 20.0,
        lambda y: [gm.concat([y, y * 1.1], 0)],
        [x],
        shape_invariants=[[None, 3]],
    )
    return y


@pytest.mark.parametrize("make", [growing], ids=lambda make: make.__name__)
def test_what_the_host_must_do_it_does(make: Callable[[Any], Any]) -> None:
    steps = Steps(make)
    for x in (X, X * 1.5, X * 2):
        steps.compare(x)
    assert steps.session.notes() and not steps.replays


def test_what_fails_in_a_body_is_told_and_the_next_step_goes_on() -> None:
    """Not the recording fails, but a replay of it."""
    steps = Steps(halving)
    for x in (X, X):
        steps.compare(x)
    context = steps.driver.open(0)
    context.faults.arm("cuGraphLaunch", "CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(GraphmillError, match="cuGraphLaunch"):
        steps.run(GPU, X)
    steps.compare(X * 2)


@pytest.mark.parametrize("call", ["cuGraphConditionalHandleCreate", "cuGraphAddNode", "cuStreamEndCapture"])
def test_a_node_that_the_driver_refuses_leaves_the_step_to_the_host(call: str) -> None:
    steps = Steps(halving)
    steps.compare(X)
    steps.driver.open(0).faults.arm(call, "CUDA_ERROR_NOT_SUPPORTED")
    for x in FED:
        steps.compare(x)
    assert any(call in note for note in steps.notes) and not steps.replays


def _beyond(x: Any) -> Any:
    """A list of three elements, for more iterations of that."""
    rows = TensorListArray(gm.float32, size=3, element_shape=[4, 3])
    _, y, rows = functional_flow.while_loop(
        lambda i, y, rows: large(y), lambda i, y, rows: [i + 1, y * 0.75, rows.write(i, y)], [gm.constant(0), x, rows]
    )
    return [y, rows.stack()]


def test_an_index_out_of_range_is_an_error_of_the_replay() -> None:
    steps = Steps(_beyond)
    for _ in range(2):
        steps.compare(X * 0.3)
        steps.compare(X * 0.01)
    replayed = steps.replays
    assert replayed == 3, steps.notes
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="out of range in a list with 3 elements"):
            steps.run(GPU, X * 3)
        with pytest.raises(InvalidArgumentError, match="list with 3 elements"):
            steps.run(CPU, X * 3)
        steps.compare(X * 0.3)  # what was wrong is so no more
    assert steps.replays == replayed + 4


def _read_twice(x: Any) -> Any:
    """An element of an array that is let go of when it is read, for more than one iteration."""
    given = gm.TensorArray(gm.float32, size=4).unstack(x)
    return gm.while_loop(lambda y: large(y), lambda y: [y * 0.75 + 0.0 * given.read(2)], [x])


def _written_twice(x: Any) -> Any:
    rows = gm.TensorArray(gm.float32, size=4)
    _, rows = gm.while_loop(
        lambda y, rows: large(y), lambda y, rows: [y * 0.75, rows.write(1, y)], [x, rows]
    )  # fmt: skip
    return rows.read(1)


def _overfull(x: Any) -> Any:
    shape = gm.constant([4, 3])
    history = gm.ops.empty_tensor_list(shape, gm.constant(1), element_dtype=gm.float32)
    y, held = functional_flow.while_loop(
        lambda y, held: large(y), lambda y, held: [y * 0.75, gm.ops.tensor_list_push_back(held, y)], [x, history]
    )
    return [y, gm.ops.tensor_list_pop_back(held, shape, element_dtype=gm.float32)[1]]


@pytest.mark.parametrize(
    ("make", "told"),
    [(_read_twice, "twice because it was cleared"), (_written_twice, "already been written"), (_overfull, "full list")],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_an_array_refuses_is_an_error_of_the_replay(make: Callable[[Any], Any], told: str) -> None:
    """One iteration is fine, several are not."""
    Steps(make).refuse_larger(told)


def test_lists_that_do_not_say_what_they_hold_are_the_hosts() -> None:
    """What is not set would be an error if it were asked for, and nobody knows what is set."""

    def make(x: Any) -> Any:
        rows = TensorListArray(gm.float32, size=12)
        _, y, rows = functional_flow.while_loop(
            lambda i, y, rows: large(y),
            lambda i, y, rows: [i + 1, y * 0.75, rows.write(i, y)],
            [gm.constant(0), x, rows],
        )
        return [y, rows.read(0)]

    steps = Steps(make)
    for _ in range(3):
        steps.compare(X)
    assert not steps.replays and "takes a list of float32" in steps.notes[0]


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("is_set", [False, True])
def test_kernels_of_lists_are_assembled(is_set: bool, capability: tuple[int, int]) -> None:
    for type in ("i8", "i16", "i32", "i64"):
        kernel = conditional_lists.row_kernel(type, is_set=is_set)
        assert assembled(ptx.write(kernel, capability), capability).spills == 0


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
def test_kernels_of_arrays_and_draws_are_assembled(capability: tuple[int, int]) -> None:
    kernels = [make(op) for op in (conditional_arrays.READ, conditional_arrays.WRITE)
               for make in (conditional_arrays.entry_kernel, conditional_arrays.whole_kernel)]  # fmt: skip
    kernels += [conditional_growing.count_kernel(is_pushed=each) for each in (True, False)]
    for kernel in (*kernels, draws.moving_kernel()):
        assert assembled(ptx.write(kernel, capability), capability).spills == 0
