"""What attention is, in NumPy, with the roundings of the library: for the fake one, and for tests of the real one.

Exponentials are taken of a row's scores less the largest, rounded to the operands' type and multiplied with the values;
the sums are divided by the row's sum of exponentials, which is not of rounded ones (Dao 2023, algorithm 1).
"""

from __future__ import annotations

from typing import Any

import numpy

from toolkit.kernels.cuda.libraries.attention import Attention, AttentionGradient
from toolkit.kernels.types import Array

np: Any = numpy  # generic over dtypes, which its overloads cannot follow


def _wide(x: Array) -> Array:
    return x.astype(np.float32)


def _scores(a: Attention, q: Array, k: Array, mask: Array | None) -> Array:
    made = np.matmul(_wide(q), np.swapaxes(_wide(k), -1, -2)) * np.float32(a.scale)
    if mask is not None:
        made = made + mask
    if a.causal:
        made = np.where(np.tri(*made.shape[-2:], dtype=bool), made, np.float32(-np.inf))
    return made


def attention(
    a: Attention, q: Array, k: Array, v: Array, out: Array, mask: Array | None, statistics: Array | None
) -> None:
    """Compute an attention into `out`, and its statistics, whose last axis repeats one number; all have four axes."""
    with np.errstate(all="ignore"):
        scores = _scores(a, q, k, mask)
        largest = scores.max(-1, keepdims=True)
        shares = np.exp(scores - largest)
        total = shares.sum(-1, keepdims=True)
        made = np.matmul(_wide(shares.astype(q.dtype)), _wide(v)) / total
        out[...] = made.astype(out.dtype)
        if statistics is not None:
            statistics[..., 0] = (np.log(total) + largest)[..., 0]


def gradient(
    g: AttentionGradient,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    d_out: Array,
    statistics: Array,
    dq: Array,
    dk: Array,
    dv: Array,
    mask: Array | None,
) -> None:
    """Compute the gradients of an attention into `dq`, `dk` and `dv`."""
    a = g.forward
    with np.errstate(all="ignore"):
        shares = np.exp(_scores(a, q, k, mask) - statistics[..., :1])
        rounded = _wide(shares.astype(q.dtype))
        total = (_wide(d_out) * _wide(out)).sum(-1, keepdims=True)
        d_shares = np.matmul(_wide(d_out), np.swapaxes(_wide(v), -1, -2))
        d_scores = _wide((shares * (d_shares - total)).astype(q.dtype))
        scale = np.float32(a.scale)
        dv[...] = np.matmul(np.swapaxes(rounded, -1, -2), _wide(d_out)).astype(dv.dtype)
        dq[...] = (np.matmul(d_scores, _wide(k)) * scale).astype(dq.dtype)
        dk[...] = (np.matmul(np.swapaxes(d_scores, -1, -2), _wide(q)) * scale).astype(dk.dtype)
