"""Nested structures, beside TensorFlow's."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.client.structures import nest
from toolkit.errors import UsageError

Pair = namedtuple("Pair", ["left", "right"])

LEAVES = st.integers(0, 9) | st.text("ab", max_size=2) | st.none()
STRUCTURES: Any = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(["b", "a", "c"]), inner, max_size=3)
        | st.builds(Pair, inner, inner)
        | st.lists(st.tuples(st.sampled_from(["y", "x"]), inner), max_size=2).map(OrderedDict)
    ),
    max_leaves=8,
)


@pytest.mark.tensorflow
def test_flatten_pack_and_map(tf: ModuleType) -> None:
    @given(STRUCTURES)
    def check(structure: Any) -> None:
        leaves = nest.flatten(structure)
        assert leaves == tf.nest.flatten(structure)
        numbers = list(range(len(leaves)))
        packed, wanted = nest.pack_sequence_as(structure, numbers), tf.nest.pack_sequence_as(structure, numbers)
        assert packed == wanted and type(packed) is type(wanted)
        assert nest.map_structure(str, structure) == tf.nest.map_structure(str, structure)

    check()


@pytest.mark.tensorflow
def test_what_is_alike(tf: ModuleType) -> None:
    @given(STRUCTURES, STRUCTURES)
    def check(a: Any, b: Any) -> None:
        for types in (True, False):
            try:
                tf.nest.assert_same_structure(a, b, check_types=types)
                alike = True
            except (ValueError, TypeError):
                alike = False
            try:
                nest.assert_same_structure(a, b, check_types=types)
                found = True
            except UsageError:
                found = False
            assert found == alike

    check()


def test_shallow_structures_and_paths() -> None:
    deep = {"a": [1, (2, 3)], "b": 4}
    assert nest.flatten_up_to({"a": [0, 0], "b": 0}, deep) == [1, (2, 3), 4]
    assert nest.map_structure_up_to([0, 0], lambda x, y: (x, y), [1, [2]], [3, 4]) == [(1, 3), ([2], 4)]
    assert nest.flatten_with_joined_string_paths(deep) == [("a/0", 1), ("a/1/0", 2), ("a/1/1", 3), ("b", 4)]
    assert list(nest.yield_flattened_paths(Pair([1], 2))) == [("left", 0), ("right",)]
    assert nest.get_traverse_shallow_structure(lambda s: not isinstance(s, tuple), [1, (2, 3)]) == [True, False]
    assert nest.flatten_dict_items({(4, 5): ("a", "b"), 6: "c"}) == {4: "a", 5: "b", 6: "c"}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nest.pack_sequence_as([1, 2], [1]), "the structure has 2 leaves, but 1 are given"),
        (lambda: nest.pack_sequence_as([1, 2], 3), "takes a list of leaves, not int"),
        (lambda: nest.map_structure(str), "needs at least one structure"),
        (lambda: nest.map_structure(str, [1], [1, 2]), "1 and 2 elements"),
        (lambda: nest.assert_same_structure([[1]], [(1,)]), r"a list at \[0\], the second a tuple"),
        (lambda: nest.assert_same_structure({"a": 1}, {"b": 1}), "keys"),
        (lambda: nest.flatten({1: 1, "a": 2}), "cannot be sorted"),
        (lambda: nest.flatten_up_to([[0], 0], [1, 2]), r"at \[0\], the other a single value"),
        (lambda: nest.flatten_dict_items({(1, 2): 3}), "has 2 leaves, its value 1"),
        (lambda: nest.flatten_dict_items({(1, 2): (3, 4), 1: 5}), "twice among the keys"),
    ],
)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()
