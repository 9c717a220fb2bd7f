"""Running a model of `tests.network_models` and comparing it with TensorFlow's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tests import perturbation
from tests.models import Built
from toolkit.formats.models.model import Model, read_model
from toolkit.runtime.jobs.job import run_model
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.saving.saved_model import load_saved_model
from toolkit.runtime.session import Session

Far = Callable[[], Mapping[str, Any]]


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


def far_of_case(built: Built) -> Far:
    """How far two answers of a network may be apart, by label."""
    model = read_model(str(built.path))
    inputs = fed(built.arrays("inputs.npz"))
    if "outputs" not in built.info:
        return far_of_signature(model, inputs)
    feeds = {built.info["inputs"][label]: value for label, value in inputs.items()}
    return far_of_run(model, built.info["outputs"], feeds)


def far_of_run(model: Any, fetches: Mapping[str, Any], feeds: Mapping[Any, Any]) -> Far:
    """The same of a large graph."""

    def far() -> Mapping[str, Any]:
        reaches = perturbation.of_network(model, lambda running: running.run(list(fetches.values()), feeds))
        return dict(zip(fetches, reaches, strict=True))

    return far


def far_of_signature(model: Model, inputs: Mapping[str, Any], key: str = "serving_default", small: bool = False) -> Far:
    """The same of a large signature, or a small one."""
    signature = model.meta.signatures[key]
    fetches, tensors = signature.output_tensors(), signature.input_tensors()

    def work(running: Session) -> list[Any]:
        load_saved_model(running, model)
        return running.run(list(fetches.values()), {tensors[name]: value for name, value in inputs.items()})

    def far() -> Mapping[str, Any]:
        reaches = (perturbation.of_work if small else perturbation.of_network)(model, work)
        return dict(zip(fetches, reaches, strict=True))

    return far


def check_outputs(got: Sequence[Mapping[str, Any]], wanted: Mapping[str, Any], far: Far) -> None:
    """Every output of every computation is TensorFlow's: floats as near as rounding explains, all else exactly."""
    for each in got:
        assert sorted(each) == sorted(wanted)
    # texts have types of their own in files
    results = [[np.asarray(each[label]) for label in wanted] for each in (*got, wanted)]
    same = [
        [a if perturbation.is_rounded(b) else a.astype(b.dtype) for a, b in zip(each, results[-1], strict=True)]
        for each in results
    ]

    def reaches() -> list[Any]:
        found = far()
        return [found[label] for label in wanted]

    perturbation.assert_agree(same, reaches, list(wanted))


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
