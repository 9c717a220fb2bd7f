"""What follows from other shapes of inputs: remarks in nodes, signatures, functions, and constants that say a batch.

A constant [B, ...] that a Reshape takes is proven to say the batch size when the tensor that is reshaped has B as its
first size, which comes from the inputs (it changes with them), and

- as many elements per example as the constant says, so that no other constant would fit the new size, or
- the constant leaves one size open (-1) and B is more than 1: then no example has its elements elsewhere than before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.function_pb2 import FunctionDef
from schemas.struct_pb2 import StructuredValue
from toolkit.errors import GraphmillError
from toolkit.formats.inspection.report import plural
from toolkit.graph.attrs import FuncRef, encode, shape_to_proto
from toolkit.graph.bodies import FunctionBody, instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap, infer
from toolkit.graph.metagraph import MetaGraph, TensorInfo
from toolkit.graph.node import Node
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.graph.shapes.calls import HandleData
from toolkit.graph.tensorref import parse_input
from toolkit.passes.edit.draft import Draft, downstream

#: the attribute in which writers note the shapes of a node's outputs
REMARK = "_output_shapes"
#: op to how many of its inputs stand before the arguments of the functions that it calls
_CALLS = {
    "PartitionedCall": 0, "StatefulPartitionedCall": 0, "While": 0, "StatelessWhile": 0,
    "If": 1, "StatelessIf": 1, "Case": 1, "StatelessCase": 1,
}  # fmt: skip


@dataclass(slots=True)
class Changed:
    """What followed.

    Attributes:
        constants: those of a Reshape that say the new batch size.
        doubtful: those that may say the batch size, and were left.
        functions: whose arguments have other shapes.
    """

    constants: list[str] = field(default_factory=list[str])
    doubtful: list[str] = field(default_factory=list[str])
    functions: set[str] = field(default_factory=set[str])

    def said(self) -> str:
        text = f", {plural(len(self.constants), 'constant')} of a Reshape" if self.constants else ""
        if self.functions:
            text += f", {plural(len(self.functions), 'function')}"
        if self.doubtful:
            names = ", ".join(f"'{name}'" for name in self.doubtful[:3])
            text += f"; {names}{' and others' if len(self.doubtful) > 3 else ''} may say the batch size, and stay"
        return text


def change_shapes(draft: Draft, shapes: Mapping[Node, Shape], *, batch: bool = False) -> Changed:
    """Give placeholders other shapes, and bring up to date what follows from them.

    Args:
        batch: it is the first size that changes; constants that say it are looked for.
    """
    graph = draft.graph
    meta = draft.meta
    changed = Changed()
    old = infer(graph, strict=False)
    for node, shape in shapes.items():
        if "shape" in node.attrs or shape.dims is not None:
            node.attrs["shape"] = shape
    affected = downstream(graph, shapes)
    remarks = [node for node in affected if REMARK in node.attrs]
    for node in remarks:
        del node.attrs[REMARK]
    new = infer(graph, strict=False)
    if batch:
        for node in graph.nodes:
            size = _new_constant(node, old, new, changed)
            if size is not None:
                _write_constant(graph, node, size, changed)
        new = infer(graph, strict=False)
    bodies = _Bodies(draft, changed, batch)
    for node in affected:
        bodies.follow(node, old, new)
    if changed.functions:
        new = infer(graph, strict=False)  # what they return has other shapes
    for node in remarks:
        node.attrs[REMARK] = new.of(node)
    draft.meta = replace(bodies.described(meta), signatures=_signatures(meta, graph, old, new))
    return changed


def renew_remarks(graph: Graph) -> int:
    """Note the shapes that the ops give where nodes say others; returns at how many nodes."""
    noted = {node: node.attr(REMARK) for node in graph.nodes if REMARK in node.attrs}
    for node in noted:
        del node.attrs[REMARK]
    shapes = infer(graph, strict=False)
    renewed = 0
    for node, said in noted.items():
        found = shapes.of(node)
        fits = len(said) == len(found) and all(a.is_compatible_with(b) for a, b in zip(said, found, strict=True))
        node.attrs[REMARK] = said if fits else found
        renewed += not fits
    return renewed


# -- constants -------------------------------------------------------------------------------------------


def _new_constant(node: Node, old: ShapeMap, new: ShapeMap, changed: Changed) -> list[int] | None:
    """What the constant of a Reshape has to say from now on; None where it stays."""
    from toolkit.formats.arrays import tensor

    if node.op != "Reshape" or len(node.inputs) != 2 or node.inputs[1].node.op != "Const":
        return None
    before, after = old[node.inputs[0]].dims, new[node.inputs[0]].dims
    if not before or not after or before == after or before[1:] != after[1:]:
        return None
    try:
        said: list[int] = [int(size) for size in tensor.to_array(node.inputs[1].node.attr("value")).reshape(-1)]
    except GraphmillError:
        return None
    size, rest = before[0], before[1:]
    if size is None or not said or said[0] != size:
        return None
    written = -1 if after[0] is None else after[0]
    if -1 in said:
        if size == 1 or (written == -1):
            changed.doubtful.append(node.inputs[1].node.name)
            return None
        return [written, *said[1:]]
    if None in rest or math.prod(d for d in rest if d is not None) != math.prod(said[1:]):
        return None
    return [written, *said[1:]]


def _write_constant(graph: Graph, node: Node, sizes: Sequence[int], changed: Changed) -> None:
    """Let a Reshape have these sizes; who else takes its constant keeps the old one."""
    import numpy as np

    from toolkit.formats.arrays import tensor

    constant = node.inputs[1].node
    dtype = constant.attr("dtype")
    value = tensor.from_array(np.array(sizes, dtype.numpy))
    others = any(src is constant and taker is not node for taker in graph.nodes for src, _ in taker.inputs)
    changed.constants.append(constant.name)
    if others:
        name = graph.unique_name(f"{node.name}/shape_of_batch")
        made = graph.add("Const", name, attrs={"dtype": dtype, "value": value}, device=constant.device)
        made.control_inputs = list(constant.control_inputs)
        node.inputs[1] = made.output()
    else:
        constant.attrs["value"] = value


# -- signatures ------------------------------------------------------------------------------------------


def _signatures(meta: MetaGraph, graph: Graph, old: ShapeMap, new: ShapeMap) -> dict[str, Any]:
    def follow(info: TensorInfo) -> TensorInfo:
        if not info.name:
            return info
        try:
            output = graph.output(parse_input(info.name))
        except GraphmillError:
            return info
        shape = new[output]
        return info if shape == old[output] else replace(info, shape=shape)

    return {
        key: replace(
            signature,
            inputs={label: follow(info) for label, info in signature.inputs.items()},
            outputs={label: follow(info) for label, info in signature.outputs.items()},
        )
        for key, signature in meta.signatures.items()
    }


# -- functions -------------------------------------------------------------------------------------------


class _Bodies:
    """Functions whose arguments have other shapes: remarks in them, constants, what the object graph says."""

    def __init__(self, draft: Draft, changed: Changed, batch: bool):
        self.draft = draft
        self.changed = changed
        self.batch = batch
        self.arguments: dict[str, list[Shape]] = {}
        self.results: dict[str, list[Shape]] = {}

    def follow(self, node: Node, old: ShapeMap, new: ShapeMap) -> None:
        """Look at the functions that a node calls."""
        first = _CALLS.get(node.op, 0 if node.op in self.draft.graph.library else None)
        if first is None:
            return
        before = [old[source] for source in node.inputs[first:]]
        after = [new[source] for source in node.inputs[first:]]
        if before == after:
            return
        handles = [new.handle(source) for source in node.inputs[first:]]
        loops = "While" in node.op
        for ref in _called(node, self.draft):
            if loops:  # the shapes of all iterations
                after = [a if a == b else a.most_specific_common(b) for a, b in zip(after, new.of(node), strict=True)]
            self._body(ref, before, after, handles)

    def _body(
        self, ref: FuncRef, before: Sequence[Shape], after: Sequence[Shape], handles: Sequence[HandleData | None]
    ) -> None:
        if ref.name in self.arguments:
            return  # one body serves all who call it
        self.arguments[ref.name] = list(after)
        library = self.draft.graph.library
        try:
            body = instantiate(library, ref)
        except GraphmillError:
            return
        if len(body.args) != len(after):
            return
        self.changed.functions.add(ref.name)
        definition = self.draft.body(ref.name)
        old = _infer_body(body, before, handles)
        _forget_remarks(body, definition)
        new = _infer_body(body, after, handles)
        if self.batch:
            for node in list(body.graph.nodes):
                sizes = _new_constant(node, old, new, self.changed)
                if sizes is not None:
                    _write_constant(body.graph, node, sizes, self.changed)
                    self._write_body(definition, body, node)
            new = _infer_body(body, after, handles)
        for node in body.graph.nodes:
            self.follow(node, old, new)
        new = _infer_body(body, after, handles)
        self._remark(definition, body, new)
        self.results[ref.name] = [new[result.inputs[0]] for result in body.results]

    def _write_body(self, definition: FunctionDef, body: FunctionBody, reshape: Node) -> None:
        constant = reshape.inputs[1].node
        known = {node.name: node for node in definition.node_def}
        if constant.name not in known:
            made = definition.node_def.add(name=constant.name, op="Const", device=constant.device)
            for key in constant.attrs:
                made.attr[key].CopyFrom(constant.attrs.proto(key))
            known[reshape.name].input[1] = f"{constant.name}:output:0"
        else:
            known[constant.name].attr["value"].CopyFrom(constant.attrs.proto("value"))

    def _remark(self, definition: FunctionDef, body: FunctionBody, shapes: ShapeMap) -> None:
        arguments = [shapes[node.output()] for node in body.args]
        if "_input_shapes" in definition.attr:
            definition.attr["_input_shapes"].CopyFrom(encode(arguments))
        for position, shape in enumerate(arguments):
            if position in definition.arg_attr and REMARK in definition.arg_attr[position].attr:
                definition.arg_attr[position].attr[REMARK].CopyFrom(encode([shape]))
        for node in definition.node_def:
            made = body.graph.get(node.name)
            if REMARK in node.attr and made is not None:
                node.attr[REMARK].CopyFrom(encode(shapes.of(made)))

    def described(self, meta: MetaGraph) -> MetaGraph:
        """The object graph with the new shapes of what functions take and give."""
        objects = meta.shell.object_graph_def
        if not any(name in objects.concrete_functions for name in self.arguments):
            return meta
        shell = type(meta.shell)()
        shell.CopyFrom(meta.shell)
        for name, shapes in self.arguments.items():
            if name in shell.object_graph_def.concrete_functions:
                function = shell.object_graph_def.concrete_functions[name]
                _describe(function.canonicalized_input_signature, list(shapes))
                _describe(function.output_signature, list(self.results.get(name, [])))
        for node in shell.object_graph_def.nodes:
            specs = {"function": node.function, "bare_concrete_function": node.bare_concrete_function}
            kind = node.WhichOneof("kind") or ""
            if kind not in specs or not specs[kind].function_spec.HasField("input_signature"):
                continue
            names = (
                [node.bare_concrete_function.concrete_function_name]
                if kind == "bare_concrete_function"
                else node.function.concrete_functions
            )
            for name in names:
                if name in self.arguments:
                    _describe(specs[kind].function_spec.input_signature, list(self.arguments[name]))
        return replace(meta, shell=shell)


def _called(node: Node, draft: Draft) -> list[FuncRef]:
    if node.op in draft.graph.library:
        return [FuncRef(node.op, {key: node.attrs[key] for key in node.attrs})]
    found: list[FuncRef] = []
    for key in node.attrs:
        value = node.attrs[key]
        for each in value if isinstance(value, list) else [value]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(each, FuncRef) and each.name in draft.graph.library:
                found.append(each)
    return found


def _infer_body(body: FunctionBody, shapes: Sequence[Shape], handles: Sequence[HandleData | None]) -> ShapeMap:
    known = {node.output(): (shape, handle) for node, shape, handle in zip(body.args, shapes, handles, strict=True)}
    return infer(body.graph, strict=False, arguments=known)


def _forget_remarks(body: FunctionBody, definition: FunctionDef) -> None:
    """Take what is noted of shapes out of a body, so that it does not stand against what is inferred."""
    for node in body.graph.nodes:
        if REMARK in node.attrs:
            del node.attrs[REMARK]


def _describe(value: StructuredValue, shapes: list[Shape]) -> None:
    """Write shapes into the tensors of a structure, in the order in which a function takes them."""
    match value.WhichOneof("kind"):
        case "tensor_spec_value":
            shape = shapes.pop(0) if shapes else UNKNOWN
            proto = value.tensor_spec_value.shape
            proto.Clear()
            shape_to_proto(shape, proto)
        case "list_value" | "tuple_value" as kind:
            for each in getattr(value, kind).values:
                _describe(each, shapes)
        case "dict_value":
            for key in sorted(value.dict_value.fields):
                _describe(value.dict_value.fields[key], shapes)
        case "named_tuple_value":
            for pair in value.named_tuple_value.values:
                _describe(pair.value, shapes)
        case _:
            pass
