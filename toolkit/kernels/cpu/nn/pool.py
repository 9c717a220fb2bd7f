"""Max and average pools over two or three spatial axes, with their first and second gradients.

Padding never takes part: maxima and averages are over the elements of a window that lie in the input. Among equal
maxima the first in row-major order receives the gradient.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.nn.window import Layout, Windows, WindowSpec, widen, window_spec
from toolkit.kernels.registry import FLOATING, INDEX, REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_MAX_FORWARD = REAL - {dtypes.uint32, dtypes.uint64}
_MAX_3D = {dtypes.float16, dtypes.bfloat16, dtypes.float32}


def lowest(dtype: Any) -> Any:
    """The smallest value of a type, the identity of max."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return dtype.type(-np.inf)


class PoolAttributes:
    """What the attributes of a pooling node say."""

    def __init__(self, op: KernelNode, ksize: Sequence[int] | None = None, strides: Sequence[int] | None = None):
        self.op = op
        rank = 5 if "3D" in op.op else 4
        self.rank = rank
        self.layout = Layout.of(op, "NDHWC" if rank == 5 else "NHWC") if _has_layout(op) else Layout(False)
        sizes: list[int] = list(op.attr("ksize") if ksize is None else ksize)
        steps: list[int] = list(op.attr("strides") if strides is None else strides)
        for name, values in (("ksize", sizes), ("strides", steps)):
            if len(values) != rank:
                raise InvalidArgumentError(f"{name} must have {rank} entries, not {len(values)}", node=op.name)
            if min(values) <= 0:
                raise InvalidArgumentError(f"{name} must be positive, not {values}", node=op.name)
        batch, self.depth = self.layout.batch_and_channel(sizes)
        batch_step, depth_step = self.layout.batch_and_channel(steps)
        if batch != 1 or batch_step != 1:
            raise UnimplementedError("pooling over the batch dimension is not supported", node=op.name)
        self.kernel = self.layout.spatial(sizes)
        if self.depth != depth_step and (self.depth != 1 or depth_step != 1):
            raise UnimplementedError("a depth window must be as wide as its stride", node=op.name)
        if self.depth > 1 and max(self.kernel) > 1:
            raise UnimplementedError("pooling over depth and space at once is not supported", node=op.name)
        plain = list(steps)
        plain[1 if self.layout.channels_first else -1] = 1
        self.spec: WindowSpec = window_spec(op, self.layout, plain, rank)

    def windows(self, shape: Sequence[int]) -> Windows:
        """The windows over a channels-last input shape."""
        if len(shape) != self.rank:
            raise InvalidArgumentError(
                f"the input must be {self.rank}-dimensional, not of shape {list(shape)}", node=self.op.name
            )
        return self.spec.over(shape[1:-1], self.kernel)

    def last(self, x: Array) -> Array:
        """Channels-last, its rank checked."""
        if x.ndim != self.rank:
            raise InvalidArgumentError(
                f"the input must be {self.rank}-dimensional, not of shape {list(x.shape)}", node=self.op.name
            )
        return self.layout.last(x)

    def check_second(self, x: Any, grad: Any, argmax: Any) -> None:
        """Refuse what a second gradient by places cannot be computed of.

        Raises:
            InvalidArgumentError: the gradient is not like the input, or the places not like the output.
        """
        windows = self.windows(x.shape)
        if grad.shape != x.shape:
            raise InvalidArgumentError(
                f"grad must have the shape of input, {list(x.shape)}, not {list(grad.shape)}", node=self.op.name
            )
        self.check_like_output("argmax", argmax.shape, x.shape[0], windows, x.shape[-1])

    def by_depth(self, x: Array) -> Array:
        """A depth window as a new last axis."""
        if x.shape[-1] % self.depth:
            raise UnimplementedError(
                f"a depth window of {self.depth} must divide the depth {x.shape[-1]}", node=self.op.name
            )
        return x.reshape(*x.shape[:-1], x.shape[-1] // self.depth, self.depth)

    def check_like_output(self, name: str, shape: Sequence[int], batch: int, windows: Windows, depth: int) -> None:
        expected = (batch, *windows.out, depth)
        if tuple(shape) != expected:
            raise InvalidArgumentError(
                f"{name} must have the shape of the output, {list(expected)} (channels last), not {list(shape)}",
                node=self.op.name,
            )


def _has_layout(op: KernelNode) -> bool:
    return "data_format" in op.node.op_def.attrs


def max_forward(x: Array, windows: Windows) -> Array:
    """(N, out..., C) maxima; NaN wins, as in TensorFlow."""
    y = np.full((x.shape[0], *windows.out, x.shape[-1]), lowest(x.dtype), x.dtype)
    padded = windows.pad(x, lowest(x.dtype))
    for _, where in windows.taps():
        np.maximum(y, padded[where], out=y)
    return y


def max_tap(x: Array, windows: Windows) -> tuple[Array, Array]:
    """The maxima and, for each, which tap of its window (row-major) has it first."""
    shape = (x.shape[0], *windows.out, x.shape[-1])
    best = np.full(shape, lowest(x.dtype), x.dtype)
    tap_of = np.full(shape, -1, np.int64)
    inside = np.zeros((1, *windows.padded_shape(1, 1)[1:-1], 1), bool)
    inside[windows.interior] = True
    padded = windows.pad(x, lowest(x.dtype))
    for number, (_, where) in enumerate(windows.taps()):
        value = padded[where]
        better = ((value > best) | (tap_of < 0)) & inside[where]
        np.copyto(best, value, where=better)
        np.copyto(tap_of, number, where=better)
    return best, tap_of


def tap_positions(tap_of: Array, windows: Windows, shape: Sequence[int], *, with_batch: bool = True) -> Array:
    """Flat channels-last positions in the input of the chosen taps, (N, out..., C) int64."""
    positions: Array = np.zeros(tap_of.shape, np.int64)
    if with_batch:
        positions += np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1))
    steps: Array = np.unravel_index(np.maximum(tap_of, 0), windows.kernel)
    for axis, step in enumerate(steps):
        start: Array = np.arange(windows.out[axis]) * windows.strides[axis] - windows.pads[axis][0]
        grid = start.reshape(-1, *(1,) * (len(shape) - 2 - axis))
        positions = positions * shape[axis + 1] + grid + step * windows.dilations[axis]
    return positions * shape[-1] + np.arange(shape[-1])


def scatter_add(positions: Array, values: Array, size: int) -> Array:
    """A vector with `values` added at `positions`, in the values' type."""
    if values.dtype.kind == "f" and values.dtype.itemsize >= 4:
        return np.bincount(positions.ravel(), values.ravel(), size).astype(values.dtype)
    out = np.zeros(size, values.dtype)
    np.add.at(out, positions.ravel(), values.ravel())
    return out


@kernel("MaxPool", types={"T": _MAX_FORWARD})
@kernel("MaxPool3D", types={"T": _MAX_3D})
def max_pool(op: KernelNode) -> Compute:
    return _max_pool(PoolAttributes(op))


@kernel("MaxPoolV2", types={"T": _MAX_FORWARD})
def max_pool_v2(op: KernelNode) -> Compute:
    def compute(x: Array, ksize: Array, strides: Array) -> Array:
        return _max_pool(PoolAttributes(op, vector_of_four(op, ksize), vector_of_four(op, strides)))(x)

    return compute


def vector_of_four(op: KernelNode, values: Array) -> list[int]:
    """Sizes or steps of windows that are an input."""
    if values.size != 4:
        raise InvalidArgumentError(f"ksize and strides must have 4 elements, not {list(values.shape)}", node=op.name)
    return [int(v) for v in values.reshape(-1)]


def _max_pool(pool: PoolAttributes) -> Compute:
    def compute(x: Array) -> Array:
        last = pool.last(x)
        windows = pool.windows(last.shape)
        if pool.depth > 1:
            return pool.layout.restore(pool.by_depth(last).max(axis=-1))
        return pool.layout.restore(max_forward(last, windows))

    return compute


def _grad_of_equals(x: Array, y: Array, dy: Array, windows: Windows) -> Array:
    """The 3-D gradient goes to every element within 1e-5 of its window's maximum, as TensorFlow has it."""
    padded = windows.pad(widen(x), -np.inf)
    outputs, grads = widen(y), widen(dy)
    dx = np.zeros(padded.shape, grads.dtype)
    for _, where in windows.taps():
        dx[where] += np.where(np.abs(padded[where] - outputs) < 1e-5, grads, 0)
    return np.ascontiguousarray(dx[windows.interior])


def _max_pool_grad(pool: PoolAttributes) -> Compute:
    """Each output's gradient goes to the input that was its maximum."""

    def compute(x: Array, y: Array, dy: Array) -> Array:
        last, grads = pool.last(x), pool.last(dy)
        windows = pool.windows(last.shape)
        if pool.depth > 1:
            raise UnimplementedError("the gradient of a depthwise max pool is not supported", node=pool.op.name)
        pool.check_like_output("orig_output", pool.last(y).shape, last.shape[0], windows, last.shape[-1])
        pool.check_like_output("grad", grads.shape, last.shape[0], windows, last.shape[-1])
        if pool.rank == 5:
            dx = _grad_of_equals(last, pool.last(y), grads, windows)
            return pool.layout.restore(dx.astype(dy.dtype, copy=False))
        _, tap_of = max_tap(last, windows)
        positions = tap_positions(tap_of, windows, last.shape)
        dx = scatter_add(positions, widen(grads), last.size).reshape(last.shape)
        return pool.layout.restore(dx.astype(dy.dtype, copy=False))

    return compute


@kernel("MaxPoolGrad", types={"T": REAL})
@kernel("MaxPool3DGrad", types={"T": _MAX_3D, "TInput": _MAX_3D})
def max_pool_grad(op: KernelNode) -> Compute:
    return _max_pool_grad(PoolAttributes(op))


@kernel("MaxPoolGradV2", types={"T": REAL})
def max_pool_grad_v2(op: KernelNode) -> Compute:
    def compute(x: Array, y: Array, dy: Array, ksize: Array, strides: Array) -> Array:
        return _max_pool_grad(PoolAttributes(op, vector_of_four(op, ksize), vector_of_four(op, strides)))(x, y, dy)

    return compute


def _max_pool_grad_grad(pool: PoolAttributes) -> Compute:
    """The second gradient picks, for each output, the input's gradient at the maximum."""

    def compute(x: Array, y: Array, ddx: Array) -> Array:
        last, grads, outputs = pool.last(x), pool.last(ddx), pool.last(y)
        windows = pool.windows(last.shape)
        if pool.depth > 1:
            raise UnimplementedError("the gradient of a depthwise max pool is not supported", node=pool.op.name)
        pool.check_like_output("orig_output", outputs.shape, last.shape[0], windows, last.shape[-1])
        if grads.shape != last.shape:
            raise InvalidArgumentError(
                f"grad must have the shape of orig_input, {list(last.shape)} (channels last), not {list(grads.shape)}",
                node=pool.op.name,
            )
        _, tap_of = max_tap(last, windows)
        return pool.layout.restore(grads.ravel()[tap_positions(tap_of, windows, last.shape)])

    return compute


@kernel("MaxPoolGradGrad", "MaxPool3DGradGrad", types={"T": REAL})
def max_pool_grad_grad(op: KernelNode) -> Compute:
    return _max_pool_grad_grad(PoolAttributes(op))


@kernel("MaxPoolGradGradV2", types={"T": REAL})
def max_pool_grad_grad_v2(op: KernelNode) -> Compute:
    def compute(x: Array, y: Array, ddx: Array, ksize: Array, strides: Array) -> Array:
        return _max_pool_grad_grad(PoolAttributes(op, vector_of_four(op, ksize), vector_of_four(op, strides)))(
            x, y, ddx
        )

    return compute


@kernel("MaxPoolWithArgmax", types={"T": REAL, "Targmax": INDEX})
def max_pool_with_argmax(op: KernelNode) -> Compute:
    """Maxima and their flat positions, in the whole tensor or (the default) within their example."""
    pool = PoolAttributes(op)
    with_batch: bool = op.attr("include_batch_in_index")
    dtype = op.attr("Targmax").numpy

    def compute(x: Array) -> tuple[Array, Array]:
        last = pool.last(x)
        windows = pool.windows(last.shape)
        require(last.size > 0, f"tensor_in must not be empty, got shape {shape_text(x)}")
        best, tap_of = max_tap(last, windows)
        return best, tap_positions(tap_of, windows, last.shape, with_batch=with_batch).astype(dtype)

    return compute


@kernel("MaxPoolGradWithArgmax", types={"T": REAL, "Targmax": INDEX})
def max_pool_grad_with_argmax(op: KernelNode) -> Compute:
    pool = PoolAttributes(op)
    with_batch: bool = op.attr("include_batch_in_index")

    def compute(x: Array, dy: Array, argmax: Array) -> Array:
        last = pool.last(x)
        windows = pool.windows(last.shape)
        pool.check_like_output("grad", dy.shape, last.shape[0], windows, last.shape[-1])
        pool.check_like_output("argmax", argmax.shape, last.shape[0], windows, last.shape[-1])
        positions: Array = argmax.astype(np.int64)
        if not with_batch:
            per_example = last.size // max(last.shape[0], 1)
            positions = positions + np.arange(last.shape[0]).reshape(-1, 1, 1, 1) * per_example
        if positions.size and (positions.min() < 0 or positions.max() >= last.size):
            raise InvalidArgumentError(
                f"Invalid input_backprop: an index in argmax is outside [0, {last.size})", node=op.name
            )
        return scatter_add(positions, widen(dy), last.size).reshape(last.shape).astype(x.dtype, copy=False)

    return compute


@kernel("MaxPoolGradGradWithArgmax", types={"T": FLOATING, "Targmax": INDEX})
def max_pool_grad_grad_with_argmax(op: KernelNode) -> Compute:
    """The second gradient picks, for each output, the gradient at the place of its maximum.

    TensorFlow has this kernel for GPUs only; the meaning is that of its kernel there.
    """
    pool = PoolAttributes(op)
    with_batch: bool = op.attr("include_batch_in_index")

    def compute(x: Array, grad: Array, argmax: Array) -> Array:
        pool.check_second(x, grad, argmax)
        positions: Array = argmax.astype(np.int64)
        if not with_batch:
            per_example = grad.size // max(grad.shape[0], 1)
            positions = positions + np.arange(grad.shape[0]).reshape(-1, 1, 1, 1) * per_example
        if positions.size and (positions.min() < 0 or positions.max() >= grad.size):
            raise InvalidArgumentError(f"an index in argmax is outside [0, {grad.size})", node=op.name)
        return grad.reshape(-1)[positions]

    return compute


# -- averages --------------------------------------------------------------------------------------------------


def counts(windows: Windows, dtype: Any) -> Array:
    """How many elements of each window lie in the input, (1, out..., 1)."""
    total = np.ones((1,) * (len(windows.out) + 2), dtype)
    for axis, (n, k, s, (before, _), o) in enumerate(
        zip(windows.sizes, windows.kernel, windows.strides, windows.pads, windows.out, strict=True)
    ):
        start: Array = np.arange(o) * s - before
        inside = np.minimum(start + k, n) - np.maximum(start, 0)
        shape = [1] * total.ndim
        shape[axis + 1] = o
        total = total * inside.reshape(shape).astype(dtype)
    return total


@kernel("AvgPool", "AvgPool3D", types={"T": FLOATING})
def avg_pool(op: KernelNode) -> Compute:
    pool = PoolAttributes(op)
    if pool.depth > 1:
        raise UnimplementedError("average pooling over depth is not supported", node=op.name)

    def compute(x: Array) -> Array:
        last = pool.last(x)
        windows = pool.windows(last.shape)
        padded = windows.pad(widen(last))
        y = np.zeros((last.shape[0], *windows.out, last.shape[-1]), padded.dtype)
        for _, where in windows.taps():
            y += padded[where]
        y /= counts(windows, padded.dtype)
        return pool.layout.restore(y.astype(x.dtype, copy=False))

    return compute


@kernel("AvgPoolGrad", "AvgPool3DGrad", types={"T": FLOATING})
def avg_pool_grad(op: KernelNode) -> Compute:
    pool = PoolAttributes(op)
    if pool.depth > 1:
        raise UnimplementedError("average pooling over depth is not supported", node=op.name)

    def compute(sizes: Array, dy: Array) -> Array:
        if sizes.shape != (pool.rank,):
            raise InvalidArgumentError(
                f"orig_input_shape must be a vector of {pool.rank}, not of shape {list(sizes.shape)}", node=op.name
            )
        shape = pool.layout.shape_last([int(v) for v in sizes])
        grads = pool.last(dy)
        windows = pool.windows(shape)
        pool.check_like_output("grad", grads.shape, shape[0], windows, shape[-1])
        wide = widen(grads)
        share = wide / counts(windows, wide.dtype)
        dx = np.zeros(windows.padded_shape(shape[0], shape[-1]), wide.dtype)
        for _, where in windows.taps():
            dx[where] += share
        return pool.layout.restore(np.ascontiguousarray(dx[windows.interior]).astype(dy.dtype, copy=False))

    return compute
