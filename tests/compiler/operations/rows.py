"""Rows of the operation tables: a name, what is fed, and a function of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from toolkit import client as gm
from toolkit.graph import dtypes


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    """Numbers around zero that depend on shape and seed alone."""
    random = np.random.default_rng(zlib.crc32(repr((shape, seed)).encode()))
    values = random.normal(size=shape)
    # through an integer with a sign: what a negative number is without one, each processor says otherwise
    return (values * 20).astype(np.int64).astype(dtype) if np.dtype(dtype).kind in "iu" else values.astype(dtype)


def positive(*shape: int, seed: int = 0) -> Any:
    """Numbers from a half up."""
    return np.abs(numbers(*shape, seed=seed)) + np.float32(0.5)


@dataclass(frozen=True)
class Row:
    """One case.

    Attributes:
        name: unique in its table.
        feeds: shapes, for `numbers` of them, or arrays.
        make: from placeholders to a tensor or a list of them.
        exact: every mode gives the same bits.
    """

    name: str
    feeds: tuple[Any, ...]
    make: Callable[..., Any]
    exact: bool = False

    def build(self) -> tuple[Any, list[Any], dict[str, Any]]:
        """The graph, what to fetch, and what to feed."""
        feeds: dict[str, Any] = {}
        with gm.Graph().as_default() as graph:
            tensors: list[Any] = []
            for index, given in enumerate(self.feeds):
                value: Any = numbers(*cast("tuple[int, ...]", given), seed=index) if isinstance(given, tuple) else given
                feeds[f"x{index}:0"] = value
                tensors.append(gm.placeholder(dtypes.from_numpy(value.dtype), [None] * value.ndim, name=f"x{index}"))
            made: Any = self.make(*tensors)
        fetches: list[Any] = list(cast("list[Any]", made)) if isinstance(made, list | tuple) else [made]
        return graph, fetches, feeds


class Table(dict[str, Row]):
    """Rows by name; none comes twice."""

    def add(self, name: str, feeds: Any, make: Callable[..., Any], *, exact: bool = False) -> None:
        """Add a row; one feed need not be in a tuple of feeds when it is an array."""
        if name in self:
            raise ValueError(f"two rows {name}")
        self[name] = Row(name, tuple(feeds), make, exact)
