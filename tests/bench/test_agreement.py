"""What counts as the same outputs, and what proves nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.agreement import disagreement, error, varies


def outputs(seed: int = 0, runs: int = 3) -> dict[str, Any]:
    """Two outputs a run, of random values."""
    random = np.random.default_rng(seed)
    shapes = {"0": (4, 5), "1": (2,)}
    return {
        f"{run}.{name}": random.standard_normal(shape).astype(np.float32)
        for run in range(runs)
        for name, shape in shapes.items()
    }


def changed(key: str, value: Any) -> dict[str, Any]:
    return {**outputs(), key: value}


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_the_same_outputs_agree(precision: str) -> None:
    assert disagreement(outputs(), outputs(), precision, 1e-3) is None
    assert error(outputs(), outputs(), precision) == 0


def test_runs_that_only_one_side_has_are_not_compared() -> None:
    assert disagreement(outputs(runs=2), outputs(runs=3), "f32", 1e-3) is None
    assert disagreement({}, outputs(), "f32", 1e-3) == "no run to compare"


@settings(max_examples=40, deadline=None)
@given(run=st.integers(0, 2), at=st.integers(0, 19), factor=st.floats(1.01, 10))
def test_one_wrong_value_is_found(run: int, at: int, factor: float) -> None:
    mine = outputs()
    flat = mine[f"{run}.0"].reshape(-1)
    flat[at] = flat[at] * factor + 0.01 * np.sign(flat[at])
    problem = disagreement(mine, outputs(), "f32", 1e-3)
    assert problem is not None and problem.startswith("off by")


def test_rounding_is_forgiven() -> None:
    mine = {key: value * np.float32(1 + 5e-4) for key, value in outputs().items()}
    assert disagreement(mine, outputs(), "f32", 1e-3) is None
    assert disagreement(mine, outputs(), "f32", 1e-4) == "off by 5.0e-04, more than 0.0001"


def test_shapes_and_infinities_are_named() -> None:
    problem = disagreement(changed("1.1", np.zeros((2, 1), np.float32)), outputs(), "f32", 1e-3)
    assert problem == "shape (2, 1) instead of (2,)"
    problem = disagreement(changed("1.1", np.array([1, np.nan], np.float32)), outputs(), "f32", 1e-3)
    assert problem == "not finite"


def test_low_precision_must_follow_the_input() -> None:
    """An answer near enough to every output, but the same for every input, is found out."""
    random = np.random.default_rng(3)
    base = 1 + random.random((2, 50))
    reference = {f"{run}.0": (base[0] + 0.05 * random.standard_normal(50)).astype(np.float32) for run in range(2)}
    constant = dict.fromkeys(reference, base[0].astype(np.float32) + np.float32(1e-6) * reference["0.0"])
    noise = {key: value + np.float32(1e-3) * base[1].astype(np.float32) for key, value in reference.items()}
    assert disagreement(noise, reference, "bf16", 0.15) is None
    mine = {"0.0": constant["0.0"], "1.0": constant["1.0"] + random.standard_normal(50).astype(np.float32) * 1e-3}
    problem = disagreement(mine, reference, "bf16", 0.15)
    assert problem is not None and problem.startswith("changes with the input unlike TensorFlow's")


def test_outputs_that_hardly_vary_are_recognised() -> None:
    assert varies(outputs())
    same = outputs()["0.0"]
    assert not varies({"0.0": same, "1.0": same + np.float32(1e-4)})
    assert not varies({"0.0": same})
    assert not varies({"0.0": np.zeros(3, np.float32), "1.0": np.zeros(3, np.float32)})


def test_low_precision_forgives_an_example_but_not_most() -> None:
    random = np.random.default_rng(4)
    reference = {f"{run}.0": random.standard_normal((8, 20)).astype(np.float32) for run in range(2)}

    def wrong(examples: int) -> dict[str, Any]:
        return {key: value * np.where(np.arange(8) < examples, 1.3, 1.01)[:, None] for key, value in reference.items()}

    assert disagreement(wrong(1), reference, "bf16", 0.15) is None
    assert disagreement(wrong(1), reference, "f32", 0.15) is not None
    assert disagreement(wrong(6), reference, "bf16", 0.15) == "off by 3.0e-01, more than 0.15"
