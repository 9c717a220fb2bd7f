"""Graphs and functions that may be broken: as much of them as can be built, and what stood in the way.

`Graph.from_proto` refuses a graph with a dangling input or two nodes of one name, which is right for every command
but validate, whose users want all findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.function_pb2 import FunctionDef, FunctionDefLibrary
from schemas.graph_pb2 import GraphDef
from toolkit.errors import GraphError, did_you_mean
from toolkit.graph import opdefs
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.tensorref import parse_input
from toolkit.passes.validate.registry import Problem


def loose_graph(proto: GraphDef, problems: list[Problem]) -> tuple[Graph, set[int]]:
    """Build a graph from a message (do not use it afterwards), as far as that goes.

    A second node of the same name is left out, and so is an input that does not exist; both are noted in `problems`.

    Returns:
        the graph, and the ids of nodes that lack inputs.
    """
    graph = Graph()
    graph.versions.CopyFrom(proto.versions)
    graph.library = _loose_library(proto.library, problems)
    broken: set[int] = set()
    nodes, by_name = graph.nodes, graph._by_name  # pyright: ignore[reportPrivateUsage]
    opdefs.hear({definition.op: definition for definition in proto.node})
    for definition in proto.node:
        name = definition.name
        if name in by_name:
            problems.append(Problem("structure/duplicate-name", f"two nodes are named '{name}'", name))
            continue
        node = Node(graph, len(nodes), name, definition.op, definition.device, definition)
        by_name[name] = node
        nodes.append(node)
    for node in nodes:
        _link(node, by_name, broken, problems)
    graph._shell = GraphDef()  # pyright: ignore[reportPrivateUsage]
    return graph, broken


def _loose_library(proto: FunctionDefLibrary, problems: list[Problem]) -> FunctionLibrary:
    library = FunctionLibrary()
    for function in proto.function:
        try:
            library.add(function)
        except GraphError as error:
            problems.append(Problem("functions/duplicate", error.message, function=function.signature.name))
    library.gradients = {g.function_name: g.gradient_func for g in proto.gradient}
    return library


def _link(node: Node, by_name: dict[str, Node], broken: set[int], problems: list[Problem]) -> None:
    assert node.base is not None
    for text in node.base.input:
        src = by_name.get(text)
        index = 0
        if src is None:
            name, index = parse_input(text)
            src = by_name.get(name)
            if src is None:
                rule = "structure/dangling-control" if index < 0 else "structure/dangling-input"
                what = "waits for" if index < 0 else "has the input"
                hint = did_you_mean(name, by_name) if len(problems) < 50 else ""  # a search through all names
                problems.append(Problem(rule, f"it {what} '{text}', which does not exist{hint}", node.name))
                if index >= 0:
                    broken.add(node.id)
                continue
            if index < 0:
                node.control_inputs.append(src)
                continue
        if node.control_inputs:
            problems.append(
                Problem("structure/input-order", f"its data input '{text}' comes after a control input", node.name)
            )
        node.inputs.append(Output(src, index))


def function_problems(name: str, function: FunctionDef, library: FunctionLibrary) -> Iterator[Problem]:
    """What is wrong with a function's body by its names alone."""
    args = {arg.name for arg in function.signature.input_arg}
    nodes: set[str] = set()
    outputs: dict[str, set[str]] = {}
    is_known = True
    for node in function.node_def:
        if node.name in nodes:
            yield Problem("structure/duplicate-name", f"two nodes are named '{node.name}'", node.name, name)
        nodes.add(node.name)
        op_def = library.op_def(node.op) or opdefs.find(node.op)
        if op_def is None:
            hint = did_you_mean(node.op, (*opdefs.names(), *library))
            yield Problem("opdef/unknown-op", f"unknown op '{node.op}'{hint}", node.name, name)
            is_known = False
        else:
            outputs[node.name] = {arg.name for arg in op_def.outputs}

    def exists(text: str) -> bool:
        node, _, rest = text.partition(":")
        if node in nodes and rest:
            return not is_known or rest.partition(":")[0] in outputs[node]
        return node in args

    for node in function.node_def:
        for text in node.input:
            if text.startswith("^"):
                if text[1:] not in nodes and text[1:] not in args:
                    message = f"it waits for '{text}', which does not exist"
                    yield Problem("structure/dangling-control", message, node.name, name)
            elif not exists(text):
                hint = did_you_mean(text.partition(":")[0], nodes | args)
                message = f"it has the input '{text}', which does not exist{hint}"
                yield Problem("structure/dangling-input", message, node.name, name)
    for arg in function.signature.output_arg:
        source = function.ret.get(arg.name)
        if source is None:
            yield Problem("functions/return", f"its result '{arg.name}' has no value in 'ret'", function=name)
        elif not exists(source):
            yield Problem(
                "functions/return", f"its result '{arg.name}' is '{source}', which does not exist", function=name
            )
    for key in sorted(function.control_ret):
        if function.control_ret[key] not in nodes:
            message = f"its control result '{key}' is '{function.control_ret[key]}', which does not exist"
            yield Problem("functions/return", message, function=name)


def missing_attrs(name: str, function: FunctionDef, library: FunctionLibrary) -> Iterator[Problem]:
    """Required attributes that nodes of a function's body lack."""
    for node in function.node_def:
        op_def = library.op_def(node.op) or opdefs.find(node.op)
        for key, definition in op_def.attrs.items() if op_def is not None else ():
            if not definition.has_default and key not in node.attr:
                yield Problem("opdef/missing-attr", f"{node.op} needs the attribute '{key}'", node.name, name)


# -- cycles ----------------------------------------------------------------------------------------------


def find_cycles(graph: Graph) -> list[list[Node]]:
    """The strongly connected parts of a graph without its loops' back edges, by Tarjan's algorithm (1972).

    A back edge leads from NextIteration into Merge; TensorFlow's importer follows all others.
    """
    if graph.is_in_order():
        return []
    nodes = graph.nodes
    try:
        graph.topological_order()  # follows no edge out of NextIteration
    except GraphError:
        pass
    else:
        if not any(_leads_astray(node) for node in nodes):
            return []
    sources = [
        [
            source.id
            for source in (*(src for src, _ in node.inputs), *node.control_inputs)
            if source.op not in NEXT_ITERATION_OPS or node.op not in MERGE_OPS
        ]
        for node in nodes
    ]
    index: dict[int, int] = {}
    low = [0] * len(nodes)
    on_path = bytearray(len(nodes))
    path: list[int] = []
    found: list[list[Node]] = []
    for root in range(len(nodes)):
        if root in index:
            continue
        work = [(root, iter(sources[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path[root] = 1
        while work:
            node, rest = work[-1]
            for source in rest:
                if source not in index:
                    index[source] = low[source] = len(index)
                    path.append(source)
                    on_path[source] = 1
                    work.append((source, iter(sources[source])))
                    break
                if on_path[source]:
                    low[node] = min(low[node], index[source])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    part: list[int] = []
                    while not part or part[-1] != node:
                        part.append(path.pop())
                        on_path[part[-1]] = 0
                    if len(part) > 1 or node in sources[node]:
                        found.append([nodes[i] for i in sorted(part)])
    return found


def _leads_astray(node: Node) -> bool:
    """Whether an edge leads from NextIteration into something that is no Merge."""
    if node.op in MERGE_OPS:
        return False
    return any(src.op in NEXT_ITERATION_OPS for src, _ in node.inputs) or any(
        src.op in NEXT_ITERATION_OPS for src in node.control_inputs
    )
