"""Fields of operations in the text form, read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.ir.text.arrays import SideTable, dtype_named, read_array, type_of
from toolkit.compiler.ir.text.classes import MismatchError, converted, data_class, field_defaults, hints
from toolkit.compiler.ir.text.nodes import NodeReader
from toolkit.compiler.ir.text.opaque import Opaque
from toolkit.compiler.ir.text.tokens import Word, WordKind, Words, number_of, plain_text
from toolkit.compiler.ir.value import Value
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes


class FieldReader:
    """Reads the fields of the operations of one program; `Attributes` writes them.

    Args:
        value: the value that a word stands for.
        type_of: the type and shape behind a colon.
    """

    def __init__(
        self, words: Words, beside: SideTable, nodes: NodeReader, value: Callable[[Word], Value],
        type_of: Callable[[], tuple[Any, tuple[int, ...] | None]],
    ):  # fmt: skip
        self._words = words
        self._beside = beside
        self._nodes = nodes
        self._value = value
        self._type_of = type_of
        self._shared: dict[str, Any] = {}

    def field(self, hint: Any, where: str) -> Any:
        """What stands at the next words, as a field of this type.

        Args:
            where: what messages call the field.

        Raises:
            TextError: it is of another type.
        """
        word = self._words.next
        thing = self.read()
        try:
            return converted(thing, hint)
        except MismatchError as error:
            raise self._words.wrong(word, f"{where} is of type {error}, not {type(thing).__name__}") from None

    def read(self) -> Any:
        """What stands at the next words."""
        words = self._words
        word = words.next
        match word.kind:
            case WordKind.VALUE:
                return self._value(words.take())
            case WordKind.NUMBER:
                return number_of(words.take())
            case WordKind.TEXT:
                return plain_text(words.take())
            case WordKind.SHARED:
                return self._shared_thing()
            case WordKind.NAME:
                return self._named()
            case _:
                pass
        if words.skip("["):
            return tuple(self._until("]"))
        if words.skip("{"):
            return self._braces()
        if words.skip("..."):
            return ...
        if words.is_next("@"):
            return Opaque.read(words, self._beside)
        words.refuse("a number, a text, a value, a name or '['")

    def value(self) -> Value:
        """A value, or a constant.

        Raises:
            TextError: something else stands there.
        """
        word = self._words.next
        thing = self.read()
        if not isinstance(thing, Value):
            raise self._words.wrong(word, f"expected a value such as %0 or const(...), found '{word.text}'")
        return thing

    def _shared_thing(self) -> Any:
        words = self._words
        word = words.take()
        if word.text in self._shared:
            return self._shared[word.text]
        if words.next.kind is not WordKind.NAME:
            raise words.wrong(word, f"{word.text} is nothing yet; where it comes first it stands in full")
        self._shared[word.text] = thing = self._named()
        return thing

    def _named(self) -> Any:
        words = self._words
        word = words.next
        if dtype_named(word.text) is not None:
            return read_array(words, self._beside)
        words.take()
        match word.text:
            case "True" | "False":
                return word.text == "True"
            case "None":
                return None
            case "const":
                return self._constant()
            case "slice":
                words.expect("(")
                return slice(*self._until(")"))
            case "node":
                return self._nodes.find(*self._nodes.key())
            case _:
                pass
        kind, _, member = word.text.partition(".")
        if kind == "DType":
            try:
                return dtypes.from_name(member)
            except GraphmillError as error:
                raise words.wrong(word, error.message) from None
        found = data_class(kind)
        if found is None:
            raise words.wrong(word, f"no field of an operation holds a '{kind}'")
        if not member:
            return self._instance(word, found)
        members: dict[str, Any] = getattr(found, "__members__", {})
        if member not in members:
            raise words.wrong(word, f"{kind} has no {member}; there are {', '.join(members)}")
        return members[member]

    def _instance(self, word: Word, kind: Any) -> Any:
        words, types, defaults = self._words, hints(kind), field_defaults(kind)
        words.expect("(")
        given: dict[str, Any] = {}
        while not words.skip(")"):
            if given:
                words.expect(",")
            name = words.expect_kind(WordKind.NAME)
            if name.text not in defaults:
                raise words.wrong(name, f"{kind.__name__} has no '{name.text}'; there are {', '.join(defaults)}")
            words.expect("=")
            given[name.text] = self.field(types.get(name.text), f"'{name.text}' of {kind.__name__}")
        try:
            return kind(**given)
        except TypeError as error:
            raise words.wrong(word, f"{kind.__name__}: {error}") from None

    def _constant(self) -> Value:
        words = self._words
        words.expect("(")
        held = self.read()
        dtype, shape = type_of(held)
        if words.skip(":"):
            dtype, shape = self._type_of()
        words.expect(")")
        return Value(dtype, shape, held)

    def _until(self, end: str) -> list[Any]:
        words, found = self._words, list[Any]()
        while not words.skip(end):
            if found:
                words.expect(",")
            found.append(self.read())
        return found

    def _braces(self) -> Any:
        words = self._words
        pairs: dict[Any, Any] = {}
        members: set[Any] = set()
        while not words.skip("}"):
            if pairs or members:
                words.expect(",")
            key = self.read()
            if words.skip(":"):
                pairs[key] = self.read()
            else:
                members.add(key)
        return members or pairs
