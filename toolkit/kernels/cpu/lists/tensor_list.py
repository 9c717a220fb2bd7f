"""Tensor lists: the growing arrays of functional loops (variants; see toolkit.kernels.resources.tensor_list)."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels.cpu.common import integer, np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.resources.slots import empty_slots
from toolkit.kernels.resources.tensor_list import TensorList, admits, merged
from toolkit.kernels.resources.tensor_space import HOST, shape_of, space_of
from toolkit.kernels.types import Array


def shape_input(value: Array) -> Shape:
    """An element_shape input: a vector with -1 for unknown sizes, or the scalar -1 for an unknown rank.

    Raises:
        InvalidArgumentError: another scalar or rank, or a size below -1.
    """
    if value.ndim == 0:
        require(int(value) == -1, "The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return UNKNOWN
    require(value.ndim == 1, f"Shape must be at most rank 1 but is rank {value.ndim}")
    return _declared(tuple(value.tolist()))


@lru_cache(maxsize=1024)
def _declared(dims: tuple[int, ...]) -> Shape:
    require(min(dims, default=0) >= -1, f"Dimension {list(dims)} must be >= -1")
    return Shape(dims)


def a_list(value: Any) -> TensorList:
    """The list a variant holds.

    Raises:
        InvalidArgumentError: it holds something else.
    """
    if type(value) is TensorList:
        return value
    found = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(found, TensorList):
        raise InvalidArgumentError(f"Input handle is not a list. Saw: '{type(found).__name__}'", node=None)
    return found


def _taker(op: KernelNode) -> Callable[[Any], TensorList]:
    """A function from a variant to its list, which must be of the type that the op says."""
    dtype = op.attr("element_dtype")

    def take(value: Any) -> TensorList:
        found = a_list(value)
        if found.dtype is not dtype:
            raise InvalidArgumentError(f"Invalid data types; op elements {dtype} but list elements {found.dtype}")
        return found

    return take


def _fits(found: TensorList, item: Any, what: str) -> None:
    dims = found.shape.dims
    if dims is None or dims == getattr(item, "shape", None):
        return
    shape = shape_of(item)
    if not admits(dims, shape):
        raise InvalidArgumentError(f"{what}. Op element shape: {Shape(shape)} list shape: {found.shape}")


@kernel("EmptyTensorList")
def empty_tensor_list(op: KernelNode) -> Compute:
    dtype, space = op.attr("element_dtype"), space_of(op)

    def compute(shape: Array, limit: Array) -> TensorList:
        if limit.ndim:
            raise InvalidArgumentError(f"max_num_elements expected to be a scalar but got shape: {shape_text(limit)}")
        return TensorList(dtype, shape_input(shape), [], integer(limit, "limit"), space=space)

    return compute


@kernel("TensorListReserve")
def tensor_list_reserve(op: KernelNode) -> Compute:
    dtype, space = op.attr("element_dtype"), space_of(op)

    def compute(shape: Array, count: Array) -> TensorList:
        if count.ndim:
            raise InvalidArgumentError(f"num_elements must be a scalar, got shape {shape_text(count)}")
        require(int(count) >= 0, f"The num_elements to reserve must be a non negative number, but got {int(count)}")
        return TensorList(dtype, shape_input(shape), empty_slots(int(count)), space=space)

    return compute


@kernel("TensorListPushBack")
def tensor_list_push_back(op: KernelNode) -> Compute:
    take = _taker(op)

    def compute(handle: Any, item: Any) -> TensorList:
        found = take(handle)
        _fits(found, item, "Tried to append a tensor with incompatible shape to a list")
        if found.max_items != -1 and len(found.items) >= found.max_items:
            raise InvalidArgumentError(
                f"Tried to push item into a full list. list size: {len(found.items)} max_num_elements: "
                f"{found.max_items}"
            )
        return found.with_items([*found.items, item])

    return compute


@kernel("TensorListPushBackBatch")
def tensor_list_push_back_batch(op: KernelNode) -> Compute:
    """A vector of lists, each given one row of the tensor."""
    take, space = _taker(op), space_of(op)

    def compute(handles: Array, tensor: Array) -> Array:
        require(tensor.ndim > 0, "Tensor cannot be a scalar")
        given = handles.shape if isinstance(handles, np.ndarray) else ()  # a variant alone is no vector of them
        require(
            given == tensor.shape[:1],
            f"Expected tensor.shape[0] == input_handles.size, but saw {shape_text(tensor)} vs. {list(given)}",
        )
        out, rows = np.empty(handles.shape, object), space.rows(tensor)
        for i, handle in enumerate(handles.reshape(-1)):
            found = take(handle)
            _fits(found, rows[i], "Tried to append a tensor with incompatible shape to a list")
            out[i] = found.with_items([*found.items, rows[i]])
        return out

    return compute


@kernel("TensorListPopBack")
def tensor_list_pop_back(op: KernelNode) -> Compute:
    take = _taker(op)

    def compute(handle: Any, shape: Array) -> tuple[TensorList, Any]:
        found = take(handle)
        require(found.items, "Trying to pop from an empty list.")
        wanted = shape_input(shape)
        item = found.items[-1]
        if item is None:
            item = found.get(len(found.items) - 1, wanted)
        return found.with_items(found.items[:-1]), item

    return compute


@simple("TensorListLength")
def tensor_list_length(handle: Any) -> Array:
    return np.array(a_list(handle).length, np.int32)


@kernel("TensorListElementShape")
def tensor_list_element_shape(op: KernelNode) -> Compute:
    out = op.attr("shape_type").numpy

    def compute(handle: Any) -> Array:
        dims = a_list(handle).shape.dims
        if dims is None:
            return np.array(-1, out)
        return np.array([-1 if d is None else d for d in dims], out)

    return compute


@kernel("TensorListGetItem")
def tensor_list_get_item(op: KernelNode) -> Compute:
    take = _taker(op)

    def compute(handle: Any, index: Array, shape: Array) -> Any:
        found = take(handle)
        at = integer(index, "index")
        if 0 <= at < len(found.items) and found.items[at] is not None:  # the common case, without the shape
            return found.items[at]
        return found.get(at, shape_input(shape))

    return compute


@kernel("TensorListSetItem")
def tensor_list_set_item(op: KernelNode) -> Compute:
    take = _taker(op)
    resizes = op.attr("resize_if_index_out_of_bounds")

    def compute(handle: Any, index: Array, item: Any) -> TensorList:
        found = take(handle)
        at, count = integer(index, "index"), len(found.items)
        items = list(found.items)
        if at >= count and resizes:
            items += empty_slots(at + 1 - count)
        elif not 0 <= at < count:
            raise InvalidArgumentError(f"Trying to modify element {at} in a list with {count} elements.")
        _fits(found, item, "Tried to set a tensor with incompatible shape at a list index")
        items[at] = item
        return found.with_items(items)

    return compute


@simple("TensorListResize")
def tensor_list_resize(handle: Any, size: Array) -> TensorList:
    found, count = a_list(handle), integer(size, "size")
    require(count >= 0, "TensorListSlice expects size to be non-negative.")
    return found.with_items(found.items[:count] + empty_slots(count - len(found.items)))


def _stack(found: TensorList, items: list[Any], shape: Shape) -> Array:
    """Elements as rows of one tensor; unset ones are zeros."""
    sizes = shape.as_list()
    filled = [found.space.zeros(found.dtype, sizes) if item is None else item for item in items]
    wanted = tuple(sizes)
    for item in filled:
        if shape_of(item) != wanted:
            raise InvalidArgumentError(
                f"Tried to stack list which only contains tensors of different shapes: {shape} and "
                f"{list(shape_of(item))}"
            )
    if not filled and found.dtype.kind not in "rv":
        return found.space.zeros(found.dtype, [0, *sizes])
    return found.space.stacked(found.dtype, filled)


@kernel("TensorListStack")
def tensor_list_stack(op: KernelNode) -> Compute:
    take = _taker(op)
    expected = op.attr("num_elements")

    def compute(handle: Any, shape: Array) -> Array:
        found = take(handle)
        require(
            expected in (-1, found.length),
            f"Operation expected a list with {expected} elements but got a list with {found.length} elements.",
        )
        element = found.element_shape(shape_input(shape))
        require(
            element.is_fully_defined,
            f"Tried to stack elements of an empty list with non-fully-defined element_shape: {element}",
        )
        rows = found.rows if found.length else None
        if rows is not None and rows.shape[1:] == tuple(element.as_list()):
            return rows
        return _stack(found, found.items, element)

    return compute


@kernel("TensorListGather")
def tensor_list_gather(op: KernelNode) -> Compute:
    take = _taker(op)

    def compute(handle: Any, indices: Array, shape: Array) -> Array:
        found = take(handle)
        chosen: list[int] = indices.reshape(-1).tolist()
        for i in chosen:
            require(
                0 <= i < len(found.items), f"Trying to gather element {i} in a list with {len(found.items)} elements."
            )
        element = found.element_shape(shape_input(shape))
        require(
            element.is_fully_defined,
            f"Tried to gather elements of a list with non-fully-defined element_shape: {element}",
        )
        return _stack(found, [found.items[i] for i in chosen], element)

    return compute


def _from_rows(op: KernelNode, tensor: Array, shape: Array) -> TensorList:
    if tensor.ndim == 0:
        raise InvalidArgumentError(f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
    declared = shape_input(shape)
    if not admits(declared.dims, tensor.shape[1:]):
        raise InvalidArgumentError(
            f"Specified a list with shape {declared} from a tensor with shape {shape_text(tensor.shape[1:])}"
        )
    space, dtype = space_of(op), op.attr("element_dtype")
    if space is not HOST:
        return TensorList.of_rows(dtype, declared, tensor, tensor.shape[0], space=space)
    return TensorList(dtype, declared, space.rows(tensor), dense=tensor)


@kernel("TensorListFromTensor")
def tensor_list_from_tensor(op: KernelNode) -> Compute:
    return lambda tensor, shape: _from_rows(op, tensor, shape)


def _scatter(items: list[Any], rows: list[Any], indices: Array) -> list[Any]:
    for at, row in zip(indices.reshape(-1).tolist(), rows, strict=True):
        items[at] = row
    return items


def _check_scatter(tensor: Array, indices: Array) -> None:
    require(indices.ndim == 1, f"Expected indices to be a vector, but received shape: {shape_text(indices)}")
    require(tensor.ndim > 0, f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
    require(
        len(indices) == tensor.shape[0],
        f"Expected len(indices) == tensor.shape[0], but saw: {len(indices)} vs. {tensor.shape[0]}",
    )
    require(not len(indices) or int(indices.min()) >= 0, "Indices in TensorListScatter must all be non-negative.")


@kernel("TensorListScatter", "TensorListScatterV2")
def tensor_list_scatter(op: KernelNode) -> Compute:
    def compute(tensor: Array, indices: Array, shape: Array, count: Array | None = None) -> TensorList:
        _check_scatter(tensor, indices)
        found = _from_rows(op, tensor, shape)
        highest = int(indices.max()) + 1 if indices.size else 0
        size = highest if count is None or integer(count, "count") == -1 else integer(count, "count")
        require(size >= -1, f"TensorListScatter expects num_elements >= -1, found: {size}")
        require(
            highest <= size, f"TensorListScatter: Trying to scatter at index {highest - 1} in list with size {size}"
        )
        return found.with_items(_scatter(empty_slots(size), found.items, indices))

    return compute


@kernel("TensorListScatterIntoExistingList")
def tensor_list_scatter_into(op: KernelNode) -> Compute:
    take = _taker(op)

    def compute(handle: Any, tensor: Array, indices: Array) -> TensorList:
        found = take(handle)
        _check_scatter(tensor, indices)
        rows = found.space.rows(tensor)
        for row in rows:
            _fits(found, row, "Tried to scatter a tensor with incompatible shape into a list")
        highest = int(indices.max()) + 1 if indices.size else 0
        items = found.items + empty_slots(highest - len(found.items))
        return found.with_items(_scatter(list(items), rows, indices))

    return compute


@kernel("TensorListConcat", "TensorListConcatV2")
def tensor_list_concat(op: KernelNode) -> Compute:
    """The elements joined along their first axis, and the length of each."""
    take = _taker(op)
    fixed = op.attr("element_shape") if op.op == "TensorListConcat" else None

    def compute(handle: Any, shape: Array | None = None, leading: Array | None = None) -> tuple[Array, Array]:
        found = take(handle)
        declared = merged(found.shape, fixed if fixed is not None else shape_input(shape))
        require(declared.rank != 0, "Concat requires elements to be at least vectors, found scalars instead.")
        inner = declared.slice(1) if declared.dims is not None else UNKNOWN
        for item in found.items:
            if item is not None:
                require(shape_of(item), "Concat saw a scalar shape; elements must be at least vectors.")
                inner = merged(inner, Shape(shape_of(item)[1:]))
        parts: list[Any] = []
        for i, item in enumerate(found.items):
            if item is None:
                known = leading.tolist()[i] if leading is not None and leading.size > i else declared[0]
                if known is None or not inner.is_fully_defined:
                    raise InvalidArgumentError(
                        f"Trying to concat list with uninitialized element {i} whose shape is not fully defined"
                    )
                item = found.space.zeros(found.dtype, [known, *inner.as_list()])
            parts.append(item)
        lengths = np.array([part.shape[0] for part in parts], np.int64)
        if parts:
            return found.space.joined(parts), lengths
        require(
            inner.is_fully_defined,
            "All except the first dimension must be fully defined when concating an empty tensor list. "
            f"element_shape: {declared}",
        )
        return found.space.zeros(found.dtype, [0, *inner.as_list()]), lengths

    return compute


@kernel("TensorListSplit")
def tensor_list_split(op: KernelNode) -> Compute:
    dtype, space = op.attr("element_dtype"), space_of(op)

    def compute(tensor: Array, shape: Array, lengths: Array) -> TensorList:
        declared = shape_input(shape)
        require(tensor.ndim > 0, f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
        require(lengths.ndim == 1, f"Expected lengths to be a vector, received shape: {shape_text(lengths)}")
        require(not lengths.size or int(lengths.min()) >= 0, "Invalid value in lengths: must be non-negative")
        require(
            declared.slice(1).is_compatible_with(Shape(tensor.shape[1:])),
            f"tensor shape {shape_text(tensor)} is not compatible with element_shape {declared}",
        )
        sizes: list[int] = lengths.tolist()
        require(
            sum(sizes) == tensor.shape[0],
            f"Unexpected sum of lengths: {sum(sizes)} values of {tensor.shape[0]} would be used",
        )
        return TensorList(dtype, declared, space.parts(tensor, sizes), space=space)

    return compute


@kernel("TensorListConcatLists")
def tensor_list_concat_lists(op: KernelNode) -> Compute:
    """Lists, or tensors of lists, joined end to end."""
    take = _taker(op)

    def join(a: Any, b: Any) -> TensorList:
        first, second = take(a), take(b)
        require(
            first.shape.is_compatible_with(second.shape),
            f"input_a and input_b must have compatible element shapes: {first.shape} vs. {second.shape}",
        )
        return first.with_items(first.items + second.items)

    def compute(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) and a.ndim:
            require(a.shape == b.shape, f"input_a.shape != input_b.shape: {shape_text(a)} vs. {shape_text(b)}")
            out = np.empty(a.shape, object)
            for at in np.ndindex(a.shape):
                out[at] = join(a[at], b[at])
            return out
        return join(a, b)

    return compute
