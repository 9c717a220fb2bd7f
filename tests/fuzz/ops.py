"""Single ops with any inputs and attributes (single_ops.py makes them), through `run` in every executor."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz import single_ops
from tests.fuzz.case import Case
from tests.fuzz.executors import LIMITS
from toolkit.errors import GraphmillError

#: what they make has a value in each iteration of a loop, and cannot be fetched; TensorFlow gives the first
_IN_LOOPS = {"Enter", "NextIteration", "RefEnter", "RefNextIteration"}


def cases() -> Callable[[random.Random], Case | None]:
    """A maker of single ops."""
    names = single_ops.ops()
    rows: dict[str, list[Any]] = single_ops.rows()

    def make(rng: random.Random) -> Case | None:
        op = rng.choice(names)
        try:
            made = single_ops._case(rng, op, rows.get(op, []), op)  # pyright: ignore[reportPrivateUsage]
        except (GraphmillError, OverflowError, ValueError, AssertionError):  # what no file can hold
            return None
        if made is None:
            return None
        line = ["run", "model.pb", *(f"--fetch={name}" for name in made.fetches if ":" in name)]
        line += [] if len(line) > 2 else ["--target=node"]
        return Case(
            "ops", op, {"model.pb": made.graph}, [[*line, *LIMITS]],
            executors=True, exact=False, tensorflow=op not in _IN_LOOPS,
        )  # fmt: skip

    return make
