"""Arguments of functions that are made for each kind of them: tensors stand for their specs, all else for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.structures import nest
from toolkit.client.structures.leaves import packed_like, tensors_of
from toolkit.client.structures.type_specs import TensorSpec
from toolkit.errors import ArgumentTypeError, GraphmillError


class Place:
    """Where tensors stand among the arguments of a function."""

    def __init__(self, like: Any, specs: list[TensorSpec]):
        self.like = like
        self.specs = specs


def places(structure: Any) -> list[TensorSpec]:
    return [spec for leaf in nest.flatten(structure) if isinstance(leaf, Place) for spec in leaf.specs]


def spec_of(leaf: Any) -> Any:
    return leaf.specs[0] if isinstance(leaf, Place) else leaf


def key_of(leaf: Any) -> Any:
    """What tells a value of an argument from others: itself, or that it is this very object."""
    if isinstance(leaf, Place):
        return type(leaf.like), len(leaf.specs)
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), leaf


def structure_key(structure: Any) -> Any:
    if isinstance(structure, Mapping):
        return type(structure), tuple((key, structure_key(structure[key])) for key in sorted(structure))  # type: ignore[arg-type]
    if isinstance(structure, list | tuple):
        return type(structure), tuple(structure_key(item) for item in structure)  # type: ignore[arg-type]
    return None


def like_signature(value: Any, wanted: Any, name: str) -> Any:
    """An argument as its part of a signature says.

    Raises:
        TypeError: it is another structure, or its tensors do not fit.
    """
    if isinstance(wanted, TensorSpec):
        return fitting(value, wanted, name)
    if isinstance(wanted, Mapping) and isinstance(value, Mapping) and sorted(wanted) == sorted(value):  # type: ignore[arg-type]
        return {key: like_signature(value[key], wanted[key], name) for key in value}  # type: ignore[misc]
    if isinstance(wanted, list | tuple) and isinstance(value, list | tuple) and len(wanted) == len(value):  # type: ignore[arg-type]
        made = [like_signature(mine, its, name) for mine, its in zip(value, wanted, strict=True)]  # type: ignore[arg-type]
        return nest.pack_sequence_as(value, nest.flatten(made))
    raise ArgumentTypeError(f"'{name}': expected a structure like {wanted!r} of the input_signature, got {value!r}")


def fitting(value: Any, spec: TensorSpec, name: str) -> Any:
    """A value as a tensor of a type and shape; a TensorSpec stands for itself.

    Raises:
        TypeError: it does not fit.
    """
    if isinstance(value, TensorSpec):
        tensor: Any = value
        dtype, shape = value.dtype, value.parts()[1]
    else:
        try:
            tensor = convert_to_tensor(value, None if isinstance(value, Tensor) else spec.dtype)
        except (GraphmillError, TypeError, ValueError) as error:
            raise ArgumentTypeError(f"'{name}': expected a value for {spec!r}, got {value!r}") from error
        dtype, shape = tensor.dtype.base, tensor.static_shape
    if dtype is not spec.dtype.base or not spec.parts()[1].is_compatible_with(shape):
        raise ArgumentTypeError(f"'{name}': expected a tensor like {spec!r}, got {dtype} of shape {shape}")
    return tensor


def packed(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """What a Python function returned, with other tensors; None stays None."""
    rest = list(tensors)

    def filled(leaf: Any) -> Any:
        if leaf is None:
            return None
        own = [rest.pop(0) for _ in tensors_of(leaf)]
        return packed_like([leaf], own)[0]

    return nest.pack_sequence_as(structure, [filled(leaf) for leaf in nest.flatten(structure)])
