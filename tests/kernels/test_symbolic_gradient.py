"""SymbolicGradient against TensorFlow's kernel on the same graph."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests import perturbation
from toolkit import Session
from toolkit.errors import GraphError
from toolkit.graph.graph import Graph

pytestmark = pytest.mark.tensorflow
X, W = np.float32([[0.3, -0.7], [0.9, 0.1]]), np.float32([[0.5, 0.4], [-0.6, 0.8]])


def made(tf: ModuleType, function: Any, seeds: int, op: str = "") -> Any:
    """A GraphDef in which SymbolicGradient calls a function of two matrices, with ones as the results' gradients."""
    concrete = tf.function(function).get_concrete_function(*[tf.TensorSpec([None, 2], tf.float32)] * 2)
    name = concrete.name.decode()
    definition = tf.compat.v1.GraphDef()
    definition.versions.producer = 1000
    definition.library.function.add().CopyFrom(concrete.function_def)
    with tf.Graph().as_default() as graph:
        for i in range(2 + seeds):
            tf.compat.v1.placeholder(tf.float32, [None, 2], name=f"in{i}")
        definition.node.extend(graph.as_graph_def().node)
    node = definition.node.add(name="g", op="SymbolicGradient", input=[f"in{i}" for i in range(2 + seeds)])
    float32 = tf.float32.as_datatype_enum
    node.attr["Tin"].list.type.extend([float32] * (2 + seeds))
    node.attr["Tout"].list.type.extend([float32] * 2)
    node.attr["f"].func.name = op or name
    return definition


def check(tf: ModuleType, function: Any, seeds: int) -> None:
    definition = made(tf, function, seeds)
    feeds = {"in0:0": X, "in1:0": W} | {f"in{2 + i}:0": np.cos(X + i) for i in range(seeds)}
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session() as session:
            wanted = session.run(["g:0", "g:1"], feeds)
    graph = Graph.from_proto(graph_pb2.GraphDef.FromString(definition.SerializeToString()))
    found = Session(graph).run(["g:0", "g:1"], feeds)
    perturbation.assert_close(graph, ["g:0", "g:1"], feeds, [found, wanted])


def test_one_result(tf: ModuleType) -> None:
    check(tf, lambda x, w: tf.tanh(tf.matmul(x, w)) * x, 1)


def test_two_results(tf: ModuleType) -> None:
    check(tf, lambda x, w: (tf.sin(x) * w, tf.exp(w)), 2)


def test_an_argument_without_a_path_gets_zeros(tf: ModuleType) -> None:
    check(tf, lambda x, w: tf.exp(x), 1)


def test_a_function_that_is_not_there(tf: ModuleType) -> None:
    definition = made(tf, lambda x, w: x * w, 1, op="missing")
    ours = Session(Graph.from_proto(graph_pb2.GraphDef.FromString(definition.SerializeToString())))
    with pytest.raises(GraphError, match="there is no function 'missing'"):
        ours.run("g:0", {"in0:0": X, "in1:0": W, "in2:0": X})


def test_the_gradient_that_the_library_names(tf: ModuleType) -> None:
    """Here that of f(x, w) is said to be 2 * seed for both."""
    definition = made(tf, lambda x, w: x * w, 1)
    named = tf.function(lambda x, w, g: (2.0 * g, 2.0 * g))
    concrete = named.get_concrete_function(*[tf.TensorSpec([None, 2], tf.float32)] * 3)
    definition.library.function.add().CopyFrom(concrete.function_def)
    definition.library.gradient.add(
        function_name=definition.library.function[0].signature.name, gradient_func=concrete.name.decode()
    )
    ours = Session(Graph.from_proto(graph_pb2.GraphDef.FromString(definition.SerializeToString())))
    assert ours.run("g:1", {"in0:0": X, "in1:0": W, "in2:0": X}).tolist() == (2 * X).tolist()


def test_an_operation_that_is_a_function(tf: ModuleType) -> None:
    """Programs of TensorFlow 1 (Defun) put a function's name where the op stands; its gradient is this op."""
    from toolkit import client as gm

    definition = made(tf, lambda x, w: tf.tanh(tf.matmul(x, w)) * x, 1)
    node = definition.node[-1]
    node.op = node.attr["f"].func.name
    del node.input[2:]
    node.attr.clear()
    with gm.Graph().as_default() as graph:
        gm.import_graph_def(Graph.from_proto(graph_pb2.GraphDef.FromString(definition.SerializeToString())), name="")
        grads = gm.grad(graph.get_tensor_by_name("g:0"), [graph.get_tensor_by_name(f"in{i}:0") for i in range(2)])
        found = Session(graph).run(grads, {"in0:0": X, "in1:0": W})
    x, w = tf.constant(X), tf.constant(W)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = tf.tanh(tf.matmul(x, w)) * x
    wanted = [each.numpy() for each in tape.gradient(y, [x, w])]
    perturbation.assert_close(graph, grads, {"in0:0": X, "in1:0": W}, [found, wanted])
