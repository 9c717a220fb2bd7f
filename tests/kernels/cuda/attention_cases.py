"""Attentions that tests give our own kernels: tensors that lie anyhow, masks, the SIMT machine, derived bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np

from tests import tolerance
from toolkit.kernels.cuda.nn.flash_launch import FlashMasks, launch_flash
from toolkit.kernels.cuda.simt import machine, matrix
from toolkit.kernels.cuda.simt.arithmetic import DTYPES
from toolkit.kernels.cuda.simt.ir import KernelBuffer
from toolkit.kernels.types import Array

CAPABILITIES = [(8, 0), (9, 0), (10, 0)]
FLOATS: dict[str, Any] = {
    "float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)
}  # fmt: skip


class Memory:
    """An array as a GPU has it: elements from an offset on, of which the address tells how they are aligned."""

    def __init__(self, array: Array, offset: int = 0):
        self.flat, self.dtype = array, array.dtype
        self.address = 256 + offset * array.itemsize
        self.nbytes = array.nbytes


class Device:
    """Launches on the SIMT machine; it has one multiprocessor, which any two blocks fill."""

    properties = SimpleNamespace(multiprocessors=1)

    def __init__(self) -> None:
        self.launched: list[Any] = []
        self.statistics = machine.Statistics()

    def launch(self, kernel: Any, blocks: int, *arguments: Any) -> None:
        self.launched.append(kernel)
        given = [
            argument.flat.view(DTYPES[one.type]) if isinstance(one, KernelBuffer) else argument
            for one, argument in zip(kernel.parameters, arguments, strict=True)
        ]
        self.statistics = machine.run(kernel, blocks, given)

    def empty(self, shape: Sequence[int], dtype: Any) -> Memory:
        """Memory that is NaN."""
        return Memory(np.full(math.prod(shape), np.nan, dtype))


@dataclass(frozen=True)
class Case:
    """Attributes:
    order: of the axes batch, heads, rows, columns in memory; "bhrc" is C order.
    gap: elements that are in memory between rows, of something else.
    keeps: numbers of a row that are written besides, see `FlashShape`.
    scale: 0 for one over the root of a query's size.
    """

    dtype: str
    sizes: tuple[int, int, int, int, int, int]
    order: str = "bhrc"
    gap: int = 0
    mask: str = ""
    causal: bool = False
    keeps: int = 0
    made: str = ""
    scale: float = 0.0


def laid(values: Array, order: str, gap: int) -> tuple[Memory, tuple[int, ...]]:
    """Values in memory, in another order of axes, with something else between rows."""
    axes = ["bhrc".index(axis) for axis in order]
    turned = np.transpose(values, axes)
    wide = np.full((*turned.shape[:-1], turned.shape[-1] + gap), np.nan, values.dtype)
    wide[..., : turned.shape[-1]] = turned
    flat = wide.reshape(-1)
    flat = flat[: flat.size - gap] if gap else flat
    strides = [stride // values.itemsize for stride in wide.strides]
    return Memory(flat), tuple(strides[axes.index(axis)] for axis in range(4))


MASKS = {
    "": None, "all": (1, 1, 1, 1), "keys": (1, 0, 0, 1), "rows": (0, 0, 1, 1), "heads": (0, 1, 0, 1),
    "one of a row": (1, 1, 1, 0),
}  # fmt: skip


def masked(kind: str, sizes: Sequence[int], rng: np.random.Generator) -> tuple[Array | None, tuple[int, ...] | None]:
    """A mask with axes of 1 where it is broadcast, and its strides."""
    along = MASKS[kind]
    if along is None:
        return None, None
    shape = [size if there else 1 for size, there in zip(sizes[:4], along, strict=True)]
    values = rng.normal(size=shape).astype(np.float32)
    if along[3]:  # beside it, scores are lost: of a whole row that is another test's
        values[rng.random(shape) < 0.25] = -1e9
    strides = [stride // 4 if there else 0 for stride, there in zip(values.strides, along, strict=True)]
    return values, tuple(strides)


def attention(
    case: Case, q: Array, k: Array, v: Array, mask: Array | None, mask_strides: Sequence[int] | None
) -> tuple[Array, Array | None, Device]:
    batch, heads, rows, _, _, width = case.sizes
    made, strides = np.full((batch, heads, rows, width), np.nan, FLOATS[case.made or case.dtype]), list[Any]()
    arrays: list[Memory] = []
    for each in (q, k, v, made):
        memory, own = laid(each, case.order, case.gap)
        arrays.append(memory)
        strides.append(own)
    statistics = np.full((batch, heads, rows, case.keeps), np.nan, np.float32) if case.keeps else None
    device = Device()
    launch_flash(
        device, arrays, case.sizes, strides, case.scale or 1 / math.sqrt(case.sizes[4]),
        beside=FlashMasks(None if mask is None else Memory(mask.reshape(-1)), mask_strides), causal=case.causal,
        statistics=None if statistics is None else Memory(statistics.reshape(-1)), keeps=case.keeps,
    )  # fmt: skip
    out = arrays[3].flat
    found = np.lib.stride_tricks.as_strided(
        out, made.shape, tuple(stride * out.itemsize for stride in strides[3])
    )  # fmt: skip
    return found, statistics, device


class Bounds(NamedTuple):
    """Attributes:
    exact, near: the result, and how far it may be off.
    logarithms, of_logarithm: those of the rows' sums of exponentials, and how far they may be off.
    shares: the softmax.
    off: how far a score may be.
    spread: by how much scores are less than the largest of their rows.
    """

    exact: Array
    near: Array
    logarithms: Array
    of_logarithm: Array
    shares: Array
    off: Array
    spread: Array


def bounds(case: Case, q: Array, k: Array, v: Array, mask: Array | None) -> Bounds:
    """What is exact, and how far what a kernel makes may be off.

    Scores are off by the rounding of the factors to TF32 (none of 16-bit floats), by `MMA_ROUNDING` for each addend of
    a product and by a scale and a mask that are rounded; their exponentials by `EXP2_ERROR`, by three roundings of the
    exponent, and for each tile by those of a factor. The largest score is taken off both numerator and denominator.
    """
    sizes, scale = case.sizes, case.scale or 1 / math.sqrt(case.sizes[4])
    unit, narrow = tolerance.unit(), case.dtype != "float32"
    share_unit = tolerance.unit(FLOATS[case.dtype]) if narrow else matrix.TF32_ROUNDING
    factor_unit = 0.0 if narrow else matrix.TF32_ROUNDING
    depth, keys = sizes[4], sizes[3]
    wide = [each.astype(np.float64) for each in (q, k, v)]
    add = 0.0 if mask is None else mask.astype(np.float64)
    products = np.einsum("bhmd,bhnd->bhmn", wide[0], wide[1]) * scale
    largest = np.einsum("bhmd,bhnd->bhmn", np.abs(wide[0]), np.abs(wide[1])) * abs(scale)
    scores = products + add
    if case.causal:
        scores = np.where(np.arange(keys)[None] > np.arange(sizes[2])[:, None], -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - top)
    total = exponentials.sum(-1, keepdims=True)
    shares = exponentials / total
    exact = np.einsum("bhmn,bhnd->bhmd", shares, wide[2])
    # addends of an mma: depth of them and the sum so far, for each of its steps
    addends = 2 * (depth + 16) * matrix.MMA_ROUNDING
    off = largest * (2 * factor_unit + factor_unit**2 + addends) + 2 * unit * (largest + np.abs(add))
    tiles = -(-keys // 32) + 1  # of the smallest tile, and the one that puts threads together
    spread = np.where(shares > 0, top - scores, 0)
    of_exponential = np.where(shares > 0, np.expm1(off + 3 * unit * spread + tiles * (matrix.EXP2_ERROR + 2 * unit)), 0)
    of_total = (shares * of_exponential).sum(-1, keepdims=True) + tolerance.gamma(keys + 4)
    rounding = (1 + share_unit) * (1 + factor_unit) * (1 + 2 * (keys + 16) * matrix.MMA_ROUNDING) - 1
    values = np.abs(wide[2])
    near = np.einsum("bhmn,bhnd->bhmd", shares * (of_exponential + rounding * (1 + of_exponential)), values)
    # exponentials that are no normal numbers of their type
    limits = cast("Any", ml_dtypes.finfo)(FLOATS[case.dtype])
    smallest = float(limits.smallest_subnormal) if narrow else tolerance.SMALLEST
    near = (near + np.abs(exact) * of_total + smallest * values.sum(-2, keepdims=True)) / (1 - of_total)
    made = tolerance.unit(FLOATS[case.made or case.dtype])
    near = near * (1 + made) + (made + 3 * unit) * np.abs(exact) + tolerance.SMALLEST
    logarithms = (top + np.log(total))[..., 0]
    there = np.where(shares > 0, off, 0).max(-1)
    of_logarithm = (
        there
        + of_total[..., 0] / (1 - of_total[..., 0])
        + 8 * unit * (1 + np.abs(top + 0)[..., 0] + np.log(total)[..., 0])
    )
    return Bounds(exact, near, logarithms, of_logarithm, shares, off, spread)
