# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.nest: structures of lists, tuples and mappings."""

from __future__ import annotations

from typing import Any

from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures import nest


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    leaves = nest.flatten(structure)
    if not expand_composites:
        return leaves
    return [part for leaf in leaves for part in _parts(leaf)]


def _parts(leaf: Any) -> list[Any]:
    return [leaf.indices, leaf.values, leaf.dense_shape] if isinstance(leaf, SparseTensor) else [leaf]


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    given = list(flat_sequence)
    if expand_composites:
        rest = iter(given)
        given = [
            SparseTensor(next(rest), next(rest), next(rest)) if isinstance(leaf, SparseTensor) else next(rest)
            for leaf in nest.flatten(structure)
        ]
    return nest.pack_sequence_as(structure, given)


def map_structure(func: Any, *structure: Any, **kwargs: Any) -> Any:
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            f"map_structure has no argument '{next(iter(kwargs))}'; there are check_types, expand_composites"
        )
    if not callable(func):
        raise TypeError(f"func: expected a function, not {func!r}")
    if not structure:
        raise ValueError("map_structure needs a structure")
    if not expand:
        return nest.map_structure(func, *structure, check_types=check_types)
    flat = [flatten(each, True) for each in structure]
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*flat, strict=True)], True)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    nest.assert_same_structure(nest1, nest2, check_types)
