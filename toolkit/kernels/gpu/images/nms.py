"""Non-maximum suppression (V2 to V4): boxes by falling scores, those dropped that overlap a chosen one too much.

Three steps: sort the scores; for each box, which later ones it would drop, a bit each; one block that goes through the
boxes in order. The host asks how many were chosen, and waits for the GPU.
"""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.common import require, require_rank, require_scalar, shape_text
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.arrays.sort_kernels import sort_rows
from toolkit.kernels.gpu.arrays.sorting import take_first
from toolkit.kernels.gpu.primitives.reduce_code import first_thread
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

BLOCK = 256
_WORD = 32


def _corners(k: KernelBuilder, boxes: KernelBuffer, box: Lanes) -> tuple[list[Value], list[Value], Value]:
    """The lower and the upper corner of a box of any two opposite corners, and its area."""
    first = k.mul(box, k.number(4, "i64"))
    ends = [k.load(boxes, k.add(first, k.number(i, "i64"))) for i in range(4)]
    low, high = list[Value](), list[Value]()
    for a, b in ((ends[0], ends[2]), (ends[1], ends[3])):
        less = k.compare("olt", a, b)
        low.append(k.select(less, a, b))
        high.append(k.select(less, b, a))
    return low, high, k.mul(k.sub(high[0], low[0]), k.sub(high[1], low[1]))


@functools.cache
def _overlaps() -> SimtKernel:
    """For each box, in order, the later ones that overlap it more than the threshold, 32 in a word.

    A word for each thread. Scalars: boxes, words of a row, the threshold.
    """
    k = KernelBuilder("nms_overlaps", BLOCK)
    boxes, order = k.buffer("boxes", "float"), k.buffer("order", "i32")
    made = k.buffer("made", "i32", written=True)
    count, words, threshold = k.scalar("count", "i64"), k.scalar("words", "i64"), k.scalar("threshold", "float")
    thread = k.global_thread("i64")
    row = k.div(thread, words)
    with k.when(k.compare("slt", row, count)):
        low, high, area = _corners(k, boxes, k.convert(k.load(order, row), "i64"))
        bits = k.variable(k.number(0, "i32"))
        begin = k.mul(k.rem(thread, words), k.number(_WORD, "i64"))
        stop = k.add(begin, k.number(_WORD, "i64"))
        end = k.select(k.compare("slt", stop, count), stop, count)
        next_ = k.add(row, k.number(1, "i64"))
        start = k.select(k.compare("sgt", begin, next_), begin, next_)
        none = k.number(0.0, "float")
        with k.loop(start, end) as other:
            other_low, other_high, other_area = _corners(k, boxes, k.convert(k.load(order, other), "i64"))
            sides: list[Value] = []
            for a, b, c, d in zip(high, other_high, low, other_low, strict=True):
                upper = k.select(k.compare("olt", a, b), a, b)
                lower = k.select(k.compare("ogt", c, d), c, d)
                side = k.sub(upper, lower)
                sides.append(k.select(k.compare("ogt", side, none), side, none))
            shared = k.mul(sides[0], sides[1])
            union = k.sub(k.add(area, other_area), shared)
            real = k.both(k.compare("ogt", area, none), k.compare("ogt", other_area, none))
            ratio = k.div(shared, k.select(real, union, k.number(1.0, "float")))
            drops = k.both(real, k.compare("ogt", ratio, threshold))
            bit = k.binary("shl", k.number(1, "i32"), k.convert(k.sub(other, begin), "i32"))
            bits.set(k.binary("or", bits.get(), k.select(drops, bit, k.number(0, "i32"))))
        k.store(made, thread, bits.get())
    return k.finish()


@functools.cache
def _choose() -> SimtKernel:
    """One block goes through the boxes in order and keeps what nobody dropped.

    Scalars: boxes, words of a row, how many are wanted, the score that must be exceeded.
    """
    k = KernelBuilder("nms_choose", BLOCK)
    overlaps, order, scores = k.buffer("overlaps", "i32"), k.buffer("order", "i32"), k.buffer("scores", "float")
    dropped = k.buffer("dropped", "i32", written=True)
    chosen, found = k.buffer("chosen", "i32", written=True), k.buffer("found", "i32", written=True)
    count, words, limit = (k.scalar(each, "i64") for each in ("count", "words", "limit"))
    least = k.scalar("least", "float")
    kept = k.shared("kept", "i32", 1)
    total = k.variable(k.number(0, "i64"))
    box = k.variable(k.number(0, "i64"))
    one = k.number(1, "i64")
    with k.while_(lambda: k.both(k.compare("slt", box.get(), count), k.compare("slt", total.get(), limit))):
        i = box.get()
        with k.when(first_thread(k)):
            word = k.load(dropped, k.binary("lshr", i, k.number(5, "i64")))
            bit = k.binary("shl", k.number(1, "i32"), k.convert(k.binary("and", i, k.number(31, "i64")), "i32"))
            free = k.compare("eq", k.binary("and", word, bit), k.number(0, "i32"))
            good = k.both(free, k.compare("ogt", k.load(scores, i), least))
            k.store(kept, k.number(0, "i32"), k.convert(good, "i32"))
        k.barrier()
        keep = k.convert(k.load(kept, k.number(0, "i32")), "i1")
        with k.when(keep):
            with k.when(first_thread(k)):
                k.store(chosen, total.get(), k.load(order, i))
            with k.loop(k.convert(k.thread, "i64"), words, k.number(BLOCK, "i64")) as at:
                both = k.binary("or", k.load(dropped, at), k.load(overlaps, k.add(k.mul(i, words), at)))
                k.store(dropped, at, both)
            total.set(k.add(total.get(), one))
        k.barrier()
        box.set(k.add(i, one))
    with k.when(first_thread(k)):
        k.store(found, k.number(0, "i32"), k.convert(total.get(), "i32"))
    return k.finish()


@functools.cache
def _left_out() -> SimtKernel:
    """What is left out from the beginning, 32 boxes in a word: words, boxes."""
    k = KernelBuilder("nms_left_out", BLOCK)
    fits, order, dropped = k.buffer("fits", "i8"), k.buffer("order", "i32"), k.buffer("dropped", "i32", written=True)
    words, count = k.scalar("words", "i64"), k.scalar("count", "i64")
    word = k.global_thread("i64")
    with k.when(k.compare("slt", word, words)):
        bits = k.variable(k.number(0, "i32"))
        begin = k.mul(word, k.number(_WORD, "i64"))
        stop = k.add(begin, k.number(_WORD, "i64"))
        with k.loop(begin, k.select(k.compare("slt", stop, count), stop, count)) as box:
            bit = k.binary("shl", k.number(1, "i32"), k.convert(k.sub(box, begin), "i32"))
            is_there = k.load_bool(fits, k.convert(k.load(order, box), "i64"))
            bits.set(k.binary("or", bits.get(), k.select(is_there, k.number(0, "i32"), bit)))
        k.store(dropped, word, bits.get())
    return k.finish()


def suppressed(
    device: CudaDevice, boxes: GpuArray, scores: GpuArray, limit: int, threshold: float, least: float,
    most: int | None = None, fits: GpuArray | None = None,
) -> tuple[GpuArray, GpuArray]:  # fmt: skip
    """The chosen indices with room for `limit`, and how many there are.

    Args:
        most: how many of the best are looked at.
        fits: bools [boxes], which of these are.
    """
    chosen, found = device.zeros((limit,), np.int32), device.zeros((), np.int32)
    count = scores.size
    if not count or not limit:
        return chosen, found
    records = sort_rows(device, scores, 1, count, count, descending=True)
    values, order = device.empty((count,), np.float32), device.empty((count,), np.int32)
    blocks = -(-count // BLOCK)
    device.launch(take_first("float32"), blocks, scores, *records.records, values, order, count, records.stride, count,
                  count)  # fmt: skip
    count = count if most is None else min(count, most)
    words = -(-count // _WORD)
    overlaps, dropped = device.empty((count * words,), np.int32), device.zeros((words,), np.int32)
    if fits is not None:
        device.launch(_left_out(), -(-words // BLOCK), fits, order, dropped, words, count)
    device.launch(_overlaps(), -(-count * words // BLOCK), boxes, order, overlaps, count, words, threshold)
    device.launch(_choose(), 1, overlaps, order, values, dropped, chosen, found, count, words, limit, least)
    return chosen, found


@gpu_kernel("NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def non_max_suppression(op: KernelNode) -> Compute:
    """V3 has a least score, V4 also padding with zeros and how many were chosen."""
    device = device_of(op.node)
    pads = op.op == "NonMaxSuppressionV4" and bool(op.attr("pad_to_max_output_size"))

    def compute(
        boxes: GpuArray, scores: GpuArray, limit_input: Array, iou: Array, *least_input: Array
    ) -> GpuArray | tuple[GpuArray, GpuArray]:
        require_scalar(limit_input, "max_output_size")
        limit = int(limit_input)
        require(limit >= 0, f"max_output_size must be non-negative, got {limit}")
        require_scalar(iou, "iou_threshold")
        threshold = float(iou)
        require(0 <= threshold <= 1, f"iou_threshold must be in [0, 1], got {threshold}")
        if least_input:
            require_scalar(least_input[0], "score_threshold")
        require_rank(boxes, 2, "boxes")
        require(boxes.shape[1] == 4, f"boxes must have 4 columns, got {shape_text(boxes)}")
        require_rank(scores, 1, "scores")
        require(
            scores.shape[0] == boxes.shape[0],
            f"scores has incompatible shape: {scores.shape[0]} scores, {boxes.shape[0]} boxes",
        )
        # without a least score, one of the lowest finite value is not over it
        least = float(least_input[0]) if least_input else float(np.finfo(np.float32).min)
        room = limit if pads else min(limit, scores.size)
        chosen, found = suppressed(device, boxes, scores, room, threshold, least)
        kept = chosen if pads else chosen.viewed(np.int32, (int(device.to_host(found)),))
        return (kept, found) if op.op == "NonMaxSuppressionV4" else kept

    return compute
