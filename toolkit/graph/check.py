"""Is a graph well formed? The rules are those by which TensorFlow's importer accepts or refuses a GraphDef.

Findings have a level: "error" is what the importer refuses, "runtime" what it lets pass and a step then fails on.
What a reader already refuses (dangling inputs, duplicate names, data after control inputs) cannot occur in a Graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from schemas.attr_value_pb2 import AttrValue
from toolkit.errors import GraphError, GraphmillError, Hints, UsageError
from toolkit.graph import dtypes, opdefs, typed
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import PRODUCER, Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.graph.opdefs import OpDef

ERROR = "error"
RUNTIME = "runtime"

#: the newest GraphDef version we understand (TensorFlow 2.21's)
CONSUMER = PRODUCER

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*\Z")
#: what that allows anywhere but at the beginning
_IN_NAMES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.\\/>-"
#: so many nodes have their names looked at together
_CHUNK = 4096
_COLOCATION = b"loc:@"


@dataclass(frozen=True, slots=True)
class GraphFinding:
    """One thing that is wrong.

    Attributes:
        code: a short stable name: "unknown-op", "arity", "dtype", ...
        level: `ERROR` or `RUNTIME`.
        node: the node, or None when it is the graph as a whole.
    """

    code: str
    message: str
    node: str | None = None
    level: str = ERROR

    def as_error(self) -> GraphError:
        return GraphError(self.message, node=self.node)


def require_valid(graph: Graph, *, shapes: bool = False, runtime: bool = False) -> None:
    """Raise unless the graph is well formed.

    Args:
        shapes: also infer all shapes and refuse contradictions (slower).
        runtime: also refuse what would only fail when run.

    Raises:
        GraphError: the first thing that is wrong.
    """
    for finding in check(graph, shapes=shapes):
        if runtime or finding.level == ERROR:
            raise finding.as_error()


def require_valid_changes(graph: Graph, changed: Collection[Node]) -> None:
    """Raise unless a graph is well formed that was so before some of its nodes, and devices of any, were changed.

    Args:
        changed: the nodes that are new, changed in more than their device, or read such a node. No edge may have come
            that could close a cycle.

    Raises:
        GraphError: the first thing that is wrong.
    """
    if graph.unmade is not None:
        return  # there is no node that anybody could have changed
    for node in changed:
        for finding in check_node(node):
            if finding.level == ERROR:
                raise finding.as_error()
    for node in {node.device: node for node in graph.nodes}.values():  # one for each device
        for finding in check_device(node) if node.device else ():
            if finding.level == ERROR:
                raise finding.as_error()


def is_node_name(text: str) -> bool:
    """Whether a node may be called so."""
    return _NAME.match(text) is not None


def check(graph: Graph, *, shapes: bool = True) -> Iterator[GraphFinding]:
    """Everything that is wrong with a graph, node by node.

    Args:
        shapes: also look for contradictions of static shapes. Only a graph without other errors is asked, and
            only the first contradiction is reported.
    """
    failed = False
    for finding in _check_all(graph):
        failed = failed or finding.level == ERROR
        yield finding
    if shapes and not failed:
        from toolkit.graph.infer import infer

        try:
            infer(graph)
        except GraphmillError as error:
            yield GraphFinding("shape", error.message, error.node)


def _check_all(graph: Graph) -> Iterator[GraphFinding]:
    yield from _check_versions(graph)
    if _is_proved(graph):
        return
    backward: list[Node] = []
    hints = Hints()
    for node in _unproved(graph, backward):
        yield from check_node(node, hints)
    if not any(map(_reads_ahead, backward)):
        return
    try:
        graph.topological_order()
    except GraphError as error:
        yield GraphFinding("cycle", error.message, error.node)


def check_nodes(graph: Graph) -> Iterator[GraphFinding]:
    """Everything that is wrong with the nodes of a graph and the edges between them, in order."""
    if _is_proved(graph):
        return
    hints = Hints()
    for node in _unproved(graph, []):
        yield from check_node(node, hints)


def _is_proved(graph: Graph) -> bool:
    """Whether nothing is wrong with nodes that have not been made, as far as can be told of all together."""
    unmade = graph.unmade
    return unmade is not None and unmade.is_sound(graph)


def is_sound_here(node: Node) -> bool:
    """Whether nothing is wrong with the op and the attributes of a node, in its graph with the functions there are."""
    if node.kind is None:
        return False
    if is_sound(node):
        return True
    op_def = opdefs.find(node.op)
    if op_def is None or not _names_functions(op_def) or next(check_definition(node, op_def), None) is not None:
        return False
    try:
        _ = node.input_types, node.output_types
    except GraphmillError:
        return False
    colocations(node)  # the kind keeps them
    return True


def _names_functions(op_def: OpDef) -> bool:
    return any("func" in definition.type for definition in op_def.attrs.values())


def is_sound(node: Node) -> bool:
    """Whether nothing is wrong with the op and the attributes of a node, as far as that has to be looked at only once
    for many nodes; False where it has to be looked at for itself."""
    kind = node.kind
    if kind is None:
        return False
    producer = node.graph.versions.producer
    if kind.judged != producer:
        _judge(kind, node, producer)
    return kind.is_sound


def _unproved(graph: Graph, backward: list[Node]) -> Iterator[Node]:
    """The nodes that may have something wrong: not those of a kind that is sound, with the inputs that it wants.

    What depends on op and attributes alone is looked at once for each kind.

    Args:
        backward: to it are added the nodes that may read what does not stand before them.
    """
    producer = graph.versions.producer
    is_there = graph.__contains__
    devices = {""}  # in which there is nothing wrong
    nodes = graph.nodes
    for begin in range(0, len(nodes), _CHUNK):
        chunk = nodes[begin : begin + _CHUNK]
        are_good = are_names([node.name for node in chunk])
        for node in chunk:
            kind: Any = node._types  # pyright: ignore[reportPrivateUsage] # `Node.kind`, without a call for each edge
            number = node.id
            if (
                kind is not None
                and kind is node.source
                and (kind.is_sound if kind.judged == producer else _is_sound(kind, node, producer))
                and (are_good or _NAME.match(node.name))
            ):
                device = node.device
                if device not in devices and next(check_device(node), None) is None:
                    devices.add(device)
                inputs = node.inputs
                wanted = kind.inputs
                if wanted is None:
                    wanted = node.input_types
                if len(wanted) == len(inputs) and device in devices:
                    for (source, index), want in zip(inputs, wanted):  # noqa: B905  # of one length
                        made_by: Any = source._types  # pyright: ignore[reportPrivateUsage]
                        if (
                            made_by is None
                            or made_by is not source.source
                            or not (
                                made_by.is_sound if made_by.judged == producer else _is_sound(made_by, source, producer)
                            )
                        ):
                            break  # of what is unsound the types may not be known
                        given = made_by.outputs
                        if given is None:
                            given = source.output_types
                        if not 0 <= index < len(given) or not (given[index] is want or given[index].base is want):
                            break
                        if source.id >= number:
                            backward.append(node)
                    else:
                        if not kind.companions or all(map(is_there, kind.companions)):
                            if node.control_inputs:
                                backward.append(node)
                            continue
            backward.append(node)
            yield node


def are_names(names: list[str]) -> bool:
    """Whether all of these are names that nodes may have: looked at together, since there are so many."""
    text = b"\n" + "\n".join(names).encode(errors="replace")
    if text.translate(None, _IN_NAMES) != b"\n" * len(names) or text.endswith(b"\n"):
        return False
    return not any(b"\n" + bytes((character,)) in text for character in b"_/\\>-\n")


def _reads_ahead(node: Node) -> bool:
    """Whether a node does not stand after all that it reads, but for the back edges of loops."""
    number = node.id
    if any(source.id >= number for source in node.control_inputs):
        return True
    is_merge = node.op in MERGE_OPS
    return any(source.id >= number and not (is_merge and source.op in NEXT_ITERATION_OPS) for source, _ in node.inputs)


def _is_sound(kind: NodeKind, node: Node, producer: int) -> bool:
    _judge(kind, node, producer)
    return kind.is_sound


def _judge(kind: NodeKind, node: Node, producer: int) -> None:
    """Find whether something is wrong with the op and the attributes of a node of a kind."""
    like = kind.like
    if like is not None:
        if like.judged != producer:
            _judge_itself(kind, node, producer)
            like.take_verdict(kind)
        else:
            kind.take_verdict(like)
        return
    _judge_itself(kind, node, producer)


def _judge_itself(kind: NodeKind, node: Node, producer: int) -> None:
    kind.judged, kind.is_sound = producer, False
    op_def = opdefs.find(node.op)
    if op_def is None or _names_functions(op_def):
        return  # which functions there are differs from graph to graph
    if next(check_definition(node, op_def), None) is not None:
        return
    try:
        _ = node.input_types, node.output_types  # that they can be worked out
    except GraphmillError:
        return
    if node.op == "Const" and next(_check_const(node), None) is not None:
        return
    colocations(node)  # the kind keeps them
    kind.is_sound = True


def _check_versions(graph: Graph) -> Iterator[GraphFinding]:
    versions = graph.versions
    if versions.min_consumer > CONSUMER:
        yield GraphFinding(
            "min-consumer",
            f"the graph needs a reader of GraphDef version {versions.min_consumer} or newer; this one reads {CONSUMER}",
        )
    if CONSUMER in versions.bad_consumers:
        yield GraphFinding("bad-consumer", f"the graph says that readers of version {CONSUMER} misread it")
    if versions.producer < 0:
        yield GraphFinding("producer", f"the graph's producer version is {versions.producer}; it must not be negative")


def check_node(node: Node, hints: Hints | None = None) -> Iterator[GraphFinding]:
    """Everything that is wrong with one node and the edges into it.

    Args:
        hints: what several nodes share, where many are looked at.
    """
    name, hints = node.name, hints or Hints()
    if not _NAME.match(name):
        yield GraphFinding(
            "name", f"'{name}' is not a node name: letters, digits and _ . - / > \\, the first a letter, digit or .",
            name,
        )  # fmt: skip
    op_def = node.graph.find_op_def(node.op)
    if op_def is None:
        problem = opdefs.unknown_op(node.op, node.graph.library) if node.op else "unknown op ''; the op is empty"
        yield GraphFinding("unknown-op", problem, name)
        return
    bad_attrs = False
    for finding in check_definition(node, op_def, hints):
        bad_attrs = bad_attrs or (finding.level == ERROR and finding.code != "deprecated")
        yield finding
    if node.device:
        yield from check_device(node, hints)
    if not bad_attrs:
        yield from check_inputs(node, op_def)
    yield from _check_colocation(node, hints)
    if node.op == "Const" and not bad_attrs:
        yield from _check_const(node)


def check_definition(node: Node, op_def: OpDef, hints: Hints | None = None) -> Iterator[GraphFinding]:
    """What a node's op, alone, has against it: that it was removed, and values of attributes."""
    if op_def.deprecated_at and node.graph.versions.producer >= op_def.deprecated_at:
        yield GraphFinding(
            "deprecated",
            f"{node.op} is not allowed in graphs of version {op_def.deprecated_at} and later; this one is of "
            f"version {node.graph.versions.producer}: {op_def.deprecation}",
            node.name,
        )
    yield from _check_attrs(node, op_def, hints or Hints())


def check_device(node: Node, hints: Hints | None = None) -> Iterator[GraphFinding]:
    """The importer reads device names loosely; the placer, when the graph runs, does not.

    "@node", that node's device, is what the first versions of TensorFlow wrote; today's do not read it.
    """
    if node.device.startswith("@"):
        name = node.device[1:]
        if name in node.graph:
            told = f"its device is that of '{name}', which TensorFlow does not read; graphmill place finds it"
            yield GraphFinding("device", told, node.name, RUNTIME)
        else:
            hint = (hints or Hints())(name, (each.name for each in node.graph))
            told = f"its device '@{name}' is that of a node that does not exist{hint}"
            yield GraphFinding("device", told, node.name)
        return
    level = ERROR
    for part in filter(None, node.device.split("/")):
        key, *values = part.split(":")
        if key in ("replica", "task"):
            fits = len(values) == 1 and (values[0] == "*" or values[0].isdigit())
        elif key == "job":
            fits = len(values) == 1
        elif key == "device":
            fits = len(values) == 2 and node.device.count("device:") == 1
        else:
            fits = key.upper() in ("CPU", "GPU", "TPU", "CUSTOM") and len(values) < 2
        if not fits:
            break
    else:
        level = RUNTIME
    try:
        DeviceSpec.parse(node.device)
    except UsageError as error:
        yield GraphFinding("device", error.message, node.name, level)
    else:
        if level == ERROR:
            yield GraphFinding(
                "device", f"'{node.device}' is not a device name; '/device:CPU' lacks its ':*'", node.name
            )


# -- attributes ------------------------------------------------------------------------------------------


def _check_attrs(node: Node, op_def: OpDef, hints: Hints) -> Iterator[GraphFinding]:
    for name, definition in op_def.attrs.items():
        proto = node.attr_head(name)
        if proto is None:
            if not definition.has_default:
                yield GraphFinding("missing-attr", f"{node.op} needs the attribute '{name}'", node.name)
            continue
        problem = typed.problem(proto, definition)
        if problem is not None:
            yield GraphFinding("attr", f"attribute '{name}' of {node.op} {problem}", node.name)
        elif definition.type in ("func", "list(func)"):
            yield from _check_functions(node, name, proto, hints)


def _check_functions(node: Node, name: str, proto: AttrValue, hints: Hints) -> Iterator[GraphFinding]:
    for ref in [proto.func] if proto.WhichOneof("value") == "func" else proto.list.func:
        if ref.name and ref.name not in node.graph.library and opdefs.find(ref.name) is None:
            hint = hints(ref.name, node.graph.library)
            yield GraphFinding(
                "missing-function", f"attribute '{name}' calls the function '{ref.name}', which is not there{hint}",
                node.name, RUNTIME,
            )  # fmt: skip


# -- edges -----------------------------------------------------------------------------------------------


def check_inputs(node: Node, op_def: OpDef) -> Iterator[GraphFinding]:
    """How many inputs a node has, and their types; its attributes must be right."""
    try:
        wanted = node.input_types
    except GraphmillError as error:
        yield GraphFinding("attr", error.message, node.name)
        return
    if len(wanted) != len(node.inputs):
        expected = ", ".join(
            f"{arg.name}{'...' if arg.number_attr or arg.type_list_attr else ''}" for arg in op_def.inputs
        )
        yield GraphFinding(
            "arity",
            f"{node.op} takes {len(wanted)} input(s){f' ({expected})' if expected else ''}; it has {len(node.inputs)}",
            node.name,
        )
        return
    for position, ((src, index), want) in enumerate(zip(node.inputs, wanted, strict=True)):
        try:
            given = src.output_types
        except GraphmillError:
            continue  # reported at the source
        if not 0 <= index < len(given):
            yield GraphFinding(
                "output-index",
                f"input {position} is '{src.name}:{index}', but {src.op} '{src.name}' has {len(given)} output(s)",
                node.name,
            )
        elif not compatible(want, given[index]):
            only = " (only a variable gives a reference)" if want.is_ref and given[index] is want.base else ""
            yield GraphFinding(
                "dtype",
                f"input {position}, '{src.name}:{index}', is {given[index]}; {node.op} expects {want}{only}",
                node.name,
            )


def compatible(wanted: DType, given: DType) -> bool:
    """Whether a tensor of type `given` can go where `wanted` is expected: a reference is good for its value."""
    return given is wanted or given.base is wanted


def _check_colocation(node: Node, hints: Hints) -> Iterator[GraphFinding]:
    for text in colocations(node):
        if text not in node.graph:
            hint = hints(text, (n.name for n in node.graph.nodes))
            yield GraphFinding(
                "colocation", f"it is to be placed with '{text}' (loc:@{text}), which does not exist{hint}", node.name
            )


def colocations(node: Node) -> list[str]:
    """The names that `_class` says the node is to be placed with."""
    kind = node.kind
    if kind is None:
        return _named_in_class(node)
    if kind.companions is None:
        kind.companions = tuple(_named_in_class(node))
    return list(kind.companions)


def _named_in_class(node: Node) -> list[str]:
    if "_class" not in node.attrs:
        return []
    values: list[bytes] = node.attr_or("_class", [])
    return [value[len(_COLOCATION) :].decode(errors="replace") for value in values if value.startswith(_COLOCATION)]


def _check_const(node: Node) -> Iterator[GraphFinding]:
    packed = node.packed
    proto = node.attr("value") if packed is None else packed.head
    declared: DType = node.attr("dtype")
    if proto.dtype != declared.enum:
        given = dtypes.from_enum(proto.dtype) if proto.dtype in range(1, 34) else f"type number {proto.dtype}"
        yield GraphFinding("const-dtype", f"its value is {given}; its dtype says {declared}", node.name, RUNTIME)
        return
    if proto.tensor_shape.unknown_rank or any(d.size < 0 for d in proto.tensor_shape.dim):
        yield GraphFinding("const-shape", "its value has no definite shape", node.name, RUNTIME)
        return
    count = math.prod(d.size for d in proto.tensor_shape.dim)
    size = len(proto.tensor_content if packed is None else packed.content)
    if size and declared.size and size != count * declared.size:
        yield GraphFinding(
            "const-content",
            f"its value has {size} bytes; {count} of {declared} take {count * declared.size}",
            node.name,
            RUNTIME,
        )


__all__ = [
    "CONSUMER",
    "ERROR",
    "RUNTIME",
    "GraphFinding",
    "are_names",
    "check",
    "check_device",
    "check_node",
    "check_nodes",
    "colocations",
    "compatible",
    "is_node_name",
    "is_sound",
    "is_sound_here",
    "require_valid",
]
