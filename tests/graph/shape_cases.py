"""Generated single-op graphs for comparing shape inference with TensorFlow's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.opdefs import AttrDef, OpDef
from toolkit.graph.shape import Shape

PLAIN = [dtypes.float32, dtypes.int32, dtypes.int64, dtypes.bool_, dtypes.string, dtypes.float64, dtypes.complex64]
#: inputs that shape functions read the value of, with what values they take
AXES = {"axis", "dim", "dimension", "concat_dim", "split_dim", "reduction_indices", "axes", "dims"}
SIZES = {
    "shape", "size", "dense_shape", "multiples", "block_shape", "input_sizes", "filter_sizes", "output_shape",
    "orig_input_shape", "begin", "end", "strides", "num_segments", "depth", "k", "num", "n", "num_samples", "start",
    "limit", "delta", "perm", "paddings", "crops", "ksize", "fft_length", "seed", "sizes", "size_splits",
    "num_rows", "num_cols", "num_elements", "element_shape", "sparse_shape", "input_shape",
    "output_dim0", "nbins", "stop", "s0", "s1", "lengths", "min_length", "output_size", "crop_size",
}  # fmt: skip


def random_dims(rng: random.Random, rank: int | None = None) -> Shape:
    if rank is None:
        rank = rng.choice([0, 1, 1, 2, 2, 3, 4, 4, 5, -1])
    if rank < 0:
        return Shape(None)
    return Shape([rng.choice([1, 2, 2, 3, 4, 6, 8, None]) for _ in range(rank)])


def random_attr(rng: random.Random, attr: AttrDef, name: str) -> Any:
    kind = attr.type
    if kind.startswith("list("):
        inner = AttrDef(attr.name, kind[5:-1], None, False, attr.allowed, None)
        count = rng.choice([1, 2, 2, 3, 4, 4])
        if attr.name in ("strides", "ksize", "ksizes", "dilations", "rates"):
            spatial = [rng.choice([1, 1, 2, 3]) for _ in range(3 if "3D" in name or "Volume" in name else 2)]
            return [1, *spatial, 1]
        if attr.minimum:
            count = max(count, attr.minimum)
        return [random_attr(rng, inner, name) for _ in range(count)]
    if attr.allowed is not None:
        return rng.choice(attr.allowed)
    match kind:
        case "type":
            return rng.choice(PLAIN)
        case "int":
            low = attr.minimum if attr.minimum is not None else -1
            return rng.randint(low, low + 3)
        case "float":
            return rng.choice([0.5, 1.0, 2.0])
        case "bool":
            return rng.random() < 0.5
        case "string":
            return b""
        case "shape":
            return random_dims(rng)
        case "func":
            return FuncRef("f")
        case _:
            raise GraphmillError(f"no random {kind}")


def random_attrs(rng: random.Random, op: OpDef) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for name, attr in op.attrs.items():
        if name.startswith("_"):
            continue
        if attr.has_default and rng.random() < 0.5:
            continue
        if name == "batch_dims":
            attrs[name] = rng.choice([0, 0, 1])
        elif op.name == "OneHot" and name == "axis":
            attrs[name] = rng.choice([-1, 0])  # beyond the rank TensorFlow's answer means nothing
        else:
            attrs[name] = random_attr(rng, attr, op.name)
    return attrs


def blur(rng: random.Random, shape: Shape) -> Shape:
    """The shape with some sizes, or all of it, forgotten."""
    if rng.random() < 0.1:
        return Shape(None)
    return Shape([None if rng.random() < 0.15 else d for d in shape])


def _convolution(rng: random.Random, attrs: dict[str, Any]) -> list[Shape]:
    channels_last = attrs.get("data_format", b"NHWC") == b"NHWC"
    attrs["T"] = dtypes.float32
    batch, depth = rng.randint(1, 4), rng.choice([1, 2, 3, 4])
    height, width = rng.randint(4, 12), rng.randint(4, 12)
    kernel = Shape([rng.randint(1, 3), rng.randint(1, 3), depth, rng.choice([2, 4, 6])])
    steps = [rng.randint(1, 3), rng.randint(1, 3)]
    rates = [rng.choice([1, 1, 2]), rng.choice([1, 2])]
    attrs["padding"] = rng.choice([b"SAME", b"VALID", b"EXPLICIT"])
    attrs.pop("explicit_paddings", None)
    pads = [rng.randint(0, 2) for _ in range(4)]
    if channels_last:
        source, attrs["strides"], attrs["dilations"] = [batch, height, width, depth], [1, *steps, 1], [1, *rates, 1]
        pads = [0, 0, *pads, 0, 0]
    else:
        source, attrs["strides"], attrs["dilations"] = [batch, depth, height, width], [1, 1, *steps], [1, 1, *rates]
        pads = [0, 0, 0, 0, *pads]
    if attrs["padding"] == b"EXPLICIT":
        attrs["explicit_paddings"] = pads
    return [blur(rng, Shape(source)), blur(rng, kernel)]


def _einsum(rng: random.Random, attrs: dict[str, Any]) -> list[Shape]:
    equation = rng.choice([
        "ab,bc->ac", "abc,acd->abd", "...ij,...jk->...ik", "abcd->dcba", "ij->", "i,j->ij", "a...b->b...a", "ii->i",
        "bqhd,bkhd->bhqk", "a...,...b->ab...",
    ])  # fmt: skip
    terms = equation.partition("->")[0].split(",")
    sizes = {label: rng.randint(1, 5) for label in "abcdijkhq"}
    extra = [rng.randint(2, 4) for _ in range(rng.choice([0, 1, 2]))]
    attrs.clear()
    attrs.update(equation=equation.encode(), N=len(terms), T=dtypes.float32)
    shapes: list[Shape] = []
    for term in terms:
        before, dots, after = term.partition("...")
        middle = extra[rng.randint(0, len(extra)) :] if dots else []
        shapes.append(blur(rng, Shape([*(sizes[c] for c in before), *middle, *(sizes[c] for c in after)])))
    return shapes


#: ops that random shapes hardly ever fit; they may change the attributes
RECIPES: dict[str, Callable[[random.Random, dict[str, Any]], list[Shape]]] = {
    "Conv2D": _convolution,
    "DepthwiseConv2dNative": _convolution,
    "Einsum": _einsum,
}


def random_node(op_name: str, seed: int) -> Graph:
    """A graph of placeholders and small constants that feed one node "n" of the op.

    Raises:
        GraphmillError: no such graph can be made (tensor attributes, resource inputs of unknown origin).
    """
    rng = random.Random(f"{op_name}{seed}")
    op = opdefs.get(op_name)
    graph = Graph()
    attrs = random_attrs(rng, op)
    if op_name in RECIPES:
        shapes = RECIPES[op_name](rng, attrs)
        inputs = [
            graph.add("Placeholder", f"i{i}", attrs={"dtype": attrs.get("T", dtypes.float32), "shape": shape})
            for i, shape in enumerate(shapes)
        ]
        graph.add(op_name, "n", inputs, attrs=attrs)
        return graph
    common = random_dims(rng)
    inputs = []
    position = 0
    for arg in op.inputs:
        for dtype in op.expand((arg,), {**{k: a.default for k, a in op.attrs.items() if a.has_default}, **attrs}):
            inputs.append(random_input(rng, graph, arg.name, dtype, position, common, op_name))
            position += 1
    graph.add(op_name, "n", inputs, attrs=attrs)
    return graph


def random_input(
    rng: random.Random, graph: Graph, arg: str, dtype: DType, position: int, common: Shape, op: str
) -> Any:
    name = f"i{position}"
    if dtype.is_ref:
        shape = Shape([d or 1 for d in common.dims]) if common.dims is not None else Shape([2])
        return graph.add("VariableV2", name, attrs={"shape": shape, "dtype": dtype.base})
    if (dtype is dtypes.resource and "Variable" in op) or (dtype is dtypes.resource and "Resource" in op):
        return graph.add(
            "VarHandleOp", name, attrs={"shape": common, "dtype": graph_dtype(rng), "container": "", "shared_name": ""}
        )
    base = dtype.base
    if base in (dtypes.int32, dtypes.int64) and rng.random() < (0.75 if arg in SIZES | AXES else 0.1):
        return small_constant(rng, graph, name, base, arg, common)
    shape = common
    roll = rng.random()
    if roll < 0.15:
        shape = random_dims(rng)
    elif roll < 0.3:
        shape = random_dims(rng, rng.choice([0, 1, 2]))
    elif roll < 0.45 and common.dims:
        shape = Shape([None if rng.random() < 0.4 else d for d in common.dims])
    elif roll < 0.6 and common.dims:
        shape = Shape(common.dims[rng.randint(0, len(common.dims)) :])
    return graph.add("Placeholder", name, attrs={"dtype": base, "shape": shape})


def graph_dtype(rng: random.Random) -> DType:
    return rng.choice([dtypes.float32, dtypes.float32, dtypes.int32, dtypes.int64])


def small_constant(rng: random.Random, graph: Graph, name: str, dtype: DType, arg: str, common: Shape) -> Any:
    rank = len(common.dims) if common.dims is not None else 2
    if arg in AXES:
        axes = [rng.randint(-1, max(rank - 1, 0)) for _ in range(rng.choice([1, 1, 2]))]
        return constant(graph, name, dtype, axes[0] if rng.random() < 0.6 else axes)
    if arg == "perm":
        perm = list(range(rank))
        rng.shuffle(perm)
        return constant(graph, name, dtype, perm)
    if arg in ("paddings", "crops"):
        return constant(graph, name, dtype, [[rng.randint(0, 2), rng.randint(0, 2)] for _ in range(max(rank, 1))])
    if arg in ("num_segments", "depth", "k", "num", "n", "num_samples", "start", "limit", "delta", "nbins", "stop"):
        return constant(graph, name, dtype, rng.choice([0, 1, 2, 3, 7, -1]))
    if arg in ("ksize", "strides"):
        return constant(
            graph, name, dtype, [1, rng.choice([1, 2]), rng.choice([1, 2]), 1][: 4 if rng.random() < 0.7 else rank]
        )
    count = rng.choice([rank, rank, 1, 2])
    low = -2 if arg in ("begin", "end") else rng.choice([-1, 0, 1, 1])
    return constant(graph, name, dtype, [rng.randint(low, 4) for _ in range(count)])


def constant(graph: Graph, name: str, dtype: DType, value: Any) -> Any:
    from schemas import tensor_pb2

    proto = tensor_pb2.TensorProto(dtype=dtype.enum)
    sizes: list[int] = []
    flat = value
    while isinstance(flat, list):
        sizes.append(len(flat))
        if flat and isinstance(flat[0], list):
            flat = [x for row in flat for x in row]
            sizes.append(len(flat) // sizes[0])
        break
    proto.tensor_shape.SetInParent()
    for size in sizes:
        proto.tensor_shape.dim.add(size=size)
    items = flat if isinstance(flat, list) else [flat]
    proto.tensor_content = b"".join(int(x).to_bytes(dtype.size, "little", signed=True) for x in items)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": proto})


def tensorflow_shapes(tf: Any, graph: Graph, name: str = "n") -> list[Shape] | None:
    """What TensorFlow infers for the node; None when it rejects the graph."""
    proto = tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())
    with tf.Graph().as_default() as imported:
        try:
            tf.import_graph_def(proto, name="")
        except ValueError:
            return None
        op = imported.get_operation_by_name(name)
        return [Shape(None if t.shape.rank is None else t.shape.as_list()) for t in op.outputs]


def at_least_as_specific(ours: Shape, theirs: Shape) -> bool:
    """Whether `ours` says everything that `theirs` says."""
    if theirs.dims is None:
        return True
    if ours.dims is None or len(ours.dims) != len(theirs.dims):
        return False
    return all(t is None or t == o for o, t in zip(ours.dims, theirs.dims, strict=True))
