"""Mutations of valid graphs: of attributes, constants, inputs, types, ops, names, functions and versions.

`mutate(rng, graph_def)` changes a GraphDef in place, one to four times, and returns it; what comes out is a message
that parses, of which any part may be wrong. Nothing here builds more than a few thousand bytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from schemas.attr_value_pb2 import AttrValue
from schemas.graph_pb2 import GraphDef
from schemas.node_def_pb2 import NodeDef
from schemas.tensor_pb2 import TensorProto
from schemas.tensor_shape_pb2 import TensorShapeProto

#: integers at the edges of what fits somewhere
INTEGERS = (
    0, 1, 2, 3, 4, 5, 7, 8, 16, 100, 255, 256, 4095, 4097, 65536, -1, -2, -3, -4, -7, -100, 2**31 - 1, 2**31, -(2**31),
    2**32, 2**33 + 1, 2**40, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**62), -(2**31) - 1, 10**6, 10**9,
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3e38, float("nan"), float("inf"), float("-inf"), 1e9, 2.5)
#: data types, those that do not exist included
TYPES = (*range(34), 101, 103, 107, 109, 120, 121, 133, 34, 99, 100, 9999, -1, 2**31 - 1)
TEXTS = (
    b"", b"x", b"SAME", b"VALID", b"EXPLICIT", b"NHWC", b"NCHW", b"NDHWC", b"NCHW_VECT_C", b"HWIO", b"\xff\xfe",
    b"\0", b"loc:@", b"loc:@nowhere", b"loc:@\xff", b"ab,bc->ac", b"...->", b"->", b"a" * 5000, b"a,b", b"4 4 0,2:-",
    b"4 x -", b"9999999999999999999999 -", b"/cpu:0", b"/job:x/task:99999999999999999999", b"\x1b[31m", b"mean",
    "\u202e\u00e9".encode(),
)  # fmt: skip
NAMES = (
    "", "^", ":", ":0", "a:", "^a", "a:0", "a:-1", "a:99999999999999999999999", "/", "//", "a//b", "_", "a b",
    "\x1b[2J",
    "\u202e", "x" * 3000, "a/" * 800 + "b", "%", "'", '"', "\\", "..", "../../x", "-", "a\nb",
)  # fmt: skip

Change = Callable[[random.Random, GraphDef], None]
#: each as often as its weight
_changes: list[Change] = []


def _change(weight: int) -> Callable[[Change], Change]:
    def register(function: Change) -> Change:
        _changes.extend([function] * weight)
        return function

    return register


def mutate(rng: random.Random, graph: GraphDef) -> GraphDef:
    """Change a graph one to four times, in place."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        rng.choice(_changes)(rng, graph)
    return graph


# -- picking -----------------------------------------------------------------------------------------------


def _bodies(graph: GraphDef) -> list[Any]:
    """Lists of nodes: the graph's and each function's."""
    return [body for body in (graph.node, *(f.node_def for f in graph.library.function)) if len(body)]


def _body(rng: random.Random, graph: GraphDef) -> Any:
    bodies = _bodies(graph)
    return rng.choice(bodies) if bodies else graph.node


def _node(rng: random.Random, graph: GraphDef) -> NodeDef:
    body = _body(rng, graph)
    return rng.choice(body) if len(body) else graph.node.add(name="n", op="NoOp")


def _attr(rng: random.Random, graph: GraphDef) -> tuple[NodeDef, str]:
    """A node and the name of one of its attributes."""
    node = _node(rng, graph)
    for _ in range(8):
        if len(node.attr):
            return node, rng.choice(sorted(node.attr))
        node = _node(rng, graph)
    node.attr["T"].type = 1  # type: ignore[assignment]
    return node, "T"


def _tensor(rng: random.Random, graph: GraphDef) -> TensorProto | None:
    found = [n.attr["value"].tensor for body in _bodies(graph) for n in body if n.op == "Const" and "value" in n.attr]
    return rng.choice(found) if found else None


def _shape(rng: random.Random, into: TensorShapeProto) -> None:
    into.Clear()
    roll = rng.random()
    if roll < 0.1:
        into.unknown_rank = True
    elif roll < 0.2:
        for _ in range(rng.choice((9, 33, 255, 300))):
            into.dim.add(size=rng.choice((1, 2, -1)))
    else:
        for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 5))):
            into.dim.add(size=rng.choice(INTEGERS))
        if roll > 0.95:
            into.unknown_rank = True  # and sizes beside it


def _value(rng: random.Random, value: AttrValue) -> None:
    """Any value of any kind, well formed or not."""
    value.Clear()
    kind = rng.choice(("s", "i", "f", "b", "type", "shape", "tensor", "func", "placeholder", "list", "none"))
    match kind:
        case "s":
            value.s = rng.choice(TEXTS)
        case "i":
            value.i = rng.choice(INTEGERS)
        case "f":
            value.f = rng.choice(FLOATS)
        case "b":
            value.b = rng.random() < 0.5
        case "type":
            value.type = rng.choice(TYPES)  # type: ignore[assignment]
        case "shape":
            value.shape.SetInParent()
            _shape(rng, value.shape)
        case "tensor":
            value.tensor.SetInParent()
            _fill(rng, value.tensor)
        case "func":
            value.func.name = rng.choice(("f", "", "MatMul", "x" * 100))
        case "placeholder":
            value.placeholder = rng.choice(("T", "N", "", "x"))
        case "list":
            value.list.SetInParent()
            for _ in range(rng.choice((1, 1, 2))):
                _extend(rng, value)
        case _:
            pass


def _extend(rng: random.Random, value: AttrValue) -> None:
    items = value.list
    count = rng.choice((1, 1, 2, 3, 4, 5, 8, 40))
    match rng.choice(("s", "i", "f", "b", "type", "shape", "tensor", "func", "none")):
        case "s":
            items.s.extend(rng.choice(TEXTS) for _ in range(count))
        case "i":
            items.i.extend(rng.choice(INTEGERS) for _ in range(count))
        case "f":
            items.f.extend(rng.choice(FLOATS) for _ in range(count))
        case "b":
            items.b.extend(rng.random() < 0.5 for _ in range(count))
        case "type":
            items.type.extend(rng.choice(TYPES) for _ in range(count))  # type: ignore[arg-type]
        case "shape":
            for _ in range(count):
                _shape(rng, items.shape.add())
        case "tensor":
            _fill(rng, items.tensor.add())
        case "func":
            items.func.add(name="f")
        case _:
            pass


def _fill(rng: random.Random, tensor: TensorProto) -> None:
    """A tensor whose type, shape and content need not agree."""
    if rng.random() < 0.5:
        tensor.dtype = rng.choice(TYPES)  # type: ignore[assignment]
    if rng.random() < 0.5:
        _shape(rng, tensor.tensor_shape)
    roll = rng.random()
    if roll < 0.3:
        tensor.tensor_content = rng.randbytes(rng.choice((0, 1, 3, 4, 8, 12, 16, 64)))
    elif roll < 0.4:
        tensor.int_val.extend(rng.choice(INTEGERS) % 2**31 for _ in range(rng.choice((1, 2, 5))))
    elif roll < 0.5:
        tensor.int64_val.extend(rng.choice(INTEGERS) for _ in range(rng.choice((1, 2, 5))))
    elif roll < 0.6:
        tensor.float_val.extend(rng.choice(FLOATS) for _ in range(rng.choice((1, 2, 5))))
    elif roll < 0.7:
        tensor.string_val.extend(rng.choice(TEXTS) for _ in range(rng.choice((1, 2, 5))))
    elif roll < 0.75:
        tensor.version_number = rng.choice((1, -1, 2**31 - 1))


# -- changes -----------------------------------------------------------------------------------------------


@_change(10)
def any_attribute(rng: random.Random, graph: GraphDef) -> None:
    node, key = _attr(rng, graph)
    _value(rng, node.attr[key])


@_change(14)
def same_kind(rng: random.Random, graph: GraphDef) -> None:
    """Another value of the kind that the attribute has."""
    node, key = _attr(rng, graph)
    value = node.attr[key]
    match value.WhichOneof("value"):
        case "i":
            value.i = rng.choice(INTEGERS)
        case "f":
            value.f = rng.choice(FLOATS)
        case "s":
            value.s = rng.choice(TEXTS)
        case "b":
            value.b = not value.b
        case "type":
            value.type = rng.choice(TYPES)  # type: ignore[assignment]
        case "shape":
            _shape(rng, value.shape)
        case "tensor":
            _fill(rng, value.tensor)
        case "func":
            names = [function.signature.name for function in graph.library.function]
            value.func.name = rng.choice((*names, "nowhere"))
        case "list":
            _list(rng, value.list)
        case _:
            _value(rng, value)


def _list(rng: random.Random, items: AttrValue.ListValue) -> None:
    plain: Sequence[tuple[Any, Sequence[Any]]] = (
        (items.i, INTEGERS), (items.f, FLOATS), (items.s, TEXTS), (items.type, TYPES),
    )  # fmt: skip
    field: Any
    for field, values in plain:
        if len(field):
            roll = rng.random()
            if roll < 0.25:
                del field[rng.randrange(len(field)) :]
            elif roll < 0.5:
                field.append(rng.choice(values))
            else:
                field[rng.randrange(len(field))] = rng.choice(values)
            return
    if len(items.shape):
        _shape(rng, rng.choice(items.shape))
    elif len(items.func):
        del items.func[rng.randrange(len(items.func)) :]
    else:
        items.i.append(rng.choice(INTEGERS))


@_change(4)
def without_attribute(rng: random.Random, graph: GraphDef) -> None:
    node, key = _attr(rng, graph)
    del node.attr[key]


@_change(2)
def added_attribute(rng: random.Random, graph: GraphDef) -> None:
    keys = ("_output_shapes", "_class", "_XlaCompile", "_gradient_op_type", "shape", "T", "N", "data_format", "axis")
    _value(rng, _node(rng, graph).attr[rng.choice(keys)])


@_change(12)
def constant(rng: random.Random, graph: GraphDef) -> None:
    tensor = _tensor(rng, graph)
    if tensor is None:
        any_attribute(rng, graph)
    elif rng.random() < 0.5:
        _fill(rng, tensor)
    else:  # other numbers of the type it has
        size, letter = {3: (4, "i"), 9: (8, "q"), 1: (4, "f"), 2: (8, "d")}.get(int(tensor.dtype), (0, ""))
        count = rng.choice((1, 1, 2, 3, 4))
        if not size:
            tensor.string_val.append(rng.choice(TEXTS))
            return
        values: list[Any] = [rng.choice(FLOATS if letter in "fd" else INTEGERS) for _ in range(count)]
        if letter in "iq":
            values = [(v + 2 ** (8 * size - 1)) % 2 ** (8 * size) - 2 ** (8 * size - 1) for v in values]
        tensor.tensor_content = struct.pack(f"<{count}{letter}", *values)
        if rng.random() < 0.7:
            tensor.tensor_shape.Clear()
            if count > 1 or rng.random() < 0.5:
                tensor.tensor_shape.dim.add(size=count)


@_change(8)
def wire(rng: random.Random, graph: GraphDef) -> None:
    """Inputs dropped, doubled, of another output, from another node, as control, or from nowhere."""
    body = _body(rng, graph)
    node = rng.choice(body) if len(body) else _node(rng, graph)
    other = rng.choice(body).name if len(body) else "x"
    index = rng.choice((0, 1, 2, 7, 2**31 - 1, -1, 10**20))
    text = rng.choice((other, f"{other}:{index}", f"^{other}", rng.choice(NAMES), f"{other}:output:{index}"))
    roll = rng.random()
    if not len(node.input) or roll < 0.3:
        node.input.append(text)
    elif roll < 0.5:
        del node.input[rng.randrange(len(node.input))]
    else:
        node.input[rng.randrange(len(node.input))] = text


@_change(4)
def other_op(rng: random.Random, graph: GraphDef) -> None:
    from toolkit.graph import opdefs

    names = sorted(opdefs.names())
    functions = [function.signature.name for function in graph.library.function]
    _node(rng, graph).op = rng.choice((rng.choice(names), rng.choice(functions or names), "", "NoSuchOp", "Merge"))


@_change(2)
def renamed(rng: random.Random, graph: GraphDef) -> None:
    body = _body(rng, graph)
    node = _node(rng, graph)
    node.name = rng.choice((*NAMES, rng.choice(body).name if len(body) else "x"))


@_change(2)
def device(rng: random.Random, graph: GraphDef) -> None:
    _node(rng, graph).device = rng.choice((
        "/gpu:0", "/cpu:99999999999999999999", "/job:x", "x", "/device:TPU:-1", "//", "/job:w/task:3/device:CPU:0",
        "/cpu:\u0663", "\x1b[1m",
    ))  # fmt: skip


@_change(2)
def lists(rng: random.Random, graph: GraphDef) -> None:
    """Nodes dropped, doubled, reversed."""
    body = _body(rng, graph)
    if not len(body):
        return
    roll = rng.random()
    if roll < 0.5:
        del body[rng.randrange(len(body))]
    elif roll < 0.8:
        body.add().CopyFrom(rng.choice(body))
    else:
        nodes = [NodeDef.FromString(node.SerializeToString()) for node in body][::-1]
        del body[:]
        body.extend(nodes)


@_change(1)
def versions(rng: random.Random, graph: GraphDef) -> None:
    graph.versions.producer = rng.choice((0, 1, -1, 2**31 - 1, 20, 21))
    graph.versions.min_consumer = rng.choice((0, 0, 99999, -5))


@_change(3)
def function(rng: random.Random, graph: GraphDef) -> None:
    """Signatures, results, arguments and names of functions; recursion."""
    if not len(graph.library.function):
        any_attribute(rng, graph)
        return
    chosen = rng.choice(graph.library.function)
    arguments = rng.choice((chosen.signature.input_arg, chosen.signature.output_arg))
    match rng.randrange(9):
        case 0:
            chosen.signature.name = rng.choice((*NAMES, rng.choice(graph.library.function).signature.name))
        case 1 if len(arguments):
            del arguments[rng.randrange(len(arguments))]
        case 2:
            arguments.add(name=rng.choice(("x", "", *NAMES)), type=rng.choice(TYPES))  # type: ignore[arg-type]
        case 3 if len(arguments):
            argument = rng.choice(arguments)
            argument.type_attr = rng.choice(("T", "x", ""))
            argument.number_attr = rng.choice(("N", "x", ""))
            argument.type_list_attr = rng.choice(("Tin", ""))
        case 4 if len(chosen.ret):
            chosen.ret[rng.choice(sorted(chosen.ret))] = rng.choice((*NAMES, "x:y:0", "x:y:-1", "x:y:9999999999999"))
        case 5 if len(chosen.ret):
            del chosen.ret[rng.choice(sorted(chosen.ret))]
        case 6:
            chosen.control_ret[rng.choice(("a", ""))] = rng.choice(NAMES)
        case 7:
            _value(rng, chosen.attr[rng.choice(("_noinline", "_input_shapes", "x"))])
            _value(rng, chosen.arg_attr[rng.choice((0, 1, 2**32 - 1))].attr["_output_shapes"])
        case _:
            graph.library.gradient.add(
                function_name=chosen.signature.name, gradient_func=rng.choice(graph.library.function).signature.name
            )


@_change(1)
def called_from_itself(rng: random.Random, graph: GraphDef) -> None:
    if not len(graph.library.function):
        return
    chosen = rng.choice(graph.library.function)
    node = chosen.node_def.add(name="again", op=rng.choice((chosen.signature.name, "PartitionedCall")))
    node.attr["f"].func.name = rng.choice(graph.library.function).signature.name
