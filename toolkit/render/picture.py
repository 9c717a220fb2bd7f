"""One call from a graph to a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import UsageError, about_option, did_you_mean
from toolkit.graph.graph import Graph
from toolkit.render.absorb import absorb, absorb_passed_through, data_users
from toolkit.render.absorbed import Absorbed
from toolkit.render.auxiliary import move_aside
from toolkit.render.build import build_model
from toolkit.render.colors import ColorInput, check_mode, color_scene, find_mode
from toolkit.render.difference import SAME
from toolkit.render.dot import check_direction, to_dot
from toolkit.render.elements import Model, Scope
from toolkit.render.fold import Folding, fold
from toolkit.render.scene import Scene
from toolkit.render.scopes import lead_scopes, simplify
from toolkit.render.select import (
    emphasize,
    find,
    mark,
    neighbourhood,
    open_around,
    open_within_budget,
    paths_between,
    restrict,
)
from toolkit.render.themes import find_theme
from toolkit.render.visible import BOX_BUDGET, make_scene, open_to_budget, open_to_depth

if TYPE_CHECKING:
    from toolkit.render.tensors import Weights

FORMATS = ("svg", "png", "pdf", "dot", "html", "txt")
#: raster resolution: twice the nominal 72 points per inch, so that small text is sharp on screens of today
PNG_DPI = 144

_AUXILIARY = ("aside", "inline", "hide")


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """How a graph is drawn.

    Attributes:
        depth: levels of scopes to open; None opens as many as stay readable.
        auxiliary: "aside" moves savers, gradients and the like to the side, "inline" leaves them, "hide" drops them.
        fold: fold series of like nodes and divide long levels.
        color: one of `toolkit.render.colors.MODES`.
        theme: one of `toolkit.render.themes.THEMES`.
        direction: TB, LR or auto.
        legend: explain colours, boxes and edges in the picture.
        functions: put the bodies of functions where they are called.
        focus, hops: draw only what is at most that many edges from a node or scope.
        highlight: two nodes or scopes; what is on a path from the first to the second stands out.
    """

    depth: int | None = None
    auxiliary: str = "aside"
    fold: bool = True
    color: str = "op"
    theme: str = "light"
    direction: str = "auto"
    legend: bool = True
    functions: bool = True
    focus: str | None = None
    hops: int = 2
    highlight: tuple[str, str] | None = None


@dataclass(slots=True)
class Arranged:
    """A model made ready to look at: small parts absorbed, auxiliary parts aside, long levels folded.

    Attributes:
        folding: folds levels that are looked into, where that is left to whoever does; else None.
    """

    model: Model
    absorbed: Absorbed
    aside: Scope | None
    folding: Folding | None = None


def check_options(options: PictureOptions) -> None:
    """Make sure that the choices exist, before a graph is read; errors name the option.

    Raises:
        UsageError: one does not.
    """
    with about_option("--auxiliary"):
        _check_auxiliary(options.auxiliary)
    with about_option("--theme"):
        find_theme(options.theme)
    with about_option("--direction"):
        check_direction(options.direction)
    with about_option("--color"):
        find_mode(options.color)


def _check_auxiliary(auxiliary: str) -> None:
    if auxiliary not in _AUXILIARY:
        hint = did_you_mean(auxiliary, _AUXILIARY, then=f"expected {', '.join(_AUXILIARY)}")
        raise UsageError(f"'{auxiliary}' is no way to treat auxiliary nodes{hint}")


def arrange(model: Model, *, auxiliary: str = "aside", folding: bool = True, is_late: bool = False) -> Arranged:
    """Make a model ready for `make_scene`; changes its scopes.

    Args:
        folding: whether long levels are folded.
        is_late: whether that is left to whoever looks into them (`Arranged.folding`).

    Raises:
        UsageError: `auxiliary` is not aside, inline or hide.
    """
    _check_auxiliary(auxiliary)
    lead_scopes(model)
    model.count_sizes()
    absorbed = Absorbed()
    if auxiliary != "inline":
        users = data_users(model)
        absorbed = absorb(model, users)
        absorb_passed_through(model, absorbed, users)
        del users  # of a large graph they are much
    aside = move_aside(model) if auxiliary != "inline" else None
    simplify(model)
    if folding and is_late:
        return Arranged(model, absorbed, aside, Folding(model, model.root, absorbed.noted))
    if folding:
        fold(model, model.root, noted=absorbed.noted)
    model.count_sizes()
    return Arranged(model, absorbed, aside)


@dataclass(slots=True)
class PreparedPicture:
    """What `make_picture` starts from: an arranged model, the scopes to open, and what to emphasize."""

    ready: Arranged
    opened: set[str]
    focused: set[int]
    path: set[int] | None


def prepare(
    graphs: Graph | Mapping[str, Graph],
    title: str,
    options: PictureOptions,
    given: ColorInput | None = None,
    *,
    is_late: bool = False,
) -> PreparedPicture:
    """Build and arrange the model of a graph, or of the graphs of a partition by name.

    Args:
        is_late: levels are folded when they are looked into (`arrange`), and nodes of tables made so (`build_model`).

    Raises:
        UsageError: an option names something that does not exist.
    """
    model = build_model(graphs, title, functions=options.functions, tables=is_late)
    auxiliary, focused = options.auxiliary, set[int]()
    if options.focus is not None:
        with about_option("--focus"):
            near = neighbourhood(model, find(model, options.focus), options.hops)
        restrict(model, near)
        focused = set(find(model, options.focus))
        auxiliary = "inline" if len(near) <= BOX_BUDGET else auxiliary
    path: set[int] | None = None
    if options.highlight is not None:
        with about_option("--highlight"):
            path = paths_between(model, *options.highlight)
    ready = arrange(model, auxiliary=auxiliary, folding=options.fold, is_late=is_late)
    if options.depth is None:
        opened = open_to_budget(model.root, folding=ready.folding)
    else:
        opened = open_to_depth(model.root, options.depth, ready.folding)
    if options.focus is not None and options.depth is None:
        opened |= open_around(model, focused)
    if given is not None and given.changes is not None and options.color == "diff" and options.depth is None:
        changes = given.changes
        opened |= open_within_budget(
            model, [e.id for e in model.elements if changes.kind(e.function, e.node.name) != SAME]
        )
    return PreparedPicture(ready, opened, focused, path)


def make_picture(
    graphs: Graph | Mapping[str, Graph], title: str, options: PictureOptions, given: ColorInput | None = None
) -> Scene:
    """The coloured scene of a graph, or of the graphs of a partition by name.

    Raises:
        UsageError: an option names something that does not exist.
    """
    theme = find_theme(options.theme)
    # What is added up over the members of a box, and what is opened around nodes, takes all levels as they are drawn.
    is_late = options.color not in ("cost", "memory", "diff") and options.focus is None
    prepared = prepare(graphs, title, options, given, is_late=is_late)
    ready = prepared.ready
    scene = make_scene(ready.model, prepared.opened, ready.absorbed, ready.aside, ready.folding)
    if options.auxiliary == "hide":
        scene.asides = []
    color_scene(scene, options.color, theme, given)
    if prepared.path is not None:
        emphasize(scene, prepared.path)
    mark(scene, prepared.focused)
    return scene


def make_page(
    graphs: Graph | Mapping[str, Graph],
    title: str,
    options: PictureOptions,
    given: ColorInput | None = None,
    weights: Weights | None = None,
) -> bytes:
    """The self-contained HTML page of a graph, or of the graphs of a partition by name.

    Raises:
        UsageError: an option names something that does not exist.
    """
    from toolkit.render.html import to_html

    find_theme(options.theme)
    check_mode(options.color, given)
    prepared = prepare(graphs, title, options, given)
    ready = prepared.ready
    aside = ready.aside if options.auxiliary != "hide" else None
    return to_html(
        ready.model, ready.absorbed, aside, prepared.opened, mode=options.color, theme=options.theme, given=given,
        weights=weights, focused=prepared.focused, path=prepared.path,
    )  # fmt: skip


def draw(scene: Scene, format: str, options: PictureOptions) -> bytes:
    """A scene as the bytes of a file: svg, png, pdf, dot or txt.

    Raises:
        GraphmillError: Graphviz is missing or failed.
    """
    if format == "txt":
        from toolkit.render.text import to_text

        return to_text(scene).encode()
    source = to_dot(scene, find_theme(options.theme), direction=options.direction, legend=options.legend)
    if format == "dot":
        return source.encode()
    from toolkit.render.graphviz_tool import center_labels, lift_titles, run_dot

    data = run_dot(source, format, dpi=PNG_DPI if format == "png" else None)
    return lift_titles(center_labels(data.decode())).encode() if format == "svg" else data
