"""The machine's peaks are measured, and a workload's operations and bytes counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.bench.roofline import Peaks, Work, work
from tests.bench.workloads import WORKLOADS
from tests.models import ROOT


@pytest.mark.parametrize("onednn", ["", "off"])
def test_peaks_with_and_without_onednn(onednn: str) -> None:
    command = [sys.executable, "-m", "tests.bench.roofline", "peaks", "1"]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"GRAPHMILL_ONEDNN": onednn}, stdout=subprocess.PIPE, text=True, check=True
    )
    peaks = Peaks(**json.loads(done.stdout))
    assert peaks.f32 > 1e8 and peaks.copy > 1e7
    if onednn == "off":
        assert peaks.bf16 is None and peaks.source == "NumPy's matrix product"
    assert peaks.source in peaks.text()


def test_the_least_time_is_that_of_the_scarcer_resource() -> None:
    peaks = Peaks(f32=100.0, bf16=200.0, copy=10.0, source="paper")
    assert Work(flops=300, bytes=10).least_seconds(peaks, "f32") == 3
    assert Work(flops=300, bytes=10).least_seconds(peaks, "bf16") == 1.5
    assert Work(flops=300, bytes=50).least_seconds(peaks, "f32") == 5
    assert Work(flops=300, bytes=50).least_seconds(Peaks(1.0, None, 1.0, "paper"), "bf16") is None


@pytest.mark.tensorflow
def test_operations_are_counted_on_the_graph() -> None:
    counted = work(WORKLOADS["one scalar Add, Session.run"])
    assert (counted.flops, counted.bytes) == (1, 8)
    # forward, and two products backward; the updates and the loss are a few percent
    counted = work(WORKLOADS["train MLP 784-128-10 SGD"])
    # (biases and the loss are counted too)
    assert counted.flops == pytest.approx(3 * 2 * 64 * (784 * 128 + 128 * 10), rel=0.05)
    weights, feeds = 4 * (784 * 128 + 128 + 128 * 10 + 10), 64 * (784 * 4 + 8)
    assert counted.bytes == pytest.approx(2 * weights + feeds, rel=0.01)  # biases are read too


def test_loops_say_their_work_themselves() -> None:
    gates = {"LSTM": 4, "GRU": 3}
    for workload in WORKLOADS.values():
        for kind, count in gates.items():
            if kind in workload.name and "batch " in workload.name:  # others have steps of many sizes
                batch = int(workload.name.split("batch ")[1].split(",")[0])
                forward = 50 * 2 * batch * (64 + 128) * count * 128  # turns, of 64 inputs and 128 units for each gate
                products = 3 if workload.name.startswith("train") else 1
                assert workload.work is not None and work(workload).flops == products * forward
