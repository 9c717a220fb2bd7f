"""TensorArrays under control flow v2 are lists: TensorFlow's nodes, numbers and gradients, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests.client.functions.test_functional_flow import functions
from tests.tf1.node_oracle import described, difference
from toolkit import tensorflow as ours
from toolkit.errors import GraphError, UsageError

X = np.array([[0.3, -0.7], [0.9, 0.1], [-0.4, 0.6]])


def written_and_read(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 3)
    for i in range(3):
        array = array.write(i, x[i] * x[0])
    return [array.read(1), array.stack(), array.size()]


def named(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 2, element_shape=[2], name="held").write(0, x[0], name="put")
    return [array.read(0, name="get"), array.size(name="count")]


def known_in_part(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 3, element_shape=tf.TensorShape([None]), infer_shape=False)
    return array.unstack(x).identity().gather([2, 0])


def scalars(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 3).unstack(x[:, 0])
    return [array.stack(), array.read(2)]


def scattered(tf: Any, x: Any) -> Any:
    return tf.TensorArray(tf.float64, 4).unstack(tf.zeros([4, 2], tf.float64)).scatter([3, 0, 1], x).stack()


def split_and_joined(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 2, infer_shape=False).split(x, [1, 2])
    return [array.concat(), array.read(1)]


def split_evenly(tf: Any, x: Any) -> Any:
    return tf.TensorArray(tf.float64, 3).split(x, [1, 1, 1]).concat(name="joined")


def made_longer(tf: Any, x: Any) -> Any:
    array = tf.TensorArray(tf.float64, 1, dynamic_size=True).write(0, x[0]).write(2, x[2])
    return [array.stack(), array.size(), array.read(2)]


def closed(tf: Any, x: Any) -> Any:
    return [tf.TensorArray(tf.float64, 1).write(0, x).close(), x * 1.0]


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    written_and_read, named, known_in_part, scalars, scattered, split_and_joined, split_evenly, made_longer, closed,
]  # fmt: skip


def _made(tf: Any, program: Callable[[Any, Any], Any]) -> tuple[list[str], list[Any]]:
    """The nodes of a program, and what its results and their gradients are."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float64, [3, 2], name="x")
        made = program(tf, x)
        fetches = [y for y in (made if isinstance(made, list) else [made]) if hasattr(y, "dtype")]
        nodes = described(graph_pb2.GraphDef.FromString(graph.as_graph_def().SerializeToString()))
        ys = [y * y for y in fetches if y.dtype.is_floating]
        fetches += tf.gradients(ys, [x])
        with tf.Session() as session:
            return nodes, session.run(fetches, {x: X})


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_nodes_and_numbers(tf: ModuleType, program: Callable[[Any, Any], Any]) -> None:
    with functions(tf):
        nodes, wanted = _made(tf.compat.v1, program)
        mine, found = _made(ours, program)
    assert not difference(nodes, mine)
    for a, b in zip(found, wanted, strict=True):
        # float64, a few operations of numbers below 1
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


def test_mistakes() -> None:
    ours.enable_control_flow_v2()
    try:
        with ours.Graph().as_default():
            array = ours.TensorArray(ours.float32, 2)
            assert array.handle is None
            assert array.flow.dtype.base.name == "variant"
            for made in (
                lambda: ours.TensorArray(ours.float32),
                lambda: ours.TensorArray(ours.float32, 2, flow=array.flow),
            ):
                with pytest.raises(UsageError, match="needs a size, or the flow of one that exists, and not both"):
                    made()
            with pytest.raises(UsageError, match="is a variant, not of float32"):
                ours.TensorArray(ours.float32, flow=ours.constant(0.0))
            with pytest.raises(UsageError, match="a list and has no handle"):
                type(array)(ours.float32, handle=ours.constant(0.0))
            with pytest.raises(GraphError, match="has type int32, but the array holds float32"):
                array.write(0, ours.constant(1))
            with pytest.raises(GraphError, match="holds elements of shape"):
                array.write(0, [1.0, 2.0]).write(1, [1.0])
            with pytest.raises(GraphError, match="has no array of gradients"):
                array.grad("g")
    finally:
        ours.disable_control_flow_v2()


def test_arrays_that_exist_stay_what_they_are() -> None:
    """An array made before is a resource, whatever is made afterwards."""
    with ours.Graph().as_default(), ours.Session() as session:
        array = ours.TensorArray(ours.float32, 2)
        ours.enable_control_flow_v2()
        try:
            again = array.write(0, 1.0).write(1, 2.0)
            assert again.handle is array.handle
            assert session.run(again.stack()).tolist() == [1.0, 2.0]
        finally:
            ours.disable_control_flow_v2()
