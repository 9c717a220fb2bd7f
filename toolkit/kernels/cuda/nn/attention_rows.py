"""Softmax over keys that come tile by tile, by the threads of a warp that have 16 rows of scores as `mma` leaves them.

Of each row there are the largest score so far and the sum of exponentials (Milakov, Gimelshein 2018); a larger score
scales what was summed before. A thread has numbers of two rows, whose others are in the three threads beside it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import cast

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.nn.attention_memory import UnderScores, pack
from toolkit.kernels.cuda.nn.attention_tiles import Fragments, LeftFactors
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.cuda.simt.matrix import SUMS

_LOG2_E = math.log2(math.e)
#: threads beside each other that have a row
_BESIDE = (1, 2)


def exponential(k: KernelBuilder, exponent: Lanes) -> Value:
    """e ** exponent, by the GPU's own instruction."""
    return k.exp2_approximate(k.mul(exponent, k.number(_LOG2_E, "float")))


def beside(k: KernelBuilder, value: Value) -> Value:
    """The sum of the values of the four threads that have a row."""
    for step in _BESIDE:
        value = k.add(value, k.shuffle("xor", value, step))
    return value


def factors(k: KernelBuilder, kind: str, sums: Sequence[Sequence[Lanes]], step: int) -> list[Value]:
    """Numbers that lie as sums do, those of a step's columns as left factors of a kind: where they are already.

    Args:
        kind: of `MATRIX_KINDS`.
        sums: of each eight columns.
    """
    if kind == "tf32":
        one = [k.round_tf32(each) for each in sums[step]]
        return [one[0], one[2], one[1], one[3]]
    narrow = [k.convert(each, kind) for column in sums[2 * step : 2 * step + 2] for each in column]
    return [pack(k, *narrow[first : first + 2]) for first in range(0, 2 * SUMS, 2)]


class OnlineRows:
    """Sixteen rows of a warp.

    Args:
        left: the queries.
        first: the first row.
        columns: how many eights of numbers a value has.

    Attributes:
        left: as given.
        rows: the two rows of which this thread has numbers.
        sums: of values times exponentials, for each eight columns.
    """

    def __init__(self, k: KernelBuilder, at: Fragments, left: LeftFactors, first: Lanes, columns: int):
        self._k, self._at, self.left = k, at, left
        self.rows = [k.add(k.add(first, at.group), k.number(add, first.type)) for add in (0, 8)]
        zero = k.number(0.0, "float")
        self._tops = [k.variable(k.number(-math.inf, "float")) for _ in self.rows]
        self._totals = [k.variable(zero) for _ in self.rows]
        self.sums = [[k.variable(zero) for _ in range(SUMS)] for _ in range(columns)]
        self._shares: list[list[Value]] = []

    def take(
        self, products: Sequence[Sequence[Lanes]], first: Lanes, scale: Lanes, under: UnderScores,
        limits: Sequence[Lanes],
    ) -> None:  # fmt: skip
        """Scores of the keys from `first` on.

        Args:
            products: four numbers for each eight keys.
            under: masks and dropouts.
            limits: of each of the two rows, the key from which on there are none.
        """
        k, index = self._k, first.type
        here = k.add(first, k.mul(self._at.inside, k.number(2, index)))
        keys = [[k.add(here, k.number(8 * column + add, index)) for add in (0, 1)] for column in range(len(products))]
        scores: list[list[Value]] = []
        for own, each in zip(keys, products, strict=True):
            scores.append([])
            for register, product in enumerate(each):
                row, key = self.rows[register >> 1], own[register & 1]
                scores[-1].append(under.score(k.mul(product, scale), row, key))
        held = [[k.variable(score) for score in each] for each in scores]
        end = k.add(first, k.number(8 * len(products), index))
        ragged = functools.reduce(k.either, (k.compare("slt", limit, end) for limit in limits))
        with k.when(ragged):
            for own, each in zip(keys, held, strict=True):
                for register, score in enumerate(each):
                    there = k.compare("slt", own[register & 1], limits[register >> 1])
                    score.set(k.select(there, score.get(), k.number(-math.inf, "float")))
        self._exponentiate([[score.get() for score in each] for each in held])
        self._shares = [
            [under.kept(share, self.rows[register >> 1], own[register & 1]) for register, share in enumerate(each)]
            for own, each in zip(keys, self._shares, strict=True)
        ]

    def _exponentiate(self, scores: Sequence[Sequence[Value]]) -> None:
        k = self._k
        bases: list[Value] = []
        for which, (top, total) in enumerate(zip(self._tops, self._totals, strict=True)):
            own = [score for each in scores for score in each[2 * which : 2 * which + 2]]
            before = top.get()
            largest = functools.reduce(lambda a, b: k.intrinsic("maxnum", a, b), own, before)
            for step in _BESIDE:
                largest = k.intrinsic("maxnum", largest, k.shuffle("xor", largest, step))
            # where there was nothing but -inf, exponentials are 0 and not of -inf - -inf
            empty = k.compare("oeq", largest, k.number(-math.inf, "float"))
            base = k.select(empty, k.number(0.0, "float"), largest)
            factor = exponential(k, k.sub(before, base))
            top.set(largest)
            total.set(k.mul(total.get(), factor))
            for column in self.sums:
                for sum in column[2 * which : 2 * which + 2]:
                    sum.set(k.mul(sum.get(), factor))
            bases.append(base)
        self._shares = [
            [exponential(k, k.sub(score, bases[register >> 1])) for register, score in enumerate(each)]
            for each in scores
        ]
        for which, total in enumerate(self._totals):
            own = [share for each in self._shares for share in each[2 * which : 2 * which + 2]]
            total.set(k.add(total.get(), functools.reduce(k.add, own)))

    def factors(self, kind: str, step: int) -> list[Value]:
        """The exponentials of a step's keys as left factors."""
        return factors(self._k, kind, self._shares, step)

    def finish(self, keeps: int, scale: Lanes | None = None) -> tuple[list[list[Value]], list[list[Value]]]:
        """The results of each eight columns, and of either row the numbers that are kept (`FlashShape.keeps`).

        Args:
            scale: of the results.
        """
        k = self._k
        inverses: list[Value] = []
        kept: list[list[Value]] = []
        for top, total in zip(self._tops, self._totals, strict=True):
            whole = beside(k, total.get())
            inverses.append(k.div(k.number(1.0, "float") if scale is None else scale, whole))
            pair = [top.get(), cast("Value", functions.log(k, whole))] if keeps else []
            kept.append([k.add(*pair)] if keeps == 1 else pair)
        results = [
            [k.mul(sum.get(), inverses[register >> 1]) for register, sum in enumerate(column)] for column in self.sums
        ]
        return results, kept
