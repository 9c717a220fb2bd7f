"""Parts of images: glimpses around points, and crops at random places."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.random.basic import guarded
from toolkit.kernels.registry import REAL, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array


def _noise_kind(op: KernelNode) -> str:
    """uniform, gaussian or zero."""
    uniform, noise = op.attr("uniform_noise"), op.text("noise")
    if uniform and noise not in ("", "uniform"):
        raise InvalidArgumentError("The uniform_noise and noise should not be specified at the same time", node=op.name)
    if noise == "":
        return "uniform" if uniform else "gaussian"
    if noise not in ("uniform", "gaussian", "zero"):
        raise InvalidArgumentError(f"The noise should be uniform, gaussian or zero, not {noise}", node=op.name)
    return noise


def _background(image: Array, size: tuple[int, int], noise: str) -> Array:
    """What shows outside the image; random numbers have no seed."""
    shape = (*size, image.shape[-1])
    if noise == "zero":
        return np.zeros(shape, np.float32)
    random = np.random.default_rng()
    if image.size == 0:  # nothing to take a range from
        return random.random(shape, np.float32)
    if noise == "uniform":
        low, high = image.min(), image.max()
        return low + random.random(shape, np.float32) * (high - low)
    every = (0, 1)
    values = image.mean(every) + random.standard_normal(shape, np.float32) * image.std(every)
    return np.clip(values, image.min(every), image.max(every))


def _glimpse(image: Array, corner: tuple[int, int], size: tuple[int, int], noise: str) -> Array:
    """The window at `corner` (y, x), which may lie outside in part."""
    starts = [max(c, 0) for c in corner]
    stops = [min(c + n, length) for c, n, length in zip(corner, size, image.shape[:2], strict=True)]
    if all(c >= 0 and c + n <= length for c, n, length in zip(corner, size, image.shape[:2], strict=True)):
        return image[starts[0] : stops[0], starts[1] : stops[1]]
    out = _background(image, size, noise)
    if all(start < stop for start, stop in zip(starts, stops, strict=True)):
        (top, left), (bottom, right) = (
            [at - c for at, c in zip(side, corner, strict=True)] for side in (starts, stops)
        )
        out[top:bottom, left:right] = image[starts[0] : stops[0], starts[1] : stops[1]]
    return out


def _corners(offsets: Array, image: tuple[int, int], size: Array, normalized: bool, centered: bool, v2: bool) -> Array:
    """Upper left corners of the windows, int [batch, 2], as the op's version reads offsets."""
    lengths, half = np.float32(image), np.float32(size) / np.float32(2)
    at = offsets * lengths if normalized else offsets
    if v2:
        if centered:
            at = at / np.float32(2) + lengths / np.float32(2) - half if normalized else at + lengths / np.float32(2)
    else:
        at = (at / np.float32(2) + lengths / np.float32(2) if centered else at) - half
    return at.astype(np.int64)


@kernel("ExtractGlimpse", "ExtractGlimpseV2")
def extract_glimpse(op: KernelNode) -> Compute:
    """Windows of one size, one for each image of a batch.

    Offsets (y, x) are in pixels, or parts of the image when `normalized`; when `centered`, 0 is the middle and 1 the
    lower right corner. The first version takes them as the window's middle, the second as its corner unless both.
    """
    normalized, centered, second = op.attr("normalized"), op.attr("centered"), op.op.endswith("V2")
    noise = _noise_kind(op)

    def compute(images: Array, size: Array, offsets: Array) -> Array:
        require(images.ndim == 4, f"input must be 4-dimensional (batch_size, height, width, depth){shape_text(images)}")
        require(size.shape == (2,), f"input must be a vector of size 2 (height, width){shape_text(size)}")
        require(all(size >= 0), f"Expected a non-negative size, got {size.tolist()}")
        require(offsets.ndim == 2, f"input must be a matrix{shape_text(offsets)}")
        require(len(offsets) == len(images), f"first dimension should be batch{shape_text(offsets)}")
        require(offsets.shape[1] == 2, f"second dimension should be of size 2 (y,x){shape_text(offsets)}")
        corners = _corners(offsets, images.shape[1:3], size, normalized, centered, second).tolist()
        window = tuple(size.tolist())
        out = np.empty((len(images), *window, images.shape[3]), np.float32)
        for number, (image, corner) in enumerate(zip(images, corners, strict=True)):
            out[number] = _glimpse(image, tuple(corner), window, noise)
        return out

    return compute


@kernel("RandomCrop", types={"T": REAL}, kind=Kind.STATEFUL)
def random_crop(op: KernelNode) -> Compute:
    generator = guarded(op)

    def compute(step: StepContext, image: Array, size: Array) -> Array:
        require(image.ndim == 3, f"input must be 3-dimensional{shape_text(image)}")
        require(size.ndim == 1, f"shape_t must be 1-dimensional{shape_text(size)}")
        require(size.size == 2, f"shape_t must have two elements{shape_text(size)}")
        wanted: list[int] = size.tolist()
        require(all(n >= 0 for n in wanted), f"Dimension {min(wanted)} must be >= 0")
        spare = {what: has - n for what, has, n in zip(("height", "width"), image.shape, wanted, strict=False)}
        for what in ("width", "height"):
            if spare[what] < 0:
                raise FailedPreconditionError(
                    f"{what} must be >= target_{what}: {what} is {spare[what]} less than the target"
                )
        words: list[Any] = generator(step).reserve(1).words(2).tolist()
        # a number is drawn only where there is a choice
        x = words.pop(0) % (spare["width"] + 1) if spare["width"] else 0
        y = words.pop(0) % (spare["height"] + 1) if spare["height"] else 0
        return image[y : y + wanted[0], x : x + wanted[1]]

    return compute
