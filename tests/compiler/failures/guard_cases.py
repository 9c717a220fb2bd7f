"""Mistakes that the doors to addresses do not see, for the guard to find: code that goes further than it says.

`python -m tests.compiler.failures.guard_cases CASE ...` makes them in this process, under the GRAPHMILL_GUARD that
it was started with, and prints the error that each ends with. What touches a forbidden page ends the process.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from toolkit import client as gm
from toolkit.compiler.backends.cpu.elementwise import nests
from toolkit.errors import GraphmillError
from toolkit.kernels.cpu.memory import guard
from toolkit.kernels.cpu.memory.addresses import address
from toolkit.kernels.cpu.native import updates
from toolkit.kernels.cpu.onednn import cached, memory
from toolkit.kernels.cpu.onednn.primitive import Primitive
from toolkit.kernels.resources import variables
from toolkit.kernels.tensors import F32
from toolkit.runtime.session import Session
from toolkit.target import rows

CASES: dict[str, Callable[[], Any]] = {}
_BEYOND = 16  # numbers


def _case(run: Callable[[], Any]) -> Callable[[], Any]:
    CASES[run.__name__.lstrip("_")] = run
    return run


def _longer(written: Any) -> Any:
    """The writer of an optimizer's code, for more numbers than the variable has."""

    def write(
        rule: Any, slots: int, place: int, scalars: Any, attributes: Any, dtype: Any, size: int, *rest: Any, **more: Any
    ) -> Any:
        return written(rule, slots, place, scalars, attributes, dtype, size + _BEYOND, *rest, **more)

    return write


def _updated(change: Callable[[Any, Any], Any]) -> None:
    """Run an op that changes a variable of 64 times 4 numbers, which may have a slot."""
    shape = [64, 4]
    with gm.Graph().as_default() as graph:
        cells = [gm.ops.variable_v2(shape=shape, dtype=gm.float32, name=name) for name in ("weights", "slot")]
        first = [gm.ops.assign(cell, gm.constant(np.ones(shape, np.float32))) for cell in cells]
        change(*cells)
    with Session(graph) as running:
        running.run(first)
        for _ in range(2):
            running.run("changed")


@_case
def _fine() -> None:
    """Nothing is wrong."""
    ones = np.ones((64, 4), np.float32)
    _updated(lambda weights, slot: gm.ops.apply_momentum(weights, slot, 0.5, gm.constant(ones), 0.5, name="changed"))


@_case
def _dense_update() -> None:
    with mock.patch.object(updates, "_written", _longer(updates._written)):  # pyright: ignore[reportPrivateUsage] -- the mistake is made there
        _updated(
            lambda weights, slot: gm.ops.apply_momentum(
                weights, slot, 0.5, gm.constant(np.ones((64, 4), np.float32)), 0.5, name="changed"
            )
        )


@_case
def _rows_update() -> None:
    rows = np.arange(64, dtype=np.int32)
    with mock.patch.object(updates, "_written", _longer(updates._written)):  # pyright: ignore[reportPrivateUsage] -- the mistake is made there
        _updated(
            lambda weights, slot: gm.ops.sparse_apply_adagrad(
                weights, slot, 0.5, gm.constant(np.ones((64, 4), np.float32)), gm.constant(rows), name="changed"
            )
        )


def _overrun(cell: variables.Cell, writable: Any = variables.writable) -> Any:
    """A variable's array, behind which somebody has written."""
    array = writable(cell)
    ctypes.memset(address(array, array.nbytes) + array.nbytes, 0, 4)
    return array


@_case
def _assign_add() -> None:
    ones = np.ones((64, 4), np.float32)
    with mock.patch.object(variables, "writable", _overrun):
        _updated(lambda weights, _: gm.ops.assign_add(weights, gm.constant(ones), name="changed"))


@_case
def _scatter() -> None:
    row, ones = np.array([3], np.int32), np.ones((1, 4), np.float32)
    with mock.patch.object(variables, "writable", _overrun):
        _updated(lambda weights, _: gm.ops.scatter_add(weights, gm.constant(row), gm.constant(ones), name="changed"))


@_case
def _nest() -> None:
    """A compiled loop over a tensor of the arena goes on behind its end."""

    def longer(shape: Any, *rest: Any, **named: Any) -> str:
        return written((*shape[:-1], shape[-1] + _BEYOND), *rest, **named)

    written = nests.nest
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64], name="x")
        gm.ops.tanh(gm.ops.exp(x) * 2.0, name="y")
    with mock.patch.object(nests, "nest", longer), Session(graph) as running:
        running.run("y:0", {"x:0": np.ones(64, np.float32)})


def _nothing(primitive: Primitive, argument: int) -> int:
    """The bytes that a primitive needs of an argument, wrongly."""
    return 0


@_case
def _read_by_onednn() -> None:
    """A primitive reads a tensor that is smaller than its layout."""
    source = memory.dense((64, 64), F32)
    copied = cached.conversion(source, memory.dense((64, 64), F32), rows.current())
    small, target = (guard.empty((rows, 64), F32, name) for rows, name in ((32, "the small one"), (64, "the other")))
    blind = mock.patch.object(Primitive, "needed", _nothing)
    with blind, mock.patch.object(memory.Desc, "size", 32 * 64 * 4):
        guard.enter("copied")
        copied._run([small, target])  # pyright: ignore[reportPrivateUsage] -- `run` would copy
    guard.check("copied")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            CASES[name]()
            print(f"{name}: nothing", flush=True)
        except GraphmillError as error:
            print(f"{name}: {error}", flush=True)
