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

SVG = "{http://www.w3.org/2000/svg}"
TRACES = ["step.pb", "stats.pb", "step.json", "step.json.gz"]


def visualize(words: list[str], content: bytes, fifo: Path) -> bytes:
    """Run the command with `content` on standard input, or in the named pipe; returns what it said."""
    feeder = threading.Thread(target=fifo.write_bytes, args=(content,))
    if str(fifo) in words:
        feeder.start()
    command = [sys.executable, "-m", "commands.main", "visualize", *words]
    done = subprocess.run(command, input=content, capture_output=True, timeout=60, check=False)
    if str(fifo) in words:
        feeder.join()
    assert done.returncode == 0, done.stderr
    return done.stderr


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
