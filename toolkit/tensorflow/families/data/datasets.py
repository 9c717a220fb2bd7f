# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.data's functions, and what tf.data.experimental and tf.contrib.data had as functions to `apply`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.construction.convert import as_dtype, convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.data import examples, grouping, mapping, resampling
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, dataset_of, made_of
from toolkit.client.data.elements import int64
from toolkit.client.data.files import TFRecordDataset
from toolkit.client.data.leaves import SparseLeaf, TensorLeaf
from toolkit.client.data.seeds import seed_tensors
from toolkit.client.structures import nest
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


# -- the rest of tf.data.experimental and tf.contrib.data ------------------------------------------------------------


def group_by_reducer(key_func: Any, reducer: Any) -> Transformation:
    return lambda source: grouping.group_by_reducer(source, key_func, reducer)


def rejection_resample(
    class_func: Any, target_dist: Any, initial_dist: Any = None, seed: Any = None
) -> Transformation:  # fmt: skip
    return lambda source: resampling.rejection_resample(source, class_func, target_dist, initial_dist, seed)


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1) -> Transformation:
    if features is None:
        raise ValueError("features: expected a mapping of keys to what is known of each feature")
    return lambda source: examples.parse_example_dataset(source, features, num_parallel_calls)


def read_batch_features(
    file_pattern: Any, batch_size: Any, features: Any, reader: Any = TFRecordDataset, reader_args: Any = None,
    randomize_input: bool = True, num_epochs: Any = None, capacity: Any = 10000,
) -> Any:  # fmt: skip
    """The next batch of parsed Examples, as tensors."""
    batches = examples.make_batched_features_dataset(
        file_pattern, batch_size, features, reader, None, reader_args, num_epochs, randomize_input, capacity
    )
    return batches.make_one_shot_iterator().get_next()


def _measured(op: str, tag: Any) -> Transformation:
    return lambda source: made_of(source, op, [convert_to_tensor(tag, dtypes.string, name="tag")])


def bytes_produced_stats(tag: Any) -> Transformation:
    """Elements as they are; who measures is not here, as `run --profile` does it."""
    return _measured("BytesProducedStatsDataset", tag)


def latency_stats(tag: Any) -> Transformation:
    """Elements as they are; who measures is not here, as `run --profile` does it."""
    return _measured("LatencyStatsDataset", tag)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """Elements are handed to devices by the runtime, so the dataset stays what it is."""
    return lambda source: source


def map_and_batch_with_legacy_function(
    map_func: Any, batch_size: Any, num_parallel_batches: Any = None, drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:  # fmt: skip
    return map_and_batch(map_func, batch_size, num_parallel_batches, drop_remainder, num_parallel_calls)


def sliding_window_batch(
    window_size: Any, stride: Any = None, window_shift: Any = None, window_stride: Any = 1
) -> Transformation:
    if stride is not None and window_shift is not None:
        raise ValueError("give stride or window_shift, not both: they are the same argument")
    shift = stride if window_shift is None else window_shift

    def transform(source: Dataset) -> Dataset:
        inputs = [
            int64(window_size, "window_size"), int64(1 if shift is None else shift, "window_shift"),
            int64(window_stride, "window_stride"),
        ]  # fmt: skip
        structure = structures.mapped(structures.first_size(None), source.structure)
        return made_of(source, "SlidingWindowDataset", inputs, structure=structure)

    return transform


def sloppy_interleave(map_func: Any, cycle_length: Any, block_length: Any = 1) -> Transformation:
    return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


def reduce_dataset(dataset: Dataset, reducer: Any) -> Any:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"dataset: expected a Dataset, got {type(dataset).__name__}")
    return dataset.reduce(reducer.init_func(np.int64(0)), reducer.reduce_func)


def assert_element_shape(expected_shapes: Any) -> Transformation:
    """Steps fail whose elements have other shapes; what is known of the shapes is what is expected."""

    def transform(source: Dataset) -> Dataset:
        leaves = structures.leaves(source.structure)
        shapes = [leaf.shape for leaf in structures.leaves(
            structures.structure_from(source.output_types, expected_shapes, source.output_classes)
        )]  # fmt: skip
        merged = [leaf.with_shape(leaf.shape.merge(shape)) for leaf, shape in zip(leaves, shapes, strict=True)]

        def checked(*element: Any) -> Any:
            values = list(element)
            whole = element if isinstance(source.structure, tuple) else values[0]
            flat = [
                ops.ensure_shape(tensor, shape=shape) if isinstance(tensor, Tensor) else tensor
                for tensor, shape in zip(nest.flatten(whole), shapes, strict=True)
            ]
            return nest.pack_sequence_as(whole, flat)

        made = source.map(checked)
        made.structure = nest.pack_sequence_as(source.structure, merged)
        return made

    return transform


def get_structure(dataset_or_iterator: Any) -> Any:
    """What the elements are.

    Raises:
        TypeError: it is neither a dataset nor an iterator.
    """
    if not hasattr(dataset_or_iterator, "element_spec"):
        raise TypeError(f"expected a dataset or an iterator, got {type(dataset_or_iterator).__name__}")
    return dataset_or_iterator.element_spec


def to_variant(dataset: Dataset) -> Tensor:
    return dataset.variant


def from_variant(variant: Any, structure: Any) -> Dataset:
    return dataset_of(variant, structure)


def TensorStructure(dtype: Any, shape: Any) -> TensorLeaf:  # noqa: N802 (TensorFlow's name)
    return TensorLeaf(as_dtype(dtype), plain_shape(shape))


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseLeaf:  # noqa: N802 (TensorFlow's name)
    return SparseLeaf(as_dtype(dtype), plain_shape(shape))


class DatasetRecordWriter:
    """Writes the texts of a dataset to a file of records, when a step runs."""

    def __init__(self, filename: Any, compression_type: Any = None):
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        self._compression = convert_to_tensor(compression_type or "", dtypes.string, name="compression_type")

    def write(self, dataset: Dataset) -> Any:
        """The operation that writes them.

        Raises:
            TypeError: the elements are no single texts.
        """
        leaf = dataset.structure
        if not isinstance(leaf, TensorLeaf) or leaf.dtype.base is not dtypes.string or leaf.shape.rank not in (0, None):
            raise TypeError(f"dataset: expected one text in each element, got {leaf!r}")
        return ops.dataset_to_tf_record(dataset.variant, self._filename, self._compression)
