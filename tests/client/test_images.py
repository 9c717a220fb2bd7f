"""Pictures: what is refused, and values of what has nodes of its own."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.client.linalg.linalg_ops import tensordot
from toolkit.client.math.casts import saturate_cast
from toolkit.errors import UsageError
from toolkit.tensorflow import names

_WRONG: dict[str, tuple[str, str]] = {
    "flat": ("tf.image.flip_left_right(tf.zeros([3, 3]))", "image: expected"),
    "empty": ("tf.image.flip_up_down(tf.zeros([3, 0, 3]))", "pixels and channels"),
    "five axes": ("tf.image.flip_up_down(tf.zeros([1, 1, 3, 1, 3]))", "three or four axes"),
    "fraction": ("tf.image.central_crop(tf.zeros([3, 3, 3]), 1.5)", "central_fraction: expected"),
    "crop": ("tf.image.crop_to_bounding_box(tf.zeros([3, 3, 3]), 1, 0, 3, 3)", "3 rows from 1 on go beyond a height"),
    "pad": ("tf.image.pad_to_bounding_box(tf.zeros([3, 3, 3]), 0, 2, 3, 4)", "does not fit into target_width 4"),
    "size": ("tf.image.resize_images(tf.zeros([3, 3, 3]), [1, 2, 3])", r"size: expected \[height, width\]"),
    "size type": ("tf.image.resize_images(tf.zeros([3, 3, 3]), [1.5, 2])", r"size: expected \[height, width\]"),
    "method": ("tf.image.resize_images(tf.zeros([3, 3, 3]), [1, 2], 9)", "method: expected one of"),
    "rank": ("tf.image.resize_images(tf.placeholder(tf.float32), [1, 2])", "set_shape says it"),
    "delta": ("tf.image.random_brightness(tf.zeros([3, 3, 3]), -1)", "max_delta: expected 0 or more"),
    "hue": ("tf.image.random_hue(tf.zeros([3, 3, 3]), 0.6)", "from 0 to 0.5"),
    "range": ("tf.image.random_contrast(tf.zeros([3, 3, 3]), 0.5, 0.5)", "0 <= lower < upper"),
    "quality": ("tf.image.random_jpeg_quality(tf.zeros([3, 3, 3]), 5, 101)", "a range within 0 to 100"),
    "gamma": ("tf.image.adjust_gamma(tf.zeros([3, 3, 3]), -1)", "gamma: expected 0 or more"),
    "gray": ("tf.image.grayscale_to_rgb(tf.zeros([3, 3, 3]))", "expected one channel"),
    "variation": ("tf.image.total_variation(tf.zeros([3, 3]))", "three or four axes"),
    "compared": ("tf.image.psnr(tf.zeros([3, 3, 3]), tf.zeros([3, 1, 3]), 1.0)", "cannot be compared"),
    "batch": ("tf.image.non_max_suppression_padded(tf.zeros([1, 2, 4]), tf.zeros([1, 2]), 1)", "pad_to_max_outp"),
    "turns": ("tf.image.rot90(tf.zeros([3, 3, 3]), [1])", "k: expected one number"),
}  # fmt: skip


@pytest.mark.parametrize("case", _WRONG)
def test_what_is_no_picture_is_refused(case: str) -> None:
    code, message = _WRONG[case]
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        eval(code, {"tf": tf})


def _computed(tensorflow: Any, make: Any) -> Any:
    with tensorflow.Graph().as_default(), tensorflow.Session() as session:
        return session.run(make(tensorflow))


@pytest.mark.tensorflow
def test_boxes_of_a_batch_are_chosen_as_in_tensorflow() -> None:
    theirs = importlib.import_module("tensorflow").compat.v1
    drawn = np.random.RandomState(3).rand(2, 3, 30, 4).astype("f")
    boxes = np.concatenate([drawn[..., :2], drawn[..., :2] + drawn[..., 2:]], -1)
    scores = np.random.RandomState(4).rand(2, 3, 30).astype("f")

    def make(tensorflow: Any) -> Any:
        found = tensorflow.image.non_max_suppression_padded
        return found(tensorflow.constant(boxes), tensorflow.constant(scores), 12, 0.3, 0.2, pad_to_max_output_size=True)

    for ours, wanted in zip(_computed(tf, make), _computed(theirs, make), strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_a_saturated_cast_keeps_to_what_both_types_have() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        whole = session.run(saturate_cast(tf.constant([-3e10, 2.5, 3e10]), tf.int32))
        assert whole.tolist() == [-(2**31), 2, 2**31 - 128]  # the largest float32 below 2^31
        assert session.run(saturate_cast(tf.constant([-5, 300]), tf.uint8)).tolist() == [0, 255]


@pytest.mark.parametrize("shapes", [([2, 3, 4], [4, 3]), ([None, 3, None], [None, 3]), (None, None)])
def test_contractions_of_any_shape(shapes: Any) -> None:
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(4, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = (tf.placeholder(tf.float64, shape) for shape in shapes)
        made = [tensordot(x, y, 1), tensordot(x, y, [[2, 1], [0, 1]]), tensordot(x, y, tf.constant([[1], [1]]))]
        found = session.run(made, {x: a, y: b})
    every: list[Any] = [1, [[2, 1], [0, 1]], [[1], [1]]]
    for ours, axes in zip(found, every, strict=True):
        np.testing.assert_array_equal(ours, np.tensordot(a, b, axes))  # whole numbers: no rounding


@pytest.mark.parametrize("axes", [-1, 4, [[0]], [[0, 0], [0, 1]]])
def test_wrong_axes_of_contractions(axes: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(UsageError, match="axes: expected"):
        tensordot(tf.zeros([2, 3]), tf.zeros([3, 2]), axes)


def test_programs_choose_among_branches_with_control_flow_ops() -> None:
    there = {
        name: names.find(f"python.ops.control_flow_ops.{name}") for name in ("switch", "merge", "with_dependencies")
    }
    with tf.Graph().as_default(), tf.Session() as session:
        which, x = tf.placeholder(tf.int32, []), tf.constant([2.0])
        branches = [there["switch"](x, tf.equal(which, number))[1] * (number + 1.0) for number in range(3)]
        chosen = there["merge"](branches)
        assert chosen.output.op.type == "Merge"
        late = there["with_dependencies"]([tf.no_op()], chosen[0])
        assert [session.run([late, chosen.value_index], {which: n}) for n in range(3)] == [[2.0, 0], [4.0, 1], [6.0, 2]]
