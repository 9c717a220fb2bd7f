"""The HTML view in a real browser: how long a page of 100,000 nodes takes to open, and a scope in it to expand."""

from __future__ import annotations

from pathlib import Path

from tests.bench.measure import Row
from tests.render.browser import CHROMIUM, Browser

_CLOSED = "[...document.querySelectorAll('g.node')].find(g => g.getAttribute('aria-expanded') === 'false').id"
_EXPANDS = 5


def rows(page: Path, rounds: int) -> list[Row]:
    """Opening until the page says that it is ready; expanding by the key, as the page itself measures it."""
    if CHROMIUM is None:
        return []
    opened: list[float] = []
    expanded: list[float] = []
    with Browser() as browser:
        for _ in range(rounds):
            opened.append(browser.open(page))
            for _ in range(_EXPANDS):
                browser.js(f"document.getElementById({_CLOSED}).focus()")
                browser.js("delete document.body.dataset.drawMs")
                browser.key("Enter")
                browser.wait("document.body.dataset.drawMs !== undefined")
                expanded.append(int(browser.js("document.body.dataset.drawMs")) / 1e3)
    found: list[Row] = []
    for name, seconds, limit in (
        ("open a page of 100,000 nodes", opened, 3.0), ("expand a scope in that page", expanded, 0.3)
    ):  # fmt: skip
        median = sorted(seconds)[len(seconds) // 2]
        found.append(Row(name, "limit", "s", median, limit, median / limit, 1.0))
    return found
