"""Recurrent layers without copies, as whole graphs: values beside the CPU's, and how many launches a step is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.compiler.layers import normal
from tests.compiler.test_gpu_fusion import fused
from tests.compiler.test_gpu_precision import lowered
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
STEPS, BATCH, UNITS = 5, 4, 8


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def lstm(x: Any) -> list[Any]:
    """Two layers, unrolled; the last state and its gradients by what is given and by all weights."""
    rows = gm.unstack(x, STEPS)
    weights: list[Any] = []
    for layer in range(2):
        outer, inner = (
            gm.constant(normal(UNITS, 4 * UNITS, seed=4 * layer + at) / np.float32(UNITS**0.5)) for at in range(2)
        )
        bias = gm.constant(normal(4 * UNITS, seed=4 * layer + 2))
        weights += [outer, inner, bias]
        given = gm.bias_add(gm.matmul(gm.concat(rows, 0), outer), bias)
        c = h = gm.constant(np.zeros((BATCH, UNITS), np.float32))
        rows: list[Any] = []
        for gates in gm.split(given, STEPS, 0):
            i, f, g, o = gm.split(gates + gm.matmul(h, inner), 4, 1)
            c = gm.sigmoid(f) * c + gm.sigmoid(i) * gm.tanh(g)
            h = gm.sigmoid(o) * gm.tanh(c)
            rows.append(h)
    return [rows[-1], *gradients([gm.reduce_sum(rows[-1] * normal(BATCH, UNITS, seed=20))], [x, *weights])]


def gru(x: Any) -> list[Any]:
    """One layer whose products are of a state and what is given, side by side; the gradients by the weights."""
    both = gm.constant(normal(2 * UNITS, 2 * UNITS, seed=1) / np.float32(UNITS**0.5))
    new = gm.constant(normal(2 * UNITS, UNITS, seed=2) / np.float32(UNITS**0.5))
    bias = gm.constant(normal(2 * UNITS, seed=3))
    h = gm.constant(np.zeros((BATCH, UNITS), np.float32))
    for row in gm.unstack(x, STEPS):
        gates = gm.sigmoid(gm.bias_add(gm.matmul(gm.concat([row, h], 1), both), bias))
        r, u = gm.split(gates, 2, 1)
        h = u * h + (1.0 - u) * gm.tanh(gm.matmul(gm.concat([row, r * h], 1), new))
    return [h, *gradients([gm.reduce_sum(h * normal(BATCH, UNITS, seed=20))], [x, both, new, bias])]


def counts(build: Callable[[Any], list[Any]], shape: tuple[int, ...]) -> dict[str, int]:
    """How often each kind of operation stands in what is compiled."""
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(shape))
        wanted = build(given)
    found: dict[str, int] = {}
    with Session(graph, devices={"GPU": 1}) as session:
        for line in session.explain(wanted, {given: normal(*shape)}):
            for kind in line.split()[1:2]:
                found[kind] = found.get(kind, 0) + 1
    return found


def test_steps_of_an_lstm() -> None:
    """A step is a product and a kernel, and as much backward; nothing is split or joined."""
    shape = (STEPS, BATCH, UNITS)
    fused(lstm, normal(*shape))
    found = counts(lstm, shape)
    assert not found.keys() & {"ConcatV2", "AddN", "AddV2"} and found["Split"] == 2  # of what all steps are given
    assert found["gpu_placed_nest"] <= 2 * 2 * STEPS
    # forward and backward one each, and for each layer the gradients of two weights, and of what all steps are given
    assert found["MatMul"] <= 2 * 2 * STEPS + 2 * 3


def test_a_gru() -> None:
    fused(gru, normal(STEPS, BATCH, UNITS))


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_steps_of_16_bits(precision: str) -> None:
    lowered(lstm, normal(STEPS, BATCH, UNITS), precision)


def test_a_part_that_is_asked_for_is_read_before_it_is_stored() -> None:
    """By a kernel of another shape, which takes it as a tensor, in front of the one that would store it."""
    shape = (3, 8)
    with gm.Graph().as_default() as graph:
        x, rows = gm.placeholder(gm.float32, list(shape)), gm.placeholder(gm.float32, [4, 3, 2])
        a, b, c, d = gm.split(gm.tanh(x), 4, 1)
        first = gm.sigmoid(rows + a) * rows
        wanted = [first, gm.tanh(a * b + gm.reduce_sum(first, 0)) + c * d, a]
    feeds = {x: normal(*shape), rows: normal(4, 3, 2)}
    with Session(graph, devices={"GPU": 1}) as session, Session(graph, force_tokens=True) as beside:
        found, expected = session.run(wanted, feeds), beside.run(wanted, feeds)
        assert session.notes() == []
    for one, other in zip(found, expected, strict=True):
        near = tolerance.gamma(60)  # roundings of numbers up to 4, of functions and sums of four
        np.testing.assert_allclose(one, other, rtol=near, atol=near)
