"""Values for `single_ops`: tensors, attributes at their borders, resources of the right and the wrong kind."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from schemas import function_pb2
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

_SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 8)
_INTS = (0, -1, 1, 2, 3, -2, 7, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 3.4e38, 1e-45, 1e300, 2.0)
_TEXTS = (
    b"", b"a", b"SAME", b"VALID", b"NHWC", b"NCHW", b"EXPLICIT", b"\xff\xfe", b"\0", b"(", b"%s", b"1", b"-1e400",
    b"nan", b"x" * 300, b"float", b"a:0", "\N{SNOWMAN}".encode(), b"MIN_COMBINED", b"bilinear", b"{", b"[]", b"ab,cd",
    b"->", b"ij,jk->ik", b"...ij", b"UTF-8", b"2020-01-01", b"RIFF", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"BM",
)  # fmt: skip


def shape(dice: random.Random) -> tuple[int, ...]:
    """Mostly of low rank and few elements."""
    rank = dice.choice((0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6))
    return tuple(dice.choice(_SIZES[:8] if rank > 3 else _SIZES) for _ in range(rank))


def shape_of(value: Any) -> Shape:
    return Shape(np.shape(value))


def tensor(dice: random.Random, dtype: DType, like: tuple[int, ...] | None = None) -> Any:
    """A tensor of any shape, or often of a shape near another."""
    if like is None or dice.random() < 0.4:
        size = shape(dice)
    else:
        size = tuple(dice.choice(_SIZES) if dice.random() < 0.15 else n for n in like)
    return filled(dice, dtype, size)


def filled(dice: random.Random, dtype: DType, size: tuple[int, ...]) -> Any:
    """Small numbers, or a few of the borders among them."""
    count = int(np.prod(size, dtype=np.int64))
    rng = np.random.default_rng(dice.getrandbits(32))
    kind = dtype.numpy
    wild = dice.random() < 0.3
    with np.errstate(all="ignore"):
        if kind.kind == "O":
            out = np.empty(count, object)
            out[:] = [dice.choice(_TEXTS) for _ in range(count)]
        elif kind.kind == "b":
            out = rng.integers(0, 2, count).astype(bool)
        elif kind.kind == "c":
            out = (rng.normal(size=count) + 1j * rng.normal(size=count)).astype(kind)
        elif dtype.is_floating:
            out = rng.normal(size=count).astype(np.float64)
            if wild and count:
                for _ in range(dice.randint(1, 3)):
                    out[rng.integers(count)] = dice.choice(_FLOATS)
            out = out.astype(kind)
        else:
            low = 0 if dice.random() < 0.7 else -3
            out = rng.integers(low, dice.choice((2, 4, 8)), count)
            if wild and count:
                out[rng.integers(count)] = dice.choice(_INTS)
            out = out.astype(kind)
    return out.reshape(size)


def changed(dice: random.Random, value: Any, dtype: DType) -> Any:
    """Something near a value that works."""
    size = list(np.shape(value))
    match dice.randrange(8):
        case 0:
            return tensor(dice, dtype)
        case 1 if size:
            size[dice.randrange(len(size))] = dice.choice((0, 1, 2, 3, 7))
            return np.resize(value, size) if value.size else filled(dice, dtype, tuple(size))
        case 2 if size:
            return value[:1].reshape(size[1:]) if size[0] else value.reshape((*size, 1))
        case 3:
            return value[None]
        case 4:
            return value[..., None]
        case 5 if size:
            return value[:0]
        case _:
            out = value.copy()
            if out.size:
                with np.errstate(all="ignore"):
                    out.reshape(-1)[dice.randrange(out.size)] = _border(dice, dtype)
            return out
    return value.reshape(-1)


def _border(dice: random.Random, dtype: DType) -> Any:
    kind = dtype.numpy
    if kind.kind == "O":
        return dice.choice(_TEXTS)
    if kind.kind == "b":
        return dice.random() < 0.5
    if dtype.is_floating or kind.kind == "c":
        return np.array(dice.choice(_FLOATS)).astype(kind)
    return np.array(dice.choice(_INTS)).astype(kind)


def attribute(dice: random.Random, attr: Any, usual: Any, *, small: bool = False) -> Any:
    """A value of an attribute's kind; `small` ones decide how many inputs there are."""
    if attr.type.startswith("list("):
        one = type("One", (), {"type": attr.type[5:-1], "allowed": attr.allowed})
        if usual and dice.random() < 0.6:
            out = list(usual)
            place = dice.randrange(len(out))
            if dice.random() < 0.3:
                del out[place]
            else:
                out[place] = attribute(dice, one, out[place])
            return out
        return [attribute(dice, one, None) for _ in range(dice.choice((0, 1, 2, 2, 3, 4, 4, 5)))]
    match attr.type:
        case "int":
            return dice.choice((0, 1, 1, 2, 2, 3)) if small else dice.choice(_INTS)
        case "float":
            return float(dice.choice(_FLOATS))
        case "bool":
            return dice.random() < 0.5
        case "string":
            return dice.choice(attr.allowed) if attr.allowed and dice.random() < 0.8 else dice.choice(_TEXTS)
        case "type":
            if attr.allowed:
                return dice.choice(attr.allowed)
            return dice.choice((dtypes.float32,) * 3 + (dtypes.int32, dtypes.int64, dtypes.string, dtypes.bool_))
        case "shape":
            if dice.random() < 0.3:
                return Shape(None)
            return Shape([dice.choice((None, 0, 1, 2, 3, 2**31 - 1, 2**40)) if dice.random() < 0.2 else n
                          for n in shape(dice)])  # fmt: skip
        case "tensor":
            return from_array(tensor(dice, dtypes.float32), dtypes.float32)
        case "func":
            return FuncRef(dice.choice(("same", "constant", "pair", "missing", "is_true")), {})
        case other:
            raise ValueError(other)


# -- functions -------------------------------------------------------------------------------------------

_FUNCTIONS = """
function { signature { name: "same" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
  node_def { name: "i" op: "Identity" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "y" value: "i:output:0" } }
function { signature { name: "constant" output_arg { name: "y" type: DT_INT64 } }
  node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
    attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 3 } } } }
  ret { key: "y" value: "c:output:0" } }
function { signature { name: "pair" input_arg { name: "a" type: DT_FLOAT } input_arg { name: "b" type: DT_FLOAT }
    output_arg { name: "y" type: DT_FLOAT } output_arg { name: "z" type: DT_FLOAT } }
  node_def { name: "s" op: "AddV2" input: "a" input: "b" attr { key: "T" value { type: DT_FLOAT } } }
  ret { key: "y" value: "s:z:0" } ret { key: "z" value: "a" } }
function { signature { name: "is_true" input_arg { name: "x" type: DT_INT64 }
    output_arg { name: "y" type: DT_BOOL } }
  node_def { name: "c" op: "Const" attr { key: "dtype" value { type: DT_BOOL } }
    attr { key: "value" value { tensor { dtype: DT_BOOL tensor_shape { } bool_val: false } } } }
  ret { key: "y" value: "c:output:0" } }
"""


def add_functions(graph: Graph) -> None:
    """The functions that attributes name."""
    from google.protobuf import text_format

    for function in text_format.Parse(_FUNCTIONS, function_pb2.FunctionDefLibrary()).function:
        graph.library.add(function)


# -- resources -------------------------------------------------------------------------------------------

F, I = dtypes.float32, dtypes.int64


def _constant(graph: Graph, name: str, value: Any) -> Node:
    dtype = dtypes.from_numpy(value.dtype)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(value, dtype)})


def _variable(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    dtype = dice.choice((dtypes.float32, dtypes.float32, dtypes.int64, dtypes.uint8, dtypes.float64, dtypes.int32))
    value = filled(dice, dtype, dice.choice(((), (3,), (4,), (2, 3), (0,), (3, 2, 2), shape(dice))))
    handle = graph.add(
        "VarHandleOp", name, attrs={"dtype": dtype, "shape": Shape(value.shape), "shared_name": name.encode()}
    )
    if dice.random() < 0.05:
        return handle, []
    inputs = [handle, _constant(graph, f"{name}/value", value)]
    return handle, [graph.add("AssignVariableOp", f"{name}/assign", inputs, attrs={"dtype": dtype})]


def _made(op: str, **attrs: Any) -> Any:
    def make(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
        return graph.add(op, name, attrs=attrs), []

    return make


def _queue(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    types = dice.choice(([F], [F, I]))
    kind = dice.choice(("FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2"))
    shapes = [Shape([2])] * len(types)
    handle = graph.add(
        kind, name, attrs={"component_types": types, "shapes": shapes, "capacity": dice.choice((1, 5, -1))}
    )
    if dice.random() < 0.4:
        return handle, []
    parts = [_constant(graph, f"{name}/{i}", np.ones((3, 2), t.numpy)) for i, t in enumerate(types)]
    many = graph.add("QueueEnqueueManyV2", f"{name}/many", [handle, *parts], attrs={"Tcomponents": types})
    return handle, [many] if kind != "PriorityQueueV2" and handle.attr("capacity") != 1 else []


def _array(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    size = _constant(graph, f"{name}/size", np.array(dice.choice((0, 1, 3)), np.int32))
    return graph.add("TensorArrayV3", name, [size], attrs={"dtype": F, "dynamic_size": dice.random() < 0.5}), []


def _stack(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    size = _constant(graph, f"{name}/size", np.array(dice.choice((0, 1, -1)), np.int32))
    return graph.add("StackV2", name, [size], attrs={"elem_type": F}), []


def _iterator(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    kinds = {"output_types": [I], "output_shapes": [Shape(())]}
    handle = graph.add("IteratorV2", name, attrs={**kinds, "shared_name": name.encode(), "container": b""})
    dataset, _ = _dataset(dice, graph, f"{name}/data")
    return handle, [graph.add("MakeIterator", f"{name}/make", [dataset, handle])]


def _dataset(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    bounds = [_constant(graph, f"{name}/{i}", np.array(v, np.int64)) for i, v in enumerate((0, dice.choice((0, 3)), 1))]
    return graph.add("RangeDataset", name, bounds, attrs={"output_types": [I], "output_shapes": [Shape(())]}), []


def _list(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    items = filled(dice, F, dice.choice(((3, 2), (0, 2), (1,), (2, 2, 2))))
    parts = [_constant(graph, f"{name}/items", items), _constant(graph, f"{name}/shape", np.array(-1, np.int32))]
    return graph.add("TensorListFromTensor", name, parts, attrs={"element_dtype": F, "shape_type": dtypes.int32}), []


def _optional(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    if dice.random() < 0.3:
        return graph.add("OptionalNone", name), []
    value = _constant(graph, f"{name}/value", filled(dice, F, (2,)))
    return graph.add("OptionalFromValue", name, [value], attrs={"Toutput_types": [F]}), []


def _matrix(dice: random.Random, graph: Graph, name: str) -> tuple[Node, list[Node]]:
    dense = filled(dice, F, dice.choice(((3, 3), (2, 3, 3), (2, 4))))
    where = np.argwhere(dense != 0).astype(np.int64)
    parts = [_constant(graph, f"{name}/dense", dense), _constant(graph, f"{name}/indices", where)]
    return graph.add("DenseToCSRSparseMatrix", name, parts, attrs={"T": F}), []


_TABLE = {"key_dtype": dtypes.string, "value_dtype": I}
_RESOURCES: list[tuple[tuple[str, ...], Any]] = [
    (("Queue",), _queue),
    (("Table",), _made("MutableHashTableV2", **_TABLE)),
    (("InitializeTable",), _made("HashTableV2", **_TABLE)),
    (("TensorArray",), _array),
    (("Stack",), _stack),
    (("Iterator",), _iterator),
    (("Barrier",), _made("Barrier", component_types=[F], shapes=[Shape([2])])),
    (("Reader",), _made("TextLineReaderV2")),
    (("Accumulator",), _made("ResourceConditionalAccumulator", dtype=F, shape=Shape([2]))),
    (("Summary",), _made("SummaryWriter")),
    (("",), _variable),
]
_VARIANTS: list[tuple[tuple[str, ...], Any]] = [
    (("TensorList",), _list),
    (("Optional",), _optional),
    (("SparseMatrix", "CSR"), _matrix),
    (("TensorMap",), _made("EmptyTensorMap")),
    (("",), _dataset),
]


def add_resource(dice: random.Random, graph: Graph, name: str, op: str, dtype: DType) -> tuple[Node, list[Node]]:
    """A resource or variant for an op, mostly of the kind that it is about."""
    makers = _RESOURCES if dtype is dtypes.resource else _VARIANTS
    if dice.random() < 0.12:
        return dice.choice(makers)[1](dice, graph, name)
    for words, make in makers:
        if any(word in op for word in words):
            return make(dice, graph, name)
    raise AssertionError("the last one takes all")
