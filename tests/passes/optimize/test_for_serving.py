"""What only training needs, taken out: dropout, assertions, checks; inputs that have one value from now on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import from_tensorflow, run_in_tensorflow
from tests.passes.optimize.oracle import agree, changed, feed, kept, made, ops, unchanged
from toolkit.errors import UsageError
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.nn.remove_dropout import RemoveDropout
from toolkit.passes.optimize.removal.remove_checks import RemoveChecks
from toolkit.passes.optimize.removal.remove_unused import RemoveUnused
from toolkit.passes.optimize.removal.set_inputs import SetInputs

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def x_of(v1: Any) -> Any:
    return v1.placeholder("float32", [3, 4], name="x")


def _named(build: Callable[[Any, Any], Any], v1: Any) -> Any:
    return v1.identity(build(v1, x_of(v1)), name="out")


def old_dropout(v1: Any, x: Any, keep: Any) -> Any:
    """As TensorFlow 1.0 to 1.12 wrote it."""
    mask = v1.floor(keep + v1.random_uniform(v1.shape(x)))
    return v1.divide(x, keep) * mask


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "TensorFlow 1": lambda v1, x: old_dropout(v1, x, v1.constant(0.5)),
    "TensorFlow 1, fed": lambda v1, x: old_dropout(v1, x, v1.placeholder_with_default(0.5, [], name="keep_prob")),
    "keep_prob": lambda v1, x: v1.nn.dropout(x, keep_prob=0.5),
    "rate": lambda v1, x: v1.nn.dropout(x, rate=0.25),
    "with a seed": lambda v1, x: v1.nn.dropout(x, rate=0.25, seed=3),
    "for all rows": lambda v1, x: v1.nn.dropout(x, rate=0.25, noise_shape=[1, 4]),
    "as a product": lambda v1, x: (x * 2.0) * v1.cast(v1.random_uniform([3, 4]) >= 0.5, v1.float32),
    "less": lambda v1, x: v1.cast(v1.random_uniform([3, 4]) < 0.5, v1.float32) * (x * 2.0),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", FORMS)
def test_dropout(tf: Any, form: str) -> None:
    graph = made(tf, lambda v1: v1.identity(v1.tanh(FORMS[form](v1, v1.tanh(x_of(v1)))), name="out"))
    result = changed(RemoveDropout(kept=kept("out")), graph)
    assert len(result.report["removed"]) == 1
    assert not any("Random" in node.op for node in result.graph)
    for steps in range(2):
        got = run_in_tensorflow(tf, result.graph, ["out:0"], {"x:0": X + steps})[0]
        plain = made(tf, lambda v1: v1.tanh(v1.tanh(x_of(v1)), name="out"))
        want = run_in_tensorflow(tf, plain, ["out:0"], {"x:0": X + steps})[0]
        np.testing.assert_array_equal(got, want)


@pytest.mark.tensorflow
@pytest.mark.parametrize("stateless", [False, True])
def test_dropout_of_functions(tf: Any, stateless: bool) -> None:
    @tf.function
    def network(x: Any) -> Any:
        if stateless:
            return tf.tanh(tf.nn.experimental.stateless_dropout(x, 0.3, seed=[1, 2]))
        return tf.tanh(tf.nn.dropout(x, 0.3))

    concrete = network.get_concrete_function(tf.TensorSpec([3, 4], name="x"))
    graph, out = from_tensorflow(concrete.graph), concrete.outputs[0].name
    result = changed(RemoveDropout(kept=kept(out.partition(":")[0])), graph)
    assert len(result.report["removed"]) == 1 and ops(result.graph) == ["Tanh"]
    got = run_in_tensorflow(tf, result.graph, [out], {"x:0": X})[0]
    np.testing.assert_array_equal(got, tf.tanh(X).numpy())


@pytest.mark.tensorflow
def test_what_is_no_dropout(tf: Any) -> None:
    cases: dict[str, Callable[[Any, Any], Any]] = {
        "noise": lambda v1, x: x * v1.random_uniform([3, 4]),
        "noise, scaled": lambda v1, x: (x * 2.0) * (v1.random_uniform([3, 4]) * 3.0 + 1.0),
        "a mask of data": lambda v1, x: (x * 2.0) * v1.cast(x > 0.5, v1.float32),
        "a mask alone": lambda v1, x: x * v1.cast(v1.random_uniform([3, 4]) >= 0.5, v1.float32),
        "chosen": lambda v1, x: v1.where(v1.random_uniform([3, 4]) >= 0.5, x * 2.0, v1.ones_like(x)),
        "scaled by rows": lambda v1, x: (x * [1.0, 2.0, 3.0, 4.0]) * v1.cast(v1.random_uniform([4]) > 0.5, x.dtype),
    }
    for case in cases.values():
        graph = made(tf, partial(_named, case))
        unchanged(RemoveDropout(kept=kept("out")), graph)


def _guarded(v1: Any) -> Any:
    x = x_of(v1)
    checks = [v1.assert_positive(x + 5, name="positive"), v1.debugging.Assert(v1.reduce_all(x < 9), [x])]
    with v1.control_dependencies(checks):
        y = v1.debugging.check_numerics(x, "x") * 2.0
    shown = v1.Print(y, [y], "y")
    return v1.identity(v1.debugging.check_numerics(shown, "y"), name="out")


@pytest.mark.tensorflow
def test_checks(tf: Any) -> None:
    graph = made(tf, _guarded)
    result = changed(RemoveChecks(kept=kept("out")), graph)
    left = RemoveUnused(kept=kept("out")).apply(result.graph).graph
    assert ops(left) == ["Mul"]
    assert {"Assert", "CheckNumerics", "Print"} <= result.report["removed"].keys() | {"Assert"}
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    kept_checks = changed(RemoveChecks(asserts=False, prints=False, kept=kept("out")), graph)
    assert set(kept_checks.report["removed"]) == {"CheckNumerics"}


@pytest.mark.tensorflow
def test_assertions_of_functions(tf: Any) -> None:
    """TensorFlow 2 puts each Assert into a branch of its own."""

    @tf.function
    def check(x: Any) -> Any:
        tf.debugging.assert_less(x, 9.0)
        tf.print("x", x)
        return tf.identity(x * 2.0)

    concrete = check.get_concrete_function(tf.TensorSpec([3, 4], name="x"))
    graph = from_tensorflow(concrete.graph)
    assert any(node.op in ("If", "StatelessIf") for node in graph)
    out = concrete.outputs[0].name
    result = changed(RemoveChecks(kept=kept(out.partition(":")[0])), graph)
    left = RemoveUnused(kept=kept(out.partition(":")[0])).apply(result.graph).graph
    assert [op for op in ops(left) if op != "NoOp"] == ["Mul"]
    agree(tf, graph, left, [out], feed(graph))


@pytest.mark.tensorflow
def test_a_check_that_is_asked_for(tf: Any) -> None:
    def build(v1: Any) -> None:
        x = x_of(v1)
        check = v1.debugging.Assert(v1.reduce_all(x < 9), [x], name="check")
        with v1.control_dependencies([check]):
            v1.debugging.check_numerics(x, "x", name="out")

    graph = made(tf, build)
    names = {node.name for node in graph if node.op == "Assert"}
    result = changed(RemoveChecks(kept=kept("out", *names)), graph)
    assert result.graph.node("out").op == "Identity"
    assert {result.graph.node(name).op for name in names} <= {"NoOp"}
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


def _inputs(v1: Any) -> Any:
    x = x_of(v1)
    keep = v1.placeholder("float32", [], name="keep_prob")
    training = v1.placeholder_with_default(True, [], name="is_training")
    scale = v1.placeholder("int32", [4], name="scale")
    return v1.identity(v1.where(training, x * 2.0, x / keep) * v1.cast(scale, v1.float32), name="out")


@pytest.mark.tensorflow
def test_inputs_that_are_set(tf: Any) -> None:
    graph = made(tf, _inputs)
    given = ("keep_prob=0.5", "is_training=false", "scale:0=3")
    result = changed(SetInputs(set=given, kept=kept("out")), graph)
    assert [result.graph.node(name).op for name in ("keep_prob", "is_training", "scale")] == ["Const"] * 3
    feeds = {"x:0": X, "keep_prob:0": np.float32(0.5), "is_training:0": False, "scale:0": np.full(4, 3, np.int32)}
    want = run_in_tensorflow(tf, graph, ["out:0"], feeds)[0]
    np.testing.assert_array_equal(run_in_tensorflow(tf, result.graph, ["out:0"], {"x:0": X})[0], want)
    unchanged(SetInputs(set=given, kept=kept("out")), result.graph)
    by_default = changed(SetInputs(defaults=True, kept=kept("out")), graph)
    assert by_default.report["set"] == {"is_training": "its default"}


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("keep_pro=1", "no placeholder 'keep_pro'; did you mean 'keep_prob'"),
        ("keep_prob=much", "'much' is no value for 'keep_prob', which is float32"),
        ("is_training=2", "'2' is no value for 'is_training', which is bool"),
        ("scale=1.5", "'1.5' is no value for 'scale', which is int32"),
        ("out=1", "'out' is a Identity, no placeholder"),
        ("keep_prob", "expected NAME=VALUE"),
    ],
)
def test_inputs_that_cannot_be_set(tf: Any, given: str, says: str) -> None:
    graph = made(tf, _inputs)
    with pytest.raises(UsageError) as caught:
        SetInputs(set=(given,), kept=kept("out")).apply(graph)
    assert says in str(caught.value)


def test_unknown_shapes_cannot_be_set() -> None:
    from tests.passes.graphs import F
    from toolkit.graph.shape import Shape

    graph = Graph()
    graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    with pytest.raises(UsageError, match="only inputs of a known shape"):
        SetInputs(set=("x=1",)).apply(graph)
