"""Python functions become functions of a graph's library, with what they use of the graph around."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.functions.definition import argument_name, unique
from toolkit.client.functions.graph import SelfContainedGraph
from toolkit.client.functions.trace import trace
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape
from toolkit.runtime.session import Session

SCALAR = ("x", dtypes.float32, Shape([]))


def test_tensors_around_become_arguments() -> None:
    with gm.Graph().as_default() as graph:
        outside = gm.placeholder(gm.float32, [2], name="scope/Outside")

        def both(x: Any) -> Any:
            return x * outside, x + outside[0]

        made = trace(both, [SCALAR])
        assert made.captured == [outside]
        assert made.result_shapes == [Shape([2]), Shape([])]
        definition = graph.core.library.function(made.name)
        assert [arg.name for arg in definition.signature.input_arg] == ["x", "mul_scope_outside"]
        assert [arg.name for arg in definition.signature.output_arg] == ["identity", "identity_1"]
        called = ops.partitioned_call([3.0, *made.captured], Tout=made.result_types, f=made.ref)
        with Session(graph) as session:
            product, total = session.run(called, {outside: [1.0, 2.0]})
    np.testing.assert_array_equal(product, [3.0, 6.0])
    assert total == 4.0


def test_functions_in_functions_take_through_both() -> None:
    with gm.Graph().as_default() as graph:
        outside = gm.constant(5.0)

        def outer(x: gm.Tensor) -> gm.Tensor:
            def product(y: Any) -> Any:
                return y * outside

            inner = trace(product, [SCALAR])
            return ops.partitioned_call([x, *inner.captured], Tout=[dtypes.float32], f=inner.ref)[0]

        made = trace(outer, [SCALAR])
        called = ops.partitioned_call([3.0, *made.captured], Tout=made.result_types, f=made.ref)
        with Session(graph) as session:
            assert session.run(called) == [15.0]


def test_effects_run_in_order() -> None:
    with gm.Graph().as_default() as graph:
        variable = gm.get_variable("v", initializer=0.0, use_resource=True)

        def effects(x: gm.Tensor) -> gm.Tensor:
            ops.assign_variable_op(variable.handle, x)
            ops.assign_add_variable_op(variable.handle, 1.0)
            read = ops.read_variable_op(variable.handle, dtype=dtypes.float32)
            ops.assign_variable_op(variable.handle, -1.0)
            return read

        made = trace(effects, [SCALAR])
        called = ops.stateful_partitioned_call([3.0, *made.captured], Tout=made.result_types, f=made.ref)
        with Session(graph) as session:
            session.run(variable.initializer)
            assert session.run(called) == [4.0]
            assert session.run(variable) == -1.0
        body = {node.name: list(node.input) for node in graph.core.library.function(made.name).node_def}
    assert "^AssignVariableOp" in body["AssignAddVariableOp"]
    assert "^ReadVariableOp" in body["AssignVariableOp_1"]
    assert len([given for given in body["NoOp"] if given.startswith("^")]) == 4


def test_self_contained_functions_copy_what_they_use() -> None:
    with gm.Graph().as_default() as graph:
        outside = gm.constant([1.0, 2.0], name="outside") * 2.0
        inner = SelfContainedGraph("alone", graph)
        made = trace(lambda: outside, [], graph=inner, in_order=False, hand_on=False)
        assert made.captured == []
        called = ops.partitioned_call([], Tout=made.result_types, f=made.ref)
        with Session(graph) as session:
            np.testing.assert_array_equal(session.run(called)[0], [2.0, 4.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gm.placeholder(gm.float32, name="fed") + 1.0, "cannot capture the placeholder 'fed'"),
        (lambda: ops.variable_v2(shape=[], dtype=dtypes.int32, name="v") + 1, "'v', a VariableV2 with a state"),
    ],
)
def test_self_contained_functions_refuse_state(make: object, message: str) -> None:
    with gm.Graph().as_default() as graph:
        outside = make()  # type: ignore[operator]
        with pytest.raises(GraphError, match=message):
            trace(lambda: outside, [], graph=SelfContainedGraph("alone", graph))
        assert "alone" not in graph.core.library


def test_what_is_no_function_or_of_another_graph_is_refused() -> None:
    with gm.Graph().as_default():
        elsewhere = gm.constant(1.0, name="elsewhere")

    def mixes(x: Any) -> Any:
        return x + elsewhere

    def nothing(x: Any) -> Any:
        return {1, x}

    with gm.Graph().as_default() as graph:
        with pytest.raises(UsageError, match="3 is no function"):
            trace(3, [])  # type: ignore[arg-type]
        with pytest.raises(GraphError, match="'elsewhere:0' belongs to another graph"):
            trace(mixes, [SCALAR])
        with pytest.raises(GraphError, match="cannot become a tensor"):
            trace(nothing, [SCALAR])
        assert not len(graph.core.library)


def test_names_are_those_of_arguments() -> None:
    assert argument_name("scope/Weights_1/read") == "scope_weights_1_read"
    assert argument_name("1/_a-b") == "a_b"
    assert argument_name("//") == "unknown"
    assert unique("a", {"a", "a_0"}) == "a_1"
