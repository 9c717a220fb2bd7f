"""Self-contained HTML pages: data, program and style in one file."""

from __future__ import annotations

import base64
import gzip
import html
import json
from importlib import resources
from typing import Any


def asset(name: str) -> str:
    """The text of a file of the `assets` folder."""
    return resources.files("toolkit.render").joinpath("assets", name).read_text(encoding="utf-8")


def script(*names: str) -> str:
    """The program of a page, of several files of the `assets` folder: what all pages begin with, then these, in order.

    They see each other's names, and nothing else on the page does.
    """
    return '"use strict";\n(() => {\n' + "\n".join(map(asset, ("page.js", *names))) + "})();\n"


def make(template: str, title: str, data: Any, **parts: str) -> bytes:
    """A page from a template of the `assets` folder.

    Args:
        data: what the page shows; JSON, compressed with gzip and written in base64.
        parts: other texts, by the name of their place in the template.
    """
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()
    encoded = base64.b64encode(gzip.compress(packed, 6, mtime=0)).decode()
    page = asset(template)
    for key, value in {**parts, "DATA": encoded, "TITLE": html.escape(title)}.items():
        page = page.replace("{{" + key + "}}", value)
    return page.encode()
