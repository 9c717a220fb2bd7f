"""Colors in other spaces: grey, YIQ, YUV. What is one op (HSV) is there without a function here."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.images.checks import checked_gray
from toolkit.client.images.value_types import convert_image_dtype
from toolkit.client.linalg import linalg_ops
from toolkit.graph import dtypes
from toolkit.graph.shape import UNKNOWN

#: weights of red, green and blue (ITU-R BT.601, as TensorFlow rounds them)
_LUMA = [0.2989, 0.587, 0.114]
_TO_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
_TO_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """One channel of the last axis of three."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        floats = convert_image_dtype(images, dtypes.float32)
        gray = array_ops.expand_dims(linalg_ops.tensordot(floats, _LUMA, [-1, -1]), -1)
        return convert_image_dtype(gray, images.dtype.base, name=scope)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Three equal channels.

    Raises:
        ValueError: there is more than one channel.
    """
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = checked_gray(convert_to_tensor(images, name="images"))
        leading = array_ops.expand_dims(array_ops.rank(images) - 1, 0)
        ones = array_ops.ones(leading, dtypes.int32)
        multiples = array_ops.concat([ones, array_ops.expand_dims(3, 0)], 0)
        rgb = array_ops.tile(images, multiples, name=scope)
        known = images.static_shape
        rgb.set_shape(UNKNOWN if known.rank is None else [*list(known)[:-1], 3])
        return rgb


def _mixed(images: TensorLike, kernel: Sequence[Sequence[float]]) -> Tensor:
    """The channels times a matrix.

    Raises:
        ValueError: the rank is not known.
    """
    images = convert_to_tensor(images, name="images")
    matrix = convert_to_tensor(kernel, images.dtype.base, name="kernel")
    rank = images.static_shape.rank
    if rank is None:
        raise ValueError(f"images: '{images.name}' has an unknown rank; set_shape says it")
    return linalg_ops.tensordot(images, matrix, [[rank - 1], [0]])


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """YIQ, of NTSC, of floats from 0 to 1."""
    return _mixed(images, _TO_YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """RGB of YIQ."""
    return _mixed(images, _FROM_YIQ)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """YUV, of PAL, of floats from 0 to 1."""
    return _mixed(images, _TO_YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """RGB of YUV."""
    return _mixed(images, _FROM_YUV)
