"""TensorArray: tensors by index, written once each, in loops above all.

An array is a resource; the `flow`, a scalar that every write hands on, orders what is done with it, and gradients go
along it. The nodes are those of TensorFlow's class with the TensorArrayV3 ops; where conditionals and loops are
functions, an array is a list (`tensor_list_array`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, control_dependencies, device, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: the class that TensorArray makes instead of its own
_kinds: list[type[TensorArray]] = []


def make_arrays_as(kind: type[TensorArray] | None) -> None:
    """Have TensorArray make arrays of a class that follows from it; None for resources."""
    _kinds[:] = [] if kind is None else [kind]


class TensorArray:
    """An array of tensors of one type.

    Each method that writes returns the array to go on with.

    Args:
        dtype: the type of the elements.
        size: how many there are, int32; needed unless `handle` is given.
        dynamic_size: writes may make it longer.
        clear_after_read: an element can be read once; default: True.
        tensor_array_name: what the resource is called.
        handle, flow: those of an array that exists.
        infer_shape: all elements have the same shape, which is learnt from what is written.
        element_shape: what is known of it.
        colocate_with_first_write_call: place the array with what is written first.

    Raises:
        UsageError: arguments that exclude each other, or `size` is missing.
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
        if handle is None and type(self) is TensorArray and _kinds:
            self.__class__ = _kinds[0]  # and not __new__, whose signature would be the class's
            self.__init__(
                dtype, size, dynamic_size, flow=flow, infer_shape=infer_shape, element_shape=element_shape, name=name
            )
            return
        if handle is None and size is None:
            raise UsageError("a TensorArray needs a size, or the handle of one that exists")
        if handle is not None:
            others = {
                "size": size, "tensor_array_name": tensor_array_name, "element_shape": element_shape,
                "dynamic_size": dynamic_size, "clear_after_read": clear_after_read,
            }  # fmt: skip
            clash = [key for key, value in others.items() if value is not None]
            if clash:
                raise UsageError(f"a TensorArray with a handle takes no {', '.join(clash)}: they are the array's own")
            if flow is None:
                raise UsageError("a TensorArray with a handle needs its flow too")
        self._dtype = as_dtype(dtype).base
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self._size: Any = size
        #: lists with one entry, which all arrays share that follow from one another by writes
        self._shape = [as_shape(element_shape)]
        self._home: list[Tensor] | None = [] if colocate_with_first_write_call else None
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            if handle is not None:
                assert flow is not None
                self._handle, self._flow = handle, flow
                return
            with ExitStack() as stack:
                if colocate_with_first_write_call:
                    stack.enter_context(device(None))
                    stack.enter_context(colocate_with(None, ignore_existing=True))
                self._handle, self._flow = ops.tensor_array_v3(
                    size, dtype=self._dtype, element_shape=self._shape[0], identical_element_shapes=infer_shape,
                    dynamic_size=self._dynamic_size, clear_after_read=clear_after_read is not False,
                    tensor_array_name=tensor_array_name, name=scope,
                )  # fmt: skip

    @property
    def flow(self) -> Tensor:
        """A float scalar that is there when everything written so far is."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        return self._handle

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> Shape:
        """What is known of the shape of an element."""
        return self._shape[0]

    @property
    def graph(self) -> Any:
        return self._handle.graph

    @property
    def name(self) -> str:
        return self._handle.op.name

    # -- arrays that go on from this one ---------------------------------------------------------------------------

    def with_flow(self, flow: Tensor) -> TensorArray:
        """The same array at another point of its flow."""
        following = TensorArray(
            self._dtype, handle=self._handle, flow=flow, infer_shape=self._infer_shape,
            colocate_with_first_write_call=self._home is not None,
        )  # fmt: skip
        following._dynamic_size, following._size = self._dynamic_size, self._size
        following._shape, following._home = self._shape, self._home
        return following

    def identity(self) -> TensorArray:
        """The same array, with an Identity of its flow: for control dependencies."""
        return self.with_flow(array_ops.identity(self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of the gradients of this one, one for each `source` (a call of `gradients`)."""
        flow = self._flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self._handle]), colocate_with(self._handle):
            handle, _ = ops.tensor_array_grad_v3(self._handle, flow, source=source, name=name)
            with control_dependencies([handle]):
                flow = array_ops.identity(flow, name="gradient_flow")
            found = TensorArray(
                self._dtype, handle=handle, flow=flow, infer_shape=self._infer_shape,
                colocate_with_first_write_call=False,
            )  # fmt: skip
            found._shape = self._shape
            return found

    # -- elements --------------------------------------------------------------------------------------------------

    def read(self, index: TensorLike, name: str | None = None) -> Tensor:
        """The element at `index`, an int32 scalar."""
        value = ops.tensor_array_read_v3(self._handle, index, self._flow, dtype=self._dtype, name=name)
        value.set_shape(self.element_shape)
        return value

    def write(self, index: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """With `value` at `index`.

        Raises:
            GraphError: it is of another type or shape than the elements.
        """
        with name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            tensor = self._element(value)
            self._learn(tensor.static_shape)
            with self._placed_with(tensor):
                return self.with_flow(ops.tensor_array_write_v3(self._handle, index, tensor, self._flow, name=name))

    def gather(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """The elements at `indices`, int32, stacked: [number of indices, ...]."""
        value = ops.tensor_array_gather_v3(
            self._handle, indices, self._flow, dtype=self._dtype, element_shape=self.element_shape, name=name
        )
        if self.element_shape.rank is not None:
            value.set_shape(Shape([None]).concatenate(self.element_shape))
        return value

    def scatter(self, indices: TensorLike, value: TensorLike, name: str | None = None) -> TensorArray:
        """With the rows of `value` at `indices`.

        Raises:
            GraphError: they are of another type or shape than the elements.
        """
        with name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            tensor = self._element(value)
            self._learn(tensor.static_shape.slice(1) if tensor.static_shape.rank is not None else Shape(None))
            with self._placed_with(tensor):
                flow = ops.tensor_array_scatter_v3(self._handle, indices, tensor, self._flow, name=name)
                return self.with_flow(flow)

    # -- all elements ----------------------------------------------------------------------------------------------

    def stack(self, name: str | None = None) -> Tensor:
        """All elements: [size, ...]."""
        with colocate_with(self._handle), name_scope(name, "TensorArrayStack", [self._handle]):
            value = self.gather(math_ops.range(0, self.size()), name=name)
            if self.element_shape.rank is not None and not self._dynamic_size and self._size is not None:
                value.set_shape(Shape([self._known_size()]).concatenate(self.element_shape))
            return value

    def unstack(self, value: TensorLike, name: str | None = None) -> TensorArray:
        """With all elements from the rows of `value`."""
        with name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            count = array_ops.shape(value)[0]
            return self.scatter(math_ops.range(0, count), value, name=name)

    def concat(self, name: str | None = None) -> Tensor:
        """All elements along their first axis, whose sizes may differ."""
        inner = self.element_shape.slice(1) if self.element_shape.rank is not None else Shape(None)
        value, _ = ops.tensor_array_concat_v3(
            self._handle, self._flow, dtype=self._dtype, element_shape_except0=inner, name=name
        )
        if self.element_shape.rank:
            first = None
            if self._infer_shape:
                count = known_value(self.size())
                each = self.element_shape[0]
                first = None if count is None or each is None else count * each
            value.set_shape(Shape([first]).concatenate(inner))
        return value

    def split(self, value: TensorLike, lengths: TensorLike, name: str | None = None) -> TensorArray:
        """With elements cut from `value` along its first axis, of these lengths.

        Raises:
            GraphError: they are of another type or shape than the elements.
        """
        with name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            tensor = convert_to_tensor(value, self._dtype, name="value")
            with self._placed_with(tensor):
                wide = math_ops.cast(lengths, dtypes.int64)
                known: Any = known_value(wide)
                if tensor.static_shape.rank is not None and known and len(set(known)) == 1:
                    self._learn(Shape([known[0]]).concatenate(tensor.static_shape.slice(1)))
                flow = ops.tensor_array_split_v3(self._handle, tensor, wide, self._flow, name=name)
                return self.with_flow(flow)

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are, int32."""
        if not self._dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        return ops.tensor_array_size_v3(self._handle, self._flow, name=name)

    def close(self, name: str | None = None) -> Any:
        """The operation that frees the array."""
        return ops.tensor_array_close_v3(self._handle, name=name)

    # -- what is known ---------------------------------------------------------------------------------------------

    def _known_size(self) -> int | None:
        return known_value(self._size) if isinstance(self._size, Tensor) else self._size

    def _element(self, value: TensorLike) -> Tensor:
        tensor = convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
        if tensor.dtype.base is not self._dtype:
            raise GraphError(f"'{tensor.name}' has type {tensor.dtype.base}, but the array holds {self._dtype}")
        return tensor

    def _learn(self, shape: Shape) -> None:
        if not shape.is_compatible_with(self.element_shape):
            raise GraphError(f"the array '{self.name}' holds elements of shape {self.element_shape}, not {shape}")
        if self._infer_shape:
            self._shape[0] = self.element_shape.merge(shape)

    @contextmanager
    def _placed_with(self, value: Tensor) -> Generator[None]:
        if self._home is None:
            yield
            return
        if not self._home:
            self._home.append(value)
        with colocate_with(self._home[0]):
            yield

    def __repr__(self) -> str:
        return f"<TensorArray '{self.name}' of {self._dtype}, elements {self.element_shape}>"
