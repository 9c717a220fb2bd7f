"""What is moved out of a scene because it would be in the way: hubs that only steer, and what nothing is joined to."""

from __future__ import annotations

import re
from collections import Counter

from toolkit.render.elements import LinkKind, Model
from toolkit.render.scene import Arc, Box, Scene

#: a small box with more neighbours than this is moved aside when it only steers (control edges, scalars)
HUB_NEIGHBOURS = 12
#: a NoOp with more neighbours than this; tracing makes them to order side effects
NOOP_NEIGHBOURS = 3
_UNNAMED = re.compile(r"(.*/)?NoOp(_\d+)?")


def move_hubs_aside(scene: Scene) -> None:
    """Take out boxes whose many edges only steer; whoever they are joined to gets a tag with their name."""
    touching: dict[int, list[Arc]] = {}
    for arc in scene.arcs:
        for end in (arc.src, arc.dst):
            touching.setdefault(id(end), []).append(arc)
    for box in scene.boxes:
        arcs = touching.get(id(box), [])
        if box.size > HUB_NEIGHBOURS or box.kind not in ("op", "input", "variable", "constant"):
            continue
        if not arcs and scene.asides and box.kind == "variable":
            scene.asides.append(box)  # only the optimizer, the saver and the like use it
            continue
        neighbours = {id(arc.src if arc.dst is box else arc.dst) for arc in arcs}
        limit = HUB_NEIGHBOURS
        if box.element is not None and box.element.op == "NoOp":
            # Without visible inputs it waits for what is noted elsewhere: reads of variables.
            in_function = box.element.scope.kind == "function" and _is_silent(box)
            limit = 0 if in_function or all(arc.src is box for arc in arcs) else NOOP_NEIGHBOURS
        if len(neighbours) <= limit or not all(_steers(scene.model, arc, box) for arc in arcs):
            continue
        scene.asides.append(box)
        box.lines.append(f"joined to {len(neighbours)} box{'es' if len(neighbours) > 1 else ''}")
        is_silent = _is_silent(box)
        gone = {id(arc) for arc in arcs}
        for arc in arcs:
            scene.hidden += arc.count
            other = arc.src if arc.dst is box else arc.dst
            if isinstance(other, Box) and arc.src is box and box.label not in other.tags and not is_silent:
                other.tags.append(box.label)
        scene.arcs = [arc for arc in scene.arcs if id(arc) not in gone]
        for ends in touching.values():
            ends[:] = [arc for arc in ends if id(arc) not in gone]
    hubs = {id(box) for box in scene.asides}
    scene.boxes = [box for box in scene.boxes if id(box) not in hubs]
    for cluster in scene.root.walk():
        cluster.boxes = [box for box in cluster.boxes if id(box) not in hubs]


def gather_unconnected(scene: Scene) -> None:
    """Make one box of all that has no arc, when there is enough of it to be in the way."""
    joined = {id(end) for arc in scene.arcs for end in (arc.src, arc.dst)}
    alone = [box for box in scene.boxes if id(box) not in joined and box.element is not None]
    if len(alone) < 2 or len(alone) > len(scene.boxes) // 2:
        alone = []
    silent = [box for box in scene.asides if _is_silent(box)]
    alone += silent
    if not alone:
        return
    scene.asides = [box for box in scene.asides if not _is_silent(box)]
    label = "not connected" if len(alone) > len(silent) else "order of side effects"
    box = Box("~unconnected/", label, "nodes without visible edges", "aside", size=0)
    for single in alone:
        box.members += single.members
        box.size += single.size
    ops = Counter(single.element.op for single in alone if single.element is not None)
    box.lines = [
        f"{len(alone)} node{'s' if len(alone) > 1 else ''}",
        ", ".join(f"{n} {op}" if n > 1 else op for op, n in ops.most_common(2)),
    ]
    gone = {id(single) for single in alone}
    scene.owner = [box if id(owner) in gone else owner for owner in scene.owner]
    scene.asides.append(box)
    scene.boxes = [b for b in scene.boxes if id(b) not in gone]
    for cluster in scene.root.walk():
        cluster.boxes = [b for b in cluster.boxes if id(b) not in gone]


def drop_empty_clusters(scene: Scene) -> None:
    """Leave out frames from which everything was moved away, unless an arc ends at them."""
    ends = {id(end) for arc in scene.arcs for end in (arc.src, arc.dst)}
    for cluster in reversed(list(scene.root.walk())):
        cluster.clusters = [c for c in cluster.clusters if c.boxes or c.clusters or id(c) in ends]


def _is_silent(box: Box) -> bool:
    """Whether a box is a NoOp that nobody named: tracing makes them to order side effects."""
    return box.element is not None and box.element.op == "NoOp" and bool(_UNNAMED.fullmatch(box.label))


def _steers(model: Model, arc: Arc, box: Box) -> bool:
    """Whether an arc carries control or a scalar from this box."""
    if arc.kind is LinkKind.CONTROL:
        return True
    if arc.src is not box:
        return False
    link = model.links[arc.links[0]]
    shape = model.shapes.of(model.elements[link.src].node, max(link.src_output, 0))
    return shape is not None and shape.dims == ()
