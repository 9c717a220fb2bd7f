"""The types of outputs that a file only claims: what resources, variants, functions and transfers give is looked at.

What follows from the types of a kernel's input tensors needs no look. But what a variable, a queue, a list or a
function holds is known when it is there, while everybody behind relies on what the graph declares. A plugin's kernels
are held to all that they declare, and to the memory of their device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import GraphmillError, InternalError, InvalidArgumentError, OpError
from toolkit.graph import dtypes
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.kernels import device_types
from toolkit.kernels.context import DEAD, Done
from toolkit.kernels.facts import stays_on_host
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


_SEQUENCES = (tuple, list)  # a union would be made anew in every call


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

    def check(outputs: Sequence[Any]) -> None:
        for index, dtype, array_type in wanted:
            if index >= len(outputs):
                break  # the executor says so
            value = outputs[index]
            if getattr(value, "dtype", None) != array_type and value is not DEAD:
                raise _wrong(node.op, index, dtype, value)

    return _checked(compute, kind, check)


def held_to_declaration(compute: Compute, kind: Kind, node: Node, device_type: str) -> Compute:
    """A plugin's compute, whose results are of the types that its op declares, in the right memory, or it fails.

    Args:
        device_type: of the device that runs it; which one of them the node says.

    Raises:
        InternalError: (when called) an output is of another type, or in another memory.
    """
    wanted = [
        (index, dtype, dtype.numpy)
        for index, dtype in enumerate(node.output_types)
        if not dtype.is_ref and dtype.kind not in "srv"
    ]
    number = DeviceSpec.parse(node.device).device_index if device_types.has_memory(device_type) else 0
    memory = device_types.memory(device_type, number or 0)
    on_host = [memory is None or stays_on_host(node, device_type, index, output=True) for index, _, _ in wanted]
    if not wanted:
        return compute

    def check(outputs: Sequence[Any]) -> None:
        for (index, dtype, array_type), is_on_host in zip(wanted, on_host, strict=True):
            if index >= len(outputs):
                break  # the executor says so
            value = outputs[index]
            if value is DEAD:
                continue
            found = getattr(value, "dtype", None)
            if found is None:
                raise _returned(node, index, _kind(value), f"must be an array of type {dtype}")
            if found != array_type:
                raise _returned(node, index, f"an array of type {_type_name(found)}", f"is declared as {dtype}")
            if memory is not None and memory.owns(value) is is_on_host:
                where = "host memory" if is_on_host else f"the memory of {node.device}"
                raise _returned(node, index, _kind(value), f"must be in {where}")

    return _checked(compute, kind, check)


def _checked(compute: Compute, kind: Kind, look: Callable[[Sequence[Any]], None]) -> Compute:
    """A compute whose outputs are looked at."""

    def check(result: Any) -> Any:
        given: Any = result  # what is known of it below is less than this
        look(cast("Sequence[Any]", result) if isinstance(result, _SEQUENCES) else (result,))
        return given

    if kind is not Kind.ASYNC:
        return lambda *args: check(compute(*args))

    def call(step: Any, done: Done, *args: Any) -> None:
        def checked(result: Any) -> None:
            if not isinstance(result, BaseException) and result is not DEAD:
                try:
                    check(result)
                except OpError as error:
                    result = error
            done(result)

        compute(step, checked, *args)

    return call


def _wrong(op: str, index: int, dtype: DType, value: Any) -> InvalidArgumentError:
    found = getattr(value, "dtype", None)
    kind = type(value).__name__ if found is None else _type_name(found)
    return InvalidArgumentError(f"output {index} of {op} is declared as {dtype}, but what is there is of type {kind}")


def _returned(node: Node, index: int, what: str, wanted: str) -> InternalError:
    return InternalError(f"the kernel of {node.op} returned {what} as output {index}, which {wanted}")


def _kind(value: Any) -> str:
    return (
        "None" if value is None else "a NumPy array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    )


def _type_name(array_type: Any) -> str:
    try:
        return str(dtypes.from_numpy(array_type))
    except GraphmillError:  # one that tensors do not have
        return str(array_type)
