"""The HTML page: what is in it, and what it does in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.render.browser import Browser
from tests.render.graphs import large, perceptron, stack
from toolkit.render.colors import ColorInput
from toolkit.render.difference import Differences
from toolkit.render.picture import PictureOptions, make_page

browser_test = pytest.mark.browser


def data_of(page: bytes) -> dict[str, Any]:
    found = re.search(rb'<script id="data" type="text/plain">([^<]*)</script>', page)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_page_is_whole_and_asks_for_nothing() -> None:
    page = make_page(perceptron(), "a <title> & more", PictureOptions())
    text = page.decode()
    assert "{{" not in re.sub(r"<script id=\"layout\".*?</script>", "", text, flags=re.DOTALL)
    assert "<title>a &lt;title&gt; &amp; more</title>" in text
    assert "default-src 'none'" in text
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    assert page == make_page(perceptron(), "a <title> & more", PictureOptions())


def test_data_hold_every_element_and_link() -> None:
    graph = perceptron()
    data = data_of(make_page(graph, "p", PictureOptions()))
    assert sorted(data["elements"]["name"]) == sorted(node.name for node in graph)
    assert len(data["links"]["src"]) == sum(len(n.inputs) + len(n.control_inputs) for n in graph)
    assert set(data["modes"]) == {"op", "device", "partition", "dtype", "cost"}
    assert all(p < n for n, p in enumerate(data["scopes"]["parent"]))
    matmul = data["elements"]["name"].index("layer1/MatMul")
    assert data["strings"][data["elements"]["shape"][matmul]] == "?×4"
    assert ["T", "float32"] in data["attrs"][matmul]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    given_ = ColorInput(changes=Differences({"layer1/Relu": "changed"}))
    (folder / "p.html").write_bytes(make_page(perceptron(), "p", PictureOptions(), given_))
    (folder / "stack.html").write_bytes(make_page(stack(12), "stack", PictureOptions()))
    (folder / "huge.html").write_bytes(make_page(large(100_000, 2000), "huge", PictureOptions()))
    return folder


def labels(browser: Browser) -> list[str]:
    return browser.js(
        "[...document.querySelectorAll('#canvas g.node[tabindex]')].map(g => g.getAttribute('aria-label'))"
    )


@browser_test
def test_boxes_and_their_names(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")
    shown = labels(browser)
    assert "MatMul, MatMul" in shown and "x, Placeholder" in shown
    assert "kernel, closed variable, 3 nodes" in shown or "kernel, closed variable, 4 nodes" in shown
    assert browser.js("document.querySelectorAll('#canvas g.cluster').length") == 3


@browser_test
def test_search_goes_to_the_node_and_opens_its_scope(browser: Browser, pages: Path) -> None:
    browser.open(pages / "stack.html")
    assert not any("Tanh" in name for name in labels(browser))
    browser.key("/")
    browser.type("layer_7/tanh")
    browser.wait("document.querySelectorAll('#results li').length === 1")
    browser.key("Enter")
    browser.wait("document.querySelector('#details .name')?.textContent === 'layer_7/Tanh'")
    assert any(name == "Tanh, Tanh" for name in labels(browser))
    details = browser.js("document.getElementById('details').innerText")
    assert "Tanh" in details and "float32" in details and "layer_6/add:0" in details
    assert browser.js("document.activeElement.classList.contains('selected')")


@browser_test
def test_open_and_close_with_mouse_and_keys(browser: Browser, pages: Path) -> None:
    browser.open(pages / "stack.html")
    before = len(labels(browser))
    series = browser.js(
        "[...document.querySelectorAll('g.node')].find(g => g.getAttribute('aria-label')?.includes('series')).id"
    )
    browser.click(f"#{series}", count=2)
    browser.wait(f"document.querySelectorAll('#canvas g.node[tabindex]').length > {before}")
    assert len(labels(browser)) == before + 11
    browser.key("c")
    browser.wait(f"document.querySelectorAll('#canvas g.node[tabindex]').length === {before}")
    browser.key("Enter")
    browser.wait(f"document.querySelectorAll('#canvas g.node[tabindex]').length === {before + 11}")
    browser.click("#reset")
    browser.wait(f"document.querySelectorAll('#canvas g.node[tabindex]').length === {before}")


@browser_test
def test_arrow_keys_follow_edges(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")
    browser.click(
        "#" + browser.js("[...document.querySelectorAll('g.node')].find(g => g.ariaLabel === 'x, Placeholder').id")
    )
    browser.key("ArrowDown")
    browser.wait("document.querySelector('#details .name').textContent === 'layer1/MatMul'")
    browser.key("ArrowDown")
    browser.wait("document.querySelector('#details .name').textContent === 'layer1/Relu'")
    browser.key("ArrowUp")
    browser.wait("document.querySelector('#details .name').textContent === 'layer1/MatMul'")


@browser_test
def test_paths(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")

    def choose(label: str, number: int = 0) -> None:
        found = f"[...document.querySelectorAll('g.node')].filter(g => g.ariaLabel === '{label}')[{number}].id"
        browser.click("#" + browser.js(found))

    choose("Relu, Relu")
    browser.key("s")
    choose("y, Softmax")
    browser.key("t")
    browser.wait("document.querySelector('svg.traced') !== null")
    hit = browser.js("[...document.querySelectorAll('g.node.hit')].map(g => g.ariaLabel)")
    assert sorted(hit) == ["MatMul, MatMul", "Relu, Relu", "Relu, Relu", "y, Softmax"]
    browser.key("Escape")
    browser.wait("document.querySelector('svg.traced') === null")
    choose("x, Placeholder")
    browser.key("d")
    assert "nodes" in browser.js("document.getElementById('status').textContent")


@browser_test
def test_colours_themes_and_diff(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")
    browser.js("(() => { const c = document.getElementById('color'); c.value = 'diff'; c.onchange(); })()")
    fills = browser.js(
        "Object.fromEntries([...document.querySelectorAll('g.node[tabindex]')].map(g =>"
        " [g.ariaLabel, g.querySelector('path,polygon,ellipse').getAttribute('fill')]))"
    )
    assert fills["x, Placeholder"] == "#f1f3f5"
    assert "#fbe7a8" in browser.js(
        "[...document.querySelectorAll('g.node')].map("
        "g => g.querySelector('path,polygon,ellipse')?.getAttribute('fill'))"
    )
    assert "changed" in browser.js("document.getElementById('legend').innerText")
    browser.js("(() => { const t = document.getElementById('theme'); t.value = 'dark'; t.onchange(); })()")
    assert browser.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


@browser_test
def test_zoom_fit_and_map(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")
    transform = "document.getElementById('stage').getAttribute('transform')"
    first = browser.js(transform)
    browser.key("+")
    assert browser.js(transform) != first
    browser.key("0")
    assert browser.js(transform) == first
    assert browser.js("document.querySelector('#minimap rect.view') !== null")
    browser.click("#help-button")
    assert browser.js("!document.getElementById('help').hidden")


@browser_test
def test_a_hundred_thousand_nodes(browser: Browser, pages: Path) -> None:
    """Opens, and expands again and again. How fast, the page says itself: data-draw-ms on its body."""
    assert (pages / "huge.html").stat().st_size < 8_000_000
    browser.open(pages / "huge.html")
    before = browser.js("document.querySelectorAll('g.node').length")
    for _ in range(3):
        box = browser.js(
            "[...document.querySelectorAll('g.node')].find(g => g.getAttribute('aria-expanded') === 'false').id"
        )
        browser.js(f"document.getElementById('{box}').focus()")  # as the Tab key does
        browser.js("delete document.body.dataset.drawMs")
        browser.key("Enter")
        browser.wait("document.body.dataset.drawMs !== undefined")
        after = browser.js("document.querySelectorAll('g.node').length")
        assert after != before, "expanding a scope must change the picture"
        before = after
