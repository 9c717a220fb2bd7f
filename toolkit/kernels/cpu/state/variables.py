"""Making, assigning and reading variables of both kinds."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.cpu.common import require_scalar
from toolkit.kernels.registry import Compute, KernelNode, Kind, NamedCompute, kernel, named_kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.handles import ResourceHandle, handle_name, shared_resource_name
from toolkit.kernels.types import Array


@named_kernel("VariableV2", "Variable", kind=Kind.STATEFUL)
def variable_v2(op: KernelNode) -> NamedCompute:
    container, shared = shared_resource_name(op)
    dtype, shape = op.output_types[0], op.attr("shape")
    # V1 graphs write an empty shape where it is unknown.
    declared = UNKNOWN if op.op == "Variable" and not shape.dims else shape
    is_empty = declared.is_fully_defined and declared.num_elements == 0  # there is nothing to initialize

    def named(label: str) -> Compute:
        name = shared or label

        def make() -> RefVariable:
            cell = variables.make_ref_variable(label, dtype, declared)
            if is_empty:
                cell.value = np.empty(declared.as_list(), dtype.numpy)
            return cell

        def compute(step: StepContext) -> RefVariable:
            found = step.resources.get_or_create(container, name, RefVariable, make)
            if found.dtype is not dtype:  # another node made it, under the same shared_name
                raise variables.wrong_type(found, dtype)
            return found

        return compute

    return named


@kernel("TemporaryVariable", kind=Kind.STATEFUL)
def temporary_variable(op: KernelNode) -> Compute:
    """A variable of the step, filled with zeros."""
    name = op.text("var_name", "") or op.name
    dtype, shape = op.output_types[0], op.attr("shape")
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"a temporary variable needs a shape that is known, not {shape}")
    sizes = shape.as_list()

    def compute(step: StepContext) -> RefVariable:
        frame, iteration = step.frame_iter
        cell = variables.make_ref_variable(name, dtype, shape)
        cell.value = np.full(sizes, b"" if dtype.kind == "s" else 0, dtype.numpy)
        step.step_resources.create("tmp_var", f"{name}/{frame}/{iteration}", cell)
        return cell

    return compute


@kernel("DestroyTemporaryVariable", kind=Kind.STATEFUL)
def destroy_temporary_variable(op: KernelNode) -> Compute:
    name = op.text("var_name")

    def compute(step: StepContext, cell: RefVariable) -> Array:
        frame, iteration = step.frame_iter
        step.step_resources.delete("tmp_var", f"{name}/{frame}/{iteration}")
        return variables.read(cell)

    return compute


@kernel("Assign")
def assign(op: KernelNode) -> Compute:
    validate = op.attr("validate_shape")

    def compute(cell: RefVariable, value: Array) -> RefVariable:
        given = np.shape(value)
        if validate and cell.shape.dims != given and not cell.shape.is_compatible_with(Shape(given)):
            raise InvalidArgumentError(
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {cell.shape} rhs shape= {Shape(np.shape(value))}"
            )
        kept = variables.owned(value)
        with cell.lock:
            cell.value = kept
        return cell

    return compute


@kernel("AssignAdd", "AssignSub")
def assign_update(op: KernelNode) -> Compute:
    update: Any = np.add if op.op == "AssignAdd" else np.subtract

    def compute(cell: RefVariable, value: Array) -> RefVariable:
        with cell.lock:
            target = variables.writable(cell)
            _check_update(op.op, target, value)
            update(target, value, out=target)
        return cell

    return compute


def _check_update(what: str, target: Array, value: Array) -> None:
    if target.shape != np.shape(value):
        raise InvalidArgumentError(
            f"{what}: the shapes of the variable and the value must match: "
            f"{list(target.shape)} against {list(np.shape(value))}"
        )


@kernel("IsVariableInitialized")
def is_variable_initialized(op: KernelNode) -> Compute:
    def compute(cell: RefVariable) -> Array:
        return np.bool_(cell.value is not None)

    return compute


@kernel("CountUpTo")
def count_up_to(op: KernelNode) -> Compute:
    limit = op.attr("limit")

    def compute(cell: RefVariable) -> Array:
        return _count(cell, limit)

    return compute


@kernel("ResourceCountUpTo", kind=Kind.STATEFUL)
def resource_count_up_to(op: KernelNode) -> Compute:
    limit, dtype = op.attr("limit"), op.attr("T")

    def compute(step: StepContext, handle: ResourceHandle) -> Array:
        return _count(variables.find(step, handle, dtype), limit)

    return compute


def _count(cell: variables.Cell, limit: int) -> Array:
    with cell.lock:
        before = variables.read(cell)
        require_scalar(before, "input")
        if before.item() >= limit:
            raise OutOfRangeError(f"Reached limit of {limit}")
        cell.value = np.asarray(before + before.dtype.type(1), before.dtype)
    return before


# -- resource variables ----------------------------------------------------------------------------------


@kernel("VarHandleOp")
def var_handle(op: KernelNode) -> Compute:
    """The handle is the same in every step; an anonymous name (cd2c89b7-...) makes a variable of its own."""
    container, shared = handle_name(op)
    name = shared or op.name
    dtype, shape = op.attr("dtype"), op.attr("shape")
    handle = ResourceHandle(container, name, variables.VARIABLE, ((dtype, shape),))
    if name == "cd2c89b7-88b7-44c8-ad83-06c2a9158347":

        def anonymous() -> ResourceHandle:
            return ResourceHandle(
                container, op.name, variables.VARIABLE, ((dtype, shape),), variables.Variable(op.name, dtype, shape)
            )

        return anonymous
    return lambda: handle


@kernel("VarIsInitializedOp", kind=Kind.STATEFUL)
def var_is_initialized(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: ResourceHandle) -> Array:
        try:
            return np.bool_(variables.find(step, handle).value is not None)
        except (FailedPreconditionError, InvalidArgumentError):  # what is no variable is none that has a value
            return np.bool_(False)

    return compute


@kernel("ReadVariableOp", kind=Kind.STATEFUL)
def read_variable(op: KernelNode) -> Compute:
    dtype = op.attr("dtype")

    def compute(step: StepContext, handle: ResourceHandle) -> Array:
        cell = variables.find(step, handle)
        value = variables.read(cell)
        if cell.dtype is not dtype:
            raise InvalidArgumentError(f"Trying to read variable with wrong dtype. Expected {dtype} got {cell.dtype}")
        return value

    return compute


@kernel("_ReadVariablesOp", kind=Kind.STATEFUL)
def read_variables(op: KernelNode) -> Compute:
    types = op.output_types

    def compute(step: StepContext, *handles: ResourceHandle) -> list[Array]:
        return [variables.read(variables.find(step, *each)) for each in zip(handles, types, strict=True)]

    return compute


@kernel("AssignVariableOp", kind=Kind.STATEFUL)
def assign_variable(op: KernelNode) -> Compute:
    dtype = op.attr("dtype")
    validate = op.attr("validate_shape", False)

    def compute(step: StepContext, handle: ResourceHandle, value: Any) -> None:
        declared = handle.dtypes_and_shapes[0][1] if handle.dtypes_and_shapes else UNKNOWN
        cell = variables.find_or_create(step, handle, dtype, declared)
        if cell.dtype is not dtype:
            raise InvalidArgumentError(f"Trying to assign variable with wrong dtype. Expected {cell.dtype} got {dtype}")
        if validate and not declared.is_compatible_with(Shape(np.shape(value))):
            raise InvalidArgumentError(
                f"Trying to assign to variable with tensor with wrong shape. Expected {declared} "
                f"got {Shape(np.shape(value))}"
            )
        kept = value if dtype.kind in "rv" else variables.owned(value)
        with cell.lock:
            cell.value = kept

    return compute


@kernel("AssignAddVariableOp", "AssignSubVariableOp", kind=Kind.STATEFUL)
def assign_update_variable(op: KernelNode) -> Compute:
    update: Any = np.add if op.op == "AssignAddVariableOp" else np.subtract
    dtype = op.attr("dtype")

    def compute(step: StepContext, handle: ResourceHandle, value: Array) -> None:
        cell = variables.cell_of(step, handle, dtype)
        with cell.lock:
            target = variables.writable(cell)
            if target.shape != np.shape(value):
                raise InvalidArgumentError(
                    f"Cannot update variable with shape {list(target.shape)} using a Tensor with shape "
                    f"{list(np.shape(value))}, shapes must be equal."
                )
            update(target, value, out=target)

    return compute


@kernel("VariableShape", kind=Kind.STATEFUL)
def variable_shape(op: KernelNode) -> Compute:
    out = op.output_types[0].numpy

    def compute(step: StepContext, handle: ResourceHandle) -> Array:
        return np.array(np.shape(variables.read(variables.find(step, handle))), out)

    return compute


@kernel("DestroyResourceOp", kind=Kind.STATEFUL)
def destroy_resource(op: KernelNode) -> Compute:
    ignore = op.attr("ignore_lookup_error")

    def compute(step: StepContext, handle: ResourceHandle) -> None:
        from toolkit.errors import NotFoundError

        if handle.owned is not None:
            return
        try:
            step.resources.delete(handle.container, handle.name)
        except NotFoundError:
            if not ignore:
                raise

    return compute


@kernel("DisableCopyOnRead", kind=Kind.STATEFUL)
def disable_copy_on_read(op: KernelNode) -> Compute:
    """Reading never copies here; writing checks who else holds the value."""

    def compute(step: StepContext, handle: ResourceHandle) -> None:
        return None

    return compute
