"""Functions make the nodes that TensorFlow's make: op, name, inputs, device, attributes, order."""

from __future__ import annotations

import importlib

import pytest

from tests.tf1 import calls, node_oracle, op_calls
from tests.tf1.differing import DIFFERING
from toolkit.tensorflow import api, names

pytestmark = pytest.mark.tensorflow

FAMILIES = sorted(path.stem for path in calls.FOLDER.glob("*.py") if path.stem != "__init__")
BY_HAND = {
    name: found for f in FAMILIES for name, found in importlib.import_module(f"{calls.__name__}.{f}").CALLS.items()
}
OPS = [
    fact
    for name in api.names()
    if (fact := api.fact(name)) is not None and fact.kind == "op" and fact.canonical == name
    and name not in names.table() and name not in BY_HAND
]  # fmt: skip
#: functions that add no node, or whose nodes are tested otherwise, and how
ELSEWHERE = set(calls.ELSEWHERE)


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_functions_make_tensorflows_nodes(name: str) -> None:
    for code in BY_HAND[name]:
        found = node_oracle.differences(code)
        assert bool(found) == (code in DIFFERING), f"{code}\n" + "\n".join(found)


@pytest.mark.parametrize("fact", OPS, ids=lambda fact: fact.name)
def test_functions_that_are_one_op_make_it(fact: api.Fact) -> None:
    if fact.canonical in op_calls.NEED_MORE:
        return
    for code in op_calls.calls(fact):
        found = node_oracle.differences(code)
        assert not found, f"{code}\n" + "\n".join(found)


def test_every_function_is_called_at_least_twice() -> None:
    here = names.table().keys() - set(api.dropped())  # the others: test_dropped_nodes
    rows = {name for name in here if (fact := api.fact(name)) is not None and fact.kind == "function"}
    lacking = sorted(name for name in rows - ELSEWHERE if len(BY_HAND.get(name, [])) < 2)
    assert not lacking, "functions without two calls in tests/tf1/calls: " + " ".join(lacking)


def test_differing_calls_are_calls() -> None:
    assert DIFFERING.keys() <= {code for found in BY_HAND.values() for code in found}
