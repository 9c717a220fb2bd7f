"""Objects with named parts, as checkpoints of objects know them: modules, layers, optimizers, lists and mappings.

An object graph is what is reached from one of them; `described` writes it as the TrackableObjectGraph that stands in a
checkpoint, `matched` finds in such a message what a program has now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from schemas.trackable_object_graph_pb2 import TrackableObjectGraph
from toolkit.client.variables.base import BaseVariable
from toolkit.formats.bundle.object_graph import ATTRIBUTES, SLOT_MARK, VARIABLE_VALUE, escape

#: what the state of a PythonState is called in an object graph
PYTHON_STATE = "py_state"


class Trackable:
    """What has parts that a checkpoint saves: by default those of its attributes that are tracked."""

    _UNTRACKED: ClassVar[frozenset[str]] = frozenset()

    def tracked_parts(self) -> dict[str, Any]:
        """Variables, and what has parts itself, by name."""
        return {name: value for name, value in vars(self).items() if name not in self._UNTRACKED and is_tracked(value)}

    def tracked_slots(self) -> Iterator[tuple[BaseVariable, str, BaseVariable]]:
        """Variables that it keeps for others: the other, the name of the slot, its own."""
        return iter(())


class PythonState(Trackable):
    """A value of Python that is saved: a subclass says how it becomes a string and is made of one again."""

    def tracked_parts(self) -> dict[str, Any]:
        return {}

    def serialize(self) -> Any:
        """Its state, as a string or bytes."""
        raise NotImplementedError

    def deserialize(self, string_value: bytes) -> None:
        """Take a state."""
        raise NotImplementedError


def is_tracked(value: Any) -> bool:
    """Whether something of it is saved."""
    if isinstance(value, Mapping):
        return any(is_tracked(each) for each in cast("Mapping[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        return any(map(is_tracked, cast("list[Any]", value)))
    return isinstance(value, BaseVariable | Trackable)


def parts_of(value: Any) -> dict[str, Any]:
    """The tracked parts of a value, by name."""
    if isinstance(value, Mapping):
        given = cast("Mapping[Any, Any]", value)
        return {str(key): each for key, each in given.items() if is_tracked(each)}
    if isinstance(value, list | tuple):
        return {str(i): each for i, each in enumerate(cast("list[Any]", value)) if is_tracked(each)}
    return value.tracked_parts() if isinstance(value, Trackable) else {}


def values_of(value: Any) -> dict[str, Any]:
    """What of a value itself is saved, by the name of the attribute in an object graph."""
    if isinstance(value, BaseVariable):
        return {VARIABLE_VALUE: value}
    return {PYTHON_STATE: value} if isinstance(value, PythonState) else {}


class Objects:
    """What is reached from an object, breadth first, each once.

    Attributes:
        found: the objects, the root first.
        children: of each, the places of its parts among `found`, by name.
        slots: of each, (variable, name of the slot, slot variable), as places.
        keys: of each, the path under which its values are saved.
    """

    def __init__(self, root: Any):
        self.found: list[Any] = [root]
        self.children: list[dict[str, int]] = []
        self.keys: list[str] = [""]
        self._places = {id(root): 0}
        for at, value in enumerate(self.found):  # grows meanwhile
            parts = parts_of(value)
            self.children.append({name: self._place(part, self._below(at, name)) for name, part in parts.items()})
        self.slots: list[list[tuple[int, str, int]]] = [[] for _ in self.found]
        for at, value in enumerate(list(self.found)):
            if isinstance(value, Trackable):
                for variable, name, slot in value.tracked_slots():
                    self._add_slot(at, variable, name, slot)

    def _below(self, at: int, name: str) -> str:
        return "/".join(part for part in (self.keys[at], escape(name)) if part)

    def _place(self, value: Any, key: str) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self.found)
            self.found.append(value)
            self.keys.append(key)
        return self._places[id(value)]

    def _add_slot(self, at: int, variable: BaseVariable, name: str, slot: BaseVariable) -> None:
        """A variable that an optimizer keeps for one that is reached, too."""
        original = self._places.get(id(variable))
        if original is None:
            return
        place = self._place(slot, f"{self.keys[original]}{SLOT_MARK}{self.keys[at]}/{escape(name)}")
        if place == len(self.children):
            self.children.append({})
            self.slots.append([])
        self.slots[at].append((original, name, place))

    def variables(self) -> list[BaseVariable]:
        """All variables that are reached, slots included."""
        return [value for value in self.found if isinstance(value, BaseVariable)]

    def states(self) -> list[PythonState]:
        return [value for value in self.found if isinstance(value, PythonState)]

    def described(self) -> tuple[TrackableObjectGraph, dict[str, Any]]:
        """The message, and by its key each value to save: a variable, or the PythonState."""
        message, values = TrackableObjectGraph(), dict[str, Any]()
        for at, value in enumerate(self.found):
            node = message.nodes.add()
            for name, place in self.children[at].items():
                node.children.add(node_id=place, local_name=name)
            for name, each in values_of(value).items():
                key = f"{self.keys[at]}{ATTRIBUTES}{name}"
                full = each.op.name if isinstance(each, BaseVariable) else ""
                node.attributes.add(name=name, full_name=full, checkpoint_key=key)
                values[key] = each
            for original, name, place in self.slots[at]:
                node.slot_variables.add(original_variable_node_id=original, slot_name=name, slot_variable_node_id=place)
            node.has_checkpoint_values.value = self._has_values(at)
        return message, values

    def _has_values(self, at: int) -> bool:
        seen, queue = {at}, [at]
        for place in queue:
            if values_of(self.found[place]) or self.slots[place]:
                return True
            below = set(self.children[place].values()) - seen
            seen |= below
            queue += below
        return False

    def matched(self, message: TrackableObjectGraph, skip_slots: bool = False) -> Match:
        """Which node of a message each object is, parts by their names from the root on."""
        nodes = {0: 0} if message.nodes else dict[int, int]()
        queue = list(nodes)
        for at in queue:
            wanted = {child.local_name: child.node_id for child in message.nodes[nodes[at]].children}
            for name, place in self.children[at].items():
                if place not in nodes and wanted.get(name, len(message.nodes)) < len(message.nodes):
                    nodes[place] = wanted[name]
                    queue.append(place)
        for at in [] if skip_slots else list(nodes):
            kept = {
                (slot.original_variable_node_id, slot.slot_name): slot.slot_variable_node_id
                for slot in message.nodes[nodes[at]].slot_variables
            }
            for original, name, place in self.slots[at]:
                found = kept.get((nodes.get(original, -1), name))
                if found is not None and found < len(message.nodes):
                    nodes[place] = found
        return Match(self, message, nodes)


class Match:
    """Which node of a checkpoint's object graph each object is.

    Attributes:
        keys: (object, key of its value) for all that has a value in the checkpoint.
        unmatched: objects with values that the checkpoint has none for.
        unused: keys of the checkpoint that nothing here takes.
    """

    def __init__(self, objects: Objects, message: TrackableObjectGraph, nodes: Mapping[int, int]):
        self.keys: list[tuple[Any, str]] = []
        self.unmatched: list[Any] = []
        for at, value in enumerate(objects.found):
            names = values_of(value)
            node = message.nodes[nodes[at]] if at in nodes else None
            known = {} if node is None else {each.name: each.checkpoint_key for each in node.attributes}
            for name in names:
                if name in known:
                    self.keys.append((value, known[name]))
                else:
                    self.unmatched.append(value)
        taken = {key for _, key in self.keys}
        self.unused = [
            each.checkpoint_key
            for node in message.nodes
            for each in node.attributes
            if each.checkpoint_key not in taken
        ]
