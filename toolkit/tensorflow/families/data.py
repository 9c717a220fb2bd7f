# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.data's functions, and what tf.data.experimental and tf.contrib.data had as functions to `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client.data import mapping
from toolkit.client.data.dataset import Dataset, made_of
from toolkit.client.data.elements import int64
from toolkit.client.data.seeds import seed_tensors
from toolkit.graph import dtypes

#: makes one dataset of another
Transformation = Callable[[Dataset], Dataset]


def get_output_classes(dataset_or_iterator: Any) -> Any:
    return dataset_or_iterator.output_classes


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    return dataset_or_iterator.output_shapes


def get_output_types(dataset_or_iterator: Any) -> Any:
    return dataset_or_iterator.output_types


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    def transform(source: Dataset) -> Dataset:
        buffer = int64(buffer_size, "buffer_size")
        times = int64(-1 if count is None else count, "count")
        inputs = [buffer, *seed_tensors(seed), times]
        return made_of(source, "ShuffleAndRepeatDataset", inputs, {"reshuffle_each_iteration": True})

    return transform


def map_and_batch(
    map_func: Any, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:  # fmt: skip
    def transform(source: Dataset) -> Dataset:
        return mapping.map_and_batch(
            source, map_func, batch_size, num_parallel_batches, drop_remainder, num_parallel_calls
        )

    return transform


def parallel_interleave(
    map_func: Any, cycle_length: Any, block_length: Any = 1, sloppy: Any = False, buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:  # fmt: skip
    def transform(source: Dataset) -> Dataset:
        return mapping.parallel_interleave(
            source, map_func, cycle_length, block_length, sloppy, buffer_output_elements, prefetch_input_elements
        )

    return transform


def group_by_window(
    key_func: Any, reduce_func: Any, window_size: Any = None, window_size_func: Any = None
) -> Transformation:
    return lambda source: source.group_by_window(key_func, reduce_func, window_size, window_size_func)


def unbatch() -> Transformation:
    return lambda source: source.unbatch()


def ignore_errors() -> Transformation:
    return lambda source: source.ignore_errors()


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """Elements are handed to devices by the runtime, so there is only the buffer."""
    return lambda source: source.prefetch(buffer_size)


def bucket_by_sequence_length(
    element_length_func: Any, bucket_boundaries: Any, bucket_batch_sizes: Any, padded_shapes: Any = None,
    padding_values: Any = None, pad_to_bucket_boundary: bool = False, no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:  # fmt: skip
    return lambda source: source.bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding, drop_remainder,
    )  # fmt: skip


def batch_and_drop_remainder(batch_size: Any) -> Transformation:
    return lambda source: source.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size: Any, padded_shapes: Any, padding_values: Any = None) -> Transformation:
    return lambda source: source.padded_batch(batch_size, padded_shapes, padding_values, drop_remainder=True)


def enumerate_dataset(start: Any = 0) -> Transformation:
    return lambda source: source.enumerate(start)


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    return lambda source: source.sparse_batch(batch_size, row_shape)


def scan(initial_state: Any, scan_func: Any) -> Transformation:
    return lambda source: source.scan(initial_state, scan_func)


def unique() -> Transformation:
    return lambda source: source.unique()


def take_while(predicate: Any) -> Transformation:
    return lambda source: source.take_while(predicate)


def cardinality(dataset: Dataset) -> Any:
    return dataset.cardinality()


def get_single_element(dataset: Dataset) -> Any:
    return dataset.get_single_element()


def sample_from_datasets(datasets: Any, weights: Any = None, seed: Any = None) -> Dataset:
    return Dataset.sample_from_datasets(datasets, weights, seed)


def choose_from_datasets(datasets: Any, choice_dataset: Any) -> Dataset:
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False)


def Counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Dataset:  # noqa: N802 (TensorFlow's name)
    return Dataset.counter(start, step, dtype)


class RandomDataset(Dataset):
    """Random int64 numbers, without end."""

    def __init__(self, seed: Any = None):
        made = Dataset.random(seed)
        self.hold(made.variant, made.structure, made.given_options)


def contrib_bucket_by_sequence_length(
    element_length_func: Any, bucket_boundaries: Any, bucket_batch_sizes: Any, padded_shapes: Any = None,
    padding_values: Any = None, pad_to_bucket_boundary: bool = False, no_padding: bool = False,
) -> Transformation:  # fmt: skip
    return bucket_by_sequence_length(
        element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
        pad_to_bucket_boundary, no_padding,
    )  # fmt: skip
