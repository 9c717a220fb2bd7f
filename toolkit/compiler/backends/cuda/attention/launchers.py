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
    attention, named = operation.attention, _names_beside(operation)
    outputs = [(relations.shape(value), value.dtype) for value in operation.outputs]

    def launch(q: GpuArray, k: GpuArray, v: GpuArray, *others: GpuArray) -> list[GpuArray]:
        made = [device.empty(shape, dtype) for shape, dtype in outputs]
        beside = dict(zip(named, others, strict=True))
        attend(device, attention, q, k, v, made[0], statistics=made[1] if len(made) > 1 else None, **beside)
        return made

    return launch


def _gradient(device: CudaDevice, operation: AttentionGradientCall) -> Launch:
    gradient, named = operation.gradient, _names_beside(operation)
    outputs = [(relations.shape(value), value.dtype) for value in operation.outputs]

    def launch(
        q: GpuArray, k: GpuArray, v: GpuArray, out: GpuArray, d_out: GpuArray, statistics: GpuArray, *others: GpuArray
    ) -> list[GpuArray]:
        dq, dk, dv = (device.empty(shape, dtype) for shape, dtype in outputs)
        beside = dict(zip(named, others, strict=True))
        attend_back(device, gradient, q, k, v, out, d_out, statistics, (dq, dk, dv), **beside)
        return [dq, dk, dv]

    return launch


def _names_beside(operation: AttentionCall | AttentionGradientCall) -> list[str]:
    """What it takes last, by name."""
    return [name for name in ("mask", "bias", "keep") if getattr(operation, name) is not None]


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
ATTENTION_LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    AttentionCall: _attention,
    AttentionGradientCall: _gradient,
}
