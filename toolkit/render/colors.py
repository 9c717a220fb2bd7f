"""What a box's colour means: `--color`. Each mode is a function from an element to a key; a table maps them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph.device import DeviceSpec
from toolkit.render import describe, difference
from toolkit.render.difference import Differences
from toolkit.render.elements import Element, LinkKind, Model
from toolkit.render.scene import Box, Scene
from toolkit.render.themes import Theme

NONE = "none"
_OTHER = "other"
STATIC_COST = "bytes of output"
MEMORY_UNIT = "B"


@dataclass(frozen=True, slots=True)
class ColorInput:
    """What some modes need besides the scene.

    Attributes:
        costs: a cost per node name (seconds, bytes or FLOPs), and what it is called.
        memory: bytes per node name.
        changes: what happened to each node since another graph.
    """

    costs: Mapping[str, float] | None = None
    cost_unit: str = ""
    memory: Mapping[str, float] | None = None
    changes: Differences | None = None


#: fills the boxes of a scene and makes its legend
Colouring = Callable[[Scene, Theme, ColorInput], None]


def color_scene(scene: Scene, mode: str, theme: Theme, given: ColorInput | None = None) -> None:
    """Set `Box.fills` and the legend.

    Raises:
        UsageError: there is no such mode, or it needs something that is not given.
    """
    check_mode(mode, given)
    scene.legend = []
    find_mode(mode)(scene, theme, given or ColorInput())
    scene.legend += _shape_legend(scene, theme)


def find_mode(mode: str) -> Colouring:
    """The colouring of that name.

    Raises:
        UsageError: there is none; the names are listed.
    """
    if mode not in MODES:
        raise UsageError(
            f"there is no colouring '{mode}'" + did_you_mean(mode, MODES, then=f"expected {', '.join(MODES)}")
        )
    return MODES[mode]


def check_mode(mode: str, given: ColorInput | None) -> None:
    """Make sure that a colouring exists and has what it needs.

    Raises:
        UsageError: it does not.
    """
    find_mode(mode)
    if mode == "diff" and (given is None or given.changes is None):
        raise UsageError("colouring by diff needs the other graph; give it with --against FILE")
    if mode == "memory" and not (given is not None and given.memory):
        raise UsageError(
            "colouring by memory needs a trace that says what nodes allocated; give it with --costs FILE "
            "(RunMetadata, or what `graphmill run --trace` writes)"
        )


def _all_boxes(scene: Scene) -> list[Box]:
    return [*scene.boxes, *scene.asides]


def _by_op(scene: Scene, theme: Theme, given: ColorInput) -> None:
    used: set[str] = set()
    for box in _all_boxes(scene):
        if box.element is not None:
            name = op_key(box.element)
        elif box.kind == "variable":
            name = "variable"
        elif box.kind == "series" and box.scope is not None and not box.scope.scopes:
            name = describe.category(scene.model.ops[box.scope.elements[0]])
        else:
            box.fills = [(theme.scope, 1.0)]
            continue
        used.add(name)
        box.fills = [(theme.categories[name], 1.0)]
    scene.legend += [("fill", name, theme.categories[name]) for name in describe.CATEGORIES if name in used]


def _shares(scene: Scene, theme: Theme, key: Callable[[Element], str]) -> None:
    """Give every key a colour and every box the shares of its elements' keys."""
    totals: Counter[str] = Counter()
    keys = [key(element) for element in scene.model.elements]
    totals.update(k for k in keys if k != NONE)
    named = sorted(totals, key=lambda k: (-totals[k], k))[: len(theme.distinct)]
    if len(totals) > len(named):
        named = named[:-1]
    named.sort()
    colours = dict(zip(named, theme.distinct, strict=False))
    other = theme.distinct[-1]
    any_other = False
    for box in _all_boxes(scene):
        counts: Counter[str] = Counter()
        for i in box.members:
            k = keys[i]
            counts[k if k in colours or k == NONE else _OTHER] += 1
        if len(counts) > 1:
            counts.pop(NONE, None)
        any_other |= _OTHER in counts
        total = sum(counts.values()) or 1
        parts = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:4]
        whole = sum(n for _, n in parts) or total
        box.fills = [(colours.get(k, other if k == _OTHER else theme.background), n / whole) for k, n in parts]
    scene.legend += [("fill", name, colour) for name, colour in colours.items()]
    if any_other:
        scene.legend.append(("fill", _OTHER, other))
    if any(k == NONE for k in keys):
        scene.legend.append(("fill", NONE, theme.background))


def _by_device(scene: Scene, theme: Theme, given: ColorInput) -> None:
    _shares(scene, theme, device_key)


def device_key(element: Element) -> str:
    """A device name without what all names of a local run have in common."""
    return element.device.replace("/job:localhost/replica:0/task:0", "").replace("/replica:0", "") or NONE


def op_key(element: Element) -> str:
    """The category of an element's op."""
    return "function call" if element.op in element.node.graph.library else describe.category(element.op)


def partition_key(element: Element) -> str:
    """The part of a partition that an element is in, else the task of its device."""
    scope = element.scope
    while scope.parent is not None:
        if scope.kind == "partition":
            return scope.label
        scope = scope.parent
    try:
        return DeviceSpec.parse(element.device).task_name or NONE
    except UsageError:
        return NONE


def dtype_key(element: Element) -> str:
    """The type of an element's first output."""
    dtype = describe.output_dtype(element.node, 0)
    return dtype.base.name if dtype is not None else NONE


def _by_partition(scene: Scene, theme: Theme, given: ColorInput) -> None:
    _shares(scene, theme, partition_key)


def _by_dtype(scene: Scene, theme: Theme, given: ColorInput) -> None:
    _shares(scene, theme, dtype_key)


def _by_structure(scene: Scene, theme: Theme, given: ColorInput) -> None:
    """Closed scopes with the same ops have the same colour; what occurs once has none."""
    shapes = {
        id(box): tuple(sorted(Counter(scene.model.ops[i] for i in box.members).items())) if box.scope else ()
        for box in _all_boxes(scene)
    }
    counts = Counter(shapes.values())
    repeated = [s for s, n in counts.most_common() if n > 1 and s]
    colours = dict(zip(repeated, theme.distinct, strict=False))
    for box in _all_boxes(scene):
        box.fills = [(colours.get(shapes[id(box)], theme.background), 1.0)]
    for number, (shape, colour) in enumerate(colours.items(), 1):
        scene.legend.append(("fill", f"structure {number}: {counts[shape]} like boxes", colour))


def _by_cost(scene: Scene, theme: Theme, given: ColorInput) -> None:
    costs, unit = given.costs, given.cost_unit
    if costs is None:
        costs, unit = static_costs(scene.model), STATIC_COST
    _by_amount(scene, theme, costs, unit)


def _by_memory(scene: Scene, theme: Theme, given: ColorInput) -> None:
    _by_amount(scene, theme, given.memory or {}, MEMORY_UNIT)


def _by_amount(scene: Scene, theme: Theme, costs: Mapping[str, float], unit: str) -> None:
    per_box: dict[int, float] = {}
    for box in _all_boxes(scene):
        per_box[id(box)] = sum(costs.get(scene.model.names[i], 0.0) for i in box.members)
    top = max(per_box.values(), default=0.0)
    steps = len(theme.scale)
    for box in _all_boxes(scene):
        cost = per_box[id(box)]
        # Costs spread over orders of magnitude; equal steps of the square root keep small ones visible.
        level = int((cost / top) ** 0.5 * (steps - 1) + 0.5) if top > 0 else 0
        box.fills = [(theme.scale[level], 1.0)]
        if cost > 0:
            box.lines.append(amount(cost, unit))
    for level, colour in enumerate(theme.scale):
        bound = top * (level / (steps - 1)) ** 2
        scene.legend.append(("fill", f"about {amount(bound, unit)}", colour))


def static_costs(model: Model) -> dict[str, float]:
    """Bytes that each element's outputs take, where shapes are known; unknown dimensions count as 1."""
    costs: dict[str, float] = {}
    for element in model.elements:
        total = 0.0
        shapes = 1
        if "_output_shapes" in element.node.attrs:
            shapes = len(element.node.attrs.proto("_output_shapes").list.shape)
        for index in range(shapes):
            shape = model.shapes.of(element.node, index)
            dtype = describe.output_dtype(element.node, index)
            if shape is None or shape.dims is None or dtype is None:
                continue
            size = float(dtype.base.size or 0)
            for dim in shape.dims:
                size *= 1 if dim is None else dim
            total += size
        costs[element.name] = total
    return costs


def amount(value: float, unit: str) -> str:
    """A number with at most three figures and its unit: 1.23 MFLOP, 4.5 ms."""
    if unit == "µs" and value >= 1e3:
        value, unit = (value / 1e6, "s") if value >= 1e6 else (value / 1e3, "ms")
    for limit, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {letter}{unit}" if len(unit) == 1 else f"{value / limit:.3g} {letter} {unit}"
    return f"{value:.3g} {unit}"


def diff_fills(theme: Theme) -> dict[str, str]:
    """The fill of each kind of difference."""
    fills = (theme.added, theme.removed, theme.renamed, theme.changed, theme.same)
    return dict(zip(difference.KINDS, fills, strict=True))


def _by_diff(scene: Scene, theme: Theme, given: ColorInput) -> None:
    assert given.changes is not None
    changes, fills = given.changes, diff_fills(theme)
    kinds = [changes.kind(element.function, element.node.name) for element in scene.model.elements]
    shown = [kind for kind in fills if kind != difference.SAME]
    for box in _all_boxes(scene):
        counts = Counter(kinds[i] for i in box.members)
        total = sum(counts.values()) or 1
        box.fills = [(fills[name], counts[name] / total) for name in fills if counts[name]]
        if set(counts) == {difference.SAME}:
            continue
        lines: list[str] = []
        if box.element is None or len(box.members) > 1:
            lines.append(", ".join(f"{counts[n]} {n}" for n in shown if counts[n]))
        if box.element is not None and kinds[box.element.id] != difference.SAME:
            if len(box.members) == 1:
                lines.append(kinds[box.element.id])
            lines += changes.notes.get(difference.key(box.element.function, box.element.node.name), ())
        box.lines = lines + box.lines  # what changed comes first: a box shows only some lines
    totals = Counter(kinds)
    scene.legend += [
        ("fill", f"{name}: {totals[name]:,} node{'s' if totals[name] > 1 else ''}", fill)
        for name, fill in fills.items()
        if totals[name]
    ]


def _shape_legend(scene: Scene, theme: Theme) -> list[tuple[str, str, str]]:
    kinds = {box.kind for box in _all_boxes(scene)}
    rows: list[tuple[str, str, str]] = []
    for kind, text in (
        ("scope", "closed scope"), ("series", "series of like nodes"), ("function", "function"),
        ("section", "part of a long level"), ("variable", "variable"), ("aside", "not the model itself"),
    ):  # fmt: skip
        if kind in kinds:
            rows.append((kind, text, ""))
    arcs = {arc.kind for arc in scene.arcs}
    for kind, text, colour in (
        (LinkKind.DATA, "data", theme.data),
        (LinkKind.CONTROL, "control", theme.control),
        (LinkKind.REFERENCE, "reference or resource", theme.reference),
    ):
        if kind in arcs:
            rows.append((f"arc-{kind.name.lower()}", text, colour))
    if any(arc.transfer for arc in scene.arcs):
        rows.append(("arc-transfer", "sent to another part", theme.strong))
    if scene.thinned:
        rows.append(("note", f"{len(scene.thinned)} weaker edges are not drawn", ""))
    return rows


#: `--color` value -> painter
MODES: dict[str, Colouring] = {
    "op": _by_op,
    "device": _by_device,
    "partition": _by_partition,
    "dtype": _by_dtype,
    "cost": _by_cost,
    "memory": _by_memory,
    "structure": _by_structure,
    "diff": _by_diff,
}
