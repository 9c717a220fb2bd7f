"""Every workload: named once, built by TensorFlow, fed anew, and computed as TensorFlow computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.bench.agreement import disagreement, varies
from tests.bench.engines import PEERS, load
from tests.bench.workloads import SUITES, WORKLOADS
from tests.models import BUILDERS

#: these are as large as real models are; `-m long` runs them
LARGE = ("networks", "quantized", "transformer")
_ALL = [
    pytest.param(name, marks=pytest.mark.long if workload.suite in LARGE else ())
    for name, workload in WORKLOADS.items()
    if workload.precision == "f32" and workload.suite != "shapes"  # tests/runtime/executors/test_new_shapes has these
]


def test_the_table_of_the_benchmark() -> None:
    suites = {"networks", "quantized", "transformer", "rnn", "training", "overhead", "elementwise", "shapes"}
    assert set(SUITES) == suites
    for name, workload in WORKLOADS.items():
        assert workload.name == name
        assert set(workload.peers) <= set(PEERS) and workload.targets
        assert workload.precision in ("f32", "bf16") and workload.call in ("run", "callable")
        assert all(0 < target.ratio < 2 for target in workload.targets)


@pytest.mark.parametrize("name", [name for name, w in WORKLOADS.items() if w.suite not in ("networks", "shapes")])
def test_feeds_differ_from_run_to_run_and_not_by_engine(name: str) -> None:
    feeds = WORKLOADS[name].feeds
    random = np.random.default_rng(5)
    first, second = feeds(random), feeds(random)
    again = feeds(np.random.default_rng(5))
    assert list(first) == list(second) == list(again)
    for label, value in first.items():
        np.testing.assert_array_equal(again[label], value)
        assert value.dtype == second[label].dtype and value.shape == second[label].shape
        assert np.any(second[label] != value)


def _runs(engine: Any, feeds: list[list[Any]]) -> dict[str, Any]:
    engine.reset()
    return {
        f"{run}.{index}": np.asarray(value)
        for run, values in enumerate(feeds)
        for index, value in enumerate(engine.step(values))
        if value is not None
    }


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", _ALL)
def test_our_outputs_are_tensorflows_and_vary(name: str) -> None:
    workload = WORKLOADS[name]
    built = workload.model()
    random = np.random.default_rng(1)
    drawn = [workload.feeds(random) for _ in range(4)]
    assert set(drawn[0]) == set(built.info["inputs"])
    feeds = [[feed[label] for label in built.info["inputs"]] for feed in drawn]
    ours = load("graphmill", workload, built, 1, "f32")
    theirs = load("tensorflow", workload, built, 1, "f32")
    for _ in range(2):  # variables are set back between
        reference = _runs(theirs, feeds)
        assert varies(reference)
        assert disagreement(_runs(ours, feeds), reference, "f32", workload.rtol) is None


def test_builders_have_names_of_their_own() -> None:
    """Two builders of one name would take each other's place in the cache."""
    modules = {name: function.__module__ for name, (function, _) in BUILDERS.items()}
    for name, module in {"recurrent_layer": "rnn", "lstm_step": "training", "encoder": "transformer"}.items():
        assert modules[name] == f"tests.bench.workloads.{module}"
