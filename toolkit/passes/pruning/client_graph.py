"""The client graph: what one step needs, with its feeds and fetches made explicit (RewriteGraphForExecution)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeVar

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.bodies import ENDS
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output

T = TypeVar("T")

#: stands for the client's side in rendezvous keys
CLIENT = "client"
_EMPTY = TensorProto(dtype=dtypes.float32.enum)  # type: ignore[arg-type]
_EMPTY.tensor_shape.dim.add(size=0)


def rewrite_for_execution(
    graph: Graph, feeds: Sequence[Output], fetches: Sequence[Output], targets: Collection[Node]
) -> Graph:
    """A new graph that computes `fetches` and runs `targets` from `feeds`.

    Every fed tensor is replaced by an `_Arg` node, every fetched one read by a `_Retval` node (attributes "T" and
    "index", its position in the arguments); what neither fetches nor targets need is left out. Linear in the
    part that is kept.

    Raises:
        UsageError: a tensor is fed twice.
        GraphError: an argument or a result of a function is needed, which nobody gives or takes here.
    """
    fed: dict[tuple[int, int], int] = {}
    for index, (node, output) in enumerate(feeds):
        if fed.setdefault((node.id, output), index) != index:
            raise UsageError(f"the tensor '{node.name}:{output}' is fed twice")
    keep = _reachable(graph, fed, [f.node for f in fetches if (f.node.id, f.index) not in fed], targets)

    out = Graph()
    out.versions.CopyFrom(graph.versions)
    out.library = graph.library
    args = [
        out.add(
            "_Arg", f"_arg_{node.name}_{output}_{index}", attrs={"T": node.output_types[output].base, "index": index},
            device=node.device,
        )
        for index, (node, output) in enumerate(feeds)
    ]  # fmt: skip
    kept = [graph.nodes[i] for i in sorted(keep)]
    for node in kept:
        if node.op in ENDS:
            advice = ": feed it" if node.output_types else ""
            told = f"{node.op} belongs to the body of a function, not to a graph that is run{advice}"
            raise GraphError(told, node=node.name)
    copies = out.add_copies(kept, len(graph.nodes))
    # one endpoint for all who read a node's first output; for what is fed its argument stands
    first = [None if copy is None else Output(copy, 0) for copy in copies]
    others: dict[tuple[int, int], Output] = {}
    for (number, output), index in fed.items():
        if output:
            others[number, output] = Output(args[index], 0)
        else:
            first[number] = Output(args[index], 0)

    def source_of(src: Node, index: int) -> Output:
        if not index:
            return _there(first[src.id])
        return others.get((src.id, index)) or Output(_there(copies[src.id]), index)

    for node in kept:
        copy = _there(copies[node.id])
        inputs = copy.inputs
        for src, index in node.inputs:
            source = None if index else first[src.id]
            inputs.append(source_of(src, index) if source is None else source)
        if node.control_inputs:
            copy.control_inputs = [
                args[fed[src.id, 0]] if _is_fed_placeholder(src, fed) else _there(copies[src.id])
                for src in node.control_inputs
            ]
    for index, (node, output) in enumerate(fetches):
        out.add(
            "_Retval", f"_retval_{node.name}_{output}_{index}", [source_of(node, output)],
            attrs={"T": node.output_types[output].base, "index": index}, device=node.device,
        )  # fmt: skip
    return out


def _there(found: T | None) -> T:
    """What was reached, and so was copied."""
    assert found is not None
    return found


def rewrite_for_partial_run(
    graph: Graph, feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]
) -> Graph:
    """The client graph of a step that is fed and fetched bit by bit.

    Feeds arrive by _Recv and fetches leave by _Send, under `feed_key` and `fetch_key`; that a target has run is told
    by an empty tensor under `target_key`.

    Raises:
        UsageError: a tensor is fed twice.
    """
    out = rewrite_for_execution(graph, feeds, fetches, targets)
    for node in list(out.nodes):
        if node.op == "_Arg":
            _make_transfer(node, "_Recv", "tensor_type", feed_key(node.attr("index")))
        elif node.op == "_Retval":
            _make_transfer(node, "_Send", "T", fetch_key(node.attr("index")))
    for index, target in enumerate(targets):
        kind = dtypes.float32
        done = out.add(
            "Const", f"_target_{target.name}_{index}", control_inputs=[out.node(target.name)],
            attrs={"dtype": kind, "value": _EMPTY}, device=target.device,
        )  # fmt: skip
        send = out.add(
            "_Send", f"_sent_{target.name}_{index}", [done.output()], attrs={"T": kind}, device=target.device
        )
        _make_transfer(send, "_Send", "T", target_key(index))
    return out


def feed_key(index: int) -> str:
    """The `tensor_name` under which a partial run receives a feed."""
    return f"feed_{index}"


def fetch_key(index: int) -> str:
    """The `tensor_name` under which a partial run sends a fetch."""
    return f"fetch_{index}"


def target_key(index: int) -> str:
    """The `tensor_name` under which a partial run says that a target has run."""
    return f"target_{index}"


def _make_transfer(node: Node, op: str, type_attr: str, name: str) -> None:
    dtype = node.attr("T")
    for attr in list(node.attrs):
        del node.attrs[attr]
    node.op = op
    node.attrs.update(
        {
            type_attr: dtype,
            "tensor_name": name,
            "send_device": CLIENT,
            "send_device_incarnation": 0,
            "recv_device": CLIENT,
            "client_terminated": True,
        }
    )
    node.invalidate_types()


def _reachable(
    graph: Graph, fed: dict[tuple[int, int], int], fetched: Collection[Node], targets: Collection[Node]
) -> set[int]:
    """Ids of the nodes that must run: reverse reachability that stops at fed tensors.

    A node whose outputs are fed still runs when a control edge asks for it, as in TensorFlow; a placeholder, which
    cannot run, is replaced by its _Arg there too.
    """
    roots = [node.id for node in (*fetched, *targets)]
    seen = set(roots)
    stack = list(roots)
    nodes = graph.nodes
    while stack:
        node = nodes[stack.pop()]
        for src, index in node.inputs:
            if src.id not in seen and (src.id, index) not in fed:
                seen.add(src.id)
                stack.append(src.id)
        for src in node.control_inputs:
            if src.id not in seen and not _is_fed_placeholder(src, fed):
                seen.add(src.id)
                stack.append(src.id)
    return seen


def _is_fed_placeholder(node: Node, fed: dict[tuple[int, int], int]) -> bool:
    return node.op in ("Placeholder", "PlaceholderV2") and (node.id, 0) in fed
