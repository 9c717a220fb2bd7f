"""The graph while it is made: scopes, collections, op constructors and their messages, variables, control flow."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction import session_stack
from toolkit.client.flow.contexts import CondContext, WhileContext
from toolkit.errors import GraphError, GraphmillError, UsageError
from toolkit.graph import opdefs


@pytest.fixture
def graph() -> Any:
    made = gm.Graph()
    with made.as_default():
        yield made


# -- the graph ----------------------------------------------------------------------------------------------------


def test_default_graphs_are_per_thread(graph: Any) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(gm.get_default_graph()))
    thread.start()
    thread.join()
    assert gm.get_default_graph() is graph
    assert found[0] is not graph
    with pytest.raises(GraphError, match="cannot be used inside"):
        gm.reset_default_graph()


def test_the_process_wide_graph() -> None:
    first = gm.get_default_graph()
    assert gm.get_default_graph() is first
    gm.reset_default_graph()
    assert gm.get_default_graph() is not first


def test_looking_up(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [2], name="x")
    assert graph.get_tensor_by_name("x:0") is x
    assert graph.get_operation_by_name("x") is x.op
    assert graph.as_graph_element(x) is x and graph.as_graph_element("x") is x.op
    assert (x + 1.0).op.inputs[0] is x and x.consumers()[0].name == "add"
    with pytest.raises(GraphError, match="there is no node 'y'"):
        graph.get_operation_by_name("y")
    with pytest.raises(GraphError, match="there is no tensor 'x:1': Placeholder 'x' has 1 output"):
        graph.get_tensor_by_name("x:1")
    with pytest.raises(GraphError, match="'x' names an operation; a tensor's name ends in its index"):
        graph.get_tensor_by_name("x")
    with pytest.raises(GraphError, match="is not an element of this graph"):
        gm.Graph().as_graph_element(x)
    with pytest.raises(UsageError, match="neither a tensor nor an operation"):
        graph.as_graph_element(3)


def test_finalized_graphs_refuse_nodes(graph: Any) -> None:
    graph.finalize()
    assert graph.finalized
    with pytest.raises(GraphError, match="the graph is finalized and cannot be changed"):
        gm.constant(1)


def test_bad_names(graph: Any) -> None:
    for name in ("a b", "-a", "a:0", "_x"):
        with pytest.raises(GraphError, match="is not a"):
            gm.constant(1, name=name)
        with pytest.raises(GraphError, match="is not a scope name"), gm.name_scope(name):
            pass
    with graph.name_scope("ok"), graph.name_scope("-inner"):
        assert gm.constant(1).op.name == "ok/-inner/Const"


def test_a_failed_node_leaves_nothing_behind(graph: Any) -> None:
    a, b = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.float32, [2, 3])
    before = [node.name for node in graph.core]
    with pytest.raises(GraphError, match="MatMul with inputs"):
        ops.mat_mul(a, b)
    assert [node.name for node in graph.core] == before


def test_collections(graph: Any) -> None:
    with gm.name_scope("s"):
        a = gm.constant(1, name="a")
    b = gm.constant(2, name="b")
    for tensor in (a, b):
        graph.add_to_collections(["c", "d", "c"], tensor)
    assert graph.get_collection("c") == [a, b]
    assert graph.get_collection("c", "s/") == [a]
    graph.get_collection_ref("c").pop()
    assert graph.get_collection("c") == [a]
    graph.clear_collection("c")
    assert graph.get_collection("c") == []


def test_containers_and_attribute_scopes(graph: Any) -> None:
    with gm.container("box"):
        v = gm.Variable(1.0)
    assert v.op.get_attr("container") == b"box"
    with graph.attr_scope({"_mark": "m"}):
        a = gm.constant(1)
        with graph.attr_scope({"_mark": None}):
            b = gm.constant(1)
    assert a.op.get_attr("_mark") == b"m" and not b.op.has_attr("_mark")


def test_colocation(graph: Any) -> None:
    with gm.device("/cpu:1"):
        a = gm.constant(1, name="a")
    b = gm.constant(1, name="b")
    with gm.device("/gpu:0"), gm.colocate_with(a), gm.colocate_with(b.op):
        c = gm.constant(1)
        with gm.colocate_with(b, ignore_existing=True):
            d = gm.constant(1)
    assert c.op.get_attr("_class") == [b"loc:@a", b"loc:@b"] and c.device == "/device:CPU:1"
    assert d.op.get_attr("_class") == [b"loc:@b"] and d.device == ""
    with gm.colocate_with(c):
        assert gm.constant(1).op.get_attr("_class") == [b"loc:@a", b"loc:@b"]
    with graph.control_dependencies(["a"]):
        assert gm.constant(1).op.control_inputs == [a.op]
    with pytest.raises(GraphError, match=r"'b_'.*did you mean 'b'"):
        graph.control_dependencies(["b_"]).__enter__()
    with pytest.raises(UsageError, match="'a' is a name; give the operation or tensor itself; did you mean 'a'"):
        graph.colocate_with("a").__enter__()
    with pytest.raises(UsageError, match="'jb:x' is not a device name"), gm.device("jb:x"):
        pass
    for short, whole in (("gpu:1", "/device:GPU:1"), ("cpu", "/device:CPU:*"), ("job:w/gpu", "/job:w/device:GPU:*")):
        with graph.control_dependencies(None), gm.device(short):
            assert gm.constant(1).device == whole


def test_graphs_do_not_mix(graph: Any) -> None:
    other = gm.Graph()
    with other.as_default():
        y = gm.constant(1.0, name="y")
    x = gm.constant(1.0, name="x")
    with pytest.raises(GraphError, match="'y:0' and 'x:0' are in different graphs"):
        ops.add_v2(x, y)


def test_tensors_have_no_value(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [None], name="x")
    with pytest.raises(GraphError, match="'x:0' has no value while the graph is built; use cond"):
        bool(x)
    with pytest.raises(GraphError, match="cannot be iterated over while the graph is built"):
        list(x)
    with pytest.raises(TypeError, match=r"'Const:0' of shape \[2\] cannot be iterated over"):
        _first, _second = gm.constant([1, 2])
    with pytest.raises(NotImplementedError, match="'x:0' has no value while the graph is built"):
        np.asarray(x)
    x.set_shape([3])
    assert x.shape.as_list() == [3] and gm.shape(x).op.type == "Const"
    with pytest.raises(GraphError, match=r"'x:0' has shape \[3\], which cannot be set to \[4\]"):
        x.set_shape([4])
    for key in ("a", 1.5, gm.constant([0])):
        with pytest.raises(GraphError, match="cannot index"):
            _ = x[key]


def test_eval_needs_a_session(graph: Any) -> None:
    x = gm.constant(1)
    with pytest.raises(UsageError, match="eval of 'Const:0' needs a session"):
        x.eval()
    with pytest.raises(UsageError, match="run of 'Const' needs a session"):
        x.op.run()

    class Fake:
        def __init__(self, graph: Any):
            self.graph = graph

        def run(self, fetches: Any, feed_dict: Any = None) -> Any:
            return fetches.name, feed_dict

    with session_stack.default_session(Fake(graph)):
        assert x.eval({"a": 1}) == ("Const:0", {"a": 1})
        assert gm.Variable(1.0, name="v").eval() == ("v/read:0", None)
    with session_stack.default_session(Fake(gm.Graph())), pytest.raises(UsageError, match="runs another graph"):
        x.eval()
    assert gm.get_default_session() is None


def test_output_shapes_are_written_on_request(graph: Any) -> None:
    gm.placeholder(gm.float32, [None, 2], name="x")
    assert "_output_shapes" not in graph.as_graph_def().node[0].attr
    shapes = graph.as_graph_def(add_shapes=True).node[0].attr["_output_shapes"].list.shape
    assert [d.size for d in shapes[0].dim] == [-1, 2]


# -- op constructors ------------------------------------------------------------------------------------------------


def test_every_op_has_a_function() -> None:
    public = [op for op in opdefs.names() if not op.startswith("_") and ">" not in op]
    names = {ops.snake_case(op) for op in public}
    assert len(names) == len(public)
    assert ops.snake_case("Conv2DBackpropInput") == "conv2d_backprop_input"
    assert {"mat_mul", "add_v2", "l2_loss", "lrn", "fused_batch_norm_v3", "var_handle_op"} <= names
    for op in public:
        assert callable(getattr(ops, op))
    with pytest.raises(AttributeError, match="there is no op function 'nothing'"):
        _ = ops.nothing


def test_arguments_by_position_and_name(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [1, 4, 4, 1], name="x")
    w = np.ones((2, 2, 1, 1), np.float32)
    by_position = ops.conv2d(x, w, [1, 1, 1, 1], "SAME", name="a")
    by_name = ops.Conv2D(input=x, filter=w, strides=[1, 1, 1, 1], padding="SAME", name="b")
    assert by_position.op.node.op == by_name.op.node.op and str(by_name.shape) == "[1,4,4,1]"
    assert ops.no_op(name="n").type == "NoOp"
    values, places = ops.top_kv2([1.0, 2.0], 1)
    assert values.dtype is gm.float32 and places.dtype is gm.int32
    parts, rest = ops.unique_with_counts([1, 1])[:2]
    assert parts.name.endswith(":0") and rest.name.endswith(":1")
    assert len(ops.split(0, [1.0, 2.0], num_split=2)) == 2
    with pytest.raises(UsageError, match="Neg takes at most 1 arguments"):
        ops.neg(x, x, x)
    with pytest.raises(UsageError, match="Neg got 'x' twice"):
        ops.neg(x, x=x)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "expected"),
    [
        ("Nothing", [], {}, "unknown op 'Nothing'"),
        ("MatMul", [1.0], {}, r"MatMul takes 2 input\(s\) \(a, b\), got 1"),
        ("MatMul", {"a": [[1.0]], "c": 1}, {}, "MatMul has no input 'c'"),
        ("AddV2", [1.0, True], {}, "input 'y' of AddV2: expected float32, but got True of type 'bool'"),
        ("AddV2", [1, 1.5], {}, "input 'y' of AddV2: expected int32, but got 1.5 of type 'float'"),
        ("AddN", [3], {}, "input 'inputs' of AddN takes a list of tensors, not 3"),
        ("AddN", [[]], {}, "'N' must be at least 1, not 0"),
        ("Pack", [[1.0, "a"]], {}, "input 'values' of Pack: expected float32, but got 'a' of type 'str'"),
        ("Conv2D", [1.0, 1.0], {}, "Conv2D needs the attribute 'strides'"),
        ("Relu", [1.0], {"alpha": 1}, "Relu has no attribute 'alpha'.*it has: T"),
        ("Relu", ["text"], {}, "string is not allowed for 'T'; allowed: "),
        ("MatMul", [[[1.0]], [[1.0]]], {"transpose_a": "yes"}, "'transpose_a' of MatMul must be a bool, not 'yes'"),
        ("Split", [0, 1.0], {"num_split": 0}, "'num_split' must be at least 1, not 0"),
        ("Split", [0, 1.0], {"num_split": 1.5}, "'num_split' of Split must be an int, not 1.5"),
        ("Cast", [1.0], {"DstT": "float12"}, "attribute 'DstT' of Cast: 'float12' is not a data type"),
        ("Conv2D", [1.0, 1.0], {"strides": 1, "padding": "SAME"}, r"'strides' of Conv2D must be list\(int\), not 1"),
        ("Identity", [{}], {}, "cannot become a tensor"),
        ("Identity", [[[1], [1, 2]]], {}, "input 'input' of Identity: not a tensor"),
        ("Identity", [1.5], {"T": "int32"}, "input 'input' of Identity: expected int32, but got 1.5"),
        ("IdentityN", [[1.0, 2]], {"T": ["float32"]}, "takes 1 tensors, got 2"),
        ("Assign", [1.0, 1.0], {}, "input 'ref' of Assign must be a reference variable"),
        ("Const", [], {"dtype": "int32"}, "Const needs the attribute 'value'"),
    ],
)
def test_what_op_constructors_refuse(graph: Any, op: str, inputs: Any, attrs: Any, expected: str) -> None:
    with pytest.raises(GraphError, match=expected):
        gm.create_op(op, inputs, attrs)


def test_types_must_agree(graph: Any) -> None:
    x, i = gm.placeholder(gm.float32, name="x"), gm.placeholder(gm.int32, name="i")
    with pytest.raises(GraphError, match="input 'y' of AddV2 has type int32 that does not match float32 of input 'x'"):
        ops.add_v2(x, i)
    with pytest.raises(GraphError, match="'i:0' has type int32, where float32 is wanted; cast it"):
        _ = x + i
    with pytest.raises(GraphError, match="has type int32 that does not match expected type float32"):
        ops.concat_v2([x, i], 0)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [(1, None, "int32"), (1.0, None, "float32"), (2**40, None, "int64"), ([], None, "float32"), (True, None, "bool"),
     ("a", None, "string"), (b"a", None, "string"), (1j, None, "complex128"), (np.float64(1), None, "float64"),
     (np.ones(2, np.uint8), None, "uint8"), (1, "bfloat16", "bfloat16"), (1, float, "float32"),
     ([1, 2.5], None, "float32"),
     (np.array([1.7]), "int32", "int32")],
)  # fmt: skip
def test_types_of_constants(graph: Any, value: Any, dtype: Any, expected: str) -> None:
    assert gm.constant(value, dtype).dtype.name == expected


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        (1.5, {"dtype": "int32"}, "expected int32, but got 1.5 of type 'float'"),
        (300, {"dtype": "uint8"}, "300 does not fit into uint8"),
        ("a", {"dtype": "float32"}, "expected float32, but got 'a'"),
        ([1, 2, 3], {"shape": [2]}, r"3 values do not fit into the shape \[2\]"),
        (1, {"shape": [2], "verify_shape": True}, r"the constant has shape \[\], but \[2\] is asked for"),
        ([[1], [2, 3]], {}, "not a tensor"),
        (1, {"dtype": "int33"}, "'int33' is not a data type"),
        (1, {"dtype": object()}, "is not a data type"),
    ],
)
def test_constants_that_are_none(graph: Any, value: Any, options: Any, expected: str) -> None:
    with pytest.raises(GraphmillError, match=expected):
        gm.constant(value, **options)


# -- variables ------------------------------------------------------------------------------------------------------


def test_variable_scope_errors(graph: Any) -> None:
    gm.get_variable("v", [2])
    with pytest.raises(GraphError, match="variable 'v' exists already; open its scope with reuse=True"):
        gm.get_variable("v", [2])
    with gm.variable_scope("", reuse=True):
        assert gm.get_variable("v").op.name == "v"
        with pytest.raises(GraphError, match=r"variable 'v' has shape \[2\]; \[3\] is asked for"):
            gm.get_variable("v", [3])
        with pytest.raises(GraphError, match="variable 'v' has type float32; int32 is asked for"):
            gm.get_variable("v", [2], gm.int32)
        with pytest.raises(GraphError, match="variable 'w' does not exist, and the scope only reuses variables"):
            gm.get_variable("w", [2])
    with pytest.raises(GraphError, match="needs a fully known shape"):
        gm.get_variable("u", [None])
    with pytest.raises(GraphError, match="has no setting 'initialiser'; did you mean 'initializer'"):
        gm.variable_scope("s", initialiser=1).__enter__()
    with pytest.raises(GraphError, match="needs a name or a default name"):
        gm.variable_scope(None).__enter__()
    with pytest.raises(UsageError, match="needs an initializer"):
        gm.get_variable("s", [2], gm.resource)


def test_variable_errors(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [None])
    with pytest.raises(GraphError, match=r"the initial value of variable 'v' has shape \[\?\]; it must be fully known"):
        gm.Variable(x, name="v")
    assert gm.Variable(x, name="loose", validate_shape=False).shape.rank is None
    resource = gm.Variable([1.0], use_resource=True, name="r")
    with pytest.raises(GraphError, match=r"cannot assign a value of shape \[2\] to 'r:0' of shape \[1\]"):
        resource.assign([1.0, 2.0])
    with pytest.raises(GraphError, match="'r:0' is a resource variable and has no reference"):
        gm.convert_to_tensor(resource, as_ref=True)
    with pytest.raises(GraphError, match="has type float32, where int32 is wanted"):
        gm.convert_to_tensor(resource, gm.int32)
    with pytest.raises(GraphError, match="is made in a loop or conditional; pass a function"):
        gm.cond(True, lambda: gm.Variable(gm.constant(1.0)).to_tensor(), lambda: gm.constant(1.0))


def test_partitions(graph: Any) -> None:
    with gm.variable_scope("p", partitioner=gm.fixed_size_partitioner(3, axis=1)):
        v = gm.get_variable("v", [2, 8])
    assert [part.shape.as_list() for part in v] == [[2, 3], [2, 3], [2, 2]]
    assert v.parts[1].slice_info.spec == "2 8 0,2:3,3"
    assert v.to_tensor().shape.as_list() == [2, 8]
    proto = v.parts[2].to_proto().save_slice_info_def
    assert (proto.full_name, list(proto.var_offset), list(proto.var_shape)) == ("p/v", [0, 6], [2, 2])
    with gm.variable_scope("p", reuse=True, partitioner=gm.fixed_size_partitioner(3, axis=1)):
        assert gm.get_variable("v", [2, 8]) is v
    with pytest.raises(GraphError, match="cuts 2 axes"):
        gm.get_variable("w", [4, 4], partitioner=lambda shape, dtype: [2, 2])
    with pytest.raises(GraphError, match="which is not possible"):
        gm.get_variable("w", [2, 4], partitioner=lambda shape, dtype: [3, 1])
    shape, dtype = gm.constant(0.0, shape=[1000, 4]).shape, gm.float32
    assert gm.min_max_variable_partitioner(8, min_slice_size=4000)(shape, dtype) == [4, 1]
    assert gm.variable_axis_size_partitioner(4000)(shape, dtype) == [4, 1]


def test_regularization_and_custom_getters(graph: Any) -> None:
    def getter(make: Any, name: str, **options: Any) -> Any:
        return gm.identity(make(name, **options), name=name.replace("/", "_") + "_seen")

    with gm.variable_scope("s", regularizer=gm.layers.l2_regularizer(0.1), custom_getter=getter):
        seen = gm.get_variable("v", [2])
    assert seen.op.name == "s_v_seen"
    losses = graph.get_collection("regularization_losses")
    assert [loss.op.name for loss in losses] == ["s/v/Regularizer/l2_regularizer"]


# -- control flow ---------------------------------------------------------------------------------------------------


def test_contexts_are_collected(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [], name="x")
    gm.cond(x > 0.0, lambda: x + 1.0, lambda: gm.while_loop(lambda a: a < 0.0, lambda a: a + 1.0, [x]))
    meta = gm.to_meta_graph()
    assert len(meta.collections["cond_context"]) == 2 and "while_context" not in meta.collections
    true, false = graph.get_collection("cond_context")
    assert isinstance(true, CondContext) and true.branch == 1 and false.branch == 0
    assert isinstance(false.nested[0], WhileContext)
    assert false.to_proto().nested_contexts[0].while_ctxt.context_name == "cond/while/while_context"


def test_control_flow_errors(graph: Any) -> None:
    x = gm.placeholder(gm.float32, [], name="x")
    with pytest.raises(GraphError, match="true_fn of the conditional returns None"):
        gm.cond(x > 0.0, lambda: None, lambda: x)
    with pytest.raises(GraphError, match="return 2 and 1 values; both must return the same structure"):
        gm.cond(x > 0.0, lambda: [x, x], lambda: x)
    with pytest.raises(GraphError, match="result 0 of the conditional has type float32 if true and int32 if false"):
        gm.cond(x > 0.0, lambda: x, lambda: gm.constant(1))
    with pytest.raises(GraphError, match="has type float32, where bool is wanted"):
        gm.cond(x, lambda: x, lambda: x)
    with pytest.raises(GraphError, match="a loop needs at least one loop variable"):
        gm.while_loop(lambda: True, lambda: None, [])
    with pytest.raises(GraphError, match="parallel_iterations must be at least 1, not 0"):
        gm.while_loop(lambda i: True, lambda i: i, [x], parallel_iterations=0)
    with pytest.raises(GraphError, match="the body returns 2 values for 1 loop variables"):
        gm.while_loop(lambda i: i < 1.0, lambda i: (i, i), [x])
    with pytest.raises(GraphError, match="loop variable 0 has type float32, but the body returns int32"):
        gm.while_loop(lambda i: i < 1.0, lambda i: gm.constant(1), [x])
    with pytest.raises(
        GraphError, match=r"loop variable 0 has shape \[1\], but after one iteration \[2\]; give shape_inv"
    ):
        gm.while_loop(lambda i: True, lambda i: gm.concat([i, i], 0), [gm.ones([1])])
    loose = gm.while_loop(
        lambda i: gm.size(i) < 9, lambda i: gm.concat([i, i], 0), [gm.ones([1])], shape_invariants=[[None]]
    )
    assert str(loose.shape) == "[?]"
    with pytest.raises(GraphError, match="case needs at least one pair"):
        gm.case([])
    assert graph.control_flow_context is None


def test_queues_check_their_components(graph: Any) -> None:
    queue = gm.queues.FIFOQueue(4, [gm.float32, gm.int32], [[2], []], names=["a", "b"])
    assert queue.enqueue({"a": [1.0, 2.0], "b": 1}).type == "QueueEnqueueV2"
    assert set(queue.dequeue_many(3)) == {"a", "b"}
    with pytest.raises(GraphError, match="takes a mapping with the keys a, b"):
        queue.enqueue([1.0, 2])
    with pytest.raises(GraphError, match=r"component 0 of queue 'fifo_queue' has shape \[2\], got \[3\]"):
        queue.enqueue({"a": [1.0, 2.0, 3.0], "b": 1})
    plain = gm.queues.RandomShuffleQueue(10, 2, gm.float32, seed=3)
    with pytest.raises(GraphError, match=r"takes 1 component\(s\), got 2"):
        plain.enqueue([1.0, 2.0])
    runner = gm.queues.QueueRunner(plain, [plain.enqueue(1.0)] * 2)
    gm.queues.add_queue_runner(runner)
    proto = runner.to_proto()
    assert proto.enqueue_op_name == [runner.enqueue_ops[0].name] * 2
    assert list(proto.queue_closed_exception_types) == [11]
    assert len(gm.to_meta_graph().collections["queue_runners"]) == 1
