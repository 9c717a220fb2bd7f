"""Variables: the cells that both kinds of variable op work on.

A ref variable (VariableV2) is a `RefVariable`; a resource variable (VarHandleOp) is a `Variable` in the resource
manager. Both hold one array. Readers take the array itself, without a copy, so a writer may change it in place only
while nobody else holds it; otherwise it works on a copy and puts that in its place (TensorFlow's copy-on-read).

The array lies where the kernels are that wrote it last: in host memory, or in a device's. Those of the host are given
a copy of what a device has (`read`), and a variable that they write moves to host memory (`writable`).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Generator, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from toolkit.forks import free_in_children
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.resources.handles import ResourceHandle, lookup
from toolkit.kernels.types import Array

# `cell.value` itself and the argument of getrefcount
_SOLE_OWNER = 2


class Variable:
    """A resource variable. `value` is None until it is initialised; hold `lock` to write."""

    __slots__ = ("__weakref__", "dtype", "lock", "name", "shape", "value")

    def __init__(self, name: str, dtype: DType, shape: Shape):
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.lock = threading.RLock()
        free_in_children(self, "lock")
        self.value: Any = None

    def __deepcopy__(self, memo: Any) -> Variable:
        return self


Cell = RefVariable | Variable


#: the kind of a resource variable's handle
VARIABLE = "Var"


def make_ref_variable(name: str, dtype: DType, shape: Shape) -> RefVariable:
    """An uninitialised ref variable."""
    made = RefVariable(name, dtype, shape, threading.RLock())
    free_in_children(made, "lock")
    return made


def writable(cell: Cell) -> Array:
    """The cell's array, safe to write into, dense; hold the cell's lock.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    if cell.value is None:
        raise uninitialized(cell)
    if isinstance(cell.value, DeviceArray):
        cell.value = on_host(cell.value)
    shared = sys.getrefcount(cell.value) > _SOLE_OWNER
    if shared or cell.value.base is not None or not cell.value.flags.carray:
        cell.value = cell.value.copy()
    return cell.value


class Donated:
    """A tensor whose holder has given it away: a variable can have the array itself, if nobody else has it."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value: Any = value

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)

    def take(self) -> Array:
        """The array, or a copy where somebody else may see or change it; can be called once."""
        # whoever holds an array, or a view of it, is counted
        shared = type(self.value) is not np.ndarray or sys.getrefcount(self.value) > _SOLE_OWNER
        value, self.value = self.value, None
        if isinstance(value, DeviceArray):
            return on_host(value)
        if shared or not value.flags.carray:
            return owned(value)
        if value.base is None:
            return value if value.flags.owndata else owned(value)
        # another shape of a whole array that only it knows: that array, in this shape
        if type(value.base) is not np.ndarray or sys.getrefcount(value.base) > _SOLE_OWNER:
            return owned(value)
        base: Any = value.base
        if not (base.flags.owndata and base.flags.carray and base.dtype == value.dtype and base.size == value.size):
            return owned(value)
        base.resize(value.shape, refcheck=False)
        return base


def owned(value: Any) -> Array:
    """A copy that a variable can keep: what it is made of may belong to the caller or to another variable."""
    if isinstance(value, Donated):
        return value.take()
    if isinstance(value, DeviceArray):
        return on_host(value)
    return cast("Array", np.array(value, copy=True, order="C"))


def read(cell: Cell) -> Array:
    """The present value, in host memory.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    value = read_anywhere(cell)
    return value if type(value) is np.ndarray else on_host(value)


def read_anywhere(cell: Cell) -> Any:
    """The present value, in host memory or in that of a device.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    value = cell.value
    if value is None:
        raise uninitialized(cell)
    return value


def on_host(value: Any) -> Any:
    """A tensor in host memory: a copy where it lies in a device's, which its array names (`memory`)."""
    return value.memory.copy_out(value) if isinstance(value, DeviceArray) else value


def uninitialized(cell: Cell) -> FailedPreconditionError:
    """The error for reading a variable without a value, with TensorFlow's words for each kind."""
    if isinstance(cell, RefVariable):
        return FailedPreconditionError(f"Attempting to use uninitialized value {cell.name}")
    return FailedPreconditionError(
        f"Could not find variable {cell.name}. This could mean that the variable has been deleted or was not "
        "initialized"
    )


def find(step: StepContext, handle: Any, dtype: DType | None = None) -> Variable:
    """The variable behind a resource handle.

    Args:
        dtype: what the op reads, for ops that look at values.

    Raises:
        FailedPreconditionError: there is none, which for a variable means that it is not initialised.
        InvalidArgumentError: it is of another type.
    """
    try:
        found = lookup(step, handle, Variable)
        if dtype is not None and found.dtype is not dtype:
            raise wrong_type(found, dtype)
        return found
    except NotFoundError:
        name = handle.name if isinstance(handle, ResourceHandle) else str(handle)
        raise uninitialized(Variable(name, dtypes.float32, Shape(None))) from None


def find_or_create(step: StepContext, handle: ResourceHandle, dtype: DType, shape: Shape) -> Variable:
    """The variable behind a handle; made when it is the first to be assigned.

    Raises:
        InvalidArgumentError: the handle is of something else.
    """
    if handle.kind not in ("", VARIABLE):
        raise InvalidArgumentError(f"resource '{handle.name}' is a {handle.kind}, not a variable")
    if handle.owned is not None:
        return lookup(step, handle, Variable)
    return step.resources.get_or_create(
        handle.container, handle.name, Variable, lambda: Variable(handle.name, dtype, shape)
    )


def cell_of(step: StepContext, target: Any, dtype: DType) -> Cell:
    """The cell behind either kind of variable input that an op changes: a reference or a resource handle.

    Args:
        dtype: of the values that the op brings. A handle does not say what its variable is made of, and the array is
            written in place, by compiled code as well.

    Raises:
        NotFoundError: a resource variable that was never assigned.
        InvalidArgumentError: the variable is of another type.
    """
    cell: Cell = target if isinstance(target, RefVariable) else lookup(step, target, Variable)
    if cell.dtype is not dtype:
        raise wrong_type(cell, dtype)
    return cell


def wrong_type(cell: Cell, dtype: DType) -> InvalidArgumentError:
    """The error for a variable of another type than the op at hand works on."""
    return InvalidArgumentError(f"the variable '{cell.name}' is of type {cell.dtype}, but the op works on {dtype}")


@contextlib.contextmanager
def held(cells: Sequence[Cell]) -> Generator[None]:
    """Nobody else writes these cells meanwhile: what is checked of them stays true until they are written.

    Locks are taken in one order everywhere, so that two steps with the same variables do not wait for each other.
    """
    with contextlib.ExitStack() as locks:
        for cell in sorted(cells, key=id):
            locks.enter_context(cell.lock)
        yield


def check_shape(cell: Cell, value: Array, what: str) -> None:
    """Refuse a value whose shape is not the variable's.

    Raises:
        InvalidArgumentError: the shapes differ.
    """
    if cell.value is not None and cell.value.shape != np.shape(value):
        raise InvalidArgumentError(
            f"{what} must have the variable's shape {list(cell.value.shape)}, not {list(np.shape(value))}"
        )
