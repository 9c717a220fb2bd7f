"""Modules are compiled once, kept while they may be wanted, and code is there as long as somebody may call it."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from toolkit import Session
from toolkit import client as gm
from toolkit.errors import UsageError
from toolkit.kernels.cpu.native import compiler as module
from toolkit.kernels.cpu.native.compiler import Function, JitCompiler, compiler
from toolkit.target import processor

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(compiler() is None, reason="needs LLVM")


def _text(number: int) -> str:
    return f"""
define void @run(ptr %p) {{
  %v = load float, ptr %p
  %w = fadd float %v, {float(number)}
  store float %w, ptr %p
  ret void
}}
"""


def _adds(function: Function) -> float:
    array = np.zeros(1, np.float32)
    function.call(array.ctypes.data)
    return float(array[0])


def test_the_same_text_is_compiled_once() -> None:
    own = JitCompiler()
    assert own.function(_text(1), {}) is own.function(_text(1), {})
    assert own.function(_text(1), {}) is not own.function(_text(2), {})


def test_functions_go_and_others_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than are kept: the oldest go, what somebody holds stays, what was gone is compiled again."""
    monkeypatch.setattr(module, "_MAX_FUNCTIONS", 8)
    own = JitCompiler()
    held, call = own.function(_text(1), {}), own.function(_text(2), {}).call
    for number in range(3, 60):
        assert _adds(own.function(_text(number), {})) == number
    gc.collect()
    array = np.zeros(1, np.float32)
    call(array.ctypes.data)
    assert array[0] == 2.0 and _adds(held) == 1.0
    again = own.function(_text(1), {})
    assert again is not held and _adds(again) == 1.0


def test_what_is_prepared_is_there_when_it_is_wanted() -> None:
    own = JitCompiler()
    own.prepare([_text(number) for number in range(1, 20)])
    own.prepare([_text(3), "this is no code"])  # whose error comes when somebody asks for it
    for number in range(19, 0, -1):
        assert _adds(own.function(_text(number), {})) == number
    with pytest.raises(RuntimeError):
        own.function("this is no code", {})


def test_code_that_is_wrong_is_an_error() -> None:
    with pytest.raises(RuntimeError):
        JitCompiler().function("define void @run(ptr %p) {\n  store float %unknown, ptr %p\n  ret void\n}", {})


#: what registers of the widest kind are called that a level has, and those that it must not use
_REGISTERS = {
    "x86-64-v2": ("xmm", "[yz]mm"),
    "x86-64-v3": ("ymm", "zmm"),
    "x86-64-v4": ("[yz]mm", None),
    "armv8-a": (r"v\d+\.4s", r"z\d+\.s"),
}
_OWN = [name for name, level in processor.LEVELS.items() if level.machine == processor.machine()]


@pytest.mark.parametrize("level", _OWN)
def test_levels_of_processors(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("GRAPHMILL_CPU", level)
    own = JitCompiler()
    assert own.has_avx512() == (level == "x86-64-v4")
    vector = "<16 x float>"
    assembly = own.assembly(
        f"define void @run(ptr %p) {{\n  %v = load {vector}, ptr %p\n  %w = fadd {vector} %v, %v\n"
        f"  store {vector} %w, ptr %p\n  ret void\n}}"
    )
    used, absent = _REGISTERS[level]
    assert re.search(used, assembly)
    assert absent is None or not re.search(absent, assembly)


def test_an_unknown_level_is_a_mistake(tmp_path: Path) -> None:
    code = (
        "import numpy as np\nfrom toolkit import Session, client as gm\n"
        "with gm.Graph().as_default() as graph:\n"
        "    x = gm.placeholder(gm.float32, [1000], name='x')\n    gm.tanh(x * 2.0, name='y')\n"
        "with Session(graph) as session:\n    session.run('y:0', {'x:0': np.zeros(1000, np.float32)})\n"
    )
    environment = os.environ | {"GRAPHMILL_CPU": "i386", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert f"GRAPHMILL_CPU is 'i386'; expected {', '.join(_OWN)}" in done.stderr


def test_an_unknown_level_is_told_before_a_node_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_CPU", "i386")
    with pytest.raises(UsageError, match=r"^GRAPHMILL_CPU is 'i386'"):
        Session(gm.Graph())
