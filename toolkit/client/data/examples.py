"""Datasets of Example messages: parsed, and read from files in batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.client.data import mapping
from toolkit.client.data.dataset import Dataset
from toolkit.client.data.files import TFRecordDataset, list_files
from toolkit.client.data.leaves import TensorLeaf
from toolkit.client.inputs import parsing
from toolkit.errors import UsageError
from toolkit.graph import dtypes

#: as many as TensorFlow reads and parses at a time where nothing is said
_PARSERS = 2
_CHOSEN = -1


def parse_example_dataset(source: Dataset, features: Mapping[str, Any], num_parallel_calls: Any = 1) -> Dataset:
    """The features of batches of serialized Example messages, by key.

    Raises:
        TypeError: the elements are no vectors of texts.
        UsageError: a feature is described in a way that Examples do not know.
    """
    leaf = source.structure
    if not isinstance(leaf, TensorLeaf) or leaf.dtype.base is not dtypes.string or leaf.shape.rank not in (1, None):
        raise TypeError(f"parse_example_dataset takes a dataset of vectors of texts (batch them), not {leaf!r}")

    def parsed(serialized: Any) -> dict[str, Any]:
        return parsing.parse_example(serialized, features)

    return mapping.map_elements(source, parsed, num_parallel_calls, None, False, False)


def shuffled_and_repeated(
    source: Dataset, num_epochs: int | None, shuffle: bool, buffer_size: Any, seed: Any
) -> Dataset:  # fmt: skip
    """In a new order, as often as is asked for."""
    made = source.shuffle(buffer_size, seed) if shuffle else source
    return made if num_epochs == 1 else made.repeat(num_epochs)


def read_side_by_side(files: Dataset, read: Any, count: int | None, sloppy: bool) -> Dataset:
    """The elements of datasets of files, of `count` files in turns."""
    return mapping.parallel_interleave(files, read, 1 if count is None else count, 1, sloppy)


def make_batched_features_dataset(
    file_pattern: Any, batch_size: Any, features: Mapping[str, Any], reader: Any = TFRecordDataset,
    label_key: str | None = None, reader_args: Any = None, num_epochs: int | None = None, shuffle: bool = True,
    shuffle_buffer_size: Any = 10000, shuffle_seed: Any = None, prefetch_buffer_size: Any = None,
    reader_num_threads: int | None = None, parser_num_threads: int | None = None, sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:  # fmt: skip
    """Batches of parsed Examples of files, in a new order in each pass.

    Args:
        reader: makes a dataset of a file name and `reader_args`.
        label_key: the feature that is the label: elements are then (features, label).

    Raises:
        UsageError: the label is none of the features.
    """
    if label_key and label_key not in features:
        raise UsageError(f"label_key: expected one of the features {', '.join(sorted(features))}, got '{label_key}'")
    files = list_files(file_pattern, shuffle, shuffle_seed)
    arguments = list(reader_args or [])
    records = read_side_by_side(files, lambda name: reader(name, *arguments), reader_num_threads, sloppy_ordering)
    if isinstance(records.structure, tuple):  # what gives keys and values
        records = records.map(_second)
    records = shuffled_and_repeated(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    parsed = parse_example_dataset(batches, features, parser_num_threads or _PARSERS)

    def with_label(found: dict[str, Any]) -> Any:
        return {key: value for key, value in found.items() if key != label_key}, found[label_key or ""]

    if label_key:
        parsed = parsed.map(with_label)
    return parsed.prefetch(_CHOSEN if prefetch_buffer_size is None else prefetch_buffer_size)


def _second(_key: Any, value: Any) -> Any:
    return value
