"""Staging areas: what a step puts there, a later step takes, without the client between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.errors import GraphError
from toolkit.graph.shape import Shape


class StagingArea:
    """Elements of one or more tensors, taken in the order in which they were put.

    Args:
        dtypes: of the tensors of an element.
        shapes: what is known of their shapes; default: nothing.
        names: elements are mappings with these keys.
        shared_name: areas of the same name are one.
        capacity: how many elements it has room for; 0: any number.
        memory_limit: how many bytes it has room for; 0: any number.

    Raises:
        GraphError: there are not as many shapes or names as types; the name is no text.
    """

    def __init__(
        self, dtypes: Sequence[DTypeLike], shapes: Sequence[Any] | None = None, names: Sequence[str] | None = None,
        shared_name: str | None = None, capacity: int = 0, memory_limit: int = 0,
    ):  # fmt: skip
        if shared_name is not None and not isinstance(shared_name, str):
            raise GraphError(f"shared_name is a text, not {shared_name!r}")
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise GraphError(f"a staging area of {len(dtypes)} types is given {len(given)} {what}; give as many")
        self._name = get_default_graph().unique_name(type(self).__name__) if shared_name is None else shared_name
        self._dtypes = [as_dtype(dtype) for dtype in dtypes]
        self._shapes = [Shape(None)] * len(dtypes) if shapes is None else [as_shape(shape) for shape in shapes]
        self._names = names
        self._capacity, self._memory_limit = capacity, memory_limit
        with name_scope(f"{self._name}_root"):
            self._place = ops.no_op()  # all its operations are where this is

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[Any]:
        return self._dtypes

    @property
    def shapes(self) -> list[Any]:
        graph = self._place.graph
        return [graph.present_shape(shape) for shape in self._shapes]

    @property
    def names(self) -> Sequence[str] | None:
        return self._names

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def memory_limit(self) -> int:
        return self._memory_limit

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Put an element: a tensor, a list of them, or a mapping where there are names; waits for room.

        Raises:
            GraphError: it is no such element.
        """
        parts = self._parts(values)
        with name_scope(name, f"{self._name}_put", list(parts.values())) as scope:
            tensors = [self._tensor(number, part) for number, part in parts.items()]
            with colocate_with(self._place):
                return ops.stage(tensors, name=scope, **self._resource())

    def get(self, name: str | None = None) -> Any:
        """Take the oldest element; waits until there is one."""
        with colocate_with(self._place):
            found = ops.unstage(dtypes=self._dtypes, name=name or f"{self._name}_get", **self._resource())
        return self._element(found)

    def peek(self, index: TensorLike, name: str | None = None) -> Any:
        """The element at an index, which stays; waits until there is one."""
        with colocate_with(self._place):
            label = name or f"{self._name}_peek"
            found = ops.stage_peek(index, dtypes=self._dtypes, name=label, **self._resource())
        return self._element(found)

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are."""
        return ops.stage_size(dtypes=self._dtypes, name=name or f"{self._name}_size", **self._resource())

    def clear(self, name: str | None = None) -> Operation:
        """Remove all elements."""
        return ops.stage_clear(dtypes=self._dtypes, name=name or f"{self._name}_clear", **self._resource())

    def _resource(self) -> dict[str, Any]:
        return {"shared_name": self._name, "capacity": self._capacity, "memory_limit": self._memory_limit}

    def _parts(self, values: Any) -> dict[int, Any]:
        """What is put, by the place that it has in an element."""
        if self._names is not None:
            if not isinstance(values, Mapping) or not set(cast("Any", values)) <= set(self._names):
                raise GraphError(f"'{self._name}' takes a mapping with the keys {', '.join(self._names)}")
            return {number: values[name] for number, name in enumerate(self._names) if name in values}
        if isinstance(values, Mapping):
            raise GraphError(f"'{self._name}' has no names, so it takes no mapping; give a list of tensors")
        parts = list(cast("Any", values)) if isinstance(values, list | tuple) else [values]
        if len(parts) > len(self._dtypes):
            raise GraphError(f"'{self._name}' takes {len(self._dtypes)} tensor(s), got {len(parts)}")
        return dict(enumerate(parts))

    def _tensor(self, number: int, part: Any) -> Tensor:
        tensor = convert_to_tensor(part, name=f"component_{number}")
        dtype, shape = self._dtypes[number], self._shapes[number]
        if tensor.dtype.base is not dtype.base:
            raise GraphError(f"tensor {number} of '{self._name}' has type {dtype}, got {tensor.dtype}")
        if not tensor.static_shape.is_compatible_with(shape):
            raise GraphError(f"tensor {number} of '{self._name}' has shape {shape}, got {tensor.static_shape}")
        return tensor

    def _element(self, found: Tensor | list[Tensor]) -> Any:
        tensors = found if isinstance(found, list) else [found]
        if ops.no_op().device != self._place.device:  # as TensorFlow asks where it is
            tensors = [array_ops.identity(tensor) for tensor in tensors]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(shape)
        return tensors if self._names is None else dict(zip(self._names, tensors, strict=True))
