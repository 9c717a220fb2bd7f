"""Pools and their gradients, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.kernels.cpu.memory.addresses import aligned
from toolkit.kernels.cpu.nn import pool as nn_pool
from toolkit.kernels.cpu.onednn.cached import KEPT, Kept, is_worth, last, onednn, restored
from toolkit.kernels.cpu.onednn.primitive import FORWARD_TRAINING, Arg, DescriptorQuery, Pooling
from toolkit.kernels.cpu.onednn.windows import PoolGeometry, Shape
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_LOWEST = np.finfo(np.float32).min  # what oneDNN's maxima start with, where the kernels' start with -inf


class _Geometry:
    """What a node's attributes say, to be laid over shapes."""

    def __init__(self, op: KernelNode):
        self.pool = nn_pool.PoolAttributes(op)
        self.target = op.target
        self.first = self.pool.layout.channels_first
        self.algorithm = Pooling.MAX if op.op.startswith("Max") else Pooling.AVG_EXCLUDE_PADDING

    def over(self, x: Shape) -> PoolGeometry | None:
        """The pool of a channels-last input; None for what is empty or pools channels."""
        pool = self.pool
        if pool.depth != 1 or 0 in x:
            return None
        windows = pool.windows(x)
        if 0 in windows.out:
            return None
        return PoolGeometry(
            self.algorithm, x, (x[0], *windows.out, x[-1]), windows.kernel, windows.strides, windows.pads
        )

    def is_worth(self, x: Array) -> bool:
        return x.ndim == self.pool.rank and is_worth(x.size, self.target.kernels.pool)

    def key(self, what: str, x: Shape) -> tuple[Any, ...]:
        spec = self.pool.spec
        return (what, self.algorithm, self.pool.kernel, self.pool.depth, self.first, spec.strides, spec.padding,
                spec.explicit, x)  # fmt: skip


@onednn("MaxPool", "MaxPool3D", numpy=nn_pool.max_pool)
@onednn("AvgPool", "AvgPool3D", numpy=nn_pool.avg_pool)
def pool(op: KernelNode, numpy: Compute) -> Compute:
    geometry = _Geometry(op)
    is_max = geometry.algorithm is Pooling.MAX

    def make(x: Shape) -> tuple[Kept, Shape] | None:
        found = geometry.over(geometry.pool.layout.shape_last(x))
        if found is None:
            return None
        source, target = found.descs()
        return Kept(found.forward(), [(Arg.SRC, source), (Arg.DST, target)], op.target), found.y

    def compute(x: Array) -> Array:
        if not geometry.is_worth(x):
            return numpy(x)
        kept = KEPT.get(geometry.key("pool", x.shape), lambda: make(x.shape))
        if kept is None or (is_max and np.isnan(np.max(x))):  # oneDNN passes over NaN, the maximum does not
            return numpy(x)
        y = np.empty(kept[1], x.dtype)
        kept[0].run(last(x, geometry.target, channels_first=geometry.first), y)
        if is_max and np.min(y) <= _LOWEST:
            return numpy(x)
        return restored(y, geometry.target, channels_first=geometry.first)

    return compute


@onednn("AvgPoolGrad", "AvgPool3DGrad", numpy=nn_pool.avg_pool_grad)
def avg_pool_grad(op: KernelNode, numpy: Compute) -> Compute:
    geometry = _Geometry(op)

    def make(x: Shape, dy: Shape) -> tuple[Kept, Shape] | None:
        found = geometry.over(geometry.pool.layout.shape_last(x)) if min(x) >= 0 else None
        if found is None or geometry.pool.layout.shape_last(dy) != found.y:
            return None
        target, source = found.descs()
        primitive = found.backward(found.forward(kind=FORWARD_TRAINING))
        return Kept(primitive, [(Arg.DIFF_DST, source), (Arg.DIFF_SRC, target)], op.target), found.x

    def compute(sizes: Array, dy: Array) -> Array:
        if not geometry.is_worth(dy) or sizes.shape != (geometry.pool.rank,):
            return numpy(sizes, dy)
        x = tuple(sizes.tolist())
        kept = KEPT.get((geometry.key("gradient", x), dy.shape), lambda: make(x, dy.shape))
        if kept is None:
            return numpy(sizes, dy)
        dx = np.empty(kept[1], dy.dtype)
        kept[0].run(last(dy, geometry.target, channels_first=geometry.first), dx)
        return restored(dx, geometry.target, channels_first=geometry.first)

    return compute


@onednn("MaxPoolGrad", numpy=nn_pool.max_pool_grad)
def max_pool_grad(op: KernelNode, numpy: Compute) -> Compute:
    """The forward pool is run again for the positions of the maxima."""
    geometry = _Geometry(op)

    def make(x: Shape, dy: Shape) -> tuple[Kept, Kept, PoolGeometry, int] | None:
        found = geometry.over(geometry.pool.layout.shape_last(x))
        if found is None or geometry.pool.layout.shape_last(dy) != found.y:
            return None
        big, small = found.descs()
        forward = found.forward(kind=FORWARD_TRAINING)
        where = forward.desc(DescriptorQuery.WORKSPACE)
        again = Kept(forward, [(Arg.SRC, big), (Arg.DST, small), (Arg.WORKSPACE, where)], op.target)
        arguments = [(Arg.DIFF_DST, small), (Arg.WORKSPACE, where), (Arg.DIFF_SRC, big)]
        back = Kept(found.backward(forward), arguments, op.target)
        return again, back, found, where.size

    def compute(x: Array, y: Array, dy: Array) -> Array:
        if not geometry.is_worth(x) or y.shape != dy.shape or dy.ndim != x.ndim:
            return numpy(x, y, dy)
        kept = KEPT.get((geometry.key("gradient", x.shape), dy.shape), lambda: make(x.shape, dy.shape))
        if kept is None or np.isnan(np.max(x)):
            return numpy(x, y, dy)
        again, back, found, size = kept
        maxima, dx = np.empty(found.y, x.dtype), np.empty(found.x, dy.dtype)
        where = aligned(size)
        again.run(last(x, geometry.target, channels_first=geometry.first), maxima, where)
        if np.min(maxima) <= _LOWEST:
            return numpy(x, y, dy)
        back.run(last(dy, geometry.target, channels_first=geometry.first), where, dx)
        return restored(dx, geometry.target, channels_first=geometry.first)

    return compute
