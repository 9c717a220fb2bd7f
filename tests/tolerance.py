"""How far two computations of the same numbers may be apart: derived from how floats are rounded.

The model (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, sections 2.2 and 3.1): each operation
gives its exact result times (1 + d) with |d| <= u, where u is half of the distance from 1 to the next number. A sum of
n products, added in any order, with or without fused multiply-add, is then within gamma(n) * sum of |products| of the
exact one, gamma(n) = n u / (1 - n u).

That is what can happen if all roundings conspire. Taken as independent of each other and of mean zero, those of n
operations exceed LIKELY * sqrt(n) * u * sum of |products| with a chance of at most 2 exp(-LIKELY^2 / 2), which is
Azuma's inequality (N. J. Higham and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci.
Comput. 41, 2019, theorem 2.4). With LIKELY = 8 that is 3e-14 for each number: none in the life of this project.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

LIKELY = 8.0
#: below it float32 has fewer digits, or is taken as zero: an error that no relative bound covers (Higham, section 2.2)
SMALLEST = float(np.finfo(np.float32).tiny)
#: told the largest deviation of each comparison, in parts of what is allowed (see tests.margins)
listeners: list[Callable[[float], None]] = []


@functools.cache
def unit(dtype: Any = np.float32) -> float:
    """u, the largest relative error of a rounding: 6e-8 for float32, 2e-3 for bfloat16."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps) / 2


def gamma(n: float, dtype: Any = np.float32) -> float:
    """What n roundings, one on top of the other, come to at worst, relative."""
    worst = n * unit(dtype)
    assert worst < 1, f"{n} roundings of {np.dtype(dtype)} leave nothing"
    return worst / (1 - worst)


def likely(n: float, dtype: Any = np.float32) -> float:
    """What n independent roundings come to, relative; never more than `gamma`."""
    chance = LIKELY * math.sqrt(n) * unit(dtype) + n * unit(dtype) ** 2
    return min(gamma(n, dtype), chance) if n * unit(dtype) < 1 else chance


def of_product(x: Any, w: Any, dtype: Any = np.float32) -> Any:
    """How far each number of x @ w, computed in a dtype, may be from the exact one."""
    return likely(np.shape(w)[-2], dtype) * (np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64))


def of_sums(
    compute: Callable[..., Any],
    inputs: Sequence[Any],
    which: Sequence[int] | None = None,
    count: float | None = None,
    dtype: Any = np.float32,
) -> Any:
    """How far each sum of products, added in a type in any order, may be from the exact one.

    The sums of the absolute products are what a computation gives of absolute values, the lengths of its sums what it
    gives of ones.

    Args:
        compute: sums of products of its arguments.
        inputs: its arguments.
        which: positions of those that are multiplied and added; else all floats.
        count: the length of the longest sum, where ones do not tell.
        dtype: of floats, or of complex numbers, whose products are two sums of two products each.
    """
    factors = [i for i, each in enumerate(inputs) if np.asarray(each).dtype.kind not in "iubO"]
    factors = list(which) if which is not None else factors

    def of(change: Callable[[Any], Any]) -> Any:
        given = [change(each).astype(each.dtype) if i in factors else each for i, each in enumerate(inputs)]
        made = np.asarray(compute(*given))
        return np.abs(made.astype(np.complex128 if made.dtype.kind == "c" else np.float64))

    if count is None:
        count = float(of(np.ones_like).max(initial=1.0))
    if np.dtype(dtype).kind == "c":
        dtype, count = np.zeros(0, dtype).real.dtype, 2 * count
    return likely(max(1.0, count), dtype) * of(np.abs)


def note(difference: Any, allowed: Any) -> None:
    """Tell whoever listens how much of what is allowed was used."""
    if listeners and np.size(difference):
        with np.errstate(all="ignore"):
            used = np.abs(difference) / allowed
        used = used[np.isfinite(used)]
        for listener in listeners if used.size else ():
            listener(float(used.max()))


def _differences(got: Any, wanted: Any, what: str = "") -> tuple[Any, Any, Any]:
    a, b = np.asarray(got), np.asarray(wanted)
    wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    assert a.shape == b.shape, f"{what}: {a.shape}, not {b.shape}"
    with np.errstate(invalid="ignore"):
        return a, b, np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))


def is_within(got: Any, wanted: Any, allowed: Any) -> bool:
    """What `assert_within` asserts."""
    return bool((_differences(got, wanted)[2] <= allowed).all())


def assert_within(got: Any, wanted: Any, allowed: Any, what: str = "") -> None:
    """Each number is as near to the wanted one as it must be; infinities and NaN are the same.

    Args:
        allowed: the largest absolute difference, for each number or for all.
    """
    a, b, difference = _differences(got, wanted, what)
    allowed = np.broadcast_to(np.asarray(allowed, np.float64), b.shape)
    note(difference, allowed)
    off = ~(difference <= allowed)
    if off.any():
        at = tuple(int(i) for i in np.argwhere(np.atleast_1d(off))[0])
        one = [np.atleast_1d(each)[at] for each in (a, b, difference, allowed)]
        raise AssertionError(
            f"{what}: {int(off.sum())} of {off.size} are further apart than rounding explains; first at {at}: "
            f"{one[0]!r}, not {one[1]!r}: {one[2]:.3g} apart, {one[3]:.3g} allowed"
        )


def of_winograd(x: Any, w: Any, pads: Any, axes: Any) -> Any:
    """How far each number of a convolution of stride 1 by Winograd's algorithm, in float32, may be from the exact one.

    The algorithm is y = A^T [sum over channels of (G w G^T) * (B^T x B)] A. Each of its roundings counts with what it
    is multiplied with until the end, absolute values of the matrices in place of the matrices (B. Barabasz,
    A. Anderson, K. Soodhalter and D. Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for
    Deep Neural Networks", ACM TOMS 46, 2020, theorem 7); those of different points are independent.

    Args:
        x: [N, H, W, C].
        w: [height, width, C, K].
        pads: zeros before and behind, of each dimension of x.
        axes: the algorithm along height and width, with `input_rows`, `filter_rows` and `output_rows`.
    """
    matrices = [
        [np.abs(np.array(rows, np.float64)) for rows in (a.input_rows(), a.filter_rows(), a.output_rows())]
        for a in axes
    ]
    (down_b, down_g, down_a), (across_b, across_g, across_a) = matrices
    padded = np.pad(np.abs(np.asarray(x, np.float64)), pads)
    height, width = (size - axis.window + 1 for size, axis in zip(padded.shape[1:3], axes, strict=True))
    found = np.zeros((len(padded), height, width, np.shape(w)[3]))
    filters = np.einsum("ph,hwck,qw->pqck", down_g, np.abs(np.asarray(w, np.float64)), across_g)
    count = np.shape(w)[2] + 2 * sum(axis.size for axis in axes) + sum(axis.window for axis in axes)
    for top in range(0, height, axes[0].tile):
        for left in range(0, width, axes[1].tile):
            tile = padded[:, top : top + axes[0].size, left : left + axes[1].size]
            rest = [(0, 0), *((0, a.size - n) for a, n in zip(axes, tile.shape[1:3], strict=True)), (0, 0)]
            inputs = np.einsum("ph,nhwc,qw->npqc", down_b, np.pad(tile, rest), across_b)
            points = np.square(np.einsum("npqc,pqck->npqk", inputs, filters))
            made = np.sqrt(np.einsum("hp,npqk,wq->nhwk", np.square(down_a), points, np.square(across_a)))
            target = found[:, top : top + axes[0].tile, left : left + axes[1].tile]
            target[...] = made[:, : target.shape[1], : target.shape[2]]
    return likely(count) * found
