"""Every kind of bad input: one line that names file, node and what was expected; exit 2 or 3; nothing left behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from schemas import graph_pb2
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape


def small_graph() -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([None, 2])})
    w = graph.add("Const", "w", attrs={"dtype": dtypes.float32, "value": from_array(np.ones((2, 3), np.float32))})
    y = graph.add("MatMul", "y", [x, w], attrs={"T": dtypes.float32})
    graph.add("Relu", "z", [y], attrs={"T": dtypes.float32})
    return graph


def write(graph: Graph, folder: Path) -> str:
    path = str(folder / "in.pb")
    write_model(from_graph(graph), path)
    return path


def truncated(folder: Path) -> None:
    path = Path(write(small_graph(), folder))
    path.write_bytes(path.read_bytes()[:-7])


def no_graph(folder: Path) -> None:
    (folder / "in.pb").write_bytes(b"<html><body>404 not found</body></html>")


def empty(folder: Path) -> None:
    (folder / "in.pb").write_bytes(b"")


def raw(change: Callable[[graph_pb2.GraphDef], None]) -> Callable[[Path], None]:
    """A file made by changing the message, past the checks of the domain model."""

    def make(folder: Path) -> None:
        proto = small_graph().to_proto()
        change(proto)
        (folder / "in.pb").write_bytes(proto.SerializeToString())

    return make


def unknown_op(proto: graph_pb2.GraphDef) -> None:
    proto.node[3].op = "Rellu"


def dangling(proto: graph_pb2.GraphDef) -> None:
    proto.node[3].input[0] = "yy"


def duplicate(proto: graph_pb2.GraphDef) -> None:
    proto.node[3].name = "y"


def wrong_dtype(proto: graph_pb2.GraphDef) -> None:
    proto.node[3].attr["T"].type = dtypes.float64.enum  # type: ignore[assignment]


def argument(proto: graph_pb2.GraphDef) -> None:
    """What a body of a function begins with, in a graph."""
    node = proto.node[0]
    node.op = "_Arg"
    node.attr.clear()
    node.attr["T"].type = dtypes.float32.enum  # type: ignore[assignment]
    node.attr["index"].i = 7


def result(proto: graph_pb2.GraphDef) -> None:
    """What a body of a function ends with, in a graph."""
    node = proto.node.add(name="r", op="_Retval", input=["w"])
    node.attr["T"].type = dtypes.float32.enum  # type: ignore[assignment]
    node.attr["index"].i = 7
    proto.node[3].input.append("^r")


def cycle(folder: Path) -> None:
    graph = small_graph()
    a = graph.add("Relu", "a", attrs={"T": dtypes.float32})
    b = graph.add("Relu", "b", [a], attrs={"T": dtypes.float32})
    a.inputs.append(Output(b, 0))
    graph.add("AddV2", "sum", [graph.node("z"), b], attrs={"T": dtypes.float32})
    write(graph, folder)


def good(folder: Path) -> None:
    write(small_graph(), folder)


def good_with_feed(folder: Path) -> None:
    write(small_graph(), folder)
    np.save(folder / "x.npy", np.zeros((4, 2), np.float32))
    np.save(folder / "wide.npy", np.zeros((4, 5), np.float32))
    np.save(folder / "complex.npy", np.zeros((4, 2), np.complex64))


# name, how the folder is made, command line, exit code, words that the message must have
ROWS = [
    ("truncated", truncated, "inspect in.pb", 2, ["in.pb", "truncated"]),
    ("truncated", truncated, "prune in.pb --fetch y -o out.pb", 2, ["in.pb"]),
    ("no graph", no_graph, "run in.pb --fetch y", 2, ["in.pb", "HTML"]),
    ("empty", empty, "partition in.pb -o parts", 2, ["in.pb", "empty"]),
    ("missing file", good, "run other.pb --fetch y", 2, ["other.pb"]),
    ("unknown op", raw(unknown_op), "run in.pb --fetch z --feed x=x.npy", 2, ["in.pb", "'z'", "Rellu", "Relu"]),
    ("dangling", raw(dangling), "prune in.pb --fetch z -o out.pb", 2, ["in.pb", "'z'", "yy", "'y'"]),
    ("duplicate", raw(duplicate), "visualize in.pb -o out.svg", 2, ["in.pb", "'y'", "unique"]),
    ("wrong dtype", raw(wrong_dtype), "run in.pb --fetch z --feed x=[[1,2]]", 2, ["'z'", "float32", "float64"]),
    ("argument", raw(argument), "run in.pb --fetch z", 2, ["in.pb", "'x'", "_Arg belongs to the body", "feed it"]),
    ("result", raw(result), "run in.pb --fetch z --feed x=[[1,2]]", 2, ["in.pb", "'r'", "_Retval belongs to the body"]),
    ("cycle", cycle, "run in.pb --fetch sum --feed x=[[1,2]]", 2, ["in.pb", "cycle", "a -> b"]),
    ("missing feed", good, "run in.pb --fetch z", 3, ["in.pb", "'x'", "float32", "[?,2]"]),
    ("wrong shape", good_with_feed, "run in.pb --fetch z --feed x=wide.npy", 2, ["'x:0'", "[4,5]", "[?,2]"]),
    ("wrong dtype fed", good_with_feed, "run in.pb --fetch z --feed x=complex.npy", 2, ["'x:0'", "complex64"]),
    ("no such tensor", good, "run in.pb --fetch zz:0", 2, ["--fetch", "'zz'", "'z'"]),
    ("no such output", good, "run in.pb --fetch z:4 --feed x=[[1,2]]", 2, ["z:4", "1 output"]),
    ("no such feed", good, "run in.pb --fetch z --feed w1=3", 2, ["'w1'", "x"]),
    ("nothing to run", good, "run in.pb", 2, ["--fetch", "z:0"]),
    ("no such signature", good, "run in.pb --signature s", 2, ["'s'", "no signatures"]),
    ("no such checkpoint", good, "run in.pb --fetch z --checkpoint nowhere/ckpt", 2, ["nowhere/ckpt"]),
    ("feed without a name", good, "run in.pb --fetch z --feed 3", 2, ["--feed", "NAME=SOURCE"]),
    ("bad out suffix", good, "run in.pb --fetch w --out values.xls", 2, [".npz", "values.xls"]),
    ("not placed", good, "partition in.pb -o parts", 2, ["place"]),
    ("prune unknown", good, "prune in.pb --fetch q -o out.pb", 2, ["'q'"]),
    ("no cluster file", good, "place in.pb --cluster c.yaml -o out.pb", 2, ["c.yaml"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "line", "code", "words"), [r[1:] for r in ROWS], ids=[f"{r[0]}-{r[2].split()[0]}" for r in ROWS]
)
def test_bad_input(make: Callable[[Path], None], line: str, code: int, words: list[str], tmp_path: Path) -> None:
    make(tmp_path)
    if "x=x.npy" in line:
        np.save(tmp_path / "x.npy", np.zeros((4, 2), np.float32))
    before = sorted(p.name for p in tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", *line.split()],
        cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    message = done.stderr.strip()
    assert len(message.splitlines()) == 1, message
    for word in words:
        assert word in message, f"{word!r} is missing in: {message}"
    assert sorted(p.name for p in tmp_path.iterdir()) == before, "something was left behind"


def test_missing_checkpoint_tensor(tmp_path: Path) -> None:
    """A graph that wants a variable the checkpoint does not have."""
    from toolkit.formats import bundle

    graph = Graph()
    names = np.array([b"there", b"missing"], object)
    both = {"dtypes": [dtypes.float32, dtypes.float32]}
    prefix = graph.add("Placeholder", "prefix", attrs={"dtype": dtypes.string, "shape": Shape([])})
    listed = graph.add("Const", "names", attrs={"dtype": dtypes.string, "value": from_array(names)})
    blank = np.array([b"", b""], object)
    slices = graph.add("Const", "slices", attrs={"dtype": dtypes.string, "value": from_array(blank)})
    graph.add("RestoreV2", "restore", [prefix, listed, slices], attrs=both)
    write(graph, tmp_path)
    bundle.save(tmp_path / "ckpt", {"there": np.float32(1)})
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", "run", "in.pb", "--fetch", "restore:1", "--feed", 'prefix="ckpt"'],
        cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3 and len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in ("restore", "'missing'", "ckpt"):
        assert word in done.stderr


def _png(folder: Path) -> str:
    (folder / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    return "p.png"


def _link(to: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "link.pb").symlink_to(to)
        return "link.pb"

    return make


def _nothing(folder: Path) -> str:
    return "gone"


def _index(folder: Path) -> str:
    (folder / "c.index").write_bytes(b"")
    return "c"


@pytest.mark.parametrize(
    ("make", "line", "said"),
    [
        (_nothing, "validate in.pb --checkpoint {}", "--checkpoint: gone: there is no checkpoint here"),
        (_png, "validate in.pb --checkpoint {}", "--checkpoint: p.png: neither a checkpoint's prefix nor a"),
        (_nothing, "validate in.pb --compatible-with {}", "--compatible-with: gone: there is no such file"),
        (_png, "validate in.pb --compatible-with {}", "it looks like a PNG image"),
        (_png, "checkpoint inspect {}", "it looks like a PNG image"),
        (_index, "validate {}", "c: this is a checkpoint, not a graph; try: graphmill checkpoint inspect c"),
        (_link("nowhere"), "inspect {}", "link.pb: is a link to 'nowhere', which does not exist"),
        (_link("nowhere"), "validate {}", "link.pb: is a link to 'nowhere', which does not exist"),
        (_link("link.pb"), "visualize {}", "link.pb: cannot be read: Too many levels of symbolic links"),
        (_link("link.pb"), "validate {}", "link.pb: cannot be read: Too many levels of symbolic links"),
        (_nothing, "checkpoint verify in.pb/{}", "there is no checkpoint here"),
        (_nothing, "run in.pb --fetch z --feed x=[[1,2]] --checkpoint .", "--checkpoint: .: there is no checkpoint in"),
        (_nothing, "run in.pb --fetch z --feed x=abc", "when the shell sees others: '\"text\"'"),
        (_nothing, "run in.pb --fetch z --feed x=[1]", "--feed: cannot feed a value of shape [1] for 'x:0', which has"),
        (_png, "place in.pb --cluster {}", "p.png:1: not YAML: it is not UTF-8 text"),
        (_nothing, "inspect in.pb --tags serve", "--tags is without effect here"),
    ],
)  # fmt: skip
def test_what_else_is_named(
    make: Callable[[Path], str],
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from commands import main

    monkeypatch.chdir(tmp_path)
    write(small_graph(), tmp_path)
    code = main.run(line.format(make(tmp_path)).split())
    told = capsys.readouterr().err
    assert (code, told.count("\n")) == (2, 1) and said in told, told
