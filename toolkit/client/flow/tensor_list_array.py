"""TensorArrays as lists: what loops of functions (While) hand on is a value, a list of tensors, and no resource.

The nodes are those of TensorFlow's class under control flow v2. The list, a variant scalar, is the array's `flow`:
whatever hands flows on through loops and conditionals needs to know nothing else.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class TensorListArray(TensorArray):
    """A TensorArray that is a list; TensorArray makes one where conditionals and loops are functions.

    Elements can be read as often as one likes; `clear_after_read`, `tensor_array_name` and
    `colocate_with_first_write_call` mean nothing here.

    Raises:
        UsageError: a handle is given, or neither or both of size and flow.
    """

    def __init__(
        self,
        dtype: DTypeLike,
        size: TensorLike | None = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ):
        del clear_after_read, tensor_array_name, colocate_with_first_write_call
        if handle is not None:
            raise UsageError("a TensorArray of control flow v2 is a list and has no handle; give its flow")
        if (size is None) == (flow is None):
            raise UsageError("a TensorArray needs a size, or the flow of one that exists, and not both")
        self._dtype = as_dtype(dtype).base
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._size = size
        self._shape = [as_shape(element_shape)]
        self._home = None
        with name_scope(name, "TensorArrayV2", [size, flow]) as scope:
            if flow is None:
                flow = ops.tensor_list_reserve(_sizes(self._shape[0]), size, element_dtype=self._dtype, name=scope)
        assert flow is not None
        if flow.dtype.base is not dtypes.variant:
            raise UsageError(f"the flow of a TensorArray of control flow v2 is a variant, not of {flow.dtype.base}")
        self._flow = flow

    @property
    def handle(self) -> Any:
        """None: a list is a value."""
        return None

    @property
    def graph(self) -> Any:
        return self._flow.graph

    @property
    def name(self) -> str:
        return self._flow.op.name

    def with_flow(self, flow: Tensor) -> TensorListArray:
        """The same array as another list."""
        following = TensorListArray(self._dtype, flow=flow, infer_shape=self._infer_shape)
        following._dynamic_size, following._size, following._shape = self._dynamic_size, self._size, self._shape
        return following

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """Not there: gradients of lists are lists.

        Raises:
            GraphError: always.
        """
        raise GraphError("a TensorArray of control flow v2 has no array of gradients; ask for its elements' gradients")

    # -- elements --------------------------------------------------------------------------------------------------

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        with name_scope(name, "TensorArrayV2Read", [self._flow, index]):
            return ops.tensor_list_get_item(
                self._flow, index, _sizes(self.element_shape), element_dtype=self._dtype, name=name
            )

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        with name_scope(name, "TensorArrayV2Write", [self._flow, index, value]):
            tensor = self._element(value)
            self._learn(tensor.static_shape)
            flow = ops.tensor_list_set_item(
                self._flow, index, tensor, resize_if_index_out_of_bounds=self._dynamic_size, name=name
            )
            return self.with_flow(flow)

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        return ops.tensor_list_gather(
            self._flow, indices, _sizes(self.element_shape), element_dtype=self._dtype, name=name
        )

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        with name_scope(name, "TensorArrayScatter", [self._flow, value, indices]):
            tensor = self._rows(value)
            return self.with_flow(ops.tensor_list_scatter_into_existing_list(self._flow, tensor, indices))

    # -- all elements ----------------------------------------------------------------------------------------------

    def stack(self, name: str | None = None) -> Tensor:
        with name_scope(name, "TensorArrayV2Stack", [self._flow]):
            known = None if self._dynamic_size or self._size is None else self._known_size()
            return ops.tensor_list_stack(
                self._flow, _sizes(self.element_shape), element_dtype=self._dtype,
                num_elements=-1 if known is None else known,
            )  # fmt: skip

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        with name_scope(name, "TensorArrayUnstack", [self._flow, value]):
            tensor = self._rows(value)
            return self.with_flow(ops.tensor_list_from_tensor(tensor, _sizes(_row_shape(tensor))))

    def concat(self, name: str | None = None) -> Tensor:
        shape = self.element_shape
        each = Shape([None]).concatenate(shape.slice(1)) if shape.rank else Shape(None)
        no_sizes = convert_to_tensor([], dtypes.int64)
        value, _ = ops.tensor_list_concat_v2(self._flow, _sizes(each), no_sizes, element_dtype=self._dtype, name=name)
        return value

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        with name_scope(name, "TensorArraySplit", [self._flow, value, lengths]):
            tensor = self._element(value)
            wide = math_ops.cast(lengths, dtypes.int64)
            known: Any = known_value(wide)
            if tensor.static_shape.rank is not None and known and len(set(known)) == 1:
                self._learn(Shape([known[0]]).concatenate(tensor.static_shape.slice(1)))
            return self.with_flow(ops.tensor_list_split(tensor, _sizes(self.element_shape), wide, name=name))

    def size(self, name: str | None = None) -> Tensor:
        if not self._dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        return ops.tensor_list_length(self._flow, name=name)

    def close(self, name: str | None = None) -> Any:
        """An operation that does nothing: a list is freed when nobody needs it."""
        return ops.no_op(name=name)

    def identity(self) -> TensorArray:
        return self.with_flow(array_ops.identity(self._flow))

    def _rows(self, value: TensorLike) -> Tensor:
        tensor = self._element(value)
        self._learn(_row_shape(tensor))
        return tensor


def _row_shape(tensor: Tensor) -> Shape:
    return tensor.static_shape.slice(1) if tensor.static_shape.rank is not None else Shape(None)


def _sizes(shape: Shape) -> Any:
    """A shape as the ops of lists take it: -1 for what is not known."""
    if shape.dims is None:
        return -1
    return [-1 if size is None else size for size in shape.dims] if shape.dims else constant([], dtypes.int32)
