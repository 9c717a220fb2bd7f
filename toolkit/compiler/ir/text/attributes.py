"""How fields of operations are written: plain data by value, things that exist only while running by their name."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

_INLINE = 16  # elements: larger arrays are told by their type, shape and digest
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_FUNCTIONS = (np.ufunc, FunctionType, BuiltinFunctionType, type)


class Attributes:
    """Writes the fields of the operations of one program.

    What is shared and can be changed is written in full where it comes first, with a number, and by its number later.

    Args:
        name: of a value.
        inner: writes an operation that is part of another.
    """

    def __init__(self, name: Callable[[Value], str], inner: Callable[[Operation], str]):
        self._name = name
        self._inner = inner
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other thing is given the same id

    def write(self, thing: Any) -> str:
        """The text of a thing; it says nothing of where in memory that is."""
        if isinstance(thing, Value):
            return self._name(thing)
        if isinstance(thing, Operation):
            return self._shared(thing, lambda: self._inner(thing))
        if isinstance(thing, Block):
            return "@Block"
        if isinstance(thing, enum.Enum):
            return f"{type(thing).__name__}.{thing.name}"
        if isinstance(thing, np.ndarray):
            return array(thing)
        if isinstance(thing, np.generic):
            return f"{thing.dtype} {thing.item()!r}"
        if isinstance(thing, _PLAIN):
            return repr(thing)
        if isinstance(thing, np.dtype | DType | Shape):
            return str(thing)
        if isinstance(thing, _FUNCTIONS):
            return f"@{thing.__name__}"
        return self._composed(thing)

    def _composed(self, thing: Any) -> str:
        if isinstance(thing, tuple) and hasattr(thing, "_fields"):
            named = zip(thing._fields, thing, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
            return f"{type(thing).__name__}({', '.join(f'{name}={self.write(each)}' for name, each in named)})"
        if isinstance(thing, tuple | list):
            return f"[{', '.join(map(self.write, thing))}]"
        if isinstance(thing, set | frozenset):
            return f"{{{', '.join(sorted(map(self.write, thing)))}}}"
        if isinstance(thing, dict):
            return f"{{{', '.join(f'{self.write(key)}: {self.write(each)}' for key, each in thing.items())}}}"
        if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            frozen: bool = type(thing).__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]
            return self._fields(thing) if frozen else self._shared(thing, lambda: self._fields(thing))
        name = getattr(thing, "name", None)
        return f"@{type(thing).__name__}" + (f"({name!r})" if isinstance(name, str) else "")

    def _fields(self, thing: Any) -> str:
        fields = ((field.name, getattr(thing, field.name)) for field in dataclasses.fields(thing))
        return f"{type(thing).__name__}({', '.join(f'{name}={self.write(each)}' for name, each in fields)})"

    def _shared(self, thing: Any, written: Callable[[], str]) -> str:
        number = self._numbers.get(id(thing))
        if number is not None:
            return f"#{number}"
        number = self._numbers[id(thing)] = len(self._numbers) + 1
        self._kept.append(thing)
        return f"#{number} {written()}"


def array(held: Any) -> str:
    """An array: its numbers where they are few, else a digest that tells it from others."""
    kind = f"{held.dtype}[{','.join(map(str, held.shape))}]"
    if held.size <= _INLINE:
        return f"{kind} {held.tolist()!r}"
    if held.dtype.hasobject:
        return f"{kind} of {held.size} elements"
    return f"{kind} sha256:{hashlib.sha256(np.ascontiguousarray(held).tobytes()).hexdigest()[:16]}"
