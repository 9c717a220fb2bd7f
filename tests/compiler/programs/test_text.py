"""The text form of programs: the same for the same program, and written after each pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from toolkit import client as gm
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.operations.calls import Loop, Select
from toolkit.compiler.ir.operations.calls import Test as LeaveUnless
from toolkit.compiler.ir.text.arrays import SideTable, write_array
from toolkit.compiler.ir.text.printer import print_block
from toolkit.compiler.ir.value import Value
from toolkit.compiler.program_kernels import step_of
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session

ops = gm.ops
STEP = step_of(Graph().add("Merge", "chosen", attrs={"N": 2, "T": dtypes.float32}))


def _block() -> Block:
    kind, flag = np.dtype(np.float32), np.dtype(np.bool_)
    block, body = Block(), Block()
    predicate, a = Value(flag, ()), Value(kind, None)
    block.arguments = [predicate, None, a]
    fixed = Value(kind, (2,), np.zeros(2, np.float32))
    chosen = Select(predicate=predicate, taken=a, other=fixed, outputs=[Value(kind, (2,))], steps=[STEP])
    chosen.conditions = Conditions(((predicate, False),))
    block.append(chosen)
    state, goes_on = Value(kind, (2,)), Value(flag, ())
    body.arguments = [state, goes_on]
    body.append(LeaveUnless(condition=goes_on, outputs=[], steps=[STEP]))
    body.results = [state]
    last = Value(kind, (2,))
    block.append(Loop(states=(chosen.output,), invariants=(predicate,), body=body, outputs=[last], steps=[STEP]))
    block.results = [last]
    return block


def test_branches_and_regions() -> None:
    chosen = "select(predicate = %0, taken = %1, other = const(float32[2] [0.0, 0.0]))"
    assert print_block(_block()).splitlines() == [
        "program(%0: bool[], _, %1: float32[?]) {",
        f"  %2: float32[2] = {chosen} if not %0 from 'chosen'",
        "  %3: float32[2] = loop(states = [%2], invariants = [%0]) from 'chosen'",
        "    body(%4: float32[2], %5: bool[]) {",
        "      test(condition = %5) from 'chosen'",
        "      return %4",
        "    }",
        "  return %3",
        "}",
        "nodes {",
        "  'chosen' = Merge {N = 2, T = float32}",
        "}",
    ]


def test_large_arrays_are_told_apart() -> None:
    one = np.arange(100, dtype=np.int64)
    other = one.copy()
    other[50] += 1
    beside = SideTable()
    assert write_array(one, beside) == write_array(one.copy(), beside)
    assert write_array(one, beside) != write_array(other, beside)
    assert len(write_array(one, beside)) < 50


def _lines(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.iterdir())}


def test_stages(tmp_path: Path) -> None:
    """A folder a program, a file a pass; two compilations of one program give the same text."""
    found: list[dict[str, str]] = []
    for name in ("first", "second"):
        with gm.Graph().as_default() as graph:
            x = gm.placeholder("float32", [8, 64], name="x")
            w = np.linspace(-1, 1, 64 * 32, dtype=np.float32).reshape(64, 32)
            y = ops.relu(ops.mat_mul(x, w), name="y")
            del y
        with Session(graph, stages=str(tmp_path / name)) as running:
            running.run("y:0", {"x:0": np.ones((8, 64), np.float32)})
            explained = running.explain("y:0", {"x:0": np.ones((8, 64), np.float32)})
        (folder,) = (tmp_path / name).iterdir()
        assert folder.name == "5-program-001"
        found.append(_lines(folder))
        assert any(line.startswith("program(") for line in explained)
    assert found[0] == found[1]
    names = list(found[0])
    assert names[0] == "00-import.txt"
    assert "MatMul(" in found[0]["00-import.txt"]
    assert [int(name[:2]) for name in names] == list(range(len(names)))
    assert all(text.startswith("program(") and text.endswith("}\n") for text in found[0].values())
