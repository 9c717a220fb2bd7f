"""Functions that a program defines and calls by name (Defun): TensorFlow's nodes, functions and numbers."""

from __future__ import annotations

import importlib
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2
from tests.client.client_programs import tf1_semantics
from tests.client.functions.function_programs import PROGRAMS
from tests.tf1.node_oracle import described, difference
from toolkit import client as gm
from toolkit import tensorflow as ours
from toolkit.client.functions import defined
from toolkit.errors import GraphError, UsageError
from toolkit.runtime.session import Session
from toolkit.tensorflow.families.framework import functions


def lines_of(data: bytes) -> list[str]:
    """Nodes and functions; the hashes in the names of functions are each library's own."""
    graph = graph_pb2.GraphDef.FromString(data)
    hashes = [m[0] for f in graph.library.function if (m := re.search(r"_[A-Za-z0-9]{11}$", f.signature.name))]
    count = len(graph.node)
    text = described(graph)
    for each in hashes:
        text = [line.replace(each, "_HASH") for line in text]
    text = [re.sub(r'debug_name=s: "[^"]*"', "", line) for line in text]
    gradients = sorted(f"{g.function_name} <- {g.gradient_func[:-12]}" for g in graph.library.gradient)
    attrs = sorted(
        f"{f.signature.description} {sorted(f.attr)} {[sorted(f.arg_attr[i].attr) for i in sorted(f.arg_attr)]}"
        f" {[str(f.arg_attr[i].attr['_output_shapes']) for i in sorted(f.arg_attr)]} {f.signature.is_stateful}"
        for f in graph.library.function
    )
    return [*text[:count], *sorted(text[count:]), *gradients, *attrs]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(tf: ModuleType, name: str) -> None:
    program = PROGRAMS[name]
    theirs = importlib.import_module("tensorflow.python.framework.function")
    v1 = tf.compat.v1
    with tf1_semantics(tf), tf.Graph().as_default() as their_graph:
        fetches = program(v1, theirs)
        start = v1.global_variables_initializer()
        with v1.Session() as session:
            session.run(start)
            wanted: list[Any] = session.run(fetches)
        their_data = their_graph.as_graph_def().SerializeToString()
    with ours.Graph().as_default() as our_graph:
        fetches = program(ours, functions)
        start = ours.global_variables_initializer()
        with ours.Session() as session:
            session.run(start)
            found: list[Any] = session.run(fetches)
        data = our_graph.as_graph_def().SerializeToString()
        names = [fetch.name for fetch in fetches]
    assert not difference(lines_of(their_data), lines_of(data))
    with tf1_semantics(tf), tf.Graph().as_default():
        tf.import_graph_def(v1.GraphDef.FromString(data), name="")
        with v1.Session() as session:
            session.run(start.name)
            read: list[Any] = session.run(names)
    for mine, other, again in zip(found, wanted, read, strict=True):
        if other is not None:
            # single precision; the few operations of a program round differently in either library
            np.testing.assert_allclose(mine, other, rtol=1e-5)
            np.testing.assert_allclose(again, other, rtol=1e-5)  # likewise


def test_functions_declared_before_they_are_there() -> None:
    """TensorFlow 2.21 has Declare no more; the nodes are those of any call."""
    with ours.Graph().as_default() as graph:
        later = functions.Declare("Later", [("x", ours.float32)], [("y", ours.float32)])

        @functions.Defun(ours.float32, func_name="Uses")
        def uses(x: Any) -> Any:
            return later(x, name="soon") * 2.0

        called = uses(3.0)

        @functions.Defun(ours.float32, func_name="Later", out_names=["y"])
        def defines(x: Any) -> Any:
            return x + 1.0

        defines.add_to_graph(graph)
        with ours.Session() as session:
            assert session.run(called) == 8.0
        assert {node.op for node in graph.as_graph_def().library.function[0].node_def} >= {"Later", "Mul"}


def test_functions_of_a_library() -> None:
    with ours.Graph().as_default() as graph:

        @functions.Defun(ours.float32, ours.float32, func_name="G")
        def backwards(x: Any, dy: Any) -> Any:
            return dy * 7.0

        @functions.Defun(ours.float32, grad_func=backwards, func_name="F")
        def forwards(x: Any) -> Any:
            return x * x

        forwards(1.0)
        library = graph.as_graph_def().library
    with ours.Graph().as_default(), ours.Session() as session:
        made = {function.name: function for function in functions.from_library(library)}
        assert made["F"].grad_func_name == "G"
        x = ours.constant(3.0)
        y = made["F"](x)
        assert session.run([y, *ours.gradients(y, x)]) == [9.0, 7.0]
    del library.function[0]
    with pytest.raises(ValueError, match=r"the library names the function '[FG]', which is not in it"):
        functions.from_library(library)


def test_mistakes() -> None:
    def keywords(x: Any, y: Any = 1.0) -> Any:
        return x

    with pytest.raises(ValueError, match="3 is no function"):
        functions.Defun(ours.float32)(3)
    with pytest.raises(ValueError, match="the argument 'y' of keywords is a keyword or has a default"):
        functions.Defun(ours.float32)(keywords)
    with pytest.raises(ValueError, match=r"<lambda> takes 1 argument\(s\), and 2 type\(s\) are given"):
        functions.Defun(ours.float32, ours.float32)(lambda x: x)
    with ours.Graph().as_default():
        same = functions.Defun(ours.float32, func_name="same")(lambda x: x + 1.0)
        with pytest.raises(ValueError, match=r"'same' takes 1 argument\(s\), got 2"):
            same(1.0, 2.0)
        with pytest.raises(ValueError, match="the argument 'x' of 'same' is float32, got int32"):
            same(1)
        with pytest.raises(ValueError, match=r"'inline' is no setting of a function or call.*noinline"):
            same(1.0, inline=True)
        other = functions.Defun(ours.float32, func_name="same")(lambda x: x + 2.0)
        with pytest.raises(ValueError, match="another function of this graph is named 'same'; give func_name"):
            other(1.0)
        absent = functions.Defun(ours.float32)(lambda x: [x, None])
        with pytest.raises(ValueError, match="returns None among its results"):
            absent(1.0)
        shapes = functions.Defun(ours.float32, func_name="f", shape_func=lambda op: [])(lambda x: x)
        with pytest.raises(ValueError, match=r"0 shape\(s\) for the 1 result"):
            shapes(1.0)


def _double(x: Any) -> Any:
    return x * 2.0


def test_functions_of_the_client() -> None:
    with gm.Graph().as_default() as graph:
        made = defined.DefinedFunction(_double, ["x"], [gm.float32], name="double")
        called = made.call([4.0], None, {}).outputs[0]
        with Session(graph) as session:
            assert session.run(called) == 8.0
        with pytest.raises(UsageError, match="has 2 names for them"):
            _ = defined.DefinedFunction(_double, ["x"], [gm.float32], result_names=["a", "b"]).name
        held = gm.get_variable("held", initializer=1.0)

        def takes(x: Any) -> Any:
            return x + held.handle

        by_value = defined.DefinedFunction(takes, ["x"], [gm.float32], by_value=True)
        with pytest.raises(GraphError, match="cannot capture 'held', a VariableV2 with a state"):
            _ = by_value.name
