"""Rows of a gradient's test: a function, what it is fed, and what is known of TensorFlow's own gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

RNG = np.random.default_rng(7)
X = np.array([[0.3, -0.7, 1.2], [0.9, 0.1, -0.4]], np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)


@dataclass(frozen=True)
class Case:
    """`build` gets a placeholder for each feed; gradients are taken by those of floating or complex type."""

    build: Callable[..., Any]
    feeds: tuple[Any, ...]
    dynamic: bool = True  # also with unknown sizes, which some of TensorFlow's gradients or shape functions cannot do
    run_ours: bool = True
    v1: bool = False  # TensorFlow's own needs control flow of version 1
    #: compared with differences, and why not with TensorFlow's gradient
    why_differences: str = ""


WRONG_ALIGNMENT = "TensorFlow's gradient of the V2 op aligns diagonals as V3 does by default, the op itself to the left"
NOT_CONJUGATED = "TensorFlow's gradient leaves out a conjugate: it is right for real matrices only"
TWICE_AT_0 = "at 0 TensorFlow's gradient is 1, the derivative 1/2"
OTHER_ORDER = "TensorFlow takes the gradient of BlockLSTM, whose gates stand in another order"
DEPRECATED = "TensorFlow refuses the op in graphs of this version"
NO_KERNEL = "TensorFlow has no CPU kernel for it"

CASES: dict[str, Case] = {}
STATIC = ("MatrixDiag", "MatrixSetDiag", "FractionalAvgPool", "ExtractVolumePatches")


def case(name: str, build: Callable[..., Any], *feeds: Any, **options: Any) -> None:
    assert name not in CASES
    options.setdefault("dynamic", not name.startswith(STATIC))
    CASES[name] = Case(build, tuple(np.asarray(f) for f in feeds), **options)


def measure(y: Tensor) -> Tensor | None:
    """A real tensor whose gradient by y is not uniform; None for what has no gradient."""
    kind = y.dtype.base.kind
    if kind == "c":
        part = "float64" if y.dtype.base.name == "complex128" else "float32"
        re, im = ops.real(y, Tout=part), ops.imag(y, Tout=part)
        return re * re + im * im * im + re * 3.0
    return y * y + y * 0.5 if kind == "f" else None


def floats(*shape: int, low: float = -1, high: float = 1, dtype: Any = np.float32) -> np.ndarray:
    return RNG.uniform(low, high, shape).astype(dtype)
