"""Shapes of variables and of what reads and writes them."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape
from toolkit.graph.shapes.indexing import check_scatter_nd, gather_nd_shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function("VariableV2", "TemporaryVariable")
def variable(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


@shape_function("Variable")
def variable_v1(c: ShapeContext) -> list[Shape]:
    shape: Shape = c.attr("shape")
    return [UNKNOWN if shape == SCALAR else shape]  # the old op could not say "unknown"


@shape_function("DestroyTemporaryVariable")
def destroy_temporary(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("IsVariableInitialized", "VarIsInitializedOp")
def is_initialized(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("Assign")
def assign(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].merge(c.inputs[1]) if c.attr("validate_shape") else c.inputs[1]]


@shape_function("AssignAdd", "AssignSub")
def assign_update(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].merge(c.inputs[1])]


@shape_function("CountUpTo")
def count_up_to(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 0)]


@shape_function("ResourceCountUpTo")
def resource_count_up_to(c: ShapeContext) -> list[Shape]:
    handle, wanted = c.handle(0), c.attr("T")
    if not handle:
        raise GraphmillError("input 0, 'resource', must come from an op that makes a variable")
    if handle[0][1].base is not wanted.base:
        raise GraphmillError(f"the variable is of type {handle[0][1]}; attribute 'T' says {wanted}")
    return [_held(c, 0).merge(SCALAR)]


@shape_function(
    "ScatterAdd", "ScatterDiv", "ScatterMax", "ScatterMin", "ScatterMul", "ScatterSub", "ScatterUpdate",
)  # fmt: skip
def scatter(c: ShapeContext) -> list[Shape]:
    target, indices, updates = c.inputs
    _check_scatter(target, indices, updates)
    return [target]


def _check_scatter(target: Shape, indices: Shape, updates: Shape) -> None:
    if updates.dims != ():  # one scalar may update all rows
        indices.concatenate(target.slice(1)).merge(updates)


@shape_function("ScatterNdAdd", "ScatterNdMax", "ScatterNdMin", "ScatterNdSub", "ScatterNdUpdate")
def scatter_nd_update(c: ShapeContext) -> list[Shape]:
    check_scatter_nd(c.inputs[1], c.inputs[2], c.inputs[0])
    return [c.inputs[0]]


@shape_function("VarHandleOp")
def var_handle(c: ShapeContext) -> list[Shape]:
    c.output_handles[0] = [(c.attr("shape"), c.attr("dtype"))]
    return [SCALAR]


@shape_function("_VarHandlesOp")
def var_handles(c: ShapeContext) -> list[Shape]:
    shapes, types = c.attr("shapes"), c.attr("dtypes")
    if len(shapes) != len(types):
        raise GraphmillError(f"there are {len(shapes)} shapes for {len(types)} dtypes")
    for index, (shape, dtype) in enumerate(zip(shapes, types, strict=True)):
        c.output_handles[index] = [(shape, dtype)]
    return [SCALAR] * c.node.num_outputs


def _held(c: ShapeContext, index: int) -> Shape:
    """The shape of the variable behind a handle."""
    handle = c.handle(index)
    return handle[0][0] if handle else UNKNOWN


@shape_function("ReadVariableOp")
def read_variable(c: ShapeContext) -> list[Shape]:
    handle = c.handle(0)
    if handle and handle[0][1].base != c.attr("dtype").base:
        raise GraphmillError(f"the variable is {handle[0][1]}; it is read as {c.attr('dtype')}")
    if handle and len(handle) > 1:  # a variant variable keeps what its value holds
        c.output_handles[0] = handle[1:]
    return [_held(c, 0)]


@shape_function("_ReadVariablesOp")
def read_variables(c: ShapeContext) -> list[Shape]:
    return [_held(c, i) for i in range(len(c.inputs))]


@shape_function("DisableCopyOnRead", "DestroyResourceOp", "ConsumeMutexLock", "DeleteSessionTensor")
def nothing(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableXlaConcatND")
def assign_variable(c: ShapeContext) -> list[Shape]:
    if c.node.op != "AssignVariableXlaConcatND":
        _held(c, 0).merge(c.inputs[1])
    return []


@shape_function("VariableShape")
def variable_shape(c: ShapeContext) -> list[Shape]:
    return [Shape([_held(c, 0).rank])]


@shape_function("ResourceGather")
def resource_gather(c: ShapeContext) -> list[Shape]:
    source, indices, batch = _held(c, 0), c.inputs[1], c.attr("batch_dims")
    if source.dims is None or indices.dims is None:
        return [UNKNOWN]
    if not source.dims:
        raise GraphmillError("a scalar variable has no rows to gather")
    head = source.slice(0, batch)
    return [head.concatenate(indices.slice(batch)).concatenate(source.slice(batch + 1))]


@shape_function("ResourceGatherNd")
def resource_gather_nd(c: ShapeContext) -> list[Shape]:
    return [gather_nd_shape(_held(c, 0), c.rank_at_least(1, 1))]


@shape_function(
    "ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin", "ResourceScatterMul",
    "ResourceScatterSub", "ResourceScatterUpdate",
)  # fmt: skip
def resource_scatter(c: ShapeContext) -> list[Shape]:
    _check_scatter(_held(c, 0), c.inputs[1], c.inputs[2])
    return []


@shape_function(
    "ResourceScatterNdAdd", "ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceScatterNdSub",
    "ResourceScatterNdUpdate",
)  # fmt: skip
def resource_scatter_nd(c: ShapeContext) -> list[Shape]:
    check_scatter_nd(c.inputs[1], c.inputs[2], _held(c, 0))
    return []


@shape_function("ResourceStridedSliceAssign")
def resource_strided_assign(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("MutexV2", "MutexLock")
def handle(c: ShapeContext) -> list[Shape]:
    return [SCALAR]
