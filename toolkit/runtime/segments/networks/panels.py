"""Matrix products with constant weights, and 1x1 convolutions, which are such products, by `native.panels`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import Compiler, Function, compiler
from toolkit.kernels.cpu.native.loops import OPENMP
from toolkit.kernels.cpu.native.panels import UNROLLED, Tile, kernel, pack, product
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.kernels.cpu.onednn.memory import F32
from toolkit.runtime.segments.emission.emit import ALONE, Emitter
from toolkit.runtime.segments.emission.instance import Region, Workspace
from toolkit.runtime.segments.ir import Block, Operation
from toolkit.runtime.segments.networks.epilogues import SLOW, can_follow, epilogue_of

_TILES = ((8, 3), (6, 4), (8, 2), (8, 1))  # rows and vectors
_DEPTH, _MOST_DEPTH = 256, 576  # rows of a panel: with three vectors 256 fill the first cache; a few more do no harm
_BLOCK = 240  # rows of x, a multiple of every tile's
_LEAST_ROWS = 16  # below, weights are not used often enough for anything to be done in the meantime
_LEAST = 1 << 20  # multiplications
#: cycles, measured: to call a kernel, to write a vector, to read one that is in a farther cache
_CALL, _WRITTEN, _READ = 40, 5, 3
_LARGE = 8 << 20  # bytes of an output that no cache holds
_RESIDENT = 1 << 18  # bytes of weights that the second cache holds beside all else
#: bytes of an output, and inner size: writing outweighs multiplying, and oneDNN's code does it as well
_WRITES, _SHALLOW = 3 << 19, 128


class Split(NamedTuple):
    """How a product is made.

    Attributes:
        rows, vectors: of a tile.
        shares: (first row, behind the last, first panel, behind the last), for a thread each.
        cost: of the longest share, in multiplications of vectors.
    """

    rows: int
    vectors: int
    shares: tuple[tuple[int, int, int, int], ...]
    cost: float


class _Work(NamedTuple):
    rows: int
    inner: int
    columns: int

    @staticmethod
    def of(operation: Operation) -> _Work:
        y = operation.output
        assert y.shape is not None
        inner = _weights(operation).shape[0]
        return _Work(y.size // y.shape[-1], inner, y.shape[-1])


def lower_panels(block: Block, threads: int) -> None:
    """Turn "matmul" and "conv" into "panels" where that pays; attrs split.

    Args:
        threads: that a plan may use.
    """
    machine = None
    for operation in block.live():
        if not _is_plain(operation):
            continue
        work = _Work.of(operation)
        if work.rows < _LEAST_ROWS or math.prod(work) < _LEAST:
            continue
        slow = any(post.algorithm in SLOW for post in operation.attrs["posts"])
        if 4 * work.rows * work.columns > _WRITES and work.inner < _SHALLOW and not slow:
            continue
        machine = machine or compiler()
        if machine is None or not machine.has_avx512() or (threads > 1 and not openmp_symbols(*OPENMP)):
            return
        operation.attrs["split"] = _split(work, threads if math.prod(work) >= ALONE else 1)
        operation.kind = "panels"


def _weights(operation: Operation) -> Any:
    """[inner, columns]"""
    attrs = operation.attrs
    if operation.kind == "matmul" or "filter" not in attrs:
        return attrs["weights"]
    found = attrs["filter"]
    return found.reshape(found.shape[-2:])


def _is_plain(operation: Operation) -> bool:
    attrs = operation.attrs
    match operation.kind:
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


def _split(work: _Work, threads: int) -> Split:
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


def _cost(rows: int, vectors: int, inner: int, share: tuple[int, int, int, int]) -> float:
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
    attrs, work = operation.attrs, _Work.of(operation)
    split: Split = attrs["split"]
    machine = compiler()
    assert machine is not None
    tallest = max(last - first for first, last, _, _ in split.shares)
    block = min(_BLOCK, -(-tallest // split.rows) * split.rows)
    calls = -(-min(block, tallest) // split.rows)
    if 4 * work.rows * work.columns > _LARGE and 4 * work.inner * work.columns <= _RESIDENT:
        block = split.rows  # rows of the output are written from end to end
    ahead = -(-UNROLLED * split.vectors // calls)
    wide = LANES * split.vectors
    weights = emitter.kept(pack(_weights(operation), wide))
    kernels = _kernels(machine, split, ahead)
    emitter.keep.extend(kernels)
    addresses = np.zeros(split.rows, np.int64)
    for function, rows in kernels:
        addresses[rows - 1] = function.address
    depth = work.inner
    if work.inner > _MOST_DEPTH:
        depth = -(-work.inner // -(-work.inner // _DEPTH))
        depth = -(-depth // 4) * 4
    numbers = [len(split.shares), work.inner, work.columns, split.rows, wide, depth, block]
    kinds, others, body = epilogue_of(emitter, operation)
    regions: list[Region] = [
        operation.inputs[0], weights, operation.output, emitter.kept(addresses),
        emitter.kept(np.array(numbers, np.int64)), *others,
    ]  # fmt: skip
    size = 4 * block * wide
    for index, share in enumerate(split.shares):
        regions += [Workspace(index * size), emitter.kept(np.array(share, np.int64))]
    emitter.workspace = max(emitter.workspace, size * len(split.shares))
    spread = len(split.shares) > 1
    text = product(kinds, body, threads=spread)
    emitter.execute_native(machine.function(text, openmp_symbols(*OPENMP) if spread else {}), regions)


def _kernels(machine: Compiler, split: Split, ahead: int) -> list[tuple[Function, int]]:
    """The kernels that the shares need, and for how many rows each is."""
    wanted = {split.rows} if any(last - first >= split.rows for first, last, _, _ in split.shares) else set[int]()
    wanted |= {rest for first, last, _, _ in split.shares if (rest := (last - first) % split.rows)}
    return [(machine.function(kernel(Tile(rows, split.vectors, ahead)), {}), rows) for rows in sorted(wanted)]
