"""What is allowed between two computations: as much as rounding explains, and no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import perturbation, rounding, tolerance
from toolkit import Session
from toolkit import client as gm

_RANDOM = np.random.default_rng(0)
X = _RANDOM.normal(size=(30, 200)).astype(np.float32)
W = _RANDOM.normal(size=(200, 40)).astype(np.float32)


def test_roundings_add_up() -> None:
    assert tolerance.unit() == 2.0**-24 and tolerance.unit("float64") == 2.0**-53
    assert 2.0**-24 < tolerance.gamma(1) < 2.0**-24 + 2.0**-47 and tolerance.gamma(100) > 100 * 2.0**-24
    assert all(tolerance.likely(n) <= tolerance.gamma(n) for n in (1, 10, 100, 10_000))
    assert tolerance.likely(10_000) < tolerance.gamma(10_000) / 10


def test_products_in_any_order() -> None:
    exact, allowed = X.astype(np.float64) @ W, tolerance.of_product(X, W)
    for order in (slice(None), slice(None, None, -1)):
        one_by_one = np.cumsum(X[:, order, None] * W[order], 1, dtype=np.float32)[:, -1]
        tolerance.assert_within(one_by_one, exact, allowed)
    with pytest.raises(AssertionError, match=r"further apart than rounding explains; first at \(3, 4\)"):
        wrong = exact.copy()
        wrong[3, 4] += 2 * allowed[3, 4]
        tolerance.assert_within(wrong, exact, allowed)


def _network(x: Any, dtype: Any) -> Any:
    y = gm.bias_add(gm.matmul(x, W.astype(dtype)), np.linspace(-1, 1, 40).astype(dtype))
    y = gm.relu(y) + gm.sigmoid(y)
    y = gm.conv2d(gm.reshape(y, [1, 6, 5, 40]), 0.1 * W[:160].reshape(2, 2, 40, 40).astype(dtype))
    return gm.identity(gm.ops.softmax(gm.tanh(0.02 * y)) - gm.reduce_mean(y, [0, 1, 2]), name="out")


def test_networks() -> None:
    results: list[Any] = []
    for dtype in (np.float32, np.float64):
        with gm.Graph().as_default() as graph:
            _network(gm.placeholder(gm.float32 if dtype == np.float32 else gm.float64, [30, 200], name="x"), dtype)
        with Session(graph) as session:
            results.append(session.run("out:0", {"x:0": X.astype(dtype)}))
        if dtype == np.float32:
            found = rounding.allowed(graph, ["out:0"], {"x:0": X})
            assert found is not None
            allowed = found[0]
    got, exact = results
    tolerance.assert_within(got, exact, allowed)
    assert allowed.max() < 1e-3 * np.abs(exact).max(), "numbers with 8 bits would be seen"
    with pytest.raises(AssertionError, match="than rounding explains"):
        tolerance.assert_within(got * np.float32(1 + 2**-8), exact, allowed)


def test_what_has_no_rule() -> None:
    with gm.Graph().as_default() as graph:
        gm.ops.matrix_inverse(gm.placeholder(gm.float32, [2, 2], name="x"), name="out")
    assert rounding.allowed(graph, ["out:0"], {"x:0": np.eye(2, dtype=np.float32)}) is None


def test_what_chance_finds() -> None:
    """Where there is no rule: what is ill-conditioned may be off, what is well-conditioned not, ties not at all."""
    near = np.array([[1, 1], [1, 1 + 2.0**-12]], np.float32)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 2], name="x")
        inverse = gm.ops.matrix_inverse(x, name="out")
        gm.identity(gm.grad(gm.ops.max(inverse * 0.0 + 2.0, [0, 1]), inverse)[0], name="ties")
    names = ["out:0", "ties:0"]
    for matrix, at_most in ((near, 1.0), (np.eye(2, dtype=np.float32), 1e-4)):
        with Session(graph) as session:
            found, ties = session.run(names, {"x:0": matrix})
        allowed, of_ties = perturbation.allowed(graph, names, {"x:0": matrix})
        exact = np.linalg.inv(matrix.astype(np.float64))
        tolerance.assert_within(found, exact, allowed)
        assert allowed.max() < at_most * np.abs(exact).max()
        assert np.max(of_ties) < 1e-5 and ties.shape == (2, 2)
        perturbation.assert_close(graph, names, {"x:0": matrix}, [[found, ties], [exact.astype(np.float32), ties]])
        with pytest.raises(AssertionError, match="than rounding explains"):
            wrong = (exact + 2 * allowed.max()).astype(np.float32)
            perturbation.assert_close(graph, names, {"x:0": matrix}, [[wrong, ties], [found, ties]])


def test_what_is_not_finite_is_the_same() -> None:
    numbers = np.array([np.nan, np.inf, -np.inf, 1])
    tolerance.assert_within(numbers, numbers, 0.0)
    for other in ([0, np.inf, -np.inf, 1], [np.nan, np.nan, -np.inf, 1], [np.nan, np.inf, np.inf, 1]):
        with pytest.raises(AssertionError):
            tolerance.assert_within(np.array(other), numbers, 1.0)


def test_numbers_are_moved_wherever_they_would_be_computed() -> None:
    """What a compiler would give to NumPy or to machine code is rounded like anything else."""
    number = np.float32([0.75])
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1], name="x")
        gm.identity(gm.ops.tanh(x) - gm.constant(np.tanh(number)), name="out")
    (far,) = perturbation.allowed(graph, ["out:0"], {"x:0": number})
    assert far[0] > tolerance.unit() * 0.6  # nothing is left of the number, all of its roundings are


def test_no_more_runs_are_made_than_tell() -> None:
    """What is near enough by some of them is so by all; what is too far off is compared by all."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [30, 200], name="x")
        y = gm.tanh(gm.matmul(x, W) * 0.1)
        gm.identity(gm.reduce_sum(gm.square(y), [1]) - gm.reduce_mean(y), name="out")
    seen: list[Any] = []

    def work(session: Session) -> list[Any]:
        seen.append(session)
        return session.run(["out:0"], {"x:0": X})

    with Session(graph) as session:
        found = session.run("out:0", {"x:0": X})
    far = np.asarray(perturbation.of_work(graph, work)[0])
    every = len(seen)
    for share, least, most in ((0.0, 0, 0), (0.05, 2, every - 1), (0.3, 2, every - 1), (0.99, every - 1, every)):
        seen.clear()
        other = (found + share * far).astype(np.float32)
        perturbation.assert_agree([[other], [found]], lambda: perturbation.of_work(graph, work))
        assert least <= len(seen) <= most, (share, len(seen), every)
    seen.clear()
    with pytest.raises(AssertionError, match="than rounding explains"):
        perturbation.assert_agree(
            [[found + 1.01 * far], [found.astype(np.float64)]], lambda: perturbation.of_work(graph, work)
        )
    assert len(seen) == every
    tolerance.listeners.append(lambda used: None)
    try:
        seen.clear()
        other = (found + 0.05 * far).astype(np.float32)
        perturbation.assert_agree([[other], [found]], lambda: perturbation.of_work(graph, work))
        assert len(seen) == every, "whoever listens is told what is allowed by all runs"
    finally:
        tolerance.listeners.pop()
