"""What a picture says about a node: categories of ops, shapes, types, values of small constants."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from schemas import tensor_pb2
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import known_shape
from toolkit.graph.dtypes import DType
from toolkit.graph.node import CONTROL_FLOW_OPS, Node
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.graph.infer import ShapeMap
    from toolkit.graph.shapes.calls import Calls

#: nodes above which the shapes of a graph are not inferred: its pictures show boxes of many nodes anyway
MOST_INFERRED = 20_000

VARIABLE_OPS = frozenset({"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "TemporaryVariable"})
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
INPUT_OPS = PLACEHOLDERS | {"_Arg", "_DeviceArg"}
OUTPUT_OPS = frozenset({"_Retval", "_DeviceRetval"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: category -> ops; what starts with one of `_PREFIXES` or ends with one of `_SUFFIXES` needs no entry
_CATEGORIES: dict[str, frozenset[str]] = {
    "input or output": INPUT_OPS | OUTPUT_OPS,
    "variable": VARIABLE_OPS
    | {"ReadVariableOp", "DisableCopyOnRead", "HashTableV2", "MutableHashTableV2", "HashTable"},
    "constant": frozenset({"Const", "HostConst"}),
    "matrix product": _words(
        "MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 Einsum Conv1D Conv2D Conv3D DepthwiseConv2dNative "
        "Conv2DBackpropInput SparseMatMul FusedConv2DBiasActivation _FusedConv2D _FusedMatMul QuantizedConv2D "
        "QuantizedMatMul XlaDot XlaConv"
    ),
    "activation": _words(
        "Relu Relu6 Elu Selu LeakyRelu Sigmoid Tanh Softmax LogSoftmax Softplus Softsign Erf Erfc CRelu"
    ),
    "normalization or pooling": _words(
        "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 LRN MaxPool MaxPoolV2 AvgPool MaxPool3D AvgPool3D "
        "MaxPoolWithArgmax L2Normalize BatchNormWithGlobalNormalization Dropout"
    ),
    "shape": _words(
        "Reshape Squeeze ExpandDims Transpose Concat ConcatV2 Split SplitV Slice StridedSlice Pack Unpack Pad "
        "PadV2 MirrorPad Tile Shape ShapeN Size Rank Gather GatherV2 GatherNd Fill Range BroadcastTo "
        "ReverseV2 ReverseSequence OneHot ZerosLike OnesLike Identity IdentityN StopGradient Cast Bitcast "
        "InvertPermutation BroadcastGradientArgs ConcatOffset DepthToSpace SpaceToDepth SpaceToBatchND "
        "BatchToSpaceND Snapshot ResizeBilinear ResizeNearestNeighbor Where Select SelectV2"
    ),
    "state change": _words(
        "Assign AssignAdd AssignSub AssignVariableOp AssignAddVariableOp AssignSubVariableOp ScatterUpdate "
        "ScatterAdd ScatterSub CountUpTo ResourceCountUpTo VarIsInitializedOp IsVariableInitialized "
        "DestroyResourceOp"
    ),
    "control flow": CONTROL_FLOW_OPS
    | {
        "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase", "PartitionedCall",
        "StatefulPartitionedCall", "NoOp", "ControlTrigger", "SymbolicGradient", "RemoteCall", "Assert", "Abort",
    },
    "transfer": frozenset({"_Send", "_Recv", "_HostSend", "_HostRecv", "RecvTensor", "CollectiveReduceV2"}),
}  # fmt: skip
_PREFIXES = (
    ("Apply", "state change"), ("ResourceApply", "state change"), ("SparseApply", "state change"),
    ("ResourceSparseApply", "state change"), ("ResourceScatter", "state change"), ("Collective", "transfer"),
    ("TensorArray", "shape"), ("TensorList", "shape"), ("Stack", "shape"), ("EmptyTensorList", "shape"),
    ("Save", "file or queue"), ("Restore", "file or queue"), ("ShardedFilename", "file or queue"),
    ("MergeV2Checkpoints", "file or queue"), ("ReadFile", "file or queue"), ("WriteFile", "file or queue"),
    ("Queue", "file or queue"), ("Reader", "file or queue"), ("Parse", "file or queue"), ("Iterator", "file or queue"),
    ("Decode", "file or queue"), ("Encode", "file or queue"), ("LookupTable", "variable"),
)  # fmt: skip
_SUFFIXES = (
    ("Grad", "gradient"), ("GradV2", "gradient"), ("GradV3", "gradient"), ("Summary", "file or queue"),
    ("SummaryV2", "file or queue"), ("QueueV2", "file or queue"), ("Queue", "file or queue"),
    ("ReaderV2", "file or queue"), ("Dataset", "file or queue"), ("DatasetV2", "file or queue"),
    ("BackpropFilter", "gradient"), ("BackpropInput", "gradient"),
)  # fmt: skip
#: the order of the legend
CATEGORIES = (
    "input or output", "variable", "constant", "matrix product", "activation", "normalization or pooling",
    "shape", "arithmetic", "gradient", "state change", "control flow", "transfer", "file or queue", "function call",
    "unknown op",
)  # fmt: skip
_BY_OP = {op: category for category, ops in _CATEGORIES.items() for op in ops}


@cache
def category(op: str) -> str:
    """What kind of op it is, one of `CATEGORIES`; "unknown op" when no OpDef is known either."""
    found = _BY_OP.get(op)
    if found is not None:
        return found
    if opdefs.find(op) is None and not op.startswith("_"):
        return "unknown op"
    for suffix, name in _SUFFIXES:
        if op.endswith(suffix):
            return name
    for prefix, name in _PREFIXES:
        if op.startswith(prefix):
            return name
    return "arithmetic"


def output_shape(node: Node, index: int) -> Shape | None:
    """The shape a node's attributes give for an output, or None when they say nothing."""
    base = node.base
    has = node.attrs.__contains__ if base is None or node.changed_attrs is not None else base.attr.__contains__
    if has("_output_shapes"):
        value = node.attrs.proto("_output_shapes")
        shapes = value.list.shape
        if index < len(shapes):
            return known_shape(shapes[index])
    if index == 0 and node.op in ("Const", "HostConst") and has("value"):
        return known_shape(node.attrs.proto("value").tensor.tensor_shape)
    if index == 0 and (node.op in INPUT_OPS or node.op in VARIABLE_OPS) and has("shape"):
        shape = known_shape(node.attrs.proto("shape").shape)
        # Before GraphDef version 24 an unknown shape was written as a scalar (graph.proto's history).
        return None if node.op == "Placeholder" and shape.dims == () and node.graph.versions.producer < 24 else shape
    return None


def variable_text(node: Node) -> str:
    """Type and shape of what a variable holds: "float32 5×5×1×6"."""
    dtype = node.attr_or("dtype", None)
    name = dtype.base.name if isinstance(dtype, DType) else ""
    shape = known_shape(node.attrs.proto("shape").shape) if "shape" in node.attrs else None
    return " ".join(word for word in (name, shape_text(shape)) if word)


class Shapes:
    """Shapes of outputs: what the file says, else what follows from the inputs, found when asked for.

    Nobody changes a graph that is drawn.

    Args:
        most: graphs with more nodes than this are not inferred (default: `MOST_INFERRED`).
    """

    def __init__(self, most: int | None = None):
        self.most = MOST_INFERRED if most is None else most
        self._maps: dict[int, ShapeMap | None] = {}
        self._calls: Calls | None = None

    def of(self, node: Node, index: int) -> Shape | None:
        """The shape of an output, or None when nothing is known."""
        said = output_shape(node, index)
        if said is not None:
            return said
        graph = node.graph
        if id(graph) not in self._maps:
            from toolkit.graph.infer import ShapeMap
            from toolkit.graph.shapes.calls import Calls

            self._calls = self._calls or Calls()
            self._maps[id(graph)] = ShapeMap(self._calls) if len(graph) <= self.most else None
        shapes = self._maps[id(graph)]
        if shapes is None:
            return None
        try:
            known = shapes.of(node)
        except GraphmillError:
            # A graph that contradicts itself can still be drawn; `validate` says what is wrong.
            self._maps[id(graph)] = None
            return None
        return known[index] if index < len(known) and known[index].dims is not None else None


def output_dtype(node: Node, index: int) -> DType | None:
    """The type of an output, or None when the op is unknown or an attribute is missing."""
    try:
        types = node.output_types
    except GraphmillError:
        return None
    return types[index] if 0 <= index < len(types) else None


def shape_text(shape: Shape | None) -> str:
    """A shape as pictures write it: 3×224×224, ?×10, "scalar"; "" when nothing is known."""
    if shape is None or shape.dims is None:
        return ""
    if not shape.dims:
        return "scalar"
    return "×".join("?" if d is None else str(d) for d in shape.dims)


def flow_text(shapes: Shapes, node: Node, index: int) -> str:
    """What to write on an edge from an output: its shape; a handle's or a variant's own shape says nothing."""
    dtype = output_dtype(node, index)
    if dtype is not None and dtype.base.name in ("variant", "resource"):
        return ""
    return shape_text(shapes.of(node, index))


_STRUCT = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "int16": "h", "int8": "b", "uint8": "B",
           "bool": "?", "float16": "e", "uint16": "H", "uint32": "I", "uint64": "Q"}  # fmt: skip
_FIELD = {"float32": "float_val", "float64": "double_val", "int32": "int_val", "int16": "int_val", "int8": "int_val",
          "uint8": "int_val", "uint16": "int_val", "int64": "int64_val", "bool": "bool_val", "string": "string_val",
          "uint32": "uint32_val", "uint64": "uint64_val"}  # fmt: skip


def small_value(tensor: tensor_pb2.TensorProto, limit: int = 6) -> str | None:
    """The value of a constant of at most `limit` elements as text, or None when it is larger or of a rare type."""
    shape = known_shape(tensor.tensor_shape)
    count = shape.num_elements
    if count is None or count > limit:
        return None
    try:
        name = dtypes.from_enum(tensor.dtype).name
    except GraphmillError:
        return None
    values: Sequence[object]
    if tensor.tensor_content and name in _STRUCT:
        size = struct.calcsize(_STRUCT[name])
        if len(tensor.tensor_content) != size * count:
            return None
        values = struct.unpack(f"<{count}{_STRUCT[name]}", tensor.tensor_content)
    else:
        field = _FIELD.get(name)
        if field is None:
            return None
        values = list(getattr(tensor, field))[:count]
        if values and len(values) < count:
            values = [*values, *[values[-1]] * (count - len(values))]
        if not values:
            values = [0] * count
    texts = [_value_text(v) for v in values]
    return texts[0] if not shape.dims else "[" + ", ".join(texts) + "]"


def _value_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, bytes):
        text = value.decode("utf-8", "replace")
        return f'"{text if len(text) <= 20 else text[:19] + "…"}"'
    return str(value)


def constant_text(node: Node) -> str:
    """What to write for a constant: its value when small, else its shape; a constant expression gives "computed"."""
    if node.op not in ("Const", "HostConst") or "value" not in node.attrs:
        return "constant"
    tensor = node.attrs.proto("value").tensor
    return small_value(tensor) or shape_text(known_shape(tensor.tensor_shape))


@cache
def _input_names(op: str) -> tuple[str, ...]:
    definition = opdefs.find(op)
    if definition is None:
        return ()
    names: list[str] = []
    for arg in definition.inputs:
        if arg.number_attr or arg.type_list_attr:
            break
        names.append(arg.name)
    return tuple(names)


def input_name(op: str, position: int) -> str:
    """The OpDef's name of an input, or "" where it has none of its own (sequences, unknown ops)."""
    if op == "PlaceholderWithDefault":
        return "default"  # the OpDef's "input" is what the node itself is
    names = _input_names(op)
    return names[position] if position < len(names) else ""


#: attributes worth a place in the picture, by op
_SHOWN_ATTRS: dict[str, tuple[str, ...]] = {
    "Conv2D": ("strides", "padding", "dilations"),
    "DepthwiseConv2dNative": ("strides", "padding"),
    "Conv2DBackpropInput": ("strides", "padding"),
    "Conv3D": ("strides", "padding"),
    "MaxPool": ("ksize", "strides"),
    "AvgPool": ("ksize", "strides"),
    "Einsum": ("equation",),
    "Cast": ("DstT",),
    "LeakyRelu": ("alpha",),
    "MatMul": ("transpose_a", "transpose_b"),
    "StridedSlice": (),
}


def attribute_notes(node: Node) -> list[str]:
    """The attributes of a node that a reader looks for, when they are not the usual ones: ["stride 2", "VALID"]."""
    notes: list[str] = []
    for name in _SHOWN_ATTRS.get(node.op, ()):
        value = node.attr_or(name, None)
        if value is None or value is False:
            continue
        if isinstance(value, bytes):
            notes.append(value.decode("utf-8", "replace"))
        elif isinstance(value, list):
            numbers = [v for v in value if isinstance(v, int) and v != 1]  # pyright: ignore[reportUnknownVariableType]
            if numbers:
                spatial = numbers[:1] if len(set(numbers)) == 1 else numbers
                notes.append(f"{_ATTR_WORDS.get(name, name)} {'×'.join(map(str, spatial))}")
        elif isinstance(value, bool):
            notes.append(name)
        else:
            notes.append(str(value) if isinstance(value, DType) else f"{name} {value:.3g}")
    return notes


_ATTR_WORDS = {"strides": "stride", "ksize": "window", "dilations": "dilation"}
