"""Tensors that the iterations of a loop give, kept by the host until the loop is over; and what is made of all of them.

So a sum of products over iterations is one product over all their rows (`loop_sums`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.ir import relations
from toolkit.compiler.ir.fields import operand, operands
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.errors import InternalError
from toolkit.kernels.cuda.conversions import convert_into
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand, NestStep
from toolkit.kernels.gpu.reductions.axes import reduction_of
from toolkit.kernels.gpu.reductions.launch import collapse, reduce_array
from toolkit.kernels.tensors import F32, row_major

Launch = Callable[..., list[Any]]


class Collection(Operation, mnemonic="gpu_collection"):
    """Nothing yet: what iterations begin with."""

    def computed_by(self) -> str | None:
        return "kept by the host"

    def verify(self) -> Iterator[str]:
        yield from _handles(self.output)


class Collect(Operation, mnemonic="gpu_collect"):
    """A collection with one tensor more.

    Attributes:
        held: the collection.
        item: float32 [rows, columns], or a factor of 16 bits.
        multiplied: a product takes what is collected.
    """

    held: Value = operand()
    item: Value = operand()
    multiplied: bool

    def computed_by(self) -> str | None:
        return "kept by the host"

    def verify(self) -> Iterator[str]:
        yield from _handles(self.held, self.output)
        if len(relations.shape(self.item)) != 2:
            yield f"rows are collected, not {relations.text(self.item)}"


class CollectedProduct(Operation, mnemonic="gpu_collected_product"):
    """The sum of the products of collections' tensors, each first one turned, and of what is added.

    Attributes:
        firsts: collections of tensors [rows, m], whose products stand one below the other.
        second: a collection of tensors [rows, n], as many as in each of the first ones.
        added: float32 [sum of m, n].
        backwards: the first ones have what belongs to the last of the second ones first, as a stack would give it:
            where they are more than the second ones, their last ones count.
        narrow: the type of 16 bits that is multiplied, or "".
    """

    firsts: tuple[Value, ...] = operands()
    second: Value = operand()
    added: Value = operand()
    backwards: bool = False
    narrow: str = ""

    def computed_by(self) -> str | None:
        return f"one product over the rows of all iterations{f', in {self.narrow}' if self.narrow else ''}"

    def verify(self) -> Iterator[str]:
        yield from relations.same("the sum of a loop's products", self.added, self.output)


class CollectedSum(Operation, mnemonic="gpu_collected_sum"):
    """The sum of all rows of a collection's tensors, and of what is added.

    Attributes:
        held: a collection of tensors [rows, n].
        added: float32 [n].
    """

    held: Value = operand()
    added: Value = operand()

    def computed_by(self) -> str | None:
        return "one sum over the rows of all iterations"

    def verify(self) -> Iterator[str]:
        yield from relations.same("the sum of a loop's rows", self.added, self.output)


def _handles(*collections: Value) -> Iterator[str]:
    """Collections are objects of the host's, not tensors."""
    for value in collections:
        if value.dtype is not None:
            yield f"a collection is a handle, not {relations.text(value)}"


@dataclass(slots=True)
class _Kept:
    """A collection that is not empty.

    Attributes:
        before: the collection without its last tensor; None if that is the only one.
        item: its last tensor.
        joined: all of its tensors one behind the other, in either order, once somebody has wanted that.
    """

    before: _Kept | None
    item: GpuArray
    joined: GpuArray | None = None


def _items(held: _Kept) -> list[GpuArray]:
    """The tensors of a collection, the last one first."""
    found: list[GpuArray] = []
    left: _Kept | None = held
    while left is not None:
        found.append(left.item)
        left = left.before
    return found


def _rows(device: CudaDevice, items: Sequence[GpuArray], dtype: Any) -> GpuArray:
    """Tensors one behind the other, as a type, by few launches."""
    if len(items) == 1 and items[0].dtype == dtype:
        return items[0]
    made = device.empty((sum(item.shape[0] for item in items), *items[0].shape[1:]), dtype)
    pairs: list[tuple[GpuArray, GpuArray]] = []
    before = 0
    for item in items:
        pairs.append((item, made.viewed(dtype, item.shape, before)))
        before += math.prod(item.shape) * dtype.itemsize
    convert_into(device, pairs)
    return made


def _collection(device: CudaDevice, operation: Collection) -> Launch:
    return lambda: [None]


def _collect(device: CudaDevice, operation: Collect) -> Launch:
    def launch(held: _Kept | None, item: GpuArray) -> list[Any]:
        return [_Kept(held, item)]

    return launch


def _product(device: CudaDevice, operation: CollectedProduct) -> Launch:
    m, n = relations.shape(operation.output)
    dtype = np.dtype(operation.narrow) if operation.narrow else F32

    backwards = operation.backwards

    def launch(*given: Any) -> list[GpuArray]:
        *firsts, second, added = given
        if second is None:
            return [added]
        seconds = _items(second)
        b = second.joined = _rows(device, seconds if backwards else seconds[::-1], dtype)
        made, before = device.empty((m, n), F32), 0
        for first in firsts:
            items = _items(first)[: len(seconds)] if first is not None else []
            if len(items) < len(seconds):
                raise InternalError(f"{device.node}: a loop takes {len(seconds)} tensors where {len(items)} were kept")
            a = _rows(device, items[::-1], dtype)
            width = a.shape[1]
            part = (width, n), before * n * F32.itemsize
            multiply(
                device, a, b, made.viewed(F32, *part), (width, n, a.shape[0]), ("T", "N"),
                added=added.viewed(F32, *part),
            )  # fmt: skip
            before += width
        return [made]

    return launch


def _sum(device: CudaDevice, operation: CollectedSum) -> Launch:
    shape = relations.shape(operation.output)
    dense = [NestOperand(F32.name, row_major(shape))] * 2
    add = nests.fused([NestStep("AddV2", (0, 1), F32.name)], dense, [2], shape)

    def launch(held: _Kept | None, added: GpuArray) -> list[GpuArray]:
        if held is None:
            return [added]
        rows = _rows(device, _items(held), held.item.dtype) if held.joined is None else held.joined
        reduction = reduction_of("Sum", rows.dtype.name, F32.name)
        found = reduce_array(device, reduction, rows, collapse(rows.shape, (0,)), shape, F32)
        made = device.empty(shape, F32)
        device.launch(add.kernel, add.blocks, found, added, made, *add.numbers)
        return [made]

    return launch


#: by the class of an operation, as `launchers.LAUNCHERS`
COLLECTED_LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    Collection: _collection, Collect: _collect, CollectedProduct: _product, CollectedSum: _sum,
}  # fmt: skip
