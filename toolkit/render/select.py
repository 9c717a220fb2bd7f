"""Parts of a model: the neighbourhood of a node, the paths between two nodes."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.errors import UsageError, did_you_mean
from toolkit.render.elements import Link, LinkKind, Model, Scope
from toolkit.render.scene import Box, Scene
from toolkit.render.visible import BOX_BUDGET

# A walk does not go on through an element with more neighbours than this: everything is near a global step.
_HUB = 50


def find(model: Model, name: str) -> list[int]:
    """The elements that a name means: a node, a tensor NODE:INDEX, or a scope with all in it; in all parts that have
    it, when the name does not begin with a part's.

    Raises:
        UsageError: nothing has that name; close ones are suggested.
    """
    wanted = name.rstrip("/")
    head, colon, index = wanted.rpartition(":")
    plain = head if colon and index.isdigit() else wanted
    exact = [i for i, each in enumerate(model.names) if each in (wanted, plain)]
    if exact:
        return exact
    # In a partition, names begin with the part; a node or scope may be asked for without it, in all parts.
    parts = [scope for scope in model.root.scopes if scope.kind == "partition"]
    inside = {scope.path + plain for scope in parts}
    exact = [i for i, each in enumerate(model.names) if each in inside] if parts else []
    if exact:
        return exact
    for scope in model.root.walk():
        if scope.path == plain + "/":
            return list(scope.all_elements())
    scopes = [scope for part in parts for scope in part.walk() if scope.path == f"{part.path}{plain}/"]
    if scopes:
        return [i for scope in scopes for i in scope.all_elements()]
    names = list(model.names)
    names += [s.path.rstrip("/") for s in model.root.walk() if s.path]
    names += [name.removeprefix(part.path) for part in parts for name in names if name.startswith(part.path)]
    raise UsageError(f"there is no node or scope '{name}'{did_you_mean(plain, dict.fromkeys(names))}")


def neighbourhood(model: Model, starts: Iterable[int], hops: int) -> set[int]:
    """The elements at most `hops` edges away, against or along them."""
    beside: list[list[int]] = [[] for _ in model.elements]
    for link in model.links:
        beside[link.src].append(link.dst)
        beside[link.dst].append(link.src)
    seen = set(starts)
    edge = list(seen)
    for step in range(hops):
        following: list[int] = []
        for i in edge:
            if step and len(beside[i]) > _HUB:
                continue
            for other in beside[i]:
                # A NoOp that half the graph waits for says nothing about any part of it.
                if other not in seen and (model.ops[other] != "NoOp" or len(beside[other]) <= _HUB):
                    seen.add(other)
                    following.append(other)
        edge = following
    return seen


def restrict(model: Model, keep: set[int]) -> None:
    """Take everything else out of the model; what was cut off is noted at the nodes that stay."""
    chosen = sorted(keep)
    number = {i: position for position, i in enumerate(chosen)}
    cut: dict[int, int] = {}
    links: list[Link] = []
    for link in model.links:
        if link.src in number and link.dst in number:
            links.append(link._replace(src=number[link.src], dst=number[link.dst]))
        elif link.src in number or link.dst in number:
            stays = link.src if link.src in number else link.dst
            cut[stays] = cut.get(stays, 0) + 1
    model.links = links
    for i, count in cut.items():
        model.elements[i].note = f"{count} more edge{'s' if count > 1 else ''}"
    model.keep(chosen)
    for scope in model.root.walk():
        scope.elements = [number[i] for i in scope.elements if i in number]
        scope.lead = number.get(scope.lead) if scope.lead is not None else None
    model.count_sizes()


def paths_between(model: Model, start: str, end: str) -> set[int]:
    """The elements on any path from one node or scope to another; data edges, or all if there is no such path.

    Raises:
        UsageError: a name does not exist, or there is no path.
    """
    sources, targets = find(model, start), find(model, end)
    for kinds in ({LinkKind.DATA, LinkKind.REFERENCE}, set(LinkKind)):
        after: dict[int, list[int]] = {}
        before: dict[int, list[int]] = {}
        for link in model.links:
            if link.kind in kinds:
                after.setdefault(link.src, []).append(link.dst)
                before.setdefault(link.dst, []).append(link.src)
        found = _reach(sources, after) & _reach(targets, before)
        if found:
            return found
    backwards = _reach(targets, after) & _reach(sources, before)
    hint = f"; there is one from '{end}' to '{start}'" if backwards else ""
    raise UsageError(f"there is no path from '{start}' to '{end}'{hint}")


def _reach(starts: Iterable[int], onward: dict[int, list[int]]) -> set[int]:
    seen = set(starts)
    stack = list(seen)
    while stack:
        for other in onward.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen


def open_around(model: Model, elements: Iterable[int]) -> set[str]:
    """The paths of all scopes around some elements."""
    opened: set[str] = set()
    for i in elements:
        scope: Scope | None = model.homes[i]
        while scope is not None and scope.path not in opened:
            opened.add(scope.path)
            scope = scope.parent
    return opened


def open_within_budget(model: Model, elements: Iterable[int], budget: int = BOX_BUDGET) -> set[str]:
    """The paths of scopes around some elements, outer ones first, as many as stay within the budget of boxes."""
    around: dict[str, Scope] = {}
    for i in elements:
        scope: Scope | None = model.homes[i]
        while scope is not None and scope.path not in around:
            if scope.kind != "variable":
                around[scope.path] = scope
            scope = scope.parent
    boxes = 0
    opened: set[str] = set()
    for scope in sorted(around.values(), key=lambda s: (s.depth, s.path)):
        gain = len(scope.scopes) + len(scope.elements) - 1
        if boxes + gain <= budget and (scope.parent is None or scope.parent.path in opened):
            boxes += gain
            opened.add(scope.path)
    return opened


def emphasize(scene: Scene, chosen: set[int]) -> None:
    """Make what holds chosen elements strong and everything else faint."""
    for box in [*scene.boxes, *scene.asides]:
        box.emphasis = "strong" if any(i in chosen for i in box.members) else "faded"
    for arc in scene.arcs:
        links = (scene.model.links[n] for n in arc.links)
        arc.emphasis = "strong" if any(link.src in chosen and link.dst in chosen for link in links) else "faded"


def mark(scene: Scene, chosen: Iterable[int]) -> None:
    """Make the boxes of some elements strong; the rest stays as it is."""
    for i in chosen:
        owner = scene.owner[i]
        if isinstance(owner, Box):
            owner.emphasis = "strong"
