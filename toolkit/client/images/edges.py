"""Differences between neighbouring pixels; patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.nn.convolutions import depthwise_conv2d
from toolkit.graph.shape import UNKNOWN

#: Sobel's operator, down and to the right
_SOBEL = [[[-1, -2, -1], [0, 0, 0], [1, 2, 1]], [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]]


def total_variation(images: Tensor, name: str | None = None) -> Tensor:
    """The sum of absolute differences of neighbours: a scalar, or one for each picture of a batch.

    Raises:
        ValueError: neither a picture nor a batch.
    """
    with name_scope(name, "total_variation"):
        rank = images.static_shape.rank
        if rank not in (3, 4):
            raise ValueError(f"images: expected three or four axes, got shape {images.static_shape}")
        if rank == 3:
            down = images[1:, :, :] - images[:-1, :, :]
            right = images[:, 1:, :] - images[:, :-1, :]
            axes = None
        else:
            down = images[:, 1:, :, :] - images[:, :-1, :, :]
            right = images[:, :, 1:, :] - images[:, :, :-1, :]
            axes = [1, 2, 3]
        return math_ops.reduce_sum(math_ops.abs(down), axes) + math_ops.reduce_sum(math_ops.abs(right), axes)


def image_gradients(image: Tensor) -> tuple[Tensor, Tensor]:
    """Differences to the pixel below and to the right, [batch, height, width, channels]; 0 along the last edges.

    Raises:
        ValueError: that is not its shape.
    """
    if image.static_shape.rank != 4:
        raise ValueError(f"image: expected [batch, height, width, channels], got shape {image.static_shape}")
    shape = array_ops.shape(image)
    batch, height, width, depth = array_ops.unstack(shape)
    down = image[:, 1:, :, :] - image[:, :-1, :, :]
    right = image[:, :, 1:, :] - image[:, :, :-1, :]
    edge = array_ops.zeros(array_ops.stack([batch, 1, width, depth]), image.dtype.base)
    down = array_ops.reshape(array_ops.concat([down, edge], 1), shape)
    edge = array_ops.zeros(array_ops.stack([batch, height, 1, depth]), image.dtype.base)
    right = array_ops.reshape(array_ops.concat([right, edge], 2), shape)
    return down, right


def sobel_edges(image: Tensor) -> Tensor:
    """Sobel's operator on each channel: [batch, height, width, channels, 2], down and to the right."""
    known, shape = image.static_shape, array_ops.shape(image)
    kernels = np.expand_dims(np.transpose(np.array(_SOBEL), (1, 2, 0)), -2)
    filters = constant(kernels.astype(image.dtype.base.numpy), image.dtype.base)
    filters = array_ops.tile(filters, [1, 1, shape[-1], 1], name="sobel_filters")
    padded = array_ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    edges = array_ops.reshape(edges, array_ops.concat([shape, [len(_SOBEL)]], 0))
    edges.set_shape(UNKNOWN if known.rank is None else [*known, len(_SOBEL)])
    return edges


def extract_patches(
    images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """Windows of pictures laid into the last axis.

    Args:
        sizes, strides, rates: [1, rows, columns, 1] each.
    """
    return ops.extract_image_patches(
        images, ksizes=list(sizes), strides=list(strides), rates=list(rates), padding=padding, name=name
    )  # fmt: skip
