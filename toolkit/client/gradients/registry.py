"""Which function adds the gradient of which op; families are files of this package.

    @gradient("Mul")
    def mul(op: Operation, grad: Tensor) -> list[Gradient]:
        ...

A gradient function gets the operation and one gradient per output, and returns one gradient per data input:
a Tensor, IndexedSlices, or None where nothing flows back. A single input may be answered without a list.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.functions import CALLED
from toolkit.errors import RegisteredError
from toolkit.graph import arity, opdefs, plugins

Gradient = Tensor | IndexedSlices | None
GradientFunction = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class GradientEntry:
    """One registration.

    Attributes:
        function: None where the op has no gradient and none is missed (Shape, comparisons, ...).
        accepts_none: outputs without a gradient are passed as None instead of zeros.
    """

    function: GradientFunction | None
    accepts_none: bool = False


#: stands for the type of operations that are named after a function of their graph
CALL_BY_NAME = "(call by name)"

_entries: dict[str, GradientEntry] = {}
_loaded = False


def gradient(*ops: str, accepts_none: bool = False) -> Callable[[GradientFunction], GradientFunction]:
    """Register a gradient function for one or more op types (or names used in gradient_override_map).

    Raises:
        GraphError: one of them has a gradient already.
    """

    def register(function: GradientFunction) -> GradientFunction:
        if plugins.registers(function):
            _check_foreign(ops, function)
        for op in ops:
            _add(op, GradientEntry(function, accepts_none))
        return function

    return register


def no_gradient(*ops: str) -> None:
    """Say that nothing flows back through these op types.

    Raises:
        GraphError: one of them has a gradient already.
    """
    for op in ops:
        _add(op, GradientEntry(None))


def _check_foreign(ops: tuple[str, ...], function: GradientFunction) -> None:
    """What a plugin may get wrong; names of no op are left alone, as gradient_override_map uses such."""
    _load()  # to know what is there
    for op in ops:
        definition = opdefs.find(op)
        count = None if definition is None else definition.fixed_count("outputs")
        if count is not None:
            arity.require(
                function, 1 + count, f"a gradient of {op} is called with the operation and {count} gradient(s)"
            )


def _add(op: str, entry: GradientEntry) -> None:
    if op in _entries:
        raise RegisteredError(f"two gradients for '{op}'")
    _entries[op] = entry


def find(op: Operation) -> GradientEntry | None:
    """The gradient of an operation, by its `_gradient_op_type` or its type; None when there is none."""
    _load()
    override = op.node.attrs.get("_gradient_op_type")
    name = override.decode() if override else op.type
    if name not in _entries:
        plugins.load_installed()
    found = _entries.get(name)
    if found is None and name in op.graph.core.library:
        return _entries[CALL_BY_NAME]
    return found


def is_computed_anew(op: Operation) -> bool:
    """Whether the gradient of an operation is the symbolic one of the function that it is named after."""
    if op.type in _entries or op.type not in op.graph.core.library:
        return False
    called = op.graph.extras.get(CALLED, {}).get(op.type)
    return called is None or called.python_gradient is None


def kind_of(op: str) -> str | None:
    """ "function" for an op type with a gradient function, "none" for one that stops gradients, else None."""
    _load()
    entry = _entries.get(op)
    if entry is None:
        return None
    return "none" if entry.function is None else "function"


def registered() -> list[str]:
    """The op types with an entry."""
    _load()
    return sorted(_entries.keys() - {CALL_BY_NAME})


def _load() -> None:
    global _loaded
    if _loaded:
        return
    for info in pkgutil.iter_modules([str(Path(__file__).parent)], f"{__package__}."):
        importlib.import_module(info.name)
    _loaded = True
