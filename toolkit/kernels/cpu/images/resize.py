"""Resizing images, (N, H, W, C): nearest, bilinear, bicubic, area, and the gradients.

Each method is a set of taps on each spatial axis: output position o is the sum over k of weight[o, k] times
input[index[o, k]]. Positions and weights are float32, as in TensorFlow. Where an output lies in the input:

| align_corners | half_pixel_centers | position of output o |
|---|---|---|
| no | no | o in / out |
| yes | no | o (in - 1) / (out - 1) |
| no | yes | (o + 1/2) in / out - 1/2 |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_room, shape_text, to_ints
from toolkit.kernels.registry import FLOATING, REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: steps of the table of cubic weights between two pixels
_CUBIC_STEPS = 1024


@dataclass(frozen=True, slots=True)
class Grid:
    """How outputs lie over inputs."""

    align_corners: bool
    half_pixel: bool

    @staticmethod
    def of(op: KernelNode) -> Grid:
        """The attributes of a node.

        Raises:
            InvalidArgumentError: both ways at once.
        """
        align = bool(op.attr("align_corners"))
        half = bool(op.attr("half_pixel_centers", False)) if op.has("half_pixel_centers") else False
        require(not (align and half), "If half_pixel_centers is True, align_corners must be False.")
        return Grid(align, half)

    def scale(self, size: int, out: int) -> Array:
        """Input pixels per output pixel, float32."""
        if self.align_corners and out > 1:
            return np.float32(size - 1) / np.float32(out - 1)
        return np.float32(size) / np.float32(out)

    def positions(self, size: int, out: int) -> Array:
        """Where each output lies in the input, float32 [out]."""
        at = np.arange(out, dtype=np.float32)
        if self.half_pixel:
            return (at + np.float32(0.5)) * self.scale(size, out) - np.float32(0.5)
        return at * self.scale(size, out)

    def nearest(self, size: int, out: int) -> Array:
        """The nearest input of each output, int64 [out]."""
        scale = self.scale(size, out)
        at = np.arange(out, dtype=np.float32)
        if self.half_pixel:
            found = np.floor((at + np.float32(0.5)) * scale)
        elif self.align_corners:
            found = np.floor(at * scale + np.float32(0.5))  # halves go up
        else:
            found = np.floor(at * scale)
        return np.clip(found.astype(np.int64), 0, size - 1)

    def linear(self, size: int, out: int) -> tuple[Array, Array, Array]:
        """The inputs below and above each output, int64, and how far it is between them, float32."""
        position = self.positions(size, out)
        floor = np.floor(position)
        upper = np.minimum(np.ceil(position).astype(np.int64), size - 1)
        lower = np.minimum(np.maximum(floor.astype(np.int64), 0), upper)
        return lower, upper, position - floor

    def cubic(self, size: int, out: int) -> tuple[Array, Array]:
        """Indices and weights [out, 4] of Keys' kernel (1981): a = -1/2 with half pixels, else -3/4.

        With half pixels, weights outside the image are dropped and the others scaled to a sum of 1; without, the
        pixels at the border are repeated.
        """
        a = np.float32(-0.5 if self.half_pixel else -0.75)
        position = self.positions(size, out)
        floor = np.floor(position)
        step = np.rint((position - floor) * np.float32(_CUBIC_STEPS)).astype(np.int64)
        near = np.arange(_CUBIC_STEPS + 1, dtype=np.float32) / np.float32(_CUBIC_STEPS)
        far = near + np.float32(1)
        inner = ((a + 2) * near - (a + 3)) * near * near + np.float32(1)
        outer = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a
        weights = np.stack([outer[step], inner[step], inner[_CUBIC_STEPS - step], outer[_CUBIC_STEPS - step]], axis=-1)
        wanted = floor.astype(np.int64)[:, None] + np.arange(-1, 3)
        index = np.clip(wanted, 0, size - 1)
        if self.half_pixel:
            weights = np.where(index == wanted, weights, np.float32(0))
            total = weights.sum(axis=-1, keepdims=True)
            weak = np.abs(total) < 1000 * np.finfo(np.float32).tiny
            weights = np.where(weak, weights, weights / np.where(weak, np.float32(1), total))
        return index, weights.astype(np.float32)

    def area(self, size: int, out: int) -> tuple[Array, Array]:
        """Indices and weights [out, k]: how much of each input an output covers; weight 0 means it does not."""
        scale = self.scale(size, out)
        start = np.arange(out, dtype=np.float32) * scale
        end = np.arange(1, out + 1, dtype=np.float32) * scale
        first = np.floor(start).astype(np.int64)
        width = int(max((np.ceil(end).astype(np.int64) - first).max(initial=1), 1))
        cell = first[:, None] + np.arange(width)
        low = np.maximum(cell, start[:, None])
        high = np.minimum(cell + 1, end[:, None])
        return np.clip(cell, 0, size - 1), np.maximum(high - low, 0).astype(np.float32)


def output_size(size: Array) -> tuple[int, int]:
    """The `size` argument as (height, width).

    Raises:
        InvalidArgumentError: it is no vector of two positive numbers.
    """
    require(np.ndim(size) == 1 and np.size(size) == 2, f"size must be a vector of 2 elements, got {shape_text(size)}")
    height, width = to_ints(size)
    require(height > 0 and width > 0, f"output dimensions must be positive, got {height} x {width}")
    return height, width


def check_images(images: Any) -> None:
    """Refuse what is no batch of images.

    Raises:
        InvalidArgumentError: not four dimensions, or no pixels.
    """
    require_rank(images, 4, "images")
    require(min(images.shape[1:]) > 0, f"input image must be of non-zero size, got {shape_text(images)}")


def spread(weights: Array, axis: int) -> Array:
    """A vector along an axis of (N, H, W, C)."""
    return weights.reshape(-1, *(1,) * (3 - axis))


def apply_taps(x: Array, index: Array, weights: Array, axis: int, *, covered: bool = False) -> Array:
    """One axis resampled: the sum over taps. With `covered`, taps of weight 0 are not looked at."""
    out: Array = 0
    for k in range(index.shape[1]):
        part = np.take(x, index[:, k], axis=axis)
        weight = spread(weights[:, k], axis)
        out = out + (np.where(weight != 0, part * weight, 0) if covered else part * weight)
    return out


def gather_back(dy: Array, index: Array, size: int, axis: int) -> Array:
    """The sum of `dy` over the outputs that have an index, for each of `size` inputs; `index` is ascending."""
    shape = list(dy.shape)
    shape[axis] = size
    out = np.zeros(shape, dy.dtype)
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    where = (slice(None),) * axis + (index[starts],)
    out[where] = np.add.reduceat(dy, starts, axis=axis)
    return out


Resize = Callable[[Array, Grid, int, int], Array]


def nearest(images: Array, grid: Grid, height: int, width: int) -> Array:
    rows, columns = grid.nearest(images.shape[1], height), grid.nearest(images.shape[2], width)
    return images[:, rows[:, None], columns[None, :]]


def bilinear(images: Array, grid: Grid, height: int, width: int) -> Array:
    x = images.astype(np.float32)
    top, bottom, dy = grid.linear(x.shape[1], height)
    left, right, dx = grid.linear(x.shape[2], width)
    dy, dx = spread(dy, 1), spread(dx, 2)
    rows: dict[str, Array] = {}
    for name, at in (("top", top), ("bottom", bottom)):
        line = x[:, at]
        near = line[:, :, left]
        rows[name] = near + (line[:, :, right] - near) * dx
    return rows["top"] + (rows["bottom"] - rows["top"]) * dy


def bicubic(images: Array, grid: Grid, height: int, width: int) -> Array:
    x = images.astype(np.float32)
    return apply_taps(apply_taps(x, *grid.cubic(x.shape[1], height), 1), *grid.cubic(x.shape[2], width), 2)


def area(images: Array, grid: Grid, height: int, width: int) -> Array:
    x = images.astype(np.float32)
    rows = apply_taps(x, *grid.area(x.shape[1], height), 1, covered=True)
    total = apply_taps(rows, *grid.area(x.shape[2], width), 2, covered=True)
    return total * (np.float32(1) / (grid.scale(x.shape[1], height) * grid.scale(x.shape[2], width)))


_METHODS: dict[str, Resize] = {
    "ResizeNearestNeighbor": nearest,
    "ResizeBilinear": bilinear,
    "ResizeBicubic": bicubic,
    "ResizeArea": area,
}


@kernel(*_METHODS, types={"T": REAL})
def resize(op: KernelNode) -> Compute:
    """float32 whatever the images' type; nearest keeps the type."""
    grid, method = Grid.of(op), _METHODS[op.op]

    def compute(images: Array, size: Array) -> Array:
        require_rank(images, 4, "images")
        height, width = output_size(size)
        check_images(images)
        kept = images.dtype if method is nearest else np.float32
        require_room((images.shape[0], height, width, images.shape[3]), kept)
        return method(images, grid, height, width)

    return compute


@kernel("ResizeNearestNeighborGrad", types={"T": REAL})
def nearest_gradient(op: KernelNode) -> Compute:
    grid = Grid.of(op)

    def compute(grads: Array, size: Array) -> Array:
        require_rank(grads, 4, "grads")
        height, width = output_size(size)
        check_images(grads)
        dtype = grads.dtype
        wide = grads.astype(np.float32) if dtype.itemsize == 2 and dtype.kind not in "iu" else grads
        rows = gather_back(wide, grid.nearest(height, grads.shape[1]), height, 1)
        return gather_back(rows, grid.nearest(width, grads.shape[2]), width, 2).astype(dtype, copy=False)

    return compute


def check_gradient(grads: Any, image: Any) -> None:
    """Refuse gradients that are none of an image.

    Raises:
        InvalidArgumentError: the shapes say so.
    """
    require_rank(grads, 4, "grads")
    require_rank(image, 4, "original_image")
    check_images(grads)
    check_images(image)
    require(
        grads.shape[0] == image.shape[0] and grads.shape[3] == image.shape[3],
        f"grads {shape_text(grads)} and original_image {shape_text(image)} must have the same batch and channels",
    )


@kernel("ResizeBilinearGrad", types={"T": FLOATING})
def bilinear_gradient(op: KernelNode) -> Compute:
    grid = Grid.of(op)

    def along(dy: Array, size: int, axis: int) -> Array:
        lower, upper, far = grid.linear(size, dy.shape[axis])
        far = spread(far, axis)
        return gather_back(dy * (1 - far), lower, size, axis) + gather_back(dy * far, upper, size, axis)

    def compute(grads: Array, image: Array) -> Array:
        check_gradient(grads, image)
        return along(along(grads, image.shape[1], 1), image.shape[2], 2).astype(image.dtype)

    return compute


@kernel("ResizeBicubicGrad", types={"T": [dtypes.float32, dtypes.float64]})
def bicubic_gradient(op: KernelNode) -> Compute:
    grid = Grid.of(op)

    def along(dy: Array, size: int, axis: int) -> Array:
        index, weights = grid.cubic(size, dy.shape[axis])
        parts = (gather_back(dy * spread(weights[:, k], axis), index[:, k], size, axis) for k in range(4))
        total: Array = sum(parts)
        return total

    def compute(grads: Array, image: Array) -> Array:
        check_gradient(grads, image)
        return along(along(grads, image.shape[1], 1), image.shape[2], 2).astype(image.dtype)

    return compute
