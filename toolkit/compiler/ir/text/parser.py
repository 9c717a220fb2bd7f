"""Programs from their text form: what `printer` writes, and what people write by hand.

The parser knows no operation by name: words, operands and fields are those that the operations' classes declare, so
that a new class can be read as soon as it is there. The modules that declare them must have been imported.
"""

from __future__ import annotations

from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.fields import OperandField
from toolkit.compiler.ir.list_facts import ListFacts
from toolkit.compiler.ir.operation import OPERATIONS, Operation
from toolkit.compiler.ir.operations.calls import Call
from toolkit.compiler.ir.text.arrays import SideTable, dtype_named
from toolkit.compiler.ir.text.classes import data_fields, hints, region_fields
from toolkit.compiler.ir.text.nodes import NodeReader
from toolkit.compiler.ir.text.reader import FieldReader
from toolkit.compiler.ir.text.tokens import Word, WordKind, Words, plain_text
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step
from toolkit.errors import did_you_mean
from toolkit.graph.functions import FunctionLibrary


def parse_block(
    text: str, beside: SideTable | None = None, *, library: FunctionLibrary | None = None, source: str = "text"
) -> Block:
    """The program that a text says.

    Args:
        beside: what the text does not hold itself, as `print_block` has put it there.
        library: the functions that its nodes may call.
        source: what messages call the text, a file's name.

    Raises:
        TextError: the text is not that of a program; with line and column, what is there and what was expected.
    """
    return _Parser(Words(text, source), SideTable() if beside is None else beside, library).program()


class _Parser:
    def __init__(self, words: Words, beside: SideTable, library: FunctionLibrary | None):
        self._words = words
        self._values: dict[str, Value] = {}
        self._nodes = NodeReader(words, beside, library)
        self._fields = FieldReader(words, beside, self._nodes, self._known, self._type)

    def program(self) -> Block:
        words = self._words
        words.expect("program")
        if words.skip("on"):
            self._nodes.device = plain_text(words.expect_kind(WordKind.TEXT))
        start, place = words.position, words.find("nodes", "{")
        if place is not None:  # operations refer to the nodes behind the program
            words.position = place + 1
            self._nodes.table()
            words.expect_kind(WordKind.END)
            words.position = start
        block = self._block()
        block.device = self._nodes.device
        if words.position != place:
            words.expect_kind(WordKind.END)
        return block

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _block(self) -> Block:
        words, block = self._words, Block()
        words.expect("(")
        while not words.skip(")"):
            if block.arguments:
                words.expect(",")
            block.arguments.append(None if words.skip("_") else self._made())
        block.keeps_nan = words.skip("keeps_nan")
        words.expect("{")
        while not words.skip("return"):
            block.append(self._operation())
        while not words.skip("}"):
            if block.results:
                words.expect(",")
            block.results.append(self._fields.value())
            block.results[-1].is_result = True
        return block

    def _made(self) -> Value:
        """A value where it is made."""
        words = self._words
        word = words.expect_kind(WordKind.VALUE)
        if word.text in self._values:
            raise words.wrong(word, f"{word.text} is made twice")
        words.expect(":")
        value = self._values[word.text] = Value(*self._type())
        if words.skip("list"):
            value.facts = self._facts()
        return value

    def _known(self, word: Word) -> Value:
        value = self._values.get(word.text)
        if value is None:
            raise self._words.wrong(word, f"{word.text} is taken before it is made")
        return value

    def _type(self) -> tuple[Any, tuple[int, ...] | None]:
        """A type with a shape: float32[4,8], float32[?] where it is not known, handle."""
        words = self._words
        name = words.expect_kind(WordKind.NAME)
        dtype = dtype_named(name.text)
        if dtype is None and name.text != "handle":
            raise words.wrong(name, f"'{name.text}' is not the type of a value; expected float32 or such, or handle")
        if name.text == "handle" and not words.is_next("["):
            return None, None
        words.expect("[")
        sizes: list[int] = []
        if words.skip("?"):
            words.expect("]")
            return dtype, None
        while not words.skip("]"):
            if sizes:
                words.expect(",")
            sizes.append(int(words.expect_kind(WordKind.NUMBER).text))
        return dtype, tuple(sizes)

    def _facts(self) -> ListFacts:
        words = self._words
        words.expect("(")
        is_empty, known = words.skip("empty"), dict[str, Any]()
        if is_empty and not words.is_next(")"):
            words.expect(",")
        while not words.skip(")"):
            if known:
                words.expect(",")
            name = words.expect_kind(WordKind.NAME)
            if name.text not in ("element", "length"):
                raise words.wrong(name, f"of a list 'element' and 'length' are known, not '{name.text}'")
            words.expect("=")
            hint = tuple[int, ...] if name.text == "element" else int
            known[name.text] = self._fields.field(hint, f"'{name.text}' of a list")
        return ListFacts(known.get("element"), is_empty, known.get("length"))

    # -- operations ------------------------------------------------------------------------------------------------

    def _operation(self) -> Operation:
        words = self._words
        outputs: list[Value] = []
        if words.next.kind is WordKind.VALUE:
            outputs.append(self._made())
            while words.skip(","):
                outputs.append(self._made())
            words.expect("=")
        word = words.take() if words.next.kind is WordKind.TEXT else words.expect_kind(WordKind.NAME)
        kind = OPERATIONS.get(word.text)
        if kind is None or issubclass(kind, Call):
            return self._call(word, outputs)
        given = self._operands(kind) | self._data(kind)
        conditions = self._conditions()
        steps = [self._nodes.find(*key) for key in self._from()]
        for name in region_fields(kind):
            words.expect(name)
            given[name] = self._block()
        try:
            return kind(**given, conditions=conditions, outputs=outputs, steps=steps)
        except TypeError as error:
            raise words.wrong(word, str(error)) from None

    def _call(self, word: Word, outputs: list[Value]) -> Operation:
        words = self._words
        op = plain_text(word) if word.kind is WordKind.TEXT else word.text
        if word.kind is WordKind.NAME and op[0].islower():
            raise words.wrong(word, f"there is no operation '{op}'{did_you_mean(op, OPERATIONS)}")
        inputs: list[Value] = []
        words.expect("(")
        while not words.skip(")"):
            if inputs:
                words.expect(",")
            inputs.append(self._fields.value())
        attributes = self._nodes.attributes()
        conditions = self._conditions()
        if not words.is_next("from"):
            words.refuse("'from' and the name of the node, which a call must have")
        *others, (place, key) = self._from()
        step = self._nodes.define(place, key, op, attributes)
        steps: list[Step] = [*(self._nodes.find(*other) for other in others), step]
        return Call(op=op, inputs=tuple(inputs), outputs=outputs, steps=steps, conditions=conditions)

    def _operands(self, kind: type[Operation]) -> dict[str, Any]:
        self._words.expect("(")
        return self._assigned({field.name: field for field in kind.operand_fields}, kind, ")")

    def _data(self, kind: type[Operation]) -> dict[str, Any]:
        return self._assigned(dict.fromkeys(data_fields(kind)), kind, "}") if self._words.skip("{") else {}

    def _assigned(self, names: dict[str, OperandField | None], kind: type[Operation], end: str) -> dict[str, Any]:
        """Fields, each `name = thing`, up to a mark."""
        words, types, found = self._words, hints(kind), dict[str, Any]()
        while not words.skip(end):
            if found:
                words.expect(",")
            name = words.expect_kind(WordKind.NAME)
            if name.text not in names:
                known = ", ".join(names) or "nothing"
                raise words.wrong(name, f"'{kind.mnemonic}' has no '{name.text}' here; there is {known}")
            words.expect("=")
            found[name.text] = self._fields.field(types.get(name.text), f"'{name.text}' of '{kind.mnemonic}'")
        return found

    def _conditions(self) -> Conditions:
        words = self._words
        terms: list[tuple[Value, bool]] = []
        if words.skip("if"):
            terms.append(self._term())
            while words.skip("and"):
                terms.append(self._term())
        return Conditions(tuple(terms))

    def _term(self) -> tuple[Value, bool]:
        wanted = not self._words.skip("not")
        return self._fields.value(), wanted

    def _from(self) -> list[tuple[Word, str]]:
        return self._nodes.keys() if self._words.skip("from") else []
