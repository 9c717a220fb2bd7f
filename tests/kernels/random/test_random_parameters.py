"""Samplers that reject give an answer whatever their parameters are: NaN, infinity, negative, beyond the type."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, run_ours
from toolkit.errors import AbortedError, InvalidArgumentError

HARD = [np.nan, -1.0, -0.5, 0.0, np.inf, -np.inf, 1e-40, 1e38, 3.0]
TWENTY = np.array([20], np.int32)
SEED = np.array([1, 2], np.int64)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.tensorflow
def test_gamma(dtype: Any, tf: ModuleType) -> None:
    with np.errstate(over="ignore"):
        shapes = np.array(HARD, dtype)
    check(Case("RandomGamma", [TWENTY, shapes], {"seed": 3, "seed2": 5}), "CPU")


@pytest.mark.parametrize("dtype", ["float16", "int32", "int64", "float64"])
def test_poisson(dtype: str) -> None:
    """TensorFlow never returns from rates that are above what the results' type holds."""
    attrs = {"seed": 3, "seed2": 5, "dtype": dtype}
    (result,) = run_ours(Case("RandomPoissonV2", [TWENTY, np.array([np.nan, -1, 0, 1e-40, 9, 1e4])], attrs))
    assert result.shape == (20, 6)
    if dtype != "float64":
        with pytest.raises(InvalidArgumentError, match="cannot be drawn from"):
            run_ours(Case("RandomPoissonV2", [TWENTY, np.array([1e300])], attrs))


def test_binomial() -> None:
    counts, chances = (np.array(side) for side in zip(*itertools.product(HARD, HARD), strict=True))
    shape = np.array([20, counts.size], np.int32)
    (result,) = run_ours(Case("StatelessRandomBinomial", [shape, SEED, counts, chances], {"dtype": "float64"}))
    either = np.isnan(counts) & (chances > 0) & (chances < 1)
    assert np.isnan(result[:, either]).all()
    assert (result[:, (counts == 3) & (chances == 0)] == 0).all()


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 5.0, -5.0])
def test_bounds(place: int, value: float) -> None:
    parameters = [0.0, 1.0, -1.0, 1.0]
    parameters[place] = value
    case = Case(
        "ParameterizedTruncatedNormal",
        [TWENTY, *np.array(parameters, np.float32)],
        {"seed": 1, "seed2": 2},
    )
    _, deviation, low, high = parameters
    if np.isfinite(parameters[:2]).all() and deviation > 0 and low < high:
        (result,) = run_ours(case)
        assert ((result >= low) & (result <= high)).all()
    else:
        with pytest.raises(InvalidArgumentError, match="Invalid parameters"):
            run_ours(case)


@pytest.mark.parametrize("weights", [[0.0, 0.0, 1.0], [np.nan, 1.0, 1.0], [-1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
def test_classes_that_never_come(weights: list[float]) -> None:
    attrs = {
        "num_true": 1, "num_sampled": 2, "unique": True, "range_max": 3, "unigrams": weights, "seed": 1, "seed2": 2,
    }  # fmt: skip
    with pytest.raises(InvalidArgumentError, match=r"unique classes|weights"):
        run_ours(Case("FixedUnigramCandidateSampler", [np.array([[0]], np.int64)], attrs))


@pytest.mark.parametrize("quiet", [False, True])
def test_abort_fails_the_step(quiet: bool) -> None:
    with pytest.raises(AbortedError, match="over"):
        run_ours(Case("Abort", [], {"error_msg": "over", "exit_without_error": quiet}))
