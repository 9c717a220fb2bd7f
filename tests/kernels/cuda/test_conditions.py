"""Conditional nodes of CUDA graphs: what the fake driver makes of them, what NVIDIA's is asked, what ptxas takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.cuda.bindings import Bindings
from toolkit.compiler.backends.cuda.conditionals.nodes import condition_kernel
from toolkit.kernels.cuda.driver import real
from toolkit.kernels.cuda.driver.base import DriverError, GpuSpan
from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver
from toolkit.kernels.cuda.simt import machine
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.cuda.simt.memory import KernelFaultError
from toolkit.kernels.cuda.simt.ptx import write

SEEDS = range(12)


def countdown() -> SimtKernel:
    """Takes one from the number at a place, adds a number to a sum, and sets a condition to whether any is left."""
    k = KernelBuilder("countdown", block=32)
    x, handle, at, by = (
        k.buffer("x", "i32", written=True),
        k.scalar("h", "i64"),
        k.scalar("at", "i32"),
        k.scalar("by", "i32"),
    )
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        left = k.sub(k.load(x, at), k.number(1, "i32"))
        k.store(x, at, left)
        total = k.number(3, "i32")
        k.store(x, total, k.add(k.load(x, total), by))
        k.set_condition(handle, k.convert(k.compare("sgt", left, k.number(0, "i32")), "i32"))
    return k.finish()


class Made:
    """Four numbers on a fake GPU, and a graph with conditional nodes that changes them."""

    def __init__(self, seed: int):
        self.context = context = FakeDriver(seed=seed).open(0)
        self.span = GpuSpan(context.allocate(16), 16)
        self.main, self.inner, self.innermost = (context.stream() for _ in range(3))

    def count(self, stream: Any, condition: int, at: int, by: int) -> None:
        """A launch of `countdown`."""
        context = self.context
        context.launch(context.function(countdown()), 1, [self.span, condition, at, by], stream)

    def run(self, graph: Any, numbers: list[int]) -> list[int]:
        """The numbers behind a replay."""
        context, host = self.context, np.empty(16, np.uint8)
        context.copy_in_bytes(self.span.address, np.array(numbers, np.int32).view(np.uint8), self.main)
        context.replay(graph, self.main)
        context.copy_out(host, self.span.address, self.main)
        context.synchronize()
        return host.view(np.int32).tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_body_is_done_as_long_as_its_condition_holds(seed: int) -> None:
    made = Made(seed)
    context = made.context
    context.begin_capture(made.main)
    condition = context.condition(made.main)
    made.count(made.main, condition, 0, 1)
    context.begin_body(made.main, condition, made.inner, repeats=True)
    made.count(made.inner, condition, 0, 10)
    context.end_body(made.inner)
    graph = context.end_capture(made.main)
    assert [made.run(graph, [n, 0, 0, 0])[3] for n in (1, 2, 5, 0)] == [1, 11, 41, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_bodies_within_bodies(seed: int) -> None:
    """The outer loop as often as the first number says; in it a branch that is taken where the second one is above 1,
    and in that a loop over the third."""
    made = Made(seed)
    context = made.context
    context.begin_capture(made.main)
    outer = context.condition(made.main)
    made.count(made.main, outer, 0, 0)
    context.begin_body(made.main, outer, made.inner, repeats=True)
    branch = context.condition(made.inner)
    made.count(made.inner, branch, 1, 1)
    context.begin_body(made.inner, branch, made.innermost, repeats=False)
    made.count(made.innermost, branch, 2, 100)  # a condition is not looked at again in the body of a branch
    context.end_body(made.innermost)
    made.count(made.inner, outer, 0, 10)
    context.end_body(made.inner)
    graph = context.end_capture(made.main)
    assert made.run(graph, [4, 3, 9, 0]) == [0, 0, 7, 233]
    assert made.run(graph, [1, 3, 9, 0]) == [0, 3, 9, 0]


def test_what_no_kernel_has_set_is_anything() -> None:
    def taken(seed: int) -> int:
        made = Made(seed)
        context = made.context
        context.begin_capture(made.main)
        condition = context.condition(made.main)
        context.begin_body(made.main, condition, made.inner, repeats=False)
        made.count(made.inner, condition, 0, 1)
        context.end_body(made.inner)
        return made.run(context.end_capture(made.main), [1, 0, 0, 0])[3]

    assert {taken(seed) for seed in range(20)} == {0, 1}


def test_a_kernel_that_nothing_orders_before_the_node() -> None:
    """It sets the condition in a stream that the node does not wait for: now before, now behind it."""

    def taken(seed: int) -> int:
        made = Made(seed)
        context, side, fork, join = made.context, made.context.stream(), made.context.event(), made.context.event()
        context.begin_capture(made.main)
        condition = context.condition(made.main)
        made.count(made.main, condition, 0, 0)
        context.record(fork, made.main)
        context.wait(side, fork)
        made.count(side, condition, 1, 0)
        context.record(join, side)
        context.begin_body(made.main, condition, made.inner, repeats=False)
        made.count(made.inner, condition, 2, 1)
        context.end_body(made.inner)
        context.wait(made.main, join)
        return made.run(context.end_capture(made.main), [5, 1, 5, 0])[3]

    assert {taken(seed) for seed in range(20)} == {0, 1}


def _began(made: Made) -> int:
    made.context.begin_capture(made.main)
    condition = made.context.condition(made.main)
    made.context.begin_body(made.main, condition, made.inner, repeats=False)
    return condition


WRONG: list[tuple[str, Callable[[Made], Any], str]] = [
    ("outside of a recording", lambda made: made.context.condition(made.main), "CUDA_ERROR_ILLEGAL_STATE"),
    (
        "two nodes for one condition",
        lambda made: made.context.begin_body(made.inner, _began(made), made.innermost, repeats=True),
        "has another node for the condition",
    ),
    ("an end without a beginning", lambda made: made.context.end_body(made.main), "CUDA_ERROR_ILLEGAL_STATE"),
    ("no end", lambda made: (_began(made), made.context.end_capture(made.main)), "a conditional node has no end"),
    (
        "the end of a body as that of the recording",
        lambda made: (_began(made), made.context.end_capture(made.inner)),
        "CUDA_ERROR_ILLEGAL_STATE",
    ),
    (
        "no such condition",
        lambda made: (made.context.begin_capture(made.main),
                      made.context.begin_body(made.main, 7, made.inner, repeats=True)),
        "has no such condition",
    ),
    (
        "a copy to another GPU",
        lambda made: (_began(made), made.context.copy_peer(0, made.context, 0, 8, made.inner)),
        "CUDA_ERROR_NOT_SUPPORTED",
    ),
    (
        "a stream that is recorded",
        lambda made: (made.context.begin_capture(made.innermost), _began(made), made.context.begin_body(
            made.inner, made.context.condition(made.inner), made.innermost, repeats=True)),
        "it is being recorded",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "told"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_what_the_driver_refuses(wrong: Callable[[Made], Any], told: str) -> None:
    with pytest.raises(DriverError, match=told):
        wrong(Made(0))


def test_a_condition_outside_of_its_graph() -> None:
    made = Made(0)
    made.context.begin_capture(made.main)
    condition = made.context.condition(made.main)
    made.context.end_capture(made.main)
    made.count(made.main, condition, 0, 0)
    with pytest.raises(DriverError, match="outside of one"):
        made.context.synchronize()


def test_two_threads_set_no_condition() -> None:
    k = KernelBuilder("both", block=32)
    k.set_condition(k.scalar("h", "i64"), k.thread)
    with pytest.raises(KernelFaultError, match="32 threads set conditions"):
        machine.run(k.finish(), 1, [5], condition=lambda handle, value: None)


def test_an_older_driver_says_so() -> None:
    context: FakeContext = FakeDriver(version=12030).open(0)
    assert context.no_conditions == "NVIDIA's driver is for CUDA 12.3; graphs have conditional nodes from 12.4 on"
    stream = context.stream()
    context.begin_capture(stream)
    with pytest.raises(DriverError, match="CUDA_ERROR_NOT_SUPPORTED"):
        context.condition(stream)


@pytest.mark.parametrize("wanted", [(True,), (False,), (True, False, True)])
@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
def test_the_kernel_that_sets_one_is_assembled(wanted: tuple[bool, ...], capability: tuple[int, int]) -> None:
    """The driver's compiler has the function that it calls; ptxas alone leaves it to a linker."""
    text = write(condition_kernel(wanted), capability)
    assert ".extern .func cudaGraphSetConditional" in text.replace("\n", " ")
    assert assembled(text, capability, "-c").spills == 0


@pytest.mark.parametrize("wanted", [(True,), (False,), (True, False, True)])
def test_the_kernel_that_sets_one(wanted: tuple[bool, ...]) -> None:
    found: list[tuple[int, int]] = []
    for number in range(1 << len(wanted)):
        given = [bool(number >> k & 1) for k in range(len(wanted))]
        places = [np.array([7 * each], np.int8) for each in given]
        machine.run(
            condition_kernel(wanted), 1, [16, *places], condition=lambda handle, value: found.append((handle, value))
        )
        assert found.pop() == (16, given == list(wanted))


# -- NVIDIA's driver ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("numbered", [False, True], ids=["CUDA 13", "CUDA 12"])
@pytest.mark.parametrize("repeats", [False, True])
def test_what_nvidias_driver_is_asked(monkeypatch: pytest.MonkeyPatch, numbered: bool, repeats: bool) -> None:
    bindings = Bindings(numbered=numbered)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings", type(sys)("cuda.bindings"))
    found, missing = real.find()
    assert found is not None, missing
    context = found.open(0)
    assert context.no_conditions == ""
    main, body = context.stream(), context.stream()
    context.begin_capture(main)
    condition = context.condition(main)
    context.begin_body(main, condition, body, repeats=repeats)
    context.end_body(body)
    context.end_capture(main)
    called = dict(bindings.calls)
    two, three = ("_v2", "_v3") if numbered else ("", "")
    assert called["cuGraphConditionalHandleCreate"] == ("graph", "context 0", 0, 0)
    assert called[f"cuStreamGetCaptureInfo{three}"] == (main.value,)
    graph, nodes, edges, count, asked = called[f"cuGraphAddNode{two}"]
    assert (graph, nodes, edges, count) == ("graph", ["before"], None, 1)
    node = asked.conditional
    kinds = bindings.CUgraphConditionalNodeType
    kind = kinds.CU_GRAPH_COND_TYPE_WHILE if repeats else kinds.CU_GRAPH_COND_TYPE_IF
    assert (int(node.handle), node.type, node.size, node.ctx) == (condition, kind, 1, "context 0")
    assert called[f"cuStreamUpdateCaptureDependencies{two}"] == (main.value, ["node"], None, 1, 1)
    assert called["cuStreamBeginCaptureToGraph"][:2] == (body.value, "body")
    assert bindings.count("cuStreamEndCapture") == 2


def test_bindings_without_conditional_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = Bindings()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", bindings)
    monkeypatch.setitem(sys.modules, "cuda.bindings", type(sys)("cuda.bindings"))
    found, missing = real.find()
    assert found is not None, missing
    monkeypatch.setattr(bindings, "has_conditions", False)
    assert "has no conditional nodes; install 12.4 or later" in found.open(0).no_conditions
