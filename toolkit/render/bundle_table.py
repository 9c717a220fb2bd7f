"""The arcs of a scene of a large model: its links are bundled as columns."""

from __future__ import annotations

import numpy as np

from toolkit.formats.node_tables.columns import ints
from toolkit.render.elements import LinkKind
from toolkit.render.link_table import LinkTable
from toolkit.render.scene import Arc, Box, Cluster, Scene, encloses


def bundle(scene: Scene, noted: set[int]) -> None:
    """See `toolkit.render.arcs.bundle`."""
    links, count = scene.model.links, len(scene.owner)
    assert isinstance(links, LinkTable)
    ends = list({id(end): end for end in scene.owner}.values())
    numbers = {id(end): number for number, end in enumerate(ends)}
    owner = np.fromiter(map(numbers.__getitem__, map(id, scene.owner)), np.int32, count)
    src, dst = owner[links.src], owner[links.dst]
    pairs = src.astype(np.int64) * len(ends) + dst
    enclosing = [
        pair
        for pair in ints(np.unique(pairs[src != dst]))
        if _are_nested(ends[pair // len(ends)], ends[pair % len(ends)])
    ]
    is_box = np.array([isinstance(end, Box) for end in ends], np.bool_)
    # what feeds itself is broken: that matters
    is_inner = np.where(src == dst, (links.src != links.dst) | ~is_box[src], np.isin(pairs, enclosing))
    is_noted = np.zeros(count, np.bool_)
    is_noted[list(noted)] = True
    has_note = ~is_inner & (is_noted[links.src] | is_noted[links.dst])
    asides = {id(box) for box in scene.asides}
    is_aside = np.array([id(end) in asides for end in ends], np.bool_)
    is_hidden = ~is_inner & ~has_note & (is_aside[src] | is_aside[dst])
    scene.inner += int(np.count_nonzero(is_inner))
    scene.noted += int(np.count_nonzero(has_note))
    scene.hidden += int(np.count_nonzero(is_hidden))
    left = np.flatnonzero(~(is_inner | has_note | is_hidden))
    keys, first, arc_of = np.unique(
        pairs[left] * len(LinkKind) + links.kind[left], return_index=True, return_inverse=True
    )
    grouped = left[np.argsort(arc_of, kind="stable")]
    stops = np.cumsum(np.bincount(arc_of, minlength=len(keys)))
    for at in ints(np.argsort(first)):  # in the order of the links
        link = links[int(left[first[at]])]
        members = grouped[stops[at - 1] if at else 0 : stops[at]]
        scene.arcs.append(Arc(scene.owner[link.src], scene.owner[link.dst], link.kind, ints(members)))


def _are_nested(one: Box | Cluster, other: Box | Cluster) -> bool:
    """Whether one of two is drawn in the other, an open scope."""
    return encloses(one, other) or encloses(other, one)
