"""What a scene is made of: boxes, clusters around them, and arcs that bundle the links between two boxes.

`toolkit.render.visible` makes a scene from the model. Every element is represented exactly once, and every link is
accounted for exactly once: in an arc, inside a box, or hidden because one end was moved aside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.render.elements import Element, LinkKind, Model, Scope


@dataclass(slots=True, eq=False)
class Box:
    """One visible node: an element, or a closed scope.

    Attributes:
        id: unique in the scene; a scope's path ends in "/".
        kind: op, input, output, variable, constant, scope, function, loop, partition, series, section or aside.
        size: how many elements it represents, absorbed ones included.
        lines: what is written below the label.
        tags: short names of hubs that were moved aside and of the edges to them.
        fills: colours with their shares; set by `toolkit.render.colors`.
    """

    id: str
    label: str
    full_name: str
    kind: str
    scope: Scope | None = None
    element: Element | None = None
    size: int = 1
    lines: list[str] = field(default_factory=list[str])
    tags: list[str] = field(default_factory=list[str])
    fills: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    members: list[int] = field(default_factory=list[int])
    emphasis: str = ""  # "", "strong" or "faded"


@dataclass(slots=True, eq=False)
class Cluster:
    """An open scope."""

    scope: Scope
    label: str
    boxes: list[Box] = field(default_factory=list[Box])
    clusters: list[Cluster] = field(default_factory=list["Cluster"])

    @property
    def id(self) -> str:
        return self.scope.path

    def walk(self) -> Iterator[Cluster]:
        yield self
        for inner in self.clusters:
            yield from inner.walk()

    def first_box(self) -> Box | None:
        return next((box for cluster in self.walk() for box in cluster.boxes), None)


@dataclass(slots=True, eq=False)
class Arc:
    """All links of one kind from one box (or open scope) to another."""

    src: Box | Cluster
    dst: Box | Cluster
    kind: LinkKind
    links: list[int] = field(default_factory=list[int])  # positions in Model.links
    label: str = ""
    tooltip: str = ""
    emphasis: str = ""
    transfer: bool = False  # between a _Send and its _Recv in another part

    @property
    def count(self) -> int:
        return len(self.links)


@dataclass(slots=True)
class Scene:
    """Attributes:
    root: the cluster of the whole picture; has no frame of its own.
    asides: boxes drawn at the side, without arcs.
    inner, hidden, noted, covered: numbers of links that are in no arc: those inside one box, those to boxes moved
        aside, those written as text in a box, and control links beside a data arc of the same direction.
    thinned: arcs that are not drawn because there are too many.
    legend: (kind of sample, text, colour or "") rows, filled in by `toolkit.render.colors`.
    """

    model: Model
    root: Cluster
    boxes: list[Box]
    arcs: list[Arc]
    asides: list[Box]
    inner: int = 0
    hidden: int = 0
    noted: int = 0
    covered: int = 0
    thinned: list[Arc] = field(default_factory=list[Arc])
    title: str = ""
    legend: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    owner: list[Box | Cluster] = field(default_factory=list["Box | Cluster"])  # by element id


def encloses(outer: Box | Cluster, inner: Box | Cluster) -> bool:
    """Whether `inner` is drawn in the open scope `outer`."""
    if isinstance(outer, Box):
        return False
    if isinstance(inner, Cluster):
        scope = inner.scope.parent
    else:
        scope = inner.element.scope if inner.element is not None else inner.scope
    while scope is not None:
        if scope is outer.scope:
            return True
        scope = scope.parent
    return False
