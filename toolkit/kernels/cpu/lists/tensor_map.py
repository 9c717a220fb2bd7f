"""Tensor maps and optionals: variants that hold other values."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.resources.tensor_list import TensorMap
from toolkit.kernels.types import Array


def _a_map(value: Any) -> TensorMap:
    found = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(found, TensorMap):
        raise InvalidArgumentError(f"Input handle is not a map. Saw: '{type(found).__name__}'")
    return found


@simple("EmptyTensorMap")
def empty_tensor_map() -> TensorMap:
    return TensorMap({})


@simple("TensorMapSize")
def tensor_map_size(handle: Any) -> Array:
    return np.array(len(_a_map(handle).items), np.int32)


@simple("TensorMapInsert")
def tensor_map_insert(handle: Any, key: Array, value: Any) -> TensorMap:
    return TensorMap({**_a_map(handle).items, TensorMap.key(key): (key, value)})


@simple("TensorMapLookup")
def tensor_map_lookup(handle: Any, key: Array) -> Any:
    return _find(_a_map(handle), key, "Trying to lookup non-existent key. Could not find key in map.")[1]


def _find(found: TensorMap, key: Array, message: str) -> tuple[Array, Any]:
    entry = found.items.get(TensorMap.key(key))
    if entry is None:
        raise InvalidArgumentError(message)
    return entry


@simple("TensorMapErase")
def tensor_map_erase(handle: Any, key: Array) -> TensorMap:
    found = _a_map(handle)
    _find(found, key, "Trying to erase non-existent item. Could not find key in map.")
    name = TensorMap.key(key)
    return TensorMap({k: entry for k, entry in found.items.items() if k != name})


@simple("TensorMapHasKey")
def tensor_map_has_key(handle: Any, key: Array) -> Array:
    return np.bool_(TensorMap.key(key) in _a_map(handle).items)


@simple("TensorMapStackKeys")
def tensor_map_stack_keys(handle: Any) -> Array:
    entries = list(_a_map(handle).items.values())
    if not entries:
        raise InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.")
    return np.stack([key for key, _ in entries])


class Optional:
    """A value that may be missing: `components` is None then."""

    __slots__ = ("components",)

    def __init__(self, components: tuple[Any, ...] | None):
        self.components = components

    def zeros_like(self) -> Optional:
        """An optional of zeros, or without a value as this one."""
        if self.components is None:
            return self
        return Optional(
            tuple(
                np.zeros_like(c) if isinstance(c, np.ndarray | np.generic) else c.zeros_like() for c in self.components
            )
        )

    def add_n(self, others: tuple[Optional, ...]) -> Optional:
        """The sum of optionals that all have values, or all have none."""
        values = [other.components for other in others]
        if all(value is None for value in values):
            return Optional(None)
        if any(value is None for value in values):
            raise InvalidArgumentError("Cannot add optionals because one has a value and the other doesn't.")
        sums: list[Any] = []
        for parts in zip(*values, strict=True):
            first = parts[0]
            sums.append(
                sum(parts[1:], start=first) if isinstance(first, np.ndarray | np.generic) else first.add_n(parts)
            )
        return Optional(tuple(sums))


def _an_optional(value: Any) -> Optional:
    found = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(found, Optional):
        raise InvalidArgumentError(f"the input is not an optional but '{type(found).__name__}'")
    return found


@simple("OptionalNone")
def optional_none() -> Optional:
    return Optional(None)


@simple("OptionalFromValue")
def optional_from_value(*components: Any) -> Optional:
    return Optional(components)


@simple("OptionalHasValue")
def optional_has_value(optional: Any) -> Array:
    return np.bool_(_an_optional(optional).components is not None)


@kernel("OptionalGetValue")
def optional_get_value(op: KernelNode) -> Compute:
    count = len(op.attr("output_types"))

    def compute(optional: Any) -> tuple[Any, ...]:
        components = _an_optional(optional).components
        if components is None:
            raise InvalidArgumentError("The given optional does not have a value.")
        if len(components) != count:
            raise InvalidArgumentError(f"The given optional has {len(components)} components, expected {count}.")
        return components

    return compute
