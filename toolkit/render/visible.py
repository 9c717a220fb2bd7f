"""From a model to a scene: which scopes are open, and what is visible then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from toolkit.render.absorbed import Absorbed
from toolkit.render.arcs import bundle, drop_covered, label_arc, thin
from toolkit.render.asides import drop_empty_clusters, gather_unconnected, move_hubs_aside
from toolkit.render.boxes import BoxMaker
from toolkit.render.elements import Model, Scope
from toolkit.render.fold import Folding
from toolkit.render.scene import Box, Cluster, Scene

#: a picture opens with at most about this many boxes
BOX_BUDGET = 150
FEW_BOXES = 15
#: members of a series with fewer elements say all with their one line of text
SAMPLE_LEAST = 8
# Scopes of these kinds open only when asked for by depth or by name.
_KEPT_CLOSED = frozenset({"variable", "series", "aside"})
_CONDITION = "cond"  # of a While; what a loop does is in its body


def open_to_depth(root: Scope, depth: int, folding: Folding | None = None) -> set[str]:
    """The scopes that are open when scopes up to `depth` levels are: 1 opens the root only.

    Args:
        folding: see `BoxMaker`.
    """
    opened: set[str] = set()
    level = [root]
    for _ in range(max(depth, 1)):
        opened |= {s.path for s in level}
        _fold(level, folding)
        level = [inner for s in level for inner in s.scopes if inner.kind not in _KEPT_CLOSED and not _is_hollow(inner)]
    return opened


def _fold(level: Iterable[Scope], folding: Folding | None) -> None:
    if folding is not None:
        for scope in level:
            folding.fold(scope)


def open_to_budget(root: Scope, budget: int = BOX_BUDGET, folding: Folding | None = None) -> set[str]:
    """Open level by level while the picture stays within the budget; then single scopes, the largest first.

    A picture that shows something already opens further only as long as it stays easy to take in, which two
    fifths of the budget are.

    Args:
        folding: see `BoxMaker`.
    """
    opened = {root.path}
    _fold([root], folding)
    boxes = len(root.scopes) + len(root.elements)
    level = _openable(root)
    while level:
        _fold(level, folding)
        more = sum(_gain(s) for s in level)
        if boxes + more > (budget if boxes < FEW_BOXES else budget * 2 // 5):
            break
        boxes += more
        opened |= {s.path for s in level}
        level = [inner for s in level for inner in _openable(s)]
    # Opening one scope of a level and not its sister makes a picture uneven; it is worth it when there is little
    # else to see.
    for scope in sorted(level, key=lambda s: (-s.size, s.path)) if boxes < FEW_BOXES else []:
        if boxes + _gain(scope) <= budget * 2 // 3:
            boxes += _gain(scope)
            opened.add(scope.path)
    if boxes < FEW_BOXES:
        _open_a_sample(root, opened, budget * 2 // 5 - boxes, folding)
    return opened


def _open_a_sample(root: Scope, opened: set[str], room: int, folding: Folding | None) -> None:
    """Open the first member of the largest series, when a picture shows little but series."""
    found = [s for o in root.walk() if o.path in opened for s in o.scopes if s.kind == "series" and s.scopes]
    for series in sorted(found, key=lambda s: -s.size)[:1]:
        first = min(series.scopes, key=lambda s: min(s.all_elements()))
        _fold([first], folding)
        if first.size >= SAMPLE_LEAST and _gain(series) + _gain(first) <= room:
            opened |= {series.path, first.path}


def _openable(scope: Scope) -> list[Scope]:
    return [
        inner
        for inner in scope.scopes
        if inner.kind not in _KEPT_CLOSED
        and not _is_hollow(inner)
        and not (inner.kind == "function" and scope.kind == "function" and inner.label == _CONDITION)
    ]


def _is_hollow(scope: Scope) -> bool:
    """Whether a function's body has nothing to show: it only hands back what the calling node stands for."""
    return scope.kind == "function" and not scope.scopes and all(i == scope.lead for i in scope.elements)


def _gain(scope: Scope) -> int:
    return len(scope.scopes) + len(scope.elements) - 1


def make_scene(
    model: Model,
    opened: Iterable[str],
    absorbed: Absorbed,
    aside: Scope | None = None,
    folding: Folding | None = None,
) -> Scene:
    """The scene with these scopes open. Linear in the model.

    Args:
        opened: paths of open scopes; a scope inside a closed one stays closed.
        aside: what was moved aside; each of its scopes is one box.
        folding: see `BoxMaker`.
    """
    maker = BoxMaker(model, set(opened) | {model.root.path}, absorbed, folding)
    root = maker.cluster(model.root)
    asides = [maker.scope_box(scope, "aside") for scope in aside.scopes] if aside is not None else []
    owner = cast("list[Box | Cluster]", maker.owner)
    for i in sorted(absorbed.host):
        found = owner[i] = owner[absorbed.host[i]]
        if isinstance(found, Box):
            found.size += 1
            found.members.append(i)
    assert None not in owner
    scene = Scene(model, root, maker.boxes, [], asides, title=model.title, owner=owner)
    bundle(scene, absorbed.noted)
    move_hubs_aside(scene)
    drop_covered(scene)
    gather_unconnected(scene)
    drop_empty_clusters(scene)
    thin(scene)
    for arc in scene.arcs:
        label_arc(model, arc)
    return scene
