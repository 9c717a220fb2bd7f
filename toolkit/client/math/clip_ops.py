"""Limiting values and norms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops

Slices = Tensor | IndexedSlices | None


def clip_by_value(t: TensorLike, low: TensorLike, high: TensorLike, name: str | None = None) -> Tensor:
    """min(max(t, low), high)."""
    with name_scope(name, "clip_by_value", [t, low, high]) as scope:
        return ops.maximum(ops.minimum(convert_to_tensor(t), high), low, name=scope)


def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: Sequence[int] | TensorLike | None = None, name: str | None = None
) -> Any:
    """t, a tensor or IndexedSlices, scaled down so that its L2 norm (along `axes`) is at most clip_norm."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name="t")
        limit: Any = clip_norm
        if not hasattr(limit, "graph") and np.ndim(limit) == 0:
            limit = max(limit, 0)
        else:
            limit = math_ops.cast(ops.maximum(limit, 0), values.dtype)
        squares = math_ops.reduce_sum(values * values, axes, keepdims=True)
        positive = squares > 0
        root = ops.sqrt(ops.select(positive, squares, array_ops.ones_like(squares)))  # its gradient at 0 is not NaN
        norm = ops.select(positive, root, squares)
        clipped = array_ops.identity(values * limit / ops.maximum(norm, limit), name=scope)
        return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else clipped


def global_norm(tensors: Sequence[Slices], name: str | None = None) -> Tensor:
    """The L2 norm of all values together; None entries do not count."""
    present = [t for t in tensors if t is not None]
    with name_scope(name, "global_norm", present):
        halves: list[Tensor] = []
        for t in present:
            values = t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)
            with get_default_graph().colocate_with(values.op):
                halves.append(nn_ops.l2_loss(values))
        half = math_ops.reduce_sum(array_ops.stack(halves))
        return ops.sqrt(half * constant(np.array(2, half.dtype.base.numpy)), name="global_norm")


def clip_by_global_norm(
    tensors: Sequence[Slices], clip_norm: TensorLike, use_norm: Tensor | None = None, name: str | None = None
) -> tuple[list[Slices], Tensor]:
    """All tensors scaled by clip_norm / max(norm, clip_norm), with their norm; not finite when the norm is not."""
    norm = global_norm(tensors) if use_norm is None else use_norm
    present = [t for t in tensors if t is not None]
    with name_scope(name, "clip_by_global_norm", present):
        limit = convert_to_tensor(clip_norm, norm.dtype.base)
        scale = limit * ops.minimum(1.0 / norm, constant(np.array(1, norm.dtype.base.numpy)) / limit)
        scale = scale + (norm - norm)  # NaN when the norm is infinite, so that nobody trains on
        out: list[Slices] = []
        for i, t in enumerate(tensors):
            if t is None:
                out.append(None)
                continue
            values = t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)
            with get_default_graph().colocate_with(values.op):
                scaled = array_ops.identity(values * math_ops.cast(scale, values.dtype), name=f"{i}_clipped")
            out.append(IndexedSlices(scaled, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else scaled)
        return out, norm
