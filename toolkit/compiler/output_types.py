"""The types of outputs that a file only claims: what resources, variants, functions and transfers give is looked at.

What follows from the types of a kernel's input tensors needs no look. But what a variable, a queue, a list or a
function holds is known when it is there, while everybody behind relies on what the graph declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.kernels.context import DEAD, Done
from toolkit.kernels.registry import Compute, Kind

_TRANSFERS = frozenset({"_Recv", "_HostRecv"})
_HANDLES = frozenset({dtypes.resource, dtypes.variant})


def is_dynamic(node: Node) -> bool:
    """Whether a node's outputs come from something whose type is known when it runs."""
    return (
        any(dtype.base in _HANDLES or dtype is dtypes.string.ref for dtype in node.input_types)
        or any(attr.type in ("func", "list(func)") for attr in node.op_def.attrs.values())
        or node.op in _TRANSFERS
    )


def typed(compute: Compute, kind: Kind, node: Node) -> Compute:
    """A compute whose results are of the types that the node declares, or it fails.

    Raises:
        InvalidArgumentError: (when called) an output is of another type.
    """
    wanted = [
        (index, dtype, dtype.numpy)
        for index, dtype in enumerate(node.output_types)
        if dtype.base not in _HANDLES and not dtype.is_ref
    ]
    if not wanted:
        return compute

    def check(result: Any) -> Any:
        outputs: Sequence[Any] = cast("Sequence[Any]", result) if isinstance(result, tuple | list) else (result,)
        for index, dtype, array_type in wanted:
            if index >= len(outputs):
                break  # the executor says so
            value = outputs[index]
            if getattr(value, "dtype", None) != array_type and value is not DEAD:
                raise _wrong(node.op, index, dtype, value)
        return cast("Any", result)

    if kind is not Kind.ASYNC:
        return lambda *args: check(compute(*args))

    def call(step: Any, done: Done, *args: Any) -> None:
        def checked(result: Any) -> None:
            if not isinstance(result, BaseException) and result is not DEAD:
                try:
                    check(result)
                except InvalidArgumentError as error:
                    result = error
            done(result)

        compute(step, cast("Callable[[Any], None]", checked), *args)

    return call


def _wrong(op: str, index: int, dtype: DType, value: Any) -> InvalidArgumentError:
    found = getattr(value, "dtype", None)
    kind = type(value).__name__ if found is None else str(dtypes.from_numpy(found))
    return InvalidArgumentError(f"output {index} of {op} is declared as {dtype}, but what is there is of type {kind}")
