"""Datasets of the same elements, some of them, in another order or beside others."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, dataset_of, made_of
from toolkit.client.data.options import Options
from toolkit.client.data.seeds import seed_tensors
from toolkit.client.data.sources import number_range
from toolkit.client.structures import nest
from toolkit.graph import dtypes

#: stands for "as many as there are", or "as the runtime thinks best"
_ALL = -1


def int64(value: Any, name: str) -> Tensor:
    """A number as the tensor that ops of datasets take."""
    return convert_to_tensor(value, dtypes.int64, name=name)


def with_options(source: Dataset, options: Options) -> Dataset:
    merged = source.given_options.merge(options)
    with get_default_graph().colocate_with(source.variant):
        made = made_of(source, "OptionsDataset", attrs={"serialized_options": merged.serialized()})
    made.given_options = merged
    return made


def repeat(source: Dataset, count: Any) -> Dataset:
    return made_of(source, "RepeatDataset", [int64(_ALL if count is None else count, "count")])


def take(source: Dataset, count: Any) -> Dataset:
    return made_of(source, "TakeDataset", [int64(count, "count")])


def skip(source: Dataset, count: Any) -> Dataset:
    return made_of(source, "SkipDataset", [int64(count, "count")])


def shard(source: Dataset, num_shards: Any, index: Any) -> Dataset:
    return made_of(source, "ShardDataset", [int64(num_shards, "num_shards"), int64(index, "index")])


def cache(source: Dataset, filename: Any) -> Dataset:
    return made_of(source, "CacheDataset", [convert_to_tensor(filename, dtypes.string, name="filename")])


def prefetch(source: Dataset, buffer_size: Any) -> Dataset:
    buffer = int64(_ALL if buffer_size is None else buffer_size, "buffer_size")
    chosen = isinstance(buffer_size, int) and buffer_size == _ALL
    with get_default_graph().colocate_with(source.variant):
        attrs = {"slack_period": 0, "legacy_autotune": chosen or buffer_size is None, "buffer_size_min": 0}
        return made_of(source, "PrefetchDataset", [buffer], attrs)


def shuffle(source: Dataset, buffer_size: Any, seed: Any, reshuffle_each_iteration: bool | None) -> Dataset:
    buffer = int64(buffer_size, "buffer_size")
    again = True if reshuffle_each_iteration is None else reshuffle_each_iteration
    return made_of(source, "ShuffleDataset", [buffer, *seed_tensors(seed)], {"reshuffle_each_iteration": again})


def concatenate(source: Dataset, other: Dataset) -> Dataset:
    """The elements of one after those of the other.

    Raises:
        TypeError: they are of other types or in another structure.
    """
    here, there = structures.leaves(source.structure), structures.leaves(other.structure)
    alike = [leaf.dtype for leaf in here] == [leaf.dtype for leaf in there]
    try:
        nest.assert_same_structure(source.structure, other.structure)
    except Exception:
        alike = False
    if not alike:
        raise TypeError(f"elements {source.structure!r} cannot be followed by {other.structure!r}; they must be alike")
    common = [one.with_shape(one.shape.most_specific_common(two.shape)) for one, two in zip(here, there, strict=True)]
    structure = nest.pack_sequence_as(source.structure, common)
    made = made_of(source, "ConcatenateDataset", [other.variant], structure=structure)
    made.given_options = source.given_options.merge(other.given_options)
    return made


def zipped(args: Any, datasets: Any) -> Dataset:
    """Elements of several datasets side by side, in the structure in which the datasets are given.

    Raises:
        TypeError: nothing is given, or something that is no dataset.
    """
    if not args and datasets is None:
        raise TypeError("Dataset.zip needs datasets, in a tuple or one after another")
    given = datasets if datasets is not None else args[0] if len(args) == 1 else tuple(args)
    flat = nest.flatten(given)
    for each in flat:
        if not isinstance(each, Dataset):
            raise TypeError(f"Dataset.zip takes datasets, not {each!r}")
    if isinstance(given, list):
        raise TypeError("Dataset.zip takes a tuple of datasets, not a list")
    structure = nest.pack_sequence_as(given, flat) if flat[0] is given else _nested(given)
    variant = create_op("ZipDataset", [[each.variant for each in flat]], structures.attributes(structure)).outputs[0]
    options = Options()
    for each in flat:
        options = options.merge(each.given_options)
    return dataset_of(variant, flat[0].structure if flat[0] is given else structure, options)


def _nested(given: Any) -> Any:
    def structure_of(each: Dataset) -> Any:
        return each.structure

    return given.structure if isinstance(given, Dataset) else nest.map_structure(structure_of, given)


def enumerated(source: Dataset, start: Any) -> Dataset:
    """Elements with their numbers."""
    numbers = endless(number_range(start, int(np.iinfo(np.int64).max)))
    return zipped(((numbers, source),), None)


def endless(numbers: Dataset) -> Dataset:
    """Numbers that go to every worker as they are."""
    from toolkit.client.construction.scopes import name_scope

    with name_scope("RewriteDataset") as scope:
        name = convert_to_tensor("replicate_on_split", dtypes.string, name="rewrite_name")
        attrs = structures.attributes(numbers.structure)
        variant = create_op("RewriteDataset", [numbers.variant, name], attrs, name=scope).outputs[0]
    return dataset_of(variant, numbers.structure)


def single_element(source: Dataset) -> Any:
    """The only element; a step that runs it fails where there are more or none."""
    op = create_op("DatasetToSingleElement", [source.variant], structures.attributes(source.structure))
    return structures.unpacked(source.structure, op.outputs)


def first_size_of(drop_remainder: Any, count: Any) -> int | None:
    """The first size of batches where it is always the same."""
    from toolkit.client.construction.tensor import Tensor as TensorClass

    if isinstance(drop_remainder, TensorClass) or not drop_remainder:
        return None
    if isinstance(count, TensorClass):
        known = count.graph.shapes.constant(count.output)
        return None if known is None else int(known)
    return int(count)
