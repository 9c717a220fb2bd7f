"""Staging areas: elements, and mistakes (their nodes: tests/tf1/dropped/staging)."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit import tensorflow as tf
from toolkit.client.inputs.staging import StagingArea


def test_a_step_takes_what_another_put() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        area = StagingArea([tf.float32, tf.int32], [[2], []], names=["x", "y"])
        put = area.put({"y": tf.constant(3), "x": tf.constant([1.0, 2.0])})
        taken, size, clear = area.get(), area.size(), area.clear()
        session.run(put)
        session.run(put)
        assert session.run(size) == 2
        values = session.run(taken)
        assert (values["x"].tolist(), values["y"]) == ([1.0, 2.0], 3)
        session.run(clear)
        assert session.run(size) == 0


@pytest.mark.parametrize(
    ("settings", "values", "message"),
    [
        ({"shapes": [[2]]}, None, "2 types is given 1 shapes"),
        ({"names": ["x"]}, None, "2 types is given 1 names"),
        ({"shared_name": 3}, None, "shared_name is a text, not 3"),
        ({}, {"x": 1.0}, "has no names, so it takes no mapping"),
        ({"names": ["x", "y"]}, [1.0, 2], "takes a mapping with the keys x, y"),
        ({"names": ["x", "y"]}, {"z": 1.0}, "takes a mapping with the keys x, y"),
        ({}, [1.0, 2, 3], r"takes 2 tensor\(s\), got 3"),
        ({}, [1, 2], "tensor 0 of .* has type"),
        ({"shapes": [[2], []]}, [[1.0], 2], "tensor 0 of .* has shape"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], values: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        StagingArea([tf.float32, tf.int32], **settings).put(values)
