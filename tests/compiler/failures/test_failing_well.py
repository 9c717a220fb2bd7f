"""A pass that fails: the results are right all the same, the reason is told, and in strict mode it is an error."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import main
from tests import perturbation
from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError, PassFailedError
from toolkit.compiler.pipeline import cpu
from toolkit.compiler.pipeline.cpu import PASSES
from toolkit.compiler.pipeline.passes import Compilation, Needs, Where
from toolkit.errors import ResourceExhaustedError
from toolkit.limits.limits import Limits
from toolkit.runtime.session import Session

ops = gm.ops
X = numbers(4, 6)
NAMES = [each.name for each in PASSES]


def layers() -> tuple[Any, Any, Any]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6], name="x")
        y = ops.softmax(ops.relu(ops.mat_mul(x, numbers(6, 5)) + numbers(5)), name="y")
    return graph, x, y


def loop() -> tuple[Any, Any, Any]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6], name="x")
        y = gm.while_loop(lambda i, y: i < 5, lambda i, y: [i + 1, ops.tanh(y * 0.5 + x)], [gm.constant(0), x])[1]
        ops.identity(y, name="y")
    return graph, x, y


GRAPHS = {"layers": layers, "loop": loop}


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As users have it: the suite itself is strict."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "")
    monkeypatch.setenv("GRAPHMILL_VERIFY", "")


Close = Callable[[str, Any], None]


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> Close:
    """Asserts that a result is what the kernels compute."""
    found: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        patch.setenv("GRAPHMILL_SEGMENTS", "off")
        for name, make in GRAPHS.items():
            graph, x, y = make()
            with Session(graph) as session:
                found[name] = session.run(y, {x: X})

    def check(name: str, got: Any) -> None:
        graph, x, y = GRAPHS[name]()
        perturbation.assert_close(graph, [y], {x: X}, [[got], [found[name]]])

    return check


class Fault:
    """A pass of the table that raises wherever it applies; it applies wherever it may.

    Attributes:
        fired: how often it did.
    """

    def __init__(self, patch: pytest.MonkeyPatch, name: str, fail: Callable[[Block, Compilation], None]):
        self.fired = 0

        def apply(block: Block, to: Compilation) -> None:
            self.fired += 1
            fail(block, to)
            real(block, to)

        real = next(each.apply for each in PASSES if each.name == name)
        table = [
            replace(each, apply=apply, needs=Needs.NOTHING, finds=lambda block, to: True) if each.name == name else each
            for each in PASSES
        ]
        patch.setattr(cpu, "PASSES", table)


def raising(error: BaseException) -> Callable[[Block, Compilation], None]:
    def fail(block: Block, to: Compilation) -> None:
        raise error

    return fail


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("lenient")
def test_a_mistake_costs_no_result_and_is_told(
    name: str, graph: str, close: Close, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault(monkeypatch, name, raising(RuntimeError("injected")))
    core, x, y = GRAPHS[graph]()
    with Session(core) as session:
        for _ in range(2):
            close(graph, session.run(y, {x: X}))
        told = [*session.notes(), *session.explain(y, {x: X})]
    where = next(each.where for each in PASSES if each.name == name)
    assert fault.fired or Where.PROGRAM not in where
    reason = f"the pass '{name}' failed; this is a bug: RuntimeError: injected"
    assert sum(reason in line for line in told) == (2 if fault.fired else 0)
    with monkeypatch.context() as patch:
        patch.setenv("GRAPHMILL_SEGMENTS", "strict")
        before = fault.fired
        with Session(core) as session:
            if fault.fired:
                with pytest.raises(PassFailedError, match=f"'{name}' failed.*RuntimeError: injected"):
                    session.run(y, {x: X})
                assert fault.fired > before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("lenient")
def test_what_ends_a_step_is_not_swallowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupts and memory that has run out come through, whatever pass was at work; the session stays usable."""
    core, x, y = loop()
    for raised, met in ((KeyboardInterrupt(), KeyboardInterrupt), (MemoryError(), ResourceExhaustedError)):
        with Session(core) as session:
            with monkeypatch.context() as patch:
                fault = Fault(patch, name, raising(raised))
                if Where.PROGRAM in next(each.where for each in PASSES if each.name == name):
                    with pytest.raises(met):
                        session.run(y, {x: X})
                    assert fault.fired == 1
            assert session.run(y, {x: X}).shape == X.shape


@pytest.mark.usefixtures("lenient")
def test_under_a_limit_a_plan_that_is_too_large_is_left_out_and_told(
    close: Close, monkeypatch: pytest.MonkeyPatch
) -> None:
    Fault(monkeypatch, "lower_ufuncs", raising(MemoryError()))
    core, x, y = layers()
    with Session(core, limits=Limits(memory=1 << 30)) as session:
        close("layers", session.run(y, {x: X}))
        assert any("more memory than the limits allow" in note for note in session.notes())
        assert any("more memory than the limits allow" in line for line in session.explain(y, {x: X}))


def refuse_all(block: Block, to: Compilation) -> None:
    """Refuse one node after the other, until none is left."""
    for operation in block.walk():
        if not to.excluded_by_name(operation):
            raise NotSupportedError(operation, "injected")


def refuse_again(block: Block, to: Compilation) -> None:
    """Refuse the same node for ever."""
    raise NotSupportedError(next(iter(block.walk())), "injected")


def refuse_strangers(block: Block, to: Compilation) -> None:
    """Blame nodes that are not in the program."""
    refusal = NotSupportedError(next(iter(block.walk())), "injected")
    refusal.nodes = [f"stranger {len(to.excluded)}"]
    raise refusal


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("fail", [refuse_all, refuse_again, refuse_strangers])
@pytest.mark.parametrize("name", NAMES)
def test_lifting_again_makes_progress(
    name: str, fail: Callable[[Block, Compilation], None], graph: str, close: Close,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each round leaves one node more to its kernel, or it is the last; that a node needs its kernel is no mistake."""
    fault = Fault(monkeypatch, name, fail)
    core, x, y = GRAPHS[graph]()
    with Session(core) as session:
        close(graph, session.run(y, {x: X}))
        nodes = sum(1 for part in session.compiled(y, [x]).stages.partitions.values() for _ in part)
        assert fault.fired <= 2 * (nodes + 1)  # a round meets it in the program and in the loop's body
        if fault.fired:
            assert any("injected" in note for note in session.notes())


def test_verbose_runs_tell_what_was_not_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "")
    monkeypatch.setenv("GRAPHMILL_VERIFY", "")
    Fault(monkeypatch, "stage_inputs", raising(RuntimeError("injected")))
    graph, _, _ = layers()
    file = tmp_path / "g.pb"
    file.write_bytes(graph.core.to_proto().SerializeToString())
    np.save(tmp_path / "x.npy", X)
    command = ["run", str(file), "--fetch", "y:0", "--feed", f"x:0={tmp_path / 'x.npy'}"]

    def run(*options: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*command, *options])
        assert not ended.value.code
        said = capsys.readouterr()
        return said.out, said.err

    assert "not compiled: runs node by node, for the compiler failed: the pass 'stage_inputs'" in run("-v")[1]
    assert "not compiled" not in run()[1]
    assert "RuntimeError: injected" in run("--explain")[0]
