"""Put the bodies of functions in the place of their calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from toolkit.errors import GraphmillError
from toolkit.graph.bodies import ENDS, FunctionBody, called, instantiate
from toolkit.graph.expansion import expansion
from toolkit.graph.frames import assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, SWITCH_OPS, Node, Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

#: attributes of calls and functions that ask for them to stay calls
_STAY = ("_noinline", "_XlaMustCompile", "_XlaCompile", "_disable_call_shape_inference")
_COLOCATION = b"loc:@"


@dataclass(frozen=True)
class InlineFunctions(Optimization):
    """Replace PartitionedCall, StatefulPartitionedCall and calls of functions by name with the nodes of their bodies.

    The call's node stays, as an Identity, IdentityN or NoOp that hands on the results and waits for the effects, so
    whoever took its outputs or waited for it goes on as before. What has effects in the body waits for what the call
    took and waited for. Nodes of the body are named after the call, go to its device where they name none, and keep
    colocations and loop frames of their own.

    Left alone are functions that call themselves, that ask not to be inlined, whose variables or tables are named
    after their nodes, those with seeded random ops, which would no longer go on from call to call, and those with
    effects in branches or loops of Switch and Merge, which nothing outside of these can wait for.

    Attributes:
        max_nodes: calls stay calls once the graph would have more nodes, and those of functions that would alone have
            more, with all that they call in place: forty functions that each call the next one twice are a few lines,
            and of 2^40 nodes a part would be no gain. The bodies of functions may together have as many again.
        kept_nodes: the most nodes of a function that is put in place although it stays as well, for the objects of a
            SavedModel need it: each call of it would add what is there already, and is optimized there.
    """

    name: ClassVar[str] = "inline_functions"

    max_nodes: int = 100_000
    kept_nodes: int = 100_000

    def in_bodies(self, graph: Graph) -> InlineFunctions:
        """Functions share `max_nodes`: each that calls others may have as large a part, or nodes would add up."""
        sizes = expansion(graph.library).nodes
        calling = sum(sizes[name] > len(graph.library.function(name).node_def) for name in graph.library)
        return replace(self, max_nodes=self.max_nodes // max(1, calling))

    def apply(self, graph: Graph) -> PassResult:
        """The report has `inlined`, how many calls were."""
        if not len(graph.library):
            return PassResult(graph, False, {"inlined": 0})
        work = Rewriting(graph, self.kept)
        expanded = expansion(graph.library)
        waiting = [node for node in work.graph if called(node) is not None]
        refused: set[str] = set()
        count = 0
        while waiting and len(work.graph) <= self.max_nodes:
            node = waiting.pop()
            ref = called(node)
            if ref is None or ref.name in expanded.recursive or ref.name in refused or work.is_fed(node):
                continue
            if expanded.nodes.get(ref.name, 0) > self.max_nodes:
                continue
            if _stays(node, graph, ref.name):
                continue
            try:
                body = instantiate(graph.library, ref)
            except GraphmillError:
                refused.add(ref.name)
                continue
            if not _is_movable(body) or _has_inner_effects(body) or len(body.args) != len(node.inputs):
                refused.add(ref.name)
                continue
            if len(work.graph) + len(body.graph) > self.max_nodes:
                continue
            if ref.name in self.kept.functions and _size(body) > self.kept_nodes:
                continue
            waiting += [each for each in inline(work, node, body) if called(each) is not None]
            count += 1
        return work.result({"inlined": count})


def _stays(node: Node, graph: Graph, name: str) -> bool:
    if any(bool(node.attr_or(key, False)) for key in _STAY if key in node.attrs):
        return True
    if node.attr_or("executor_type", b""):
        return True
    function = graph.library.function(name)
    return any(key in function.attr and function.attr[key].b for key in _STAY)


def _size(body: FunctionBody) -> int:
    """How many nodes a body brings along."""
    return len(body.graph) - len(body.args) - len(body.results)


def _is_movable(body: FunctionBody) -> bool:
    """Whether nodes of a body mean the same under other names and called from several places."""
    for node in body.graph:
        definition = body.graph.find_op_def(node.op)
        if definition is None:
            return False
        if not definition.is_stateful or node.op == "_Arg":
            continue
        names = [node.attr_or(key, b"") for key in ("shared_name", "container") if key in definition.attrs]
        if "shared_name" in definition.attrs and not names[0] and _makes_resource(node):
            return False
        if any(node.attr_or(key, 0) for key in ("seed", "seed2") if key in definition.attrs):
            return False
    return True


def _makes_resource(node: Node) -> bool:
    return not node.inputs and any(each.is_ref or each.name in ("resource", "string") for each in node.output_types)


def _has_effects(node: Node) -> bool:
    """Whether a node of a body may have to wait for effects before it, or others for it; arrays go with their flow."""
    if node.op in ENDS or (node.op.startswith("TensorArray") and not node.op.startswith("TensorArrayClose")):
        return False
    return node.op in node.graph.library or node.graph.op_def(node.op).is_stateful


def _has_inner_effects(body: FunctionBody) -> bool:
    """Whether something with an effect is in a loop, or on one side of a branch."""
    if not any(node.op in ENTER_OPS or node.op in SWITCH_OPS for node in body.graph):
        return False
    order = body.graph.topological_order()
    frames, _ = assign_frames(body.graph, order)
    depths: dict[Node, int] = {}  # of branches; inside of loops, of those around the loop
    for node in order:
        sources = [*(source for source, _ in node.inputs), *node.control_inputs]
        depth = max((depths.get(source, 0) for source in sources), default=0)
        in_loop = frames[node.id].parent is not None
        depth += not in_loop and node.op in SWITCH_OPS
        if (depth or in_loop) and _has_effects(node):
            return True
        depths[node] = max(depth - (not in_loop and node.op in MERGE_OPS), 0)
    return False


def inline(work: Rewriting, call: Node, body: FunctionBody) -> list[Node]:
    """Put a body in the place of a call; returns the new nodes."""
    given = list(call.inputs)
    begin = _begin(work, call)
    parameters = dict(zip(body.args, given, strict=True))
    copies: dict[Node, Node] = {}
    order = [node for node in body.graph if node.op not in ("_Arg", "_Retval")]
    for node in order:
        copies[node] = work.add_copy(node, f"{call.name}/{node.name}", ())
    prefix = call.name.encode()

    def output(source: Output) -> Output:
        found = parameters.get(source.node)
        return Output(copies[source.node], source.index) if found is None else found

    effects: list[Node] = []
    for node in order:
        copy = copies[node]
        waits: list[Node] = []
        for source in node.control_inputs:
            if source in copies:
                waits.append(copies[source])
            elif source in parameters:
                waits.append(awaited(work, parameters[source]))
        has_effects = _has_effects(node)
        if begin and (has_effects or not (node.inputs or node.control_inputs)):
            waits += begin
        work.set_inputs(copy, [output(source) for source in node.inputs])
        work.set_controls(copy, waits)
        if has_effects:
            effects.append(copy)
        copy.device = copy.device or call.device
        _rename(copy, body.graph, copies, prefix)
    results = [output(result.inputs[0]) for result in body.results]
    waits = [*begin, *(copies[node] for node in body.control_results if node in copies), *effects]
    types = [result.dtype.base for result in results]
    if not results:
        work.turn(call, "NoOp", (), {}, waits)
    elif len(results) == 1:
        work.turn(call, "Identity", results, {"T": types[0]}, waits)
    else:
        work.turn(call, "IdentityN", results, {"T": types}, waits)
    return list(copies.values())


def _begin(work: Rewriting, call: Node) -> list[Node]:
    """What there must be before anything in a call with an effect, or without inputs, runs: all that it takes and waits
    for, but for what is always there."""
    waits = dict.fromkeys(call.control_inputs)
    for source in call.inputs:
        if not work.is_idle_wait(source.node, call):
            waits[awaited(work, source)] = None
    if len(waits) <= 1:
        return list(waits)
    return [work.add("NoOp", f"{call.name}/begin", control_inputs=waits, device=call.device)]


def awaited(work: Rewriting, source: Output) -> Node:
    """A node that runs when an output is there: of a Switch that is not the Switch itself."""
    if source.node.op not in SWITCH_OPS:
        return source.node
    attrs = {"T": source.dtype.base}
    return work.add("Identity", f"{source.node.name}/there", [source], attrs=attrs, device=source.node.device)


def _rename(copy: Node, body: Graph, copies: dict[Node, Node], prefix: bytes) -> None:
    """Keep what names nodes of the body, and loop frames of one call apart from those of another."""
    if copy.op in ENTER_OPS:
        copy.attrs["frame_name"] = prefix + b"/" + copy.attr("frame_name")
    if "_class" in copy.attrs:
        names: list[bytes] = copy.attr_or("_class", [])
        kept: list[bytes] = []
        for name in names:
            other = body.get(name.removeprefix(_COLOCATION).decode(errors="replace"))
            if other is not None and other in copies:
                kept.append(_COLOCATION + copies[other].name.encode())
        if kept:
            copy.attrs["_class"] = kept
        else:
            del copy.attrs["_class"]
