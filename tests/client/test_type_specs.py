"""Specs say what values are: what fits them, and what two have in common."""

from __future__ import annotations

import pytest

from toolkit import tensorflow as tf
from toolkit.client.structures import type_specs


def test_specs_of_one_kind_are_compared() -> None:
    with tf.Graph().as_default():
        spec = tf.TensorSpec([None, 3], tf.float32, "x")
        assert (spec.name, spec.dtype, spec.shape.as_list()) == ("x", tf.float32, [None, 3])
        assert spec.is_compatible_with(tf.zeros([2, 3]))
        assert not spec.is_compatible_with(tf.zeros([2, 4]))
        assert not spec.is_compatible_with(tf.SparseTensorSpec([None, 3]))
        other = tf.TensorSpec.from_tensor(tf.zeros([2, 3], name="z"))
        assert (other.name, tf.TensorSpec.from_spec(other, "y").name) == ("z", "y")
        assert spec.most_specific_compatible_type(other) == tf.TensorSpec([None, 3])
        assert len({spec, tf.TensorSpec([None, 3]), other}) == 2
        with pytest.raises(ValueError, match="no type in common"):
            spec.most_specific_compatible_type(tf.TensorSpec([2, 3], tf.int32))


def test_every_kind_knows_its_values() -> None:
    with tf.Graph().as_default():
        ragged = tf.ragged.constant([[[1], [2, 3]], []])
        sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
        slices = tf.IndexedSlices(tf.zeros([2, 3]), tf.constant([0, 1]))
        array = tf.TensorArray(tf.float32, 3, element_shape=[2])
        dataset = tf.data.Dataset.range(3)
        optional = tf.data.experimental.Optional.from_value(tf.constant(1))
        for spec, value in (
            (tf.RaggedTensorSpec.from_value(ragged), ragged),
            (tf.RaggedTensorSpec([None, None, None], tf.int32), ragged),
            (tf.SparseTensorSpec([None, 2]), sparse),
            (tf.IndexedSlicesSpec([None, 3], indices_dtype=tf.int32), slices),
            (tf.TensorArraySpec([2]), array),
            (tf.NoneTensorSpec(), None),
            (tf.OptionalSpec.from_value(optional), optional),
            (tf.data.DatasetSpec.from_value(dataset), dataset),
        ):
            assert spec.is_compatible_with(value), spec
            assert isinstance(value, spec.value_type)
            assert not spec.is_compatible_with(tf.constant("text"))
            assert spec == type(spec)(*spec.parts()) and type(spec).__name__ in repr(spec)
        assert tf.RaggedTensorSpec.from_value(ragged).ragged_rank == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: type_specs.TypeSpec(), "one of its kinds"),
        (lambda: tf.RaggedTensorSpec(), "ragged_rank: expected a number"),
        (lambda: tf.RaggedTensorSpec([2], ragged_rank=1), "less than the rank"),
        (lambda: tf.TensorSpec.from_tensor(3), "expected a Tensor"),
    ],
)
def test_what_is_no_spec(make: object, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises((TypeError, ValueError), match=message):
        make()  # type: ignore[operator]
