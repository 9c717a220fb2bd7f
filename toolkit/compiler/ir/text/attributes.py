"""Fields of operations in the text form, written: plain data by value, what is no data by its name."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.ir.text.arrays import SideTable, type_of, write_array, write_number
from toolkit.compiler.ir.text.classes import data_class, field_defaults
from toolkit.compiler.ir.text.nodes import NodeWriter
from toolkit.compiler.ir.text.opaque import Opaque
from toolkit.compiler.ir.value import Value
from toolkit.compiler.steps import Step
from toolkit.graph.dtypes import DType

_PLAIN = (bool, int, float, str, bytes, type(None))


class Attributes:
    """Writes the fields of the operations of one program.

    A thing that stands in several places is written in full where it comes first, with a number, and by its number
    later. Whether it does is known at the end only: until then marks stand for the numbers (`numbered`).

    Args:
        name: of a value.
    """

    def __init__(self, name: Callable[[Value], str], nodes: NodeWriter, opaque: Opaque, beside: SideTable):
        self._name = name
        self._nodes = nodes
        self._opaque = opaque
        self._beside = beside
        self._shared: dict[int, tuple[Any, int]] = {}  # by id: the thing, which keeps its id, and how often it stands

    def write(self, thing: Any) -> str:
        """The text of a thing; it says nothing of where in memory that is."""
        if isinstance(thing, Value):
            return self._name(thing)
        if isinstance(thing, np.generic):  # before float, which float64 is too
            return write_number(thing, self._beside)
        if isinstance(thing, _PLAIN):
            return repr(thing)
        if isinstance(thing, enum.Enum):
            return f"{type(thing).__name__}.{thing.name}"
        if isinstance(thing, np.ndarray):
            return write_array(thing, self._beside)
        if isinstance(thing, np.dtype):
            return f"{thing}"
        if isinstance(thing, DType):
            return f"DType.{thing.name}"
        if isinstance(thing, Step):
            return f"node {self._nodes.name(thing)}"
        return self._composed(thing)

    def constant(self, value: Value) -> str:
        """A value that is a constant."""
        return self._numbered(value, lambda: f"const({self._constant(value)})")

    def numbered(self, text: str) -> str:
        """A text with numbers in the places of marks."""
        numbers: dict[int, int] = {}
        found: list[str] = []
        for part in text.split("\0"):
            if not part.startswith("\1"):
                found.append(part)
                continue
            key = int(part[1:])
            is_first = key not in numbers
            if self._shared[key][1] > 1:
                number = numbers.setdefault(key, len([each for each in numbers.values() if each]) + 1)
                found.append(f"#{number} " if is_first else f"#{number}")
            else:
                numbers[key] = 0
        return "".join(found)

    def _constant(self, value: Value) -> str:
        """What a constant is; where its type or shape are not those of the array, these too."""
        held: Any = value.constant
        is_own = type_of(held) == (value.dtype, value.shape)
        return self.write(held) + ("" if is_own else f": {type_text(value)}")

    def _numbered(self, thing: Any, written: Callable[[], str]) -> str:
        key = id(thing)
        _, times = self._shared.get(key, (thing, 0))
        self._shared[key] = (thing, times + 1)
        return f"\0\1{key}\0" + ("" if times else written())

    def _composed(self, thing: Any) -> str:
        kind: Any = thing.__class__
        if kind in (tuple, list):
            return f"[{', '.join(map(self.write, thing))}]"
        if kind in (set, frozenset):
            return f"{{{', '.join(sorted(map(self.write, thing)))}}}"
        if kind is dict:
            return f"{{{', '.join(f'{self.write(key)}: {self.write(each)}' for key, each in thing.items())}}}"
        if kind is slice:
            return f"slice({', '.join(map(self.write, (thing.start, thing.stop, thing.step)))})"
        if thing is Ellipsis:
            return "..."
        if data_class(kind.__name__) is kind:
            if _has_identity(kind):
                return self._numbered(thing, lambda: self._fields(thing))
            return self._fields(thing)
        return self._opaque.name(thing)

    def _fields(self, thing: Any) -> str:
        given = ((name, getattr(thing, name), default) for name, default in field_defaults(thing.__class__).items())
        written = [f"{name} = {self.write(each)}" for name, each, default in given if not is_default(each, default)]
        return f"{type(thing).__name__}({', '.join(written)})"


def _has_identity(kind: Any) -> bool:
    """Whether it matters which of several equal instances it is."""
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and not parameters.frozen


def is_default(held: Any, default: Any) -> bool:
    """Whether a field holds its default, where that is plain data."""
    kind: Any = default.__class__
    if kind in (tuple, dict) and not default:
        return held.__class__ is kind and not held
    if default is dataclasses.MISSING or not isinstance(default, (*_PLAIN, enum.Enum)):
        return False
    return held is default or (type(held) is type(default) and repr(held) == repr(default))


def type_text(value: Value) -> str:
    """The type and the shape of a value."""
    if value.dtype is None and value.shape is None:
        return "handle"
    sizes = "?" if value.shape is None else ",".join(map(str, value.shape))
    return f"{'handle' if value.dtype is None else value.dtype}[{sizes}]"
