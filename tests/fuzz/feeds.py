"""Numbers of every kind to feed: ordinary ones, and those at which arithmetic behaves otherwise."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 1e-40, 3e38, -3e38, 1e30, -1e30, 1e-30, 88.8, -104.0, 16777217.0)


def numbers(rng: random.Random, shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """An array of a random kind.

    Returns: ordinary numbers, half of the time; with a few special ones; of special ones only; all the same.
    """
    dice = np.random.default_rng(rng.randrange(2**32))
    if dtype == "bool":
        return dice.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        limits = np.iinfo(dtype)
        small = dice.integers(0, 5, shape).astype(dtype)
        edges = dice.choice(np.array([limits.min, limits.max, 0, 1], dtype), shape)
        return np.asarray(small if rng.random() < 0.8 else edges, dtype)
    values = np.asarray(dice.normal(0, rng.choice((1.0, 1.0, 1.0, 10.0, 1e-3, 1e4)), shape))
    kind = rng.random()
    with np.errstate(over="ignore", under="ignore"):
        special = dice.choice(np.array(_SPECIAL), shape)
        if kind < 0.25:
            values = np.where(dice.random(shape) < rng.choice((0.001, 0.02, 0.2)), special, values)
        elif kind < 0.3:
            values = np.asarray(special)
        elif kind < 0.35:
            values = np.full(shape, rng.choice(_SPECIAL))
        elif kind < 0.4:
            values = np.zeros(shape)
        return np.asarray(values).astype(dtype)
