"""The HTML page: what is in it, and what it does in a real browser."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests import tolerance
from tests.patience import until
from tests.render.browser import Browser
from tests.render.graphs import FLOAT, add, large, perceptron, stack
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.bundle import open_checkpoint, save
from toolkit.graph.graph import Graph
from toolkit.render.colors import ColorInput
from toolkit.render.difference import Differences
from toolkit.render.picture import PictureOptions, make_page
from toolkit.render.tensors import Weights

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
    assert set(data["modes"]) == {"op", "device", "partition", "dtype", "cost", "structure"}
    assert all(p < n for n, p in enumerate(data["scopes"]["parent"]))
    matmul = data["elements"]["name"].index("layer1/MatMul")
    assert data["strings"][data["elements"]["shape"][matmul]] == "?×4"
    assert ["T", "float32"] in data["attrs"][matmul]


def test_like_scopes_have_one_structure() -> None:
    data = data_of(make_page(stack(4), "s", PictureOptions(fold=False)))
    of = dict(zip(data["scopes"]["path"], data["modes"]["structure"]["scopeOf"], strict=True))
    assert len({of[f"layer_{n}/"] for n in range(4)}) == 1 and of["layer_0/"] >= 0 and of[""] == -1
    assert data["modes"]["structure"]["keys"][of["layer_0/"]] == "4 × 2 nodes"


def test_statistics_of_constants_and_of_variables(tmp_path: Path) -> None:
    graph = perceptron()
    values = np.array([[1.5, -2, 0, np.nan], [np.inf, 0, 4, 1]], np.float32)
    const = graph.add("Const", "c", attrs={"dtype": FLOAT, "value": from_array(values)})
    add(graph, "Relu", "uses_c", const, T=FLOAT)
    kernel = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)
    save(str(tmp_path / "model"), {"layer1/kernel": kernel})
    weights = Weights(open_checkpoint(tmp_path / "model"))
    data = data_of(make_page(graph, "p", PictureOptions(), weights=weights))
    found = {data["elements"]["name"][int(i)]: dict(rows) for i, rows in data["tensors"].items()}
    assert found["c"] == {
        "elements": "8", "minimum": "-2", "maximum": "4", "mean": "0.75", "zeros": "2 (25.0%)", "NaN": "1 (12.5%)",
        "infinite": "1 (12.5%)",
    }  # fmt: skip
    of_kernel = found["layer1/kernel"]
    assert (of_kernel["elements"], of_kernel["minimum"], of_kernel["maximum"]) == ("32", "-1", "1")
    assert abs(float(of_kernel["mean"])) <= tolerance.gamma(1)  # of numbers up to 1, each rounded once
    assert "layer2/kernel" not in found, "the checkpoint does not have it"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    changes = Differences({"layer1/Relu": "changed"}, {"layer1/Relu": ("op Relu, was Tanh",)})
    given_ = ColorInput(changes=changes, memory={"y": 4096.0})
    (folder / "p.html").write_bytes(make_page(perceptron(), "p", PictureOptions(), given_))
    (folder / "stack.html").write_bytes(make_page(stack(12), "stack", PictureOptions()))
    (folder / "huge.html").write_bytes(make_page(large(100_000, 2000), "huge", PictureOptions()))
    traced_ = PictureOptions(highlight=("layer1/MatMul", "layer1/Relu"), focus=None)
    (folder / "path.html").write_bytes(make_page(perceptron(), "path", traced_))
    (folder / "focus.html").write_bytes(make_page(perceptron(), "focus", PictureOptions(focus="layer1/Relu")))
    keys = {"tensor_name": b"edge_1", "send_device": b"/job:ps", "recv_device": b"/job:worker"}
    one, two = Graph(), Graph()
    x = add(one, "Placeholder", "x", dtype=FLOAT)
    one.add("_Send", "x/send", [x], attrs={"T": FLOAT, **keys})
    got = two.add("_Recv", "x/recv", attrs={"tensor_type": FLOAT, **keys})
    add(two, "Relu", "y", got, T=FLOAT)
    parts = {"/job:ps": one, "/job:worker": two}
    (folder / "parts.html").write_bytes(make_page(parts, "parts", PictureOptions(color="partition")))
    big = perceptron()
    big.add("Const", "c", attrs={"dtype": FLOAT, "value": from_array(np.arange(100, dtype=np.float32))})
    add(big, "Relu", "uses_c", big.node("c"), T=FLOAT)
    (folder / "values.html").write_bytes(make_page(big, "values", PictureOptions(auxiliary="inline")))
    return folder


def set_value(browser: Browser, which: str, value: str) -> None:
    browser.js(f"(() => {{ const c = document.getElementById('{which}'); c.value = '{value}'; c.onchange(); }})()")


def fills(browser: Browser) -> dict[str, str]:
    return browser.js(
        "Object.fromEntries([...document.querySelectorAll('g.node[tabindex]')].map(g =>"
        " [g.ariaLabel, g.querySelector('path,polygon,ellipse').getAttribute('fill')]))"
    )


@browser_test
def test_parts_are_frames_joined_by_transfers(browser: Browser, pages: Path) -> None:
    browser.open(pages / "parts.html")
    titles = browser.js("[...document.querySelectorAll('g.titles text')].map(t => t.textContent)")
    assert [title for title in titles if title.startswith("/job")] == ["/job:ps", "/job:worker"]
    assert browser.js("document.querySelectorAll('g.edge.transfer').length") == 1
    assert "sent to another part" in browser.js("document.getElementById('legend').innerText")
    found = fills(browser)
    assert found["x, Placeholder"] != found["y, Relu"]


@browser_test
def test_structures_share_a_colour(browser: Browser, pages: Path) -> None:
    browser.open(pages / "stack.html")
    browser.js("document.querySelector('g.node[aria-expanded=false]').dispatchEvent(new Event('x'))")
    series = browser.js("[...document.querySelectorAll('g.node')].find(g => g.ariaLabel?.includes('series')).id")
    browser.click(f"#{series}", count=2)
    browser.wait("document.querySelectorAll('#canvas g.node[tabindex]').length > 10")
    set_value(browser, "color", "structure")
    layers = [colour for name, colour in fills(browser).items() if name.startswith("layer_")]
    assert len(layers) == 12 and set(layers) == {"#c5dcf7"}
    assert "12 × 2 nodes" in browser.js("document.getElementById('legend').innerText")


@browser_test
def test_values_in_the_details(browser: Browser, pages: Path) -> None:
    browser.open(pages / "values.html")
    browser.key("/")
    browser.type("uses_c")
    browser.key("Enter")
    browser.key("ArrowUp")
    browser.wait("document.querySelector('#details .name')?.textContent === 'c'")
    details = browser.js("document.getElementById('details').innerText")
    assert "Values" in details and "99" in details and "49.5" in details and "elements" in details


@browser_test
def test_what_the_command_line_highlights(browser: Browser, pages: Path) -> None:
    browser.open(pages / "path.html")
    hit = browser.js("[...document.querySelectorAll('g.node.hit')].map(g => g.ariaLabel)")
    assert hit == ["MatMul, MatMul", "Relu, Relu"]
    browser.open(pages / "focus.html")
    assert browser.js("document.querySelector('#details .name').textContent") == "layer1/Relu"


@browser_test
def test_everything_is_named_for_those_who_do_not_see_it(browser: Browser, pages: Path) -> None:
    browser.open(pages / "p.html")
    unnamed = browser.js(
        "[...document.querySelectorAll('button, input, select, g.node[tabindex]')].filter(e =>"
        " !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label'))).length"
    )
    assert unnamed == 0
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    buttons = [n for n in tree if n.get("role", {}).get("value") == "button" and not n.get("ignored")]
    assert len(buttons) >= 5 + len(labels(browser)) and all(n["name"]["value"] for n in buttons)
    for _ in range(12):  # Tab leads into the picture
        browser.key("Tab")
    assert browser.js("document.activeElement.matches('g.node')")


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
    set_value(browser, "color", "diff")
    found = fills(browser)
    assert found["x, Placeholder"] == "#f1f3f5"
    assert "#fbe7a8" in browser.js(
        "[...document.querySelectorAll('g.node')].map("
        "g => g.querySelector('path,polygon,ellipse')?.getAttribute('fill'))"
    )
    assert "changed" in browser.js("document.getElementById('legend').innerText")
    assert "op Relu, was Tanh" in browser.js("document.getElementById('canvas').textContent")
    set_value(browser, "color", "memory")
    assert "4.1 kB" in browser.js("document.getElementById('canvas').textContent")
    set_value(browser, "theme", "dark")
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


@browser_test
def test_search_by_pattern(browser: Browser, pages: Path) -> None:
    browser.open(pages / "stack.html")
    browser.key("/")
    browser.type("layer_(3|11)/t")
    browser.wait("document.querySelectorAll('#results li').length === 2")
    found = browser.js("[...document.querySelectorAll('#results li')].map(li => li.firstChild.textContent)")
    assert found == ["layer_3/Tanh", "layer_11/Tanh"]
    browser.js("document.getElementById('search').value = ''")
    browser.type("layer_(3")  # half typed
    browser.wait("document.querySelectorAll('#results li').length === 0")


@browser_test
def test_addresses_lead_to_nodes_and_scopes(browser: Browser, pages: Path) -> None:
    browser.open(pages / "stack.html", "#layer_7%2FTanh")
    name = "document.querySelector('#details .name')?.textContent"
    assert browser.js(name) == "layer_7/Tanh"
    browser.open(pages / "p.html", "#layer2")
    assert browser.js(name) == "layer2"
    browser.click(
        "#" + browser.js("[...document.querySelectorAll('g.node')].find(g => g.ariaLabel === 'y, Softmax').id")
    )
    assert browser.js("location.hash") == "#y"
    browser.open(pages / "p.html", "#nothing")
    assert browser.js(name) is None


@browser_test
def test_the_view_can_be_saved(browser: Browser, pages: Path, tmp_path: Path) -> None:
    browser.open(pages / "p.html")
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.click("#save")
    until((tmp_path / "p.svg").is_file, "the file in the downloads")
    root = ElementTree.fromstring((tmp_path / "p.svg").read_text())
    texts = ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("MatMul") == 2 and "layer1" in texts
