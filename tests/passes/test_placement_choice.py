"""The greedy strategy on every model there is: never slower on paper than simpler ones, never more memory than there
is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.main import run
from tests import models
from tests.passes import validate_graphs
from tests.passes.graphs import random_dag, random_state_graph
from tests.passes.test_passes_placement import SUM, cluster, layers, place, trained
from toolkit.errors import GraphmillError
from toolkit.formats.models.model import read_model
from toolkit.formats.settings.cost_file import MeasuredCosts, NodeCost
from toolkit.graph import plugins
from toolkit.graph.graph import Graph

SAMPLES = Path(__file__).parents[2] / "samples"
CLUSTERS = {
    "two": "local: {CPU: 2}",
    "one fast": "local: {CPU: 3}\nspeeds: {/device:CPU:2: {flops: 500G, bandwidth: 100GB}}",
    "near": "local: {CPU: 4}\nspeeds: {CPU: {startup: 0us}}\nlinks: {local: {latency: 1us}}",
    "few cores": "local: {CPU: 4}\nspeeds: {CPU: {startup: 0us, cores: 2}}\nlinks: {local: {latency: 1us}}",
    "far": "jobs: {a: [h:1], b: [h:2]}\nlinks: {remote: {latency: 1ms, bandwidth: 10MB}}",
    "mixed": "jobs: {a: [{address: 'h:1', devices: {CPU: 2}}], b: [h:2]}\nspeeds: {/job:b: {flops: 1T}}",
}
SPECS = ("digits_cnn.yaml", "lenet.yaml", "newton.py", "denoise.py")
BUILT: dict[str, Callable[[], Graph]] = {
    "layers": lambda: layers(8),
    "trained": lambda: trained(8),
    **{name: lambda name=name: Graph.from_proto(getattr(validate_graphs, name)()) for name in ("net", "loop", "calls")},
}


def seconds(graph: Graph, described: Any, **options: Any) -> dict[str, float]:
    return {
        name: place(graph, described, strategy=name, allow_soft_placement=True, **options).report["simulated"][
            "seconds"
        ]
        for name in ("single", "round-robin", "greedy")
    }


def compare(graph: Graph) -> None:
    for name, text in CLUSTERS.items():
        found = seconds(graph, cluster(text))
        assert found["greedy"] <= min(found.values()) * (1 + SUM), name


@pytest.mark.parametrize("spec", SPECS)
def test_samples(spec: str, tmp_path: Path) -> None:
    more = ["--plugin", str(SAMPLES / "shrink_plugin.py")] if spec == "denoise.py" else []
    out = str(tmp_path / "m.meta")
    assert run(["build", str(SAMPLES / spec), *more, "-o", out]) == 0
    if more:
        plugins.load(more[1])
    compare(read_model(out).graph)


@pytest.mark.parametrize("name", BUILT)
def test_graphs_by_hand(name: str) -> None:
    compare(BUILT[name]())


@pytest.mark.long  # TensorFlow builds the models, and some have thousands of nodes
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", models.own())
def test_models_that_tensorflow_wrote(tf: Any, name: str) -> None:
    compare(read_model(str(getattr(models, name)().path)).graph)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_random_graphs_whose_step_was_measured(seed: int) -> None:
    """Nodes that did not run take no part, the others share cores and an interpreter; what is compiled is quicker."""
    rng = random.Random(seed)
    graph = random_dag(rng, 40) if rng.random() < 0.5 else random_state_graph(rng, 40)
    ran = [node for node in graph if node.op not in ("Placeholder", "NoOp") and rng.random() < 0.9]
    measured = MeasuredCosts(
        {node.name: NodeCost(node.op, "CPU:0", rng.choice([1e-6, 1e-4, 1e-3])) for node in ran},
        step=1.0, overhead=rng.choice([1e-6, 1e-4]), latency=rng.choice([1e-6, 1e-4]), bandwidth=1e10,
        compiled=rng.choice([None, 1e-3, 1.0]), cores=rng.choice([1, 2, 8]), threads=rng.choice([1, 2]),
        slowdown=rng.choice([1.0, 1.5]), contention=rng.choice([0.0, 1e-5]), startup=rng.choice([0.0, 1e-4]),
    )  # fmt: skip
    described = cluster("local: {CPU: 3}")
    found = seconds(graph, described, measured=measured)
    assert found["greedy"] <= min(found.values()) * (1 + SUM)
    alone = place(graph, described, strategy="single", measured=measured).report["simulated"]
    if measured.compiled is not None:
        assert alone["seconds"] == measured.compiled
    if len(ran) > 1:
        kernels = sum(cost.seconds for cost in measured.nodes.values())
        one_by_one = kernels + len(ran) * (measured.overhead or 0)
        share = min(1.0, (measured.compiled or one_by_one) / one_by_one)  # of that, what is compiled takes
        spread = place(graph, described, strategy="round-robin", measured=measured).report["simulated"]
        side_by_side = min(3, max(1, (measured.cores or 1) // (measured.threads or 1)))
        assert spread["seconds"] >= share * kernels / side_by_side * (1 - SUM)
        assert spread["seconds"] >= share * len(ran) * (measured.overhead or 0) * (1 - SUM)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["default", "single", "round-robin", "greedy", "stages"]))
def test_memory_is_never_exceeded(seed: int, strategy: str) -> None:
    """Or one line says which device would need how much of what it has, and what there is."""
    rng = random.Random(seed)
    graph = layers(rng.randint(2, 8), size=64, batch=16) if rng.random() < 0.5 else trained(rng.randint(2, 5), size=32)
    memory = rng.choice([5_000, 20_000, 40_000, 80_000, 10**6])
    described = cluster(f"local: {{CPU: 3}}\nspeeds: {{CPU: {{memory: {memory}}}}}")
    try:
        report = place(graph, described, strategy=strategy, stages=2).report
    except GraphmillError as error:
        assert "memory" in error.message and f"{memory:,} bytes" in error.message and "\n" not in error.message
        return
    assert all(row["peak_bytes"] <= memory for row in report["simulated"]["devices"].values())


def test_training_that_one_device_cannot_hold_is_on_two(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The command that samples/README.md shows."""
    model, report = str(tmp_path / "lenet.meta"), str(tmp_path / "r.json")
    assert run(["build", str(SAMPLES / "lenet.yaml"), "-o", model]) == 0
    placing = ["place", model, "--cluster", str(SAMPLES / "small_devices.yaml"), "-o", str(tmp_path / "p.meta")]
    for strategy in ([], ["--strategy", "single"]):
        capfd.readouterr()
        assert run([*placing, *strategy]) == 2
        told = capfd.readouterr().err
        assert "would need" in told and "try --strategy greedy" in told and told.count("\n") == 1
    assert run([*placing, "--strategy", "greedy", "--report", report]) == 0
    devices = {node.device for node in read_model(str(tmp_path / "p.meta")).graph}
    assert len(devices) == 2
