"""Variables: initialised, saved, and known to the collections and the saver."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from toolkit.errors import Hints
from toolkit.formats.inspection.detect import ModelKind
from toolkit.graph.attrs import FuncRef
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_SAVES = frozenset({"SaveV2", "Save", "SaveSlices"})
_PASS_ON = frozenset({"Identity", "ReadVariableOp", "Enter", "RefEnter", "Switch", "RefSwitch"})
_LISTS = ("variables", "trainable_variables", "local_variables", "model_variables", "moving_average_variables")


@family(
    "variables",
    Rule("uninitialized", Severity.WARNING, "a variable that nothing ever assigns", "add an initialiser, or a saver"),
    Rule("unsaved", Severity.WARNING, "a variable that the saver leaves out", "add it to the saver's variables"),
    Rule("collection", Severity.ERROR, "a collection names parts of a variable that do not exist", "remove the entry"),
    Rule("saver", Severity.ERROR, "the saver names nodes that do not exist", "write the saver again"),
    Rule("shared", Severity.WARNING, "variables of one shared name differ in type or shape", "give each its own name"),
)
def variables(subject: Subject) -> Iterator[Problem]:
    yield from _collections(subject)
    yield from _saver(subject)
    table = subject.bodies[0].table
    if table is not None:
        from toolkit.formats.node_tables.variables import variables_fit  # NumPy is imported for large graphs alone

        if variables_fit(table, _VARIABLES, _ASSIGNS, _SAVES, _PASS_ON):
            return
    found = [node for node in subject.graph.nodes if node.op in _VARIABLES]
    if found:
        yield from _shared(found)
        if not subject.proto.HasField("object_graph_def"):  # there the objects say what is restored
            yield from _states(subject, found)


def _collections(subject: Subject) -> Iterator[Problem]:
    from google.protobuf.message import DecodeError

    from schemas.variable_pb2 import VariableDef

    graph, hints = subject.graph, Hints()
    for key in _LISTS:
        for data in subject.meta.collections.get(key, ()):
            if not isinstance(data, bytes):
                continue
            try:
                definition = VariableDef.FromString(data)
            except DecodeError:
                yield Problem("variables/collection", f"an entry of the collection '{key}' is no VariableDef")
                continue
            for field in ("variable_name", "initializer_name", "snapshot_name", "initial_value_name"):
                name = getattr(definition, field).partition(":")[0]
                if name and name not in graph:
                    hint = hints(name, (node.name for node in graph.nodes))
                    message = f"the collection '{key}' gives '{name}' as {field}, which does not exist{hint}"
                    yield Problem("variables/collection", message, definition.variable_name.partition(":")[0] or None)


def _saver(subject: Subject) -> Iterator[Problem]:
    saver = subject.meta.saver
    if saver is None:
        return
    if subject.kind is ModelKind.SAVED_MODEL and subject.proto.HasField("object_graph_def"):
        return  # its names are those of the loader's functions as well
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        name = getattr(saver, field).partition(":")[0]
        if name and name not in subject.graph:
            yield Problem("variables/saver", f"the saver gives '{name}' as {field}, which does not exist")


def _shared(found: list[Node]) -> Iterator[Problem]:
    first: dict[tuple[str, str], tuple[Node, str]] = {}
    for node in found:
        shared = node.attr_or("shared_name", b"")
        if not isinstance(shared, bytes) or not shared:
            continue
        key = (node.op, shared.decode(errors="replace"))
        kind = f"{node.attr_or('dtype', None)} {node.attr_or('shape', None)}"
        other, theirs = first.setdefault(key, (node, kind))
        if theirs != kind:
            message = f"it shares the name '{key[1]}' with '{other.name}', but is {kind}, not {theirs}"
            yield Problem("variables/shared", message, node.name)


def _states(subject: Subject, found: list[Node]) -> Iterator[Problem]:
    """Variables without an assignment; and without a place in the checkpoint, where there is a saver."""
    assigned: set[Node] = set()
    saved: set[Node] = set()
    inside = _written_arguments(subject)
    for node in subject.graph.nodes:
        if node.op in _ASSIGNS or inside:
            for source in _written(node, inside):
                assigned.update(_origin(source))
        if node.op in _SAVES:
            for source, _ in node.inputs:
                saved.update(_origin(source))
    listed = {name.decode(errors="ignore") if isinstance(name, bytes) else name for name in _global_names(subject)}
    for node in found:
        if node not in assigned:
            yield Problem("variables/uninitialized", "nothing in the graph gives this variable a value", node.name)
        if saved and node not in saved and (not listed or node.name in listed):
            yield Problem("variables/unsaved", "the saver does not save this variable", node.name)


def _written(node: Node, inside: Mapping[str, set[int]]) -> Iterator[Node]:
    """What makes the handles of the variables that a node assigns, itself or in the function that it calls."""
    if node.op in _ASSIGNS and node.inputs:
        yield node.inputs[0].node
    yield from _handed(node, inside.get(_called(node) or "", ()))


def _written_arguments(subject: Subject) -> dict[str, set[int]]:
    """Function to the positions of the arguments that it assigns, as the loader's functions of 2.x do."""
    found: dict[str, set[int]] = {}
    callers: dict[str, list[tuple[str, Node]]] = {}
    waiting: list[str] = []

    def add(function: str, handle: Node) -> None:
        known = found.setdefault(function, set())
        new = set(_arguments(handle)) - known
        known |= new
        if new:
            waiting.append(function)

    for body in subject.bodies:
        for node in body.graph.nodes if body.function else ():
            if node.op in _ASSIGNS and node.inputs:
                add(body.function, node.inputs[0].node)
            if (called := _called(node)) is not None:
                callers.setdefault(called, []).append((body.function, node))
    while waiting:
        function = waiting.pop()
        for caller, node in callers.get(function, ()):
            for handle in _handed(node, found[function]):
                add(caller, handle)
    return found


def _called(node: Node) -> str | None:
    kind = node.kind
    if kind is not None and not kind.names_functions:
        return None
    reference = node.attr_or("f", None)
    return reference.name if isinstance(reference, FuncRef) else None


def _handed(node: Node, positions: Collection[int]) -> list[Node]:
    return [node.inputs[index].node for index in sorted(positions) if index < len(node.inputs)]


def _arguments(node: Node) -> Iterator[int]:
    for each in _passed_on(node):
        index = each.attr_or("index", None) if each.op == "_Arg" else None
        if isinstance(index, int):
            yield index


def _global_names(subject: Subject) -> set[str]:
    from google.protobuf.message import DecodeError

    from schemas.variable_pb2 import VariableDef

    names: set[str] = set()
    for data in subject.meta.collections.get("variables", ()):
        if isinstance(data, bytes):
            try:
                names.add(VariableDef.FromString(data).variable_name.partition(":")[0])
            except DecodeError:
                continue
    return names


def _origin(node: Node) -> set[Node]:
    """The variables whose value or handle a node passes on."""
    return {each for each in _passed_on(node) if each.op in _VARIABLES}


def _passed_on(node: Node) -> set[Node]:
    """A node, and those whose value or handle it passes on."""
    seen: set[Node] = set()
    todo = [node]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.op in _PASS_ON:
            todo += [source for source, _ in current.inputs]
    return seen
