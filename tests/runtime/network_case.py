"""Running a model of `tests.network_models` and comparing it with TensorFlow's answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.models import Built
from toolkit.formats.model import Model, read_model
from toolkit.runtime.job import RunOptions, run_model
from toolkit.runtime.session import Session


def run_case(built: Built, **session: Any) -> dict[str, Any]:
    """Our answer to the model's inputs, by label; a SavedModel is run as `run --signature` does it."""
    model = read_model(str(built.path))
    inputs = fed(built.arrays("inputs.npz"))
    if "outputs" not in built.info:
        return run_signature(model, inputs)
    feeds = {built.info["inputs"][label]: value for label, value in inputs.items()}
    with Session(model, **session) as running:
        return running.run(built.info["outputs"], feeds)


def run_signature(model: Model, inputs: dict[str, Any], signature: str = "serving_default") -> dict[str, Any]:
    return run_model(model, RunOptions(feeds=inputs, signature=signature), log=print).outputs


def fed(arrays: dict[str, Any]) -> dict[str, Any]:
    """Arrays of an archive as they are fed: text as objects."""
    return {label: value.astype(object) if value.dtype.kind == "S" else value for label, value in arrays.items()}


def check_outputs(got: dict[str, Any], wanted: dict[str, Any], rtol: float = 1e-3) -> None:
    """Every output is TensorFlow's: floats within `rtol`, everything else exactly.

    A float below a hundredth of its tensor's largest is held to that hundredth: sums that cancel have no more to
    give.
    """
    assert sorted(got) == sorted(wanted)
    for label, reference in wanted.items():
        mine = np.asarray(got[label])
        assert mine.shape == reference.shape, f"{label}: shape {mine.shape}, TensorFlow's {reference.shape}"
        if reference.dtype.kind == "f":
            assert mine.dtype == reference.dtype, label
            assert relative_error(mine, reference) <= rtol, f"{label}: {relative_error(mine, reference):.2e}"
        else:
            np.testing.assert_array_equal(mine.astype(reference.dtype), reference, err_msg=label)


def relative_error(mine: Any, reference: Any) -> float:
    """The largest difference, relative to each value or, for small ones, to a hundredth of the largest."""
    if reference.size == 0:
        return 0.0
    scale = np.maximum(np.abs(reference), 0.01 * np.abs(reference).max())
    difference = np.abs(mine.astype(np.float64) - reference)
    return float((difference / np.where(scale > 0, scale, 1)).max())


def assert_varies(outputs: dict[str, Any]) -> None:
    """The batch's examples have different answers; if they had not, the comparison would prove nothing.

    They must be ten times as far apart as the comparison forgives.
    """
    spreads = [
        np.ptp(value, axis=0).max() / np.abs(value).max()
        for value in outputs.values()
        if value.dtype.kind == "f" and value.ndim and len(value) == 2
    ]
    assert max(spreads) > 0.01, f"the answers to the two examples are all but equal: {spreads}"
