"""Datasets of elements of several, one of which is chosen for each."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.create import create_op
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data import structure as structures
from toolkit.client.data.dataset import Dataset, dataset_of
from toolkit.client.data.leaves import TensorLeaf
from toolkit.client.data.mapping import map_elements
from toolkit.client.data.options import Options
from toolkit.client.data.sources import random_numbers
from toolkit.client.math import math_ops
from toolkit.client.structures import nest
from toolkit.errors import UsageError
from toolkit.graph import dtypes


def sample_from_datasets(
    datasets: Any, weights: Any, seed: Any, stop_on_empty_dataset: bool, rerandomize_each_iteration: bool | None
) -> Dataset:
    """Elements of datasets that are drawn by weights; equal ones where None are given.

    Raises:
        UsageError: nothing is given, or not as many weights as datasets.
    """
    given = list(datasets)
    if not given:
        raise UsageError("sample_from_datasets needs at least one dataset")
    if isinstance(weights, Dataset):
        raise UsageError("weights that are a dataset are not supported; give a list of numbers or a tensor")
    if weights is None:
        logits = [[1.0] * len(given)]
        chosen: Any = convert_to_tensor(logits)
    else:
        if not isinstance(weights, Tensor) and len(weights) != len(given):
            raise UsageError(f"{len(given)} datasets need as many weights, not {len(weights)}")
        tensor = convert_to_tensor(weights, name="weights")
        logs = math_ops.log(tensor, name="logits")
        chosen = array_ops.expand_dims(logs, 0)
    if len(given) == 1:
        return given[0]

    def select_dataset_constant_logits(seed: Any) -> Any:
        drawn = ops.stateless_multinomial(chosen, 1, seed=seed)
        return array_ops.squeeze(drawn, axis=[0, 1])

    numbers = random_numbers(seed, rerandomize_each_iteration).batch(2)
    selector = map_elements(
        numbers, select_dataset_constant_logits, None, None, False, False, preserve_cardinality=True, inter_op=False
    )
    return _directed(selector, given, stop_on_empty_dataset)


def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool) -> Dataset:
    """Elements of datasets, which of them the numbers in another dataset say.

    Raises:
        UsageError: nothing is given, or what chooses are no int64 scalars.
    """
    from toolkit.client.data.elements import endless

    given = list(datasets)
    if not given:
        raise UsageError("choose_from_datasets needs at least one dataset")
    leaf = choice_dataset.structure
    if not isinstance(leaf, TensorLeaf) or leaf.dtype.base is not dtypes.int64 or leaf.shape.rank not in (0, None):
        raise UsageError(f"the dataset that chooses must have int64 scalars, not {leaf!r}")
    return _directed(endless(choice_dataset), given, stop_on_empty_dataset)


def _directed(selector: Dataset, given: list[Dataset], stop: bool) -> Dataset:
    flat = [structures.leaves(each.structure) for each in given]
    for other in flat[1:]:
        if [leaf.dtype for leaf in other] != [leaf.dtype for leaf in flat[0]]:
            raise TypeError("datasets to choose from must have elements of the same types")
    common = flat[0]
    for other in flat[1:]:
        common = [
            one.with_shape(one.shape.most_specific_common(two.shape)) for one, two in zip(common, other, strict=True)
        ]
    structure = nest.pack_sequence_as(given[0].structure, common)
    attrs = {**structures.attributes(structure), "stop_on_empty_dataset": stop}
    inputs = [selector.variant, [each.variant for each in given]]
    options = Options()
    for each in given:
        options = options.merge(each.given_options)
    return dataset_of(create_op("DirectedInterleaveDataset", inputs, attrs).outputs[0], structure, options)
