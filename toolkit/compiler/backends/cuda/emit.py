"""Code generation: the function of a block that runs on a GPU, launch by launch."""

from __future__ import annotations

from typing import Any

from toolkit.compiler.backends.cuda.launchers import LAUNCHERS, updates
from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.backends.cuda.recorded import RecordedFunction, refusal
from toolkit.compiler.backends.kernels.emit import CallEmitter
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cuda.device import CudaDevice, device_named


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
        if isinstance(operation, UpdatesCall):
            update = self.share("f", updates(self._device, operation))
            parts = (operation.targets, operation.gradients, operation.numbers)
            given = ", ".join(f"[{', '.join(map(self.read, part))}]" for part in parts)
            self.line("if R.is_cancelled: R.check_cancelled()")
            self.line(f"{update}(R, {given})")
            return
        make = LAUNCHERS.get(type(operation))
        if make is not None:
            launch = self.share("f", make(self._device.for_node(operation.name), operation))
            made = ", ".join(map(self.bind, operation.outputs))
            self.line(f"{made}, = {launch}({', '.join(map(self.read, operation.inputs))})")
        else:
            super().write_operation(operation)

    def inner(self, body: Block) -> KernelFunction:
        return CudaEmitter(body, self._device).write()
