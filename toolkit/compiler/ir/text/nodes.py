"""The graph's nodes in the text form: an op, attributes that are not its defaults, and whether somebody asked for it.

    Relu(%0) {T = float32} from 'dense/Relu'          a call says all of its own node
    nodes {
      'conv' = Conv2D {T = float32, padding = 'SAME', strides = [1, 1, 1, 1]}
    }

What is no call only names the nodes that it does the work of; these stand behind the program. Nodes of one name that
are not the same are told apart by a number: 'conv'~2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.tensor_pb2 import TensorProto
from toolkit.compiler.ir.text.arrays import SideTable
from toolkit.compiler.ir.text.opaque import Opaque
from toolkit.compiler.ir.text.tokens import TextError, Word, WordKind, Words, number_of, plain_text
from toolkit.compiler.program_kernels import step_of
from toolkit.compiler.steps import Step
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

# -- writing -----------------------------------------------------------------------------------------------------------


class NodeWriter:
    """Writes the nodes of one program."""

    def __init__(self, opaque: Opaque):
        self._opaque = opaque
        self._by_step: dict[int, tuple[str, str]] = {}
        self._kept: list[Step] = []  # so that no other step is given the same id
        self._known: dict[str, list[str]] = {}
        self._said: set[str] = set()
        self._named: dict[str, str] = {}

    def name(self, step: Step) -> str:
        """How a step is called where it is referred to."""
        key, description = self._look(step)
        self._named.setdefault(key, description)
        return key

    def attributes(self, step: Step) -> str:
        """The attributes of a node, in braces, with a space before; "" where it has none but defaults."""
        node = step.node
        definition = node.graph.find_op_def(node.op)
        given = node.attrs
        written: list[str] = []
        for name in sorted(given):
            if name.startswith("_"):
                continue  # notes of others
            declared = definition.attrs.get(name) if definition is not None else None
            value = given[name]
            if declared is not None and declared.has_default and _same(value, declared.default):
                continue
            written.append(f"{name} = {self._attribute(value)}")
        return f" {{{', '.join(written)}}}" if written else ""

    def is_said(self, step: Step) -> None:
        """Its call says all of it: it need not stand behind the program, if nobody referred to it before."""
        key, _ = self._look(step)
        if key not in self._named:
            self._said.add(key)

    def table(self) -> Iterator[str]:
        """The lines behind the program; none where its calls say all."""
        missing = [f"  {key} = {text}" for key, text in self._named.items() if key not in self._said]
        if missing:
            yield from ("nodes {", *missing, "}")

    def _look(self, step: Step) -> tuple[str, str]:
        found = self._by_step.get(id(step))
        if found is not None:
            return found
        self._kept.append(step)
        text = f"{op_text(step.node.op)}{self.attributes(step)}{flags(step)}"
        described = self._known.setdefault(step.node.name, [])
        if text not in described:
            described.append(text)
        number = described.index(text) + 1
        found = repr(step.node.name) + (f"~{number}" if number > 1 else ""), text
        self._by_step[id(step)] = found
        return found

    def _attribute(self, value: Any) -> str:
        match value:
            case bytes():
                try:
                    return repr(value.decode())
                except UnicodeDecodeError:
                    return repr(value)
            case DType():
                return value.name
            case Shape():
                dims = value.dims
                return "shape ?" if dims is None else f"shape [{', '.join('?' if d is None else str(d) for d in dims)}]"
            case FuncRef():
                inner = ", ".join(f"{name} = {self._attribute(each)}" for name, each in sorted(value.attrs.items()))
                return f"function {value.name!r}" + (f" {{{inner}}}" if inner else "")
            case list() | tuple():
                things: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType] -- of any attributes
                return f"[{', '.join(map(self._attribute, things))}]"
            case TensorProto():
                return self._opaque.name(value)
            case _:
                return repr(value)


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default and repr(value) == repr(default)


def flags(step: Step) -> str:
    """What is known of a step besides its node."""
    return (" target" if step.is_target else "") + (f" deref {list(step.deref)}" if step.deref else "")


def op_text(op: str) -> str:
    """An op as the text form has it: in quotes where it could be taken for something else."""
    return op if op.isidentifier() and op[0].isupper() else repr(op)


# -- reading -----------------------------------------------------------------------------------------------------------


class NodeReader:
    """Makes steps of what a text says of its nodes; each stands by itself, without inputs.

    Args:
        library: the functions that nodes may call.
    """

    def __init__(self, words: Words, beside: SideTable, library: FunctionLibrary | None):
        self.device = ""
        self._words = words
        self._beside = beside
        self._graph = Graph()
        if library is not None:
            self._graph.library = library
        self._steps: dict[str, Step] = {}
        self._asked: list[tuple[Word, str]] = []

    def keys(self) -> list[tuple[Word, str]]:
        """The names behind "from", each with its word."""
        found = [self.key()]
        while self._words.skip(","):
            found.append(self.key())
        return found

    def key(self) -> tuple[Word, str]:
        """One name of a node: its text, with the number that tells it from others."""
        word = self._words.expect_kind(WordKind.TEXT)
        number = f"~{self._words.expect_kind(WordKind.NUMBER).text}" if self._words.skip("~") else ""
        return word, f"{plain_text(word)!r}{number}"

    def table(self) -> None:
        """The nodes that stand behind a program."""
        words = self._words
        words.expect("{")
        while not words.skip("}"):
            place, key = self.key()
            words.expect("=")
            word = words.take() if words.next.kind is WordKind.TEXT else words.expect_kind(WordKind.NAME)
            op = plain_text(word) if word.kind is WordKind.TEXT else word.text
            self.define(place, key, op, self.attributes())

    def define(self, word: Word, key: str, op: str, attributes: Mapping[str, Any]) -> Step:
        """A node as its text says, with the flags that stand at the next words.

        Raises:
            TextError: it was said to be another one before, or there is no such op.
        """
        is_target = self._words.skip("target")
        deref: list[int] = []
        if self._words.skip("deref"):
            deref = self._attribute()
        known = self._steps.get(key)
        if known is not None:
            node = known.node
            if node.op != op or dict(node.attrs) != dict(attributes):
                raise self._words.wrong(word, f"there are two nodes {key}; write {key}~2 for the second")
            return known
        node = Node(self._graph, 0, plain_text(word), op, self.device)
        try:
            for name, value in attributes.items():
                node.attrs[name] = value
            self._steps[key] = step = step_of(node, tuple(deref), is_target=is_target)
        except TextError:
            raise
        except GraphmillError as error:
            raise self._words.wrong(word, error.message) from None
        return step

    def find(self, word: Word, key: str) -> Step:
        """A node that was defined.

        Raises:
            TextError: it was not.
        """
        step = self._steps.get(key)
        if step is None:
            raise self._words.wrong(word, f"what node {key} is stands nowhere; say it behind the program: "
                                          f"nodes {{ {key} = Relu {{T = float32}} }}")  # fmt: skip
        return step

    def attributes(self) -> dict[str, Any]:
        """The attributes of a node that stand in braces at the next word, if there are some."""
        words, found = self._words, dict[str, Any]()
        if not words.skip("{"):
            return found
        while not words.skip("}"):
            if found:
                words.expect(",")
            name = words.expect_kind(WordKind.NAME).text
            words.expect("=")
            found[name] = self._attribute()
        return found

    def _attribute(self) -> Any:
        words = self._words
        word = words.next
        if word.kind is WordKind.TEXT:
            text = plain_text(words.take())
            return text.encode() if isinstance(text, str) else text
        if word.kind is WordKind.NUMBER:
            return number_of(words.take())
        if words.skip("["):
            found: list[Any] = []
            while not words.skip("]"):
                if found:
                    words.expect(",")
                found.append(self._attribute())
            return found
        if word.kind is WordKind.MARK and word.text == "@":
            return Opaque.read(words, self._beside)
        words.expect_kind(WordKind.NAME)
        match word.text:
            case "True" | "False":
                return word.text == "True"
            case "shape":
                return self._shape()
            case "function":
                return FuncRef(plain_text(words.expect_kind(WordKind.TEXT)), self.attributes())
            case name:
                try:
                    return dtypes.from_name(name)
                except GraphmillError as error:
                    raise words.wrong(word, error.message) from None

    def _shape(self) -> Shape:
        words = self._words
        if words.skip("?"):
            return Shape(None)
        words.expect("[")
        dims: list[int | None] = []
        while not words.skip("]"):
            if dims:
                words.expect(",")
            dims.append(None if words.skip("?") else int(words.expect_kind(WordKind.NUMBER).text))
        return Shape(dims)
