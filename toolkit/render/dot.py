"""A scene as DOT text (the language of Graphviz)."""

from __future__ import annotations

from collections import Counter
from html import escape

from toolkit.errors import UsageError
from toolkit.printable import printable
from toolkit.render.elements import LinkKind
from toolkit.render.scene import Arc, Box, Cluster, Scene
from toolkit.render.themes import Theme

FONT = "Helvetica"  # Graphviz knows its metrics without any font installed, and all viewers have one like it
DIRECTIONS = ("TB", "LR", "auto")
LABEL_LENGTH = 30
LINE_LENGTH = 34
MOST_LINES = 4

# Shape and style by kind of box; print pictures must tell kinds apart without colour.
_SHAPES: dict[str, tuple[str, str, int]] = {
    "op": ("box", "rounded,filled", 1),
    "input": ("ellipse", "filled", 1),
    "output": ("ellipse", "filled", 1),
    "variable": ("cylinder", "filled", 1),
    "constant": ("note", "filled", 1),
    "scope": ("box", "rounded,filled,bold", 1),
    "section": ("tab", "filled", 1),
    "series": ("box", "filled", 3),
    "function": ("component", "filled", 1),
    "loop": ("box", "rounded,filled,bold", 2),
    "partition": ("box3d", "filled", 1),
    "aside": ("box", "rounded,filled,dashed", 1),
}
_ARCS: dict[LinkKind, tuple[str, str]] = {
    LinkKind.DATA: ("solid", "normal"),
    LinkKind.CONTROL: ("dashed", "empty"),
    LinkKind.REFERENCE: ("solid", "diamond"),
}


def check_direction(direction: str) -> None:
    """Make sure that there is such a direction.

    Raises:
        UsageError: there is none.
    """
    if direction not in DIRECTIONS:
        raise UsageError(f"'{direction}' is no direction; expected {', '.join(DIRECTIONS)}")


def to_dot(scene: Scene, theme: Theme, *, direction: str = "auto", legend: bool = True) -> str:
    """The scene as DOT text; the same scene always gives the same text.

    Args:
        direction: TB (inputs on top), LR (inputs at the left) or auto.
        legend: add a legend of the colours, boxes and edges that occur.

    Raises:
        UsageError: there is no such direction.
    """
    check_direction(direction)
    if direction == "auto":
        direction = choose_direction(scene)
    writer = _Writer(scene, theme)
    out = writer.lines
    out.append(f"digraph {quote(scene.title or 'graph')} {{")
    writer.attributes(
        "graph",
        rankdir=direction, compound="true", newrank="true", bgcolor=theme.background, fontname=FONT, fontsize="11",
        fontcolor=theme.ink, nodesep="0.22", ranksep="0.38", pad="0.2", tooltip=scene.title or "graph",
        label=_heading(scene, theme, direction) if legend and scene.legend else scene.title,
        labelloc="t", labeljust="l",
    )  # fmt: skip
    writer.attributes(
        "node", fontname=FONT, fontsize="11", fontcolor=theme.ink, color=theme.border, margin="0.10,0.05", height="0.3"
    )
    writer.attributes("edge", fontname=FONT, fontsize="9", fontcolor=theme.muted, color=theme.data, arrowsize="0.6")
    writer.cluster_content(scene.root, 0)
    writer.side(scene, stacked=direction == "TB")
    writer.arcs(scene)
    out.append("}")
    return "\n".join(out) + "\n"


def choose_direction(scene: Scene) -> str:
    """Top to bottom unless the picture would get wide: many boxes on few ranks, and long chains, read better
    the other way round."""
    depth = _ranks(scene)
    if not depth:
        return "TB"
    widths: dict[int, int] = {}
    for rank in depth.values():
        widths[rank] = widths.get(rank, 0) + 1
    widest, ranks = max(widths.values()), len(widths)
    # A box is about 130 points wide and 60 high, with the space around it.
    return "LR" if widest * 130 > 1400 and widest * 60 < widest * 130 and ranks * 180 < widest * 130 else "TB"


def _ranks(scene: Scene) -> dict[int, int]:
    """The longest-path rank of every box, ignoring edges that go back."""
    order = {id(box): n for n, box in enumerate(scene.boxes)}
    out: dict[int, list[int]] = {key: [] for key in order}
    pending = dict.fromkeys(order, 0)
    for arc in scene.arcs:
        if id(arc.src) in order and id(arc.dst) in order:
            out[id(arc.src)].append(id(arc.dst))
            pending[id(arc.dst)] += 1
    rank = dict.fromkeys(order, 0)
    ready = [key for key, count in pending.items() if count == 0]
    for key in ready:  # grows while we walk it; what is on a cycle keeps the rank it has
        for target in out[key]:
            rank[target] = max(rank[target], rank[key] + 1)
            pending[target] -= 1
            if pending[target] == 0:
                ready.append(target)
    return rank


def main_path(scene: Scene) -> set[int]:
    """The arcs (by id) of the longest path of data: drawn straight, it is what the eye follows."""
    rank = _ranks(scene)
    incoming: dict[int, list[Arc]] = {}
    for arc in scene.arcs:
        if arc.kind is LinkKind.DATA and isinstance(arc.src, Box) and isinstance(arc.dst, Box):
            incoming.setdefault(id(arc.dst), []).append(arc)
    chosen: set[int] = set()
    here = max(rank, key=lambda key: rank[key], default=None)
    while here is not None:
        arcs = [arc for arc in incoming.get(here, []) if rank[id(arc.src)] < rank[here]]
        if not arcs:
            break
        best = max(arcs, key=lambda arc: (rank[id(arc.src)], arc.src.kind != "variable"))  # type: ignore[union-attr]
        chosen.add(id(best))
        here = id(best.src)
    return chosen


def quote(text: str) -> str:
    """A DOT string."""
    text = printable(text, keep="\n")
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'


def ellipsize(text: str, length: int) -> str:
    """A text of at most `length` characters, with its middle left out: names differ at their ends."""
    if len(text) <= length:
        return text
    head = (length - 1) // 3
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


class _Writer:
    def __init__(self, scene: Scene, theme: Theme):
        self.scene = scene
        self.theme = theme
        self.lines: list[str] = []
        self.indent = 1
        self.clusters = 0
        self.cluster_names: dict[int, str] = {}

    def attributes(self, what: str, **values: str) -> None:
        texts = [f"{key}={_value(value)}" for key, value in values.items() if value != ""]
        self.lines.append(f"{'  ' * self.indent}{what} [{' '.join(texts)}];")

    def cluster_content(self, cluster: Cluster, depth: int) -> None:
        # Names nest at most a few dozen deep once scopes with one child are merged, so recursion is safe here.
        for box in cluster.boxes:
            self.box(box)
        for inner in cluster.clusters:
            name = f"cluster_{self.clusters}"
            self.clusters += 1
            self.cluster_names[id(inner)] = name
            self.lines.append(f"{'  ' * self.indent}subgraph {quote(name)} {{")
            self.indent += 1
            fills = self.theme.clusters
            plain = inner.scope.kind in ("scope", "section", "series")
            self.attributes(
                "graph",
                label=ellipsize(inner.label, LABEL_LENGTH + 10), tooltip=inner.id, id=f"cluster:{inner.id}",
                style="rounded,filled" if plain else "rounded,filled,bold", fillcolor=fills[depth % len(fills)],
                color=self.theme.cluster_border if plain else self.theme.border, fontcolor=self.theme.ink,
                labeljust="l", labelloc="t", margin="10", penwidth="1" if plain else "1.6",
            )  # fmt: skip
            if inner.first_box() is None:
                self.lines.append(f"{'  ' * self.indent}{quote('anchor ' + inner.id)} [style=invis width=0 height=0];")
            self.cluster_content(inner, depth + 1)
            self.indent -= 1
            self.lines.append(f"{'  ' * self.indent}}}")

    def box(self, box: Box) -> None:
        shape, style, peripheries = _SHAPES.get(box.kind, _SHAPES["op"])
        fill = box.fills[0][0] if box.fills else self.theme.background
        if len(box.fills) > 1 and shape in ("box", "box3d", "tab", "component"):
            # Stripes need a plain rectangle.
            shape, style = "box", "striped"
            fill = ":".join(f"{colour};{share:.3f}" for colour, share in box.fills)
        border, pen, ink = self.theme.border, "", self.theme.ink
        if box.emphasis == "strong":
            border, pen = self.theme.strong, "2.2"
        elif box.emphasis == "faded":
            ink = border = self.theme.cluster_border
            fill, style = self.theme.background, style.replace("striped", "filled")
        self.attributes(
            quote(box.id),
            label=f"<{self.label(box, faded=box.emphasis == 'faded')}>", id=f"node:{box.id}", tooltip=self.tooltip(box),
            shape=shape, style=style, fillcolor=fill, color="" if border == self.theme.border else border,
            penwidth=pen, fontcolor="" if ink == self.theme.ink else ink,
            peripheries=str(peripheries) if peripheries > 1 else "",
        )  # fmt: skip

    def label(self, box: Box, *, faded: bool) -> str:
        muted = self.theme.cluster_border if faded else self.theme.muted
        title = escape(ellipsize(printable(box.label), LABEL_LENGTH), quote=False) or " "
        if box.scope is not None and box.kind != "variable":
            title = f"<B>{title}</B>"
        lines = box.lines
        if len(lines) > MOST_LINES:
            lines = [*lines[: MOST_LINES - 1], f"+ {len(lines) - MOST_LINES + 1} more"]
        lines = [*lines, *(f"from {tag}" for tag in box.tags[:2])]
        if len(box.tags) > 2:
            lines[-1] += f" and {len(box.tags) - 2} more"
        rest = "".join(
            f'<BR/><FONT POINT-SIZE="9" COLOR="{muted}">{escape(line, quote=False)}</FONT>'
            for line in (ellipsize(printable(text), LINE_LENGTH) for text in lines)
            if line
        )
        return title + rest

    def tooltip(self, box: Box) -> str:
        lines = [box.full_name]
        if box.element is not None:
            lines.append(f"op {box.element.op}")
            if box.element.device:
                lines.append(f"device {box.element.device}")
        else:
            lines.append(f"{box.size} nodes")
        lines += box.lines + [f"from {tag}" for tag in box.tags]
        return "\n".join(lines)

    def arcs(self, scene: Scene) -> None:
        spine = main_path(scene)
        beside = self.place_sources(scene)
        for arc in scene.arcs:
            self.arc(arc, weight="20" if id(arc) in spine else "0" if id(arc) in beside else "")

    def arc(self, arc: Arc, weight: str) -> None:
        style, head = _ARCS[arc.kind]
        colour = {
            LinkKind.DATA: self.theme.data,
            LinkKind.CONTROL: self.theme.control,
            LinkKind.REFERENCE: self.theme.reference,
        }[arc.kind]
        # Thicker for more tensors, up to a limit; a label says how many.
        width = 1.0 + min(2.0, (arc.count - 1) ** 0.5 * 0.4) if arc.kind is not LinkKind.CONTROL else 0.9
        if arc.transfer:
            style, colour, width = "bold", self.theme.strong, 1.8
        if arc.emphasis == "strong":
            colour, width = self.theme.strong, 2.6
        elif arc.emphasis == "faded":
            colour, width = self.theme.cluster_border, 0.7
        src, tail = self.endpoint(arc.src)
        dst, headed = self.endpoint(arc.dst)
        if src is None or dst is None:
            return
        self.attributes(
            f"{quote(src)} -> {quote(dst)}",
            style="" if style == "solid" else style, arrowhead="" if head == "normal" else head,
            color="" if colour == self.theme.data else colour, penwidth="" if width == 1.0 else f"{width:.2g}",
            label=f"  {arc.label} " if arc.label and arc.emphasis != "faded" else "",
            tooltip=arc.tooltip, edgetooltip=arc.tooltip, labeltooltip=arc.tooltip if arc.label else "",
            ltail=tail, lhead=headed, weight=weight,
            constraint="false" if arc.kind is LinkKind.CONTROL and tail + headed else "",
        )  # fmt: skip

    def place_sources(self, scene: Scene) -> set[int]:
        """Put variables and constants that one box uses beside it, on its rank; returns the arcs (by id) from them.

        What flows then goes straight down past them. Those that several boxes use stay below whatever feeds the
        scope, held by an invisible edge, so that scopes in sequence stand in a column.
        """
        beside: set[int] = set()
        home = {id(box): cluster for cluster in scene.root.walk() for box in cluster.boxes}
        into: dict[int, list[Arc]] = {}
        users: dict[int, set[int]] = {}
        for arc in scene.arcs:
            into.setdefault(id(arc.dst), []).append(arc)
            users.setdefault(id(arc.src), set()).add(id(arc.dst))
        for arc in scene.arcs:
            source, user = arc.src, arc.dst
            if not isinstance(source, Box) or not isinstance(user, Box):
                continue
            if id(source) in into or source.kind not in ("variable", "constant"):
                continue
            cluster = home.get(id(source))
            if cluster is None or home.get(id(user)) is not cluster:
                continue
            if len(users[id(source)]) == 1 and arc.kind is not LinkKind.CONTROL:
                self.lines.append(f"  {{rank=same; {quote(source.id)}; {quote(user.id)}}}")
                beside.add(id(arc))
                continue
            for other in into.get(id(user), []) if cluster is not scene.root else ():
                feeder = other.src
                if isinstance(feeder, Box) and feeder is not source and home.get(id(feeder)) is not cluster:
                    self.attributes(f"{quote(feeder.id)} -> {quote(source.id)}", style="invis", weight="0")
        return beside

    def endpoint(self, end: Box | Cluster) -> tuple[str | None, str]:
        """The box to draw an arc to, and the cluster to stop at."""
        if isinstance(end, Box):
            return end.id, ""
        box = end.first_box()
        return (box.id if box is not None else f"anchor {end.id}"), self.cluster_names.get(id(end), "")

    def side(self, scene: Scene, *, stacked: bool) -> None:
        """What was moved aside: a column of its own."""
        if not scene.asides:
            return
        self.lines.append('  subgraph "cluster_aside" {')
        self.indent = 2
        self.attributes(
            "graph",
            label="moved aside", tooltip="drawn without their edges", style="rounded,dashed",
            color=self.theme.cluster_border, fontcolor=self.theme.muted, labeljust="l", margin="10",
        )  # fmt: skip
        for box in scene.asides:
            self.box(box)
        for above, below in zip(scene.asides, scene.asides[1:], strict=False) if stacked else ():
            self.attributes(f"{quote(above.id)} -> {quote(below.id)}", style="invis")
        self.indent = 1
        self.lines.append("  }")


def _value(value: str) -> str:
    return value if value.startswith("<") and value.endswith(">") else quote(value)


_SAMPLES = {
    "scope": "bold frame", "series": "three frames", "function": "two tabs at the left", "section": "tab on top",
    "variable": "cylinder", "aside": "dashed frame",
}  # fmt: skip
# Only characters that every font has; PNG is drawn with whatever fonts the machine has.
_ARC_SAMPLES = {
    "arc-transfer": "<B>-----&gt;</B>",
    "arc-data": "-----&gt;",
    "arc-control": "- - -&gt;",
    "arc-reference": "----&lt;&gt;",
}
_LEGEND_COLUMN = 150  # points that one row of the legend takes, about


def _heading(scene: Scene, theme: Theme, direction: str) -> str:
    """The title and the legend in as many columns as the picture is wide: as its heading it is in nothing's way."""
    ranks = Counter(_ranks(scene).values())
    across = max(ranks.values(), default=1) * 140 if direction == "TB" else len(ranks) * 170
    columns = max(3, min(6, (across + 150 * bool(scene.asides)) // _LEGEND_COLUMN, len(scene.legend)))
    cells = [_legend_cells(*row, theme) for row in scene.legend]
    height = -(-len(cells) // columns)
    rows = "".join(f"<TR>{''.join(cells[n::height])}</TR>" for n in range(height))
    legend = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">{rows}</TABLE>'
    title = escape(printable(scene.title), quote=False) or " "
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"><TR><TD ALIGN="LEFT"><B>{title}</B></TD>'
        f'</TR><TR><TD ALIGN="LEFT">{legend}</TD></TR></TABLE>>'
    )


def _legend_cells(kind: str, text: str, colour: str, theme: Theme) -> str:
    sample = f'<TD BGCOLOR="{colour}" BORDER="1" COLOR="{theme.border}" WIDTH="22" HEIGHT="9" FIXEDSIZE="TRUE"></TD>'
    if kind in _SAMPLES:
        sample = f'<TD ALIGN="LEFT"><FONT POINT-SIZE="8" COLOR="{theme.muted}">{_SAMPLES[kind]}:</FONT></TD>'
    elif kind == "note":
        sample = "<TD></TD>"
    elif kind in _ARC_SAMPLES:
        sample = f'<TD ALIGN="LEFT"><FONT POINT-SIZE="9" COLOR="{colour}">{_ARC_SAMPLES[kind]}</FONT></TD>'
    name = f'<FONT POINT-SIZE="9" COLOR="{theme.ink}">{escape(ellipsize(text, 40), quote=False)}</FONT>'
    return f'{sample}<TD ALIGN="LEFT">{name}  </TD>'
