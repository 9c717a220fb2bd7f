"""Rules over the columns of a table find what they find node by node; where there is nothing to say no node is made."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands.main import run
from schemas.graph_pb2 import GraphDef
from tests.bench.large_graphs import write_graph
from tests.formats.test_node_table import CHANGES, Change
from tests.graph.test_alike import reshaped
from tests.passes.test_passes_validate_mutations import base, break_it
from tests.passes.validate_corpus import ROWS, Row
from tests.passes.validate_graphs import B, F, I, R, S, add, const
from toolkit.formats.models import graphdef, node_bytes
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.attrs import FuncRef
from toolkit.graph.frames import assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.passes.validate import subject as subjects
from toolkit.passes.validate.engine import validate_files
from toolkit.passes.validate.finding import Finding


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("graphs") / "block.pb"
    write_graph(path, 700)
    return path.read_bytes()


def both_ways(graph: GraphDef | bytes, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Finding], bool]:
    """What is found, the same of a table and of nodes, and whether no node was made of the table."""
    path.write_bytes(graph if isinstance(graph, bytes) else graph.SerializeToString(deterministic=True))
    seen: list[subjects.Subject] = []
    made = subjects.Subject.__init__

    def init(self: Any, *args: Any, **keywords: Any) -> None:
        made(self, *args, **keywords)
        seen.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(subjects.Subject, "__init__", init)
        patch.setattr(node_bytes, "_MANY", 1)
        mine = validate_files([str(path)]).findings
        is_table = bool(seen) and seen[0].bodies[0].table is not None
        patch.setattr(node_bytes, "_MANY", 1 << 40)
        theirs = validate_files([str(path)]).findings
    assert mine == theirs
    return mine, is_table


def test_of_a_good_graph_no_node_is_made(block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert both_ways(block, tmp_path / "graph.pb", monkeypatch) == ([], True)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_unusual_nodes(change: Change, block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphDef.FromString(block)
    graph.node.add(name="cut", op="Identity", input=["x"]).attr["T"].type = 1  # type: ignore[assignment]
    change(graph.node[-1])
    both_ways(graph, tmp_path / "graph.pb", monkeypatch)


@pytest.mark.parametrize("case", ROWS, ids=lambda row: row.name)
def test_corpus(case: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["validate", *case.make(tmp_path), "--format", "json", "--config", "/dev/null"]
    said: list[tuple[int, Any]] = []
    for many in (1, 1 << 40):
        monkeypatch.setattr(node_bytes, "_MANY", many)
        said.append((run(arguments), capsys.readouterr()))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", ["net", "loop", "calls", "meta"])
def test_broken_graphs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        graph = base(name)
        break_it(graph, random.Random(seed))
        both_ways(graph, tmp_path / "graph.pb", monkeypatch)


def test_a_block_with_defects(block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops, conditionals and calls among them."""
    silent = 0
    for seed in range(80):
        dice = random.Random(seed)
        graph = GraphDef.FromString(block)
        break_it(graph, dice)
        silent += both_ways(graph, tmp_path / "graph.pb", monkeypatch)[1]
    assert silent  # such as one more control edge


def test_bytes_that_are_damaged(block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    for _ in range(60):
        data = bytearray(block)
        for _ in range(dice.choice((1, 2))):
            data[dice.randrange(len(data))] = dice.randrange(256)
        both_ways(bytes(data), tmp_path / "graph.pb", monkeypatch)


def loops(*, frames: tuple[str, str] = ("outer", "inner"), back: str = "next_1") -> GraphDef:
    """A loop within a loop, and a value that comes around with another shape."""
    graph = GraphDef()
    graph.versions.producer = 2474
    add(graph, "Placeholder", "x", dtype=F, shape=Shape([2, 3]))
    const(graph, "axis", [0], [], I)
    source = "x"
    for depth, frame in enumerate(frames):
        add(graph, "Enter", f"enter_{depth}", [source], T=F, frame_name=frame.encode())
        add(graph, "Merge", f"merge_{depth}", [f"enter_{depth}", f"next_{depth}"], T=F, N=2)
        source = f"merge_{depth}"
    for depth in (1, 0):
        const(graph, f"true_{depth}", [1], [], I).input.append(f"^merge_{depth}")
        add(graph, "Cast", f"test_{depth}", [f"true_{depth}"], SrcT=I, DstT=B)
        add(graph, "LoopCond", f"cond_{depth}", [f"test_{depth}"])
        value = "merge_1" if depth else "merge_0"
        add(graph, "Switch", f"switch_{depth}", [value, f"cond_{depth}"], T=F)
        if depth:
            add(graph, "Exit", "exit_1", ["switch_1"], T=F)
            add(graph, "Transpose", "turned", ["switch_1:1", "order"], T=F, Tperm=I)
            const(graph, "order", [1, 0], [2], I).input.append("^switch_1")
            add(graph, "NextIteration", "next_1", ["turned"], T=F)
        else:
            add(graph, "NextIteration", "next_0", ["exit_1"], T=F)
            add(graph, "Exit", "exit_0", ["switch_0"], T=F)
    if back != "next_1":
        next(node for node in graph.node if node.name == "merge_1").input[1] = back
    names = {node.name: node for node in graph.node}
    order = GraphDef(versions=graph.versions)
    done: set[str] = set()

    def append(name: str) -> None:
        if name in done:
            return
        done.add(name)
        for text in names[name].input:
            each = text.removeprefix("^").partition(":")[0]
            if each in names and not (names[name].op == "Merge" and names[each].op == "NextIteration"):
                append(each)
        order.node.add().CopyFrom(names[name])

    for node in graph.node:
        append(node.name)
    return order


def test_loops_within_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.pb"
    both_ways(loops(), path, monkeypatch)
    both_ways(loops(frames=("same", "same")), path, monkeypatch)
    both_ways(loops(frames=("", "inner")), path, monkeypatch)
    both_ways(loops(back="enter_1"), path, monkeypatch)
    both_ways(loops(back="next_0"), path, monkeypatch)
    for seed in range(120):
        graph = loops()
        break_it(graph, random.Random(seed))
        both_ways(graph, path, monkeypatch)


def test_frames_are_those_of_nodes(block: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.formats.node_tables.frames import find_frames

    monkeypatch.setattr(node_bytes, "_MANY", 1)
    graph = graphdef.from_bytes(block)
    assert graph is not None
    table = graph.unmade
    assert isinstance(table, NodeTable)
    found = find_frames(table)
    assert found is not None
    frames, everything = assign_frames(graph, graph.topological_order())
    assert [found.names[number] for number in found.of] == [frame.name for frame in frames]
    assert sorted(found.names) == sorted(frame.name for frame in everything)


Add = Callable[[GraphDef], object]


def assigned(graph: GraphDef) -> None:
    """Two variables of resources, one of them of another shape than what is assigned."""
    for number in range(4):
        add(graph, "VarHandleOp", f"v{number}", dtype=F, shape=Shape([2, 3]), shared_name=b"")
        const(graph, f"i{number}", [1.0], [2, 3] if number < 3 else [3, 2])
        add(graph, "AssignVariableOp", f"a{number}", [f"v{number}", f"i{number}"], dtype=F)
        add(graph, "ReadVariableOp", f"r{number}", [f"v{number}"], dtype=F)
        add(graph, "MatMul", f"m{number}", ["x", f"r{number}"], T=F)


def saved(graph: GraphDef) -> None:
    for number in range(3):
        add(graph, "VariableV2", f"v{number}", dtype=F, shape=Shape([2]))
        const(graph, f"i{number}", [1.0], [2])
        add(graph, "Assign", f"a{number}", [f"v{number}", f"i{number}"], T=F)
        add(graph, "Identity", f"r{number}", [f"v{number}"], T=F)
    const(graph, "names", [b"v0", b"v1"], [2], S)
    const(graph, "slices", [b"", b""], [2], S)
    const(graph, "prefix", [b"p"], [], S)
    add(graph, "SaveV2", "save", ["prefix", "names", "slices", "r0", "v1"], dtypes=[F, F])


def sized(graph: GraphDef) -> None:
    built = Graph()
    x = built.add("Placeholder", "p", attrs={"dtype": F, "shape": Shape([None, 6])})
    for name, sizes in (("a", [2, 3]), ("b", [3, 2]), ("again", [2, 3]), ("bad", [2, 3, 5])):
        reshaped(built, x, name, sizes)
    built.add("MatMul", "ab", [built.node("a"), built.node("b")], attrs={"T": F})
    built.add("MatMul", "aa", [built.node("a"), built.node("again")], attrs={"T": F})
    graph.node.extend(built.to_proto().node)


def called(graph: GraphDef) -> None:
    """A function that is not there, and one whose types are others."""
    add(graph, "PartitionedCall", "one", ["x"], Tin=[F], Tout=[F], f=FuncRef("nowhere", {}))
    add(graph, "PartitionedCall", "two", ["x"], Tin=[F], Tout=[I], f=FuncRef("squared", {}))


GRAPHS: dict[str, Add] = {
    "resources": assigned, "a variable that is not saved": saved, "sizes": sized, "calls": called,
    "a variable of a shared name": lambda g: add(g, "VariableV2", "v", dtype=F, shape=Shape([2]), shared_name=b"s"),
    "a variable without a value": lambda g: add(g, "VariableV2", "v", dtype=F, shape=Shape([2])),
    "not a number": lambda g: const(g, "c", [float("nan")], []),
    "large constants": lambda g: [const(g, name, [float(n) for n in range(2000)], [2000]) for name in "abc"],
    "time": lambda g: add(g, "Timestamp", "now"),
    "files": lambda g: (const(g, "n", [b"/etc/passwd"], [], S), add(g, "ReadFile", "read", ["n"])),
    "an attribute too many": lambda g: add(g, "NoOp", "nothing", more=3),
    "a handle into a loop": lambda g: (
        add(g, "VarHandleOp", "h", dtype=F, shape=Shape([2])),
        add(g, "Enter", "e", ["h"], T=R, frame_name=b"f"),
        add(g, "Merge", "m", ["e", "n"], T=R, N=2),
        add(g, "NextIteration", "n", ["m"], T=R),
    ),
    "from NextIteration into no Merge": lambda g: (
        add(g, "Enter", "e", ["x"], T=F, frame_name=b"f"),
        add(g, "NextIteration", "n", ["e"], T=F),
        add(g, "Identity", "i", ["n"], T=F),
        add(g, "Exit", "out", ["i"], T=F),
    ),
    "a queue": lambda g: (
        add(g, "FIFOQueueV2", "q", component_types=[F], shapes=[Shape([3])]),
        add(g, "QueueDequeueV2", "d", ["q"], component_types=[F]),
        add(g, "MatMul", "m", ["x", "d"], T=F),
    ),
    "what it is placed with has another device": lambda g: (
        add(g, "NoOp", "p", device="/device:CPU:0"),
        add(g, "NoOp", "q", device="/device:CPU:1", _class=[b"loc:@p"]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", GRAPHS.values(), ids=GRAPHS.keys())
def test_what_rules_look_for(change: Add, block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphDef.FromString(block)
    add(graph, "Placeholder", "feed", dtype=F, shape=Shape([2, 2]))
    change(graph)
    both_ways(graph, tmp_path / "graph.pb", monkeypatch)
