"""CTCLossV2: losses with their gradients. Labels are in host memory, and laid out there as for the CPU.

TensorFlow has no kernels for GPUs of CTCLoss and of the decoders, which are therefore placed on the CPU.
"""

from __future__ import annotations

import numpy as np

from toolkit.kernels.cpu.nn.ctc import lay_out
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import TYPES
from toolkit.kernels.gpu.nn import ctc_kernels
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@kernel("CTCLossV2", device="GPU", label="simt")
def ctc_loss(op: KernelNode) -> Compute:
    """The loss of each example and its gradient by the logits."""
    device, merge = device_of(op.node), bool(op.attr("ctc_merge_repeated"))

    def compute(inputs: GpuArray, indices: Array, values: Array, lengths: Array) -> list[GpuArray]:
        laid = lay_out(op, inputs, indices, values, lengths)
        times, batch, classes = inputs.shape
        states = laid.path.shape[1]
        log_y = device.empty(inputs.shape, np.float64)
        type, rows = TYPES[inputs.dtype.name], times * batch
        device.launch(ctc_kernels.log_softmax(type), rows, inputs, log_y, classes)
        path, sizes, times_of, counted = (
            device.to_device(np.asarray(each, np.int32))
            for each in (laid.path, laid.sizes, laid.lengths, np.where(laid.too_long, 0, laid.lengths))
        )
        alpha, beta = (device.empty((times, batch, states), np.float64) for _ in range(2))
        totals = device.empty((batch,), np.float64)
        device.launch(
            ctc_kernels.ways(merge), batch, log_y, path, sizes, times_of, alpha, beta, totals, batch, classes, states,
            laid.blank,
        )  # fmt: skip
        loss, gradient = device.empty((batch,), inputs.dtype), device.empty(inputs.shape, inputs.dtype)
        device.launch(
            ctc_kernels.results(type), rows, log_y, path, sizes, counted, totals, alpha, beta, loss, gradient, batch,
            classes, states,
        )  # fmt: skip
        return [loss, gradient]

    return compute
