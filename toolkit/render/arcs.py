"""The arcs of a scene: links bundled, weak ones left out, labels."""

from __future__ import annotations

from collections import Counter

from toolkit.render import describe
from toolkit.render.build import RECV_OPS, SEND_OPS
from toolkit.render.elements import LinkKind, Model
from toolkit.render.scene import Arc, Box, Cluster, Scene, encloses

#: a picture with more arcs than LEAST_ARCS and than ARCS_PER_BOX for every box loses the weakest
LEAST_ARCS, ARCS_PER_BOX = 120, 2


def bundle(scene: Scene, noted: set[int]) -> None:
    """Merge links into arcs; those from `noted` elements are text in the boxes they lead to."""
    if scene.model.has_columns:
        from toolkit.render.bundle_table import bundle as bundle_columns

        bundle_columns(scene, noted)
        return
    arcs: dict[tuple[int, int, LinkKind], Arc] = {}
    asides = {id(box) for box in scene.asides}
    owner = scene.owner
    for number, link in enumerate(scene.model.links):
        src, dst = owner[link[0]], owner[link[1]]
        if src is dst:
            is_inner = link.src != link.dst or not isinstance(src, Box)  # what feeds itself is broken: that matters
        else:
            is_inner = encloses(src, dst) or encloses(dst, src)
        if is_inner:
            scene.inner += 1
        elif link.src in noted or link.dst in noted:
            scene.noted += 1
        elif id(src) in asides or id(dst) in asides:
            scene.hidden += 1
        else:
            key = (id(src), id(dst), link.kind)
            arc = arcs.get(key)
            if arc is None:
                arc = arcs[key] = Arc(src, dst, link.kind)
            arc.links.append(number)
    scene.arcs = list(arcs.values())


def drop_covered(scene: Scene) -> None:
    """Leave out control arcs between boxes that data flows between anyway: it waits for that data already."""
    data = {(id(arc.src), id(arc.dst)) for arc in scene.arcs if arc.kind is LinkKind.DATA}
    fed: dict[int, list[Box | Cluster]] = {}
    for arc in scene.arcs:
        if arc.kind is LinkKind.DATA:
            fed.setdefault(id(arc.dst), []).append(arc.src)
    kept: list[Arc] = []
    for arc in scene.arcs:
        if arc.kind is LinkKind.CONTROL and (
            (id(arc.src), id(arc.dst)) in data or any(encloses(arc.src, src) for src in fed.get(id(arc.dst), []))
        ):
            scene.covered += arc.count
        else:
            kept.append(arc)
    scene.arcs = kept


def thin(scene: Scene) -> None:
    """Leave the weakest arcs out of a picture with too many: every box keeps its strongest few.

    Nobody can follow hundreds of edges between few boxes, and Graphviz takes minutes to route them.
    """
    most = max(LEAST_ARCS, ARCS_PER_BOX * len(scene.boxes))
    if len(scene.arcs) <= most:
        return
    kept: set[int] = set()
    degree: Counter[int] = Counter()
    for arc in sorted(scene.arcs, key=lambda arc: (arc.kind is LinkKind.CONTROL, -arc.count)):
        ends = (id(arc.src), id(arc.dst))
        if len(kept) < most and min(degree[end] for end in ends) < ARCS_PER_BOX:
            kept.add(id(arc))
            degree.update(ends)
    scene.thinned = [arc for arc in scene.arcs if id(arc) not in kept]
    scene.arcs = [arc for arc in scene.arcs if id(arc) in kept]


def label_arc(model: Model, arc: Arc) -> None:
    """Write the shape on an arc when all its tensors have one, and how many there are."""
    first = model.links[arc.links[0]]
    arc.transfer = model.ops[first.src] in SEND_OPS and model.ops[first.dst] in RECV_OPS
    if arc.kind is LinkKind.CONTROL:
        arc.label = f"{arc.count}×" if arc.count > 1 else ""
        arc.tooltip = f"{arc.count} control edge{'s' if arc.count > 1 else ''}"
        return
    tensors = {(model.links[n].src, model.links[n].src_output) for n in arc.links}
    shapes: Counter[str] = Counter()
    for src, index in sorted(tensors):
        shapes[describe.flow_text(model.shapes, model.elements[src].node, max(index, 0))] += 1
    texts = [t for t in shapes if t]
    arc.label = texts[0] if len(shapes) == 1 and texts and arc.kind is LinkKind.DATA else ""
    if isinstance(arc.src, Box) and arc.src.kind in ("variable", "input", "constant"):
        arc.label = ""  # the box says it
    if len(tensors) > 1:
        arc.label = f"{len(tensors)} tensors" if not arc.label else f"{len(tensors)}× {arc.label}"
    names = [f"{model.names[s]}:{i}" for s, i in sorted(tensors)]
    shown = names if len(names) <= 8 else [*names[:7], f"… {len(names) - 7} more"]
    arc.tooltip = "\n".join(shown)
