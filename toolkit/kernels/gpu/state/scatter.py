"""Reading and writing parts of variables on GPUs: rows by number, slices by coordinates, strided slices.

Indices that occur several times take effect one after the other, as on the CPU, whatever the op: no order of threads
shows. Those out of range, which the CPU refuses, are left out; rows read there are zeros.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.arrays.slice import strided_index
from toolkit.kernels.cpu.common import shape_text
from toolkit.kernels.cpu.state.scatter import check_coordinates, check_rows
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.gpu.state.rules import Rule
from toolkit.kernels.gpu.state.updates import blocks_for, index_type, run_rows
from toolkit.kernels.gpu.state.variables import minus, parts, plus
from toolkit.kernels.registry import COMPLEX, FLOATING, INDEX, NUMBER, REAL, UNSIGNED, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables

_BLOCK = 256


def _becomes(cell: Any, value: Any) -> None:
    cell[...] = value


def _times(cell: Any, value: Any) -> None:
    cell *= value


def _over(cell: Any, value: Any) -> None:
    cell /= value


def _least(cell: Any, value: Any) -> None:
    np.minimum(cell, value, out=cell)


def _most(cell: Any, value: Any) -> None:
    np.maximum(cell, value, out=cell)


def _of_unsigned(rule: Rule) -> Rule:
    """The rule for integers without sign: with their first bit turned they are in the order of those with one."""

    def run(cell: Any, value: Any) -> None:
        top = -(1 << (8 * cell.dtype.itemsize - 1))
        cell ^= top
        rule(cell, value ^ top)
        cell ^= top

    return run


_OF_UNSIGNED = {rule: _of_unsigned(rule) for rule in (_least, _most)}


def _rule_of(rule: Rule, dtype: DType) -> Rule:
    return _OF_UNSIGNED.get(rule, rule) if dtype in UNSIGNED else rule


_WIDE = REAL - {dtypes.int32}
#: name to rule and types
_RULES: dict[str, tuple[Rule, frozenset[Any]]] = {
    "Update": (_becomes, _WIDE), "Add": (plus, _WIDE), "Sub": (minus, _WIDE), "Mul": (_times, _WIDE),
    "Div": (_over, FLOATING), "Min": (_least, _WIDE), "Max": (_most, _WIDE),
}  # fmt: skip
_COORDINATES = ("Update", "Add", "Sub", "Min", "Max")


def raw(array: GpuArray) -> GpuArray:
    """The same memory as integers of the size of its elements; of complex128 two for each, in an axis more."""
    size = array.dtype.itemsize
    if size > 8:
        return array.viewed(np.int64, (*array.shape, size // 8))
    return array.viewed(f"int{8 * size}", array.shape)


def _register(name: str) -> None:
    rule, types = _RULES[name]

    def make(op: KernelNode) -> Compute:
        device, dtype, returns_reference = device_of(op.node), op.input_types[2], op.ref_inputs[0]

        def compute(step: StepContext, target: Any, indices: GpuArray, updates: GpuArray) -> Any:
            cell = variables.cell_of(step, target, dtype)
            with cell.lock:
                shape = cells.read(device, cell).shape
                check_rows(cells.read(device, cell), indices, updates)
                if indices.size:
                    array, given, width = cells.writable(device, cell), updates, math.prod(shape[1:])
                    if rule is _becomes:
                        array, given = raw(array), raw(given)
                    run_rows(device, f"Scatter{name}", _rule_of(rule, dtype), [array], given, indices, width)
            return target if returns_reference else None

        return compute

    references, resources = types & FLOATING, types | {dtypes.bool_} if rule is _becomes else types
    kernel(f"Scatter{name}", types={"T": references, "Tindices": INDEX}, kind=Kind.STATEFUL, device="GPU")(make)
    kernel(
        f"ResourceScatter{name}", types={"dtype": resources, "Tindices": INDEX}, kind=Kind.STATEFUL, device="GPU"
    )(make)  # fmt: skip


# -- coordinates -----------------------------------------------------------------------------------------------------


@functools.cache
def _numbers_of_slices(ids: str, depth: int) -> SimtKernel:
    """Row-major numbers of coordinates [n, depth], -1 for those out of range; takes them, rows, sizes, n."""
    k = KernelBuilder(f"slices_{ids}_{depth}", block=_BLOCK)
    coordinates, rows = k.buffer("coordinates", ids), k.buffer("rows", "i64", written=True)
    sizes = [k.scalar(f"size{axis}", "i64") for axis in range(depth)]
    n, zero = k.scalar("n", "i64"), k.number(0, "i64")
    thread = k.global_thread("i64")
    with k.when(k.compare("slt", thread, n)):
        number, inside = zero, k.number(1, "i1")
        first = k.mul(thread, k.number(depth, "i64"))
        for axis, size in enumerate(sizes):
            at = k.convert(k.load(coordinates, k.add(first, k.number(axis, "i64"))), "i64")
            inside = k.both(inside, k.both(k.compare("sge", at, zero), k.compare("slt", at, size)))
            number = k.add(k.mul(number, size), at)
        k.store(rows, thread, k.select(inside, number, k.number(-1, "i64")))
    return k.finish()


def slices(device: CudaDevice, indices: GpuArray, shape: Sequence[int]) -> GpuArray:
    """The row-major numbers [n] of coordinates [..., depth] in the first axes of a shape; -1 out of range."""
    depth = indices.shape[-1]
    count = math.prod(indices.shape[:-1])
    rows = device.empty((count,), "int64")
    if not depth:
        return device.zeros((count,), "int64")
    kernel = _numbers_of_slices(TYPES[indices.dtype.name], depth)
    device.launch(kernel, blocks_for(count), indices, rows, *shape[:depth], count)
    return rows


def _register_coordinates(name: str) -> None:
    rule, types = _RULES[name]
    if name in ("Update", "Add", "Sub"):
        types = types | COMPLEX

    def make(op: KernelNode) -> Compute:
        device, dtype, returns_reference = device_of(op.node), op.input_types[2], op.ref_inputs[0]

        def compute(step: StepContext, target: Any, indices: GpuArray, updates: GpuArray) -> Any:
            cell = variables.cell_of(step, target, dtype)
            with cell.lock:
                shape = cells.read(device, cell).shape
                check_coordinates(shape, indices, updates)
                if updates.size:
                    where = indices.reshaped((*indices.shape, 1)) if indices.ndim == 1 else indices
                    array, given = _as_numbers(cells.writable(device, cell), rule), _as_numbers(updates, rule)
                    count = math.prod(where.shape[:-1])
                    rows = slices(device, where, shape)
                    own = _rule_of(rule, dtype)
                    run_rows(device, f"Scatter{name}", own, [array], given, rows, given.size // count)
            return target if returns_reference else None

        return compute

    both = (f"ScatterNd{name}", f"ResourceScatterNd{name}")
    kernel(*both, types={"T": types, "Tindices": INDEX}, kind=Kind.STATEFUL, device="GPU")(make)


def _as_numbers(array: GpuArray, rule: Rule) -> GpuArray:
    """What a rule is done to: complex numbers are pairs, and what is only written is bytes."""
    if rule is _becomes:
        return raw(array)
    return parts(array)


for _name in _RULES:
    _register(_name)
for _name in _COORDINATES:
    _register_coordinates(_name)


# -- reading ---------------------------------------------------------------------------------------------------------


@functools.cache
def _gather(type: str, ids: str, index: str) -> SimtKernel:
    """Rows of tables, zeros out of range; takes table, numbers, result, its size, width, limit, rows of a table."""
    k = KernelBuilder(f"gather_{type}_{ids}_{index}", block=_BLOCK)
    table, rows, out = k.buffer("table", type), k.buffer("rows", ids), k.buffer("out", type, written=True)
    n, width, limit, group = (k.scalar(name, index) for name in ("n", "width", "limit", "group"))
    thread = k.global_thread(index)
    with k.when(k.compare("slt", thread, n)):
        place = k.div(thread, width)
        row = k.convert(k.load(rows, place), "i64")
        inside = k.both(k.compare("sge", row, k.number(0, "i64")), k.compare("slt", row, k.convert(limit, "i64")))
        with k.when(inside):
            first = k.add(k.mul(k.div(place, group), limit), k.convert(row, index))
            k.store(out, thread, k.load(table, k.add(k.mul(first, width), k.rem(thread, width))))
        with k.otherwise():
            k.store(out, thread, k.number(0, type))
    return k.finish()


def gathered(
    device: CudaDevice, table: GpuArray, rows: GpuArray, shape: tuple[int, ...], limit: int, group: int
) -> GpuArray:
    """Rows of a table, or of several tables of `limit` rows of which each gives `group`, in a shape."""
    out = device.empty(shape, table.dtype)
    source, target = raw(table), raw(out)
    if out.size:
        width = target.size // rows.size
        index = index_type(target.size, source.size)
        kernel = _gather(TYPES[target.dtype.name], TYPES[rows.dtype.name], index)
        device.launch(kernel, blocks_for(target.size), source, rows, target, target.size, width, limit, group)
    return out


_READ = (NUMBER | {dtypes.bool_}) - {dtypes.int32}


@kernel("ResourceGather", types={"dtype": _READ, "Tindices": INDEX}, kind=Kind.STATEFUL, device="GPU")
def resource_gather(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype")
    lead = max(0, int(op.attr("batch_dims")))

    def compute(step: StepContext, handle: Any, indices: GpuArray) -> GpuArray:
        table = cells.read(device, variables.find(step, handle, dtype))
        sizes: tuple[int, ...] = table.shape
        if table.ndim < 1:
            raise InvalidArgumentError("params must be at least 1 dimensional")
        if lead > indices.ndim or lead >= table.ndim or sizes[:lead] != indices.shape[:lead]:
            raise InvalidArgumentError(
                f"params of shape {list(table.shape)} and indices of shape {list(indices.shape)} do not share "
                f"{lead} batch dimension(s)"
            )
        shape = (*indices.shape, *sizes[lead + 1 :])
        return gathered(device, table, indices, shape, sizes[lead], math.prod(indices.shape[lead:]))

    return compute


@kernel("ResourceGatherNd", types={"dtype": _WIDE, "Tindices": INDEX}, kind=Kind.STATEFUL, device="GPU")
def resource_gather_nd(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype")

    def compute(step: StepContext, handle: Any, indices: GpuArray) -> GpuArray:
        table = cells.read(device, variables.find(step, handle, dtype))
        if indices.ndim < 1 or indices.shape[-1] > table.ndim:
            raise InvalidArgumentError(
                f"indices of shape {list(indices.shape)} are no coordinates in params of shape {list(table.shape)}"
            )
        depth = indices.shape[-1]
        rows = slices(device, indices, table.shape)
        shape = (*indices.shape[:-1], *table.shape[depth:])
        limit = math.prod(table.shape[:depth])
        return gathered(device, table, rows, shape, limit, max(1, rows.size))

    return compute


# -- strided slices --------------------------------------------------------------------------------------------------


@functools.cache
def _assign_slice(type: str, rank: int) -> SimtKernel:
    """Writes a tensor into a strided part of another; takes both, sizes, strides of both, where it begins, n."""
    k = KernelBuilder(f"assign_slice_{type}_{rank}", block=_BLOCK)
    target, value = k.buffer("target", type, written=True), k.buffer("value", type)
    sizes, there, here = (
        [k.scalar(f"{name}{axis}", "i64") for axis in range(rank)] for name in ("size", "there", "here")
    )
    offset, n = k.scalar("offset", "i64"), k.scalar("n", "i64")
    rest = k.global_thread("i64")
    with k.when(k.compare("slt", rest, n)):
        to, source = offset, k.number(0, "i64")
        for axis in reversed(range(rank)):
            at = k.rem(rest, sizes[axis])
            rest = k.div(rest, sizes[axis])
            to = k.add(to, k.mul(at, there[axis]))
            source = k.add(source, k.mul(at, here[axis]))
        k.store(target, to, k.load(value, source))
    return k.finish()


def _places(shape: tuple[int, ...]) -> Any:
    """An array of bytes of a shape whose addresses are the numbers of elements; nothing is behind them."""
    strides = np.cumprod([1, *(max(1, size) for size in reversed(shape[1:]))], dtype=np.int64)[::-1]
    base = np.empty(1, np.int8)
    return np.lib.stride_tricks.as_strided(base, shape, strides[: len(shape)].tolist() if shape else ())


@kernel("StridedSliceAssign", "ResourceStridedSliceAssign", types={"T": _READ}, kind=Kind.STATEFUL, device="GPU")
def strided_slice_assign(op: KernelNode) -> Compute:
    build, device, dtype = strided_index(op), device_of(op.node), op.attr("T")
    returns_reference = op.ref_inputs[0]

    def compute(step: StepContext, target: Any, begin: Any, end: Any, strides: Any, value: GpuArray) -> Any:
        cell = variables.cell_of(step, target, dtype)
        with cell.lock:
            shape = cells.read(device, cell).shape
            whole = _places(shape)
            chosen = whole[build(shape, begin, end, strides)]
            try:
                given = np.broadcast_to(_places(value.shape), chosen.shape)
            except ValueError:
                raise InvalidArgumentError(
                    f"Cannot update view of shape {shape_text(chosen)} with a value of shape {shape_text(value)}"
                ) from None
            if chosen.size:
                offset = chosen.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
                _write(device, cells.writable(device, cell), value, chosen, given.strides, offset)
        return target if returns_reference else None

    return compute


def _write(
    device: CudaDevice, target: GpuArray, value: GpuArray, chosen: Any, here: Sequence[int], offset: int
) -> None:
    sizes, there, here = list(chosen.shape), list(chosen.strides), list(here)
    parts = max(1, target.dtype.itemsize // 8)  # of complex128
    if parts > 1:
        sizes, there, here = (
            [*sizes, parts],
            [each * parts for each in there] + [1],
            [each * parts for each in here] + [1],
        )
    axes = [axis for axis, size in enumerate(sizes) if size > 1]
    kernel = _assign_slice(TYPES[raw(target).dtype.name], len(axes))
    count = math.prod(sizes)
    numbers = [each[axis] for each in (sizes, there, here) for axis in axes]
    device.launch(kernel, blocks_for(count), raw(target), raw(value), *numbers, offset * parts, count)
