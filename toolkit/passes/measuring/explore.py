"""Views of a model that need its graph: nodes chosen by a query, paths, the tree of scopes with costs.

The results are plain dictionaries and lists, ready for JSON; the schema is in `commands/inspect.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from schemas.meta_graph_pb2 import MetaGraphDef
from toolkit.errors import GraphError, GraphmillError, UsageError, did_you_mean
from toolkit.formats.models import graphdef, metagraph
from toolkit.formats.models.model import Model, ModelKind
from toolkit.graph import opdefs
from toolkit.graph import query as queries
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap, infer
from toolkit.graph.kinds import NodeKind
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.tensorref import parse_input
from toolkit.graph.unmade import UnmadeNodes
from toolkit.passes.measuring.body_costs import Cost, constant_bytes
from toolkit.passes.measuring.measure import Measured, Survey, measure

Report = dict[str, Any]
LARGEST = 10
_SERVING = "serving_default"
#: graphs of more nodes are measured only when that is asked for
_MANY = 200_000


# -- nodes -----------------------------------------------------------------------------------------------


def find_nodes(model: Model, where: str | None) -> list[Report]:
    """The nodes of the graph and of its functions that a query means; all without one.

    Raises:
        UsageError: the query is wrong, or names a node that is nowhere.
    """
    graph = model.graph
    query = None if where is None else queries.parse(where)
    bodies = [("", graph), *_bodies(graph)]
    for name in query.nodes if query else ():
        if not any(name in body for _, body in bodies):
            known = [node.name for node in graph.nodes]
            raise GraphError(f"the query names '{name}', which is no node of the graph{did_you_mean(name, known)}")
    table = graph.unmade
    found: list[Report] = []
    for function, body in bodies:
        chosen = body.nodes if query is None else query.select(body, function)
        chosen = [node for node in chosen if not function or node.op not in ("_Arg", "_Retval")]
        if chosen:
            rows = _Rows(body, function, table if body is graph else None)
            found += [rows.of(node) for node in chosen]
    return found


def missing_ops(model: Model, where: str) -> list[str]:
    """A sentence for each op that a query names and that is unknown, with ops of the model that are spelled alike."""
    graph = model.graph
    present = {node.op for node in graph.nodes}
    present |= {node.op for name in graph.library for node in graph.library.function(name).node_def}
    wanted = [op for op in queries.parse(where).ops if op not in present and opdefs.find(op) is None]
    return [f"there is no node with the op '{op}'{did_you_mean(op, present)}" for op in wanted]


def _bodies(graph: Graph) -> Iterator[tuple[str, Graph]]:
    for name in graph.library:
        try:
            yield name, instantiate(graph.library, FuncRef(name)).graph
        except GraphmillError:
            continue  # generic over a type: it has nodes only where it is called


class _Rows:
    """Makes the rows of a body's nodes. What follows from attributes, and from shapes, is put into words once for nodes
    that are alike.

    Args:
        table: that the nodes were made of, where they were.
    """

    def __init__(self, body: Graph, function: str, table: UnmadeNodes | None):
        self._function = function
        self._fan_out = _fan_outs(body)
        shapes = None if table is None else _shapes_of_table(body, table)
        self._shapes_of = _shapes(body).of if shapes is None else shapes
        self._attrs: dict[NodeKind, dict[str, str]] = {}
        self._outputs: dict[tuple[DType, Shape], Report] = {}

    def of(self, node: Node) -> Report:
        """The row of a node."""
        try:
            outputs = list(self._outputs_of(node))
        except GraphmillError:
            outputs = []
        kind = node.kind
        attrs = None if kind is None else self._attrs.get(kind)
        if attrs is None:
            attrs = {key: _attribute(node, key) for key in sorted(node.attrs)}
            if kind is not None and kind.is_shared:
                self._attrs[kind] = attrs
        return {
            "name": node.name,
            "op": node.op,
            "function": self._function or None,
            "device": node.device,
            "inputs": [source.name for source in node.inputs],
            "control_inputs": [source.name for source in node.control_inputs],
            "outputs": outputs,
            "fan_in": len(node.inputs) + len(node.control_inputs),
            "fan_out": self._fan_out[node.id],
            "attrs": attrs,
        }

    def _outputs_of(self, node: Node) -> Iterator[Report]:
        types = node.output_types
        shapes = self._shapes_of(node) if types else []
        for index, dtype in enumerate(types):
            shape = shapes[index] if index < len(shapes) else UNKNOWN
            known = self._outputs.get((dtype, shape))
            if known is None:
                known = self._outputs[dtype, shape] = {"dtype": str(dtype), "shape": _dims(shape)}
            yield known


def _fan_outs(graph: Graph) -> list[int]:
    """How many edges lead out of each node, by id."""
    counts = [0] * len(graph)
    for node in graph.nodes:
        for source, _ in node.inputs:
            counts[source.id] += 1
        for source in node.control_inputs:
            counts[source.id] += 1
    return counts


def _shapes(graph: Graph) -> ShapeMap:
    try:
        return infer(graph, strict=False)
    except GraphmillError:
        return ShapeMap()


def _shapes_of_table(graph: Graph, table: UnmadeNodes) -> Callable[[Node], list[Shape]] | None:
    """What tells the shapes of a graph's nodes, found over the table that they were made of; None where they have to be
    found node by node."""
    from toolkit.formats.node_tables.columns import NodeColumns
    from toolkit.formats.node_tables.infer import infer_table
    from toolkit.formats.node_tables.order import topological_order

    if not isinstance(table, NodeColumns):
        return None
    try:
        found = infer_table(table, graph, Calls(), topological_order(table))
    except GraphmillError:
        return None
    return None if found is None else lambda node: found.shapes.of(found.like(node.id))


def _attribute(node: Node, key: str) -> str:
    try:
        return queries.show(node.attrs[key])
    except GraphmillError:
        return "(damaged)"


def _dims(shape: Any) -> list[int | None] | None:
    return None if shape.dims is None else list(shape.dims)


def find_path(model: Model, start: str, end: str) -> list[Report] | None:
    """The shortest path from one node to another, as its nodes with the edge that leads on; None when there is none.

    Both are in the graph, or in the body of one function.

    Raises:
        GraphError: a node does not exist.
    """
    names = [parse_input(name.removeprefix("^")).node for name in (start, end)]
    graph = model.graph
    if not all(name in graph for name in names):
        graph = next((body for _, body in _bodies(graph) if all(name in body for name in names)), graph)
    first, last = (graph.node(name) for name in names)
    path = queries.shortest_path(first, last, graph.consumers())
    if path is None:
        return None
    rows: list[Report] = []
    for node, edge in zip([first, *(edge.dst for edge in path)], [*path, None], strict=True):
        rows.append(
            {
                "name": node.name,
                "op": node.op,
                "output": None if edge is None or edge.is_control else edge.src_output,
                "control": edge is not None and edge.is_control,
            }
        )
    return rows


# -- costs -----------------------------------------------------------------------------------------------


def costs(model: Model, batch: int = 1, signature: str | None = None) -> Report:
    """Operations, parameters and bytes by op, and for each signature with the memory it needs.

    Args:
        signature: measure what this signature needs; by default see `default_signature`.

    Raises:
        GraphError: the graph has a cycle or an unknown op.
        UsageError: there is no such signature.
    """
    key = default_signature(model, signature)
    calls, survey = Calls(), Survey(model.graph)
    measured = measure(model.graph, batch=batch, roots=_roots(model.meta, key), survey=survey, calls=calls)
    return _costs(model, measured, batch, key, calls, survey)


def default_signature(model: Model, asked: str | None) -> str | None:
    """Which signature is measured when none is asked for; None for the whole graph.

    The graph of a SavedModel calls its function once for every signature, and to save and restore: nobody runs all of
    it. So it is serving_default, or the first there is.

    Raises:
        UsageError: the one that is asked for does not exist.
    """
    keys = [key for key in model.meta.signatures if not key.startswith("__")]
    if asked is not None:
        if asked not in keys:
            raise UsageError(
                f"there is no signature '{asked}'" + did_you_mean(asked, keys, then=f"there are: {', '.join(keys)}")
            )
        return asked
    if model.kind is not ModelKind.SAVED_MODEL or not keys:
        return None
    return _SERVING if _SERVING in keys else sorted(keys)[0]


def _roots(meta: MetaGraph, key: str | None) -> list[str] | None:
    """The names of the nodes that a signature asks for, as far as there are any; None for the whole graph."""
    if key is None:
        return None
    names = {parse_input(tensor).node for tensor in meta.signatures[key].output_tensors().values()}
    return [name for name in names if name in meta.graph]


def add_costs(message: Any, report: Report) -> None:
    """Add to the report of a graph (`formats.inspection.summary`) what one run of it costs; takes the message apart.

    `costs` is null for a graph that cannot be measured: a broken one, or one of over _MANY nodes that would have to be
    looked at one by one. `broken` says why no runtime takes the graph, where that was seen on the way: an input that
    leads nowhere, a name twice, a cycle.
    """
    report["costs"] = report["broken"] = None
    is_large = report["nodes"] + sum(function["nodes"] for function in report["functions"]) > _MANY
    if is_large and not isinstance(message, Graph):
        return
    try:
        if isinstance(message, MetaGraphDef):
            meta = metagraph.from_proto(message)
        elif isinstance(message, Graph):
            meta = MetaGraph(message)
        else:
            meta = MetaGraph(graphdef.from_proto(message))
        survey = Survey(meta.graph)
    except GraphmillError as error:
        report["broken"] = str(error)
        return
    calls = Calls()
    try:
        if not survey.infer_columns(calls) and is_large:
            return
        signatures = _signature_costs(meta, 1, calls, survey)
        whole = None if signatures else measure(meta.graph, survey=survey, calls=calls)
    except GraphmillError:
        return
    if whole is not None:
        report["costs"] = {
            "flops": whole.total.flops, "peak_bytes": whole.peak_bytes, "unknown": whole.unknown, "signatures": {},
        }  # fmt: skip
        return
    report["costs"] = {
        "flops": max(one["flops"] for one in signatures.values()),
        "peak_bytes": max(one["peak_bytes"] for one in signatures.values()),
        "unknown": list(dict.fromkeys(reason for one in signatures.values() for reason in one["unknown"])),
        "signatures": signatures,
    }


def _signature_costs(meta: MetaGraph, batch: int, calls: Calls, survey: Survey) -> dict[str, Report]:
    """What each signature costs, with what it reads.

    Args:
        survey: of the graph.
    """
    asked = {key: _roots(meta, key) for key in meta.signatures if not key.startswith("__")}
    asked = {key: roots for key, roots in asked.items() if roots}
    if asked:
        survey.infer(calls)
    found: dict[str, Report] = {}
    for key, roots in asked.items():
        one = measure(meta.graph, batch=batch, roots=roots, survey=survey, calls=calls)
        found[key] = {
            "flops": one.total.flops,
            "peak_bytes": one.peak_bytes,
            "parameters": one.total.parameters,
            "weight_bytes": one.weight_bytes,
            "unknown": one.unknown,
        }
    return found


def _costs(model: Model, measured: Measured, batch: int, signature: str | None, calls: Calls, survey: Survey) -> Report:
    graph = model.graph
    signatures = _signature_costs(model.meta, batch, calls, survey)
    by_op = sorted(measured.by_op.items(), key=lambda item: (-item[1].flops, -item[1].bytes, item[0]))
    return {
        "signature": signature,
        "batch": batch,
        "total": measured.total.as_json(),
        "peak_bytes": measured.peak_bytes,
        "weight_bytes": measured.weight_bytes,
        "unknown": measured.unknown,
        "signatures": signatures,
        "by_op": {op: cost.as_json() for op, cost in by_op},
        "largest_constants": _largest(graph),
    }


def _largest(graph: Graph) -> list[Report]:
    """The constants with the most bytes, those of functions included."""
    constants = None
    if graph.unmade is not None:
        from toolkit.passes.measuring.measure_table import largest_constants

        constants = largest_constants(graph, LARGEST)
    if constants is None:
        constants = graph.nodes_of(("Const",))
    found = [(size, node.name, "") for node in constants if (size := constant_bytes(node)) is not None]
    for name in graph.library:
        for definition in graph.library.function(name).node_def:
            if definition.op == "Const" and "value" in definition.attr:
                found.append((definition.attr["value"].tensor.ByteSize(), definition.name, name))
    found.sort(key=lambda item: (-item[0], item[1]))
    return [{"name": name, "function": function or None, "bytes": size} for size, name, function in found[:LARGEST]]


def tree(model: Model, batch: int = 1, signature: str | None = None) -> Report:
    """The scopes of the graph as a tree, each with the cost of everything below it.

    Args:
        signature: as in `costs`.

    Raises:
        GraphError: the graph has a cycle or an unknown op.
        UsageError: there is no such signature.
    """
    measured = measure(model.graph, batch=batch, roots=_roots(model.meta, default_signature(model, signature)))
    scopes: dict[str, Cost] = measured.by_scope or {"": measured.total}
    root: Report = {"name": "", **scopes[""].as_json(), "unknown": measured.unknown, "children": []}
    by_name: dict[str, Report] = {"": root}
    for name in sorted(scopes):
        if name:
            entry: Report = {"name": name, **scopes[name].as_json(), "children": []}
            by_name[name] = entry
            by_name[name.rpartition("/")[0]]["children"].append(entry)
    return root
