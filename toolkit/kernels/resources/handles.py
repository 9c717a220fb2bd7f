"""Handles: the values that stand for resources on the edges of a graph.

A `DT_RESOURCE` edge carries a `ResourceHandle` (VarHandleOp, FIFOQueueV2, HashTableV2, IteratorV2, ...). Older ops
name the resource by a string pair [container, name] on a reference edge; it travels as a `RefVariable` that holds
that array. `lookup` takes either. Every family of resources uses the same class, so that handles of one op can be
compared, passed to functions and put in tensors of handles.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.types import Array

T = TypeVar("T")

#: what TensorFlow prints as the container when none is named
DEFAULT_CONTAINER = "localhost"


@dataclass(frozen=True, slots=True)
class ResourceHandle:
    """The value of a resource edge (ResourceHandleProto).

    Attributes:
        container: "" for the default one.
        name: unique in the container among resources of one kind.
        kind: the name of the resource's class, for messages.
        dtypes_and_shapes: what a variable's handle says of its value.
        owned: the resource itself when the handle alone keeps it alive (anonymous resources); not compared.
    """

    container: str
    name: str
    kind: str = ""
    dtypes_and_shapes: tuple[tuple[DType, Shape], ...] = ()
    owned: object | None = field(default=None, compare=False, repr=False)


#: what containers may be called
_CONTAINER = re.compile(r"[A-Za-z0-9.][A-Za-z0-9.\-/]*\Z")


def resource_name(op: KernelNode) -> tuple[str, str]:
    """(container, name) of the resource an op makes: its shared_name, else its own name; see `shared_resource_name`."""
    container, shared = shared_resource_name(op)
    return container, shared or op.name


def shared_resource_name(op: KernelNode) -> tuple[str, str]:
    """(container, shared name) of the resource an op makes; its name is its own where there is none.

    Raises:
        InvalidArgumentError: the container's name has other characters than letters, digits, ".", "-" and "/"; the
            shared name begins with "_".
    """
    container, shared = handle_name(op)
    if container and not _CONTAINER.match(container):
        raise InvalidArgumentError(f"container contains invalid characters: {container}", node=op.name)
    if shared.startswith("_"):
        raise InvalidArgumentError(f"shared_name cannot start with '_': {shared}", node=op.name)
    return container, shared


def handle_name(op: KernelNode) -> tuple[str, str]:
    """(container, shared name) as an op says them, of whose names nothing is asked."""
    return op.text("container", ""), op.text("shared_name", "")


def string_handle(container: str, name: str) -> RefVariable:
    """The value of a reference edge that names a resource: a string vector [container, name]."""
    variable = RefVariable(name, dtypes.string, Shape([2]), threading.Lock())
    variable.value = np.array([(container or DEFAULT_CONTAINER).encode(), name.encode()], object)
    return variable


def lookup(step: StepContext, handle: Any, kind: type[T]) -> T:
    """The resource behind a handle of either form.

    Raises:
        NotFoundError: there is no such resource.
        InvalidArgumentError: the handle is malformed or names a resource of another kind.
    """
    if isinstance(handle, ResourceHandle):
        if handle.owned is None:
            return step.resources.get(handle.container, handle.name, kind)
        if not isinstance(handle.owned, kind):
            raise InvalidArgumentError(f"resource '{handle.name}' is a {handle.kind}, not a {kind.__name__}")
        return handle.owned
    container, name = handle_names(handle)
    return step.resources.get(container, name, kind)


def handle_names(handle: Any) -> tuple[str, str]:
    """(container, name) of a handle of either form.

    Raises:
        InvalidArgumentError: a string handle that is not a pair of strings.
    """
    if isinstance(handle, ResourceHandle):
        return handle.container, handle.name
    array: Array = handle.value if isinstance(handle, RefVariable) else handle
    if np.shape(array) != (2,):
        raise InvalidArgumentError(f"Resource handle must have 2 elements, but had shape: {list(np.shape(array))}")
    container, name = (part.decode() for part in array.tolist())
    return ("" if container == DEFAULT_CONTAINER else container), name
