"""Passes that look at a node and what it is made of: where they fire, and where they must not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.passes.optimize.equivalence import apply, assert_same, made_graph, values
from toolkit import client as gm
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.optimize.arithmetic.common_subexpressions import CommonSubexpressions
from toolkit.passes.optimize.arithmetic.fold_constants import FoldConstants
from toolkit.passes.optimize.arithmetic.materialize_shapes import MaterializeShapes
from toolkit.passes.optimize.arithmetic.merge_chains import MergeChains
from toolkit.passes.optimize.arithmetic.simplify_arithmetic import SimplifyArithmetic
from toolkit.passes.optimize.removal.remove_control_edges import RemoveControlEdges
from toolkit.passes.optimize.removal.remove_identities import RemoveIdentities
from toolkit.passes.optimize.removal.strip_defaults import StripDefaults
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

ops = gm.ops
X = np.array([[0.5, -0.0, np.inf], [np.nan, -3.0, 0.0]], np.float32)
N = np.array([[5, -7, 0], [2**31 - 1, -(2**31), 1]], np.int32)
B = np.array([[True, False, True], [False, False, True]])
F: Any = gm.float32


def check(
    pass_: Optimization, build: Callable[[Any, Any, Any], Any], op: str | None, feeds: tuple[str, ...] = ()
) -> Graph:
    """Apply a pass to y = build(x, n, b); `op` is what y is afterwards, None where nothing may change."""

    def whole() -> None:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        n = gm.placeholder(gm.int32, [2, 3], name="n")
        b = gm.placeholder(gm.bool, [2, 3], name="b")
        ops.identity(build(x, n, b), name="y")

    graph = made_graph(whole)
    given = {"x:0": X, "n:0": N, "b:0": B}
    result = apply(pass_, graph, ["y"], [*given, *feeds])
    assert_same(values(graph, ["y:0"], given), values(result.graph, ["y:0"], given))
    if op is None:
        assert not result.modified
    else:
        end = result.graph.node("y")
        assert result.modified and (end.inputs[0].node if end.inputs else end).op == op
        again = apply(pass_, result.graph, ["y"], [*given, *feeds])
        assert not again.modified or len(again.graph) <= len(result.graph)
    return result.graph


def c(value: Any, dtype: Any = None) -> Any:
    return gm.constant(value, dtype)


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x, n, b: x * 1.0, "Identity"),
        (lambda x, n, b: c([[1.0]]) * x, "Identity"),
        (lambda x, n, b: x * c(np.ones([4, 1, 1], np.float32)), None),  # the shape changes
        (lambda x, n, b: x * 0.0, None),  # NaN and infinities
        (lambda x, n, b: n * 0, "ZerosLike"),
        (lambda x, n, b: x + 0.0, None),  # of -0.0 that makes 0.0
        (lambda x, n, b: x + c(-0.0), "Identity"),
        (lambda x, n, b: n + 0, "Identity"),
        (lambda x, n, b: x - 0.0, "Identity"),
        (lambda x, n, b: x - c(-0.0), None),
        (lambda x, n, b: 0 - n, "Neg"),
        (lambda x, n, b: 0.0 - x, None),
        (lambda x, n, b: c(-0.0) - x, "Neg"),
        (lambda x, n, b: x - x, None),
        (lambda x, n, b: n - n, "ZerosLike"),
        (lambda x, n, b: x / 1.0, "Identity"),
        (lambda x, n, b: x / 4.0, "Mul"),
        (lambda x, n, b: x / 3.0, None),
        (lambda x, n, b: ops.neg(ops.neg(x)), "Identity"),
        (lambda x, n, b: x + ops.neg(ops.tanh(x)), "Sub"),
        (lambda x, n, b: x - ops.neg(ops.tanh(x)), "AddV2"),
        (lambda x, n, b: ops.neg(x) * ops.neg(ops.tanh(x)), "Mul"),
        (lambda x, n, b: x * x, "Square"),
        (lambda x, n, b: n * n, "Square"),
        (lambda x, n, b: ops.pow(x, 1.0), "Identity"),
        (lambda x, n, b: ops.pow(x, 0.0), "OnesLike"),
        (lambda x, n, b: ops.pow(x, 2.0), None),
        (lambda x, n, b: ops.relu(ops.relu(x)), "Identity"),
        (lambda x, n, b: ops.abs(ops.neg(x)), "Abs"),
        (lambda x, n, b: ops.square(ops.abs(x)), "Square"),
        (lambda x, n, b: ops.logical_not(ops.logical_not(b)), "Identity"),
        (lambda x, n, b: ops.logical_not(ops.equal(x, 0.5)), "NotEqual"),
        (lambda x, n, b: ops.logical_not(ops.less(x, 0.5)), None),  # NaN is neither
        (lambda x, n, b: ops.logical_not(ops.less(n, 5)), "GreaterEqual"),
        (lambda x, n, b: ops.logical_and(b, True), "Identity"),
        (lambda x, n, b: ops.logical_and(b, False), None),
        (lambda x, n, b: ops.logical_or(b, b), "Identity"),
        (lambda x, n, b: ops.maximum(x, x), "Identity"),
        (lambda x, n, b: ops.select_v2(c(True), x, ops.tanh(x)), "Identity"),
        (lambda x, n, b: ops.select_v2(c(False), x, ops.tanh(x)), "Identity"),
        (lambda x, n, b: ops.select_v2(c(True), c(1.0), x), None),  # which has another shape
        (lambda x, n, b: ops.floor_div(n, 1), "Identity"),
        (lambda x, n, b: ops.floor_div(x, 1.0), None),
    ],
)
def test_arithmetic(build: Any, op: str | None) -> None:
    check(SimplifyArithmetic(), build, op)


def test_arithmetic_that_is_near_or_knows_no_signed_zeros() -> None:
    x = np.float32([[1.0, 2.0, 5.0]])

    def build() -> None:
        given = gm.placeholder(gm.float32, [1, 3], name="x")
        ops.identity(ops.pow(given, 2.0) / 3.0 + given / ops.sqrt(given), name="y")

    graph = made_graph(build)
    made = apply(SimplifyArithmetic(approximate=True), graph, ["y"], ["x"]).graph
    assert sorted(n.op for n in made if n.op not in ("Const", "Placeholder", "Identity")) == [
        "AddV2", "Mul", "Mul", "Rsqrt", "Square",
    ]  # fmt: skip
    before, after = values(graph, ["y:0"], {"x:0": x}), values(made, ["y:0"], {"x:0": x})
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6)  # four roundings of 6e-8
    check(SimplifyArithmetic(signed_zeros=False), lambda x, n, b: n + 0, "Identity")


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x: ops.bias_add(x, c([0.0, 0.0, 0.0])), "Identity"),
        (lambda x: ops.bias_add(x, c([0.0, 0.0, 1.0])), None),
        (lambda x: x + c([0.0, 0.0, 0.0]), "Identity"),
        (lambda x: c([[0.0]]) + x, "Identity"),
        (lambda x: x + c([[[0.0, 0.0, 0.0]]]), None),  # of one dimension more
        (lambda x: x + c([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), None),  # may be of one row until then
    ],
)
def test_zeros_of_fitting_shapes_are_not_added(build: Any, op: str | None) -> None:
    def whole() -> None:
        ops.identity(build(gm.placeholder(gm.float32, [None, 3], name="x")), name="y")

    graph = made_graph(whole)
    made = apply(SimplifyArithmetic(signed_zeros=False), graph, ["y"], ["x"]).graph
    assert made.node("y").inputs[0].node.op == (op or graph.node("y").inputs[0].node.op)
    before, after = (values(each, ["y:0"], {"x:0": X}) for each in (graph, made))
    np.testing.assert_array_equal(after[0], before[0])  # to which 0.0 and -0.0 are equal


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x, n, b: ops.reshape(x, [2, 3]), "Identity"),
        (lambda x, n, b: ops.reshape(x, [3, 2]), None),
        (lambda x, n, b: ops.reshape(ops.reshape(x, [6]), [3, -1]), "Reshape"),
        (lambda x, n, b: ops.squeeze(ops.expand_dims(x, 0)), "Identity"),
        (lambda x, n, b: ops.transpose(ops.transpose(x, [1, 0]), [1, 0]), "Identity"),
        (lambda x, n, b: ops.transpose(ops.transpose(ops.expand_dims(x, 0), [2, 0, 1]), [1, 0, 2]), "Transpose"),
        (lambda x, n, b: ops.transpose(x, [0, 1]), "Identity"),
        (lambda x, n, b: ops.cast(x, gm.float32), "Identity"),
        (lambda x, n, b: ops.cast(ops.cast(x, gm.float64), gm.float32), "Identity"),
        (lambda x, n, b: ops.cast(ops.cast(x, gm.float16), gm.float32), None),  # loses digits
        (lambda x, n, b: ops.cast(ops.cast(n, gm.float32), gm.float64), None),  # 24 bits of 31
        (lambda x, n, b: ops.cast(ops.cast(n, gm.int64), gm.float32), "Cast"),
        (lambda x, n, b: ops.tile(x, [1, 1]), "Identity"),
        (lambda x, n, b: ops.tile(x, [1, 2]), None),
        (lambda x, n, b: ops.pad(x, [[0, 0], [0, 0]]), "Identity"),
        (lambda x, n, b: ops.sum(x, np.zeros(0, np.int32)), "Identity"),
        (lambda x, n, b: ops.sum(ops.expand_dims(x, 0), [0], keep_dims=True), "Identity"),
        (lambda x, n, b: ops.sum(x, [0], keep_dims=True), None),
        (lambda x, n, b: x[:, :], "Identity"),
        (lambda x, n, b: x[:, ::-1], None),
        (lambda x, n, b: ops.split(0, x, 1)[0], "Identity"),
        (lambda x, n, b: ops.add_n([x]), "Identity"),
        (lambda x, n, b: ops.slice(x, [0, 0], [2, 3]), "Identity"),
    ],
)
def test_chains(build: Any, op: str | None) -> None:
    check(MergeChains(), build, op)


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x, n, b: ops.shape(x), "Const"),
        (lambda x, n, b: ops.size(x) + ops.rank(x), "Const"),
        (lambda x, n, b: ops.shape_n([x, x])[1], "Const"),
        (lambda x, n, b: ops.shape(ops.where(b)), None),
    ],
)
def test_shapes(build: Any, op: str | None) -> None:
    check(MaterializeShapes(), build, op)


def test_part_of_a_shape() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        ops.pack([ops.shape(x)[0], ops.shape(x)[1] * 2], name="y")

    graph = made_graph(build)
    made = apply(MaterializeShapes(), graph, ["y"], ["x"]).graph
    assert [source.node.op for source in made.node("y").inputs] == ["StridedSlice", "Const"]
    assert values(made, ["y:0"], {"x:0": X})[0].tolist() == [2, 6]


def test_shapes_of_what_is_fed_in_the_middle_are_not_known() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        ops.shape(ops.tanh(x, name="t"), name="y")

    graph = made_graph(build)
    assert not apply(MaterializeShapes(), graph, ["y"], ["t"]).modified
    assert apply(MaterializeShapes(), graph, ["y"], ["x"]).modified


@pytest.mark.parametrize(
    ("build", "op"),
    [
        (lambda x, n, b: ops.tanh(c([1.0, 2.0])) * c(3.0), "Const"),
        (lambda x, n, b: ops.fill([2, 2], c(1.0)), "Const"),
        (lambda x, n, b: ops.fill([2000, 2000], c(1.0)), None),  # larger than what it replaces
        (lambda x, n, b: ops.tile(c(np.ones(1000, np.float32)), [100]), None),
        (lambda x, n, b: ops.random_uniform([2], gm.float32), None),
        (lambda x, n, b: ops.stateless_random_uniform([2], [1, 2]), None),
        (lambda x, n, b: ops.split(0, c([1.0, 2.0]), 2)[1], "Const"),
        (lambda x, n, b: ops.string_join([c(b"a"), c(b"b")]), "Const"),
        (lambda x, n, b: ops.reshape(x, [6]), None),
    ],
)
def test_constants(build: Any, op: str | None) -> None:
    if op is None:
        graph = made_graph(
            lambda: ops.identity(build(gm.placeholder(gm.float32, [2, 3], name="x"), None, None), name="y")
        )
        assert not apply(FoldConstants(), graph, ["y"]).modified
    else:
        check(FoldConstants(), build, op)


def test_large_results_that_replace_what_is_as_large_are_folded() -> None:
    def build() -> None:
        w = c(np.arange(40000, dtype=np.float32).reshape(200, 200))
        ops.mat_mul(gm.placeholder(gm.float32, [1, 200], name="x"), ops.transpose(w, [1, 0]), name="y")

    result = apply(FoldConstants(max_bytes=10), made_graph(build), ["y"], ["x"])
    assert [source.node.op for source in result.graph.node("y").inputs] == ["Placeholder", "Const"]


def test_one_number_that_stands_for_a_whole_tensor_stays_one() -> None:
    """A gigabyte as it is computed is a few bytes of the file."""
    graph = made_graph(lambda: ops.transpose(gm.constant(0.5, shape=[1, 1], name="k"), [1, 0], name="y"))
    value = graph.node("k").attr("value")
    for axis in value.tensor_shape.dim:
        axis.size = 1 << 14
    graph.node("k").attrs["value"] = value
    result = apply(FoldConstants(), graph, ["y"])
    assert not result.modified and result.report["too_large"] == 1


def test_fed_constants_are_none() -> None:
    graph = made_graph(lambda: ops.neg(gm.constant(2.0, name="k"), name="y"))
    assert not apply(FoldConstants(), graph, ["y"], ["k"]).modified
    assert apply(FoldConstants(), graph, ["y"]).graph.node("y").op == "Const"


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda x: ops.tanh(x) + ops.tanh(x), 1),
        (lambda x: (x * 2.0) + (c(2.0) * x), 2),  # the constant, and the product the other way round
        (lambda x: (x - 2.0) + (2.0 - x), 1),
        (lambda x: ops.random_uniform([2, 3], gm.float32) + ops.random_uniform([2, 3], gm.float32), 1),  # its shape
        (lambda x: ops.maximum(x, ops.tanh(x)) - ops.maximum(ops.tanh(x), x), 1),
    ],
)
def test_common_subexpressions(build: Any, count: int) -> None:
    graph = made_graph(lambda: ops.identity(build(gm.placeholder(gm.float32, [2, 3], name="x")), name="y"))
    result = apply(CommonSubexpressions(), graph, ["y"], ["x"])
    assert result.report["merged"] == count


def test_both_fetched_nodes_of_a_pair_stay() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        ops.tanh(x, name="a")
        ops.tanh(x, name="b")
        ops.tanh(x, name="other")

    made = apply(CommonSubexpressions(), made_graph(build), ["a", "b"], ["x"]).graph
    assert {n.name: n.op for n in made} == {"x": "Placeholder", "a": "Tanh", "b": "Identity"} | {"other": "Tanh"}


def test_placeholders_and_different_devices_are_no_pairs() -> None:
    def build() -> None:
        x, y = (gm.placeholder(gm.float32, [2, 3]) for _ in range(2))
        ops.add_v2(x, y, name="y")

    graph = made_graph(build)
    assert not apply(CommonSubexpressions(), graph, ["y"]).modified
    graph = made_graph(
        lambda: ops.add_v2(
            ops.tanh(gm.placeholder(F, [], name="x"), name="a"),
            ops.tanh(gm.placeholder(F, [], name="z"), name="b"),
            name="y",
        )
    )
    graph.node("b").inputs = graph.node("a").inputs
    graph.node("b").device = "/device:CPU:1"
    assert not apply(CommonSubexpressions(), graph, ["y"]).modified


def test_identities_that_read_references_and_hold_branches_stay() -> None:
    def build() -> None:
        v = gm.get_variable("v", [2], initializer=gm.initializers.Constant(1.0), use_resource=False)
        x = gm.placeholder(gm.bool, [], name="p")
        ops.add_v2(gm.cond(x, lambda: c([1.0, 1.0]), lambda: c([2.0, 2.0])), ops.identity(v.read_value()), name="y")

    graph = made_graph(build)
    made = apply(RemoveIdentities(), graph, ["y", "v", "v/Assign"]).graph
    assert any(n.op == "Identity" and n.inputs[0].dtype.is_ref for n in made)
    switches = [n for n in made if n.op == "Identity" and n.inputs[0].node.op == "Switch"]
    assert switches  # constants of the branches wait for them


def test_control_edges() -> None:
    def build() -> None:
        v = gm.get_variable("v", [], initializer=gm.initializers.Constant(1.0), use_resource=True)
        ops.identity(v.read_value(), name="y")
        gm.constant(1.0, name="k")
        ops.assign_add_variable_op(v.handle, 1.0, name="first")
        ops.assign_add_variable_op(v.handle, 2.0, name="second")

    graph = made_graph(build)
    first, second, read = graph.node("first"), graph.node("second"), graph.node("y").inputs[0].node
    second.control_inputs = [first]
    read.control_inputs = [first, second, graph.node("k")]
    made = apply(RemoveControlEdges(), graph, ["y"])
    assert [each.name for each in made.graph.node(read.name).control_inputs] == ["second"]
    assert made.report == {"implied": 1, "pointless": 1}
    kept = apply(RemoveControlEdges(keep_order=True), graph, ["y"]).graph
    assert [each.name for each in kept.node(read.name).control_inputs] == ["second", "k"]


def test_control_edges_beside_what_is_fed_say_something() -> None:
    def build() -> None:
        v = gm.get_variable("v", [], initializer=gm.initializers.Constant(1.0), use_resource=True)
        ops.assign_add_variable_op(v.handle, 1.0, name="first")
        ops.identity(ops.tanh(gm.constant(1.0), name="t"), name="y")

    graph = made_graph(build)
    graph.node("t").control_inputs = [graph.node("first")]
    graph.node("y").control_inputs = [graph.node("first")]
    assert apply(RemoveControlEdges(), graph, ["y"]).report["implied"] == 1
    assert apply(RemoveControlEdges(), graph, ["y"], ["t"]).report["implied"] == 0


def test_defaults_are_stripped() -> None:
    graph = made_graph(
        lambda: ops.mat_mul(gm.placeholder(F, [2, 2], name="x"), c(np.eye(2, dtype=np.float32)), name="y")
    )
    graph.node("y").attrs["transpose_a"] = False
    graph.node("y").attrs["transpose_b"] = True
    made = apply(StripDefaults(), graph, ["y"]).graph
    assert "transpose_a" not in made.node("y").attrs and made.node("y").attr("transpose_b") is True
    assert not apply(StripDefaults(), made, ["y"]).modified


def test_the_users_of_a_constant_are_not_gone_through_for_each_of_them() -> None:
    """A constant that all nodes of a graph read would have folding take the square of their number."""

    class Counted(dict[Node, int]):
        looked = 0

        def __iter__(self) -> Iterator[Node]:
            for each in super().__iter__():
                Counted.looked += 1
                yield each

    def build() -> None:
        half = gm.constant(0.5, gm.float32, name="half")
        for number in range(50):
            ops.add_v2(half, half, name=f"y{number}")
        ops.identity(gm.constant(1.5, gm.float32, name="alone"), name="z")

    work = Rewriting(made_graph(build))
    half, alone = work.graph.node("half"), work.graph.node("alone")
    users = work._users  # pyright: ignore[reportPrivateUsage]
    users[half] = Counted(users[half])
    assert not any(work.is_only_taken_by(half.output(), user) for user in list(dict.keys(users[half]))[:50])
    assert work.is_only_taken_by(alone.output(), work.graph.node("z"))
    assert not work.is_only_taken_by(alone.output(), work.graph.node("y0"))
    assert Counted.looked <= 50
