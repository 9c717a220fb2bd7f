"""What `graphmill visualize` draws from pipes: traces and graphs that can be read only once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from commands.main import run
from tests.patience import HUNG
from tests.render.graphs import perceptron, stack
from toolkit.formats.models.model import from_graph, write_model

SVG = "{http://www.w3.org/2000/svg}"
TRACES = ["step.pb", "stats.pb", "step.json", "step.json.gz"]


def graphmill(*words: str, content: bytes = b"", pipes: dict[Path, bytes] | None = None, code: int = 0) -> bytes:
    """Run a command with `content` on standard input and in named pipes; returns what it said."""
    feeders = [threading.Thread(target=fifo.write_bytes, args=(data,)) for fifo, data in (pipes or {}).items()]
    for feeder in feeders:
        feeder.start()
    command = [sys.executable, "-m", "commands.main", *words]
    done = subprocess.run(command, input=content, capture_output=True, timeout=HUNG, check=False)
    for feeder in feeders:
        feeder.join()
    assert done.returncode == code, done.stderr
    return done.stderr


def visualize(words: list[str], content: bytes, fifo: Path) -> bytes:
    """Draw `content` from standard input, or from the named pipe."""
    return graphmill("visualize", *words, content=content, pipes={fifo: content} if str(fifo) in words else {})


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", TRACES)
def test_traces_from_pipes(traced: tuple[Path, Any], name: str, tmp_path: Path) -> None:
    """What a file gives, standard input and a named pipe give too; both can be read only once."""
    file, fifo = traced[0] / name, tmp_path / "fifo"
    os.mkfifo(fifo)
    outputs: list[str] = []
    for words in ([str(file)], [], ["-"], [str(fifo)]):
        assert visualize([*words, "-o", str(tmp_path / "t.txt")], file.read_bytes(), fifo) == b""
        outputs.append((tmp_path / "t.txt").read_text().partition("\n")[2])  # the first line has the title
    assert len(set(outputs)) == 1 and "MatMul" in outputs[0]


@pytest.mark.tensorflow
@pytest.mark.parametrize("suffix", ["txt", "dot", "html"])
def test_graphs_from_pipes(traced: tuple[Path, Any], suffix: str, tmp_path: Path) -> None:
    """A graph is still there after it was seen to be no trace, and gives what its file gives."""
    content = (traced[0] / "graph.pb").read_bytes()
    (tmp_path / "graph").write_bytes(content)  # what comes from a pipe has this title
    fifo, out = tmp_path / "fifo", tmp_path / f"p.{suffix}"
    os.mkfifo(fifo)
    pictures: set[bytes] = set()
    for source in (str(tmp_path / "graph"), "-", str(fifo)):
        assert visualize([source, "-o", str(out)], content, fifo) == b""
        pictures.add(out.read_bytes())
    assert len(pictures) == 1


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", TRACES)
def test_traces_are_named_where_a_graph_is_meant(
    traced: tuple[Path, Any], name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["prune", str(traced[0] / name), "--fetch", "total"]) == 2
    error = capfd.readouterr().err
    assert "it looks like the trace of a run; draw it with: graphmill visualize" in error and error.count("\n") == 1


def test_a_trace_to_standard_output_is_a_picture(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "name": "Relu", "ts": 0, "dur": 3}]}')
    for words in ([], ["-o", "-"]):
        assert run(["visualize", str(path), *words]) == 0
        assert ElementTree.fromstring(capfdbinary.readouterr().out).tag == f"{SVG}svg"


@pytest.mark.parametrize("suffix", ["txt", "html"])
def test_differences_between_pipes_are_drawn(suffix: str, tmp_path: Path) -> None:
    """`graphmill diff <(...) <(...) -o` reads each once and draws what it draws of files."""
    contents = {name: from_graph(graph) for name, graph in (("old", perceptron()), ("new", stack(3)))}
    for name, model in contents.items():
        (tmp_path / name).mkdir()
        write_model(model, tmp_path / name / "graph.pb")
    files = [tmp_path / name / "graph.pb" for name in contents]
    pipes = {tmp_path / f"{name}.fifo": file.read_bytes() for name, file in zip(contents, files, strict=True)}
    for pipe in pipes:
        os.mkfifo(pipe)
    out = tmp_path / f"d.{suffix}"
    pictures: list[bytes] = []
    for names, given in ((files, {}), (list(pipes), pipes)):
        graphmill("diff", *map(str, names), "-o", str(out), pipes=given, code=1)
        text = out.read_bytes()
        for name in names:
            text = text.replace(str(name).encode(), b"NAME")  # the title
        pictures.append(text)
    assert len(pictures[0]) > 500
    if suffix != "html":  # its title is packed
        assert pictures[0] == pictures[1]


@pytest.mark.parametrize("words", ["- --against -", "--costs -", "p.pb --against - --costs -"])
def test_standard_input_is_one_thing(words: str) -> None:
    said = graphmill("visualize", *words.split(), "-o", "p.svg", code=2)
    assert b"standard input holds one of what IN, --against and --costs name" in said and said.count(b"\n") == 1
