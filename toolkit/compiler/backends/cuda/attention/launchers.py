"""What runs attention and its gradients; see `launchers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.attention.operations import AttentionCall, AttentionGradientCall
from toolkit.compiler.ir import relations
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.nn.attention import attend, attend_back

Launch = Callable[..., list[GpuArray]]


def _attention(device: CudaDevice, operation: AttentionCall) -> Launch:
    attention = operation.attention
    outputs = [(relations.shape(value), value.dtype) for value in operation.outputs]

    def launch(q: GpuArray, k: GpuArray, v: GpuArray, mask: GpuArray | None = None) -> list[GpuArray]:
        made = [device.empty(shape, dtype) for shape, dtype in outputs]
        attend(device, attention, q, k, v, made[0], mask=mask, statistics=made[1] if len(made) > 1 else None)
        return made

    return launch


def _gradient(device: CudaDevice, operation: AttentionGradientCall) -> Launch:
    gradient = operation.gradient
    outputs = [(relations.shape(value), value.dtype) for value in operation.outputs]

    def launch(
        q: GpuArray,
        k: GpuArray,
        v: GpuArray,
        out: GpuArray,
        d_out: GpuArray,
        statistics: GpuArray,
        mask: GpuArray | None = None,
    ) -> list[GpuArray]:
        dq, dk, dv = (device.empty(shape, dtype) for shape, dtype in outputs)
        attend_back(device, gradient, q, k, v, out, d_out, statistics, (dq, dk, dv), mask=mask)
        return [dq, dk, dv]

    return launch


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
ATTENTION_LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    AttentionCall: _attention,
    AttentionGradientCall: _gradient,
}
