"""Functions whose bodies have come to take or give other types: their FunctionDefs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas import function_pb2
from toolkit.graph.attrs import shape_to_proto
from toolkit.graph.bodies import FunctionBody, to_function
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape

#: what attributes of a function, and of its arguments, say of the arguments' shapes
_INPUT_SHAPES, _OUTPUT_SHAPES = "_input_shapes", "_output_shapes"


def retyped_function(
    body: FunctionBody, original: function_pb2.FunctionDef, name: str, shapes: Mapping[int, Shape]
) -> function_pb2.FunctionDef:
    """The FunctionDef, of another name, of a body whose arguments and results may be of other types than before.

    It takes and gives single tensors: attributes that the function was instantiated with are filled in, and a sequence
    among its arguments is one argument for each tensor.

    Args:
        shapes: the shapes of arguments, by position, that are of another type than in the original.

    Raises:
        GraphError: a node's op is unknown.
    """
    like = function_pb2.FunctionDef()
    like.CopyFrom(original)
    signature = like.signature
    signature.name = name
    for field in ("input_arg", "output_arg", "attr"):
        signature.ClearField(field)
    del like.node_def[:]
    like.ClearField("ret")
    _add_arguments(like, original, body.args)
    _set_shapes(like, shapes)
    _add_results(like, original, body.results)
    return to_function(body, like)


def unique_function(library: FunctionLibrary, wanted: str) -> str:
    """`wanted`, or `wanted_1`, `wanted_2`, ... when a function of that name is there."""
    count, name = 0, wanted
    while name in library:
        count += 1
        name = f"{wanted}_{count}"
    return name


def _add_arguments(like: function_pb2.FunctionDef, original: function_pb2.FunctionDef, args: Iterable[Node]) -> None:
    known = {arg.name: arg for arg in original.signature.input_arg}
    for position, node in enumerate(args):
        dtype, old = node.attr("T"), known.get(node.name)
        if old is not None and old.type == dtype.enum:
            like.signature.input_arg.add().CopyFrom(old)
        else:
            like.signature.input_arg.add(name=node.name, type=dtype.enum)
            like.resource_arg_unique_id.pop(position, None)


def _set_shapes(like: function_pb2.FunctionDef, shapes: Mapping[int, Shape]) -> None:
    listed = list(like.attr[_INPUT_SHAPES].list.shape) if _INPUT_SHAPES in like.attr else []
    for position, shape in shapes.items():
        said = [listed[position]] if position < len(listed) else []
        if position in like.arg_attr and _OUTPUT_SHAPES in like.arg_attr[position].attr:
            said += like.arg_attr[position].attr[_OUTPUT_SHAPES].list.shape
        for proto in said:
            proto.Clear()
            shape_to_proto(shape, proto)


def _add_results(like: function_pb2.FunctionDef, original: function_pb2.FunctionDef, results: list[Node]) -> None:
    known = list(original.signature.output_arg)
    for position, node in enumerate(results):
        dtype = node.attr("T")
        old = known[position] if len(known) == len(results) else None
        if old is not None and old.type == dtype.enum:
            like.signature.output_arg.add().CopyFrom(old)
        else:
            name = old.name if old is not None else f"result_{position}"
            like.signature.output_arg.add(name=name, type=dtype.enum)
