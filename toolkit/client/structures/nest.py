"""Nested structures of values: lists, tuples, named tuples and mappings, with anything else as leaves.

The order of leaves is that of `tf.nest` and `tf.contrib.framework.nest`: lists and tuples in theirs, mappings by
sorted keys. Strings, arrays and tensors are leaves.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from toolkit.errors import UsageError

#: a leaf, or a list, tuple or mapping of structures
Structure = Any


def is_nested(value: Any) -> bool:
    """Whether a value is a list, tuple or mapping, not a leaf."""
    return isinstance(value, list | tuple | Mapping)


def is_sequence(value: Any) -> bool:
    """The older name of `is_nested`."""
    return is_nested(value)


def flatten(structure: Structure) -> list[Any]:
    """The leaves, in order; a leaf alone is a list of one.

    Raises:
        UsageError: keys of a mapping cannot be sorted.
    """
    leaves: list[Any] = []
    stack = [structure]
    while stack:
        value = stack.pop()
        if is_nested(value):
            stack.extend(reversed([item for _, item in _items(value)]))
        else:
            leaves.append(value)
    return leaves


def pack_sequence_as(structure: Structure, flat_sequence: Any) -> Structure:
    """Leaves put into the shape of `structure`.

    Raises:
        UsageError: the number of leaves is another, or `flat_sequence` is none.
    """
    if not isinstance(flat_sequence, list | tuple):
        raise UsageError(f"pack_sequence_as takes a list of leaves, not {type(flat_sequence).__name__}")
    given: list[Any] = list(flat_sequence)  # type: ignore[arg-type]
    wanted = len(flatten(structure))
    if wanted != len(given):
        raise UsageError(f"the structure has {wanted} leaves, but {len(given)} are given; give as many")
    return _packed(structure, iter(given))


def _packed(like: Structure, leaves: Iterator[Any]) -> Structure:
    if not is_nested(like):
        return next(leaves)
    return _rebuilt(like, [_packed(item, leaves) for _, item in _items(like)])


def map_structure(function: Any, *structures: Structure, check_types: bool = True) -> Structure:
    """The structure of what `function` makes of the leaves, one of each structure.

    Raises:
        UsageError: no structure is given, or they are not alike.
    """
    if not structures:
        raise UsageError("map_structure needs at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types)
    results = [function(*leaves) for leaves in zip(*map(flatten, structures), strict=True)]
    return pack_sequence_as(structures[0], results)


def assert_same_structure(nest1: Structure, nest2: Structure, check_types: bool = True) -> None:
    """Say where two structures differ.

    Args:
        check_types: lists and tuples are different as well, and so are mappings with other keys.

    Raises:
        UsageError: they are not alike.
    """
    _compare(nest1, nest2, check_types, "")


def _compare(a: Structure, b: Structure, check_types: bool, place: str) -> None:
    where = f" at {place}" if place else ""
    if is_nested(a) != is_nested(b):
        kinds = ["a structure" if is_nested(value) else "a single value" for value in (a, b)]
        raise UsageError(f"the two structures are not alike: the first has {kinds[0]}{where}, the second {kinds[1]}")
    if not is_nested(a):
        return
    if check_types and not _same_type(a, b):
        raise UsageError(
            f"the two structures are not alike: the first has a {type(a).__name__}{where}, the second a "
            f"{type(b).__name__}"
        )
    left, right = _items(a), _items(b)
    mappings = isinstance(a, Mapping) and isinstance(b, Mapping)
    if check_types and mappings and [k for k, _ in left] != [k for k, _ in right]:
        raise UsageError(
            f"the two structures are not alike{where}: keys {[k for k, _ in left]} and {[k for k, _ in right]}"
        )
    if len(left) != len(right):
        raise UsageError(f"the two structures are not alike{where}: {len(left)} and {len(right)} elements")
    for (key, first), (_, second) in zip(left, right, strict=True):
        _compare(first, second, check_types, f"{place}[{key!r}]")


def _same_type(a: Any, b: Any) -> bool:
    if _is_mapping(a) and _is_mapping(b):
        return True
    if _is_named(a) and _is_named(b):
        return type(a).__name__ == type(b).__name__ and a._fields == b._fields
    return type(a) is type(b)


# -- structures that go less deep ----------------------------------------------------------------------------------


def assert_shallow_structure(shallow_tree: Structure, input_tree: Structure, check_types: bool = True) -> None:
    """Say where `input_tree` does not have the structure of `shallow_tree`, whose leaves may be structures in it.

    Raises:
        UsageError: it does not.
    """
    _shallow(shallow_tree, input_tree, check_types, "")


def _shallow(shallow: Structure, deep: Structure, check_types: bool, place: str) -> None:
    if not is_nested(shallow):
        return
    where = f" at {place}" if place else ""
    if not is_nested(deep):
        raise UsageError(f"the shallow structure has a {type(shallow).__name__}{where}, the other a single value")
    if check_types and not _same_type(shallow, deep):
        raise UsageError(
            f"the shallow structure has a {type(shallow).__name__}{where}, the other a {type(deep).__name__}"
        )
    left, right = _items(shallow), dict(_items(deep))
    if len(left) != len(right):
        raise UsageError(f"the shallow structure has {len(left)} elements{where}, the other {len(right)}")
    for key, item in left:
        if key not in right:
            raise UsageError(f"the shallow structure has {key!r}{where}, the other has not")
        _shallow(item, right[key], check_types, f"{place}[{key!r}]")


def flatten_up_to(shallow_tree: Structure, input_tree: Structure, check_types: bool = True) -> list[Any]:
    """What stands in `input_tree` where `shallow_tree` has leaves.

    Raises:
        UsageError: see `assert_shallow_structure`.
    """
    assert_shallow_structure(shallow_tree, input_tree, check_types)
    return list(_up_to(shallow_tree, input_tree))


def _up_to(shallow: Structure, deep: Structure) -> Iterator[Any]:
    if not is_nested(shallow):
        yield deep
        return
    parts = dict(_items(deep))
    for key, item in _items(shallow):
        yield from _up_to(item, parts[key])


def map_structure_up_to(shallow_tree: Structure, func: Any, *inputs: Structure, check_types: bool = True) -> Structure:
    """`func` of what stands in the inputs where `shallow_tree` has leaves, in its structure.

    Raises:
        UsageError: no input is given, or see `assert_shallow_structure`.
    """
    if not inputs:
        raise UsageError("map_structure_up_to needs at least one structure")
    columns = [flatten_up_to(shallow_tree, tree, check_types) for tree in inputs]
    return pack_sequence_as(shallow_tree, [func(*leaves) for leaves in zip(*columns, strict=True)])


def get_traverse_shallow_structure(traverse_fn: Callable[[Structure], Any], structure: Structure) -> Structure:
    """How deep to go: True and False as leaves, by what `traverse_fn` says of each substructure.

    Raises:
        UsageError: it says something else than a bool, or a structure of bools.
    """
    chosen = traverse_fn(structure)
    if not is_nested(structure):
        if not isinstance(chosen, bool):
            raise UsageError(f"traverse_fn returned {chosen!r} for a single value; a bool is expected")
        return chosen
    if isinstance(chosen, bool):
        if not chosen:
            return False
        return _rebuilt(structure, [get_traverse_shallow_structure(traverse_fn, item) for _, item in _items(structure)])
    assert_shallow_structure(chosen, structure)
    return map_structure_up_to(
        chosen, lambda go, part: get_traverse_shallow_structure(traverse_fn, part) if go else False, chosen, structure
    )


# -- names of leaves -----------------------------------------------------------------------------------------------


def yield_flattened_paths(nest: Structure) -> Iterator[tuple[Any, ...]]:
    """The keys and positions that lead to each leaf, in the order of `flatten`."""
    for path, _ in _paths(nest, ()):
        yield path


def flatten_with_joined_string_paths(structure: Structure, separator: str = "/") -> list[tuple[str, Any]]:
    """Pairs (path, leaf) in the order of `flatten`."""
    return [(separator.join(map(str, path)), leaf) for path, leaf in _paths(structure, ())]


def _paths(value: Structure, prefix: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not is_nested(value):
        yield prefix, value
        return
    names = value._fields if _is_named(value) else None
    for position, (key, item) in enumerate(_items(value)):
        yield from _paths(item, (*prefix, key if names is None else names[position]))


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A dictionary whose keys may be structures, and whose values have the same ones, as one of leaves to leaves.

    Raises:
        UsageError: a key and its value are not alike, or a leaf is twice among the keys.
    """
    if not isinstance(dictionary, Mapping):
        raise UsageError(f"flatten_dict_items takes a dictionary, not {type(dictionary).__name__}")
    found: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = flatten(key), flatten(value)
        if len(keys) != len(values):
            raise UsageError(f"the key {key!r} has {len(keys)} leaves, its value {len(values)}")
        for leaf, part in zip(keys, values, strict=True):
            if leaf in found:
                raise UsageError(f"{leaf!r} is twice among the keys")
            found[leaf] = part
    return found


# -- what containers are made of -----------------------------------------------------------------------------------


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")  # type: ignore[arg-type]


def _items(value: Any) -> list[tuple[Any, Any]]:
    """Keys or positions, and what is there."""
    if not _is_mapping(value):
        return [*enumerate(cast("list[Any]", value))]
    try:
        return [(key, value[key]) for key in sorted(value)]
    except TypeError:
        raise UsageError(f"the keys {list(value)} of a mapping cannot be sorted, so its values have no order") from None


def _rebuilt(like: Any, items: list[Any]) -> Any:
    """A container like another, with other items, which come in the order of `_items`."""
    if _is_named(like):
        return type(like)(*items)
    if _is_mapping(like):
        by_key = dict(zip([key for key, _ in _items(like)], items, strict=True))
        pairs: list[Any] = [(key, by_key[key]) for key in like]  # the mapping's own order stays
        if isinstance(like, defaultdict):
            return defaultdict(cast("Any", like).default_factory, pairs)
        return OrderedDict(pairs) if isinstance(like, OrderedDict) else type(like)(pairs)
    return type(like)(items)
