"""Compiled loops called on arrays, without any graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cpu.native.code import TYPES, Code, Lanes
from toolkit.kernels.cpu.native.compiler import JitCompiler, compiler
from toolkit.kernels.cpu.native.loops import Operand, nest
from toolkit.kernels.cpu.native.numbers import InText, Numbers
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.onednn.library import library, openmp_symbols

Body = Callable[[Code, Sequence[Lanes]], Sequence[Lanes]]


def machine() -> JitCompiler:
    """The compiler, which the test extra installs."""
    found = compiler()
    assert found is not None
    return found


def call(text: str, arrays: Sequence[Any], symbols: dict[str, int] | None = None, numbers: Sequence[int] = ()) -> None:
    """Run a module on the addresses of arrays, and numbers behind them."""
    addresses = (ctypes.c_int64 * (len(arrays) + len(numbers)))(
        *(array.__array_interface__["data"][0] for array in arrays), *numbers
    )
    machine().function(text, symbols or {}).call(ctypes.addressof(addresses))


def operand(array: Any, shape: Sequence[int]) -> Operand:
    """An array as a loop over `shape` goes over it: its own strides, 0 where it is broadcast."""
    spread = np.broadcast_to(array, shape)
    return Operand(TYPES[array.dtype.name], tuple(step // array.itemsize for step in spread.strides))


def run_nest(
    inputs: Sequence[Any], dtypes: Sequence[Any], body: Body, *, calls: bool = False, spread: bool = False,
    in_text: bool = False,
) -> list[Any]:  # fmt: skip
    """The outputs of a nest over the shape that its inputs broadcast to, with guards around each that must survive.

    Args:
        in_text: its sizes are in its text, else it is given them.
    """
    shape = np.broadcast_shapes(*(array.shape for array in inputs))
    size = int(np.prod(shape, dtype=np.int64))
    guarded = [np.full(size + 128, 99, dtype) for dtype in dtypes]
    results = [array[64 : 64 + size].reshape(shape) for array in guarded]
    symbols: dict[str, int] = {}
    if spread:
        assert library() is not None
        symbols = openmp_symbols(*OPENMP)
    numbers = InText() if in_text else Numbers(len(inputs) + len(results))
    text = nest(
        shape, [operand(array, shape) for array in inputs], [operand(array, shape) for array in results], body,
        calls=calls, spread=spread, numbers=numbers,
    )  # fmt: skip
    call(text, [*inputs, *results], symbols, numbers.given)
    for array in guarded:
        sentinel = np.full(64, 99, array.dtype)
        np.testing.assert_array_equal(array[:64], sentinel)
        np.testing.assert_array_equal(array[64 + size :], sentinel)
    return results


def apply(write: Callable[..., Lanes], x: Any) -> Any:
    """A function of one argument."""
    return run_nest([x], [x.dtype], lambda code, given: [write(code, given[0])])[0]
