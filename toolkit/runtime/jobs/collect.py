"""What the steps of a run gave, put together for --out."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.errors import UsageError


def stack(label: str, values: list[Any]) -> Any:
    """One array with a leading axis of steps.

    Raises:
        UsageError: the steps gave different shapes.
    """
    shapes = {np.shape(v) for v in values}
    if len(shapes) > 1:
        raise UsageError(
            f"'{label}' has different shapes in different steps ({', '.join(map(str, sorted(shapes)))}); "
            "choose --batch so that it divides the data, or fetch something of fixed shape"
        )
    return np.stack(values) if values else np.empty(0)


def join_examples(label: str, values: list[Any]) -> Any:
    """One pass over the data: results per example are joined along the first axis, others stacked."""
    if values and np.ndim(values[0]) and len({np.shape(v)[1:] for v in values}) == 1:
        return np.concatenate(values)
    return stack(label, values)
