"""What is visible: boxes, clusters around them, and arcs that bundle the links between two boxes.

A scene is made from the model by choosing which scopes are open. Every element is represented exactly once, and
every link is accounted for exactly once: in an arc, inside a box, or hidden because one end was moved aside.
"""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from toolkit.render import describe
from toolkit.render.absorb import Absorbed
from toolkit.render.build import RECV_OPS, SEND_OPS
from toolkit.render.elements import Element, LinkKind, Model, Scope, relative_name

#: a picture opens with at most about this many boxes
BOX_BUDGET = 150
FEW_BOXES = 15
#: members of a series with fewer elements say all with their one line of text
SAMPLE_LEAST = 8
#: a small box with more neighbours than this is moved aside when it only steers (control edges, scalars)
HUB_NEIGHBOURS = 12
#: a NoOp with more neighbours than this; tracing makes them to order side effects
NOOP_NEIGHBOURS = 3
#: a picture with more arcs than LEAST_ARCS and than ARCS_PER_BOX for every box loses the weakest
LEAST_ARCS, ARCS_PER_BOX = 120, 2
# Scopes of these kinds open only when asked for by depth or by name.
_KEPT_CLOSED = frozenset({"variable", "series", "aside"})
_UNNAMED = re.compile(r"(.*/)?NoOp(_\d+)?")
_CONDITION = "cond"  # of a While; what a loop does is in its body


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


def open_to_depth(root: Scope, depth: int) -> set[str]:
    """The scopes that are open when scopes up to `depth` levels are: 1 opens the root only."""
    opened: set[str] = set()
    level = [root]
    for _ in range(max(depth, 1)):
        opened |= {s.path for s in level}
        level = [inner for s in level for inner in s.scopes if inner.kind not in _KEPT_CLOSED]
    return opened


def open_to_budget(root: Scope, budget: int = BOX_BUDGET) -> set[str]:
    """Open level by level while the picture stays within the budget; then single scopes, the largest first.

    A picture that shows something already opens further only as long as it stays easy to take in, which two
    fifths of the budget are.
    """
    opened = {root.path}
    boxes = len(root.scopes) + len(root.elements)
    level = _openable(root)
    while level:
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
        _open_a_sample(root, opened, budget * 2 // 5 - boxes)
    return opened


def _open_a_sample(root: Scope, opened: set[str], room: int) -> None:
    """Open the first member of the largest series, when a picture shows little but series."""
    found = [s for o in root.walk() if o.path in opened for s in o.scopes if s.kind == "series" and s.scopes]
    for series in sorted(found, key=lambda s: -s.size)[:1]:
        first = min(series.scopes, key=lambda s: min(s.all_elements()))
        if first.size >= SAMPLE_LEAST and _gain(series) + _gain(first) <= room:
            opened |= {series.path, first.path}


def _openable(scope: Scope) -> list[Scope]:
    return [
        inner
        for inner in scope.scopes
        if inner.kind not in _KEPT_CLOSED
        and not (inner.kind == "function" and scope.kind == "function" and inner.label == _CONDITION)
    ]


def _gain(scope: Scope) -> int:
    return len(scope.scopes) + len(scope.elements) - 1


def make_scene(model: Model, opened: Iterable[str], absorbed: Absorbed, aside: Scope | None = None) -> Scene:
    """The scene with these scopes open. Linear in the model.

    Args:
        opened: paths of open scopes; a scope inside a closed one stays closed.
        aside: what was moved aside; each of its scopes is one box.
    """
    maker = BoxMaker(model, set(opened) | {model.root.path}, absorbed)
    root = maker.cluster(model.root)
    asides = [maker.scope_box(scope, "aside") for scope in aside.scopes] if aside is not None else []
    owner: list[Box | Cluster] = []
    for element in model.elements:
        host = absorbed.host.get(element.id)
        found = maker.owner[element.id if host is None else host]
        assert found is not None
        owner.append(found)
        if host is not None and isinstance(found, Box):
            found.size += 1
            found.members.append(element.id)
    scene = Scene(model, root, maker.boxes, [], asides, title=model.title, owner=owner)
    _bundle(scene, absorbed.noted)
    _move_hubs_aside(scene)
    _drop_covered(scene)
    _gather_unconnected(scene)
    _drop_empty_clusters(scene)
    _thin(scene)
    for arc in scene.arcs:
        _label_arc(model, arc)
    return scene


class BoxMaker:
    """Makes boxes and clusters, and notes which one each element is in (`owner`)."""

    def __init__(self, model: Model, opened: set[str], absorbed: Absorbed):
        self.model = model
        self.opened = opened
        self.absorbed = absorbed
        self.boxes: list[Box] = []
        self.owner: list[Box | Cluster | None] = [None] * len(model.elements)
        self.prefixes: dict[str, str] = {}

    def cluster(self, top: Scope) -> Cluster:
        """The cluster of an open scope with all that is visible in it (without recursion: scopes nest deeply)."""
        result = Cluster(top, top.label)
        stack = [result]
        while stack:
            cluster = stack.pop()
            scope = cluster.scope
            for i in scope.elements:
                if i == scope.lead and scope.kind == "function":
                    self.owner[i] = cluster  # the frame is the calling node
                    continue
                box = self.element_box(self.model.elements[i], scope)
                self.owner[i] = box
                cluster.boxes.append(box)
                self.boxes.append(box)
            for inner in scope.scopes:
                if inner.path in self.opened:
                    made = Cluster(inner, scope_label(inner))
                    cluster.clusters.append(made)
                    stack.append(made)
                else:
                    box = self.scope_box(inner, inner.kind)
                    cluster.boxes.append(box)
                    self.boxes.append(box)
        return result

    def element_box(self, element: Element, scope: Scope) -> Box:
        node = element.node
        kind = "op"
        if element.op in describe.INPUT_OPS:
            kind = "input"
        elif element.op in describe.OUTPUT_OPS:
            kind = "output"
        elif element.op in describe.VARIABLE_OPS:
            kind = "variable"
        elif element.op in ("Const", "HostConst"):
            kind = "constant"
        label = relative_name(element, scope)
        if kind in ("input", "output"):
            label = label.removeprefix(self._common_prefix(element.scope))
        box = Box(element.name, label, element.name, kind, element=element, members=[element.id])
        words = [element.op.lstrip("_")] if element.op.lower() != label.lower() else []
        if kind in ("input", "variable", "output"):
            words = [{"input": "input", "variable": "variable", "output": "output"}[kind]]
            if kind == "variable":
                words.append(describe.variable_text(node))
            else:
                shape = describe.shape_text(self.model.shapes.of(node, 0))
                dtype = describe.output_dtype(node, 0)
                words += [w for w in (dtype.base.name if dtype else "", shape) if w]
            box.lines.append(" ".join(words))
        elif kind == "constant":
            box.lines.append(describe.constant_text(node))
        else:
            words += describe.attribute_notes(node)
            if words:
                box.lines.append(" · ".join(words))
        box.lines += self.absorbed.notes.get(element.id, [])
        if element.note:
            prefix = self._common_prefix(element.scope) if kind == "output" else ""
            box.lines.append(element.note.replace(prefix, "", 1) if prefix else element.note)
        return box

    def _common_prefix(self, scope: Scope) -> str:
        """What the names of a function's arguments and results begin with; tracing puts the same path on all."""
        known = self.prefixes.get(scope.path)
        if known is None:
            elements = (self.model.elements[i] for i in scope.elements)
            names = [e.node.name for e in elements if e.op in describe.INPUT_OPS | describe.OUTPUT_OPS]
            common = ""
            if len(names) > 2 and scope.kind == "function":
                # Characters are what is wanted here, not path components.
                common = os.path.commonprefix(names)  # noqa: RUF071
            known = self.prefixes[scope.path] = common[: common.rfind("_") + 1]
        return known

    def scope_box(self, scope: Scope, kind: str) -> Box:
        members = list(scope.all_elements())
        box = Box(scope.path, scope_label(scope), scope.path.rstrip("/"), kind, scope=scope, size=len(members))
        box.members = members
        for i in members:
            self.owner[i] = box
        box.lines = self.scope_lines(scope, kind, members)
        return box

    def scope_lines(self, scope: Scope, kind: str, members: list[int]) -> list[str]:
        """What is written in the box of a closed scope."""
        elements = self.model.elements
        if kind == "variable" and scope.lead is not None:
            return [f"variable {describe.variable_text(elements[scope.lead].node)}"]
        ops = Counter(elements[i].op for i in members)
        for plain in ("Identity", "NoOp", "Const", "_Arg", "_Retval"):
            if len(ops) > 1:
                ops.pop(plain, None)
        common = ", ".join(f"{n} {op}" if n > 1 else op for op, n in ops.most_common(2))
        if len(ops) > 2:
            common += ", …"
        if kind == "series":
            each = len(scope.scopes) + len(scope.elements)
            first = scope.scopes[0].size if scope.scopes else 1
            what = f"{each} × {first} nodes" if first > 1 else f"{each} × {common.partition(' ')[2]}"
            return [what] if first == 1 else [what, common]
        count = f"{len(members)} node{'s' if len(members) != 1 else ''}"
        detail = [scope.detail] if scope.detail and kind in ("loop", "section") else []
        return [*detail, count, common] if common else [*detail, count]


def scope_label(scope: Scope) -> str:
    if scope.kind == "function" and scope.detail and scope.detail != scope.label:
        return f"{scope.label}: {scope.detail}()"
    if scope.kind == "section" and not scope.detail:
        return f"{scope.label}_…" if " … " not in scope.label else scope.label
    return scope.label


def _bundle(scene: Scene, noted: set[int]) -> None:
    """Merge links into arcs; those from `noted` elements are text in the boxes they lead to."""
    arcs: dict[tuple[int, int, LinkKind], Arc] = {}
    asides = {id(box) for box in scene.asides}
    owner = scene.owner
    for number, link in enumerate(scene.model.links):
        src, dst = owner[link.src], owner[link.dst]
        if src is dst or _encloses(src, dst) or _encloses(dst, src):
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


def _encloses(outer: Box | Cluster, inner: Box | Cluster) -> bool:
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


def _move_hubs_aside(scene: Scene) -> None:
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


def _is_silent(box: Box) -> bool:
    """Whether a box is a NoOp that nobody named: tracing makes them to order side effects."""
    return box.element is not None and box.element.op == "NoOp" and bool(_UNNAMED.fullmatch(box.label))


def _drop_covered(scene: Scene) -> None:
    """Leave out control arcs between boxes that data flows between anyway: it waits for that data already."""
    data = {(id(arc.src), id(arc.dst)) for arc in scene.arcs if arc.kind is LinkKind.DATA}
    fed: dict[int, list[Box | Cluster]] = {}
    for arc in scene.arcs:
        if arc.kind is LinkKind.DATA:
            fed.setdefault(id(arc.dst), []).append(arc.src)
    kept: list[Arc] = []
    for arc in scene.arcs:
        if arc.kind is LinkKind.CONTROL and (
            (id(arc.src), id(arc.dst)) in data or any(_encloses(arc.src, src) for src in fed.get(id(arc.dst), []))
        ):
            scene.covered += arc.count
        else:
            kept.append(arc)
    scene.arcs = kept


def _thin(scene: Scene) -> None:
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


def _gather_unconnected(scene: Scene) -> None:
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


def _drop_empty_clusters(scene: Scene) -> None:
    """Leave out frames from which everything was moved away, unless an arc ends at them."""
    ends = {id(end) for arc in scene.arcs for end in (arc.src, arc.dst)}
    for cluster in reversed(list(scene.root.walk())):
        cluster.clusters = [c for c in cluster.clusters if c.boxes or c.clusters or id(c) in ends]


def _steers(model: Model, arc: Arc, box: Box) -> bool:
    """Whether an arc carries control or a scalar from this box."""
    if arc.kind is LinkKind.CONTROL:
        return True
    if arc.src is not box:
        return False
    link = model.links[arc.links[0]]
    shape = model.shapes.of(model.elements[link.src].node, max(link.src_output, 0))
    return shape is not None and shape.dims == ()


def _label_arc(model: Model, arc: Arc) -> None:
    """Write the shape on an arc when all its tensors have one, and how many there are."""
    first = model.links[arc.links[0]]
    arc.transfer = model.elements[first.src].op in SEND_OPS and model.elements[first.dst].op in RECV_OPS
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
    names = [f"{model.elements[s].name}:{i}" for s, i in sorted(tensors)]
    shown = names if len(names) <= 8 else [*names[:7], f"… {len(names) - 7} more"]
    arc.tooltip = "\n".join(shown)
