"""Rows of the numeric check: an op, a function that has it, and what the function is fed, away from kinks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.client.construction.context import get_default_graph

BY_ZERO = "the gradient of a product is divided by its factors, in TensorFlow too: there is no second where one is 0"
RNG = np.random.default_rng(11)


@dataclass(frozen=True)
class Row:
    """`build` gets a placeholder for each feed.

    Attributes:
        single: computed in float32, for the op has no wider kernel.
        inaccurate: how many times the roundings of arithmetic the op is good to, where it is an approximation.
        nothing: no gradient arrives: that is what is to be seen.
        variables: the feeds that are variables' values; `build` gets the variables.
        first_only: why there is no second order here, where all ops would have one.
    """

    op: str
    about: str
    build: Callable[..., Any]
    feeds: tuple[Any, ...]
    single: bool = False
    inaccurate: float = 1.0  # arithmetic, unless a row says more
    nothing: bool = False
    variables: int = 0
    first_only: str = ""


ROWS: dict[str, list[Row]] = {}


def row(op: str, build: Callable[..., Any], *feeds: Any, about: str = "", **options: Any) -> None:
    """Add a row for an op; floats are fed as float64, or as float32 where `single`."""
    single = options.get("single", False)
    given = tuple(_narrow(np.asarray(f)) if single else np.asarray(f) for f in feeds)
    ROWS.setdefault(op, []).append(Row(op, about, build, given, **options))


def _narrow(value: np.ndarray) -> np.ndarray:
    return value.astype({"float64": "float32", "complex128": "complex64"}.get(value.dtype.name, value.dtype))


def u(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Random numbers of a range."""
    return RNG.uniform(low, high, shape)


def positive(*shape: int) -> np.ndarray:
    """Random numbers between 0.3 and 1.5."""
    return RNG.uniform(0.3, 1.5, shape)


def off_zero(*shape: int) -> np.ndarray:
    """Random numbers of either sign, none near 0."""
    return RNG.uniform(0.3, 1.5, shape) * RNG.choice([-1.0, 1.0], shape)


def apart(*shape: int, step: float = 0.0) -> np.ndarray:
    """Numbers in random order, no two near each other: which is the largest stays so, whatever a difference adds.

    Args:
        step: how far they are apart; otherwise they fill -1 to 1.
    """
    count = int(np.prod(shape))
    return (RNG.permutation(count).reshape(shape) - (count - 1) / 2) * (step or 2 / max(count, 1))


def z(*shape: int) -> np.ndarray:
    """Random complex numbers."""
    return u(*shape) + 1j * u(*shape)


def of_version(version: int, build: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose graph is of an older version, which still has the op."""

    def built(*xs: Any) -> Any:
        get_default_graph().core.versions.producer = version
        return build(*xs)

    return built
