"""Attention where no single kernel has it: products in place, and a kernel over the rows of the scores between them.

The scores are in memory, in float32; what is multiplied again is rounded to the type of the operands. Products are
batches at equal distances: of all heads at once, and of all images where these follow, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cuda.libraries.attention import Attention, AttentionGradient, FourStrides, packed_strides
from toolkit.kernels.cuda.libraries.base import Product
from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, index_type_of, split
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.cuda.strided_products import multiply_strided
from toolkit.kernels.gpu.elementwise import row_nests
from toolkit.kernels.gpu.elementwise.nests import FusedKernel, NestOperand, NestStep
from toolkit.kernels.tensors import F32

_SCALAR: FourStrides = (0, 0, 0, 0)


def attend(device: Any, a: Attention, q: Any, k: Any, v: Any, out: Any, mask: Any, statistics: Any) -> None:
    """See `toolkit.kernels.gpu.nn.attention.attend`."""
    sizes = a.sizes
    scores = device.empty(sizes.shape("scores"), F32)
    places = packed_strides(sizes.shape("scores"))
    _multiply(device, a, (q, a.q, False), (k, a.k, True), (scores, places), (sizes.rows, sizes.keys, sizes.size))
    shares = device.empty(sizes.shape("scores"), q.dtype)
    found = _softmax(a)
    made = [shares] if statistics is None else [shares, statistics]
    device.launch(found.kernel, found.blocks, scores, *_beside(device, a, mask), *made, *found.numbers)
    _multiply(
        device, a, (shares, places, False), (v, a.v, False), (out, a.out), (sizes.rows, sizes.value_size, sizes.keys)
    )


def attend_back(
    device: Any,
    gradient: AttentionGradient,
    q: Any,
    k: Any,
    v: Any,
    d_out: Any,
    statistics: Any,
    made: tuple[Any, Any, Any],
    mask: Any,
) -> None:
    """See `toolkit.kernels.gpu.nn.attention.attend_back`."""
    g, a, sizes = gradient, gradient.forward, gradient.forward.sizes
    shape = sizes.shape("scores")
    places = packed_strides(shape)
    scores, d_shares = device.empty(shape, F32), device.empty(shape, F32)
    rows, keys, size, value_size = sizes[2:]
    _multiply(device, a, (q, a.q, False), (k, a.k, True), (scores, places), (rows, keys, size))
    _multiply(device, a, (d_out, g.d_out, False), (v, a.v, True), (d_shares, places), (rows, keys, value_size))
    shares, d_scores = device.empty(shape, q.dtype), device.empty(shape, q.dtype)
    found = _softmax_gradient(a)
    device.launch(
        found.kernel, found.blocks, scores, d_shares, statistics, *_beside(device, a, mask), shares, d_scores,
        *found.numbers,
    )  # fmt: skip
    dq, dk, dv = made
    _multiply(device, a, (shares, places, True), (d_out, g.d_out, False), (dv, g.dv), (keys, value_size, rows))
    _multiply(device, a, (d_scores, places, False), (k, a.k, False), (dq, g.dq), (rows, size, keys))
    _multiply(device, a, (d_scores, places, True), (q, a.q, False), (dk, g.dk), (keys, size, rows))


#: an operand: its memory, how it lies, and whether it is taken transposed
_Factor = tuple[Any, FourStrides, bool]


def _multiply(
    device: Any, a: Attention, left: _Factor, right: _Factor, out: tuple[Any, FourStrides], sizes: tuple[int, int, int]
) -> None:
    """The products of all batches and heads, in as few calls as their distances allow."""
    (x, at_x, turn_x), (y, at_y, turn_y), (z, at_z) = left, right, out
    made = "" if z.dtype == x.dtype else z.dtype.name
    for count, steps, firsts in _batches(a.sizes.batch, a.sizes.heads, (at_x, at_y, at_z)):
        product = Product(
            *sizes, x.dtype.name, "T" if turn_x else "N", "T" if turn_y else "N", count, *steps, made=made,
            lead_a=at_x[2], lead_b=at_y[2], lead_out=at_z[2],
        )  # fmt: skip
        multiply_strided(device, product, x, y, z, firsts=firsts)


def _batches(
    batch: int, heads: int, places: Sequence[FourStrides]
) -> Iterator[tuple[int, tuple[int, int, int], tuple[int, int, int]]]:
    """How many products, the steps between them, and where the first ones are, of each call."""
    x, y, z = places
    if all(each[0] == heads * each[1] for each in places):
        yield batch * heads, (x[1], y[1], z[1]), (0, 0, 0)
        return
    inner, outer, count = (1, 0, batch) if heads >= batch else (0, 1, heads)
    for number in range(count):
        firsts = (number * x[outer], number * y[outer], number * z[outer])
        yield (heads if inner else batch), (x[inner], y[inner], z[inner]), firsts


def _beside(device: Any, a: Attention, mask: Any) -> list[Any]:
    """What the kernels between products take besides: the scale, the mask, and that of later keys."""
    found = [_number(device, a.scale)]
    found += [] if mask is None else [mask]
    return found + ([_later(device, a.sizes.rows, a.sizes.keys)] if a.causal else [])


def _number(device: Any, number: float) -> Any:
    return device.full((), F32, np.float32(number))


def _later(device: Any, rows: int, keys: int) -> Any:
    """-inf where a key is behind the query; made on the device, for a recorded step copies nothing to it."""
    made = device.empty((rows, keys), F32)
    index = index_type_of(made.size)
    device.launch(_later_kernel(index), blocks_of(made.size), made, keys, made.size)
    return made


@functools.cache
def _later_kernel(index: str) -> SimtKernel:
    k = KernelBuilder("attention_later_keys", BLOCK)
    made = k.buffer("made", "float", written=True)
    keys, count = k.scalar("keys", index), k.scalar("count", index)
    place = k.global_thread(index)
    with k.when(k.compare("slt", place, count)):
        row, key = split(k, place, keys)
        hidden = k.compare("slt", row, key)
        k.store(made, place, k.select(hidden, k.number(-math.inf, "float"), k.number(0.0, "float")))
    return k.finish()


def _scores(a: Attention, first: int, count: int) -> tuple[list[NestOperand], list[NestStep], int]:
    """The operands of `_beside`, the steps that scale and mask the first operand, and where the last of these is.

    Args:
        first: the place of the scale among all operands.
        count: how many operands there are.
    """
    operands = [NestOperand("float32", _SCALAR)]
    operands += [] if a.mask is None else [NestOperand("float32", a.mask)]
    operands += [NestOperand("float32", (0, 0, a.sizes.keys, 1))] if a.causal else []
    steps = [NestStep("Mul", (0, first), "float32")]
    for at in range(1, len(operands)):
        steps.append(NestStep("AddV2", (count + len(steps) - 1, first + at), "float32"))
    return operands, steps, count + len(steps) - 1


def _cast(at: int, dtype: str) -> NestStep:
    return NestStep("Cast", (at,), dtype, (("Truncate", False),))


@functools.lru_cache(maxsize=256)
def _softmax(a: Attention) -> FusedKernel:
    """Of scores: their softmax in the operands' type, and the logarithms of sums of exponentials."""
    places = packed_strides(a.sizes.shape("scores"))
    count = 2 + (a.mask is not None) + a.causal
    beside, steps, score = _scores(a, 1, count)

    def add(op: str, *inputs: int) -> int:
        steps.append(NestStep(op, inputs, "float32"))
        return count + len(steps) - 1

    stores: list[int] = []
    shares = add("Softmax", score)
    steps.append(_cast(shares, a.dtype))
    stores.append(count + len(steps) - 1)
    if a.statistics:
        largest = add("Max", score)
        total = add("Sum", add("Exp", add("Sub", score, largest)))
        stores.append(add("AddV2", add("Log", total), largest))
    return row_nests.fused_rows(steps, [NestOperand("float32", places), *beside], stores, a.sizes.shape("scores"))


@functools.lru_cache(maxsize=256)
def _softmax_gradient(a: Attention) -> FusedKernel:
    """Of scores, the gradients by their softmax, and statistics: the softmax and the gradients by scores, rounded."""
    places = packed_strides(a.sizes.shape("scores"))
    count = 4 + (a.mask is not None) + a.causal
    beside, steps, score = _scores(a, 3, count)

    def add(op: str, *inputs: int) -> int:
        steps.append(NestStep(op, inputs, "float32"))
        return count + len(steps) - 1

    shares = add("Exp", add("Sub", score, 2))
    total = add("Sum", add("Mul", 1, shares))
    d_scores = add("Mul", add("Mul", add("Sub", 1, total), shares), 3)
    steps += [_cast(shares, a.dtype), _cast(d_scores, a.dtype)]
    stores = [count + len(steps) - 2, count + len(steps) - 1]
    rows = (a.sizes.heads * a.sizes.rows, a.sizes.rows, 1, 0)
    operands = [NestOperand("float32", places), NestOperand("float32", places), NestOperand("float32", rows), *beside]
    return row_nests.fused_rows(steps, operands, stores, a.sizes.shape("scores"))
