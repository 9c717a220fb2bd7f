"""The suite cuda without a GPU: its workloads, how results are compared, and its processes with our engine alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.bench.cuda.agreement import UNITS, allowed, disagreement
from tests.bench.cuda.cards import card
from tests.bench.cuda.engines import OURS, load
from tests.bench.cuda.suite import of_workloads
from tests.bench.cuda.table import markdown
from tests.bench.cuda.workloads import PRECISIONS, TINY, WORKLOADS
from tests.bench.cuda_roofline import estimate
from tests.bench.measure import NotRun, Row


def test_workloads() -> None:
    assert {workload.precision for workload in WORKLOADS.values()} == set(PRECISIONS) == set(UNITS)
    for name, workload in WORKLOADS.items():
        assert name.endswith(workload.precision), name
        least = 100 * UNITS[workload.precision]
        assert 0 < allowed(workload) < max(0.5, least), name


def test_work_is_counted() -> None:
    """ResNet-50 has 4.1 GFLOP multiplications and additions of an image, 25.6 million weights; BERT's encoder 85."""
    work = WORKLOADS["ResNet-50 inference batch 1 f32"].network.work(False)
    assert 8.1e9 < work.flops < 8.3e9 and 100e6 < work.bytes < 105e6
    work = WORKLOADS["transformer 12 x 768 inference batch 8 f32"].network.work(False)
    assert 340e6 < work.bytes < 350e6
    known = card("NVIDIA H100 80GB HBM3")
    assert known is not None and known.least_seconds(work, "f32") > known.least_seconds(work, "bf16")


def test_attention_is_estimated_without_scores() -> None:
    """Of 2 images with 2 heads of 16 numbers and 8 tokens: 2 products forward, 5 backward, and no scores in memory."""
    found = estimate(replace(TINY["tiny encoder sgd"], precision="bf16"))
    forward, backward = (each for each in found.launches if each.name.startswith("attention"))
    tensor, statistics, product = 2 * 2 * 8 * 32, 4 * 2 * 2 * 8, 2 * 2 * 2 * 8 * 8 * 16
    assert forward.bytes == 4 * tensor + statistics and forward.flops == 2 * product
    assert backward.bytes == 8 * tensor + statistics and backward.flops == 5 * product
    assert forward.precision == backward.precision == "bf16" and forward.kind == "product"


@pytest.mark.parametrize("name", ["tiny perceptron", "tiny perceptron sgd"])
def test_disagreement(name: str) -> None:
    workload = TINY[name]
    right = load(OURS, workload, "cpu").results()
    assert not disagreement(workload, right, right)
    for key, value in right.items():
        wrong = dict(right)
        wrong[key] = value[::-1] if key == "change" else value * (1 + 3 * allowed(workload))
        assert disagreement(workload, wrong, right), key
    wrong = dict(right) | {"output" if "output" in right else "losses": np.full(3, np.nan)}
    assert disagreement(workload, wrong, right)


def test_rows_without_peers() -> None:
    workloads = [TINY["tiny perceptron"], TINY["tiny recurrent sgd"]]
    results = list(of_workloads(workloads, [], 2, 300.0, "cpu"))
    assert [each.workload for each in results if isinstance(each, Row) and each.ours > 0] == [w.name for w in workloads]
    assert "tiny recurrent sgd" in markdown(results)


def test_a_row_that_fails_says_why_and_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_CUDA", "off")
    (result,) = of_workloads([TINY["tiny perceptron"]], [], 2, 300.0, "gpu")
    assert isinstance(result, NotRun) and result.failed and result.reason
    (late,) = of_workloads([TINY["tiny perceptron"]], [], 2, 0.0, "cpu")
    assert isinstance(late, NotRun) and "no time left" in late.reason
