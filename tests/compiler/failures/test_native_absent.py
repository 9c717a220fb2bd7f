"""Machines without LLVM, without oneDNN, without either; and what a person interrupts. In processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.patience import HUNG

ROOT = Path(__file__).parents[3]
_BLOCKED = """
import sys
sys.modules["llvmlite"] = None  # importing it fails
"""
_GRAPH = """
import numpy as np
from toolkit import client as gm
from toolkit.runtime.session import Session
with gm.Graph().as_default() as graph:
    x = gm.placeholder(gm.float32, [300, 200], name="x")
    y = gm.ops.tanh(gm.ops.exp(x * 0.1) + gm.ops.softplus(x))
    first, second = gm.ops.split(1, y, 2)
    z = gm.while_loop(lambda i, _: i < 50, lambda i, a: [i + 1, gm.ops.tanh(a + y * 0.5)], [gm.constant(0), y])[1]
    w = gm.ops.relu(gm.ops.mat_mul(first, second, transpose_b=True))
    v = gm.ops.sum(gm.ops.neg(gm.ops.square(first) - second), [1])
    fetches = [gm.ops.sum(z, [0, 1]), v, gm.ops.mean(w, [0, 1])]
feeds = {"x:0": np.linspace(-2, 2, 60000, dtype=np.float32).reshape(300, 200)}
"""
_RUN = """
with Session(graph, threads=2) as session:
    print(sum("machine code" in line for line in session.explain(fetches, feeds)))
    for value in (session.run(fetches, feeds), session.run(fetches, feeds))[1]:
        print(float(np.sum(value, dtype=np.float64)))
"""


def _told(tmp_path: Path, *, blocked: bool, **environment: str) -> list[float]:
    script = tmp_path / "run.py"
    script.write_text((_BLOCKED if blocked else "") + _GRAPH + _RUN, encoding="utf8")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GRAPHMILL")}
    kept |= {"GRAPHMILL_SEGMENTS": "strict", "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([sys.executable, str(script)], env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return [float(line) for line in done.stdout.split()]


def test_the_results_are_there_whatever_is_installed(tmp_path: Path) -> None:
    compiled = _told(tmp_path, blocked=False)
    others = [
        _told(tmp_path, blocked=True), _told(tmp_path, blocked=False, GRAPHMILL_NATIVE="off"),
        _told(tmp_path, blocked=True, GRAPHMILL_ONEDNN="/nowhere/libdnnl.so.3"),
        _told(tmp_path, blocked=False, GRAPHMILL_ONEDNN="/nowhere/libdnnl.so.3"),
    ]  # fmt: skip
    assert compiled[0] >= 2 and others[3][0] >= 2  # a chain and a loop at least
    assert [other[0] for other in others[:3]] == [0, 0, 0]
    made: dict[str, Any] = {}
    exec(_GRAPH, made)
    far = perturbation.allowed(made["graph"], made["fetches"], made["feeds"])
    for other in others:
        for mine, wanted, reach in zip(other[1:], compiled[1:], far, strict=True):
            tolerance.assert_within(mine, wanted, np.sum(reach))  # the sums are exact beside it


@pytest.mark.tensorflow
def test_an_endless_loop_is_interrupted(tf: ModuleType, tmp_path: Path) -> None:
    """The first time it may end its step, the second time it must stop."""
    v1: Any = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder("float32", [8, 8], name="x")
        made = v1.while_loop(lambda a: v1.reduce_sum(a) < 1e30, lambda a: (v1.tanh(v1.matmul(a, x)),), [x])
        v1.identity(made, name="out")
    given = tmp_path / "x.npy"
    np.save(given, np.full((8, 8), 0.1, np.float32))
    model = tmp_path / "endless.pb"
    model.write_bytes(graph.as_graph_def().SerializeToString())
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", "run", str(model), "--fetch", "out:0", "--feed", f"x={given}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        # a shell's background jobs ignore SIGINT, and so would their children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    # until it has computed for longer than it takes to start
    ticks = os.sysconf("SC_CLK_TCK")
    stat = Path(f"/proc/{process.pid}/stat")
    while process.poll() is None and int(stat.read_text().rsplit(")", 1)[1].split()[11]) < 3 * ticks:
        time.sleep(0.05)
    try:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "again to stop at once" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=HUNG)
    finally:
        process.kill()
    assert "Traceback" not in told
    assert process.returncode == 130, told


_SMALL = """
import numpy as np
from toolkit import client as gm
from toolkit.runtime.session import Session
with gm.Graph().as_default() as graph:
    x = gm.placeholder(gm.float32, [8, 4], name="x")
    y = gm.ops.tanh(gm.ops.exp(x * 0.1) + x)
with Session(graph) as session:
    session.run(y, {"x:0": np.zeros((8, 4), np.float32)})
with open("/proc/self/maps") as maps:
    print(int("libdnnl" in maps.read()))
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux to see what is loaded")
def test_small_programs_do_not_load_onednn(tmp_path: Path) -> None:
    script = tmp_path / "small.py"
    script.write_text(_SMALL, encoding="utf8")
    # a process that starts slowly asks OpenMP, which comes with oneDNN, how many threads its first step may use, unless
    # it was told
    told = {"OMP_NUM_THREADS": "1", "GRAPHMILL_SEGMENTS": "strict", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, **told}, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
