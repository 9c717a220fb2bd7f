# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.raw_ops: every op by its own name, with arguments by name alone and nothing done for them but the node."""

from __future__ import annotations

import collections
import functools
import inspect
from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.graph import opdefs

#: what TensorFlow calls an input or attribute otherwise than the OpDef does; `tests.tf1.test_raw_ops` compares
_REDUCTIONS = ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
_RENAMED: dict[str, dict[str, str]] = {
    **{op: {"axis": "reduction_indices"} for op in _REDUCTIONS},
    "ExpandDims": {"axis": "dim"}, "Select": {"x": "t", "y": "e"}, "Split": {"axis": "split_dim"},
    "SplitV": {"axis": "split_dim"}, "Squeeze": {"axis": "squeeze_dims"}, "Where": {"condition": "input"},
}  # fmt: skip


def names() -> list[str]:
    """The ops that have a function here: all but internal ones."""
    return sorted(op for op in opdefs.names() if not op.startswith("_") and ">" not in op)


@functools.cache
def function(op: str) -> Callable[..., Any]:
    """The function of an op: keywords in; a tensor, a named tuple of the op's outputs, or the operation out.

    Raises:
        KeyError: there is no such op.
    """
    if op not in names():
        raise KeyError(op)
    inner = ops.function(op)
    renamed = _RENAMED.get(op, {})
    own = {old: new for new, old in renamed.items()}
    parameters = [
        parameter.replace(name=own.get(name, name), kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(inner).parameters.items()
    ]
    fields = [output.name for output in opdefs.get(op).outputs]
    result: Any = collections.namedtuple(op, fields, rename=True) if len(fields) > 1 else None  # pyright: ignore[reportUntypedNamedTuple]
    taken = {parameter.name for parameter in parameters}

    def call(**given: Any) -> Any:
        unknown = sorted(given.keys() - taken)
        if unknown:
            raise TypeError(f"tf.raw_ops.{op} has no argument {unknown[0]!r}; it takes {', '.join(sorted(taken))}")
        made = inner(**{renamed.get(name, name): value for name, value in given.items()})
        return made if result is None else result(*made)

    call.__name__ = call.__qualname__ = op
    call.__doc__ = inner.__doc__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call
