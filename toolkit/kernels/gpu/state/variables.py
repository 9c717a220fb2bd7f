"""Making, assigning and reading variables on GPUs; see `cells` for where their values are."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels import registry
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.state import cells
from toolkit.kernels.gpu.state.updates import run_dense
from toolkit.kernels.registry import COMPLEX, FLOATING, NUMBER, REAL, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.handles import ResourceHandle

#: what TensorFlow has on GPUs: 32-bit integers stay with the CPU
_REFERENCES = FLOATING | COMPLEX | {dtypes.int64, dtypes.bool_, dtypes.uint32}
_RESOURCES = (NUMBER | {dtypes.bool_, dtypes.variant}) - {dtypes.int32}
_ASSIGNED = (NUMBER | {dtypes.bool_}) - {dtypes.int32}
_UPDATED = REAL - {dtypes.int32}
#: ops whose kernels look at no number of a variable, by the attribute that says its type, and the types
_HANDLES: dict[str, dict[str, Any]] = {
    "VariableV2": {"dtype": _REFERENCES}, "Variable": {"dtype": _REFERENCES},
    "IsVariableInitialized": {"dtype": _REFERENCES}, "VarHandleOp": {"dtype": _RESOURCES},
    "VarIsInitializedOp": {}, "VariableShape": {}, "DestroyResourceOp": {}, "DisableCopyOnRead": {}, "RefIdentity": {},
}  # fmt: skip


def _register() -> None:
    for op, types in _HANDLES.items():
        for entry in registry.candidates(op, "CPU"):
            allowed = {name: frozenset(known) for name, known in types.items()}
            registry.add(dataclasses.replace(entry, device_type="GPU", types=allowed))


_register()


@kernel("TemporaryVariable", types={"dtype": _REFERENCES}, kind=Kind.STATEFUL, device="GPU")
def temporary_variable(op: KernelNode) -> Compute:
    """A variable of the step, filled with zeros."""
    device, name = device_of(op.node), op.text("var_name", "") or op.name
    dtype, shape = op.output_types[0], op.attr("shape")
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"a temporary variable needs a shape that is known, not {shape}")
    sizes = shape.as_list()

    def compute(step: StepContext) -> RefVariable:
        frame, iteration = step.frame_iter
        cell = variables.make_ref_variable(name, dtype, shape)
        cell.value = device.zeros(sizes, dtype.numpy)
        step.step_resources.create("tmp_var", f"{name}/{frame}/{iteration}", cell)
        return cell

    return compute


@kernel("DestroyTemporaryVariable", types={"T": _REFERENCES}, kind=Kind.STATEFUL, device="GPU")
def destroy_temporary_variable(op: KernelNode) -> Compute:
    device, name = device_of(op.node), op.text("var_name")

    def compute(step: StepContext, cell: RefVariable) -> GpuArray:
        frame, iteration = step.frame_iter
        step.step_resources.delete("tmp_var", f"{name}/{frame}/{iteration}")
        return cells.read(device, cell)

    return compute


@kernel("Assign", types={"T": _ASSIGNED}, device="GPU")
def assign(op: KernelNode) -> Compute:
    device, validate = device_of(op.node), op.attr("validate_shape")

    def compute(cell: RefVariable, value: Any) -> RefVariable:
        if validate and not cell.shape.is_compatible_with(Shape(value.shape)):
            raise InvalidArgumentError(
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {cell.shape} rhs shape= {Shape(value.shape)}"
            )
        with cell.lock:
            cells.assign(device, cell, value)
        return cell

    return compute


@kernel("AssignVariableOp", kind=Kind.STATEFUL, device="GPU")
def assign_variable(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype")
    validate = op.attr("validate_shape", False)

    def compute(step: StepContext, handle: ResourceHandle, value: Any) -> None:
        declared = handle.dtypes_and_shapes[0][1] if handle.dtypes_and_shapes else UNKNOWN
        cell = variables.find_or_create(step, handle, dtype, declared)
        if cell.dtype is not dtype:
            raise InvalidArgumentError(f"Trying to assign variable with wrong dtype. Expected {cell.dtype} got {dtype}")
        shape = Shape(getattr(value, "shape", ()))
        if validate and not declared.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"Trying to assign to variable with tensor with wrong shape. Expected {declared} got {shape}"
            )
        with cell.lock:
            if isinstance(value, GpuArray):
                cells.assign(device, cell, value)
            else:
                cell.value = value

    return compute


@kernel("ReadVariableOp", kind=Kind.STATEFUL, device="GPU")
def read_variable(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype")

    def compute(step: StepContext, handle: ResourceHandle) -> Any:
        cell = variables.find(step, handle)
        if cell.value is not None and cell.dtype is not dtype:
            raise InvalidArgumentError(f"Trying to read variable with wrong dtype. Expected {dtype} got {cell.dtype}")
        return _value(device, cell)

    return compute


@kernel("_ReadVariablesOp", kind=Kind.STATEFUL, device="GPU")
def read_variables(op: KernelNode) -> Compute:
    device, types = device_of(op.node), op.output_types

    def compute(step: StepContext, *handles: ResourceHandle) -> list[Any]:
        return [_value(device, variables.find(step, *each)) for each in zip(handles, types, strict=True)]

    return compute


def _value(device: Any, cell: variables.Cell) -> Any:
    """The value: texts, handles and lists are as they are."""
    return variables.read_anywhere(cell) if cell.dtype.kind in "srv" else cells.read(device, cell)


def plus(cell: Any, value: Any) -> None:
    """The rule of AssignAdd."""
    cell += value


def minus(cell: Any, value: Any) -> None:
    """The rule of AssignSub."""
    cell -= value


def parts(array: GpuArray) -> GpuArray:
    """The same memory as real numbers: complex ones are pairs, in an axis more."""
    if array.dtype.kind != "c":
        return array
    return array.viewed(f"float{4 * array.dtype.itemsize}", (*array.shape, 2))


@kernel("AssignAdd", "AssignSub", types={"T": _UPDATED}, device="GPU")
def assign_update(op: KernelNode) -> Compute:
    device, rule = device_of(op.node), plus if op.op == "AssignAdd" else minus

    def compute(cell: RefVariable, value: GpuArray) -> RefVariable:
        with cell.lock:
            target = cells.writable(device, cell)
            if target.shape != value.shape:
                raise InvalidArgumentError(
                    f"{op.op}: the shapes of the variable and the value must match: "
                    f"{list(target.shape)} against {list(value.shape)}"
                )
            run_dense(device, op.op, rule, [parts(target)], parts(value), [], 0)
        return cell

    return compute


@kernel(
    "AssignAddVariableOp", "AssignSubVariableOp", types={"dtype": _UPDATED | COMPLEX}, kind=Kind.STATEFUL, device="GPU"
)
def assign_update_variable(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype")
    rule = plus if op.op == "AssignAddVariableOp" else minus

    def compute(step: StepContext, handle: ResourceHandle, value: GpuArray) -> None:
        cell = variables.cell_of(step, handle, dtype)
        with cell.lock:
            target = cells.writable(device, cell)
            if target.shape != value.shape:
                raise InvalidArgumentError(
                    f"Cannot update variable with shape {list(target.shape)} using a Tensor with shape "
                    f"{list(value.shape)}, shapes must be equal."
                )
            run_dense(device, op.op, rule, [parts(target)], parts(value), [], 0)

    return compute
