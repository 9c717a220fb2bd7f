"""Colours. A theme is a table; nothing else decides what anything looks like.

Box fills are tints with a lightness so high (dark theme: so low) that text on every one of them has a contrast of
at least 7:1, the enhanced level of WCAG 2.2; a test computes it. Categories differ in hue and, in the
colour-blind safe theme, follow the eight colours of Okabe and Ito (Color Universal Design, 2008), which stay
apart under protanopia, deuteranopia and tritanopia. The print theme needs no colour at all: kinds of boxes differ
in shape and border, kinds of edges in line style, and its greys only support that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Theme:
    """Attributes:
    ink, muted: text; muted is for the second line.
    clusters: fills of open scopes by depth, taken in turn.
    data, control, reference: arcs.
    categories: fill by category of op (`describe.CATEGORIES`).
    distinct: fills for things without an order (devices, types, parts).
    scale: fills from low to high for amounts.
    added, removed, renamed, changed, same: fills of a diff.
    """

    background: str
    ink: str
    muted: str
    border: str
    clusters: tuple[str, ...]
    cluster_border: str
    scope: str
    data: str
    control: str
    reference: str
    strong: str
    categories: Mapping[str, str]
    distinct: tuple[str, ...]
    scale: tuple[str, ...]
    added: str
    removed: str
    renamed: str
    changed: str
    same: str


def _categories(*fills: str) -> dict[str, str]:
    from toolkit.render.describe import CATEGORIES

    return dict(zip(CATEGORIES, fills, strict=True))


def _light() -> Theme:
    return Theme(
        background="#ffffff", ink="#1b1f24", muted="#3c434b", border="#7b8794",
        clusters=("#f6f8fa", "#eceff3"), cluster_border="#b4bec9", scope="#e3e8ee",
        data="#5b6672", control="#8a94a0", reference="#b8651b", strong="#c2185b",
        categories=_categories(
            "#ffffff", "#fde4bd", "#f3f0e6", "#c5dcf7", "#cdebc9", "#d5e9ea", "#e9e9ee", "#e6e1f5",
            "#f7d9e8", "#f9d2c4", "#f5f0b8", "#d9d4f7", "#dfd3c3", "#ddd6ee", "#ffb3ad",
        ),
        distinct=("#c5dcf7", "#fde4bd", "#cdebc9", "#f7d0d5", "#ddd6ee", "#dfd3c3", "#f5f0b8", "#cfeeee", "#e3e3e3"),
        scale=("#fff7ec", "#fee8c8", "#fdd49e", "#fdbb84", "#fc9d6b"),
        added="#c3e8c6", removed="#f7c6c5", renamed="#d3d9fb", changed="#fbe7a8", same="#f1f3f5",
    )  # fmt: skip


def _dark() -> Theme:
    return Theme(
        background="#14181d", ink="#f1f4f7", muted="#cfd6de", border="#76828f",
        clusters=("#1d232a", "#252c35"), cluster_border="#4a5562", scope="#303944",
        data="#9fabb8", control="#738091", reference="#e0a15e", strong="#ff6f9f",
        categories=_categories(
            "#14181d", "#543b10", "#3a3729", "#173d66", "#1d4a22", "#174448", "#33363e", "#3a3157",
            "#57233f", "#5c2a1b", "#464206", "#322b6b", "#453721", "#3d3059", "#702420",
        ),
        distinct=("#173d66", "#543b10", "#1d4a22", "#5b2330", "#3d3059", "#453721", "#464206", "#174448", "#3c4046"),
        scale=("#26221c", "#3d2c15", "#54350f", "#6a3a0b", "#7a3608"),
        added="#1d4a22", removed="#632623", renamed="#2b3470", changed="#574708", same="#2a3038",
    )  # fmt: skip


def _print() -> Theme:
    white, grey = "#ffffff", "#ececec"
    return Theme(
        background=white, ink="#000000", muted="#333333", border="#000000",
        clusters=(white, "#f7f7f7"), cluster_border="#555555", scope=grey,
        data="#000000", control="#000000", reference="#000000", strong="#000000",
        categories=_categories(
            white, "#e0e0e0", white, "#cfcfcf", white, white, white, white, grey, "#e0e0e0", grey, grey, white, grey,
            white,
        ),
        distinct=("#ffffff", "#e4e4e4", "#cccccc", "#f2f2f2", "#d8d8d8", "#c0c0c0"),
        scale=("#ffffff", "#eeeeee", "#dddddd", "#cccccc", "#bbbbbb"),
        added="#cccccc", removed="#ffffff", renamed="#f4f4f4", changed="#e4e4e4", same="#ffffff",
    )  # fmt: skip


def _safe() -> Theme:
    # Okabe-Ito, lightened so that black text reads: orange, sky blue, bluish green, yellow, blue, vermillion,
    # reddish purple, grey.
    orange, sky, green, yellow = "#f3c777", "#a9d9f4", "#8fd3bd", "#f7f0a0"
    blue, vermillion, purple, grey = "#8fbfe3", "#efaf86", "#e2bcd2", "#e3e3e3"
    return Theme(
        background="#ffffff", ink="#000000", muted="#30343a", border="#5c6670",
        clusters=("#f7f7f7", "#ededed"), cluster_border="#a8a8a8", scope="#e3e3e3",
        data="#444444", control="#0072b2", reference="#d55e00", strong="#d55e00",
        categories=_categories(
            "#ffffff", orange, "#f4f4f4", blue, green, sky, grey, "#eef3f7", purple, vermillion, yellow, sky, orange,
            purple, vermillion,
        ),
        distinct=(sky, orange, green, purple, yellow, blue, vermillion, grey),
        scale=("#f7fbff", "#d6e6f4", "#abcfe6", "#8fbfe3", "#79b0dc"),
        added=sky, removed=orange, renamed=purple, changed=yellow, same="#f4f4f4",
    )  # fmt: skip


THEMES = {"light": _light, "dark": _dark, "print": _print, "colorblind": _safe}


def find_theme(name: str) -> Theme:
    """The theme of that name.

    Raises:
        UsageError: there is none; the names are listed.
    """
    try:
        return THEMES[name]()
    except KeyError:
        hint = did_you_mean(name, THEMES, then=f"expected {', '.join(THEMES)}")
        raise UsageError(f"there is no theme '{name}'{hint}") from None
