"""ScaleAndTranslate: resampling with a kernel that widens when it shrinks, and its gradient.

Output pixel o of an axis is a weighted mean of the inputs around (o + 1/2 - translation) / scale; with antialias the
kernel is stretched by 1 / scale when that is over 1.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, require_room, require_vector, to_ints
from toolkit.kernels.registry import REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_F = np.float32


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def weight(x: Array) -> Array:
        near = x <= _F(1e-3)
        safe = np.where(near, _F(1), x) * _F(np.pi)
        value = _F(radius) * np.sin(safe) * np.sin(safe / _F(radius)) / (safe * safe)
        return np.where(x > radius, _F(0), np.where(near, _F(1), value))

    return weight


def _gaussian(x: Array) -> Array:
    sigma = _F(0.5)  # a third of the radius
    return np.where(x >= 1.5, _F(0), np.exp(-x * x / (2 * sigma * sigma)))


def _box(x: Array) -> Array:
    return np.where(x < 0.5, _F(1), np.where(x == 0.5, _F(0.5), _F(0)))


def _triangle(x: Array) -> Array:
    return np.maximum(_F(1) - x, _F(0))


def _cubic(b: float, c: float) -> Callable[[Array], Array]:
    """The family of Mitchell and Netravali (1988)."""
    p0, p2, p3 = (6 - 2 * b) / 6, (-18 + 12 * b + 6 * c) / 6, (12 - 9 * b - 6 * c) / 6
    q0, q1, q2, q3 = (8 * b + 24 * c) / 6, (-12 * b - 48 * c) / 6, (6 * b + 30 * c) / 6, (-b - 6 * c) / 6

    def weight(x: Array) -> Array:
        inner = (_F(p3) * x + _F(p2)) * x * x + _F(p0)
        outer = ((_F(q3) * x + _F(q2)) * x + _F(q1)) * x + _F(q0)
        return np.where(x < 1, inner, np.where(x < 2, outer, _F(0)))

    return weight


#: name to (radius, weight at a distance >= 0)
KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, _gaussian),
    "box": (1, _box),
    "triangle": (1, _triangle),
    "keyscubic": (2, _cubic(0, 0.5)),
    "mitchellcubic": (2, _cubic(1 / 3, 1 / 3)),
}


def axis_weights(kind: str, size: int, out: int, scale: float, translation: float, antialias: bool) -> Array:
    """The weights of every input for every output of an axis, float32 [out, size].

    Outputs that lie outside the input have no weight at all.
    """
    radius, weight_at = KERNELS[kind]
    inverse = _F(1) / _F(scale)
    stretch = max(inverse, _F(1)) if antialias else _F(1)
    sample = (np.arange(out, dtype=_F) + _F(0.5)) * inverse - inverse * _F(translation)
    cells = np.arange(size, dtype=_F)
    reach = _F(radius) * stretch
    first = np.clip(np.ceil(sample - reach - _F(0.5)), 0, size - 1)
    last = np.clip(np.floor(sample + reach - _F(0.5)), 0, size - 1)
    weights = weight_at(np.abs(cells + _F(0.5) - sample[:, None]) / stretch)
    used = (cells >= first[:, None]) & (cells <= last[:, None])
    weights = np.where(used & ((sample >= 0) & (sample <= size))[:, None], weights, _F(0)).astype(_F)
    total = weights.sum(axis=1, keepdims=True)
    strong = np.abs(total) >= 1000 * np.finfo(_F).tiny
    return weights * np.where(strong, _F(1) / np.where(strong, total, _F(1)), _F(0 if size == 0 else 1))


def _arguments(op: KernelNode) -> Callable[..., tuple[Array, Array]]:
    kind, antialias = op.text("kernel_type"), bool(op.attr("antialias"))
    require(kind in KERNELS, f"kernel_type must be one of {', '.join(KERNELS)}, not '{kind}'")

    def weights(sizes: tuple[int, int], outs: tuple[int, int], scale: Array, translation: Array) -> tuple[Array, Array]:
        for name, value in (("scale", scale), ("translation", translation)):
            require_vector(value, name)
            require(value.size == 2, f"{name} must have two elements, got {value.size}")
        require((scale > 0).all(), f"scale must be greater than zero, got {scale.tolist()}")
        rows, columns = (
            axis_weights(kind, size, out, float(s), float(t), antialias)
            for size, out, s, t in zip(sizes, outs, scale, translation, strict=True)
        )
        return rows, columns

    return weights


@kernel("ScaleAndTranslate", types={"T": REAL})
def scale_and_translate(op: KernelNode) -> Compute:
    """float32, whatever the images' type."""
    weights = _arguments(op)

    def compute(images: Array, size: Array, scale: Array, translation: Array) -> Array:
        require_rank(images, 4, "images")
        require_vector(size, "size")
        require(size.size == 2, f"size must have two elements, got {size.size}")
        height, width = to_ints(size)
        require(height > 0 and width > 0, f"output dimensions must be positive, got {height} x {width}")
        require(min(images.shape[1:]) > 0, f"input image must be of non-zero size, got {images.shape}")
        require_room((images.shape[0], height, width, images.shape[3]), _F)
        rows, columns = weights(images.shape[1:3], (height, width), scale, translation)
        return np.einsum("oh,nhwc,pw->nopc", rows, images.astype(_F), columns, optimize=True)

    return compute


@kernel("ScaleAndTranslateGrad", types={"T": [dtypes.float32]})
def scale_and_translate_gradient(op: KernelNode) -> Compute:
    weights = _arguments(op)

    def compute(grads: Array, image: Array, scale: Array, translation: Array) -> Array:
        require_rank(grads, 4, "grads")
        require_rank(image, 4, "original_image")
        rows, columns = weights(image.shape[1:3], grads.shape[1:3], scale, translation)
        return np.einsum("oh,nopc,pw->nhwc", rows, grads, columns, optimize=True)

    return compute
