"""Object-based checkpoints: the TrackableObjectGraph that says which object each tensor belongs to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from google.protobuf.message import DecodeError

from schemas.trackable_object_graph_pb2 import TrackableObjectGraph
from toolkit.errors import DataLossError, InvalidArgumentError, NotFoundError, did_you_mean
from toolkit.formats.bundle.source import TensorSource

#: the tensor that holds the serialized graph
KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
#: between the object's path and the name of its value in a key
ATTRIBUTES = "/.ATTRIBUTES/"
VARIABLE_VALUE = "VARIABLE_VALUE"
#: in the keys of variables that an optimizer keeps for other variables
SLOT_MARK = "/.OPTIMIZER_SLOT/"


#: children by which an optimizer of Keras 3 is known, and the ones that are the model's
_OPTIMIZER = {"_variables", "_iterations"}
_TRAINED = {"_trainable_variables"}


class ObjectGraph:
    """The objects of a checkpoint: object 0 is the root, the others are reached through named children.

    Attributes:
        message: the TrackableObjectGraph.
    """

    def __init__(self, message: TrackableObjectGraph):
        self.message = message

    def paths(self) -> list[str]:
        """For each object, the shortest path to it from the root: "" for the root, "model/layer" for others.

        Objects that only an optimizer refers to are shown as "VARIABLE/.OPTIMIZER_SLOT/OPTIMIZER/SLOT".
        """
        found: list[str | None] = [None] * len(self.message.nodes)
        queue = [0] if found else []
        if found:
            found[0] = ""
        for node in queue:
            for child in self.message.nodes[node].children:
                if 0 <= child.node_id < len(found) and found[child.node_id] is None:
                    found[child.node_id] = "/".join(part for part in (found[node], child.local_name) if part)
                    queue.append(child.node_id)
        for at, node in enumerate(self.message.nodes):
            for slot in node.slot_variables:
                if slot.slot_variable_node_id < len(found) and found[slot.slot_variable_node_id] is None:
                    variable = found[slot.original_variable_node_id] or ""
                    found[slot.slot_variable_node_id] = f"{variable}{SLOT_MARK}{found[at] or ''}/{slot.slot_name}"
        return [f"({at})" if path is None else path for at, path in enumerate(found)]

    def keys(self) -> dict[str, str]:
        """Each tensor's key, with the variable's full name (the one it has in name-based checkpoints; may be "")."""
        return {a.checkpoint_key: a.full_name for node in self.message.nodes for a in node.attributes}

    def keys_at(self, path: str) -> dict[str, str]:
        """The values of the object at a path such as "model/layer/kernel": name of the value to key.

        Any path through named children will do, not only the shortest.

        Raises:
            NotFoundError: there is no such object; the children on the way are suggested.
        """
        at = 0
        walked: list[str] = []
        for part in path.split("/") if path else []:
            children = {child.local_name: child.node_id for child in self.message.nodes[at].children}
            if part not in children:
                where = f"object '{'/'.join(walked)}'" if walked else "the root"
                known = ", ".join(sorted(children)[:8]) or "none"
                hint = did_you_mean(part, children) or f"; it has {known}{', ...' if len(children) > 8 else ''}"
                raise NotFoundError(f"{where} has no child '{part}'{hint}")
            at = children[part]
            walked.append(part)
        return {a.name: a.checkpoint_key for a in self.message.nodes[at].attributes}

    def slot_keys(self) -> set[str]:
        """The keys of the variables that optimizers keep for other variables."""
        slots = {slot.slot_variable_node_id for node in self.message.nodes for slot in node.slot_variables}
        found = {
            a.checkpoint_key for at in slots if at < len(self.message.nodes) for a in self.message.nodes[at].attributes
        }
        return found | {key for key in self.keys() if SLOT_MARK in key}

    def optimizer_keys(self) -> set[str]:
        """The keys of what belongs to optimizers: slot variables, step counts, rates.

        An optimizer has slot variables, or (Keras 3) lists of its own variables beside a list of those it trains.
        Which key a variable has says nothing: one of the model's may be called "optimizer/_trainable_variables/0",
        after the shortest path to it. What is reached without passing through an optimizer is not the optimizer's.
        """
        nodes = self.message.nodes
        optimizers = {at for at in range(len(nodes)) if self._is_optimizer(at)}
        found = self.slot_keys()
        for at in optimizers:
            own = [child.node_id for child in nodes[at].children if child.local_name not in _TRAINED]
            found |= self._keys_of(self._reached(own, set()))
        return found - self._keys_of(self._reached([0], optimizers))

    def _is_optimizer(self, at: int) -> bool:
        node = self.message.nodes[at]
        return bool(node.slot_variables) or {child.local_name for child in node.children} >= _OPTIMIZER

    def _reached(self, start: Collection[int], without: Collection[int]) -> set[int]:
        """The objects that named children lead to, those of an optimizer to what it trains left out."""
        nodes = self.message.nodes
        seen: set[int] = set()
        queue = [at for at in start if 0 <= at < len(nodes)]
        for at in queue:
            if at in seen or at in without:
                continue
            seen.add(at)
            skipped = _TRAINED if self._is_optimizer(at) else ()
            queue += [
                child.node_id
                for child in nodes[at].children
                if child.local_name not in skipped and 0 <= child.node_id < len(nodes)
            ]
        return seen

    def _keys_of(self, objects: Collection[int]) -> set[str]:
        return {a.checkpoint_key for at in objects for a in self.message.nodes[at].attributes}

    def renamed(self, rename: Callable[[str], str]) -> ObjectGraph:
        """A copy in which every tensor has another key."""
        copy = TrackableObjectGraph()
        copy.CopyFrom(self.message)
        for node in copy.nodes:
            for attribute in node.attributes:
                attribute.checkpoint_key = rename(attribute.checkpoint_key)
        return ObjectGraph(copy)

    def without(self, dropped: Collection[str]) -> ObjectGraph:
        """A copy that no longer expects the tensors with these keys.

        The objects stay, so that positions in the graph do not change; slot variables without a value are no longer
        listed.
        """
        copy = TrackableObjectGraph()
        copy.CopyFrom(self.message)
        emptied: set[int] = set()
        for at, node in enumerate(copy.nodes):
            kept = [a for a in node.attributes if a.checkpoint_key not in dropped]
            if len(kept) != len(node.attributes):
                del node.attributes[:]
                node.attributes.extend(kept)
                if not kept:
                    emptied.add(at)
        for node in copy.nodes:
            slots = [slot for slot in node.slot_variables if slot.slot_variable_node_id not in emptied]
            if len(slots) != len(node.slot_variables):
                del node.slot_variables[:]
                node.slot_variables.extend(slots)
        _mark_values(copy)
        return ObjectGraph(copy)

    def serialize(self) -> bytes:
        return self.message.SerializeToString()

    def tree(self, entries: Mapping[str, Any]) -> Iterator[str]:
        """The objects as indented lines, with the type and shape of their values."""
        seen: set[int] = set()
        yield from self._lines(0, "(root)", 0, entries, seen)

    def _lines(self, at: int, name: str, depth: int, entries: Mapping[str, Any], seen: set[int]) -> Iterator[str]:
        indent = "  " * depth
        if at in seen:
            yield f"{indent}{name} -> object {at}"
            return
        seen.add(at)
        node = self.message.nodes[at]
        values: list[str] = []
        for attribute in node.attributes:
            entry = entries.get(attribute.checkpoint_key)
            shown = f"{entry.dtype}{entry.shape}" if entry is not None else "missing"
            values.append(shown if attribute.name == VARIABLE_VALUE else f"{attribute.name}: {shown}")
        yield f"{indent}{name}{'  ' if values else ''}{', '.join(values)}"
        for child in node.children:
            yield from self._lines(child.node_id, child.local_name, depth + 1, entries, seen)
        for slot in node.slot_variables:
            original = self.paths()[slot.original_variable_node_id]
            yield from self._lines(
                slot.slot_variable_node_id, f"slot {slot.slot_name} of {original}", depth + 1, entries, seen
            )

    def as_json(self) -> list[dict[str, Any]]:
        """The objects for a JSON report."""
        paths = self.paths()
        return [
            {
                "id": at,
                "path": paths[at],
                "children": {child.local_name: child.node_id for child in node.children},
                "values": {a.name: {"key": a.checkpoint_key, "full_name": a.full_name} for a in node.attributes},
                "slots": [
                    {"variable": s.original_variable_node_id, "name": s.slot_name, "object": s.slot_variable_node_id}
                    for s in node.slot_variables
                ],
            }
            for at, node in enumerate(self.message.nodes)
        ]


def _mark_values(graph: TrackableObjectGraph) -> None:
    """Set `has_checkpoint_values` where it was given: an object has values if it or one below it does."""
    has = [bool(node.attributes) or node.HasField("registered_saver") for node in graph.nodes]
    changed = True
    while changed:
        changed = False
        for at, node in enumerate(graph.nodes):
            below = [child.node_id for child in node.children] + [s.slot_variable_node_id for s in node.slot_variables]
            if not has[at] and any(has[child] for child in below if child < len(has)):
                has[at] = changed = True
    for node, value in zip(graph.nodes, has, strict=True):
        if node.HasField("has_checkpoint_values"):
            node.has_checkpoint_values.value = value


def find_object_graph(source: TensorSource) -> ObjectGraph | None:
    """The object graph of a checkpoint, or None for a name-based one.

    Raises:
        DataLossError: it is damaged.
    """
    if KEY not in source:
        return None
    try:
        return ObjectGraph(TrackableObjectGraph.FromString(source.read(KEY).item()))
    except (DecodeError, ValueError, TypeError):
        raise DataLossError(f"tensor '{KEY}' is no TrackableObjectGraph", file=source.prefix) from None


def read_object_graph(source: TensorSource) -> ObjectGraph:
    """The object graph of a checkpoint.

    Raises:
        NotFoundError: the checkpoint is name-based.
        DataLossError: it is damaged.
    """
    found = find_object_graph(source)
    if found is None:
        raise NotFoundError("the checkpoint is name-based: it has no object graph", file=source.prefix)
    return found


def find_tensors(source: TensorSource, name: str) -> list[str]:
    """The tensors that a name stands for: itself, or the values of the object at that path.

    Raises:
        NotFoundError: there is neither.
    """
    if name not in source:
        objects = find_object_graph(source)
        if objects is not None:
            try:
                keys = objects.keys_at(name)
            except NotFoundError as error:
                raise error.at(file=source.prefix) from None
            if keys:
                return list(keys.values())
    return [source.entry(name).name]


def escape(name: str) -> str:
    """A child's name as keys show it: "/" and "." are special there."""
    return name.replace(".", "..").replace("/", ".S")


def from_names(names: Collection[str]) -> tuple[ObjectGraph, dict[str, str]]:
    """An object graph whose objects are nested as the slashes in variables' names say.

    "dense/kernel" becomes the value of child "kernel" of child "dense" of the root, which
    tf.train.Checkpoint(dense=layer) restores into layer.kernel.

    Returns:
        The graph, and each name's key.

    Raises:
        InvalidArgumentError: a name is a scope of another one, and also a variable, in a way that clashes.
    """
    graph = TrackableObjectGraph()
    graph.nodes.add()
    ids: dict[tuple[str, ...], int] = {(): 0}
    keys: dict[str, str] = {}
    for name in sorted(names):
        parts = tuple(part for part in name.split("/") if part)
        if not parts:
            raise InvalidArgumentError(f"'{name}' cannot be the path of an object")
        for depth in range(1, len(parts) + 1):
            if parts[:depth] not in ids:
                ids[parts[:depth]] = len(graph.nodes)
                graph.nodes.add()
                parent = graph.nodes[ids[parts[: depth - 1]]]
                parent.children.add(node_id=ids[parts[:depth]], local_name=parts[depth - 1])
        key = "/".join(escape(part) for part in parts) + ATTRIBUTES + VARIABLE_VALUE
        node = graph.nodes[ids[parts]]
        if node.attributes:
            raise InvalidArgumentError(f"'{name}' and '{node.attributes[0].full_name}' would be one object")
        node.attributes.add(name=VARIABLE_VALUE, full_name=name, checkpoint_key=key)
        keys[name] = key
    for node in graph.nodes:
        node.has_checkpoint_values.value = True
    return ObjectGraph(graph), keys
