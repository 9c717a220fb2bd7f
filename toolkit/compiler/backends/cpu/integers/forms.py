"""How constant weights meet their input: as a filter, or as a matrix; and which of them meet which numbers."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from toolkit.compiler.ir.operations.products import ConvolutionWindows


@dataclass(frozen=True, slots=True)
class MatrixForm:
    """How a matrix [inner, columns] meets its input.

    Attributes:
        transpose: the input is [inner, rows], else [rows, inner].
    """

    transpose: bool = False


Form = ConvolutionWindows | MatrixForm


def per_output(form: Form, weights: Any) -> Any:
    """Weights int64 [products added, outputs]."""
    wide = weights.astype(np.int64)
    if isinstance(form, MatrixForm):
        return wide
    return wide.reshape(-1, weights.shape[-1] * (weights.shape[-2] if form.depthwise else 1))


def correction(form: Form, weights: Any, shape: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """int32: the sum of the weights that meet a number, not padding, at each place of a result (batch left out).

    Args:
        shape: of the input.
        out: of the result.
    """
    wide = weights.astype(np.int64)
    if isinstance(form, MatrixForm):
        return wide.sum(axis=0).astype(np.int32)
    spatial = wide.shape[:-2]
    taps = wide.reshape(*spatial, -1) if form.depthwise else wide.sum(axis=-2)
    if not any(map(any, form.padding)):
        return taps.reshape(-1, taps.shape[-1]).sum(axis=0).astype(np.int32)
    total = np.zeros(out[1:], np.int64)
    for tap in product(*map(range, spatial)):
        meets = np.ones((1,) * len(spatial), bool)
        for axis, (t, stride, dilation, (before, _)) in enumerate(
            zip(tap, form.strides, form.dilations, form.padding, strict=True)
        ):
            at = np.arange(out[1 + axis]) * stride + t * dilation - before
            inside = (at >= 0) & (at < shape[1 + axis])
            meets = meets & inside.reshape([-1 if d == axis else 1 for d in range(len(spatial))])
        total += meets[..., None] * taps[tap]
    return total.astype(np.int32)
