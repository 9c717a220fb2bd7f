"""Whether an engine's outputs are TensorFlow's, and whether they say anything: they must vary with the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.runtime.networks.network_case import relative_error

#: outputs to different feeds differ at least by this share of the largest, or comparing them would prove little
LEAST_SPREAD = 0.01
#: in reduced precision: how alike the changes of the median example's outputs from feed to feed must be (cosine)
LEAST_COSINE = 0.9


def disagreement(mine: Mapping[str, Any], reference: Mapping[str, Any], precision: str, rtol: float) -> str | None:
    """What is wrong with outputs ("RUN.OUTPUT" to array), or None. Runs that both have are compared.

    In float32 each value must be within `rtol` of the reference (small ones: of a hundredth of the largest). In
    lower precision networks of random weights blow rounding up for a few images, in each engine for others; so there
    the median example must be within `rtol` (sizes of vectors), and its changes from feed to feed be the reference's.
    """
    shared = sorted(set(mine) & set(reference))
    if not shared:
        return "no run to compare"
    for key in shared:
        if mine[key].shape != reference[key].shape:
            return f"shape {mine[key].shape} instead of {reference[key].shape}"
        if not np.isfinite(mine[key]).all():
            return "not finite"
    worst = error(mine, reference, precision)
    if worst > rtol:
        return f"off by {worst:.1e}, more than {rtol:g}"
    if precision != "f32":
        pairs = zip(_changes(mine, shared), _changes(reference, shared), strict=True)
        alike = float(np.median([_cosine(a, b) for a, b in pairs]))
        if alike < LEAST_COSINE:
            return f"changes with the input unlike TensorFlow's: cosine {alike:.2f}"
    return None


def error(mine: Mapping[str, Any], reference: Mapping[str, Any], precision: str) -> float:
    """The error over the runs that both have, in the sense of `disagreement`: the largest, or the median example's."""
    pairs = [(mine[key], reference[key]) for key in sorted(set(mine) & set(reference))]
    if precision == "f32":
        return max(relative_error(a, b) for a, b in pairs)
    return float(np.median([each for a, b in pairs for each in _example_errors(a, b)]))


def varies(outputs: Mapping[str, Any]) -> bool:
    """Whether the outputs of the runs, whose feeds differ, differ."""
    largest = max((float(np.abs(value).max(initial=0)) for value in outputs.values()), default=0.0)
    return max((float(np.ptp(runs, axis=0).max()) for runs in _by_output(outputs)), default=0) > LEAST_SPREAD * largest


def _by_output(outputs: Mapping[str, Any]) -> list[Any]:
    """Each output's values float64[runs, ...]."""
    names: dict[str, list[Any]] = {}
    for key in sorted(outputs):
        names.setdefault(key.partition(".")[2], []).append(outputs[key].astype(np.float64))
    return [np.stack(runs) for runs in names.values()]


def _changes(outputs: Mapping[str, Any], keys: Sequence[str]) -> list[Any]:
    """For each output and example, in each of the runs `keys`, what is left less the mean of the runs."""
    changes: list[Any] = []
    for values in _by_output({key: outputs[key] for key in keys}):
        left = values - values.mean(axis=0)
        changes += list(left.reshape(-1, left.shape[-1] if left.ndim > 2 else left[0].size))
    return changes


def _example_errors(mine: Any, reference: Any) -> list[float]:
    """For each example (along the first axis) the size of its error, relative to the size of its reference."""
    ours, theirs = (
        array.astype(np.float64).reshape(len(array) if array.ndim else 1, -1) for array in (mine, reference)
    )
    sizes = np.linalg.norm(theirs, axis=1)
    return list(np.linalg.norm(ours - theirs, axis=1) / np.where(sizes > 0, sizes, 1))


def _cosine(a: Any, b: Any) -> float:
    sizes = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / sizes if sizes else float(not (a.any() or b.any()))
