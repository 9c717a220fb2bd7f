"""Signals to commands that run no steps: nothing unpacked or half written is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.patience import HUNG, until
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import from_meta_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph

ROOT = Path(__file__).resolve().parents[2]
EACH = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)], ids=lambda each: str(each)
)


def begin(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    """A command with a folder of its own for what it unpacks."""
    (tmp_path / "scratch").mkdir()

    def as_at_a_terminal() -> None:  # a shell's background jobs ignore SIGINT, and so would their children
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "commands.main", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path / "scratch")}, preexec_fn=as_at_a_terminal,
    )  # fmt: skip


def large_model(tmp_path: Path) -> Path:
    """A SavedModel folder with more than a pipe holds."""
    graph = Graph()
    value = tensor.from_array(np.random.default_rng(0).random(1 << 18, np.float32))
    graph.add("Const", "c", attrs={"dtype": dtypes.float32, "value": value})
    write_model(from_meta_graph(MetaGraph(graph)), tmp_path / "model", "savedmodel")
    return tmp_path / "model"


@EACH
def test_while_an_archive_is_unpacked(tmp_path: Path, number: int, code: int) -> None:
    archive = tmp_path / "m.tar"
    with tarfile.open(archive, "w") as made:
        made.add(large_model(tmp_path), "model")
    out = tmp_path / "out.pb"
    with begin(tmp_path, "convert", "-", "-o", str(out)) as process:
        assert process.stdin is not None
        process.stdin.write(archive.read_bytes()[: 1 << 19])
        process.stdin.flush()
        until(lambda: any((tmp_path / "scratch").rglob("saved_model.pb")), "something is unpacked")
        process.send_signal(number)
        told = process.communicate(timeout=HUNG)[1].decode()
    assert process.returncode == code, told
    assert not any((tmp_path / "scratch").iterdir()) and not out.exists()
    assert told.count("\n") == 1 and told.startswith("graphmill: error: "), told


@EACH
def test_while_nobody_reads_what_is_written(tmp_path: Path, number: int, code: int) -> None:
    archive = tmp_path / "m.tar"
    with tarfile.open(archive, "w") as made:
        made.add(large_model(tmp_path), "model")
    with begin(tmp_path, "convert", str(archive)) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.send_signal(number)
        assert process.wait(HUNG) == code, process.stderr.read()
    assert not any((tmp_path / "scratch").iterdir())


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    out = tmp_path / "out.pb"
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", "convert", "-", "-o", str(out)], stdin=subprocess.PIPE, cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    status = Path(f"/proc/{process.pid}/status")

    def handles_signals() -> bool:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    until(handles_signals, "the command has begun")
    process.send_signal(signal.SIGHUP)
    graph = Graph()
    graph.add("NoOp", "n")
    write_model(from_meta_graph(MetaGraph(graph)), tmp_path / "m.pb")
    process.communicate((tmp_path / "m.pb").read_bytes(), timeout=HUNG)
    assert process.returncode == 0 and out.exists()
