"""The text form of a block: a line for each operation, those inside it indented.

    program(%0: float32[4,8], %1: bool[]) {
      %2: float32[4,8] = Relu(%0) {T = float32} from 'dense/Relu'
      %3: float32[4,8] = select(predicate = %1, taken = %2, other = %0) if %1 from 'cond/Merge'
      return %3
    }
    nodes {
      'cond/Merge' = Merge {N = 2, T = float32}
    }

Values are numbered in the order in which they are made. Two programs that do the same in the same order have the same
text, whenever they were compiled, so that stages can be compared line by line; `parser` makes an equal program of it.
Fields that hold their default are left out. What is there for people only is not in the text: a block's notes, and how
many operations were made channels last.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.list_facts import ListFacts, SharedListFacts
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.text.arrays import SideTable
from toolkit.compiler.ir.text.attributes import Attributes, is_default, type_text
from toolkit.compiler.ir.text.classes import data_fields, region_fields
from toolkit.compiler.ir.text.nodes import NodeWriter, flags, op_text
from toolkit.compiler.ir.text.opaque import Opaque
from toolkit.compiler.ir.value import Value

_INDENT = "  "


def print_block(block: Block, beside: SideTable | None = None) -> str:
    """The text form of a block.

    Args:
        beside: gets what the text does not hold itself.
    """
    return _Printer(SideTable() if beside is None else beside).text(block)


def told(facts: ListFacts | SharedListFacts | None) -> ListFacts | None:
    """What is known of a list, wherever that is noted."""
    return facts.facts if isinstance(facts, SharedListFacts) else facts


class _Printer:
    def __init__(self, beside: SideTable) -> None:
        self._numbers: dict[Value, int] = {}
        self._opaque = Opaque(beside)
        self._nodes = NodeWriter(self._opaque)
        self._attributes = Attributes(self._read, self._nodes, self._opaque, beside)

    def text(self, block: Block) -> str:
        opening = f"program on {block.device!r}" if block.device else "program"
        lines = "\n".join([*self._lines(block, opening, ""), *self._nodes.table()])
        return self._attributes.numbered(lines) + "\n"

    def _lines(self, block: Block, opening: str, indent: str) -> Iterator[str]:
        arguments = ", ".join("_" if value is None else self._made(value) for value in block.arguments)
        yield f"{indent}{opening}({arguments}){' keeps_nan' if block.keeps_nan else ''} {{"
        inner = indent + _INDENT
        for operation in block:
            yield f"{inner}{self._operation(operation)}"
            for name in region_fields(type(operation)):
                yield from self._lines(getattr(operation, name), name, inner + _INDENT)
        yield f"{inner}return {', '.join(map(self._read, block.results))}".rstrip()
        yield f"{indent}}}"

    def _operation(self, operation: Operation) -> str:
        head = self._head(operation)
        terms = [self._read(value) if wanted else f"not {self._read(value)}" for value, wanted in operation.predicates]
        branch = f" if {' and '.join(terms)}" if terms else ""
        # they may be decided by what is there already only, so they are read before the outputs are made
        made = ", ".join(map(self._made, operation.outputs))
        nodes = ", ".join(map(self._nodes.name, operation.steps))
        says_flags = flags(operation.step) if isinstance(operation, Call) else ""
        return f"{made}{' = ' if made else ''}{head}{branch}{' from ' if nodes else ''}{nodes}{says_flags}"

    def _made(self, value: Value) -> str:
        """A value where it is made."""
        self._numbers.setdefault(value, len(self._numbers))
        facts = told(value.facts)
        known = "" if facts is None else f" {self._facts(facts)}"
        return f"{self._read(value)}: {type_text(value)}{known}"

    def _facts(self, facts: ListFacts) -> str:
        """What passes ask of a list; what all its elements are is of use to the importer only."""
        known = ["empty"] if facts.is_empty else []
        known += [f"element = {list(facts.element)}"] if facts.element is not None else []
        known += [f"length = {facts.length}"] if facts.length is not None else []
        return f"list({', '.join(known)})"

    def _read(self, value: Value) -> str:
        """A value where it is taken; constants are there with what they are."""
        if value.is_constant:
            return self._attributes.constant(value)
        return f"%{self._numbers.setdefault(value, len(self._numbers))}"

    def _head(self, operation: Operation) -> str:
        """An operation without what it makes: its word, its operands by name, and its other fields."""
        if isinstance(operation, Call):
            self._nodes.is_said(operation.step)
            operands = ", ".join(map(self._read, operation.inputs))
            return f"{op_text(operation.op)}({operands}){self._nodes.attributes(operation.step)}"
        state = vars(operation)
        defaults = type(operation).defaults
        operands = [
            f"{field.name} = {self._attributes.write(state[field.name])}"
            for field in operation.operand_fields if not is_default(state[field.name], defaults[field.name])
        ]  # fmt: skip
        others = [
            f"{name} = {self._attributes.write(state[name])}"
            for name in data_fields(type(operation)) if not is_default(state[name], defaults[name])
        ]  # fmt: skip
        return f"{operation.mnemonic}({', '.join(operands)})" + (f" {{{', '.join(others)}}}" if others else "")
