"""Functions made into graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from schemas import function_pb2, node_def_pb2
from toolkit.errors import GraphError, did_you_mean
from toolkit.graph import opdefs
from toolkit.graph.attrs import AttrPlaceholder, FuncRef, decode
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.nodedefs import node_to_proto
from toolkit.graph.opdefs import OpDef

#: what stands for arguments and results in the bodies of functions, and in client graphs
ENDS = frozenset({"_Arg", "_DeviceArg", "_Retval", "_DeviceRetval"})

#: ops that do nothing but call the function of their attribute "f"
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


@dataclass(slots=True)
class FunctionBody:
    """A function made into a graph.

    Attributes:
        graph: its nodes, with one `_Arg` node per argument and one `_Retval` per result.
        args, results: those nodes, by index.
        control_results: nodes that must run whether or not a result needs them (control_ret).
    """

    graph: Graph
    args: list[Node]
    results: list[Node]
    control_results: list[Node]


def called(node: Node) -> FuncRef | None:
    """The function that a node does nothing but call, by name or as one of `CALLS`; None where it is none of those."""
    if node.op in node.graph.library:
        return FuncRef(node.op, {key: node.attrs[key] for key in node.attrs if not key.startswith("_")})
    if node.op not in CALLS:
        return None
    ref = node.attr_or("f", None)
    return ref if isinstance(ref, FuncRef) and ref.name in node.graph.library else None


def functions_of(node: Node) -> list[FuncRef]:
    """The functions of the graph's library that a node calls: it is a call by name, or attributes name them."""
    library = node.graph.library
    if not len(library):
        return []
    if node.op in library:
        ref = called(node)
        return [] if ref is None else [ref]
    found: list[FuncRef] = []
    for name in node.attrs:
        value: Any = node.attr_or(name, None)
        refs: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        found += [ref for ref in refs if isinstance(ref, FuncRef) and ref.name in library]
    return found


def instantiate(library: FunctionLibrary, ref: FuncRef) -> FunctionBody:
    """Build the body of a function, its attribute placeholders filled in from `ref.attrs`.

    `_Arg` and `_Retval` nodes carry "T" and "index" as in TensorFlow's function runtime. Node names are those
    of the FunctionDef; results are named after the signature's outputs.

    Raises:
        GraphError: the function is unknown, or its body is malformed.
    """
    function = library.function(ref.name)
    signature = library.op_def(ref.name)
    assert signature is not None
    graph = Graph()
    graph.library = library
    try:
        return _Builder(graph, function, signature, ref.attrs).build()
    except GraphError as error:
        error.message = f"in function '{ref.name}': {error.message}"
        raise


def to_function(body: FunctionBody, original: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """The FunctionDef of a body that was made of `original` and then changed; signature and attributes stay.

    Args:
        original: a function without attributes of its own and without lists among its arguments and results.

    Raises:
        GraphError: a node's op is unknown.
    """
    out = function_pb2.FunctionDef()
    out.CopyFrom(original)
    del out.node_def[:]
    arguments = {node: arg.name for node, arg in zip(body.args, original.signature.input_arg, strict=True)}
    names: dict[Node, list[str]] = {}

    def endpoint(source: Output) -> str:
        node, index = source
        if node in arguments:
            return arguments[node]
        known = names.get(node)
        if known is None:
            ranges = node.op_def.arg_ranges(node.op_def.outputs, node.attrs)
            known = names[node] = [
                f"{node.name}:{arg}:{place}" for arg, positions in ranges.items() for place in range(len(positions))
            ]
        return known[index]

    results = set(body.results)
    for node in body.graph.nodes:
        if node in arguments or node in results:
            continue
        definition = node_to_proto(node)
        if definition is node.base:
            copy = node_def_pb2.NodeDef()
            copy.CopyFrom(definition)
            definition = copy
        del definition.input[:]
        definition.input.extend(endpoint(source) for source in node.inputs)
        definition.input.extend("^" + (arguments.get(source) or source.name) for source in node.control_inputs)
        out.node_def.append(definition)
    for result, arg in zip(body.results, original.signature.output_arg, strict=True):
        out.ret[arg.name] = endpoint(result.inputs[0])
    for key, node in zip(sorted(original.control_ret), body.control_results, strict=True):
        out.control_ret[key] = node.name
    return out


class _Builder:
    def __init__(self, graph: Graph, function: function_pb2.FunctionDef, signature: OpDef, attrs: Any):
        self.graph = graph
        self.function = function
        self.signature = signature
        self.attrs: Mapping[str, Any] = attrs
        self.by_input: dict[str, Output] = {}
        self.outputs: dict[str, tuple[Node, range]] = {}

    def build(self) -> FunctionBody:
        args = self._add_args()
        body = [self._add_node(definition) for definition in self.function.node_def]
        for node in body:
            self._index_outputs(node)
        for node, definition in zip(body, self.function.node_def, strict=True):
            for text in definition.input:
                if text.startswith("^"):
                    node.control_inputs.append(self._control(text[1:], node.name))
                else:
                    node.inputs.append(self._resolve(text, node.name))
        results = self._add_results()
        controls = [self._control(self.function.control_ret[key], key) for key in sorted(self.function.control_ret)]
        return FunctionBody(self.graph, args, results, controls)

    def _add_args(self) -> list[Node]:
        args: list[Node] = []
        for arg in self.signature.inputs:
            types = self.signature.expand((arg,), self.attrs)
            is_sequence = bool(arg.number_attr or arg.type_list_attr)
            for position, dtype in enumerate(types):
                name = f"{arg.name}_{position}" if is_sequence else arg.name
                node = self.graph.add("_Arg", self.graph.unique_name(name), attrs={"T": dtype.base, "index": len(args)})
                self.by_input[f"{arg.name}:{position}"] = node.output()
                if position == 0:
                    self.by_input[arg.name] = node.output()
                args.append(node)
        return args

    def _add_node(self, definition: node_def_pb2.NodeDef) -> Node:
        name = definition.name
        if definition.op in ENDS:
            what = f"{definition.op} in the body of a function, whose signature has its arguments and results"
            raise GraphError(what, node=name)
        if opdefs.PLUGIN in definition.attr:
            opdefs.hear({definition.op: definition})
        if name in self.graph:  # an argument may have the name of a node
            name = self.graph.unique_name(name)
        node = Node(self.graph, len(self.graph), name, definition.op, definition.device, definition)
        self.graph._append(node)  # pyright: ignore[reportPrivateUsage]
        for key, value in definition.attr.items():
            filled = _fill(value, self.attrs)
            if filled is not None:
                node.attrs[key] = filled
        return node

    def _index_outputs(self, node: Node) -> None:
        assert node.base is not None
        ranges = node.op_def.arg_ranges(node.op_def.outputs, node.attrs)
        for arg, positions in ranges.items():
            self.outputs[f"{node.base.name}:{arg}"] = (node, positions)

    def _find(self, text: str) -> Output | None:
        """The endpoint that `argument`, `argument:index`, `node:output` or `node:output:index` names."""
        found = self.by_input.get(text)
        if found is not None:
            return found
        if text in self.outputs:
            name, index = text, 0
        else:
            name, _, digits = text.rpartition(":")
            if name not in self.outputs or not digits.isascii() or not digits.isdigit() or len(digits) > 9:
                return None
            index = int(digits)
        node, positions = self.outputs[name]
        return node.output(positions[index]) if index < len(positions) else None

    def _resolve(self, text: str, wanted_by: str) -> Output:
        found = self._find(text)
        if found is None:
            what = f"its input '{text}' does not exist{did_you_mean(text, [*self.by_input, *self.outputs])}"
            raise GraphError(what, node=wanted_by)
        return found

    def _control(self, name: str, wanted_by: str) -> Node:
        node = self.graph.get(name)
        if node is None:
            raise GraphError(f"its control input '{name}' does not exist", node=wanted_by)
        return node

    def _add_results(self) -> list[Node]:
        results: list[Node] = []
        for arg in self.signature.outputs:
            types = self.signature.expand((arg,), self.attrs)
            is_sequence = bool(arg.number_attr or arg.type_list_attr)
            source = self.function.ret[arg.name]
            for position, dtype in enumerate(types):
                text = f"{source}:{position}" if is_sequence else source
                name = self.graph.unique_name(f"{arg.name}_{position}_RetVal" if is_sequence else f"{arg.name}_RetVal")
                results.append(
                    self.graph.add(
                        "_Retval",
                        name,
                        [self._resolve(text, arg.name)],
                        attrs={"T": dtype.base, "index": len(results)},
                    )
                )
        return results


def _fill(value: Any, attrs: Mapping[str, Any]) -> Any:
    """The value with placeholders replaced, or None when it holds none."""
    kind = value.WhichOneof("value")
    if kind == "placeholder":
        name = value.placeholder
        if name not in attrs:
            raise GraphError(f"the attribute '{name}' of the function is not given")
        return attrs[name]
    if kind == "func" and len(value.func.attr):
        ref: FuncRef = decode(value)
        filled = {
            key: attrs[v.name] if isinstance(v, AttrPlaceholder) and v.name in attrs else v
            for key, v in ref.attrs.items()
        }
        return FuncRef(ref.name, filled)
    return None


__all__ = ["ENDS", "FunctionBody", "FunctionLibrary", "instantiate", "opdefs", "to_function"]
