"""The gradients of attention without scores in memory (Dao, Fu, Ermon, Rudra, Ré 2022, algorithm 4; Dao 2023).

With P = exp(scale * q k' + mask - statistics) and dS = P * (d_out v' - D), where D is the row's sum of d_out * out:
dq = scale * dS k, dk = scale * dS' q, dv = P' d_out. Scores are computed again. One kernel has blocks of queries, walks
along the keys, makes dq and leaves D in memory; one has blocks of keys, walks along the queries and makes dk and dv.
Where one key has a row's share, dS is 0: D is of d_out as products take it.
Each number is summed by one thread in one order, so that results are the same bits each time, without atomics.

Both are the same but for what is a block's own and what it walks along, which are called so here. A warp has 16 of its
own rows as left factors in registers; tiles of the others are in shared memory, as often as they are right factors.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.attention_memory import KIND_OF, MaskShape, RowSource, RowTarget, TileFormat, UnderScores
from toolkit.kernels.cuda.nn.attention_rows import beside, exponential, factors
from toolkit.kernels.cuda.nn.attention_tiles import (
    BothTile,
    Fragments,
    KeyTile,
    LeftFactors,
    ValueTile,
    products,
)
from toolkit.kernels.cuda.nn.common import place, split
from toolkit.kernels.cuda.simt.builder import KernelBuilder, RegisterVariable
from toolkit.kernels.cuda.simt.ir import WARP, KernelBuffer, SimtKernel, Value
from toolkit.kernels.cuda.simt.matrix import ROWS, SUMS

#: of each result the tensor that it is the gradient by
_BY = {"dq": "q", "dk": "k", "dv": "v"}
_READ = ("q", "k", "v", "out", "d_out")


@dataclass(frozen=True, slots=True)
class GradientShape:
    """What a kernel is made for.

    Attributes:
        results: what it makes: "dq" alone, or "dk", "dv" or both.
        format: of queries, keys, values, results and the gradient by these.
        made: the types of its results in memory.
        depth: numbers of a query, and of a key.
        width: numbers of a value.
        tile: how many of those that a block walks along are in shared memory at once, a multiple of 16.
        warps: of a block.
        pairs: of all results strides are even and the numbers of a row lie one behind the other; strides count in
            pairs.
        under: masks and dropouts.
        causal: row i takes keys 0 to i.
        keeps: numbers of a row that the attention has left, see `FlashShape`.
        index: the type of places in tensors.
        chunks: of more than one, each part of the one result's rows has blocks of its own.
        held: whether own rows stay in registers (`LeftFactors`).
    """

    results: tuple[str, ...]
    format: TileFormat
    made: tuple[str, ...]
    depth: int
    width: int
    tile: int
    warps: int
    pairs: bool
    under: MaskShape
    causal: bool
    keeps: int
    index: str
    chunks: int = 1
    held: bool = True

    @property
    def by_queries(self) -> bool:
        """Whether blocks have queries, and walk along keys."""
        return self.results == ("dq",)

    @property
    def own(self) -> int:
        """Queries, or keys, of a block."""
        return self.warps * ROWS

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it reads, in order."""
        if self.by_queries:
            return _READ
        return ("q", "k", "v", "d_out") if "dk" in self.results else ("q", "k", "d_out")


@functools.cache
def gradient_kernel(shape: GradientShape) -> SimtKernel:
    """Buffers: those of `reads`; mask, bias and keep (if any); statistics; dots (D of each row, written of queries);
    results.

    Scalars: heads, rows, keys, scale; strides of batch, head, row and column of each of `reads` and of the results, in
    what `format` and `pairs` say; of batch, head, row and key of mask, bias and keep; the dropout's scale; heads of a
    group.
    """
    return _Gradient(shape).kernel()


class _Gradient:
    """Writes one kernel."""

    def __init__(self, shape: GradientShape):
        self._shape = shape
        name = "_".join([
            "attention", "gradient", *shape.results, KIND_OF[shape.format.number], f"{shape.depth}x{shape.width}",
            f"{shape.own}x{shape.tile}", *(["causal"] if shape.causal else []), *shape.under.code(),
        ])  # fmt: skip
        self._k = k = KernelBuilder(name, shape.warps * WARP)
        self._buffers = {name: k.buffer(name, shape.format.memory) for name in shape.reads}
        self._under = {name: k.buffer(name, getattr(shape.under, name)) for name in shape.under.names}
        self._statistics = k.buffer("statistics", "float")
        self._dots = k.buffer("dots", "float", written=shape.by_queries)
        self._made = {
            name: k.buffer(name, made, written=True) for name, made in zip(shape.results, shape.made, strict=True)
        }
        self._heads, self._row_count, self._key_count = (
            k.scalar(name, shape.index) for name in ("heads", "rows", "keys")
        )
        self._scale = k.scalar("scale", "float")
        named = (*shape.reads, *shape.results, *shape.under.names)
        self._steps = {
            name: [k.scalar(f"{name}_{axis}", shape.index) for axis in ("batch", "head", "row", "column")]
            for name in named
        }
        self._kept_scale = k.scalar("kept_scale", "float") if shape.under.keep else None
        self._group = k.scalar("group", shape.index) if shape.under.grouped else None

    def kernel(self) -> SimtKernel:
        k, shape, index = self._k, self._shape, self._shape.index
        count = self._row_count if shape.by_queries else self._key_count
        tiles = k.div(k.add(count, k.number(shape.own - 1, index)), k.number(shape.own, index))
        group = self._group
        heads = self._heads if shape.by_queries or group is None else k.div(self._heads, group)
        number = k.convert(k.block_index, index)
        self._chunk: Lanes | None = None
        if shape.chunks > 1:
            number, self._chunk = split(k, number, k.number(shape.chunks, index))
        self._batch, head, tile = split(k, number, heads, tiles)
        # of queries, and of keys; a block of keys of a group goes through the heads of this
        self._head = head
        self._key_head = k.div(head, group) if shape.by_queries and group is not None else head
        block_first = k.mul(tile, k.number(shape.own, index))
        self._at = at = Fragments(k, index)
        first = k.add(block_first, k.mul(at.warp, k.number(ROWS, index)))
        self._own = [k.add(k.add(first, at.group), k.number(add, index)) for add in (0, 8)]
        # each product's own factors: of scores queries or keys, of their gradients' the gradient by results, or values
        near, far = ("q", "d_out") if shape.by_queries else ("k", "v")
        self._left = LeftFactors(k, at, self._source(near), first, shape.format, shape.depth, held=shape.held)
        differs = "dq" in shape.results or "dk" in shape.results
        self._far = None
        if differs:
            self._far = LeftFactors(k, at, self._source(far), first, shape.format, shape.width, held=shape.held)
        if shape.by_queries:
            self._rows = [self._row_numbers(row) for row in self._own]
        zero = k.number(0.0, "float")
        sums = {
            name: [[k.variable(zero) for _ in range(SUMS)] for _ in range(-(-self._part(name) // 8))]
            for name in shape.results
        }
        if group is None or shape.by_queries:
            self._walk(sums, block_first)
        else:
            with k.loop(0, group) as member:
                self._head = k.add(k.mul(self._key_head, group), member)
                self._walk(sums, block_first)
        for name, each in sums.items():
            self._store(name, each)
        return k.finish()

    # -- along the others

    def _walk(self, sums: dict[str, list[list[RegisterVariable]]], block_first: Lanes) -> None:
        """Add up what each tile gives."""
        k, shape = self._k, self._shape
        near, far = ("k", "v") if shape.by_queries else ("q", "d_out")
        near_tile, far_tile = self._tiles(near, far)
        summed = None if shape.chunks == 1 else far if "dv" in shape.results else near
        part = None
        if summed is not None:
            part = ValueTile(k, "part", shape.format, shape.tile, self._part(shape.results[0]))
        start, end = self._range(block_first)
        under = UnderScores(
            k, shape.under, self._under, (self._batch, self._head), self._steps, (self._row_count, self._key_count)
        )
        with k.loop(start, end, shape.tile) as first:
            k.barrier()  # nobody reads the last tiles any more
            near_tile.fill(self._source(near), first)
            if part is not None and summed is not None:
                part.fill(self._source(summed, chunk=True), first)
            if summed is None or self._far is not None:
                far_tile.fill(self._source(far), first)
            numbers = None if shape.by_queries else self._shared_numbers(first)
            k.barrier()
            if numbers is not None:
                self._rows = self._tile_numbers(numbers)
            shares: list[list[Value]] = []
            slopes: list[list[Value]] = []
            all_scores = self._product(self._left, near_tile)
            all_shares = None if self._far is None else self._product(self._far, far_tile)
            for column, scores in enumerate(all_scores):
                d_shares = None if all_shares is None else all_shares[column]
                one, other = self._column(scores, d_shares, self._places(first, column), column, under)
                shares.append(one)
                slopes.append(other)
            for name, target in sums.items():
                tile = part or (far_tile if name == "dv" else near_tile)
                assert not isinstance(tile, KeyTile)
                self._add(
                    target, shares if name == "dv" else slopes, tile.turned if isinstance(tile, BothTile) else tile
                )

    def _tiles(self, near: str, far: str) -> tuple[KeyTile | BothTile, KeyTile | ValueTile | BothTile]:
        """Those that are walked along, as right factors of the products that take them.

        Where a result is made in parts, what sums these is a tile of its own, and of "dv" the far one is not read.
        """
        k, shape = self._k, self._shape
        given = (shape.format, shape.tile)
        if shape.chunks > 1:
            tile = KeyTile(k, "near", *given, shape.depth)
            return tile, KeyTile(k, "far", *given, shape.width) if "dv" not in shape.results else tile
        if shape.by_queries:
            return BothTile(k, "near", *given, shape.depth), KeyTile(k, "far", *given, shape.width)
        if shape.results == ("dv",):
            return KeyTile(k, "near", *given, shape.depth), ValueTile(k, "far", *given, shape.width)
        wide = BothTile if "dv" in shape.results else KeyTile
        return BothTile(k, "near", *given, shape.depth), wide(k, "far", *given, shape.width)

    def _range(self, block_first: Lanes) -> tuple[Lanes, Lanes]:
        """Which of the others a block walks along."""
        k, shape = self._k, self._shape
        zero = k.number(0, shape.index)
        if shape.by_queries:
            end: Lanes = self._key_count
            if shape.causal:
                last = k.add(block_first, k.number(shape.own, shape.index))
                end = k.select(k.compare("slt", last, end), last, end)
            return zero, end
        # a query sees keys up to its own place: none before the block's first key sees any of the block
        start = block_first if shape.causal else zero
        return start, self._row_count

    def _places(self, first: Lanes, column: int) -> list[Value]:
        """The two of the others that a thread has of eight."""
        k, index = self._k, first.type
        here = k.add(first, k.mul(self._at.inside, k.number(2, index)))
        return [k.add(here, k.number(8 * column + add, index)) for add in (0, 1)]

    def _product(self, left: LeftFactors, tile: KeyTile | ValueTile | BothTile) -> list[list[Value]]:
        """Own rows by those of a tile: for each eight of these."""
        assert not isinstance(tile, ValueTile)
        kind = KIND_OF[self._shape.format.number]
        return products(self._k, self._at, kind, [left], tile, self._shape.tile // 8)[0]

    def _column(
        self, scores: Sequence[Value], d_shares: Sequence[Value] | None, others: Sequence[Value], column: int,
        under: UnderScores,
    ) -> tuple[list[Value], list[Value]]:  # fmt: skip
        """Shares that are left, and the gradients by scores without the scale, of own rows and eight others."""
        k, shape = self._k, self._shape
        zero = k.number(0.0, "float")
        shares: list[Value] = []
        slopes: list[Value] = []
        for register, product in enumerate(scores):
            own, other = self._own[register >> 1], others[register & 1]
            row, key = (own, other) if shape.by_queries else (other, own)
            top, logarithm, dot = self._rows[register >> 1 if shape.by_queries else 2 * column + (register & 1)]
            score = under.score(k.mul(product, self._scale), row, key)
            there: Value = k.compare("slt", other, self._key_count if shape.by_queries else self._row_count)
            if shape.causal:
                there = k.both(there, k.compare("sle", key, row))
            exponent = k.sub(score, top)  # first: of -1e9 less -1e9 a sum with the logarithm would have lost it
            share = exponential(k, exponent if logarithm is None else k.sub(exponent, logarithm))
            share = k.select(there, share, zero)
            shares.append(under.kept(share, row, key))
            if d_shares is None:
                continue
            d_share: Value = d_shares[register]
            if self._kept_scale is not None:
                d_share = k.mul(under.kept(d_share, row, key), self._kept_scale)
            if shape.under.chosen:
                there = k.both(there, under.stays(row, key))
            slopes.append(k.select(there, k.mul(share, k.sub(d_share, dot)), zero))
        return shares, slopes

    def _add(
        self, sums: Sequence[Sequence[RegisterVariable]], left: Sequence[Sequence[Value]], tile: ValueTile
    ) -> None:
        """Add up own rows' numbers times the others."""
        k, kind = self._k, KIND_OF[self._shape.format.number]
        for step in range(self._shape.tile // self._shape.format.kind.depth):
            own = factors(k, kind, left, step)
            for column, each in enumerate(sums):
                right = tile.fragment(self._at, step, column)
                made = k.multiply_matrices(kind, own, right, [one.get() for one in each])
                for one, value in zip(each, made, strict=True):
                    one.set(value)

    # -- what belongs to a row of queries: where shares are measured from, and the sum of d_out * out

    def _clamped(self, row: Lanes) -> Lanes:
        """A row that there is."""
        k = self._k
        last = k.sub(self._row_count, k.number(1, row.type))
        return k.select(k.compare("slt", row, last), row, last)

    def _place(self, row: Lanes) -> Value:
        """Of a row among all."""
        k = self._k
        image = k.add(k.mul(self._batch, self._heads), self._head)
        return k.add(k.mul(image, self._row_count), row)

    def _kept(self, row: Lanes) -> list[Value]:
        """What the attention has left of a row."""
        k, keeps = self._k, self._shape.keeps
        where = k.mul(self._place(row), k.number(keeps, row.type))
        return [k.load(self._statistics, k.add(where, k.number(i, row.type))) for i in range(keeps)]

    def _row_numbers(self, row: Lanes) -> tuple[Value, Value | None, Value]:
        """Of one of a block's own rows; D is computed, and written."""
        k, shape = self._k, self._shape
        index = row.type
        here = self._clamped(row)
        top, *logarithm = self._kept(here)
        out, d_out = self._source("out"), self._source("d_out")
        groups = shape.width // shape.format.vector
        total = k.variable(k.number(0.0, "float"))
        with k.loop(self._at.inside, k.number(groups, index), 4) as group:
            # as the products have them: where one key has all of a row's share, both terms of a slope are the same
            given = [self._rounded(each) for each in d_out.floats(here, group)]
            pairs = zip(out.floats(here, group), given, strict=True)
            total.set(functools.reduce(k.add, [k.mul(one, other) for one, other in pairs], total.get()))
        dot = beside(k, total.get())
        mine = k.both(k.compare("eq", self._at.inside, k.number(0, index)), k.compare("slt", row, self._row_count))
        if self._chunk is not None:
            mine = k.both(mine, k.compare("eq", self._chunk, k.number(0, index)))
        with k.when(mine):
            k.store(self._dots, self._place(row), dot)
        return top, logarithm[0] if logarithm else None, dot

    def _rounded(self, number: Value) -> Value:
        """A number as a product takes it."""
        return self._k.round_tf32(number) if self._shape.format.number == "float" else number

    def _shared_numbers(self, first: Lanes) -> KernelBuffer:
        """Those of a tile's rows, put into shared memory: one behind the other what was kept, and D."""
        k, shape = self._k, self._shape
        if not hasattr(self, "_numbers"):
            self._numbers = k.shared("numbers", "float", (shape.keeps + 1) * shape.tile)
        thread = k.convert(k.thread, shape.index)
        with k.when(k.compare("slt", thread, k.number(shape.tile, shape.index))):
            row = self._clamped(k.add(first, thread))
            dot = k.load(self._dots, self._place(row))
            for i, number in enumerate([*self._kept(row), dot]):
                k.store(self._numbers, k.add(thread, k.number(i * shape.tile, shape.index)), number)
        return self._numbers

    def _tile_numbers(self, numbers: KernelBuffer) -> list[tuple[Value, Value | None, Value]]:
        """Those of the rows of which a thread has numbers, two for each eight."""
        k, shape = self._k, self._shape
        index = shape.index
        found: list[tuple[Value, Value | None, Value]] = []
        for column in range(shape.tile // 8):
            for add in (0, 1):
                where = k.add(k.mul(self._at.inside, k.number(2, index)), k.number(8 * column + add, index))
                top, *logarithm, dot = (
                    k.load(numbers, k.add(where, k.number(i * shape.tile, index))) for i in range(shape.keeps + 1)
                )
                found.append((top, logarithm[0] if logarithm else None, dot))
        return found

    # -- memory

    def _size(self, name: str) -> int:
        return self._shape.width if name in ("dv", "v", "out", "d_out") else self._shape.depth

    def _part(self, name: str) -> int:
        """Of a row's numbers, how many a block makes."""
        return self._size(name) // self._shape.chunks

    def _in_chunk(self, start: Lanes, column: Lanes, size: int, unit: int | None) -> Lanes:
        """Where a block's part of rows begins.

        Args:
            size: of a part.
            unit: what strides count in; None where numbers lie `column` from each other.
        """
        k, chunk = self._k, self._chunk
        if chunk is None:
            return start
        if unit is None:
            return k.add(start, k.mul(k.mul(chunk, k.number(size, chunk.type)), column))
        return k.add(start, k.mul(chunk, k.number(size // unit, chunk.type)))

    def _count(self, name: str) -> Lanes:
        return self._row_count if name in ("q", "dq", "out", "d_out") else self._key_count

    def _source(self, name: str, *, chunk: bool = False) -> RowSource:
        """Rows of a tensor, or (`chunk`) the part of them with which a block's part of a result is summed."""
        format, steps = self._shape.format, self._steps[name]
        start, size = place(self._k, self._where(name), steps[:2]), self._size(name)
        if chunk:
            size //= self._shape.chunks
            start = self._in_chunk(start, steps[3], size, format.vector if format.joined else None)
        return RowSource(
            self._k, format, self._buffers[name], start, steps[2], steps[3], self._count(name), size
        )  # fmt: skip

    def _where(self, name: str) -> tuple[Lanes, Lanes]:
        """Image and head."""
        return self._batch, self._key_head if name in ("k", "v", "dk", "dv") else self._head

    def _store(self, name: str, sums: Sequence[Sequence[RegisterVariable]]) -> None:
        k, steps = self._k, self._steps[name]
        shape, size = self._shape, self._part(name)
        start = place(k, self._where(name), steps[:2])
        start = self._in_chunk(start, steps[3], size, 2 if shape.pairs else None)
        target = RowTarget(
            k, self._made[name], start, steps[2], steps[3], self._count(_BY[name]), size, pairs=shape.pairs
        )
        values = [[each.get() for each in column] for column in sums]
        scale = self._kept_scale if name == "dv" else self._scale
        if scale is not None:
            values = [[k.mul(each, scale) for each in column] for column in values]
        target.store(self._own, self._at.inside, values)
