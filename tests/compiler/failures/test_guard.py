"""Code that goes further than it says is found by red zones, and where they do not see it by forbidden pages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library

ROOT = Path(__file__).resolve().parents[3]
needs_onednn = pytest.mark.skipif(library() is None, reason="oneDNN is not installed, or switched off")
needs_native = pytest.mark.skipif(compiler() is None, reason="what is compiled can go wrong only where LLVM is")


def _run(mode: str, *cases: str) -> subprocess.CompletedProcess[str]:
    """Make mistakes in a process that was started with a guard."""
    command = [sys.executable, "-m", "tests.compiler.failures.guard_cases", *cases]
    environment = os.environ | {"GRAPHMILL_GUARD": mode, "GRAPHMILL_SEGMENTS": "strict", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)


@needs_native
def test_zones_around_variables_and_tensors() -> None:
    ended = _run("on", "dense_update", "rows_update", "assign_add", "scatter", "nest", "fine")
    assert ended.returncode == 0, ended.stderr
    # computing with a zone's numbers makes every other of them quiet: a bit in 8 of 16
    updated = "node 'changed': 8 bytes outside the variable 'slot' were written, the first 1026 bytes"
    overrun = "node 'changed': 4 bytes outside the variable 'weights' were written, the first 1024 bytes"
    computed = "node 'y': 8 bytes outside the output of 'y' were written, the first 258 bytes"
    assert ended.stdout.splitlines() == [
        f"dense_update: {updated} from its start; it has 1024; some outside the variable 'weights' as well",
        f"rows_update: {updated} from its start; it has 1024; some outside the variable 'weights' as well",
        f"assign_add: {overrun} from its start; it has 1024",
        f"scatter: {overrun} from its start; it has 1024",
        f"nest: {computed} from its start; it has 256",
        "fine: nothing",
    ]


#: the case, the node, what lies before the page (which of two is touched first, the code generator decides by the
#: processor), and its bytes
_FAULTS = [
    ("dense_update", "changed", ("the variable 'slot'", "the variable 'weights'"), 1024),
    ("nest", "y", ("the output of 'y'",), 256),
    pytest.param("read_by_onednn", "copied", ("the small one",), 8192, marks=needs_onednn),
]


@needs_native
@pytest.mark.skipif(sys.platform != "linux", reason="forbidden pages need Linux")
@pytest.mark.parametrize(("case", "node", "names", "size"), _FAULTS)
def test_pages_behind_variables_and_tensors(case: str, node: str, names: tuple[str, ...], size: int) -> None:
    ended = _run("pages", "fine", case)
    assert ended.returncode == -signal.SIGSEGV
    assert ended.stdout.splitlines() == ["fine: nothing"]
    told = f"graphmill guard: node '{node}': memory outside (.*) was touched, (.*) bytes from its start; it has {size}"
    found = [match for line in ended.stderr.splitlines() if (match := re.fullmatch(told, line))]
    assert len(found) == 1, ended.stderr
    assert found[0][1] in names
    # 16 numbers are one register or several, of which the code generator decides what comes first
    assert size <= int(found[0][2]) < size + 64
    assert "Fatal Python error: Segmentation fault" in ended.stderr  # and where each thread was


def test_a_mode_that_there_is_not() -> None:
    ended = _run("page", "fine")
    assert ended.returncode == 1
    assert "GRAPHMILL_GUARD is 'page'; it can be on, pages or off" in ended.stderr
