"""assert_shapes: what holds, what does not, and what is no shape."""

from __future__ import annotations

import pytest

from toolkit import tensorflow as tf

Known = tuple[int | None, ...]


def test_sizes_are_compared_when_the_step_runs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32)
        check = tf.debugging.assert_shapes({x: ("n", "n"), y: ("*", "n")})
        session.run(check, {x: [[1, 2], [3, 4]], y: [[1, 2]]})
        session.run(check, {x: [[1]], y: 3})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have size"):
            session.run(check, {x: [[1, 2], [3, 4]], y: [1, 2, 3]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have size"):
            session.run(check, {x: [[1, 2]], y: [1]})


@pytest.mark.parametrize(
    ("shape", "wanted", "message"),
    [
        ((2, 3), ("n", 4), "Specified explicitly.  Tensor .* dimension 1 must have size 4.  Received size 3"),
        ((2, 3), ("n", "n"), "Specified by tensor .* dimension 0.  Tensor .* dimension 1 must have size 2"),
        ((2, 3), 3, "expected a sequence of sizes"),
        ((2, 3), ("n", "*"), "may only be in front"),
        ((2, 3), ("n",), r"must have one of the ranks \[0, 1\]"),
    ],
)
def test_known_shapes_are_compared_at_once(shape: Known, wanted: object, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=f"m.  .*{message}|{message}"):
        tf.debugging.assert_shapes([(tf.zeros(shape), wanted)], message="m")
