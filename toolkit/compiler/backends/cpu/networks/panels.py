"""Matrix products with constant weights, and 1x1 convolutions, which are such products, by `native.panels`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import ALONE, Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span, Workspace, whole
from toolkit.compiler.backends.cpu.networks.epilogues import Epilogue, can_follow, epilogue_of, operands_of
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.panels import UNROLLED, Kind, Tile, finishing_kernel, kernel, pack, product
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32

_TILES = ((8, 3), (6, 4), (8, 2), (8, 1))  # rows and vectors
_DEPTH, _MOST_DEPTH = 256, 576  # rows of a panel: with three vectors 256 fill the first cache; a few more do no harm
_BLOCK = 240  # rows of x, a multiple of every tile's
_LEAST_ROWS = 16  # below, weights are not used often enough for anything to be done in the meantime
_LEAST = 1 << 20  # multiplications
#: cycles, measured: to call a kernel, to write a vector, to read one that is in a farther cache
_CALL, _WRITTEN, _READ = 40, 5, 3
_LARGE = 8 << 20  # bytes of an output that no cache holds
_RESIDENT = 1 << 18  # bytes of weights that the second cache holds beside all else

#: the first row, the one behind the last, and panels likewise
Share = tuple[int, int, int, int]


class Split(NamedTuple):
    """How a product is made.

    Attributes:
        rows, vectors: of a tile.
        shares: for a thread each.
        cost: of the longest share, in multiplications of vectors.
    """

    rows: int
    vectors: int
    shares: tuple[Share, ...]
    cost: float

    @property
    def panels(self) -> int:
        """How many there are."""
        return max(share[3] for share in self.shares)


class Work(NamedTuple):
    """The sizes of a product."""

    rows: int
    inner: int
    columns: int

    @staticmethod
    def of(operation: Operation) -> Work:
        y = operation.output
        assert y.shape is not None
        inner = _weights(operation).shape[0]
        return Work(y.size // y.shape[-1], inner, y.shape[-1])


def lower_panels(block: Block, threads: int) -> None:
    """Turn "matmul" and "conv" into "panels" where that pays; attrs split.

    Args:
        threads: that a plan may use.
    """
    machine = None
    for operation in block.operations:
        if operation.kind == "panels" or not is_product(operation):
            continue
        work = Work.of(operation)
        if work.rows < _LEAST_ROWS or math.prod(work) < _LEAST:
            continue
        machine = machine or compiler()
        if machine is None or not machine.has_avx512() or (threads > 1 and not openmp_symbols(*OPENMP)):
            return
        split = operation.attrs["split"] = _split(work, threads if math.prod(work) >= ALONE else 1)
        operation.kind = "panels"
        recipe = Recipe.of(operation, split, threads=len(split.shares) > 1)
        machine.prepare(list(recipe.kernels.values()))


def _weights(operation: Operation) -> Any:
    """[inner, columns]"""
    attrs = operation.attrs
    if operation.kind == "matmul" or "filter" not in attrs:
        return attrs["weights"]
    found = attrs["filter"]
    return found.reshape(found.shape[-2:])


def is_product(operation: Operation) -> bool:
    """Whether an operation is a product that can be had here."""
    attrs = operation.attrs
    match operation.kind:
        case "panels":
            return True
        case "matmul":
            if attrs["weights"] is None or attrs["transpose_a"] or "columns" in attrs:
                return False
        case "conv":
            known = attrs["filter"]
            if known is None or set(known.shape[:-2]) != {1} or attrs["groups"] != 1 or attrs["depthwise"]:
                return False
            if attrs.get("gated") or set(attrs["strides"]) != {1} or any(map(any, attrs["pads"])):
                return False
        case _:
            return False
    values = [*operation.inputs, operation.output]
    return all(value.dtype == F32 for value in values) and can_follow(operation)


# -- how the work is shared --------------------------------------------------------------------------------------


def choose(work: Work, heights: Sequence[int]) -> Split:
    """The tile for one thread's products of so many rows each, with a share for each height."""
    found = _split(work, 1)
    _, _, first, last = found.shares[0]
    return found._replace(shares=tuple((0, height, first, last) for height in heights))


def _split(work: Work, threads: int) -> Split:
    """The tile, and the shares, that take the shortest time."""
    found: list[Split] = []
    for rows, vectors in _TILES:
        panels, tiles = -(-work.columns // (LANES * vectors)), -(-work.rows // rows)
        edges = [min(work.rows, tiles * i // threads * rows) for i in range(threads + 1)]
        cuts = (
            [(first, last, 0, panels) for first, last in pairwise(edges)],
            [(0, work.rows, panels * i // threads, panels * (i + 1) // threads) for i in range(threads)],
        )
        for cut in cuts:
            shares = tuple(share for share in cut if share[0] < share[1] and share[2] < share[3])
            cost = max(_cost(rows, vectors, work.inner, share) for share in shares)
            found.append(Split(rows, vectors, shares, cost))
    return min(found, key=lambda split: split.cost)


def _cost(rows: int, vectors: int, inner: int, share: Share) -> float:
    """Cycles of a share: kernels, what goes on between them, and the first look at weights and inputs."""
    first, last, panel, end = share
    full, rest = divmod(last - first, rows)
    turns = full * _turn(rows, vectors) + (_turn(rest, vectors) if rest else 0)
    between = (full + bool(rest)) * (_CALL + _WRITTEN * rows * vectors)
    return (end - panel) * (inner * (turns + vectors * _READ) + between) + (last - first) * inner / LANES * _READ


def _turn(rows: int, vectors: int) -> float:
    """Cycles for one row of a panel: of two products, or two loads, at a time, or of one sum after the other."""
    return max(rows * vectors / 2, (rows + vectors) / 2, 4.0)


def write_panels(emitter: Emitter, operation: Operation) -> None:
    """The call of the compiled function."""
    split: Split = operation.attrs["split"]
    made = Product(emitter, operation, split, threads=len(split.shares) > 1)
    emitter.execute_native(made.function, made.operands(operation.inputs[0], operation.output, split.shares))


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
    def of(operation: Operation, split: Split, *, threads: bool) -> Recipe:
        """
        Args:
            threads: the shares are spread over threads.
        """
        work, wide, epilogue = Work.of(operation), LANES * split.vectors, epilogue_of(operation)
        heights = [last - first for first, last, _, _ in split.shares]
        block = min(_BLOCK, -(-max(heights) // split.rows) * split.rows)
        calls = -(-min(block, max(heights)) // split.rows)
        if 4 * work.rows * work.columns > _LARGE and 4 * work.inner * work.columns <= _RESIDENT:
            block = split.rows  # rows of the output are written from end to end
        depth = work.inner
        if work.inner > _MOST_DEPTH:
            depth = -(-work.inner // -(-work.inner // _DEPTH))
            depth = -(-depth // UNROLLED) * UNROLLED
        finishes = depth == work.inner and work.columns % wide == 0
        ahead = 2 if 2 * calls >= UNROLLED * split.vectors else split.vectors
        tiles: list[Tile] = []
        if max(heights) >= split.rows:
            tiles.append(Tile(split.rows, split.vectors, ahead, is_even=work.inner % UNROLLED == 0))
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

    def __init__(self, emitter: Emitter, operation: Operation, split: Split, *, threads: bool):
        machine = compiler()
        assert machine is not None
        work, wide, recipe = Work.of(operation), LANES * split.vectors, Recipe.of(operation, split, threads=threads)
        addresses = np.zeros(split.rows, np.int64)
        for rows, text in recipe.kernels.items():
            addresses[rows - 1] = emitter.kept(machine.function(text, {})).address
        self._emitter = emitter
        self._numbers = [work.inner, work.columns, split.rows, wide, recipe.depth, recipe.block]
        self._weights, self._kernels = emitter.kept(pack(_weights(operation), wide)), emitter.kept(addresses)
        self._others = operands_of(emitter, operation)
        self.sums = 4 * recipe.block * wide
        self.function = machine.function(recipe.whole, openmp_symbols(*OPENMP) if threads else {})

    def operands(
        self, x: Value, y: Value | Workspace, shares: Sequence[Share], first: int = 0, offset: int = 0
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
    kinds = epilogue.kinds if epilogue else [Kind.TENSOR] * operands
    return product(kinds, epilogue.write if epilogue else None, threads=threads)
