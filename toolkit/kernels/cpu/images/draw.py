"""DrawBoundingBoxes: outlines one pixel wide."""

from __future__ import annotations

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

#: the colours (RGBA) that boxes take in turn when none are given
PALETTE = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def _outline(image: Array, box: Array, color: Array) -> None:
    """Draws one box, (y1, x1, y2, x2) in fractions of the image, where it lies inside."""
    height, width = image.shape[:2]
    extent = np.array([height - 1, width - 1] * 2, np.float32)
    top, left, bottom, right = (box * extent).astype(np.int64).tolist()
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    if top >= 0:
        image[top, columns] = color
    if bottom < height:
        image[bottom, columns] = color
    if left >= 0:
        image[rows, left] = color
    if right < width:
        image[rows, right] = color


@kernel("DrawBoundingBoxes", "DrawBoundingBoxesV2", types={"T": [dtypes.float16, dtypes.float32]})
def draw_bounding_boxes(op: KernelNode) -> Compute:
    """images (N, H, W, 1, 3 or 4), boxes (N, boxes, 4), colors (k, depth or more) in V2."""

    def compute(images: Array, boxes: Array, colors: Array | None = None) -> Array:
        require_rank(images, 4, "The rank of the images")
        require_rank(boxes, 3, "The rank of the boxes tensor")
        require(images.shape[0] == boxes.shape[0], "The batch sizes should be the same")
        depth = images.shape[3]
        require(depth in (1, 3, 4), f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), not {depth}")
        require(boxes.shape[2] == 4, f"The size of the third dimension of the box must be 4, not {boxes.shape[2]}")
        if colors is not None:
            require_rank(colors, 2, "colors")
            require(
                colors.shape[1] >= depth, f"colors {shape_text(colors)} have fewer channels than the images, {depth}"
            )
        if colors is not None and len(colors):
            palette = colors
        elif depth == 1:
            palette = np.ones_like(PALETTE)
        else:
            palette = PALETTE
        out = images.copy()
        usable = np.isfinite(boxes).all(axis=-1)
        for image, own, good in zip(out, boxes, usable, strict=True):
            for position in np.flatnonzero(good):
                _outline(image, own[position], palette[position % len(palette), :depth])
        return out

    return compute
