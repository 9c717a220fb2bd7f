"""What the writers of machine code write becomes code for 64-bit Arm processors, too, whatever this one is."""

from __future__ import annotations

import itertools
import platform
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.kernels.native.test_operations import ATTRIBUTES, cases, operands_of
from tests.other_processors import compile_for
from toolkit.graph import dtypes
from toolkit.kernels.cpu.memory import zones
from toolkit.kernels.cpu.native import compiler as module
from toolkit.kernels.cpu.native import depthwise, functions, panels, pools, rows, samplers, sums, winograd
from toolkit.kernels.cpu.native.code import TYPES
from toolkit.kernels.cpu.native.compiler import JitCompiler, compiler
from toolkit.kernels.cpu.native.interpolation import algorithms
from toolkit.kernels.cpu.native.iterations import Iterations
from toolkit.kernels.cpu.native.loops import Operand, nest
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.target.rows import AVX2, AVX512, NEON
from toolkit.target.thresholds import TableThresholds

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs LLVM")
_FUNCTIONS = [
    functions.exp, functions.expm1, functions.sigmoid, functions.tanh, functions.log, functions.log1p,
    functions.softplus,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _is_no_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers are told that the processor has no instructions of that kind."""
    monkeypatch.setattr(JitCompiler, "has_avx512", lambda self: False)


def _nest(body: Any, inputs: list[str], output: str, **how: bool) -> str:
    first, *others = (Operand(TYPES[name], (40, 1)) for name in [*inputs, output])
    return nest((7, 40), [first, *others[:-1]], others[-1:], body, **{"calls": False, "spread": False} | how)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("calls", [False, True])
def test_functions(dtype: str, calls: bool) -> None:
    for write in _FUNCTIONS:
        assert not compile_for(_nest(lambda code, x: [write(code, x[0])], [dtype], dtype, calls=calls))  # noqa: B023


def test_functions_that_have_instructions_of_their_own_elsewhere() -> None:
    for write in (functions.quick_sigmoid, functions.erf_float):
        compile_for(_nest(lambda code, x: [write(code, x[0])], ["float32"], "float32"))  # noqa: B023


@pytest.mark.parametrize("op", sorted({op for op, _, _ in cases()}))
def test_operators(op: str) -> None:
    for name, dtype, target in cases():
        if name == op:
            more: dict[str, Any] = dict(ATTRIBUTES.get(op, {}))
            if op == "Cast":
                more["DstT"] = dtypes.from_numpy(np.dtype(target))
            write = OPERATORS[op].write
            body: Callable[..., Any] = lambda code, x: [write(code, *x, **more)]  # noqa: B023, E731
            compile_for(_nest(body, operands_of(op, dtype), target))


def test_nests_over_threads_call_what_they_are_given() -> None:
    text = _nest(lambda code, x: [code.add(*x)], ["float32", "float32"], "float32", spread=True)
    assert compile_for(text) <= set(OPENMP)


@pytest.mark.parametrize("kind,outer,inner", list(itertools.product(["float", "double"], [1, 5], [1, 33])))
def test_sums(kind: str, outer: int, inner: int) -> None:
    assert not compile_for(sums.sums(outer, 40, inner, kind, 0.5)[0])


@pytest.mark.parametrize("tile", [(8, 3), (6, 4), (6, 1), (1, 1)])
def test_panels(tile: tuple[int, int]) -> None:
    """On the target's own tiles and on those of others."""
    assert not compile_for(panels.kernel(panels.Tile(*tile, 1, 4)))
    finished = panels.finishing_kernel(
        panels.Tile(*tile, 1, 4), [panels.OperandForm.COLUMNS], lambda code, x: [functions.quick_sigmoid(code, x[0])]
    )
    compile_for(finished)


def test_products() -> None:
    kinds = [panels.OperandForm.COLUMNS, panels.OperandForm.TENSOR]
    text = panels.product(kinds, lambda code, x: [code.add(code.add(*x[:2]), x[2])], threads=True)
    assert compile_for(text) <= set(OPENMP)


@pytest.mark.parametrize("source,target", [("float", "float"), ("bfloat", "bfloat")])
def test_depthwise(source: str, target: str) -> None:
    window = depthwise.DepthwiseWindow((3, 3), (1, 1), (1, 1), 4, source, target)
    compile_for(depthwise.depthwise(window, 1, lambda code, x: [code.add(x[0], x[1])], threads=True))


@pytest.mark.parametrize("window,exact", [((3, 3), True), ((1, 7), False)])
def test_winograd(window: tuple[int, int], exact: bool) -> None:
    for axes in algorithms(window):
        compile_for(winograd.winograd(axes, adds=True, low=0.0, high=6.0, exact=exact, threads=True))
        compile_for(winograd.winograd_gradient(axes, threads=True))


def test_pools() -> None:
    for sums_too in (False, True):
        pool = pools.MaxPool(2, 4, 4, 32, 2, 2, relu=True, sums=sums_too, threads=2)
        compile_for(pools.max_pool_gradient(pool) if sums_too else pools.max_pool(pool))


def test_rows_of_tables() -> None:
    for size, kind in itertools.product(rows._IDS.values(), ("float", "double", "i32", "i64")):
        compile_for(rows._module(size, "i8", rows._COPY, TableThresholds()))
        for instructions in rows._CHANGES.values():
            if (instruction := instructions[kind not in ("float", "double")]) is not None:
                compile_for(rows._module(size, kind, rows._change(instruction, kind), TableThresholds()))


def test_samplers() -> None:
    for draw, probability in samplers._KINDS.values():
        assert compile_for(samplers._module(draw, probability)) <= {*samplers._LIBRARY, "memset"}


def test_loops() -> None:
    assert not compile_for(Iterations().text())


def test_zones() -> None:
    """The allocator of `GRAPHMILL_GUARD`, whose pages are as large as those of the system."""
    for text in [*zones._FUNCTIONS.values(), zones._CHECK]:
        compile_for(zones._TEXT + text)


def test_products_of_a_processor_fill_its_registers_and_no_more() -> None:
    """Sums, weights of a row and a number of x: what does not fit is written to the stack and read again."""
    for target in (AVX512, AVX2, NEON):
        parts = 16 // target.vectors.lanes
        for tall, wide in target.packed_gemm.tiles if target.packed_gemm.pays else ():
            assert (tall * wide + wide) * parts + 1 <= target.vectors.registers


def test_what_only_one_processor_has_is_found() -> None:
    with pytest.raises(AssertionError, match="only x86"):
        compile_for("declare <16 x float> @llvm.x86.avx512.rcp14.ps.512(<16 x float>, <16 x float>, i16)")
    with pytest.raises(AssertionError, match="LLVM calls"):  # which no C library has
        compile_for("define void @run(ptr %p) {\n  %x = load fp128, ptr %p\n  %y = fadd fp128 %x, %x\n"
                    "  store fp128 %y, ptr %p\n  ret void\n}")  # fmt: skip


def test_intrinsics_of_one_processor_are_written_for_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_used() -> bool:
        text = _nest(lambda code, x: [functions.quick_sigmoid(code, x[0])], ["float32"], "float32")
        return re.search(r"@llvm\.x86\.", text) is not None

    assert not is_used()
    monkeypatch.setattr(JitCompiler, "has_avx512", lambda self: True)
    assert is_used()


def test_a_level_of_arm_is_code_for_every_such_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setenv("GRAPHMILL_CPU", "armv8-a")
    level = module.processor.LEVELS[module.processor.level()]
    text = _nest(lambda code, x: [code.mul(*x)], ["float32", "float32"], "float32")
    assert not compile_for(text, cpu=level.llvm)
