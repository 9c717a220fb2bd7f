"""Tensor lists and maps: the variant values of functional loops (TensorList, TensorMap).

They are values: an op that changes one makes a new one. Elements are shared, never copied.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from toolkit.errors import GraphmillError, InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.resources.tensor_space import HOST, TENSOR, Composite, TensorSpace, shape_of
from toolkit.kernels.types import Array

UNBOUNDED = -1


@lru_cache(maxsize=1024)
def admits(declared: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> bool:
    """Whether an element of this shape fits the dimensions declared; kept, since loops ask again and again."""
    return Shape(declared).is_compatible_with(Shape(shape))


def merged(a: Shape, b: Shape) -> Shape:
    """What two element shapes say together.

    Raises:
        InvalidArgumentError: they contradict each other.
    """
    try:
        return a.merge(b)
    except GraphmillError:
        raise InvalidArgumentError(f"Incompatible shapes during merge: {a} vs. {b}") from None


class TensorList(Composite):
    """A list of tensors of one type.

    Attributes:
        dtype: of the elements.
        shape: what is known of their shape.
        max_items: how many push-back may make of it, or UNBOUNDED.
        dense: a tensor whose first rows the items are, if they are known to be.
        space: where they lie.
    """

    __slots__ = ("_items", "_length", "dense", "dtype", "max_items", "shape", "space")

    def __init__(
        self, dtype: DType, shape: Shape, items: list[Any], max_items: int = UNBOUNDED, dense: Any = None,
        space: TensorSpace = HOST,
    ):  # fmt: skip
        self.dense = dense
        self.space = space
        self.dtype = dtype
        self.shape = shape
        self.max_items = max_items
        self._items: list[Any] | None = items
        self._length = len(items)

    @staticmethod
    def of_rows(
        dtype: DType, shape: Shape, dense: Any, length: int, max_items: int = UNBOUNDED, space: TensorSpace = HOST
    ) -> TensorList:
        """The first rows of a tensor; each becomes an item when somebody asks for the items."""
        made = TensorList(dtype, shape, [], max_items, dense, space)
        made._items, made._length = None, length
        return made

    @property
    def items(self) -> list[Any]:
        """The tensors; None where nothing was set."""
        if self._items is None:
            self._items = self.space.rows(self.dense, self._length)
        return self._items

    @property
    def length(self) -> int:
        """How many items there are."""
        return self._length

    @property
    def rows(self) -> Any:
        """The items as one tensor, where that is there already."""
        dense = self.dense
        if dense is None or dense.dtype == object:
            return None
        return dense if dense.shape[0] == self._length else dense[: self._length]

    def __repr__(self) -> str:
        return f"TensorList({self._length} x {self.dtype}{self.shape})"

    def with_items(self, items: list[Any]) -> TensorList:
        return TensorList(self.dtype, self.shape, items, self.max_items, space=self.space)

    def moved(self, move: Callable[[Any], Any], space: TensorSpace = HOST) -> TensorList:
        """The list with its elements in another memory.

        Args:
            move: gives a tensor there.
        """

        def there(item: Any) -> Any:
            if isinstance(item, TensorList):
                return item.moved(move, space)
            return move(item) if isinstance(item, DeviceArray if space is HOST else np.ndarray | np.generic) else item

        return TensorList(self.dtype, self.shape, [there(item) for item in self.items], self.max_items, space=space)

    def zeros_like(self) -> TensorList:
        """The list of zeros that ZerosLike makes; elements of one shape share one tensor."""
        made: dict[tuple[int, ...], Any] = {}

        def zero(item: Any) -> Any:
            if item is None:
                return None
            if not isinstance(item, TENSOR):
                return item.zeros_like()
            if item.shape not in made:
                made[item.shape] = self.space.zeros(self.dtype, item.shape)
            return made[item.shape]

        return self.with_items([zero(item) for item in self.items])

    def add_n(self, lists: Sequence[TensorList]) -> TensorList:
        """The sum, element by element, that AddN makes.

        Raises:
            InvalidArgumentError: the lists differ in type, shape or length.
        """
        total = self
        for other in lists[1:]:
            if total.dtype is not other.dtype:
                raise InvalidArgumentError(
                    f"Trying to add two lists of tensors of different dtypes. One is {total.dtype} and the other is "
                    f"{other.dtype}"
                )
            shape = merged(total.shape, other.shape)
            if len(total.items) != len(other.items):
                raise InvalidArgumentError(
                    "Trying to add two lists of tensors with different lengths. One is "
                    f"{len(total.items)} and the other is {len(other.items)}"
                )
            items = [_add(a, b, self.space) for a, b in zip(total.items, other.items, strict=True)]
            total = TensorList(total.dtype, shape, items, total.max_items, space=self.space)
        return total

    def element_shape(self, wanted: Shape = UNKNOWN) -> Shape:
        """What is known of an element's shape from the list, the caller and the elements that are set."""
        shape = merged(self.shape, wanted)
        if shape.is_fully_defined:
            return shape
        for item in self.items:
            if shape.is_fully_defined:
                break
            if item is not None:
                shape = merged(shape, Shape(shape_of(item)))
        return shape

    def get(self, index: int, wanted: Shape = UNKNOWN) -> Any:
        """Element `index`; zeros where nothing was set.

        Raises:
            InvalidArgumentError: it is out of range, or unset and its shape is not known.
        """
        if not 0 <= index < len(self.items):
            raise InvalidArgumentError(f"Trying to access element {index} in a list with {len(self.items)} elements.")
        item = self.items[index]
        if item is not None:
            return item
        shape = self.element_shape(wanted)
        if not shape.is_fully_defined:
            raise InvalidArgumentError(
                f"Trying to read an uninitialized tensor but element_shape is not fully defined: {shape}"
            )
        return self.space.zeros(self.dtype, shape.as_list())


def _add(a: Any, b: Any, space: TensorSpace) -> Any:
    if a is None:
        return b
    if b is None:
        return a
    return space.computed("Add", a, b) if isinstance(a, TENSOR) else a.add_n([a, b])


class TensorMap:
    """A map from tensors to tensors; keys are compared by type, shape and value."""

    __slots__ = ("items",)

    def __init__(self, items: dict[Any, tuple[Array, Any]]):
        self.items = items

    @staticmethod
    def key(tensor: Array) -> Any:
        content: Any = tuple(tensor.reshape(-1).tolist()) if tensor.dtype == object else tensor.tobytes()
        return (tensor.dtype.str, tensor.shape, content)

    def zeros_like(self) -> TensorMap:
        """The map of zeros that ZerosLike makes."""
        return TensorMap({k: (key, np.zeros_like(value)) for k, (key, value) in self.items.items()})
