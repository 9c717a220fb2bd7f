# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.framework.nest: structures that go less deep, and paths to leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures import nest, nest_paths


def _plain(expand_composites: bool) -> None:
    """Sparse tensors and slices are leaves here."""
    if expand_composites:
        raise NotImplementedError("expand_composites: sparse tensors are leaves of structures; take them apart before")


def _checks(kwargs: Any) -> bool:
    """What functions that take any structures are given by name."""
    _plain(kwargs.pop("expand_composites", False))
    check_types = kwargs.pop("check_types", True)
    if kwargs:
        raise ValueError(f"{next(iter(kwargs))}: expected check_types or expand_composites")
    return check_types


def is_sequence(o: Any) -> bool:
    return nest.is_nested(o)


def is_sequence_or_composite(o: Any) -> bool:
    return nest.is_nested(o) or isinstance(o, SparseTensor | IndexedSlices)


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> None:  # fmt: skip
    _plain(expand_composites)
    nest.assert_shallow_structure(shallow_tree, input_tree, check_types)


def flatten_dict_items(dictionary: Any) -> Any:
    return nest.flatten_dict_items(dictionary)


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[Any]:  # fmt: skip
    _plain(expand_composites)
    return nest.flatten_up_to(shallow_tree, input_tree, check_types)


def flatten_with_joined_string_paths(structure: Any, separator: str = "/", expand_composites: bool = False) -> Any:
    _plain(expand_composites)
    return nest.flatten_with_joined_string_paths(structure, separator)


def flatten_with_tuple_paths(structure: Any, expand_composites: bool = False) -> Any:
    _plain(expand_composites)
    return nest_paths.flatten_with_tuple_paths(structure)


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> Any:  # fmt: skip
    _plain(expand_composites)
    return nest_paths.flatten_with_tuple_paths_up_to(shallow_tree, input_tree, check_types)


def get_traverse_shallow_structure(traverse_fn: Any, structure: Any, expand_composites: bool = False) -> Any:
    _plain(expand_composites)
    return nest.get_traverse_shallow_structure(traverse_fn, structure)


def map_structure_up_to(shallow_tree: Any, func: Any, *inputs: Any, **kwargs: Any) -> Any:
    kwargs.pop("check_subtrees_length", True)
    return nest.map_structure_up_to(shallow_tree, func, *inputs, check_types=_checks(kwargs))


def map_structure_with_paths(func: Any, *structure: Any, **kwargs: Any) -> Any:
    def joined(path: Any, *leaves: Any) -> Any:
        return func("/".join(map(str, path)), *leaves)

    return nest_paths.map_with_paths(joined, *structure, check_types=_checks(kwargs))


def map_structure_with_tuple_paths(func: Any, *structure: Any, **kwargs: Any) -> Any:
    return nest_paths.map_with_paths(func, *structure, check_types=_checks(kwargs))


def map_structure_with_tuple_paths_up_to(shallow_tree: Any, func: Any, *inputs: Any, **kwargs: Any) -> Any:
    kwargs.pop("check_subtrees_length", True)
    return nest_paths.map_with_paths_up_to(shallow_tree, func, *inputs, check_types=_checks(kwargs))


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[Any]:
    from toolkit.client.structures.nest import yield_flattened_paths

    _plain(expand_composites)
    return yield_flattened_paths(nest)
