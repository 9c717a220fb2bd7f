"""A scene in a terminal: the scopes as a tree, and the boxes in data-flow order with their edges as rails.

    ● x             input float32 ?×784
    ├─╮
    ● │ hidden      MatMul              ?×128
    ● │ Relu                            ?×128
    ├─╯
    ● add           AddV2               ?×128

Every box is one line. A rail leads from a box down to one that uses its output; dotted rails are control edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.printable import printable
from toolkit.render.describe import shape_text
from toolkit.render.elements import LinkKind
from toolkit.render.scene import Arc, Box, Cluster, Scene

#: edges that would need more rails than this are named instead
MOST_RAILS = 16
_NAME, _WHAT = 44, 40
_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_COLORS = {"input": "\x1b[36m", "output": "\x1b[36m", "variable": "\x1b[33m", "constant": "\x1b[2m", "op": "",
           "scope": "\x1b[34m", "section": "\x1b[34m", "series": "\x1b[35m", "function": "\x1b[32m",
           "loop": "\x1b[32m", "partition": "\x1b[34m", "aside": "\x1b[2m"}  # fmt: skip
_BULLETS = {"scope": "▣", "section": "▣", "series": "▤", "function": "ƒ", "loop": "↻", "partition": "▣",
            "variable": "◆", "input": "○", "output": "◎"}  # fmt: skip


def to_text(scene: Scene, *, color: bool = False) -> str:
    """The scene as lines of text.

    Args:
        color: use the terminal's colours.
    """
    lines = [_paint(scene.title, _BOLD, color) + f": {len(scene.model.elements)} nodes, {len(scene.boxes)} boxes", ""]
    if scene.root.clusters:
        lines += [*_tree(scene.root, "", color), ""]
    lines += _Rails(scene, color).draw()
    if scene.asides:
        lines += ["", _paint("moved aside", _BOLD, color)]
        for box in scene.asides:
            lines.append(f"  {_bullet(box, color)} {printable(box.label)}  {_paint(', '.join(box.lines), _DIM, color)}")
    if scene.thinned:
        lines += ["", f"{len(scene.thinned)} weaker edges are not drawn"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _paint(text: str, code: str, color: bool) -> str:
    text = printable(text)
    return f"{code}{text}{_RESET}" if color and code and text else text


def _bullet(box: Box, color: bool) -> str:
    return _paint(_BULLETS.get(box.kind, "●"), _COLORS.get(box.kind, ""), color)


def _tree(cluster: Cluster, indent: str, color: bool) -> list[str]:
    """The open scopes, with the closed ones in them, as a tree."""
    lines: list[str] = []
    stack: list[tuple[Cluster | Box, str, str]] = []

    def push(around: Cluster, before: str) -> None:
        closed = [b for b in around.boxes if b.scope is not None and b.kind != "variable"]
        inner: list[Cluster | Box] = [*around.clusters, *closed]
        for n, entry in reversed(list(enumerate(inner))):
            last = n == len(inner) - 1
            stack.append((entry, before + ("└─ " if last else "├─ "), before + ("   " if last else "│  ")))

    push(cluster, indent)
    while stack:
        entry, head, below = stack.pop()
        if isinstance(entry, Cluster):
            size = entry.scope.size
            count = f"{size} node{'s' if size != 1 else ''}"
            lines.append(f"{_paint(head, _DIM, color)}{printable(entry.label)}/ {_paint(count, _DIM, color)}")
            push(entry, below)
        else:
            what = ", ".join(entry.lines)
            label = f"{_bullet(entry, color)} {printable(entry.label)}"
            lines.append(f"{_paint(head, _DIM, color)}{label}  {_paint(what, _DIM, color)}")
    return lines


class _Rail:
    """An edge on its way down: to which box, and whether it carries data."""

    __slots__ = ("control", "target")

    def __init__(self, target: Box, control: bool):
        self.target = target
        self.control = control

    @property
    def line(self) -> str:
        return "┊" if self.control else "│"


class _Rails:
    def __init__(self, scene: Scene, color: bool):
        self.scene = scene
        self.color = color
        self.rails: list[_Rail | None] = []
        self.paths = {id(b): _path(c) for c in scene.root.walk() for b in c.boxes}
        self.out: dict[int, list[Arc]] = {}
        for arc in scene.arcs:
            if isinstance(arc.src, Box) and isinstance(arc.dst, Box):
                self.out.setdefault(id(arc.src), []).append(arc)

    def draw(self) -> list[str]:
        lines: list[str] = []
        done: set[int] = set()
        for box in _order(self.scene):
            lines += self._row(box, done)
            done.add(id(box))
        return lines

    def _row(self, box: Box, done: set[int]) -> list[str]:
        arriving = [n for n, rail in enumerate(self.rails) if rail is not None and rail.target is box]
        lines: list[str] = []
        if arriving:
            here, *others = arriving
            if others:
                lines.append(self._joint(here, others, "╯", "┴"))
            for n in others:
                self.rails[n] = None
        else:
            here = self._free()
        self.rails[here] = None
        self._trim(here)
        rails = "".join(
            (_bullet(box, self.color) if n == here else rail.line if (rail := self.rails[n]) else " ") + " "
            for n in range(len(self.rails))
        )
        leaving: list[tuple[Box, bool]] = []
        named: list[str] = []
        for arc in self.out.get(id(box), []):
            assert isinstance(arc.dst, Box)
            control = arc.kind is LinkKind.CONTROL
            known = next((n for n, (target, _) in enumerate(leaving) if target is arc.dst), None)
            if id(arc.dst) in done or arc.dst is box:
                named.append(f"↺ {arc.dst.label}")
            elif known is not None:
                leaving[known] = (arc.dst, leaving[known][1] and control)
            else:
                leaving.append((arc.dst, control))
        live = sum(rail is not None for rail in self.rails)
        room = max(0, MOST_RAILS - live)
        # Beyond the room there is, edges are named; the nearest box gets the rail.
        named += [f"→ {target.label}" for target, _ in leaving[room:]]
        leaving = leaving[:room]
        lines.append(rails + self._text(box, named))
        if leaving:
            self.rails[here] = _Rail(*leaving[0])
            fresh: list[int] = []
            for target, control in leaving[1:]:
                n = self._free(after=here)
                self.rails[n] = _Rail(target, control)
                fresh.append(n)
            if fresh:
                lines.append(self._joint(here, fresh, "╮", "┬"))
        self._trim()
        return lines

    def _free(self, after: int = -1) -> int:
        for n in range(after + 1, len(self.rails)):
            if self.rails[n] is None:
                return n
        self.rails.append(None)
        return len(self.rails) - 1

    def _trim(self, keep: int = -1) -> None:
        while len(self.rails) - 1 > keep and self.rails and self.rails[-1] is None:
            self.rails.pop()

    def _joint(self, here: int, others: Sequence[int], end: str, middle: str) -> str:
        """The line between two rows in which rails join `here`, or leave from it."""
        first, last = min(here, *others), max(here, *others)
        text = ""
        for n in range(len(self.rails)):
            rail = self.rails[n]
            if n == here:
                sign = "├" if n == first else "┤"
            elif n in others:
                sign = end if n == last else middle
            elif first < n < last:
                sign = "┼" if rail is not None else "─"
            else:
                sign = rail.line if rail is not None else " "
            text += sign + ("─" if first <= n < last else " ")
        return text

    def _text(self, box: Box, named: Sequence[str]) -> str:
        path = self.paths.get(id(box), "")
        name = printable(path + box.label)
        if len(name) > _NAME:
            name = "…" + name[-(_NAME - 1) :]
        what = printable(" · ".join(line for line in box.lines if line))
        if len(what) > _WHAT:
            what = what[: _WHAT - 1] + "…"
        shape = ""
        if box.element is not None and box.kind == "op":
            shape = shape_text(self.scene.model.shapes.of(box.element.node, 0))
        width = max(0, _NAME - 2 * len(self.rails))
        painted = _paint(name, _COLORS.get(box.kind, ""), self.color) + " " * max(0, width - len(name))
        extra = printable("  ".join([shape, *[f"from {tag}" for tag in box.tags[:2]], *named])).strip()
        return f"{painted} {_paint(f'{what:<{_WHAT}}', _DIM, self.color)} {extra}"


def _path(cluster: Cluster) -> str:
    """The part of a scope's path that a reader needs before a name in it."""
    path = cluster.scope.path
    return "/".join(part for part in path.split("/") if part and not part.startswith("~")) + "/" if path else ""


def _order(scene: Scene) -> list[Box]:
    """The boxes, each after what feeds it, depth first so that a branch is read to its end; loops are cut."""
    position = {id(box): n for n, box in enumerate(scene.boxes)}
    before: dict[int, list[Box]] = {id(box): [] for box in scene.boxes}
    for arc in scene.arcs:
        if isinstance(arc.src, Box) and isinstance(arc.dst, Box) and id(arc.src) in position:
            before[id(arc.dst)].append(arc.src)
    order: list[Box] = []
    state: dict[int, int] = {}
    targets = {id(arc.src) for arc in scene.arcs}
    # Sinks first: what they need comes just before them. What is on a loop without a sink follows.
    for root in [b for b in scene.boxes if id(b) not in targets] + scene.boxes:
        stack = [(root, False)]
        while stack:
            box, finished = stack.pop()
            if finished:
                order.append(box)
                state[id(box)] = 2
            elif id(box) not in state:
                state[id(box)] = 1
                stack.append((box, True))
                # In file order, but what has no inputs of its own (variables) last, just before it is used.
                inputs = sorted(before[id(box)], key=lambda b: (bool(before[id(b)]), -position[id(b)]))
                stack += [(b, False) for b in inputs if id(b) not in state]
    return order
