"""GenerateBoundingBoxProposals: anchors moved by what a network says, the best of them without overlaps.

All anchors of an image are moved at once, and those that become too small are marked; then it is non-maximum
suppression among the best, and the chosen ones are written with zeros behind. The host waits for nothing.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from toolkit.kernels.cpu.common import require
from toolkit.kernels.cpu.images.proposals import LARGEST, check_proposals
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.images.nms import suppressed
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.primitives.reduce_code import largest, smallest
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def moved_kernel() -> SimtKernel:
    """Corners of moved anchors within the image, and whether they are large enough.

    Takes deltas and image_info of all images, anchors, corners, fits; places, the image's number, the least size.
    """
    k = KernelBuilder("proposals_moved", BLOCK)
    deltas, info, anchors = (k.buffer(name, "float") for name in ("deltas", "info", "anchors"))
    corners, fits = k.buffer("corners", "float", written=True), k.buffer("fits", "i8", written=True)
    count, image, least = k.scalar("count", "i64"), k.scalar("image", "i64"), k.scalar("least", "float")
    i, half = k.global_thread("i64"), k.number(0.5, "float")
    with k.when(k.compare("slt", i, count)):
        first = k.mul(i, k.number(4, "i64"))
        given = k.mul(k.add(k.mul(image, count), i), k.number(4, "i64"))
        about = k.mul(image, k.number(5, "i64"))
        sides = list[Value]()
        for axis in (0, 1):
            begin, end = (k.load(anchors, k.add(first, k.number(at, "i64"))) for at in (axis, axis + 2))
            step, growth = (k.load(deltas, k.add(given, k.number(at, "i64"))) for at in (axis, axis + 2))
            size, limit = k.sub(end, begin), k.load(info, k.add(about, k.number(axis, "i64")))
            centre = k.add(k.add(begin, k.mul(half, size)), k.mul(size, step))
            grown = functions.exp(k, smallest(k, growth, k.number(float(LARGEST), "float")))
            apart = k.mul(half, k.mul(size, grown))
            ends = [
                smallest(k, largest(k, each, k.number(0.0, "float")), limit)
                for each in (k.sub(centre, apart), k.add(centre, apart))
            ]
            for at, value in zip((axis, axis + 2), ends, strict=True):
                k.store(corners, k.add(first, k.number(at, "i64")), value)
            sides.append(k.sub(ends[1], ends[0]))
        wanted = k.mul(least, k.load(info, k.add(about, k.number(2, "i64"))))
        k.store_bool(fits, i, k.compare("oge", smallest(k, *sides), wanted))
    return k.finish()


@functools.cache
def chosen_kernel() -> SimtKernel:
    """The chosen corners and scores of an image: corners, scores, chosen, found, boxes, best; how many, the image."""
    k = KernelBuilder("proposals_chosen", BLOCK)
    corners, scores = k.buffer("corners", "float"), k.buffer("scores", "float")
    chosen, found = k.buffer("chosen", "i32"), k.buffer("found", "i32")
    boxes, best = (k.buffer(name, "float", written=True) for name in ("boxes", "best"))
    count, image, i = k.scalar("count", "i64"), k.scalar("image", "i64"), k.global_thread("i64")
    is_there = k.compare("slt", i, k.convert(k.load(found, k.number(0, "i32")), "i64"))
    with k.when(k.both(k.compare("slt", i, count), is_there)):
        source, target = k.convert(k.load(chosen, i), "i64"), k.add(k.mul(image, count), i)
        k.store(best, target, k.load(scores, source))
        for at in range(4):
            number, four = k.number(at, "i64"), k.number(4, "i64")
            k.store(boxes, k.add(k.mul(target, four), number), k.load(corners, k.add(k.mul(source, four), number)))
    return k.finish()


@gpu_kernel("GenerateBoundingBoxProposals")
def generate_proposals(op: KernelNode) -> Compute:
    device, count = device_of(op.node), int(op.attr("post_nms_topn"))
    require(count > 0, f"post_nms_topn can't be 0 or less, got {count}")

    def compute(
        scores: GpuArray, deltas: GpuArray, info: GpuArray, anchors: GpuArray, threshold: Array, most: Array,
        least: Array,
    ) -> tuple[GpuArray, GpuArray]:  # fmt: skip
        check_proposals(scores, deltas, info, anchors, threshold, most, least)
        images, places = scores.shape[0], math.prod(scores.shape[1:])
        boxes, best = device.zeros((images, count, 4), np.float32), device.zeros((images, count), np.float32)
        corners, fits = device.empty((places, 4), np.float32), device.empty((places,), bool)
        for image in range(images if places else 0):
            own = scores.viewed(np.float32, (places,), 4 * image * places)
            own = device.copied(own) if own.address % 16 else own  # parts of a whole need not begin where vectors do
            device.launch(moved_kernel(), blocks_for(places), deltas, info, anchors, corners, fits, places, image,
                          float(least))  # fmt: skip
            chosen, found = suppressed(device, corners, own, min(count, places), float(threshold), -math.inf,
                                       int(most), fits)  # fmt: skip
            device.launch(chosen_kernel(), blocks_for(count), corners, own, chosen, found, boxes, best, count, image)
        return boxes, best

    return compute
