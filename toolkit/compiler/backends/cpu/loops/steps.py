"""One turn of a loop as steps that compiled code takes, noted by the writers that write Python elsewhere."""

from __future__ import annotations

from typing import Any

from toolkit.compiler.backends.cpu.emission.arena import Layout
from toolkit.compiler.backends.cpu.emission.emit import Emitter, Writer, Writers, writer_of
from toolkit.compiler.backends.cpu.emission.instance import Operand
from toolkit.compiler.backends.cpu.emission.primitives import alone, fixed
from toolkit.compiler.backends.cpu.emission.sizes import check_primitive, check_regions
from toolkit.compiler.backends.cpu.loops.totals import write_total_of
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Test
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.floating import Slot
from toolkit.kernels.cpu.native.compiler import Function
from toolkit.kernels.cpu.onednn.memory import Desc
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, reorder


class TurnEmitter(Emitter):
    """Notes one turn as steps for `Turns` instead of lines of Python.

    Attributes:
        steps: what to do, in order.
        owners: the operation behind each of the steps that `write_steps` made.
        before: prepared primitives that run before the first turn.
        floating: values that are where sequences keep them, and of those that are pushed, where.
    """

    def __init__(self, block: Block, layout: Layout, states: int, floating: dict[Value, Slot | None]):
        super().__init__(block, layout)
        # threads would meet in every turn, and wait for each other where another program has one of their processors
        self.alone = 1 << 22
        self.steps: list[tuple[Any, ...]] = []
        self.owners: list[Operation] = []
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
        self.steps.append(("primitive", name))

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
        self.steps.append(("function", name, function))

    def write_steps(self, writers: Writers) -> None:
        """One turn."""
        for operation in self.block.operations:
            self._operation = operation
            writer = writer_of(writers, operation)
            if writer is None:
                raise NotSupportedError(operation, "it is not compiled")
            writer(self, operation)
            self.owners += [operation] * (len(self.steps) - len(self.owners))
        self._operation = None


# -- the steps of a turn that are not nests or primitives ------------------------------------------------------------


def _write_push(emitter: Any, operation: Operation) -> None:
    emitter.steps.append(("push", operation.attrs["sequence"], operation.inputs[0]))


def _write_count(emitter: Any, operation: Operation) -> None:
    emitter.steps.append(("count", operation.attrs["sequence"]))


def _write_pop(emitter: Any, operation: Operation) -> None:
    if not operation.outputs:
        emitter.steps.append(("drop", operation.attrs["sequence"]))
        return
    emitter.steps.append(("pop", operation.attrs["sequence"], operation.output))


def _write_get(emitter: Any, operation: Operation) -> None:
    emitter.steps.append(("get", operation.attrs["sequence"], operation.inputs[0], operation.output))


def _write_set(emitter: Any, operation: Operation) -> None:
    emitter.steps.append(("set", operation.attrs["sequence"], *operation.inputs))


def _write_test(emitter: Any, operation: Test) -> None:
    emitter.steps.append(("test", operation.condition))


def _write_copy(emitter: Any, operation: Operation) -> None:
    emitter.steps.append(("copy", operation.output, operation.inputs[0]))


def _write_alias(emitter: Any, operation: Operation) -> None:
    if operation.output not in emitter.layout.storage:
        raise NotSupportedError(operation, "another shape of a tensor from outside")


STEP_WRITERS: dict[type[Operation] | str, Writer] = {
    "alias": _write_alias, "copy": _write_copy, "count": _write_count, "get": _write_get, "pop": _write_pop,
    "push": _write_push, "set": _write_set, Test: _write_test, "total_of": write_total_of,
}  # fmt: skip
