"""One iteration of a loop as instructions for compiled code, noted by the writers that write Python elsewhere."""

from __future__ import annotations

from typing import Any

from toolkit.compiler.backends.cpu.emission.arena import ArenaLayout
from toolkit.compiler.backends.cpu.emission.emit import Emitter, Writer, Writers
from toolkit.compiler.backends.cpu.emission.instance import Operand
from toolkit.compiler.backends.cpu.emission.primitives import alone, fixed
from toolkit.compiler.backends.cpu.emission.sizes import check_primitive, check_regions
from toolkit.compiler.backends.cpu.loops.accumulation import write_accumulate
from toolkit.compiler.backends.cpu.loops.instructions import (
    CallFunction,
    CopyTensor,
    ExecutePrimitive,
    GetElement,
    Instruction,
    LeaveUnless,
    PopElement,
    PushElement,
    SetElement,
)
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.accumulation import Accumulate
from toolkit.compiler.ir.operations.calls import Test
from toolkit.compiler.ir.operations.memory import Alias, Copy
from toolkit.compiler.ir.operations.sequences import Count, Get, Pop, Push, Set
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.floating import SequenceSlot
from toolkit.kernels.cpu.native.compiler import Function
from toolkit.kernels.cpu.onednn.memory import Desc
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, reorder
from toolkit.target.target import Target


class IterationEmitter(Emitter):
    """Notes one iteration as instructions instead of lines of Python.

    Attributes:
        instructions: what to do, in order.
        before: prepared primitives that run before the first iteration.
        floating: values that are where sequences keep them, and of those that are pushed, where.
    """

    def __init__(
        self, block: Block, layout: ArenaLayout, target: Target, states: int, floating: dict[Value, SequenceSlot | None]
    ):
        super().__init__(block, layout, target)
        self.alone = target.threads.product_in_loops
        self.instructions: list[Instruction] = []
        self.before: list[str] = []
        self.floating = floating
        self._outside = frozenset(block.arguments[states:])

    def line(self, text: str) -> None:
        raise NotSupportedError(self.at(), "it is not compiled")

    def execute(self, primitive: Primitive, operands: Any) -> None:
        name = self.fresh("c")
        check_primitive(self.at(), primitive, operands)
        # elsewhere constants are copied into the arena in front of what takes them
        fixed_operands = [
            (arg, fixed(thing.constant, desc) if isinstance(thing, Value) and thing.is_constant else thing, desc)
            for arg, thing, desc in operands
        ]
        self.calls.append((name, primitive, fixed_operands))
        self.chosen.append((self.at(), primitive))
        self.instructions.append(ExecutePrimitive(name))

    def stays(self, value: Value) -> bool:
        return value in self._outside

    def packed(self, value: Value, plain: Desc, wanted: Desc) -> tuple[Operand, Desc | None]:
        if plain.same(wanted):
            return value, plain
        target, name = self.scratch(wanted), self.fresh("c")
        with alone(value.size, self.alone):
            primitive = reorder(plain, wanted)
        operands: list[tuple[int, Operand, Desc | None]] = [(Arg.SRC, value, plain), (Arg.DST, target, None)]
        check_primitive(self.at(), primitive, operands)
        self.calls.append((name, primitive, operands))
        self.before.append(name)
        return target, None

    def execute_native(self, function: Function, operands: Any) -> None:
        check_regions(self.at(), operands)
        name = self.fresh("n")
        self.natives.append((name, list(operands)))
        self.instructions.append(CallFunction(name, function))

    def note(self, writers: Writers) -> None:
        """Note what the block does."""
        for operation in self.block.operations:
            self._operation = operation
            writer = writers.get(type(operation))
            if writer is None:
                raise NotSupportedError(operation, "it is not compiled")
            writer(self, operation)
        self._operation = None


# -- what is neither a nest nor a primitive --------------------------------------------------------------------------


def _write_push(emitter: IterationEmitter, operation: Push) -> None:
    emitter.instructions.append(PushElement(operation.sequence, operation.element))


def _write_count(emitter: IterationEmitter, operation: Count) -> None:
    emitter.instructions.append(PushElement(operation.sequence, None))


def _write_pop(emitter: IterationEmitter, operation: Pop) -> None:
    emitter.instructions.append(PopElement(operation.sequence, operation.output if operation.outputs else None))


def _write_get(emitter: IterationEmitter, operation: Get) -> None:
    if not operation.outputs:
        raise NotSupportedError(operation, "an element is read for nobody")
    emitter.instructions.append(GetElement(operation.sequence, operation.index, operation.output))


def _write_set(emitter: IterationEmitter, operation: Set) -> None:
    emitter.instructions.append(SetElement(operation.sequence, operation.index, operation.element))


def _write_test(emitter: IterationEmitter, operation: Test) -> None:
    emitter.instructions.append(LeaveUnless(operation.condition))


def _write_copy(emitter: IterationEmitter, operation: Copy) -> None:
    emitter.instructions.append(CopyTensor(operation.output, operation.input))


def _write_alias(emitter: IterationEmitter, operation: Operation) -> None:
    if operation.output not in emitter.layout.storage:
        raise NotSupportedError(operation, "another shape of a tensor from outside")


ITERATION_WRITERS: dict[type[Operation], Writer] = {
    Alias: _write_alias, Copy: _write_copy, Test: _write_test,
    Accumulate: write_accumulate, Count: _write_count, Get: _write_get, Pop: _write_pop, Push: _write_push,
    Set: _write_set,
}  # fmt: skip
