"""Residual networks of quantized ops (`tests.quantized_networks`), and the same network in float32.

They are made with graphmill's client, which is imported when one is built: workers import graphmill when they load it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.workloads.base import Workload, tensorflow
from tests.bench.workloads.networks import images
from tests.models import ROOT, builder

#: name to function there, its size (width, stages, blocks), pixels, and the ratio to reach; TensorFlow takes half a
#: minute for larger uniform ones
_NETWORKS: dict[str, tuple[str, tuple[int, int, int], int, float]] = {
    "float32": ("plain", (64, 4, 2), 224, 0.9),
    "fused": ("fused", (64, 4, 2), 224, 0.9),
    "ranged": ("ranged", (64, 4, 2), 224, 0.9),
    "uniform": ("uniform", (16, 3, 1), 96, 0.1),
}


@builder(ROOT / "tests" / "quantized_networks.py")
def quantized_network(folder: Path, name: str) -> dict[str, Any]:
    """One of the networks as a GraphDef: input "image", output "scores"."""
    from tests import quantized_networks

    network, size, side, _ = _NETWORKS[name]
    made = getattr(quantized_networks, network)
    graph = quantized_networks.build(made, quantized_networks.Size(*size), (1, side, side, 3))
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return {"main": "graph.pb", "inputs": {"image": "image:0"}, "outputs": {"scores": "scores:0"}}


def _feeds(random: Any, *, side: int) -> dict[str, Any]:
    return {"image": images(random, 1, side, False) / 2}


def workloads() -> list[Workload]:
    """Each network for one image."""
    return [
        Workload(
            f"quantized residual network {name}", "quantized", partial(quantized_network, name),
            partial(_feeds, side=side), tensorflow(ratio),
        )
        for name, (_, _, side, ratio) in _NETWORKS.items()
    ]  # fmt: skip
