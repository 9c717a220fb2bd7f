"""Other viewers as judges: TensorBoard's graph plugin parses our event files, Netron draws our model files."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import text_format

from commands.main import run
from schemas import config_pb2, graph_pb2
from tests.models import lenet_ref, saved_model_keras, saved_model_tf1
from tests.render.browser import Browser
from tests.render.graphs import perceptron
from toolkit.formats.models.model import from_graph, read_model, write_model

# -- TensorBoard -------------------------------------------------------------------------------------------


def graph_plugin(logs: Path) -> tuple[Any, Any]:
    """TensorBoard's graph plugin over a folder of event files, and a request to call it with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorBoard's vendored packages warn when imported
        from tensorboard import context
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.plugins import base_plugin
        from tensorboard.plugins.graph import graphs_plugin

        events = plugin_event_multiplexer.EventMultiplexer()
        events.AddRunsFromDirectory(str(logs))
        events.Reload()
        provider = data_provider.MultiplexerDataProvider(events, str(logs))
        plugin = graphs_plugin.GraphsPlugin(base_plugin.TBContext(data_provider=provider))
    return plugin, context.RequestContext()


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["graph", "meta graph", "saved model"])
def test_tensorboards_graph_plugin_reads_what_we_write(kind: str, tmp_path: Path, tf: ModuleType) -> None:
    if kind == "graph":
        source = tmp_path / "p.pb"
        write_model(from_graph(perceptron()), source)
    else:
        source = lenet_ref().path if kind == "meta graph" else saved_model_keras().path
    metadata = config_pb2.RunMetadata()
    metadata.step_stats.dev_stats.add(device="/device:CPU:0").node_stats.add(node_name="x", op_end_rel_micros=5)
    (tmp_path / "step.pb").write_bytes(metadata.SerializeToString())
    logs = tmp_path / "logs"
    assert run([
        "visualize", str(source), "-o", str(logs), "--tensorboard", "--costs", str(tmp_path / "step.pb")
    ]) == 0  # fmt: skip
    plugin, request = graph_plugin(logs)
    ((run_name, row),) = plugin.info_impl(request, "").items()
    assert row["run_graph"] is True and set(row["tags"]) == {"step"}
    text, mime = plugin.graph_impl(request, run_name, None, False, "")
    assert mime == "text/x-protobuf"
    shown = text_format.Parse(text, tf.compat.v1.GraphDef())
    ours = graph_pb2.GraphDef()
    ours.ParseFromString(shown.SerializeToString())
    graph = read_model(str(source)).graph
    # TensorBoard keeps every node and edge; of the attributes it drops large ones only.
    assert {(n.name, n.op, tuple(n.input)) for n in ours.node} == {
        (n.name, n.op, tuple(n.input)) for n in graph.to_proto().node
    }
    assert [f.signature.name for f in ours.library.function] == list(graph.library)
    step, _ = plugin.run_metadata_impl(request, "", run_name, "step")
    assert "op_end_rel_micros: 5" in step


# -- Netron ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outsider() -> Iterator[Browser]:
    """A browser of its own: Netron asks for addresses outside, which are blocked, and logs that they failed."""
    with Browser() as found:
        found.call("Network.setBlockedURLs", urls=["https://*"])
        yield found


def drawn_by_netron(browser: Browser, path: Path) -> str:
    """All texts of Netron's drawing of a file, one a line."""
    import netron

    logging.getLogger("netron").setLevel(logging.ERROR)
    host, port = netron.start(str(path), ("127.0.0.1", 0), browse=False)
    try:
        address = f"http://{host}:{port}/"
        # Without it Netron asks whether it may count its users, and waits.
        browser.call("Network.setCookie", name="consent", value="1", url=address)
        browser.call("Page.navigate", url=address)
        browser.wait(
            "document.querySelectorAll('#canvas g.node-item, #target text, svg text').length > 0"
            " || document.querySelector('.message-text')?.textContent"
        )
        return browser.js("[...document.querySelectorAll('svg text')].map(t => t.textContent).join('\\n')")
    finally:
        netron.stop((host, port))


@pytest.mark.browser
@pytest.mark.parametrize("suffix", ["pb", "pbtxt", "meta"])
def test_netron_draws_our_graphs(outsider: Browser, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p.{suffix}"
    write_model(from_graph(perceptron()), path)
    assert path.is_file()
    text = drawn_by_netron(outsider, path).split("\n")
    assert text.count("MatMul") == 2 and text.count("VariableV2") == 2 and "Softmax" in text


@pytest.mark.browser
@pytest.mark.tensorflow
def test_netron_draws_a_saved_model_that_we_wrote(outsider: Browser, tmp_path: Path) -> None:
    model = saved_model_tf1()
    signature = next(iter(read_model(str(model.path)).meta.signatures))
    folder = tmp_path / "pruned"
    assert run(["prune", str(model.path), "--signature", signature, "-o", str(folder)]) == 0
    text = drawn_by_netron(outsider, folder / "saved_model.pb").split("\n")
    assert "MatMul" in text
