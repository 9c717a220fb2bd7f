"""The table, the notation, running to a fixed point, what stays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from tests.passes.optimize.equivalence import apply, assert_same, made_graph, ops_of, values
from toolkit import client as gm
from toolkit.errors import BugError, GraphError, UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize import table
from toolkit.passes.optimize.arithmetic.common_subexpressions import CommonSubexpressions
from toolkit.passes.optimize.arithmetic.fold_constants import FoldConstants
from toolkit.passes.optimize.kept import Kept, kept_by
from toolkit.passes.optimize.notation import describe, make_pass, parse_passes
from toolkit.passes.optimize.removal.remove_identities import RemoveIdentities
from toolkit.passes.optimize.removal.remove_unused import RemoveUnused
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.run import optimize

ops = gm.ops


def test_every_row_of_the_table_is_a_pass() -> None:
    for row in table.TABLE.values():
        class_ = row.load()
        assert issubclass(class_, Optimization) and class_.name == row.name
        assert (class_.__doc__ or "").strip() and row.text[0].islower() and not row.text.endswith(".")
        assert describe(row)["name"] == row.name


def test_two_rows_of_one_name_raise() -> None:
    row = next(iter(table.TABLE.values()))
    with pytest.raises(BugError, match="two passes"):
        table.index([row, replace(row)])
    with pytest.raises(BugError, match="no preset"):
        table.index([replace(row, presets=("fast",))])


@pytest.mark.parametrize("name", table.PRESETS)
def test_presets_have_passes(name: str) -> None:
    assert table.preset(name)


def test_passes_are_read_with_their_parameters() -> None:
    found = parse_passes("fold_constants(max_bytes=10, exclude=Add,exclude='Mul'), common_subexpressions remove_unused")
    assert found == [FoldConstants(max_bytes=10, exclude=("Add", "Mul")), CommonSubexpressions(), RemoveUnused()]
    assert parse_passes("remove_identities(keep_gradient_stops=yes)") == [RemoveIdentities(keep_gradient_stops=True)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fold_constant", "did you mean 'fold_constants'"),
        ("fold_constants(max_byte=1)", "did you mean 'max_bytes'"),
        ("fold_constants(max_bytes=many)", "expected a whole number"),
        ("fold_constants(max_bytes=1,max_bytes=2)", "given twice"),
        ("fold_constants(max_bytes)", "KEY=VALUE"),
        ("fold_constants(max_bytes=1", "KEY=VALUE|lack"),
        ("remove_identities(keep_gradient_stops=perhaps)", "true or false"),
        ("common_subexpressions(kept=1)", "it has none"),
        ("", "no pass"),
        ("(", "expected the name"),
        ("remove_unused)", "expected"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_passes(text)


def test_unknown_presets_and_passes_name_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'inference'"):
        table.preset("inferense")
    with pytest.raises(UsageError, match="--list"):
        make_pass("zzz", [])


@dataclass(frozen=True)
class _Breaking(Optimization):
    name: ClassVar[str] = "breaking"

    def apply(self, graph: Graph) -> PassResult:
        made = graph.copy()
        made.add("Neg", "dangling", attrs={})
        return PassResult(made, True)


def test_a_pass_that_breaks_the_graph_is_named_with_those_before() -> None:
    graph = made_graph(lambda: ops.neg(gm.placeholder(gm.float32, [2], name="x"), name="y"))
    with pytest.raises(GraphError, match="the pass 'breaking', after remove_unused broke the graph"):
        optimize(graph, [RemoveUnused(), _Breaking()], Kept(frozenset(("y",))))


def _duplicates() -> None:
    x = gm.placeholder(gm.float32, [2], name="x")
    a = ops.tanh(ops.identity(x))
    b = ops.tanh(x)
    ops.add_v2(ops.mul(a, gm.constant(2.0) + gm.constant(1.0)), b, name="y")
    ops.neg(b, name="side")


def test_passes_run_until_nothing_changes() -> None:
    graph = made_graph(_duplicates)
    kept = kept_by(MetaGraph(graph), ["x"], ["y"])
    done = optimize(graph, parse_passes("common_subexpressions,remove_identities,fold_constants,remove_unused"), kept)
    assert done.settled and done.modified
    assert ops_of(done.graph) == ["AddV2", "Const", "Mul", "Placeholder", "Tanh"]
    assert max(each.round for each in done.passes) > 1
    feeds = {"x:0": [0.5, -3.0]}
    assert_same(values(graph, ["y:0"], feeds), values(done.graph, ["y:0"], feeds))
    assert not optimize(graph, [RemoveIdentities()], kept, rounds=1).settled


def test_without_fetches_all_results_stay() -> None:
    graph = made_graph(_duplicates)
    kept = kept_by(MetaGraph(graph))
    assert kept.names == {"y", "side"}
    done = optimize(graph, table.preset("inference"), kept)
    assert {"y", "side"} <= {node.name for node in done.graph}


def test_nodes_that_others_are_placed_with_stay() -> None:
    graph = made_graph(_duplicates)
    identity = next(node for node in graph if node.op == "Identity")
    graph.node("y").attrs["_class"] = [b"loc:@" + identity.name.encode()]
    result = apply(RemoveIdentities(), graph, ["y"])
    assert identity.name in result.graph


@pytest.mark.parametrize(
    ("passes", "contrary"),
    [
        ("raise_control_flow,lower_control_flow", [("lower_control_flow", "raise_control_flow")]),
        ("obfuscate_names,canonical", [("canonical", "obfuscate_names")]),
        ("canonical,sort_by_execution_order", [("canonical", "sort_by_execution_order")]),
        ("add_default_attributes,canonical", [("canonical", "add_default_attributes")]),
        ("strip_defaults,add_default_attributes,remove_unused", [("add_default_attributes", "strip_defaults")]),
    ],
)
def test_passes_that_undo_each_other_run_once(passes: str, contrary: list[tuple[str, str]]) -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [], name="x")
        y = gm.cond(ops.less(x, 0.0), lambda: x - 1.0, lambda: ops.mat_mul([[x]], [[2.0]])[0, 0])
        gm.identity(gm.while_loop(lambda s: ops.less(s, 9.0), lambda s: s + 2.0, [y]), name="y")

    graph = made_graph(build)
    done = optimize(graph, parse_passes(passes), kept_by(MetaGraph(graph), ["x"], ["y"]))
    assert done.settled and not done.restless and done.contrary == contrary
    for name in {name for pair in contrary for name in pair}:
        assert len([each for each in done.passes if each.name == name]) == 1
    assert_same(values(graph, ["y:0"], {"x:0": 1.5}), values(done.graph, ["y:0"], {"x:0": 1.5}))
