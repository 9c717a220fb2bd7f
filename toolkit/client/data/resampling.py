"""Datasets whose classes are made as frequent as is asked for, by leaving elements out by chance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.data.choosing import sample_from_datasets
from toolkit.client.data.dataset import Dataset
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes

#: how many elements are counted between two estimates, and what every class is taken to have been seen before
_ESTIMATED = 32
_SMOOTHING = 10


def rejection_resample(
    source: Dataset, class_func: Callable[..., Any], target_dist: Any, initial_dist: Any, seed: Any
) -> Dataset:
    """Pairs of class and element, the classes as frequent as `target_dist` says.

    Args:
        class_func: of an element, the number of its class.
        initial_dist: how frequent they are; estimated on the way where it is None.
    """
    target = convert_to_tensor(target_dist, name="target_dist")
    classes = source.map(class_func)
    both = Dataset.zip((classes, source))
    kept: float | None = None
    if initial_dist is not None:
        initial = convert_to_tensor(initial_dist, name="initial_dist")
        accepted, original = _probabilities(initial, target)
        chances = Dataset.from_tensors(accepted).repeat()
        originals = Dataset.from_tensors(original).repeat()
        known = static_value(initial), static_value(target)
        if known[0] is not None and known[1] is not None:
            kept = float(np.min(known[1] / known[0]))
    else:

        def probabilities(initial: Any) -> Any:
            return _probabilities(initial, target)

        found = _estimated(classes, target).map(probabilities)
        chances, originals = found.map(_first), found.map(_second)
    if kept == 1:
        return both
    rest = _accepted(classes, chances, source, seed).prefetch(3)
    if kept == 0:
        return rest
    weights = originals.map(_either)
    return sample_from_datasets([both, rest], weights, seed, False, None)


def _accepted(classes: Dataset, chances: Dataset, source: Dataset, seed: Any) -> Dataset:
    """The elements that chance lets pass, each with its class."""

    def with_chance(number: Any, chance: Any, element: Any) -> Any:
        return number, array_ops.gather(chance, number), element

    drawn = Dataset.zip((classes, chances, source)).map(with_chance)

    def passes(_number: Any, chance: Any, _element: Any) -> Any:
        return random_ops.random_uniform([], seed=seed) < chance

    return drawn.filter(passes).map(_without_chance)


def _first(one: Any, _other: Any) -> Any:
    return one


def _second(_one: Any, other: Any) -> Any:
    return other


def _either(chance: Any) -> Any:
    return array_ops.stack([chance, 1.0 - chance])


def _without_chance(number: Any, _chance: Any, element: Any) -> Any:
    return number, element


def _probabilities(initial: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """For each class the chance to pass, and how much of the result is taken without any choice."""
    ratios = target / (initial + np.finfo(initial.dtype.base.numpy).tiny)
    least, most = math_ops.reduce_min(ratios), math_ops.reduce_max(ratios)
    return (ratios - least) / (most - least), least


def _estimated(classes: Dataset, target: Tensor) -> Dataset:
    """The distribution of classes as far as they have been seen, once for each element."""
    count = target.static_shape[0] or array_ops.shape(target)[0]
    seen = ops.fill([count], np.int64(_SMOOTHING))

    def step(before: Any, numbers: Any) -> Any:
        new = math_ops.reduce_sum(array_ops.one_hot(numbers, count, dtype=dtypes.int64), 0)
        now = before + new
        shares = math_ops.cast(math_ops.divide(now, math_ops.reduce_sum(now)), dtypes.float32)
        return now, array_ops.tile(array_ops.expand_dims(shares, 0), [_ESTIMATED, 1])

    return classes.batch(_ESTIMATED).scan(seen, step).unbatch()
