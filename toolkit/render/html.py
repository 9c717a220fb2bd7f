"""One HTML file that shows a graph without a network: data, layout engine and program are all inside.

The data are columns (one list per attribute), JSON, compressed with gzip and written in base64, so that a graph of
100,000 nodes stays small and is read in one go. What `assets/viewer` reads:

| key | content |
|---|---|
| strings | all texts but names, each once; columns hold their positions |
| elements | name, label (length of the visible end of the name), scope, op, kind, lines, device, dtype, shape |
| scopes | parent (-1: a root), label, kind, lines, detail, path, lead, size; parents come before children |
| links | src, dst, kind, out, shape |
| host, noted | see `toolkit.render.absorb.Absorbed` |
| modes | per colouring: keys, the key of each element, fills by theme; amounts for cost |
| attrs | attributes of each element, for graphs of at most `MOST_WITH_ATTRS` nodes |
| tensors | statistics of constants and variables, by element |
| focused, path | what is selected and what stands out at first |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape
from toolkit.render import colors, describe, difference, page
from toolkit.render.absorbed import Absorbed
from toolkit.render.boxes import BoxMaker, scope_label
from toolkit.render.colors import ColorInput
from toolkit.render.elements import Element, Model, Scope, relative_name
from toolkit.render.tensors import Weights, tensor_rows
from toolkit.render.themes import THEMES, find_theme

#: with more nodes than this, attributes are left out of the page; shapes are those the file gives
MOST_WITH_ATTRS = 20_000
_LONG_ATTRIBUTE = 200
_MOST_STRUCTURES = 12  # in the legend
#: what the page's program is put together of; the last file starts it
_PROGRAM = ("data", "scene", "looks", "dot", "drawing", "selection", "details", "search", "events", "start")


def to_html(
    model: Model,
    absorbed: Absorbed,
    aside: Scope | None,
    opened: set[str],
    *,
    mode: str = "op",
    theme: str = "light",
    given: ColorInput | None = None,
    weights: Weights | None = None,
    focused: Iterable[int] = (),
    path: Iterable[int] | None = None,
) -> bytes:
    """The page of an arranged model.

    Args:
        opened: paths of the scopes that are open at first.
        mode, theme: what the page starts with; the reader can change both.
        weights: the values of variables, for the details.
        focused: elements of which the first is selected at first.
        path: elements that stand out at first.
    """
    data = page_data(model, absorbed, aside, opened, mode=mode, theme=theme, given=given or ColorInput())
    data["tensors"] = tensor_rows(model, weights)
    data["focused"] = min(focused, default=-1)
    data["path"] = None if path is None else sorted(path)
    return page.make(
        "viewer.html", model.title, data, CSS=page.asset("viewer.css"), GRAPHVIZ=page.asset("graphviz.js"),
        JS=page.script(*(f"viewer/{name}.js" for name in _PROGRAM)),
    )  # fmt: skip


class _Strings:
    """Texts by position, each kept once."""

    def __init__(self) -> None:
        self.all: list[str] = [""]
        self._positions: dict[str, int] = {"": 0}

    def put(self, text: str) -> int:
        position = self._positions.get(text)
        if position is None:
            position = self._positions[text] = len(self.all)
            self.all.append(text)
        return position


def page_data(
    model: Model,
    absorbed: Absorbed,
    aside: Scope | None,
    opened: set[str],
    *,
    mode: str,
    theme: str,
    given: ColorInput,
) -> dict[str, Any]:
    """The data of a page; see the module's table."""
    strings = _Strings()
    maker = BoxMaker(model, opened, absorbed)
    scopes = list(model.root.walk())
    aside_root = -1
    if aside is not None and aside.scopes:
        aside_root = len(scopes)
        scopes += aside.walk()
    position = {id(scope): n for n, scope in enumerate(scopes)}
    small = len(model.elements) <= MOST_WITH_ATTRS
    # An absorbed element may be in a scope that was left out; its host's scope is where it is shown.
    home = [
        position.get(id(model.homes[absorbed.host.get(i, i)]), 0) for i in range(len(model.homes))
    ]  # fmt: skip
    return {
        "title": model.title,
        "strings": strings.all,
        "elements": _element_columns(model, maker, strings, home),
        "scopes": _scope_columns(maker, scopes, position, strings),
        "links": _link_columns(model, strings, small),
        "host": [list(absorbed.host), list(absorbed.host.values())],
        "noted": sorted(absorbed.noted),
        "opened": [n for n, scope in enumerate(scopes) if scope.path in opened],
        "asideRoot": aside_root,
        "modes": {**_modes(model, absorbed.host, given), "structure": _structures(model, scopes)},
        "mode": mode,
        "theme": theme,
        "themes": {name: asdict(find_theme(name)) for name in THEMES},
        "attrs": [_attributes(element) for element in model.elements] if small else None,
    }


def _element_columns(model: Model, maker: BoxMaker, strings: _Strings, home: list[int]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        k: [] for k in ("name", "label", "scope", "op", "kind", "lines", "device", "dtype", "shape")
    }
    for element in model.elements:
        box = maker.element_box(element, element.scope)
        label = box.label if element.name.endswith(box.label) else relative_name(element.name, element.scope)
        dtype = colors.dtype_key(element)
        values = (
            element.name,
            len(label) if element.name.endswith(label) else len(element.name),
            home[element.id],
            strings.put(element.op),
            strings.put(box.kind),
            strings.put("\n".join(box.lines)),
            strings.put(element.device),
            strings.put("" if dtype == colors.NONE else dtype),
            strings.put(describe.shape_text(model.shapes.of(element.node, 0))),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns


def _scope_columns(
    maker: BoxMaker, scopes: list[Scope], position: dict[int, int], strings: _Strings
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        k: [] for k in ("parent", "label", "kind", "lines", "detail", "path", "lead", "size")
    }
    for scope in scopes:
        members = list(scope.all_elements())
        values = (
            position.get(id(scope.parent), -1) if scope.parent is not None else -1,
            strings.put(scope_label(scope)),
            strings.put(scope.kind),
            strings.put("\n".join(maker.scope_lines(scope, scope.kind, members))),
            strings.put(scope.detail),
            scope.path,
            -1 if scope.lead is None else scope.lead,
            len(members),
        )
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns


def _link_columns(model: Model, strings: _Strings, small: bool) -> dict[str, list[int]]:
    shapes: dict[tuple[int, int], int] = {}
    columns: dict[str, list[int]] = {k: [] for k in ("src", "dst", "kind", "out", "shape")}
    for link in model.links:
        key = (link.src, max(link.src_output, 0))
        if key not in shapes:
            node = model.elements[link.src].node
            text = describe.flow_text(model.shapes, node, key[1]) if small else ""
            shapes[key] = strings.put(
                text or describe.shape_text(None if small else describe.output_shape(node, key[1]))
            )
        values = (link.src, link.dst, int(link.kind), link.src_output, shapes[key])
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    return columns


def _modes(model: Model, hosted: Collection[int], given: ColorInput) -> dict[str, dict[str, Any]]:
    """Every colouring that the page offers."""
    modes: dict[str, dict[str, Any]] = {}
    themes = {name: find_theme(name) for name in THEMES}
    categories = describe.CATEGORIES
    modes["op"] = _keyed(
        model, hosted, colors.op_key, categories, {n: [t.categories[c] for c in categories] for n, t in themes.items()}
    )
    modes["op"]["plain"] = True
    keys: dict[str, Callable[[Element], str]] = {
        "device": colors.device_key, "partition": colors.partition_key, "dtype": colors.dtype_key,
    }  # fmt: skip
    for name, key in keys.items():
        found = sorted({key(e) for e in model.elements} - {colors.NONE})
        names = [*found, colors.NONE]
        fills = {
            n: [*(t.distinct[k % len(t.distinct)] for k in range(len(found))), t.background] for n, t in themes.items()
        }
        modes[name] = _keyed(model, hosted, key, names, fills)
        modes[name]["none"] = len(found)
    if given.changes is not None:
        changes = given.changes
        fills = {n: list(colors.diff_fills(t).values()) for n, t in themes.items()}
        modes["diff"] = _keyed(model, hosted, lambda e: changes.kind(e.function, e.node.name), difference.KINDS, fills)
        modes["diff"]["notes"] = {
            e.id: notes for e in model.elements if (notes := changes.notes.get(difference.key(e.function, e.node.name)))
        }
    costs, unit = given.costs, given.cost_unit
    if costs is None:
        costs, unit = colors.static_costs(model), colors.STATIC_COST
    modes["cost"] = _measured(model, costs, unit)
    if given.memory:
        modes["memory"] = _measured(model, given.memory, colors.MEMORY_UNIT)
    return modes


def _structures(model: Model, scopes: Sequence[Scope]) -> dict[str, Any]:
    """Scopes with the same ops in the same number share a colour, as in TensorBoard; what occurs once has none.

    `scopeOf` holds the position of each scope's colour, -1 for none; the most frequent structures come first.
    """
    ops: dict[int, Counter[str]] = {}
    for scope in reversed(scopes):
        found = Counter(model.ops[i] for i in scope.elements)
        for inner in scope.scopes:
            found.update(ops[id(inner)])
        ops[id(scope)] = found
    shapes = [hash(frozenset(ops[id(scope)].items())) for scope in scopes]
    # A scope with one other in it has the same ops as that one; it counts once.
    alone = [s.parent is not None and len(s.parent.scopes) == 1 and not s.parent.elements for s in scopes]
    sizes = {shape: scope.size for shape, scope in zip(shapes, scopes, strict=True)}
    counts = Counter(shape for shape, inner in zip(shapes, alone, strict=True) if not inner)
    repeated = [shape for shape, n in counts.most_common() if n > 1 and sizes[shape] > 1]
    position = {shape: n for n, shape in enumerate(repeated)}
    themes = {name: find_theme(name) for name in THEMES}
    return {
        "keys": [f"{counts[s]} × {sizes[s]} nodes" for s in repeated],
        "used": [int(n < _MOST_STRUCTURES) for n in range(len(repeated))],
        "of": [], "scopeOf": [position.get(shape, -1) for shape in shapes],
        "fills": {n: [t.distinct[k % len(t.distinct)] for k in range(len(repeated))] for n, t in themes.items()},
    }  # fmt: skip


def _measured(model: Model, costs: Mapping[str, float], unit: str) -> dict[str, Any]:
    themes = {name: find_theme(name) for name in THEMES}
    amounts = [costs.get(name, 0.0) for name in model.names]
    top = max(amounts, default=0.0)
    steps = len(themes["light"].scale)
    return {
        "keys": [], "used": [], "unit": unit, "top": top, "amount": amounts,
        "of": [int((a / top) ** 0.5 * (steps - 1) + 0.5) if top else 0 for a in amounts],
        "fills": {n: list(t.scale) for n, t in themes.items()},
    }  # fmt: skip


def _keyed(
    model: Model,
    hosted: Collection[int],
    key: Callable[[Element], str],
    names: Sequence[str],
    fills: dict[str, list[str]],
) -> dict[str, Any]:
    position = {name: n for n, name in enumerate(names)}
    of = [position[key(element)] for element in model.elements]
    used = {of[i] for i in range(len(model.homes)) if i not in hosted}
    return {"keys": list(names), "of": of, "used": [int(n in used) for n in range(len(names))], "fills": fills}


def _attributes(element: Element) -> list[tuple[str, str]]:
    """The attributes of a node as short texts."""
    node = element.node
    found: list[tuple[str, str]] = []
    for name in sorted(node.attrs):
        if name in ("_output_shapes", "value"):
            continue
        try:
            text = _attribute_text(node.attrs[name])
        except GraphmillError:
            text = "(damaged)"
        found.append((name, text if len(text) <= _LONG_ATTRIBUTE else text[: _LONG_ATTRIBUTE - 1] + "…"))
    if "value" in node.attrs:
        found.append(("value", describe.constant_text(node)))
    return found


def _attribute_text(value: Any) -> str:
    match value:
        case bytes():
            return value.decode("utf-8", "replace")
        case DType() | Shape():
            return str(value)
        case list():
            items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
            return "[" + ", ".join(map(_attribute_text, items[:20])) + (", …]" if len(items) > 20 else "]")
        case float():
            return f"{value:.6g}"
        case None | bool() | int() | str():
            return str(value)
        case _:
            return getattr(value, "name", None) or type(value).__name__
