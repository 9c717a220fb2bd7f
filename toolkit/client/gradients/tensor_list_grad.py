"""Gradients of TensorList ops: the gradient of a list is a list of gradients."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient

no_gradient("TensorListConcatLists", "TensorListElementShape", "TensorListLength", "TensorListPushBackBatch")


def _tail(tensor: Tensor) -> Tensor:
    """The shape of one element of a stack."""
    return array_ops.shape(tensor)[1:]


@gradient("TensorListPushBack")
def push_back(op: Operation, grad: Tensor | None) -> list[Gradient]:
    item = op.inputs[1]
    if grad is None:
        return [None, None]
    rest, last = ops.tensor_list_pop_back(grad, array_ops.shape(item), element_dtype=item.dtype.base)
    return [rest, last]


@gradient("TensorListPopBack")
def pop_back(op: Operation, grad: Tensor | None, by_item: Tensor | None) -> list[Gradient]:
    dtype = op.get_attr("element_dtype")
    if grad is None:
        grad = ops.empty_tensor_list(constant(-1), constant(-1), element_dtype=dtype)
    if by_item is None:
        by_item = array_ops.zeros_like(op.outputs[1])
    return [ops.tensor_list_push_back(grad, by_item), None]


@gradient("TensorListStack")
def stack(op: Operation, grad: Tensor) -> list[Gradient]:
    return [ops.tensor_list_from_tensor(grad, _tail(grad)), None]


@gradient("TensorListFromTensor")
def from_tensor(op: Operation, grad: Tensor | None) -> list[Gradient]:
    tensor = op.inputs[0]
    if grad is None:
        return [None, None]
    count = tensor.static_shape[0] if tensor.static_shape.rank else None
    known = -1 if count is None else count
    dtype = tensor.dtype.base
    return [ops.tensor_list_stack(grad, _tail(tensor), element_dtype=dtype, num_elements=known), None]


@gradient("TensorListGetItem")
def get_item(op: Operation, grad: Tensor) -> list[Gradient]:
    handle, index, _ = op.inputs
    length = ops.tensor_list_length(handle)
    empty = ops.tensor_list_reserve(array_ops.shape(grad), length, element_dtype=op.get_attr("element_dtype"))
    return [ops.tensor_list_set_item(empty, index, grad), None, None]


@gradient("TensorListSetItem")
def set_item(op: Operation, grad: Tensor | None) -> list[Gradient]:
    handle, index, item = op.inputs
    if grad is None:
        return [None, None, None]
    by_item = ops.tensor_list_get_item(grad, index, array_ops.shape(item), element_dtype=item.dtype.base)
    by_list = ops.tensor_list_set_item(grad, index, array_ops.zeros_like(item))
    if op.get_attr("resize_if_index_out_of_bounds"):
        by_list = ops.tensor_list_resize(by_list, ops.tensor_list_length(handle))
    return [by_list, None, by_item]


@gradient("TensorListResize")
def resize(op: Operation, grad: Tensor | None) -> list[Gradient]:
    return [None if grad is None else ops.tensor_list_resize(grad, ops.tensor_list_length(op.inputs[0])), None]


@gradient("TensorListGather")
def gather(op: Operation, grad: Tensor) -> list[Gradient]:
    handle, indices, _ = op.inputs
    length = ops.tensor_list_length(handle)
    return [ops.tensor_list_scatter_v2(grad, indices, _tail(grad), length), None, None]


@gradient("TensorListScatter", "TensorListScatterV2")
def scatter(op: Operation, grad: Tensor | None) -> list[Gradient]:
    tensor, indices, *rest = op.inputs
    nothing: list[Gradient] = [None] * (1 + len(rest))
    if grad is None:
        return [None, *nothing]
    return [ops.tensor_list_gather(grad, indices, _tail(tensor), element_dtype=tensor.dtype.base), *nothing]


@gradient("TensorListScatterIntoExistingList")
def scatter_into(op: Operation, grad: Tensor | None) -> list[Gradient]:
    _, tensor, indices = op.inputs
    if grad is None:
        return [None, None, None]
    by_tensor = ops.tensor_list_gather(grad, indices, _tail(tensor), element_dtype=tensor.dtype.base)
    kept = ops.tensor_list_scatter_into_existing_list(grad, array_ops.zeros_like(tensor), indices)
    return [kept, by_tensor, None]


@gradient("TensorListConcat", "TensorListConcatV2")
def concat(op: Operation, grad: Tensor, _: Gradient) -> list[Gradient]:
    lengths = op.outputs[1]
    # elements may differ in their first size
    element = array_ops.concat([constant([-1]), _tail(grad)], 0)
    by_list = ops.tensor_list_split(grad, element, lengths)
    return [by_list] + [None] * (len(op.inputs) - 1)


@gradient("TensorListSplit")
def split(op: Operation, grad: Tensor | None) -> list[Gradient]:
    tensor, _, lengths = op.inputs
    if grad is None:
        return [None, None, None]
    element = array_ops.concat([constant([-1]), _tail(tensor)], 0)
    found, _lengths = ops.tensor_list_concat_v2(grad, element, lengths, element_dtype=tensor.dtype.base)
    return [found, None, None]
