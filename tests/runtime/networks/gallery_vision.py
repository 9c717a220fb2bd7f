"""Models of images: classifiers that decode and preprocess, pipelines of tf.image, segmentation, super-resolution."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.runtime.networks.gallery import example

RANDOM = np.random.default_rng(52)


def _normal(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RANDOM.standard_normal(shape)).astype(np.float32)


def _pictures(*shape: int) -> Any:
    """Smooth pictures, 0 to 1."""
    count, height, width, depth = shape
    y, x = np.mgrid[0:height, 0:width] / 7.0
    phases = RANDOM.uniform(0, 6, (count, 1, 1, depth))
    return (0.5 + 0.45 * np.sin(y[None, ..., None] * 1.3 + phases) * np.cos(x[None, ..., None] - phases)).astype("f")


def _png(pixels: Any) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray((pixels * 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


FILES = np.array([_png(_pictures(1, 20, 26, 3)[0]), _png(_pictures(1, 33, 17, 3)[0])], object)


@example(
    {"file": FILES},
    {"stem": _normal(3, 3, 3, 8), "deep": _normal(3, 3, 8, 1), "wide": _normal(1, 1, 8, 6), "head": _normal(6, 4)},
)
def classifier_of_files(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Encoded pictures of any size: decoded, resized, cropped, normalised; the names of the two best classes."""

    def prepare(file: Any) -> Any:
        pixels = tf.image.decode_png(file, channels=3)
        pixels = tf.image.resize(tf.cast(pixels, tf.float32), [24, 24], method="bicubic", antialias=True)
        return tf.image.central_crop(pixels, 0.75) / 127.5 - 1.0

    images = tf.map_fn(prepare, x.file, fn_output_signature=tf.float32)
    images = tf.ensure_shape(images, [None, 18, 18, 3])
    y = tf.nn.relu6(tf.nn.conv2d(images, w.stem, 2, "SAME"))
    y = tf.nn.depthwise_conv2d(y, w.deep, [1, 1, 1, 1], "VALID")
    y = tf.nn.leaky_relu(tf.nn.conv2d(y, w.wide, 1, "SAME"))
    scores = tf.nn.softmax(tf.reduce_mean(y, [1, 2]) @ w.head * 0.2)
    best, at = tf.math.top_k(scores, 2)
    return {"scores": best, "names": tf.gather(tf.constant(["cat", "dog", "mill", "graph"]), at)}


@example({"image": _pictures(2, 16, 20, 3)})
def retouching(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Colours, contrast, edges, turns and quality measures."""
    image = tf.image.adjust_hue(tf.image.adjust_saturation(x.image, 1.4), 0.1)
    image = tf.clip_by_value(tf.image.adjust_contrast(tf.image.adjust_brightness(image, 0.05), 1.2), 0.0, 1.0)
    gray = tf.image.rgb_to_grayscale(image)
    down, across = tf.image.image_gradients(gray)
    yuv = tf.image.rgb_to_yuv(tf.image.flip_left_right(image))
    return {
        "gamma": tf.image.adjust_gamma(image, 1.7, 0.9),
        "edges": tf.image.sobel_edges(gray),
        "gradients": tf.concat([down, across], -1),
        "yuv": tf.image.yuv_to_rgb(yuv),
        "hsv": tf.image.rgb_to_hsv(image),
        "turned": tf.image.rot90(tf.image.transpose(image), 3),
        "variation": tf.image.total_variation(image),
        "ssim": tf.image.ssim(image, x.image, 1.0, filter_size=7),
        "psnr": tf.image.psnr(image, x.image, 1.0),
        "standard": tf.image.per_image_standardization(image),
    }


@example(
    {
        "image": _pictures(2, 12, 12, 3),
        "boxes": np.float32([[0.1, 0.1, 0.7, 0.8], [0, 0.2, 1, 0.9], [0.3, 0.3, 0.2, 0.6]]),
        "owner": np.int32([0, 1, 1]),
    },
    {"kernel": _normal(27, 4)},
)
def regions(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Regions of interest cut out and pooled, patches, glimpses by gather_nd, frames drawn into the picture."""
    crops = tf.image.crop_and_resize(x.image, x.boxes, x.owner, [5, 7], extrapolation_value=0.3)
    patches = tf.image.extract_patches(x.image, [1, 3, 3, 1], [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    corners = tf.cast(tf.clip_by_value(x.boxes[:, :2], 0.0, 1.0) * 11.0, tf.int32)
    pixels = tf.gather_nd(x.image, tf.concat([x.owner[:, None], corners], 1))
    drawn = tf.image.draw_bounding_boxes(
        x.image, x.boxes[None, :2] * tf.ones([2, 1, 1]), tf.constant([[1.0, 0.0, 0.5]])
    )
    padded = tf.image.pad_to_bounding_box(x.image, 2, 1, 16, 15)
    resized = [
        tf.image.resize(x.image, [7, 19], method=m, antialias=a) for m, a in (("lanczos3", True), ("area", False))
    ]
    return {
        "crops": tf.nn.max_pool2d(crops, 2, 2, "SAME"),
        "words": patches @ w.kernel,
        "pixels": pixels,
        "drawn": drawn,
        "padded": padded,
        "lanczos": resized[0],
        "area": resized[1],
        "nearest": tf.image.resize(x.image, [20, 5], method="nearest", preserve_aspect_ratio=True),
    }


@example(
    {"image": _pictures(1, 9, 11, 3)},
    {
        "first": _normal(3, 3, 3, 8, scale=0.3),
        "second": _normal(3, 3, 8, 12, scale=0.3),
        "up": _normal(4, 4, 3, 3, scale=0.3),
    },
)
def super_resolution(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Mirrored borders, subpixel convolution, transposed convolution, instance norm."""
    padded = tf.pad(x.image, [[0, 0], [2, 2], [2, 2], [0, 0]], mode="REFLECT")
    y = tf.nn.conv2d(padded, w.first, 1, "VALID")
    mean, variance = tf.nn.moments(y, [1, 2], keepdims=True)
    y = tf.nn.gelu((y - mean) * tf.math.rsqrt(variance + 1e-3))
    fine = tf.nn.depth_to_space(tf.nn.conv2d(y, w.second, 1, "VALID"), 2)
    size = tf.shape(x.image)
    up = tf.nn.conv2d_transpose(x.image, w.up, tf.stack([size[0], size[1] * 2, size[2] * 2, 3]), 2, "SAME")
    return {
        "fine": fine,
        "coarse": tf.nn.space_to_depth(up, 2),
        "sum": fine + tf.image.resize(x.image, size[1:3] * 2) + up,
    }


@example({"logits": _normal(2, 6, 7, 4, scale=2.0), "truth": RANDOM.integers(0, 4, (2, 6, 7)).astype(np.int32)})
def segmentation_report(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Masks, confusion matrix, intersection over union, where things are, and how large."""
    found = tf.argmax(x.logits, -1, tf.int32)
    table = tf.math.confusion_matrix(tf.reshape(x.truth, [-1]), tf.reshape(found, [-1]), 4)
    hits = tf.cast(tf.linalg.diag_part(table), tf.float32)
    union = tf.cast(tf.reduce_sum(table, 0) + tf.reduce_sum(table, 1), tf.float32) - hits
    where = tf.where(tf.equal(found, 2))
    classes, _, sizes = tf.unique_with_counts(tf.reshape(found, [-1]))
    order = tf.argsort(classes, stable=True)
    sure = tf.boolean_mask(x.logits, tf.reduce_max(tf.nn.softmax(x.logits), -1) > 0.8)
    boundary = -tf.nn.max_pool2d(-tf.one_hot(found, 4), 3, 1, "SAME")
    return {
        "iou": tf.math.divide_no_nan(hits, union),
        "table": table,
        "where": where,
        "classes": tf.gather(classes, order),
        "sizes": tf.gather(sizes, order),
        "sure": sure,
        "inside": boundary,
        "loss": tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x.truth, logits=x.logits),
        "box": tf.stack([tf.reduce_min(where, 0), tf.reduce_max(where, 0)]),
    }


@example(
    {"image": _pictures(2, 16, 16, 3)},
    {
        "stem": _normal(4, 4, 3, 8, scale=0.3),
        "position": _normal(17, 8),
        "token": _normal(8),
        "qkv": _normal(8, 24, scale=0.4),
        "mlp": _normal(8, 16),
        "out": _normal(16, 8),
    },
)
def vision_transformer(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Patches as tokens, a class token, attention of two heads, layer norms, an attention map."""

    def norm(value: Any) -> Any:
        mean, variance = tf.nn.moments(value, [-1], keepdims=True)
        return (value - mean) / tf.sqrt(variance + 1e-6)

    tokens = tf.reshape(tf.nn.conv2d(x.image, w.stem, 4, "VALID"), [-1, 16, 8])
    first = tf.tile(tf.reshape(w.token, [1, 1, 8]), [tf.shape(tokens)[0], 1, 1])
    y = tf.concat([first, tokens], 1) + w.position
    q, k, v = tf.unstack(tf.reshape(tf.einsum("btd,de->bte", norm(y), w.qkv), [-1, 17, 3, 2, 4]), axis=2)
    attention = tf.nn.softmax(tf.einsum("bthd,bshd->bhts", q, k) / 2.0)
    y += tf.reshape(tf.einsum("bhts,bshd->bthd", attention, v), [-1, 17, 8])
    y += tf.nn.swish(norm(y) @ w.mlp) @ w.out
    return {"class": y[:, 0], "map": tf.image.resize(tf.reshape(attention[:, 0, 0, 1:], [-1, 4, 4, 1]), [8, 8])}
