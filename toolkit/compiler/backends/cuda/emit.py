"""Code generation: the functions of a block that runs on a GPU: launch by launch, and for recordings."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from toolkit.compiler.backends.cuda.conditionals.device_numbers import DeviceNumbers, copies_numbers_out
from toolkit.compiler.backends.cuda.conditionals.emit import ConditionalEmitter
from toolkit.compiler.backends.cuda.conditionals.list_uses import ListUses
from toolkit.compiler.backends.cuda.emitter import CudaEmitter, CudaFunction
from toolkit.compiler.backends.cuda.recording.recorded import refusal
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.calls import Loop
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
    lists = ListUses(block) if why_not is None else None
    recorded = None
    if lists is not None and copies_numbers_out(block):
        recorded = _for_recordings(block, device, lists)
    made = CudaEmitter(block, device, lists).write()
    assert isinstance(made, CudaFunction)
    made.device, made.tf32, made.recorded = device, tf32, recorded
    made.decided_by = None if lists is None else functools.partial(_decided_by, block, device, lists)
    made.why_not = why_not
    if made.why_not is not None:
        block.notes.append(f"the step runs launch by launch, not as a CUDA graph: {made.why_not}")
    return made


def _for_recordings(block: Block, device: CudaDevice, lists: ListUses) -> KernelFunction | None:
    """The function with conditional nodes; None where it cannot be, which is noted."""
    numbers = DeviceNumbers(block, lists)
    why_not = device.context.no_conditions or numbers.why_not
    if why_not:
        block.notes.append(f"the host decides on loops and branches that depend on tensors: {why_not}")
        return None
    return ConditionalEmitter(block, device, numbers).write()


def _decided_by(block: Block, device: CudaDevice, lists: ListUses, positions: Sequence[int]) -> KernelFunction | None:
    """The function for recordings whose arguments in host memory, some of them, are other ones in each step; None where
    somebody on the host has to know these."""
    fed = [block.arguments[position] for position in positions]
    if device.context.no_conditions or None in fed:
        return None
    numbers = DeviceNumbers(block, lists, [value for value in fed if value is not None])
    if numbers.why_not:
        return None
    loops = [(each, each.compiled) for each in block.walk() if isinstance(each, Loop)]
    made = ConditionalEmitter(block, device, numbers).write()
    for loop, compiled in loops:  # what shows loops shows those of the host
        loop.compiled = compiled
    return made
