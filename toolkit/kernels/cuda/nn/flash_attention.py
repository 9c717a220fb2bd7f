"""softmax(scale * q k' + mask) v in one kernel: scores are never in memory (Dao, Fu, Ermon, Rudra, Ré 2022; Dao 2023).

A block takes some rows of queries, a warp 16 or 32 of them, and walks along the keys by tiles. Of each row it has the
largest score so far, the sum of exponentials and the sums of values; a larger score scales what was summed before.
Products are `mma`'s, of TF32, bfloat16 or half with sums in float32; scores, exponentials and sums are float32.

What the softmax of TensorFlow gives comes out for any mask: equal scores of -1e9 are equal shares, a row whose scores
are all -inf is NaN, and so is one with a NaN or an infinite score.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.attention_memory import KIND_OF, MaskShape, RowSource, RowTarget, TileFormat, UnderScores
from toolkit.kernels.cuda.nn.attention_rows import OnlineRows
from toolkit.kernels.cuda.nn.attention_tiles import Fragments, KeyTile, LeftFactors, ValueTile, products
from toolkit.kernels.cuda.nn.common import place, split
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.cuda.simt.matrix import ROWS


@dataclass(frozen=True, slots=True)
class FlashShape:
    """What a kernel is made for.

    Attributes:
        format: of queries, keys and values.
        made: the type of the result in memory.
        depth: numbers of a query, and of a key.
        width: numbers of a value that a block has, one of `chunks` parts of a value.
        keys: of a tile, a multiple of 16.
        warps: of a block.
        stacks: how often a warp has 16 rows.
        pairs: the result's strides are even and its numbers lie one behind the other; strides count in pairs.
        under: masks and dropouts.
        causal: row i takes keys 0 to i.
        keeps: numbers of a row that are written besides: 1, the logarithm of the sum of exponentials of its scores; 2,
            its largest score and the logarithm of the sum of exponentials of scores less that one.
        index: the type of places in tensors.
        chunks: of more than one, each part of the values has blocks of its own, which compute scores again.
        held: whether queries stay in registers (`LeftFactors`).
    """

    format: TileFormat
    made: str
    depth: int
    width: int
    keys: int
    warps: int
    stacks: int
    pairs: bool
    under: MaskShape
    causal: bool
    keeps: int
    index: str
    chunks: int = 1
    held: bool = True

    @property
    def rows(self) -> int:
        """Of a block."""
        return self.warps * self.stacks * ROWS


@functools.cache
def flash_kernel(shape: FlashShape) -> SimtKernel:
    """Buffers q, k, v, out, mask, bias and keep (if any) and statistics (if kept).

    Scalars: heads, rows, keys, scale; strides of batch, head, row and column of q, k, v and out, in what `format` and
    `pairs` say; of batch, head, row and key of mask, bias and keep; the dropout's scale; heads of a group.
    """
    return _Flash(shape).kernel()


class _Flash:
    """Writes one kernel."""

    def __init__(self, shape: FlashShape):
        self._shape = shape
        name = "_".join([
            "attention", KIND_OF[shape.format.number], f"{shape.depth}x{shape.width * shape.chunks}",
            f"{shape.rows}x{shape.keys}", *(["causal"] if shape.causal else []), *shape.under.code(),
        ])  # fmt: skip
        self._k = k = KernelBuilder(name, shape.warps * WARP)
        memory = shape.format.memory
        self._q, self._keys, self._values = (k.buffer(name, memory) for name in ("q", "k", "v"))
        self._out = k.buffer("out", shape.made, written=True)
        self._under = {name: k.buffer(name, getattr(shape.under, name)) for name in shape.under.names}
        self._statistics = k.buffer("statistics", "float", written=True) if shape.keeps else None
        self._heads, self._row_count, self._key_count = (
            k.scalar(name, shape.index) for name in ("heads", "rows", "keys")
        )
        self._scale = k.scalar("scale", "float")
        self._steps = {name: [k.scalar(f"{name}_{axis}", shape.index) for axis in ("batch", "head", "row", "column")]
                       for name in ("q", "k", "v", "out", *shape.under.names)}  # fmt: skip
        self._kept_scale = k.scalar("kept_scale", "float") if shape.under.keep else None
        self._group = k.scalar("group", shape.index) if shape.under.grouped else None

    def kernel(self) -> SimtKernel:
        k, shape = self._k, self._shape
        index = shape.index
        tiles = k.div(k.add(self._row_count, k.number(shape.rows - 1, index)), k.number(shape.rows, index))
        number = k.convert(k.block_index, index)
        self._chunk: Lanes | None = None
        if shape.chunks > 1:
            number, self._chunk = split(k, number, k.number(shape.chunks, index))
        self._batch_head = split(k, number, self._heads, tiles)
        tile = self._batch_head.pop()
        self._at = at = Fragments(k, index)
        self._key_tile = KeyTile(k, "key_tile", shape.format, shape.keys, shape.depth)
        self._value_tile = ValueTile(k, "value_tile", shape.format, shape.keys, shape.width)
        block_first = k.mul(tile, k.number(shape.rows, index))
        first = k.add(block_first, k.mul(at.warp, k.number(shape.stacks * ROWS, index)))
        queries = self._source("q", self._q, self._row_count, shape.depth)
        stacks: list[OnlineRows] = []
        for stack in range(shape.stacks):
            own = k.add(first, k.number(stack * ROWS, index))
            left = LeftFactors(k, at, queries, own, shape.format, shape.depth, held=shape.held)
            stacks.append(OnlineRows(k, at, left, own, self._value_tile.columns))
        self._walk(stacks, block_first)
        for stack in stacks:
            self._store(stack)
        return k.finish()

    def _walk(self, stacks: Sequence[OnlineRows], block_first: Lanes) -> None:
        """Along the keys."""
        k, shape = self._k, self._shape
        keys = self._source("k", self._keys, self._key_count, shape.depth)
        values = self._source("v", self._values, self._key_count, shape.width)
        end: Lanes = self._key_count
        if shape.causal:
            last = k.add(block_first, k.number(shape.rows, shape.index))
            end = k.select(k.compare("slt", last, end), last, end)
        with k.loop(0, end, shape.keys) as first:
            key_shares, value_shares = self._key_tile.read(keys, first), self._value_tile.read(values, first)
            k.barrier()  # nobody reads the last tiles any more
            self._key_tile.put(key_shares)
            self._value_tile.put(value_shares)
            k.barrier()
            under = UnderScores(
                k, shape.under, self._under, self._batch_head, self._steps, (self._row_count, self._key_count)
            )
            for stack, scores in zip(stacks, self._products(stacks), strict=True):
                stack.take(scores, first, self._scale, under, [self._limit(row) for row in stack.rows])
            self._sum_values(stacks)

    def _limit(self, row: Lanes) -> Lanes:
        """The key from which on a row has none."""
        k = self._k
        if not self._shape.causal:
            return self._key_count
        own = k.add(row, k.number(1, row.type))
        return k.select(k.compare("slt", own, self._key_count), own, self._key_count)

    def _products(self, stacks: Sequence[OnlineRows]) -> list[list[list[Value]]]:
        """Queries by keys: of each stack for each eight keys the four sums of a thread."""
        lefts, kind = [stack.left for stack in stacks], KIND_OF[self._shape.format.number]
        return products(self._k, self._at, kind, lefts, self._key_tile, self._shape.keys // 8)

    def _sum_values(self, stacks: Sequence[OnlineRows]) -> None:
        k, kind = self._k, KIND_OF[self._shape.format.number]
        for step in range(self._shape.keys // self._shape.format.kind.depth):
            left = [stack.factors(kind, step) for stack in stacks]
            for column in range(self._value_tile.columns):
                right = self._value_tile.fragment(self._at, step, column)
                for own, stack in zip(left, stacks, strict=True):
                    sums = stack.sums[column]
                    made = k.multiply_matrices(kind, own, right, [each.get() for each in sums])
                    for each, value in zip(sums, made, strict=True):
                        each.set(value)

    def _store(self, stack: OnlineRows) -> None:
        k, shape, at = self._k, self._shape, self._at
        results, kept = stack.finish(shape.keeps, self._kept_scale)
        batch, head, row_step, column_step = self._steps["out"]
        start = place(k, self._batch_head, [batch, head])
        start = self._in_chunk(start, column_step, shape.width // 2 if shape.pairs else None)
        target = RowTarget(k, self._out, start, row_step, column_step, self._row_count, shape.width, pairs=shape.pairs)
        target.store(stack.rows, at.inside, results)
        if self._statistics is None:
            return
        image = k.add(k.mul(self._batch_head[0], self._heads), self._batch_head[1])
        first = k.compare("eq", at.inside, k.number(0, image.type))
        if self._chunk is not None:
            first = k.both(first, k.compare("eq", self._chunk, k.number(0, image.type)))
        for row, numbers in zip(stack.rows, kept, strict=True):
            with k.when(k.both(first, k.compare("slt", row, self._row_count))):
                where = k.mul(k.add(k.mul(image, self._row_count), row), k.number(shape.keeps, image.type))
                for i, number in enumerate(numbers):
                    k.store(self._statistics, k.add(where, k.number(i, image.type)), number)

    def _in_chunk(self, start: Lanes, column: Lanes, units: int | None) -> Lanes:
        """Where a block's part of the values begins.

        Args:
            units: of a part, in what strides count in; None where numbers lie `column` from each other.
        """
        k, chunk = self._k, self._chunk
        if chunk is None:
            return start
        if units is None:
            return k.add(start, k.mul(k.mul(chunk, k.number(self._shape.width, chunk.type)), column))
        return k.add(start, k.mul(chunk, k.number(units, chunk.type)))

    def _source(self, name: str, buffer: KernelBuffer, count: Lanes, size: int) -> RowSource:
        steps, where = self._steps[name], self._batch_head
        if self._group is not None and name in ("k", "v"):
            where = [where[0], self._k.div(where[1], self._group)]
        start = place(self._k, where, steps[:2])
        if name == "v":
            format = self._shape.format
            start = self._in_chunk(start, steps[3], size // format.vector if format.joined else None)
        return RowSource(self._k, self._shape.format, buffer, start, steps[2], steps[3], count, size)
