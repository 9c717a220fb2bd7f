"""A part of a graph made a function: the reverse of putting a function in the place of its call."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from schemas.function_pb2 import FunctionDef
from toolkit.graph.bodies import FunctionBody, to_function
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.optimize.rewriting import Rewriting

_COLOCATION = b"loc:@"


def outline(
    work: Rewriting,
    name: str,
    nodes: Collection[Node],
    types: Sequence[DType],
    given: Mapping[Output, int],
    results: Sequence[Output],
    effects: Collection[Node] = (),
) -> str:
    """Add a function to the library of a graph that is rewritten; returns its name.

    Nodes keep their names in it. What they wait for outside of the function is dropped: the caller waits for that.

    Args:
        name: what it is called, where that is free.
        nodes: what is in it; all their data inputs are in it too, or given.
        types: those of its arguments.
        given: the tensors that are arguments, with the argument's index.
        results: what it returns: outputs of its nodes, or tensors that are given.
        effects: nodes that run whether or not a result needs them.
    """
    graph = Graph()
    graph.library = work.graph.library
    taken = {node.name for node in nodes}
    labels = [_free(f"arg_{index}", taken) for index in range(len(types))]
    args = [
        graph.add("_Arg", label, attrs={"T": dtype, "index": index})
        for index, (label, dtype) in enumerate(zip(labels, types, strict=True))
    ]
    copies = {node: graph.add_copy(node) for node in nodes}

    def inside(source: Output) -> Output:
        index = given.get(source)
        return Output(copies[source.node], source.index) if index is None else args[index].output()

    for node, copy in copies.items():
        copy.inputs = [inside(source) for source in node.inputs]
        copy.control_inputs = [copies[source] for source in node.control_inputs if source in copies]
        _place_inside(copy, taken)
    function = FunctionDef()
    function.signature.name = _free(name, work.graph.library)
    for label, dtype in zip(labels, types, strict=True):
        function.signature.input_arg.add(name=label, type=dtype.enum)
    ends: list[Node] = []
    for index, source in enumerate(results):
        dtype = source.dtype.base
        function.signature.output_arg.add(name=f"result_{index}", type=dtype.enum)
        attrs = {"T": dtype, "index": index}
        ends.append(graph.add("_Retval", _free(f"result_{index}", taken), [inside(source)], attrs=attrs))
    running = [copies[node] for node in effects]
    for position in range(len(running)):
        key = f"effect_{position:06}"  # they are matched in the order of their keys
        function.control_ret[key] = ""
        function.signature.control_output.append(key)
    function.signature.is_stateful = any(is_stateful(node) for node in nodes)
    made = to_function(FunctionBody(graph, args, ends, running), function)
    work.graph.library.add(made)
    return function.signature.name


def is_stateful(node: Node) -> bool:
    """Whether a node has state or effects, as its OpDef says; an op that nobody knows has."""
    definition = node.graph.find_op_def(node.op)
    return definition is None or definition.is_stateful


def _place_inside(copy: Node, names: Collection[str]) -> None:
    """Keep only those of a node's colocations that are in the function."""
    if "_class" not in copy.attrs:
        return
    wanted: list[bytes] = copy.attr_or("_class", [])
    kept = [each for each in wanted if each.removeprefix(_COLOCATION).decode(errors="replace") in names]
    if kept:
        copy.attrs["_class"] = kept
    else:
        del copy.attrs["_class"]


def _free(name: str, taken: object) -> str:
    """A name that a container does not have."""
    found, count = name, 0
    while found in taken:  # pyright: ignore[reportOperatorIssue] -- a set of names, or a library
        count += 1
        found = f"{name}_{count}"
    return found
