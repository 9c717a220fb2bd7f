"""What is fastest on a GPU, by short measurements: see `tests.gpu.questions`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.gpu.answers import Question, is_fake, numbers
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.libraries.attention import Attention, AttentionSizes, packed_strides
from toolkit.kernels.cuda.libraries.base import Convolution, LibraryError, Product
from toolkit.kernels.cuda.libraries.choosing import CALLS
from toolkit.kernels.cuda.libraries.precision import allow_tf32


def _microseconds(gpu: CudaDevice, run: Callable[[], None]) -> float:
    """Of what is put into the device's compute stream, as a replay has it."""
    run()  # plans, code
    with gpu.recording() as recording:
        for _ in range(CALLS):
            run()
    context, best = gpu.context, float("inf")
    recording.replay()
    for _ in range(5):
        start, end = context.event(timing=True), context.event(timing=True)
        context.record(start, gpu.compute)
        recording.replay()
        context.record(end, gpu.compute)
        context.synchronize(end)
        best = min(best, context.elapsed(start, end))
    recording.close()
    return 1e3 * best / CALLS


def _attention(gpu: CudaDevice) -> str:
    """The encoder's: 8 images, 12 heads, 128 tokens of 64 numbers; and of 512 tokens."""
    from toolkit.kernels.cuda.nn.flash_launch import launch_flash
    from toolkit.kernels.gpu.nn import attention_parts

    said: list[str] = []
    before = allow_tf32(True)
    try:
        for batch, tokens in ((1, 32),) if is_fake() else ((8, 128), (8, 512)):
            sizes = AttentionSizes(batch, 1 if is_fake() else 12, tokens, tokens, 64, 64)
            places: dict[str, Any] = {part: packed_strides(sizes.shape(part)) for part in ("q", "k", "v", "out")}
            a = Attention(sizes, "float32", 0.125, **places, tf32=True)
            q, k, v = (gpu.to_device(numbers(*sizes.shape(part))) for part in ("q", "k", "v"))
            given = (q, k, v, gpu.empty(sizes.shape("out"), np.float32))
            flash = partial(launch_flash, gpu, given, sizes, (a.q, a.k, a.v, a.out), a.scale)
            one = _microseconds(gpu, flash)
            parts = _microseconds(gpu, partial(attention_parts.attend, gpu, a, *given, None, None))
            said.append(f"{tokens} tokens: one kernel {one:.1f} us, products and softmax {parts:.1f} us")
    finally:
        allow_tf32(before)
    return "; ".join(said)


def _product(gpu: CudaDevice, m: int, n: int, k: int, *turns: str) -> tuple[str, Callable[[Any], None]]:
    of = Product(m, n, k, "float32", *turns, tf32=True)
    spans = [gpu.empty((rows, columns), np.float32) for rows, columns in ((m, k), (k, n), (m, n))]
    return f"{m}x{n}x{k}", lambda blas: blas.matmul(of, *spans, gpu.compute)


def _convolution(gpu: CudaDevice, kind: str, batch: int, channels: int, filters: int, size: int, window: int,
                 stride: int = 1) -> tuple[str, Callable[[Any], None]]:  # fmt: skip
    out = -(-size // stride)
    total = max((out - 1) * stride + window - size, 0)
    pad = (total // 2, total - total // 2)
    of = Convolution(
        kind, "float32", batch, channels, filters, 1, (size, size), (window, window), (out, out), (stride, stride),
        (1, 1), (pad, pad), tf32=True,
    )  # fmt: skip
    x, w, y = (gpu.empty(shape, np.float32) for shape in (of.x_shape, of.w_shape, of.y_shape))
    given = {"forward": (x, w, y), "input": (w, y, x), "filter": (x, y, w)}[kind]
    return f"{kind} {window}x{window} {channels} to {filters} of {size}", lambda dnn: dnn.convolve(
        of, *given, gpu.compute
    )


def _chosen(gpu: CudaDevice) -> str:
    """Calls of ResNet-50, as the heuristics propose them and as they are when they were measured."""
    from toolkit.kernels.cuda.driver.linked import library

    shrink = 64 if is_fake() else 1
    products = [(200704 // shrink, 64, 256), (64, 256, 200704 // shrink, "T", "N"), (12544 // shrink, 1024, 256)]
    layers = [("forward", 64, 64, 56, 3), ("input", 128, 128, 28, 3), ("filter", 256, 256, 14, 3)]
    asked = [("blas", _product(gpu, *each)) for each in products]
    asked += [("dnn", _convolution(gpu, kind, 64 // shrink, *sizes)) for kind, *sizes in ([] if is_fake() else layers)]
    context, said = gpu.context, list[str]()
    measures = context.measures
    try:
        for name, (label, call) in asked:
            taken: list[float] = []
            for measured in (False, True):
                context.measures = measured  # a library of its own, which has no plans yet
                made = None if is_fake() else library(name, context, getattr(context, "enter", None), fake=False)[0]
                taken.append(_microseconds(gpu, partial(call, made or getattr(context, name))))
            said.append(f"{label} {taken[0]:.1f} then {taken[1]:.1f} us")
    finally:
        context.measures = measures
    return "; ".join(said)


def _channels(gpu: CudaDevice) -> str:
    """ResNet-50's first convolution with 3 channels, and with a fourth of zeros."""
    said: list[str] = []
    batch, size = (1, 16) if is_fake() else (64, 224)
    for kind in ("forward", "filter"):
        for channels in (3, 4):
            label, call = _convolution(gpu, kind, batch, channels, 64, size, 7, 2)
            try:
                said.append(f"{label} {_microseconds(gpu, partial(call, gpu.context.dnn)):.1f} us")
            except LibraryError as error:
                said.append(f"{label}: {str(error)[:80]}")
    return "; ".join(said)


def _gaps(gpu: CudaDevice) -> str:
    """What a small kernel takes in a replayed graph, one behind the other."""
    from tests.gpu.smoke import scale

    x, y = gpu.to_device(np.ones(256, np.float32)), gpu.empty((256,), np.float32)
    return f"{_microseconds(gpu, lambda: gpu.launch(scale(), 1, x, y, 256)):.2f} us"


QUESTIONS: dict[str, Question] = {
    "launches": Question("what takes a small kernel in a replay (assumed: 2 us)?", _gaps),
    "tf32 attention": Question("is our kernel faster than cuBLASLt and a softmax?", _attention),
    "chosen": Question("what does measuring gain over the heuristics?", _chosen),
    "first layer": Question("does a fourth channel of zeros pay?", _channels),
}
