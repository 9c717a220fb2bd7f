"""Matrix products with constant weights, and 1x1 convolutions, which are such products, by `native.panels`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span, Workspace, whole
from toolkit.compiler.backends.cpu.emission.interning import packing
from toolkit.compiler.backends.cpu.networks.epilogues import Epilogue, Host, can_follow, epilogue_of, operands_of
from toolkit.compiler.backends.cpu.networks.operations import GemmShare, GemmSplit, PackedGemm
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.panels import OperandForm, Tile, finishing_kernel, kernel, pack, product
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.tensors import F32
from toolkit.target.target import Target
from toolkit.target.thresholds import PackedGemmThresholds


class GemmProblem(NamedTuple):
    """The sizes of a product."""

    rows: int
    inner: int
    columns: int

    @staticmethod
    def of(operation: Host) -> GemmProblem:
        y = operation.output
        assert y.shape is not None
        inner = operation.weights.shape[-2]
        return GemmProblem(y.size // y.shape[-1], inner, y.shape[-1])


def lower_panels(block: Block, threads: int, target: Target) -> None:
    """Make packed products of matrix products and 1x1 convolutions where that pays.

    Args:
        threads: that a plan may use.
    """
    machine, sizes = None, target.packed_gemm
    if not sizes.pays:
        return
    for operation in block.operations:
        if not isinstance(operation, Convolution | MatMul) or not is_product(operation):
            continue
        work = GemmProblem.of(operation)
        if work.rows < sizes.least_rows or math.prod(work) < sizes.least_work:
            continue
        machine = machine or compiler()
        if machine is None or (threads > 1 and not openmp_symbols(*OPENMP)):
            return
        split = _split(work, threads if math.prod(work) >= target.threads.product else 1, sizes)
        packed = operation.become(PackedGemm, **gemm_fields(operation), split=split)
        recipe = Recipe.of(packed, sizes, threads=len(split.shares) > 1)
        machine.prepare(list(recipe.kernels.values()))


def gemm_fields(operation: Convolution | MatMul | PackedGemm) -> dict[str, Any]:
    """What a packed product needs of an operation that is one."""
    weights = operation.weights.reshape(operation.weights.shape[-2:])
    factor = operation.left if isinstance(operation, MatMul) else operation.input
    return {"input": factor, "weights": weights, "bias": operation.bias, "post_ops": operation.post_ops}


def is_product(operation: Convolution | MatMul) -> bool:
    """Whether an operation is a product that can be had here."""
    if type(operation) is MatMul:
        if operation.weights is None or operation.transpose_left or operation.first_column is not None:
            return False
    elif type(operation) is Convolution:
        windows = operation.windows
        if operation.weights is None or operation.gates is not None or not operation.is_pointwise:
            return False
        if set(windows.strides) != {1} or any(map(any, windows.padding)):
            return False
    else:
        return False
    values = [*operation.inputs, operation.output]
    return all(value.dtype == F32 for value in values) and can_follow(operation)


# -- how the work is shared --------------------------------------------------------------------------------------


def choose(work: GemmProblem, heights: Sequence[int], sizes: PackedGemmThresholds) -> GemmSplit:
    """The tile for one thread's products of so many rows each, with a share for each height."""
    found = _split(work, 1, sizes)
    _, _, first, last = found.shares[0]
    return replace(found, shares=tuple((0, height, first, last) for height in heights))


def _split(work: GemmProblem, threads: int, sizes: PackedGemmThresholds) -> GemmSplit:
    """The tile, and the shares, that take the shortest time."""
    found: list[GemmSplit] = []
    for rows, vectors in sizes.tiles:
        panels, tiles = -(-work.columns // (LANES * vectors)), -(-work.rows // rows)
        edges = [min(work.rows, tiles * i // threads * rows) for i in range(threads + 1)]
        cuts = (
            [(first, last, 0, panels) for first, last in pairwise(edges)],
            [(0, work.rows, panels * i // threads, panels * (i + 1) // threads) for i in range(threads)],
        )
        for cut in cuts:
            shares = tuple(share for share in cut if share[0] < share[1] and share[2] < share[3])
            cost = max(_cost(rows, vectors, work.inner, share, sizes) for share in shares)
            found.append(GemmSplit(rows, vectors, shares, cost))
    return min(found, key=lambda split: split.cost)


def _cost(rows: int, vectors: int, inner: int, share: GemmShare, sizes: PackedGemmThresholds) -> float:
    """Cycles of a share: kernels, what goes on between them, and the first look at weights and inputs."""
    first, last, panel, end = share
    full, rest = divmod(last - first, rows)
    iterations = full * _iteration(rows, vectors, sizes) + (_iteration(rest, vectors, sizes) if rest else 0)
    between = (full + bool(rest)) * (sizes.call + sizes.written * rows * vectors)
    products = (end - panel) * (inner * (iterations + vectors * sizes.read) + between)
    return products + (last - first) * inner / LANES * sizes.read


def _iteration(rows: int, vectors: int, sizes: PackedGemmThresholds) -> float:
    """Cycles for one row of a panel: of some products, or some loads, at a time, or of one sum after the other."""
    return max(rows * vectors / sizes.at_once, (rows + vectors) / sizes.at_once, sizes.latency)


def write_panels(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function."""
    assert isinstance(operation, PackedGemm)
    shares = operation.split.shares
    made = Product(emitter, operation, threads=len(shares) > 1)
    emitter.execute_native(made.function, made.operands(operation.input, operation.output, shares))


class Recipe(NamedTuple):
    """What a product is compiled to.

    Attributes:
        block: rows of x that are multiplied with a panel before the next.
        depth: rows of a panel that are multiplied at a time.
        kernels: modules for so many rows.
        whole: the module that calls them.
    """

    block: int
    depth: int
    kernels: dict[int, str]
    whole: str

    @staticmethod
    def of(operation: PackedGemm, sizes: PackedGemmThresholds, *, threads: bool) -> Recipe:
        """
        Args:
            threads: the shares are spread over threads.
        """
        split, work, epilogue = operation.split, GemmProblem.of(operation), epilogue_of(operation)
        wide = LANES * split.vectors
        heights = [last - first for first, last, _, _ in split.shares]
        block = min(sizes.block, -(-max(heights) // split.rows) * split.rows)
        calls = -(-min(block, max(heights)) // split.rows)
        if 4 * work.rows * work.columns > sizes.large and 4 * work.inner * work.columns <= sizes.resident:
            block = split.rows  # rows of the output are written from end to end
        depth = work.inner
        if work.inner > sizes.most_depth:
            depth = -(-work.inner // -(-work.inner // sizes.depth))
            depth = -(-depth // sizes.unrolled) * sizes.unrolled
        finishes = depth == work.inner and work.columns % wide == 0
        ahead = 2 if 2 * calls >= sizes.unrolled * split.vectors else split.vectors
        tiles: list[Tile] = []
        if max(heights) >= split.rows:
            is_even = work.inner % sizes.unrolled == 0
            tiles.append(Tile(split.rows, split.vectors, ahead, unrolled=sizes.unrolled, is_even=is_even))
        for rest in sorted({height % split.rows for height in heights} - {0}):
            # what is left behind the last whole tile is little: its kernel is made so that it is compiled quickly
            tiles.append(Tile(rest, split.vectors, 0, unrolled=1, is_even=True))
        kernels = {tile.rows: _finishing(tile, epilogue) if finishes else kernel(tile) for tile in tiles}
        whole = _product(None if finishes else epilogue, len(epilogue.kinds), threads=threads)
        return Recipe(block, depth, kernels, whole)


class Product:
    """A product as it is called.

    Args:
        threads: the shares are spread over threads.

    Attributes:
        function: takes `operands`.
        sums: bytes of the workspace for each share.
    """

    def __init__(self, emitter: Emitter, operation: PackedGemm, *, threads: bool):
        machine = compiler()
        assert machine is not None
        split, work = operation.split, GemmProblem.of(operation)
        recipe = Recipe.of(operation, emitter.target.packed_gemm, threads=threads)
        wide = LANES * split.vectors
        addresses = np.zeros(split.rows, np.int64)
        for rows, text in recipe.kernels.items():
            addresses[rows - 1] = emitter.kept(machine.function(text, {})).address
        self._emitter = emitter
        self._numbers = [work.inner, work.columns, split.rows, wide, recipe.depth, recipe.block]
        packed = emitter.kept(packing(operation.weights, (pack, wide), lambda: pack(operation.weights, wide)))
        self._weights, self._kernels = emitter.kept(packed.result), emitter.kept(addresses)
        self._others = operands_of(emitter, operation)
        self.sums = 4 * recipe.block * wide
        self.function = machine.function(recipe.whole, openmp_symbols(*OPENMP) if threads else {})

    def operands(
        self, x: Value, y: Value | Workspace, shares: Sequence[GemmShare], first: int = 0, offset: int = 0
    ) -> list[Region]:
        """Where everything is, for some shares.

        Args:
            first: bytes from the start of the workspace to sums.
            offset: bytes from `y` to where its first row would be.
        """
        kept = self._emitter.kept
        numbers = kept(np.array([len(shares), *self._numbers], np.int64))
        inner, columns = self._numbers[:2]
        start, stop = min(share[0] for share in shares), max(share[1] for share in shares)
        regions: list[Region] = [
            Span(x, 4 * stop * inner, 4 * start * inner), whole(self._weights),
            Span(y, 4 * stop * columns, 4 * start * columns, offset), whole(self._kernels), whole(numbers),
            *self._others(stop),
        ]  # fmt: skip
        for index, share in enumerate(shares):
            sums = Workspace(first + index * self.sums)
            regions += [Span(sums, self.sums), whole(kept(np.array(share, np.int64)))]
        self._emitter.workspace = max(self._emitter.workspace, first + self.sums * len(shares))
        return regions


@functools.cache
def _finishing(tile: Tile, epilogue: Epilogue) -> str:
    return finishing_kernel(tile, epilogue.kinds, epilogue.write)


@functools.cache
def _product(epilogue: Epilogue | None, operands: int, *, threads: bool) -> str:
    """
    Args:
        epilogue: None where kernels have it.
        operands: of the epilogue, wherever it is.
    """
    kinds = epilogue.kinds if epilogue else [OperandForm.TENSOR] * operands
    return product(kinds, epilogue.write if epilogue else None, threads=threads)
