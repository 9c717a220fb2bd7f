"""Code generation: a block becomes a Python function that calls kernels, and the body of each loop another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.compiler.backends.kernels.function import KernelFunction
from toolkit.compiler.backends.python import last_uses, outputs_of, value_of
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Dereference, Loop, Select, Test
from toolkit.compiler.ir.value import Value
from toolkit.kernels.registry import Kind


def emit(block: Block) -> KernelFunction:
    """The function of a block of calls, branches and loops.

    Raises:
        NotSupportedError: there is an operation in it that no kernel is behind.
    """
    return CallEmitter(block).write()


class CallEmitter:
    """Writes the function line by line; backends that know more operations write these in `write_operation`.

    Attributes:
        function: the class of what is made.
    """

    function: type[KernelFunction] = KernelFunction

    def __init__(self, block: Block):
        self._block = block
        self._constants: dict[str, Any] = {"sequences": frozenset((tuple, list))}
        self._inner: list[KernelFunction] = []
        self._names: dict[Value, str] = {}
        self._locals: dict[Value, str] = {}
        self._lines = ["def run(A, R):"]
        self._owners: list[Operation | None] = [None]
        self._operation: Operation | None = None
        self._indent = "    "
        self._counter = 0
        self._last = last_uses(block)

    def write(self) -> KernelFunction:
        """The whole function; what nobody takes any more is let go of."""
        used = [self.bind(v) if v is not None and v.is_needed else "_" for v in self._block.arguments]
        if any(name != "_" for name in used):
            self.line(f"{', '.join(used)}{',' if len(used) == 1 else ''} = A")
        for operation in self._block:
            self._operation = operation
            self._enter(operation.predicates)
            self.write_operation(operation)
            gone = [self._locals[value] for value in self._last.get(operation, ()) if value in self._locals]
            if gone:
                self.line(" = ".join([*gone, "None"]))
        self._operation = None
        self._enter([])
        self.line(f"return [{', '.join(map(self.read, self._block.results))}]")
        return self.function(self._block, self._lines, self._owners, self._constants, self._locals, self._inner)

    def inner(self, body: Block) -> KernelFunction:
        """The function of a loop's body."""
        return emit(body)

    # -- text --------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """A statement on behalf of the operation at hand."""
        self._lines.append(self._indent + text)
        self._owners.append(self._operation)

    def _enter(self, predicates: Sequence[tuple[Value, bool]]) -> None:
        """Open the branch that the next operation is on."""
        self._indent = "    "
        if predicates:
            terms = [self.read(value) if wanted else f"not {self.read(value)}" for value, wanted in predicates]
            self.line(f"if {' and '.join(terms)}:")
            self._indent = "        "

    def _fresh(self, prefix: str) -> str:
        self._counter += 1
        return f"{prefix}{self._counter}"

    def share(self, prefix: str, thing: Any) -> str:
        """A global with this value; its name."""
        name = self._fresh(prefix)
        self._constants[name] = thing
        return name

    def bind(self, value: Value) -> str:
        """A local variable for a value that is made now."""
        name = self._names[value] = self._locals[value] = self._fresh("v")
        return name

    def read(self, value: Value) -> str:
        """An expression for a value."""
        if value not in self._names and value.is_constant:
            self._names[value] = self.share("k", value.constant)
        return self._names[value]

    # -- operations --------------------------------------------------------------------------------------------

    def write_operation(self, operation: Operation) -> None:
        """The lines of one operation.

        Raises:
            NotSupportedError: nothing is behind it.
        """
        match operation:
            case Call():
                self._call(operation)
            case Select():
                predicate, taken, other = map(self.read, (operation.predicate, operation.taken, operation.other))
                self.line(f"{self.bind(operation.output)} = {taken} if {predicate} else {other}")
            case Test():
                self.line(f"if not {self.read(operation.condition)}: return None")
            case Dereference():
                read = self.share("f", value_of(operation.step))
                self.line(f"{self.bind(operation.output)} = {read}({self.read(operation.reference)})")
            case Loop():
                self._loop(operation)
            case _:
                raise NotSupportedError(operation, "the device has no kernel for it")

    def _call(self, operation: Call) -> None:
        step, outputs = operation.step, operation.outputs
        arguments = list(map(self.read, operation.inputs))
        if step.kind is Kind.STATEFUL:
            self.line("if R.is_cancelled: R.check_cancelled()")
            arguments.insert(0, "R")
        call = f"{self.share('f', step.compute)}({', '.join(arguments)})"
        if len(outputs) == 1:
            name = self.bind(outputs[0])
            self.line(f"{name} = {call}")
            self.line(f"if {name}.__class__ in sequences: {name}, = {self.share('o', outputs_of(step))}({name})")
        elif outputs:
            checked = self.share("o", outputs_of(step))
            self.line(f"{', '.join(map(self.bind, outputs))} = {checked}({call})")
        else:
            self.line(call)

    def _loop(self, operation: Loop) -> None:
        """Iterations until one says that there are no more."""
        body = operation.compiled = self.inner(operation.body)
        self._inner.append(body)
        iterate, count = self.share("l", body.run), len(operation.states)
        states, invariants = (", ".join(map(self.read, each)) for each in (operation.states, operation.invariants))
        state, constant, after = (self._fresh(prefix) for prefix in ("s", "i", "n"))
        self.line(f"{after} = [{states}]; {constant} = [{invariants}]")
        self.line(f"while {after} is not None:")
        self.line("    if R.is_cancelled: R.check_cancelled()")
        self.line(f"    {state} = {after}; {after} = {iterate}({state} + {constant}, R)")
        if count:
            self.line(f"{', '.join(map(self.bind, operation.outputs))}{',' if count == 1 else ''} = {state}")
        self.line(f"{state} = {constant} = None")
