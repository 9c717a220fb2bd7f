"""Scopes of loop frames: those that names give are marked, others are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolkit.errors import GraphmillError
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS
from toolkit.render.elements import Model, Scope


def frame_scopes(model: Model, graph: Graph, begin: int, top: Scope) -> None:
    """Mark the scope of every loop frame, or make one where the names do not give it.

    Args:
        begin: the element of the graph's first node; those of others follow it.
    """
    from toolkit.graph.frames import assign_frames

    if not any(op in ENTER_OPS for op in model.ops[begin : begin + len(graph)]):
        return
    if graph.unmade is not None and _mark_all(model, graph, begin, top):
        return
    try:
        _, every = assign_frames(graph, graph.topological_order())
    except GraphmillError:
        return  # a malformed loop is drawn as its nodes; `validate` says what is wrong with it
    for frame in every:
        if frame.name and frame.nodes:
            _Frame.of(model, frame.name, [begin + i for i in frame.nodes], top).mark(model)


def _mark_all(model: Model, graph: Graph, begin: int, top: Scope) -> bool:
    """Mark the scopes of all frames of a table; False, with nothing done, where one does not have its own: then it
    matters which frame is seen to first."""
    from toolkit.render.model_table import loops

    found = loops(graph)
    if found is None:
        return False
    frames = [_Frame.of(model, name, [begin + i for i in nodes], top) for name, nodes in found]
    if not all(frame.is_scope for frame in frames) or len({id(frame.common) for frame in frames}) != len(frames):
        return False
    for frame in frames:
        frame.mark(model)
    return True


@dataclass(frozen=True, slots=True)
class _Frame:
    """A loop frame, and the innermost scope that holds all elements in it.

    Attributes:
        is_scope: whether that scope is the loop.
    """

    name: str
    members: Sequence[int]
    common: Scope
    is_scope: bool

    @classmethod
    def of(cls, model: Model, name: str, members: Sequence[int], top: Scope) -> _Frame:
        common = _common_scope(model, members)
        inside = sum(1 for _ in common.all_elements())
        # Enter and Exit nodes, and the loop's constants, usually share its name scope without being in the frame.
        is_scope = common is not top and common.kind == "scope" and inside <= 2 * len(members) + 8
        return cls(name, members, common, is_scope)

    def mark(self, model: Model) -> None:
        common = self.common
        if self.is_scope:
            common.kind, common.detail = "loop", f"while {self.name}"
            return
        label = self.name.rpartition("/")[2] or self.name
        chosen = set(self.members)
        whole = [s for s in common.scopes if all(i in chosen for i in s.all_elements())]
        frame = Scope(f"{common.path}{free_name(common, label)}/", label, common, "loop")
        frame.detail = f"while {self.name}"
        for scope in whole:
            scope.parent = frame
        frame.scopes = whole
        frame.elements = [i for i in common.elements if i in chosen]
        for i in frame.elements:
            model.homes[i] = frame
        common.scopes = [*(s for s in common.scopes if s.parent is common), frame]
        common.elements = [i for i in common.elements if i not in chosen]


def free_name(scope: Scope, name: str) -> str:
    """A name like this one that no scope directly in `scope` has."""
    count, free = 1, name
    while free in scope.by_name:
        free = f"{name}_{count}"
        count += 1
    return free


def _common_scope(model: Model, members: Sequence[int]) -> Scope:
    """The innermost scope that holds all of them."""

    def chain(scope: Scope) -> list[Scope]:
        found: list[Scope] = []
        current: Scope | None = scope
        while current is not None:
            found.append(current)
            current = current.parent
        return found[::-1]

    homes = model.homes
    common = chain(homes[members[0]])
    seen: set[int] = {id(homes[members[0]])}
    for i in members:
        scope = homes[i]
        if id(scope) in seen:
            continue
        seen.add(id(scope))
        other = chain(scope)
        length = 0
        while length < min(len(common), len(other)) and common[length] is other[length]:
            length += 1
        common = common[:length]
    return common[-1]
