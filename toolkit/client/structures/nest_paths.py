"""Structures with the paths to their leaves: keys and positions as tuples, or joined to texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolkit.client.structures import nest
from toolkit.client.structures.nest import Structure

Path = tuple[Any, ...]


def flatten_with_tuple_paths(structure: Structure) -> list[tuple[Path, Any]]:
    """Pairs (path, leaf) in the order of `nest.flatten`."""
    return list(zip(nest.yield_flattened_paths(structure), nest.flatten(structure), strict=True))


def flatten_with_tuple_paths_up_to(
    shallow_tree: Structure, input_tree: Structure, check_types: bool = True
) -> list[tuple[Path, Any]]:
    """Pairs (path, what stands there in `input_tree`), for the leaves of `shallow_tree`.

    Raises:
        UsageError: see `nest.assert_shallow_structure`.
    """
    found = nest.flatten_up_to(shallow_tree, input_tree, check_types)
    return list(zip(nest.yield_flattened_paths(shallow_tree), found, strict=True))


def map_with_paths_up_to(
    shallow_tree: Structure, func: Callable[..., Any], *inputs: Structure, check_types: bool = True
) -> Structure:
    """`func` of (path, what stands there in each input), for the leaves of `shallow_tree`, in its structure.

    Raises:
        UsageError: no input is given, or see `nest.assert_shallow_structure`.
    """
    paths: Iterator[Path] = nest.yield_flattened_paths(shallow_tree)
    return nest.map_structure_up_to(
        shallow_tree, lambda *leaves: func(next(paths), *leaves), *inputs, check_types=check_types
    )


def map_with_paths(func: Callable[..., Any], *structures: Structure, check_types: bool = True) -> Structure:
    """`func` of (path, leaf of each structure), in the structure of the first.

    Raises:
        UsageError: no structure is given, or they are not alike.
    """
    for other in structures[1:]:
        nest.assert_same_structure(structures[0], other, check_types)
    return map_with_paths_up_to(structures[0] if structures else (), func, *structures, check_types=check_types)
