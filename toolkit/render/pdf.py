"""PDF from the SVG that Graphviz writes, for Graphviz programs without a PDF writer of their own.

It knows the part of SVG that Graphviz uses: groups, polygons, polylines, paths of M, L, C and Z, ellipses and text.
Text is set in Helvetica, one of the fonts that every PDF reader has (ISO 32000-1, 9.6.2.2), so nothing is embedded;
characters outside Windows-1252 are written as a question mark.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from xml.etree import ElementTree

from toolkit.errors import GraphmillError

# Widths of Helvetica's characters 32 to 126 in thousandths of the size, from its published font metrics.
_WIDTHS = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
_NAMED = {"white": "#ffffff", "black": "#000000", "lightgrey": "#d3d3d3", "lightgray": "#d3d3d3"}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_PATH = re.compile(r"([MLCZz])([^MLCZz]*)")
_SVG = "{http://www.w3.org/2000/svg}"
# How far from the end the control points of a quarter circle lie, for a Bezier curve through it.
_QUARTER = 0.5523


def text_width(text: str, size: float) -> float:
    """The width of a text in Helvetica, in the unit of `size`; other characters count as wide as a digit."""
    return sum(_WIDTHS[ord(c) - 32] if 32 <= ord(c) < 127 else 556 for c in text) * size / 1000


def svg_to_pdf(svg: str) -> bytes:
    """A one-page PDF of a Graphviz SVG, of the same size in points.

    Raises:
        GraphmillError: it is no SVG with a viewBox.
    """
    try:
        root = ElementTree.fromstring(svg)
        _, _, width, height = map(float, (root.get("viewBox") or "").split())
    except (ElementTree.ParseError, ValueError):
        raise GraphmillError("the picture that Graphviz made is no SVG with a viewBox") from None
    content = [f"1 0 0 -1 0 {height:g} cm"]
    for element in root:
        content += _draw(element)
    stream = zlib.compress("\n".join(content).encode("latin-1"), 9)
    fonts = b" ".join(
        b"/%s << /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>" % (key, name)
        for key, name in ((b"F1", b"Helvetica"), (b"F2", b"Helvetica-Bold"))
    )
    page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:g} {height:g}] /Contents 4 0 R /Resources << /Font << "
    return _assemble(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page.encode() + fonts + b" >> >> >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    )


def _assemble(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for offset in offsets:
        out += b"%010d 00000 n \n" % offset
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def _draw(element: ElementTree.Element) -> Iterator[str]:
    tag = element.tag.removeprefix(_SVG)
    if tag in ("g", "a", "svg"):
        shift = re.search(r"translate\(([^)]*)\)", element.get("transform", ""))
        yield "q"
        if shift:
            x, y = map(float, _NUMBER.findall(shift[1]))
            yield f"1 0 0 1 {x:g} {y:g} cm"
        for child in element:
            yield from _draw(child)
        yield "Q"
    elif tag in ("polygon", "polyline", "path", "ellipse"):
        yield from _paint(element, tag)
    elif tag == "text":
        yield from _text(element)


def _paint(element: ElementTree.Element, tag: str) -> Iterator[str]:
    fill, stroke = _colour(element.get("fill", "black")), _colour(element.get("stroke", "none"))
    if fill is None and stroke is None:
        return
    yield "q"
    if fill is not None:
        yield f"{fill} rg"
    if stroke is not None:
        yield f"{stroke} RG {element.get('stroke-width', '1')} w"
        dashes = element.get("stroke-dasharray")
        if dashes:
            yield f"[{' '.join(_NUMBER.findall(dashes))}] 0 d"
    if tag == "path":
        yield from _path(element.get("d", ""))
    elif tag == "ellipse":
        yield from _ellipse(*(float(element.get(k, "0")) for k in ("cx", "cy", "rx", "ry")))
    else:
        numbers = _NUMBER.findall(element.get("points", ""))
        for n in range(0, len(numbers) - 1, 2):
            yield f"{numbers[n]} {numbers[n + 1]} {'l' if n else 'm'}"
    closed = "" if tag == "polyline" or (tag == "path" and fill is None) else "h "
    yield closed + ("S" if fill is None else "f" if stroke is None else "B")
    yield "Q"


def _path(d: str) -> Iterator[str]:
    for command, rest in _PATH.findall(d):
        numbers = _NUMBER.findall(rest)
        if command in "Zz":
            yield "h"
        elif command == "C":
            for n in range(0, len(numbers) - 5, 6):
                yield " ".join(numbers[n : n + 6]) + " c"
        else:
            for n in range(0, len(numbers) - 1, 2):
                yield f"{numbers[n]} {numbers[n + 1]} {'m' if command == 'M' and n == 0 else 'l'}"


def _ellipse(cx: float, cy: float, rx: float, ry: float) -> Iterator[str]:
    kx, ky = rx * _QUARTER, ry * _QUARTER
    yield f"{cx + rx:g} {cy:g} m"
    for x1, y1, x2, y2, x, y in (
        (rx, ky, kx, ry, 0, ry), (-kx, ry, -rx, ky, -rx, 0), (-rx, -ky, -kx, -ry, 0, -ry), (kx, -ry, rx, -ky, rx, 0),
    ):  # fmt: skip
        yield f"{cx + x1:g} {cy + y1:g} {cx + x2:g} {cy + y2:g} {cx + x:g} {cy + y:g} c"


def _text(element: ElementTree.Element) -> Iterator[str]:
    text = "".join(element.itertext())
    size = float(element.get("font-size", "14"))
    x, y = float(element.get("x", "0")), float(element.get("y", "0"))
    anchor = element.get("text-anchor", "start")
    x -= text_width(text, size) * {"middle": 0.5, "end": 1.0}.get(anchor, 0.0)
    font = "F2" if element.get("font-weight") == "bold" else "F1"
    data = text.encode("cp1252", "replace").decode("latin-1")
    data = re.sub(r"([\\()])", r"\\\1", data)
    # The page is upside down (SVG's y grows downwards), so text is turned back up.
    ink = _colour(element.get("fill", "black")) or "0 0 0"
    yield f"BT {ink} rg /{font} {size:g} Tf 1 0 0 -1 {x:g} {y:g} Tm ({data}) Tj ET"


def _colour(value: str) -> str | None:
    value = _NAMED.get(value, value)
    match = re.fullmatch(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})(?:[0-9a-f]{2})?", value, re.IGNORECASE)
    if match is None:
        return None
    return " ".join(f"{int(part, 16) / 255:.3g}" for part in match.groups())
