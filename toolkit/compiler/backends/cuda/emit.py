"""Code generation: the function of a block that runs on a GPU, launch by launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.operations import FusedKernelCall
from toolkit.compiler.backends.cuda.recorded import RecordedFunction, refusal
from toolkit.compiler.backends.kernels.emit import CallEmitter
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cuda.device import CudaDevice, device_named
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu import nests
from toolkit.kernels.gpu.nests import NestOperand


class CudaFunction(KernelFunction):
    """A compiled block; its instances become CUDA graphs where they can."""

    replays = True
    device: CudaDevice
    why_not: str | None
    tf32: bool

    def instantiate(self) -> Any:
        """An instance with a graph of its own."""
        return RecordedFunction(self, self.device, self.why_not, tf32=self.tf32)


def emit(block: Block, *, tf32: bool = False) -> CudaFunction:
    """The function of a block of calls, fused kernels, branches and loops.

    Args:
        tf32: products of float32 numbers may be computed so.

    Raises:
        NotSupportedError: there is an operation in it that nothing is behind.
    """
    device = device_named(block.device)
    made = CudaEmitter(block, device).write()
    assert isinstance(made, CudaFunction)
    made.device, made.tf32 = device, tf32
    made.why_not = refusal(block)
    if made.why_not is not None:
        block.notes.append(f"the step runs launch by launch, not as a CUDA graph: {made.why_not}")
    return made


class CudaEmitter(CallEmitter):
    """Writes the function line by line.

    Args:
        device: that it runs on.
    """

    function = CudaFunction

    def __init__(self, block: Block, device: CudaDevice):
        super().__init__(block)
        self._device = device

    def write_operation(self, operation: Operation) -> None:
        if isinstance(operation, FusedKernelCall):
            launch = self.share("f", _launcher(self._device, operation))
            made = ", ".join(map(self.bind, operation.outputs))
            self.line(f"{made}, = {launch}({', '.join(map(self.read, operation.reads))})")
        else:
            super().write_operation(operation)

    def inner(self, body: Block) -> KernelFunction:
        return CudaEmitter(body, self._device).write()


def _launcher(device: CudaDevice, operation: FusedKernelCall) -> Callable[..., list[GpuArray]]:
    """What runs a fused kernel."""
    device = device.for_node(operation.name)
    shape = operation.shape
    dtypes = [output.dtype for output in operation.outputs]
    reads = [NestOperand(value.dtype.name, own) for value, own in zip(operation.reads, operation.strides, strict=True)]
    found = nests.fused(operation.members, reads, operation.stores, shape)
    kernel, blocks, numbers = found.kernel, found.blocks, found.numbers

    def launch(*given: GpuArray) -> list[GpuArray]:
        made = [device.empty(shape, dtype) for dtype in dtypes]
        device.launch(kernel, blocks, *given, *made, *numbers)
        return made

    return launch
