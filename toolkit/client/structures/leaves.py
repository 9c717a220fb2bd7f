"""Structures of what stands for several tensors: arrays by their flow, slices and composites by their parts."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.elements import Composite
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.structures import nest
from toolkit.graph.shape import Shape


def tensors_of(leaf: Any) -> list[Any]:
    """The tensors that a leaf of a structure stands for: an array's flow, parts of slices and composites, itself."""
    if isinstance(leaf, TensorArray):
        return [leaf.flow]
    if isinstance(leaf, IndexedSlices):
        return [leaf.values, leaf.indices] + ([] if leaf.dense_shape is None else [leaf.dense_shape])
    if isinstance(leaf, Composite):
        return list(leaf.parts()[1])
    return [leaf]


def _restored(like: Any, tensors: list[Tensor]) -> Any:
    """A leaf like another, of the next tensors, which are taken off the list."""
    if isinstance(like, TensorArray):
        return like.with_flow(tensors.pop(0))
    if isinstance(like, IndexedSlices):
        parts = [tensors.pop(0) for _ in tensors_of(like)]
        return IndexedSlices(*parts)
    if isinstance(like, Composite):
        return like.of_parts([tensors.pop(0) for _ in tensors_of(like)])
    return tensors.pop(0)


def flat_tensors(structure: nest.Structure) -> list[Any]:
    """All tensors of a structure, in order."""
    return [tensor for leaf in nest.flatten(structure) for tensor in tensors_of(leaf)]


def packed_like(like: nest.Structure, tensors: list[Any]) -> nest.Structure:
    """A structure like another, of these tensors."""
    rest = list(tensors)
    leaves = [_restored(leaf, rest) for leaf in nest.flatten(like)]
    return nest.pack_sequence_as(like, leaves)


def is_looser(loose: Shape, tight: Shape) -> bool:
    """Whether every tensor of shape `tight` also has shape `loose`."""
    if loose.dims is None:
        return True
    if tight.dims is None or len(loose.dims) != len(tight.dims):
        return False
    return all(a is None or a == b for a, b in zip(loose.dims, tight.dims, strict=True))
