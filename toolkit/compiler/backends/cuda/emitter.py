"""Code generation: a block becomes a function that launches kernels on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.backends.cuda.conditionals.list_uses import (
    ARRAY_WRITE,
    PUSH,
    SET,
    STACK_PUSH,
    ListUses,
    note_array,
    note_list,
    note_stack,
)
from toolkit.compiler.backends.cuda.launchers import LAUNCHERS, updates
from toolkit.compiler.backends.cuda.operations import UpdatesCall
from toolkit.compiler.backends.cuda.recording.recorded import RecordedFunction
from toolkit.compiler.backends.kernels.emit import CallEmitter
from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.kernels.cuda.device import CudaDevice

#: what notes how long lists, stacks and arrays become, by the ops that make them longer
_NOTES: dict[str, Callable[..., None]] = {
    PUSH: note_list, SET: note_list, STACK_PUSH: note_stack, ARRAY_WRITE: note_array,
}  # fmt: skip


class CudaFunction(KernelFunction):
    """A compiled block; its instances become CUDA graphs where they can.

    Attributes:
        device: that it runs on.
        why_not: why no CUDA graph becomes of it, as far as its operations tell.
        tf32: products of float32 numbers may be computed so.
        recorded: what is run in its place while it is recorded, where that is another function.
        decided_by: gives what is run then where some arguments in host memory are other ones in each step, by their
            positions; None where somebody on the host has to know them.
    """

    replays = True
    device: CudaDevice
    why_not: str | None
    tf32: bool
    recorded: KernelFunction | None = None
    decided_by: Callable[[Sequence[int]], KernelFunction | None] | None = None

    def instantiate(self) -> Any:
        """An instance with a graph of its own."""
        return RecordedFunction(
            self, self.device, self.why_not, tf32=self.tf32, recorded=self.recorded, decided_by=self.decided_by
        )


class CudaEmitter(CallEmitter):
    """Writes the function line by line.

    Args:
        device: that it runs on.
        lists: whose lengths are noted for recordings; None where there are none.
    """

    function = CudaFunction

    def __init__(self, block: Block, device: CudaDevice, lists: ListUses | None = None):
        super().__init__(block)
        self._device = device
        self._lists = lists

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
            if self._lists is not None and isinstance(operation, Call) and operation.op in _NOTES:
                held = operation.outputs[0] if operation.op in (PUSH, SET) else operation.inputs[0]
                capacity = self._lists.capacity(held)
                if capacity is not None:
                    note = self.share("f", _NOTES[operation.op])
                    self.line(f"{note}(R, {self.share('k', capacity)}, {self.read(held)})")

    def inner(self, body: Block) -> KernelFunction:
        return CudaEmitter(body, self._device, self._lists).write()
