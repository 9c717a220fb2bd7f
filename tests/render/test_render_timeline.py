"""Timelines: traces that TensorFlow and graphmill wrote, as text, SVG, PDF and HTML."""

from __future__ import annotations

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.main import run
from tests import tolerance
from tests.render.browser import Browser
from tests.render.graphs import perceptron
from toolkit.errors import FormatError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.formats.records.timeline import Span, Trace, read_trace
from toolkit.formats.records.traces import is_trace
from toolkit.render import colors
from toolkit.render.overlays import read_costs
from toolkit.render.themes import THEMES, find_theme
from toolkit.render.timeline.html import page_data, to_html
from toolkit.render.timeline.lanes import bytes_text, colours_of, lanes_of, ticks, time_text, totals_of
from toolkit.render.timeline.svg import WIDTH, to_svg
from toolkit.render.timeline.text import to_text

SVG = "{http://www.w3.org/2000/svg}"


def made_up() -> Trace:
    """Two devices, three threads, overlaps, a very short span."""
    spans = [
        Span("net/conv", "Conv2D", "/device:CPU:0", "1", 0, 400, 4096),
        Span("net/relu", "Relu", "/device:CPU:0", "1", 400, 100, 4096),
        Span("net/pool", "MaxPool", "/device:CPU:0", "2", 410, 300, 1024, ("inputs: net/relu",)),
        Span("net/side", "Relu", "/device:CPU:0", "2", 500, 100),
        Span("send", "_Send", "/device:CPU:1", "main", 700, 0.01),
        Span('a<b>&"c"', "MatMul", "/device:CPU:1", "main", 720, 280, 64),
    ]
    return Trace("made up", spans)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["step.pb", "stats.pb", "step.json", "step.json.gz"])
def test_every_node_that_tensorflow_measured(traced: tuple[Path, Any], name: str) -> None:
    folder, metadata = traced
    path = folder / name
    assert is_trace(path.read_bytes()[:4096])
    trace = read_trace(str(path))
    measured = [node for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert sorted(span.name for span in trace.spans) == sorted(node.node_name for node in measured)
    ops = {node.name: node.op for graph in metadata.partition_graphs for node in graph.node}
    found = {span.name: span.op for span in trace.spans if span.name in ops}  # not _SOURCE, which no graph holds
    assert found == {name: ops[name] for name in found} and len(found) > 3
    if name.endswith(".pb"):
        starts = [node.all_start_nanos + node.op_start_rel_nanos for node in measured]
        for node, start in zip(measured, starts, strict=True):
            (span,) = [span for span in trace.spans if span.name == node.node_name]
            assert span.duration == (node.op_end_rel_nanos - node.op_start_rel_nanos) / 1e3
            assert span.start == (start - min(starts)) / 1e3, "to the nanosecond"
        assert max(trace.memory().values()) >= 32 * 64 * 4


@pytest.mark.tensorflow
def test_pictures_of_tensorflows_own_trace(traced: tuple[Path, Any], tmp_path: Path) -> None:
    folder, _ = traced
    for suffix, magic in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE html>"), ("txt", b"step.pb: ")):
        out = tmp_path / f"t.{suffix}"
        assert run(["visualize", str(folder / "step.pb"), "-o", str(out)]) == 0
        assert out.read_bytes().startswith(magic)
        assert suffix != "svg" or b"<title>layer" in out.read_bytes()


@pytest.mark.tensorflow
def test_time_and_memory_over_the_graph(
    traced: tuple[Path, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same trace coloured onto the graph it came from; boxes say what they took."""
    folder, _ = traced
    common = [str(folder / "graph.pb"), "--costs", str(folder / "step.pb"), "--auxiliary", "inline", "-o", "-"]
    assert run(["visualize", *common]) == 0
    time = capfd.readouterr().out
    assert run(["visualize", *common, "--color", "memory"]) == 0
    memory = capfd.readouterr().out
    costs = read_costs(str(folder / "step.pb"))
    drawn = {n for n in costs.values if f'"{n}" [label=' in time}
    slowest, largest = max(drawn, key=lambda n: costs.values[n]), max(drawn, key=lambda n: costs.memory.get(n, 0))
    assert costs.unit == "µs" and colors.amount(costs.values[slowest], "µs") in time
    assert colors.amount(costs.memory[largest], "B") in memory and "µs" not in memory


def test_what_run_writes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Both forms of `graphmill run --trace` tell the same of a step."""
    graph = perceptron()
    graph.remove([node for node in graph.nodes if node.name.startswith(("init", "layer2")) or node.name == "y"])
    model = tmp_path / "p.pb"
    write_model(from_graph(graph), model)
    feeds = [
        "--feed",
        "x=" + json.dumps([[1.0] * 8] * 3),
        "--feed",
        "layer1/kernel/read=" + json.dumps([[0.5] * 4] * 8),
    ]
    traces: list[Trace] = []
    for suffix in ("json", "pb"):
        out = tmp_path / f"trace.{suffix}"
        assert run(["run", str(model), *feeds, "--fetch", "layer1/Relu", "--trace", str(out)]) == 0
        traces.append(read_trace(str(out)))
    capfd.readouterr()
    for trace in traces:
        ops = {span.name: span.op for span in trace.spans}
        assert (ops["layer1/MatMul"], ops["layer1/Relu"]) == ("MatMul", "Relu")
        assert trace.memory()["layer1/MatMul"] == 3 * 4 * 4
    assert run(["visualize", str(tmp_path / "trace.json"), "-o", str(tmp_path / "t.txt")]) == 0
    assert re.search(r"^MatMul +1 ", (tmp_path / "t.txt").read_text(), re.MULTILINE)


def test_graphs_are_no_traces(tmp_path: Path) -> None:
    model = from_graph(perceptron())
    for suffix in ("pb", "pbtxt", "json", "meta"):
        write_model(model, tmp_path / f"p.{suffix}")
        assert not is_trace((tmp_path / f"p.{suffix}").read_bytes()[:4096])
    assert not is_trace(b"") and not is_trace(b"\n\n\n") and not is_trace(b"\x1f\x8bxx")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 100), st.floats(0, 30)), min_size=1, max_size=40))
def test_spans_of_a_row_do_not_overlap(raw: list[tuple[str, float, float]]) -> None:
    spans = sorted((Span("n", "Op", "d", t, a, d) for t, a, d in raw), key=lambda s: (s.start, -s.duration))
    lanes = lanes_of(Trace("t", spans))
    assert sorted(id(s) for lane in lanes for row in lane.rows for s in row) == sorted(map(id, spans))
    for lane in lanes:
        for row in lane.rows:
            for a, b in pairwise(row):
                assert a.start + a.duration <= b.start
        assert 0 <= lane.busy <= 130
        points = sorted({s.start for row in lane.rows for s in row})
        most = max(sum(s.start <= p < s.start + s.duration for row in lane.rows for s in row) for p in points)
        assert len(lane.rows) >= most
        # Spans of no length need a row only when one is busy at their start.
        assert len(lane.rows) <= max(1, most + 1)


def test_totals_and_colours() -> None:
    totals = totals_of(made_up().spans)
    assert [(t.op, t.count, t.microseconds) for t in totals[:3]] == [
        ("Conv2D", 1, 400),
        ("MaxPool", 1, 300),
        ("MatMul", 1, 280),
    ]
    assert sum(t.share for t in totals) == pytest.approx(1, abs=len(totals) * 2.0**-52)  # each share is rounded once
    for theme in THEMES:
        chosen = find_theme(theme)
        many = totals_of([Span("n", f"Op{n}", "d", "t", n, 20 - n) for n in range(15)])
        colours = colours_of(many, chosen)
        assert len(colours) == len(chosen.distinct) and "other ops" in colours


@pytest.mark.parametrize("theme", THEMES)
def test_svg_is_true_to_scale(theme: str) -> None:
    trace = made_up()
    root = ElementTree.fromstring(to_svg(trace, find_theme(theme)))
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class") == "span"]
    assert len(groups) == len(trace.spans)
    bars: dict[str, tuple[float, float, float]] = {}
    for group in groups:
        title = group.find(f"{SVG}title")
        shape = group.find(f"{SVG}polygon")
        assert title is not None and title.text and shape is not None
        numbers = [float(n) for n in re.findall(r"[\d.]+", shape.attrib["points"])]
        bars[title.text.split("\n")[0]] = (numbers[0], numbers[2], numbers[1])
    scale = (bars["net/conv"][1] - bars["net/conv"][0]) / 400
    for span in trace.spans:
        left, right, _ = bars[span.name]
        assert left == pytest.approx(bars["net/conv"][0] + span.start * scale, abs=0.1)  # one decimal
        assert right - left == pytest.approx(max(0.6, span.duration * scale), abs=0.1)  # one decimal
        assert 0 < left < right <= WIDTH
    assert bars["net/pool"][2] != bars["net/side"][2], "what overlaps is in rows of its own"


def test_narrow_spans_are_drawn_together() -> None:
    spans = [Span(f"n{i}", "Op", "d", "t", i * 0.01, 0.005) for i in range(5000)]
    drawing = to_svg(Trace("many", [*spans, Span("last", "Op", "d", "t", 1e6, 1)]), find_theme("light"))
    assert drawing.count('class="span"') <= 4
    assert "and 4999 more beside it" in drawing


def test_text_view() -> None:
    text = to_text(made_up())
    assert "made up: 6 node runs in 1 ms" in text
    assert re.search(r" 1 │█+.*│ +50%", text) and "/device:CPU:1" in text
    assert re.search(r"^Conv2D +1 +400 µs +33.9% +4.1 kB$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "12.3 ns"), (1, "1 µs"), (1234, "1.23 ms"), (5_600_000, "5.6 s"), (0, "0 µs")]
)
def test_times(value: float, text: str) -> None:
    assert time_text(value) == text


def test_round_numbers() -> None:
    assert ticks(1000) == [n * 100 for n in range(11)]
    assert len(ticks(0.037)) <= 11 and len(ticks(3e9)) <= 11
    assert ticks(0) == [0]
    assert [bytes_text(n) for n in (12, 2048, 3_400_000, 5e9)] == ["12 B", "2.05 kB", "3.4 MB", "5 GB"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"traceEvents": [', "not JSON"),
        (b'{"traceEvents": 3}', 'has no "traceEvents"'),
        (b'{"traceEvents": []}', "holds no measured nodes"),
        (b'{"traceEvents": [{"ph": "X", "pid": 1}]}', "has an event of an unknown form"),
        (b'{"traceEvents": [7]}', "has an event of an unknown form"),
        (gzip.compress(b'{"traceEvents": [' * 9, mtime=0)[:-5], "data are damaged: they end early"),
    ],
)
def test_bad_traces(tmp_path: Path, content: bytes, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=re.escape(message)):
        read_trace(str(path))
    assert run(["visualize", str(path), "-o", str(tmp_path / "t.svg")]) == 2
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "t.svg").exists()


def test_a_timeline_is_no_png(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "name": "Relu", "ts": 0, "dur": 3}]}')
    assert run(["visualize", str(path), "-o", str(tmp_path / "t.png")]) == 2
    assert "a timeline is drawn as .svg, .pdf, .html, .txt, not as .png" in capfd.readouterr().err
    assert run(["visualize", str(path), "-o", str(tmp_path / "t.svg"), "--against", str(path)]) == 2
    assert "is the trace of a run, not a graph" in capfd.readouterr().err


# -- the page ----------------------------------------------------------------------------------------------


def test_page_data_hold_every_span() -> None:
    data = page_data(made_up(), "light")
    names = [data["strings"][n] for n in data["spans"]["name"]]
    assert sorted(names) == sorted(span.name for span in made_up().spans)
    assert [lane["thread"] for lane in data["lanes"]] == ["1", "2", "main"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("timeline") / "t.html"
    path.write_bytes(to_html(made_up()))
    return path


def view(browser: Browser) -> tuple[float, float]:
    browser.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    start, end = browser.js("document.body.dataset.view").split()
    return float(start), float(end)


@pytest.mark.browser
def test_keys_walk_from_run_to_run(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert view(browser) == (0, 1000)
    name = "document.querySelector('#details .name')?.textContent"
    browser.key("ArrowRight")
    assert browser.js(name) == "net/conv"
    browser.key("ArrowRight")
    assert browser.js(name) == "net/relu"
    browser.key("ArrowDown")
    assert browser.js(name) == "net/pool"
    assert "inputs: net/relu" in browser.js("document.getElementById('details').innerText")
    browser.key("z")
    assert view(browser) == (100, 1000)  # three times its duration, as far as there is a timeline
    browser.key("0")
    assert view(browser) == (0, 1000)
    browser.key("Escape")
    assert browser.js(name) is None


@pytest.mark.browser
def test_zoom_search_and_totals(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click("#zoom-in")
    start, end = view(browser)
    assert end - start == pytest.approx(1000 / 1.5, rel=tolerance.gamma(16, "float64"))
    browser.key("a")
    assert view(browser)[0] < start
    browser.key("/")
    browser.type("relu")
    browser.wait("document.getElementById('status').textContent.startsWith('2 found')")
    browser.key("Enter")
    assert browser.js("document.querySelector('#details .name').textContent") in ("net/relu", "net/side")
    browser.key("Escape")
    browser.click("#totals tbody button")
    assert browser.js("document.querySelector('#totals button[aria-pressed=true]').textContent") == "Conv2D"
    rows = browser.js("[...document.querySelectorAll('#totals tbody tr')].map(r => r.innerText.trim().split(/\\s+/))")
    assert rows[0] == ["Conv2D", "1", "400", "µs", "33.9%"] and len(rows) == 5


@pytest.mark.browser
def test_pointing_at_a_bar_tells_about_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    left, top, width = browser.js(
        "(r => [r.left, r.top, r.width])(document.getElementById('chart').getBoundingClientRect())"
    )
    x = left + 150 + (width - 162) * 0.2  # a fifth of the way: the convolution, in the first row
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=top + 24 + 20 + 9)
    browser.wait("!document.getElementById('tip').hidden")
    assert browser.js("document.getElementById('tip').textContent").startswith("net/conv\nop: Conv2D\ntime: 400 µs")
    for name in THEMES:
        browser.js(f"(() => {{ const t = document.getElementById('theme'); t.value = '{name}'; t.onchange(); }})()")
    browser.js("(() => { const c = document.getElementById('color'); c.value = 'memory'; c.onchange(); })()")
    view(browser)
