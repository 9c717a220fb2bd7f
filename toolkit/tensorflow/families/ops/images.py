# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.image: what takes arguments that TensorFlow 1 renamed."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.images import edges
from toolkit.tensorflow.families.arguments import needed, renamed


def crop_and_resize(
    image: Any, boxes: Any, box_ind: Any = None, crop_size: Any = None, method: str = "bilinear",
    extrapolation_value: Any = 0, name: Any = None, box_indices: Any = None,
) -> Tensor:  # fmt: skip
    indices = needed("box_indices", renamed("box_indices", box_indices, "box_ind", box_ind))
    return ops.crop_and_resize(
        image, boxes, indices, needed("crop_size", crop_size), method=method, extrapolation_value=extrapolation_value,
        name=name,
    )  # fmt: skip


def extract_image_patches(
    images: Any, ksizes: Any = None, strides: Any = None, rates: Any = None, padding: Any = None, name: Any = None,
    sizes: Any = None,
) -> Tensor:  # fmt: skip
    sizes = needed("sizes", renamed("sizes", sizes, "ksizes", ksizes))
    return edges.extract_patches(
        images, sizes, needed("strides", strides), needed("rates", rates), needed("padding", padding), name
    )
