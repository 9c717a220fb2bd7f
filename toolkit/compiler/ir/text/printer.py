"""The text form of a block: a line for each operation, those inside it indented.

    program(%0: float32[4,8], %1: bool[]) {
      %2: float32[4,8] = Relu(%0)  // 'dense/Relu'
      %3: float32[4,8] = select(predicate = %1, taken = %2, other = %0) if %1  // 'cond/Merge'
      return %3
    }

Values are numbered in the order in which they are made. Two programs that do the same in the same order have the same
text, whenever they were compiled, so that stages can be compared line by line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation, Untyped
from toolkit.compiler.ir.text.attributes import Attributes
from toolkit.compiler.ir.value import Value

_INDENT = "  "
_ELSEWHERE = frozenset({"outputs", "steps", "guard"})  # written by themselves


def print_block(block: Block) -> str:
    """The text form of a block."""
    return "\n".join(_Printer().lines(block, "program", "")) + "\n"


class _Printer:
    def __init__(self) -> None:
        self._numbers: dict[Value, int] = {}
        self._attributes = Attributes(self._read, self._head)

    def lines(self, block: Block, opening: str, indent: str) -> Iterator[str]:
        arguments = ", ".join("_" if value is None else self._made(value) for value in block.arguments)
        yield f"{indent}{opening}({arguments}) {{"
        inner = indent + _INDENT
        for operation in block:
            head = self._head(operation)
            made = ", ".join(map(self._made, operation.outputs))
            name = f"  // {operation.name!r}" if operation.steps else ""
            yield f"{inner}{made}{' = ' if made else ''}{head}{_branch(operation, self._read)}{name}"
            for region in operation.regions():
                yield from self.lines(region, "", inner + _INDENT)
        yield f"{inner}return {', '.join(map(self._read, block.results))}".rstrip()
        yield f"{indent}}}"

    def _made(self, value: Value) -> str:
        """A value where it is made."""
        return f"{self._numbered(value)}: {_type(value)}"

    def _numbered(self, value: Value) -> str:
        return f"%{self._numbers.setdefault(value, len(self._numbers))}"

    def _read(self, value: Value) -> str:
        """A value where it is taken; constants are there with what they are."""
        return f"const({self._attributes.write(value.constant)})" if value.is_constant else self._numbered(value)

    def _head(self, operation: Operation) -> str:
        """An operation without what it makes: its word, its operands by name, and its other fields."""
        state = vars(operation)
        if isinstance(operation, Untyped):
            operands = list(map(self._read, operation.inputs))
            others: dict[str, Any] = {**_node_attributes(operation), **operation.attrs}
        else:
            names = {field.name for field in operation.operand_fields}
            operands = [f"{name} = {self._attributes.write(state[name])}" for name in operation.fields if name in names]
            others = {name: state[name] for name in operation.fields if name not in names | _ELSEWHERE}
        shown = [
            f"{name} = {self._attributes.write(each)}" for name, each in others.items() if not isinstance(each, Block)
        ]
        return f"{operation.kind}({', '.join(operands)})" + (f" {{{', '.join(shown)}}}" if shown else "")


def _branch(operation: Operation, read: Any) -> str:
    terms = [read(value) if wanted else f"not {read(value)}" for value, wanted in operation.predicates]
    return f" if {' and '.join(terms)}" if terms else ""


def _node_attributes(operation: Untyped) -> dict[str, Any]:
    """Of a call the attributes of its node, by name; those that start with _ are notes of others."""
    if operation.mnemonic != "call" or operation.kind != operation.step.node.op:
        return {}
    attributes = operation.step.node.attrs
    return {name: attributes[name] for name in sorted(attributes) if not name.startswith("_")}


def _type(value: Value) -> str:
    if value.dtype is None:
        return "handle"
    return f"{value.dtype}[{'?' if value.shape is None else ','.join(map(str, value.shape))}]"
