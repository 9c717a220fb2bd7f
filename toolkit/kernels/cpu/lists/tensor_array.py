"""TensorArray ops of all three versions, and stacks.

The array is a resource of the step. V3 handles carry it; V1 and V2 handles are [container, name] strings, by
which it is looked up among the step's resources.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import itertools
from typing import Any

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape
from toolkit.kernels.context import RefVariable, StepContext
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import integer, np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import ResourceHandle, handle_names, string_handle
from toolkit.kernels.resources.stack import Stack
from toolkit.kernels.resources.tensor_array import TensorArray
from toolkit.kernels.resources.tensor_space import shape_of, space_of
from toolkit.kernels.types import Array

_ARRAYS, _STACKS = "_tensor_arrays", "_stacks"
_counter = itertools.count()


def _handle(op: KernelNode, container: str, name: str, value: Any) -> Any:
    """The handle of the form that the op gives."""
    if op.output_types[0].kind == "r":
        return ResourceHandle(container, name, type(value).__name__, owned=value)
    named = string_handle(container, name)
    return named if op.node.output_types[0].is_ref else named.value


def _find(step: StepContext, handle: Any, kind: type[Any]) -> Any:
    if isinstance(handle, ResourceHandle) and isinstance(handle.owned, kind):
        return handle.owned
    if isinstance(handle, ResourceHandle | RefVariable) or np.shape(handle) == (2,):
        container, name = handle_names(handle)
        return step.step_resources.get(container, name, kind)
    raise InvalidArgumentError(f"the handle is not one of a {kind.__name__}")


def array_of(step: StepContext, handle: Any) -> TensorArray:
    """The array of a step that a handle is of.

    Raises:
        GraphmillError: it is no such handle.
    """
    return _find(step, handle, TensorArray)


@kernel("TensorArray", "TensorArrayV2", "TensorArrayV3", kind=Kind.STATEFUL)
def tensor_array(op: KernelNode) -> Compute:
    dtype, shape = op.attr("dtype"), op.attr("element_shape")
    options = {
        "dynamic": op.attr("dynamic_size"),
        "clear_after_read": op.attr("clear_after_read"),
        "same_shapes": op.attr("identical_element_shapes") if op.op == "TensorArrayV3" else False,
    }
    label = op.text("tensor_array_name", "") or op.name
    space = space_of(op)
    flow = space.zeros(dtypes.float32, ())

    def compute(step: StepContext, size: Array) -> Any:
        require(size.ndim == 0, f"TensorArray size must be scalar, but had shape: {shape_text(size)}")
        require(int(size) >= 0, f"Size should be >= 0, not {int(size)}")
        made = TensorArray(f"{label}_{next(_counter)}", dtype, shape, int(size), space=space, **options)
        step.step_resources.create(_ARRAYS, made.name, made)
        handle = _handle(op, _ARRAYS, made.name, made)
        return (handle, flow) if op.op == "TensorArrayV3" else handle

    return compute


@kernel("TensorArrayGrad", "TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape", kind=Kind.STATEFUL)
def tensor_array_grad(op: KernelNode) -> Compute:
    source = op.attr("source").decode(errors="surrogateescape")
    has_flow = len(op.output_types) == 2
    new_flow = space_of(op).zeros(dtypes.float32, ())

    def compute(step: StepContext, handle: Any, flow: Array, prepend: Array | None = None) -> Any:
        forward = array_of(step, handle)
        name = f"{forward.name}@{source}"
        lead = None if prepend is None else Shape(checked_shape(prepend, what="shape_to_prepend"))
        with forward.lock:
            made = step.step_resources.get_or_create(_ARRAYS, name, TensorArray, lambda: forward.gradient(name, lead))
        out = _handle(op, _ARRAYS, name, made)
        return (out, new_flow) if has_flow else out

    return compute


def _position(index: Any) -> int:
    if getattr(index, "ndim", 0):
        raise InvalidArgumentError(f"TensorArray index must be scalar, but had shape: {shape_text(index)}")
    return int(index)


@kernel("TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3", kind=Kind.STATEFUL)
def tensor_array_write(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(step: StepContext, handle: Any, index: Array, value: Any, flow: Array) -> Array:
        array = array_of(step, handle)
        at = _position(index)
        with array.lock:
            array.write(at, value, dtype)
        return flow

    return compute


@kernel("TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3", kind=Kind.STATEFUL)
def tensor_array_read(op: KernelNode) -> Compute:
    dtype = op.attr("dtype")

    def compute(step: StepContext, handle: Any, index: Array, flow: Array) -> Any:
        array = array_of(step, handle)
        at = _position(index)
        _check_type(array, dtype)
        with array.lock:
            return array.read(at)

    return compute


def _check_type(array: TensorArray, dtype: Any) -> None:
    if array.dtype is not dtype:
        raise InvalidArgumentError(f"TensorArray dtype is {array.dtype} but op requested dtype {dtype}.")


def _read_all(array: TensorArray, indices: list[int], shape: Shape) -> list[Any]:
    array.merge_shape(shape)
    if not indices and not array.shape.is_fully_defined:
        raise UnimplementedError(
            f"TensorArray has size zero, but element shape {array.shape} is not fully defined. Currently only static "
            "shapes are supported when packing zero-size TensorArrays."
        )
    return [array.read(i) for i in indices]


def _stack(array: TensorArray, values: list[Any]) -> Array:
    if not values:
        return array.space.zeros(array.dtype, [0, *array.shape.as_list()])
    first = shape_of(values[0])
    for i, value in enumerate(values):
        if shape_of(value) != first:
            raise InvalidArgumentError(
                f"TensorArray {array.name} has inconsistent shapes.  Index 0 has shape: {list(first)} but "
                f"index {i} has shape: {list(shape_of(value))}"
            )
    return array.space.stacked(array.dtype, values)


@kernel("TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3", kind=Kind.STATEFUL)
def tensor_array_gather(op: KernelNode) -> Compute:
    dtype, shape = op.attr("dtype"), op.attr("element_shape")

    def compute(step: StepContext, handle: Any, indices: Array, flow: Array) -> Array:
        array = array_of(step, handle)
        require(indices.ndim == 1, f"Expected indices to be a vector, but received shape: {shape_text(indices)}")
        _check_type(array, dtype)
        places: list[int] = indices.tolist()
        with array.lock:
            if array.rows is not None:
                array.merge_shape(shape)
                rows = array.read_rows(places)
                if rows is not None:
                    return rows
            return _stack(array, _read_all(array, places, shape))

    return compute


@kernel("TensorArrayPack", kind=Kind.STATEFUL)
def tensor_array_pack(op: KernelNode) -> Compute:
    dtype, shape = op.attr("dtype"), op.attr("element_shape")

    def compute(step: StepContext, handle: Any, flow: Array) -> Array:
        array = array_of(step, handle)
        _check_type(array, dtype)
        with array.lock:
            return _stack(array, _read_all(array, list(range(array.size)), shape))

    return compute


@kernel("TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3", kind=Kind.STATEFUL)
def tensor_array_concat(op: KernelNode) -> Compute:
    dtype, inner = op.attr("dtype"), op.attr("element_shape_except0")

    def compute(step: StepContext, handle: Any, flow: Array) -> tuple[Array, Array]:
        array = array_of(step, handle)
        _check_type(array, dtype)
        with array.lock:
            count = array.size
            if count == 0:
                if not inner.is_fully_defined:
                    raise UnimplementedError(
                        f"TensorArray has size zero, but element_shape_except0 {inner} is not fully defined. Currently "
                        "only static shapes are supported when concatenating zero-size TensorArrays."
                    )
                return array.space.zeros(array.dtype, [0, *inner.as_list()]), np.zeros(0, np.int64)
            values = [array.read(i) for i in range(count)]
        for i, value in enumerate(values):
            require(value.ndim > 0, f"Concat saw a scalar shape at index {i} but requires at least vectors.")
            require(
                value.shape[1:] == values[0].shape[1:],
                f"TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{shape_text(values[0].shape[1:])} but index {i} has: {shape_text(value.shape[1:])}",
            )
        return array.space.joined(values), np.array([value.shape[0] for value in values], np.int64)

    return compute


def _spread(array: TensorArray, indices: list[int], values: list[Any], dtype: Any) -> None:
    """Write several elements; a full batch makes a dynamic array as long as it needs."""
    with array.lock:
        highest = max(indices, default=-1) + 1
        if highest > array.size:
            require(
                array.dynamic,
                f"TensorArray {array.name}: Max scatter index must be < array size ({highest - 1} vs. {array.size})",
            )
            array.grow(highest)
        for index, value in zip(indices, values, strict=True):
            array.write(index, value, dtype)


@kernel("TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3", kind=Kind.STATEFUL)
def tensor_array_scatter(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(step: StepContext, handle: Any, indices: Array, value: Array, flow: Array) -> Array:
        array = array_of(step, handle)
        require(indices.ndim == 1, f"Expected indices to be a vector, but received shape: {shape_text(indices)}")
        require(
            value.ndim >= 1, f"Input value for unpack must be at least a vector but received shape: {shape_text(value)}"
        )
        require(
            len(indices) == value.shape[0],
            f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {value.shape[0]}",
        )
        places: list[int] = indices.tolist()
        with array.lock:
            if dtype is array.dtype and value.dtype != object and array.takes_rows(places, value.shape[1:]):
                array.replace_rows(value)
                return flow
        _spread(array, places, array.space.rows(value), dtype)
        return flow

    return compute


@kernel("TensorArrayUnpack", kind=Kind.STATEFUL)
def tensor_array_unpack(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(step: StepContext, handle: Any, value: Array, flow: Array) -> Array:
        array = array_of(step, handle)
        require(
            value.ndim >= 1, f"Input value for unpack must be at least a vector but received shape: {shape_text(value)}"
        )
        require(
            array.dynamic or value.shape[0] == array.size,
            f"TensorArray's size is not equal to the size of the unpacked value: {array.size} vs. {value.shape[0]}",
        )
        _spread(array, list(range(value.shape[0])), array.space.rows(value), dtype)
        return flow

    return compute


@kernel("TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3", kind=Kind.STATEFUL)
def tensor_array_split(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(step: StepContext, handle: Any, value: Array, lengths: Array, flow: Array) -> Array:
        array = array_of(step, handle)
        require(lengths.ndim == 1, f"Expected lengths to be a vector, received shape: {shape_text(lengths)}")
        require(value.ndim >= 1, f"Expected value to be at least a vector, but received shape: {shape_text(value)}")
        sizes: list[int] = lengths.tolist()
        total = sum(sizes)
        require(
            total == value.shape[0],
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {total} and value's shape "
            f"is: {shape_text(value)}",
        )
        count = array.size
        require(
            array.dynamic or count == len(lengths),
            f"TensorArray's size is not equal to the size of lengths ({count} vs. {len(lengths)}), and the TensorArray "
            "is not marked as dynamically resizeable",
        )
        parts = array.space.parts(value, sizes)
        _spread(array, list(range(len(parts))), parts, dtype)
        return flow

    return compute


@kernel("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3", kind=Kind.STATEFUL)
def tensor_array_size(op: KernelNode) -> Compute:
    return lambda step, handle, flow: np.array(array_of(step, handle).size, np.int32)


@kernel("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3", kind=Kind.STATEFUL)
def tensor_array_close(op: KernelNode) -> Compute:
    return lambda step, handle: array_of(step, handle).close()


# -- stacks --------------------------------------------------------------------------------------------------


@kernel("Stack", "StackV2", kind=Kind.STATEFUL)
def stack(op: KernelNode) -> Compute:
    dtype = op.attr("elem_type")
    label = op.text("stack_name", "") or op.name

    def compute(step: StepContext, limit: Array | None = None) -> Any:
        made = Stack(f"{label}_{next(_counter)}", dtype, -1 if limit is None else integer(limit, "limit"))
        step.step_resources.create(_STACKS, made.name, made)
        return _handle(op, _STACKS, made.name, made)

    return compute


def held_stack(step: StepContext, handle: Any) -> Stack:
    """The stack that a handle is of.

    Raises:
        GraphmillError: it is no such handle, or was closed with its step.
    """
    return _find(step, handle, Stack)


@kernel("StackPush", "StackPushV2", kind=Kind.STATEFUL)
def stack_push(op: KernelNode) -> Compute:
    dtype = op.attr("T")

    def compute(step: StepContext, handle: Any, value: Any) -> Any:
        _find(step, handle, Stack).push(value, dtype)
        return value

    return compute


@kernel("StackPop", "StackPopV2", kind=Kind.STATEFUL)
def stack_pop(op: KernelNode) -> Compute:
    return lambda step, handle: _find(step, handle, Stack).pop()


@kernel("StackClose", "StackCloseV2", kind=Kind.STATEFUL)
def stack_close(op: KernelNode) -> Compute:
    return lambda step, handle: _find(step, handle, Stack).close()
