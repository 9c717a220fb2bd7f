"""What questions to a GPU are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.driver import choose


class Question(NamedTuple):
    """Attributes:
    asked: in words.
    answer: finds out, and says it in one line.
    """

    asked: str
    answer: Callable[[CudaDevice], str]


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    """Random numbers, the same each time."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


def in_a_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines)[:400]}"


def is_fake() -> bool:
    """Whether no GPU answers."""
    return type(choose.driver()).__name__.startswith("Fake")
