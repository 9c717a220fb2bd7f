"""What random programs found (`tests/passes/test_semantics.py`), each made small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.function_pb2 import FunctionDef
from tests.passes.optimize.equivalence import apply, assert_same, made_graph, ops_of, values
from toolkit import client as gm
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import FunctionBody, to_function
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.passes.optimize.arithmetic.common_subexpressions import CommonSubexpressions
from toolkit.passes.optimize.arithmetic.materialize_shapes import MaterializeShapes
from toolkit.passes.optimize.arithmetic.simplify_arithmetic import SimplifyArithmetic
from toolkit.passes.optimize.flow.inline_functions import InlineFunctions
from toolkit.passes.optimize.forms.backports import BackportTensorArrayV3
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.removal.remove_control_edges import RemoveControlEdges
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import preset

ops = gm.ops


def _calling(body: Any) -> Graph:
    """A graph that calls a function of a variable's handle and a number, which gives a number."""

    def build() -> None:
        graph = gm.get_default_graph()
        x = gm.placeholder(gm.float32, [], name="x")
        variable = gm.get_variable("v", [], use_resource=True, initializer=gm.initializers.Constant(2.0))
        with gm.Graph().as_default() as inner:
            handle, value = gm.placeholder(dtypes.resource, [], name="handle"), gm.placeholder(gm.float32, [], name="y")
            result = body(handle, value)
        end = inner.core.add("_Retval", "end", [result.output], attrs={"T": gm.float32, "index": 0})
        written = FunctionDef()
        written.signature.name = "f"
        written.signature.is_stateful = True
        for name, dtype in (("handle", dtypes.resource), ("y", gm.float32)):
            written.signature.input_arg.add(name=name, type=dtype.enum)
        written.signature.output_arg.add(name="z", type=gm.float32.enum)
        written = to_function(FunctionBody(inner.core, [handle.op.node, value.op.node], [end], []), written)
        graph.core.library.add(written)
        call = ops.stateful_partitioned_call([variable.handle, x], Tout=[gm.float32], f=FuncRef("f"))
        gm.identity(call[0] if isinstance(call, tuple | list) else call, name="out")

    return made_graph(build)


def _adding_in_a_loop(handle: Any, value: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        with gm.control_dependencies([ops.assign_add_variable_op(handle, state)]):
            return [i + 1, state + 1.0]

    return gm.while_loop(lambda i, state: ops.less(i, 3), step, [gm.constant(0), value])[1]


def _adding_in_a_branch(handle: Any, value: Any) -> Any:
    def side() -> Any:
        with gm.control_dependencies([ops.assign_add_variable_op(handle, value)]):
            return gm.identity(value)

    return gm.cond(ops.less(value, 0.0), side, lambda: value * 2.0)


def _adding(handle: Any, value: Any) -> Any:
    with gm.control_dependencies([ops.assign_add_variable_op(handle, value)]):
        return gm.cond(ops.less(value, 0.0), lambda: value - 1.0, lambda: value * 2.0)


def test_effects_in_loops_and_branches_of_functions_stay_in_the_call() -> None:
    """Nothing outside of a branch or loop can wait for what happens in there."""
    for body in (_adding_in_a_loop, _adding_in_a_branch):
        graph = _calling(body)
        assert not apply(InlineFunctions(), graph, ["out"]).modified
    graph = _calling(_adding)
    result = apply(InlineFunctions(), graph, ["out"])
    assert "StatefulPartitionedCall" not in ops_of(result.graph)
    from toolkit.runtime.session import Session

    for made in (graph, result.graph):
        with Session(made.copy()) as session:
            session.run("v/Assign")
            assert session.run("out:0", {"x:0": 3.0}) == 6 and session.run("v/Read/ReadVariableOp:0") == 5


def test_functions_in_normal_form_are_left_alone() -> None:
    graph = _calling(_adding)
    done = optimize(graph, preset("canonical"), kept_by(MetaGraph(graph), ["x"], ["out"]))
    assert done.settled
    again = optimize(done.graph, preset("canonical"), kept_by(MetaGraph(done.graph), ["x"], ["out"]))
    assert not again.modified


def _arrays() -> None:
    x = gm.placeholder(gm.float32, [2], name="x")

    def step(i: Any, state: Any) -> Any:
        handle = ops.tensor_array_v3(2, dtype=gm.float32, element_shape=Shape([2]))[0]
        flow = ops.tensor_array_scatter_v3(handle, [0, 1], gm.stack([state, x]), handle.op.outputs[1])
        return [i + 1, ops.tensor_array_read_v3(handle, i % 2, flow, dtype=gm.float32) * 2.0]

    gm.identity(gm.while_loop(lambda i, s: ops.less(i, 3), step, [gm.constant(0), x])[1], name="out")


def test_arrays_that_a_loop_makes_become_older_ones() -> None:
    """The flow that an array begins with is in its loop, and the array's users are bound to its device."""
    graph = made_graph(_arrays)
    result = apply(BackportTensorArrayV3(), graph, ["out"])
    assert "TensorArrayV2" in ops_of(result.graph) and "TensorArrayV3" not in ops_of(result.graph)
    (array,) = (node.name for node in result.graph if node.op == "TensorArrayV2")
    users = [node for node in result.graph if node.op in ("TensorArrayReadV2", "TensorArrayScatterV2")]
    assert all(f"loc:@{array}".encode() in node.attr("_class") for node in users)
    feeds = {"x:0": [1.0, -2.0]}
    assert_same(values(graph, ["out:0"], feeds), values(result.graph, ["out:0"], feeds))


def _waiting(doubled: Any) -> Any:
    with gm.control_dependencies([doubled]):
        ops.tanh(gm.constant(4.0), name="free")
        return ops.tanh(gm.placeholder(gm.float32, [], name="x"))


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    ("pass_", "amount"),
    [
        (RemoveControlEdges(), _waiting),
        (MaterializeShapes(), lambda doubled: gm.cast(ops.size(gm.stack([doubled, doubled])), gm.float32)),
        (SimplifyArithmetic(), lambda doubled: gm.cast(gm.cast(doubled, gm.int32) * 0, gm.float32)),
    ],
)
def test_what_reads_a_variable_stays_before_what_writes_it(pass_: Any, amount: Any, use_resource: bool) -> None:
    """What has no effect, and whose value nobody needs, still says by its place what is read."""

    def build() -> None:
        v = gm.get_variable("v", [], initializer=gm.initializers.Constant(1.0), use_resource=use_resource)
        doubled = ops.mul(v.read_value(), 2.0, name="doubled")
        written = v.assign_add(amount(doubled))
        with gm.control_dependencies([written]):
            gm.constant(0.0, name="out")

    graph = made_graph(build)
    made = apply(pass_, graph, ["doubled", "out"])
    assert made.modified and made.graph.node("doubled") in _before(made.graph.node("out"))
    alone = made_graph(build)  # where nothing comes behind, it may go
    alone.node("out").control_inputs = []
    made = apply(pass_, alone, ["doubled", "free"] if "free" in alone else ["doubled"])
    assert made.modified and all(not node.control_inputs for node in made.graph if node.name == "free")


def _before(node: Node) -> set[Node]:
    """All that a node waits for."""
    found: set[Node] = set()
    waiting = [node]
    while waiting:
        at = waiting.pop()
        new = [source for source in (*(s for s, _ in at.inputs), *at.control_inputs) if source not in found]
        found.update(new)
        waiting += new
    return found


def test_a_product_that_becomes_one_of_a_tensor_with_itself() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [4, 20, 20], name="x")
        ops.batch_mat_mul_v2(gm.tanh(x, name="a"), gm.tanh(x, name="b"), adj_y=True, name="y")

    graph = made_graph(build)
    made = apply(CommonSubexpressions(), graph, ["y"], ["x"]).graph
    assert ops_of(made) == ["BatchMatMulV2", "Placeholder", "Tanh"]
    x = np.random.default_rng(1).normal(size=(4, 20, 20)).astype(np.float32)
    (before,), (after,) = (values(each, ["y:0"], {"x:0": x}) for each in (graph, made))
    size = np.abs(np.tanh(x))
    # twenty products are added up, in one order or another: twice the bound of a sum's error (Higham, section 3.1)
    bound = 2 * 20 * np.finfo(np.float32).eps * (size @ size.transpose(0, 2, 1))
    assert (np.abs(after - before) <= bound).all()
