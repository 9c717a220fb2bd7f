"""Steps that would take all memory, or go on after their end: each ends, with an error that says so."""

from __future__ import annotations

import pytest

from schemas import config_pb2
from toolkit import tensorflow as tf
from toolkit.errors import DeadlineExceededError, ResourceExhaustedError

#: elements that nobody lives to see
MANY = 1 << 60


def _datasets() -> dict[str, tf.data.Dataset]:
    numbers = tf.data.Dataset.range(MANY)
    return {
        "batch": numbers.batch(MANY),
        "filter": numbers.filter(lambda each: each < 0),
        "shuffle": numbers.shuffle(MANY),
        "shuffle and repeat": numbers.apply(tf.data.experimental.shuffle_and_repeat(MANY)),
        "skip": numbers.skip(MANY - 1),
        "one, repeated": tf.data.Dataset.from_tensors(1).repeat().skip(MANY),
        "nothing, repeated": tf.data.Dataset.from_tensor_slices([1]).skip(1).repeat(MANY),
        "random": tf.data.experimental.RandomDataset(1).batch(MANY),
    }


@pytest.mark.parametrize("name", ["batch", "filter", "shuffle", "shuffle and repeat", "skip", "one, repeated",
                                  "nothing, repeated", "random"])  # fmt: skip
def test_an_iteration_ends_with_its_step(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        following = tf.data.make_one_shot_iterator(_datasets()[name]).get_next()
        with pytest.raises(DeadlineExceededError):
            session.run(following, options=config_pb2.RunOptions(timeout_in_ms=50))


def test_a_compiled_step_without_room_says_so() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.placeholder(tf.int32, [])
        product = tf.matmul(tf.ones([size, 1]), tf.ones([1, size]))
        total = tf.reduce_sum(product)
        assert session.run(total, {size: 3}) == 9
        with pytest.raises(ResourceExhaustedError, match="machine has not so much left"):
            session.run(total, {size: 1 << 24})
        assert session.run(total, {size: 4}) == 16
