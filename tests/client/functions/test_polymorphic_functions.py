"""tf.function in graphs: bodies and numbers are TensorFlow's; what does not fit is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests.client.client_programs import tf1_semantics
from tests.tf1.node_oracle import described
from toolkit import tensorflow as ours

X = np.array([0.3, -0.7], np.float32)


def effects_and_structure(tf: Any, x: Any, v: Any) -> Any:
    @tf.function
    def f(x: Any, y: Any = 2.0, *, z: Any = None) -> Any:
        v.assign_add(x, read_value=False)
        return {"a": x * y, "b": (v + 1.0, None), "c": z}

    return f(x, z=3)


def nested_arguments(tf: Any, x: Any, v: Any) -> Any:
    def two(pair: Any, *args: Any, k: int = 1, **more: Any) -> Any:
        return [pair, args, more, x * k]

    return tf.function(two)((np.ones(2), {"b": np.ones(1), "a": 2}), 3.0, np.ones(3), k=4, q=np.zeros(2), p=x)


def signature(tf: Any, x: Any, v: Any) -> Any:
    f = tf.function(lambda x: x * v, input_signature=[tf.TensorSpec([None], tf.float32)])
    return [f(x), f([1.0, 2.0]), f(x[:1])]


def gradients(tf: Any, x: Any, v: Any) -> Any:
    @tf.function
    def f(x: Any) -> Any:
        return tf.sin(x) * v

    return [f(x), *tf.gradients(f(x), [x, v])]


def calls_in_calls(tf: Any, x: Any, v: Any) -> Any:
    inner = tf.function(lambda x: tf.exp(x) + v)
    return tf.function(lambda x: inner(x) * inner(2.0 * x))(x)


def control_flow(tf: Any, x: Any, v: Any) -> Any:
    @tf.function
    def f(x: Any) -> Any:
        x = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * v, lambda: x - v)
        return tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * v), [0, x])[1]

    return f(x)


def sparse_and_ragged(tf: Any, x: Any, v: Any) -> Any:
    doubled = tf.function(lambda s: s * 2.0)
    sparse = doubled(tf.SparseTensor([[0, 1], [1, 0]], x, [2, 2]))
    return [tf.sparse.to_dense(sparse), doubled(tf.ragged.constant([[1.0], [2.0, 3.0]])).flat_values]


def methods(tf: Any, x: Any, v: Any) -> Any:
    class Model:
        w: Any = None

        def __init__(self, scale: float) -> None:
            self.scale = scale

        @tf.function
        def run(self, x: Any) -> Any:
            if self.w is None:
                self.w = tf.Variable([1.0, 2.0], use_resource=True)
            return x * self.scale + self.w

    models = [Model(2.0), Model(3.0)]
    return [models[0].run(x), models[1].run(x=x)]


def concrete(tf: Any, x: Any, v: Any) -> Any:
    spec = tf.TensorSpec([2], tf.float32, name="Q")
    f = tf.function(lambda a, b, c: a * b + c * v).get_concrete_function(tf.TensorSpec([2], tf.float32), spec, 3.0)
    return [f(x, x), f(a=x, Q=x)]


PROGRAMS = (
    effects_and_structure, nested_arguments, signature, gradients, calls_in_calls, control_flow, sparse_and_ragged,
    methods, concrete,
)  # fmt: skip
#: whose functions are TensorFlow's node by node: no gradients, no loops in other spellings
_SAME_BODIES = (effects_and_structure, nested_arguments, signature, calls_in_calls, concrete)


def made(tf: Any, program: Callable[..., Any]) -> tuple[list[str], list[Any]]:
    """The functions as lines, and the numbers."""
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", initializer=np.array([0.5, 2.0], np.float32), use_resource=True)
        found = program(tf, tf.placeholder(tf.float32, [2], name="x"), v)
        data = graph_pb2.GraphDef.FromString(graph.as_graph_def().SerializeToString())
        lines = [line for line in described(data) if line.startswith("__inference")]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            fetches = [leaf for leaf in tf.nest.flatten(found) if leaf is not None]
            numbers = session.run(fetches, {"x:0": X})
    return [re.sub(r"__inference_<?(\w+?)>?(_\d+)?\b", r"\1", line) for line in lines], numbers


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(tf: ModuleType, program: Callable[..., Any]) -> None:
    with tf1_semantics(tf):
        bodies, wanted = made(tf.compat.v1, program)
    mine, found = made(ours, program)
    for a, b in zip(wanted, found, strict=True):
        # float32: a few operations on numbers near 1
        np.testing.assert_allclose(a, b, rtol=1e-6)
    if program in _SAME_BODIES:
        ends = [re.sub(r" @ .*", "", line) for line in bodies], [re.sub(r" @ .*", "", line) for line in mine]
        assert sorted(ends[0]) == sorted(ends[1])


def test_a_function_is_made_once_for_each_kind_of_arguments() -> None:
    tf = ours
    calls: list[int] = []

    @tf.function
    def f(x: Any, y: Any = 1) -> Any:
        calls.append(1)
        return x * y

    with tf.Graph().as_default():
        for value in (tf.zeros([2]), tf.ones([2]), np.ones(2, np.float32)):
            f(value)
        f(y=1, x=tf.ones([2]))
        assert f.experimental_get_tracing_count() == len(calls) == 1
        for arguments in ([tf.ones([3])], [tf.ones([2]), 2], [tf.ones([2]), 2], [[tf.ones([2])]]):
            f(*arguments)
        assert len(calls) == 4
    with tf.Graph().as_default():
        assert f(tf.zeros([2])).op.type == "PartitionedCall"
        assert len(calls) == 5


def test_fewer_functions_where_only_shapes_differ() -> None:
    tf = ours
    with tf.Graph().as_default():
        f = tf.function(lambda x: x * 2.0, reduce_retracing=True)
        shapes = [f(tf.ones([size])).shape.as_list() for size in (2, 3, 4, 5)]
        assert f.experimental_get_tracing_count() == 2
    assert shapes == [[2], [3], [4], [5]]  # what a call returns is known from what it is given


def _signed(tf: Any) -> Any:
    return tf.function(lambda x: x, input_signature=[tf.TensorSpec([None], tf.float32)])


def _makes_variables(x: Any) -> Any:
    return ours.Variable([1.0], use_resource=True) + x


MISTAKES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "no function": (lambda tf: tf.function(3), TypeError, "3 is no function"),
    "no spec": (lambda tf: tf.function(len, input_signature=[3]), TypeError, "expected TensorSpecs, got 3"),
    "operation": (lambda tf: tf.function(tf.no_op)(), TypeError, "no_op returns <tf.Operation 'NoOp'"),
    "object": (lambda tf: tf.function(lambda: object())(), TypeError, "a function returns tensors, None, or"),
    "shape": (lambda tf: _signed(tf)(np.ones([2, 2])), TypeError, r"'x': expected a tensor like .* of shape \[2,2\]"),
    "type": (lambda tf: _signed(tf)(tf.constant([1])), TypeError, "'x': expected a tensor like .* got int32"),
    "value": (lambda tf: _signed(tf)("text"), TypeError, "'x': expected a value for TensorSpec"),
    "too many": (lambda tf: _signed(tf)(1, 2), TypeError, "too many positional arguments"),
    "too few": (lambda tf: _signed(tf)(y=2), TypeError, "missing a required argument: 'x'"),
    "structure": (
        lambda tf: tf.function(len, input_signature=[[tf.TensorSpec([])]])(tf.constant(1.0)),
        TypeError,
        "expected a structure like",
    ),
    "variables": (lambda tf: tf.function(_makes_variables)(1.0), ValueError, "makes variables whenever"),
    "concrete, lacking": (lambda tf: _signed(tf).get_concrete_function()(), TypeError, "lacks its argument 'x'"),
    "concrete, unknown": (lambda tf: _signed(tf).get_concrete_function()(y=1.0), TypeError, r"takes the tensors"),
    "concrete, shape": (lambda tf: _signed(tf).get_concrete_function()(1.0), TypeError, "'x': expected a tensor like"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, kind, message = MISTAKES[name]
    with ours.Graph().as_default(), pytest.raises(kind, match=message):
        make(ours)


@pytest.mark.tensorflow
def test_type_specs_of_values(tf: ModuleType) -> None:
    def of(tf: Any) -> list[str]:
        with tf.Graph().as_default():
            values: list[Any] = [
                tf.placeholder(tf.float32, [None, 2]), np.ones([2], np.int64), 3.0, [1, 2], "text",
                tf.SparseTensor([[0, 1]], [1.0], [2, 2]), tf.ragged.constant([[1.0], [2.0, 3.0]]),
                tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1])), tf.TensorArray(tf.float32, 2),
            ]  # fmt: skip
            return [type(tf.type_spec_from_value(value)).__name__ for value in values]

    with tf1_semantics(tf):
        wanted = of(tf.compat.v1)
    assert of(ours) == wanted
    with pytest.raises(TypeError, match="is no tensor and becomes none"):
        ours.type_spec_from_value(object())
