"""Shape inference beside TensorFlow's own, on generated nodes and on real graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import models
from tests.graph.shape_cases import at_least_as_specific, constant, random_node, tensorflow_shapes
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.models.model import read_graph
from toolkit.graph import dtypes, opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap, constant_value, infer, infer_node
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes import registry
from toolkit.kernels import registry as kernels

F = dtypes.float32
SEEDS = 3
#: where we differ on purpose
DIFFERENT = {
    "ApproxTopK": "the size of its approximate output follows a device-dependent formula",
    "DenseBincount": "TensorFlow says scalar for a scalar input of unknown bin count; the kernel makes a vector",
    "Equal": "TensorFlow supposes that unknown sizes broadcast even where it must not fail if they do not",
    **dict.fromkeys(
        ("FFTND", "IFFTND", "RFFTND", "IRFFTND"), "TensorFlow says the input's sizes; the kernel's follow fft_length"
    ),
    "FractionalAvgPool": "TensorFlow says one element less for the pooling sequences than the kernel makes",
    "FractionalMaxPool": "TensorFlow says one element less for the pooling sequences than the kernel makes",
    "ExtractVolumePatches": "TensorFlow says rank 4 where sizes are unknown; the kernel makes rank 5",
    "RaggedTensorToSparse": "TensorFlow counts rows in ranks it does not check",
    "RaggedTensorToVariant": "TensorFlow counts one row less where there are no splits",
    "SparseReduceMax": "the values of the shape input are not followed",
    "SparseReduceSum": "the values of the shape input are not followed",
    "SparseSlice": "TensorFlow multiplies out the number of values",
    "SparseSplit": "TensorFlow multiplies out the number of values",
}
#: TensorFlow dies (not: raises) when asked about these with inputs they do not expect
DEADLY = {"BoostedTreesAggregateStats", "BoostedTreesPredict"}
OPS = [op for op in registry.names() if op not in DEADLY]


def compare(tf: Any, op: str, seed: int) -> bool:
    """Check one generated node; False when TensorFlow refuses it."""
    try:
        graph = random_node(op, seed)
        theirs = tensorflow_shapes(tf, graph)
    except (GraphmillError, TypeError, ValueError, OverflowError, tf.errors.OpError):
        return False  # the generator made something that is no node
    if theirs is None:
        return False
    ours = infer(graph).of(graph.node("n"))
    assert len(ours) == len(theirs), (op, seed)
    for mine, their in zip(ours, theirs, strict=True):
        inputs = [str(infer(graph)[o]) for o in graph.node("n").inputs]
        assert at_least_as_specific(mine, their), f"{op} seed {seed}: {mine}, TensorFlow {their}, inputs {inputs}"
    return True


@pytest.mark.tensorflow
@pytest.mark.parametrize("part", range(8))
def test_generated_nodes(tf: Any, part: int) -> None:
    taken = 0
    for op in OPS[part::8]:
        if op not in DIFFERENT:
            taken += sum(compare(tf, op, seed) for seed in range(SEEDS))
    assert taken > len(OPS) // 8  # most generated nodes are real ones


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_many_generated_nodes(tf: Any, part: int) -> None:
    for op in OPS[part::8]:
        if op not in DIFFERENT:
            for seed in range(SEEDS, 60):
                compare(tf, op, seed)


COMMON = [
    "Add", "AddN", "AvgPool", "BatchMatMulV2", "BiasAdd", "ConcatV2", "Conv2D", "DepthwiseConv2dNative", "Einsum",
    "ExpandDims", "Fill", "FusedBatchNormV3", "GatherV2", "MatMul", "MaxPool", "Mean", "OneHot", "Pack", "Pad",
    "Reshape", "ResizeBilinear", "ScatterNd", "Select", "SelectV2", "Slice", "Softmax", "Split", "SplitV",
    "SparseSoftmaxCrossEntropyWithLogits", "Squeeze", "StridedSlice", "Sum", "Tile", "TopKV2", "Transpose", "Unpack",
]  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("op", COMMON)
def test_common_ops(tf: Any, op: str) -> None:
    assert sum(compare(tf, op, seed) for seed in range(SEEDS, 40)) > 0


def test_every_op_with_a_kernel_has_a_shape_function() -> None:
    known = set(registry.names())
    lacking = sorted({row.op for row in kernels.all_kernels() if opdefs.find(row.op) is not None} - known)
    assert not lacking, "ops with kernels and without shape functions: " + " ".join(lacking)


def test_nearly_every_op_of_real_graphs_is_there() -> None:
    listed = Path(__file__).parent / "ops_in_practice.txt"
    known = set(registry.names())
    assert [op for op in listed.read_text().split() if op not in known] == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0", "lenet_ref", "control_flow_v1"])
def test_real_graphs(tf: Any, name: str) -> None:
    """Every tensor is known at least as well as in TensorFlow."""
    graph = read_graph(getattr(models, name)().path)
    shapes = infer(graph)
    proto = tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())
    known = 0
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(proto, name="")
        for op in imported.get_operations():
            for index, tensor in enumerate(op.outputs):
                theirs = Shape(None if tensor.shape.rank is None else tensor.shape.as_list())
                ours = shapes[Output(graph.node(op.name), index)]
                assert at_least_as_specific(ours, theirs), (op.name, op.type, str(ours), str(theirs))
                known += ours.is_fully_defined or (ours.rank is not None and theirs.rank is not None)
    assert known > 0.5 * len(graph)


def _while(graph: Graph, start: Shape, body_op: str) -> tuple[Any, Any]:
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": start})
    enter = graph.add("Enter", "enter", [x], attrs={"T": F, "frame_name": "loop"})
    merge = graph.add("Merge", "merge", [enter, enter], attrs={"T": F, "N": 2})
    yes = graph.add("Placeholder", "yes", attrs={"dtype": dtypes.bool_, "shape": Shape(())})
    cond = graph.add(
        "LoopCond", "cond", [graph.add("Enter", "e", [yes], attrs={"T": dtypes.bool_, "frame_name": "loop"})]
    )
    switch = graph.add("Switch", "switch", [merge, cond], attrs={"T": F})
    if body_op == "grow":
        axis = constant(graph, "axis", dtypes.int32, 0)
        body = graph.add(
            "ConcatV2", "body", [switch.output(1), switch.output(1), axis], attrs={"T": F, "N": 2, "Tidx": dtypes.int32}
        )
    else:
        body = graph.add("Relu", "body", [switch.output(1)], attrs={"T": F})
    merge.inputs[1] = graph.add("NextIteration", "next", [body], attrs={"T": F}).output()
    return merge, graph.add("Exit", "exit", [switch], attrs={"T": F})


def test_loop_keeps_what_the_body_keeps() -> None:
    graph = Graph()
    merge, exit_ = _while(graph, Shape([2, 3]), "keep")
    shapes = infer(graph)
    assert shapes[merge.output()] == shapes[exit_.output()] == Shape([2, 3])


def test_loop_widens_what_the_body_changes() -> None:
    graph = Graph()
    merge, exit_ = _while(graph, Shape([2, 3]), "grow")
    shapes = infer(graph)
    assert shapes[merge.output()] == shapes[exit_.output()] == Shape([None, 3])


def test_feeds_replace_shapes_and_hide_values() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 4])})
    target = constant(graph, "target", dtypes.int32, [2, 2])
    y = graph.add("Reshape", "y", [x, target], attrs={"T": F, "Tshape": dtypes.int32})
    assert infer(graph)[y.output()] == Shape([2, 2])
    assert infer(graph, {"target": Shape([2])})[y.output()] == Shape([None, None])
    with pytest.raises(GraphError, match="node 'y'"):
        infer(graph, {"x:0": Shape([3, 4])})
    assert infer(graph, {"x:0": Shape([3, 4])}, strict=False)[y.output()] == Shape(None)
    with pytest.raises(GraphError, match="there is no node 'z'"):
        infer(graph, {"z": Shape(())})


def test_batch_size_survives_shape_arithmetic() -> None:
    """reshape(x, [shape(x)[0], 6]) keeps the rank and the known size."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2, 3])})
    size = graph.add("Shape", "size", [x], attrs={"T": F})
    zero, one = (constant(graph, f"c{i}", dtypes.int32, [i]) for i in (0, 1))
    batch = graph.add(
        "StridedSlice", "batch", [size, zero, one, one],
        attrs={"T": dtypes.int32, "Index": dtypes.int32, "shrink_axis_mask": 1},
    )  # fmt: skip
    six = graph.add(
        "Mul", "six", [constant(graph, "two", dtypes.int32, 2), constant(graph, "three", dtypes.int32, 3)],
        attrs={"T": dtypes.int32},
    )  # fmt: skip
    target = graph.add("Pack", "target", [batch, six], attrs={"T": dtypes.int32, "N": 2})
    y = graph.add("Reshape", "y", [x, target], attrs={"T": F})
    assert constant_value(target.output()) == [None, 6]
    assert infer(graph)[y.output()] == Shape([None, 6])
    assert infer_node(y, [Shape([5, 2, 3]), Shape([2])], {1: [None, 6]}) == [Shape([5, 6])]


def test_variables_are_known_through_their_handles() -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", "v", attrs={"dtype": F, "shape": Shape([3, 5])})
    same = graph.add("Identity", "same", [handle], attrs={"T": dtypes.resource})
    read = graph.add("ReadVariableOp", "read", [same], attrs={"dtype": F})
    assert infer(graph)[read.output()] == Shape([3, 5])
    assert infer_node(read, [Shape(())]) == [Shape([3, 5])]
    wrong = graph.add("Placeholder", "wrong", attrs={"dtype": F, "shape": Shape([4])})
    graph.add("AssignVariableOp", "assign", [handle, wrong], attrs={"dtype": F})
    with pytest.raises(GraphError, match="AssignVariableOp with inputs"):
        infer(graph)


def test_shape_map_grows_with_a_graph() -> None:
    graph, shapes = Graph(), ShapeMap()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    y = graph.add("Relu", "y", [x], attrs={"T": F})
    assert shapes[y.output()] == Shape([2])
    x.attrs["shape"] = Shape([7])
    for node in (x, y):
        shapes.forget(node)
    assert shapes[y.output()] == Shape([7])


@pytest.mark.tensorflow
def test_function_bodies_are_followed(tf: Any) -> None:
    @tf.function
    def f(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.transpose(x), lambda: tf.ones([4, 3]))

    proto = f.get_concrete_function(tf.TensorSpec([3, 4])).graph.as_graph_def()
    from schemas.graph_pb2 import GraphDef

    graph = Graph.from_proto(GraphDef.FromString(proto.SerializeToString()))
    node = next(n for n in graph if n.op in ("If", "StatelessIf"))
    node.attrs["output_shapes"] = []
    assert infer(graph).of(node)[0] == Shape([4, 3])

    def handle(index: int) -> None:
        pytest.fail(f"input {index} is a number, for which the graph is not walked back")

    given = [infer(graph)[source] for source in node.inputs]
    assert infer_node(node, given, {}, handle)[0] == Shape([4, 3])
