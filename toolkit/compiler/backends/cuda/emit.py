"""Code generation: the functions of a block that runs on a GPU: launch by launch, and for recordings."""

from __future__ import annotations

from toolkit.compiler.backends.cuda.conditional_emit import ConditionalEmitter
from toolkit.compiler.backends.cuda.device_numbers import DeviceNumbers, copies_numbers_out
from toolkit.compiler.backends.cuda.emitter import CudaEmitter, CudaFunction
from toolkit.compiler.backends.cuda.list_uses import ListUses
from toolkit.compiler.backends.cuda.recorded import refusal
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.kernels.cuda.device import CudaDevice, device_named


def emit(block: Block, *, tf32: bool = False) -> CudaFunction:
    """The function of a block of calls, fused kernels, branches and loops.

    Args:
        tf32: products of float32 numbers may be computed so.

    Raises:
        NotSupportedError: there is an operation in it that nothing is behind.
    """
    device = device_named(block.device)
    why_not = refusal(block)
    lists, recorded = None, None
    if why_not is None and copies_numbers_out(block):
        lists, recorded = _for_recordings(block, device)
    made = CudaEmitter(block, device, lists).write()
    assert isinstance(made, CudaFunction)
    made.device, made.tf32, made.recorded = device, tf32, recorded
    made.why_not = why_not
    if made.why_not is not None:
        block.notes.append(f"the step runs launch by launch, not as a CUDA graph: {made.why_not}")
    return made


def _for_recordings(block: Block, device: CudaDevice) -> tuple[ListUses | None, KernelFunction | None]:
    """The function with conditional nodes, and the lists in it whose lengths it wants to know; None where it cannot be,
    which is noted."""
    numbers = DeviceNumbers(block)
    why_not = device.context.no_conditions or numbers.why_not
    if why_not:
        block.notes.append(f"the host decides on loops and branches that depend on tensors: {why_not}")
        return None, None
    return numbers.lists, ConditionalEmitter(block, device, numbers).write()
