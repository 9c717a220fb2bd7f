"""Pictures of other sizes, by interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.images.checks import as_batch, sizes
from toolkit.client.images.cutting import larger, pad_to_bounding_box, targets
from toolkit.client.math import math_ops
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class ResizeMethod:
    """How values between pixels are found."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


#: methods, and the names of later releases for them, to ops
_OPS: dict[Any, str] = {
    0: "ResizeBilinear", 1: "ResizeNearestNeighbor", 2: "ResizeBicubic", 3: "ResizeArea",
    "bilinear": "ResizeBilinear", "nearest": "ResizeNearestNeighbor", "bicubic": "ResizeBicubic", "area": "ResizeArea",
}  # fmt: skip


def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """A picture, or a batch of them, in another size: float32, but for nearest neighbours, or where nothing changes.

    Args:
        size: [height, width], int32.
        method: one of `ResizeMethod`, or its name in later releases.
        align_corners: the centers of the corners' pixels stay in place.
        preserve_aspect_ratio: `size` is what the result has to fit into.

    Raises:
        ValueError: an unknown method, a size that is none, neither a picture nor a batch.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.static_shape.rank is None:
            raise ValueError(f"images: the rank of '{images.name}' is not known; set_shape says it")
        images, was_batch = as_batch(images)
        size = _as_size(size)
        if preserve_aspect_ratio:
            size = _fitting(images, size)
        wanted = _known_size(size)
        own = list(images.static_shape)[1:3]
        if None not in wanted and wanted == own:
            return images if was_batch else array_ops.squeeze(images, [0])
        if method not in _OPS:
            raise ValueError(f"method: expected one of tf.image.ResizeMethod, got {method!r}")
        resized = ops.function(_OPS[method])(images, size, align_corners=align_corners)
        resized.set_shape([None, *wanted, None])
        return resized if was_batch else array_ops.squeeze(resized, [0])


def _as_size(size: TensorLike) -> Tensor:
    try:
        size = convert_to_tensor(size, dtypes.int32, name="size")
    except (GraphmillError, TypeError, ValueError) as error:
        raise ValueError(f"size: expected [height, width] as int32 ({error})") from None
    if not size.static_shape.is_compatible_with(Shape([2])):
        raise ValueError(f"size: expected [height, width], got a tensor of shape {size.static_shape}")
    return size


def _known_size(size: Tensor) -> list[int | None]:
    """Height and width as far as constants say them."""
    found = static_value(size)
    if found is not None:
        return [int(each) for each in found]
    if size.op.type == "Pack":
        parts = [static_value(part) for part in size.op.inputs]
        return [None if part is None else int(part) for part in parts]
    return [None, None]


def _fitting(images: Tensor, size: Tensor) -> Tensor:
    """The largest size of the same proportions that lies within `size`."""
    _, height, width, _ = sizes(images, 4)
    by_height = math_ops.cast(size[0], dtypes.float32) / math_ops.cast(height, dtypes.float32)
    by_width = math_ops.cast(size[1], dtypes.float32) / math_ops.cast(width, dtypes.float32)
    scale = ops.minimum(by_height, by_width)
    scaled = [
        math_ops.cast(ops.round(scale * math_ops.cast(side, dtypes.float32)), dtypes.int32) for side in (height, width)
    ]
    return convert_to_tensor(scaled, dtypes.int32, name="size")


def resize_image_with_pad(
    image: TensorLike, target_height: Any, target_width: Any, method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:  # fmt: skip
    """The target size without a change of proportions, with zeros where they differ.

    Raises:
        ValueError: the target is empty; neither a picture nor a batch.
    """

    def resize(picture: Tensor, size: Any) -> Tensor:
        return resize_images(picture, size, method, align_corners)

    return _resized_with_pad(image, target_height, target_width, resize)


def _resized_with_pad(image: TensorLike, height: Any, width: Any, resize: Callable[[Tensor, Any], Tensor]) -> Tensor:
    with name_scope(None, "resize_image_with_pad", [image]):
        image, was_batch = as_batch(convert_to_tensor(image, name="image"))
        image = with_dependencies(targets(image, height, width), image)
        _, own_height, own_width, _ = sizes(image, 4)
        own = [math_ops.cast(side, dtypes.float32) for side in (own_height, own_width)]
        wanted = [math_ops.cast(side, dtypes.float32) for side in (height, width)]
        by_width = own[1] / wanted[1]
        ratio = larger(by_width, own[0] / wanted[0])
        exact = [side / ratio for side in own]
        whole = [math_ops.cast(ops.floor(side), dtypes.int32) for side in exact]
        margins = [(side - inner) / 2 for side, inner in zip(wanted, exact, strict=True)]
        floors = [ops.floor(margin) for margin in margins]
        starts = [larger(0, math_ops.cast(floor, dtypes.int32)) for floor in floors]
        padded = pad_to_bounding_box(resize(image, whole), starts[0], starts[1], height, width)
        sizes(padded, 4)  # nodes that nothing reads, as in TensorFlow
        return padded if was_batch else array_ops.squeeze(padded, [0])
