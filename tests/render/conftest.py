"""Tests in a browser run where there is one; a run that TensorFlow traced."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.render.browser import CHROMIUM, Browser


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `browser` out, visibly, on a machine without a Chromium."""
    if CHROMIUM is not None:
        return
    left_out = [item for item in items if item.get_closest_marker("browser") is not None]
    if left_out:
        items[:] = [item for item in items if item.get_closest_marker("browser") is None]
        config.hook.pytest_deselected(items=left_out)
        print(f"\nno Chromium on the PATH: {len(left_out)} browser tests are left out")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.fail("these tests need a Chromium on the PATH; leave them out with -m 'not browser'")
    with Browser() as found:
        yield found


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test leaves a console error or a request to anywhere behind."""
    yield
    if "browser" in request.fixturenames:
        used: Browser = request.getfixturevalue("browser")
        assert used.errors == []
        assert all(url.startswith("file://") and url.endswith(".html") for url in used.requests)


@pytest.fixture(scope="module")
def traced(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder with a step's RunMetadata and timeline as TensorFlow writes them, and the message."""
    from tensorflow.python.client import timeline

    folder = tmp_path_factory.mktemp("traced")
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [32, 64], name="x")
        w = tf.constant(np.ones((64, 64), np.float32), name="w")
        y = x
        for n in range(5):
            y = tf.nn.relu(tf.matmul(y, w, name=f"layer{n}/product"), name=f"layer{n}/relu")
        total = tf.reduce_sum(y, name="total")
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
        with v1.Session() as session:
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
            session.run(total, {x: np.ones((32, 64), np.float32)}, options=options, run_metadata=metadata)
    (folder / "step.pb").write_bytes(metadata.SerializeToString())
    (folder / "stats.pb").write_bytes(metadata.step_stats.SerializeToString())
    chrome = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
    (folder / "step.json").write_text(chrome)
    (folder / "step.json.gz").write_bytes(gzip.compress(chrome.encode()))
    return folder, metadata
