"""Input drawn by chance: left out or repeated until classes are as frequent as wanted (`tf.contrib.training`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less, assert_less_equal, assert_non_negative
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.inputs.pipelines import batch, collected
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.client.random.more_random_ops import random_poisson
from toolkit.client.train.averages import assign_moving_average
from toolkit.client.variables.creation import Variable
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: what every class is taken to have been seen before the first element
_SMOOTHING = 10
#: how far probabilities may be from adding up to 1
_SUM_OFF = 1e-6


def rejection_sample(
    tensors: Sequence[TensorLike], accept_prob_fn: Callable[[list[Tensor]], Tensor], batch_size: int,
    queue_threads: int = 1, enqueue_many: bool = False, prebatch_capacity: int = 16, prebatch_threads: int = 1,
    runtime_checks: bool = False, name: str | None = None,
) -> list[Tensor]:  # fmt: skip
    """Batches of elements that are kept with a probability of their own.

    Args:
        accept_prob_fn: of an element's tensors, the probability that it is kept.
        enqueue_many: tensors hold elements along their first dimension.
        runtime_checks: each step makes sure that these are probabilities.
    """
    with variable_scope(name, "rejection_sample", list(tensors)):
        elements = [convert_to_tensor(each) for each in tensors]
        if enqueue_many:
            elements = _one_by_one(elements, prebatch_threads, prebatch_capacity)
        chance = accept_prob_fn(elements)
        if runtime_checks:
            with control_dependencies([assert_less_equal(0.0, chance), assert_less_equal(chance, 1.0)]):
                chance = array_ops.identity(chance, name="prob_with_checks")
        return _kept(elements, chance, batch_size, queue_threads)


def _one_by_one(tensors: list[Tensor], threads: int, capacity: int) -> list[Tensor]:
    taken: Any = batch(tensors, 1, num_threads=threads, capacity=capacity, enqueue_many=True)
    parts: list[Any] = list(taken) if len(tensors) > 1 else [taken]
    return [array_ops.squeeze(each, [0]) for each in parts]


def _kept(elements: list[Tensor], chance: Tensor, batch_size: int, threads: int) -> list[Tensor]:
    keep = ops.less(random_ops.random_uniform([]), chance)
    found: Any = collected(
        [elements], batch_size, keep, capacity=32, enqueue_many=False, shapes=None, num_threads=threads,
        default_name="maybe_batch",
    )  # fmt: skip
    return list(found) if len(elements) > 1 else [found]


def stratified_sample(
    tensors: Sequence[TensorLike], labels: TensorLike, target_probs: TensorLike, batch_size: int,
    init_probs: TensorLike | None = None, enqueue_many: bool = False, queue_capacity: int = 16,
    threads_per_queue: int = 1, name: str | None = None,
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """Batches whose classes are as frequent as `target_probs` says, made by leaving elements out.

    Args:
        labels: the class of the element, or [n] with `enqueue_many`.
        init_probs: how frequent classes are; by default counted on the way.

    Returns:
        The batch's tensors, and its labels.

    Raises:
        ValueError: probabilities are not known vectors of one length. In a step, InvalidArgumentError: they are no
            probabilities, or labels no classes.
    """
    with name_scope(name, "stratified_sample", [*tensors, labels]):
        elements = [convert_to_tensor(each) for each in tensors]
        classes = convert_to_tensor(labels)
        target = convert_to_tensor(target_probs, dtypes.float32)
        if not enqueue_many:
            elements = [array_ops.expand_dims(each, 0) for each in elements]
            classes = array_ops.expand_dims(classes, 0)
        count = _length(target, "target_probs")
        initial = _counted(classes, count) if init_probs is None else convert_to_tensor(init_probs, dtypes.float32)
        if _length(initial, "init_probs") != count:
            raise ValueError(f"init_probs: expected {count} numbers, as in target_probs, got {initial.static_shape}")
        initial, target = _checked(initial), _checked(target)
        with control_dependencies([assert_non_negative(classes), assert_less(classes, _like(count, classes))]):
            classes = array_ops.identity(classes)
        possible = math_ops.reduce_all(ops.logical_or(ops.not_equal(initial, 0), ops.equal(target, 0)))
        with control_dependencies([control_flow.Assert(possible, ["classes that never come are wanted:", target])]):
            initial = array_ops.identity(initial)
        ratio = target / initial
        ratio = array_ops.where_v2(ops.is_nan(ratio), array_ops.zeros_like(ratio), ratio)
        chances = ratio / math_ops.reduce_max(ratio)
        *values, label = _one_by_one([*elements, classes], threads_per_queue, queue_capacity)
        *found, kept = _kept([*values, label], array_ops.gather(chances, label), batch_size, threads_per_queue)
        return found, kept


def _like(number: int, other: Tensor) -> Tensor:
    return convert_to_tensor(number, other.dtype.base)


def _length(probabilities: Tensor, name: str) -> int:
    shape = probabilities.static_shape
    length = shape[0] if shape.rank == 1 else None
    if length is None:
        raise ValueError(f"{name}: expected a vector of known length, got a tensor of shape {shape}")
    return length


def _checked(probabilities: Tensor) -> Tensor:
    total = math_ops.reduce_sum(probabilities)
    checks = [
        assert_non_negative(probabilities), assert_less(total, 1.0 + _SUM_OFF), assert_less(1.0 - _SUM_OFF, total),
    ]  # fmt: skip
    with control_dependencies(checks):
        return array_ops.identity(probabilities)


def _counted(labels: Tensor, count: int) -> Tensor:
    """How frequent classes were so far."""
    start = array_ops.fill([count], convert_to_tensor(_SMOOTHING, dtypes.int64))
    seen: Any = Variable(start, trainable=False, name="class_count", dtype=dtypes.int64)
    new = math_ops.reduce_sum(ops.one_hot(labels, count, _like_int64(1), _like_int64(0)), 0)
    numbers = math_ops.cast(seen.assign_add(new), dtypes.float32)
    return numbers / math_ops.reduce_sum(numbers)


def _like_int64(number: int) -> Tensor:
    return convert_to_tensor(number, dtypes.int64)


def resample_at_rate(
    inputs: Sequence[TensorLike], rates: TensorLike, scope: str | None = None, seed: int | None = None,
    back_prop: bool = False,
) -> list[Tensor]:  # fmt: skip
    """Rows of tensors, each as often as a Poisson variable of its rate says.

    Args:
        rates: [rows], how often on average.
        back_prop: kept for programs that give it; draws have no gradient.
    """
    del back_prop
    with name_scope(scope, "resample_at_rate", [*inputs, rates]):
        rate = convert_to_tensor(rates, name="rates")
        counts = math_ops.cast(random_poisson(rate, [], rate.dtype.base, seed=seed), dtypes.int32)
        # row i stands at all places before the i-th sum of counts that are not before the one before it
        ends = ops.cumsum(counts, 0)
        places = math_ops.range(math_ops.reduce_sum(counts))
        found = ops.upper_bound(array_ops.expand_dims(ends, 0), array_ops.expand_dims(places, 0))
        rows = array_ops.squeeze(found, [0])
        return [array_ops.gather(each, rows) for each in inputs]


def weighted_resample(
    inputs: Sequence[TensorLike], weights: Tensor, overall_rate: TensorLike, scope: str | None = None,
    mean_decay: float = 0.999, seed: int | None = None,
) -> tuple[list[Tensor], Tensor]:  # fmt: skip
    """Rows of tensors, each on average as often as its weight, by the mean of weights so far, says.

    Returns:
        The rows, and the rate of each.
    """
    with name_scope(scope, "weighted_resample", list(inputs)) as outer:
        with variable_scope(scope, "estimate_mean", list(inputs)):
            kept = get_variable(
                "estimated_mean", initializer=math_ops.cast(0, weights.dtype.base), trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
            )  # fmt: skip
            mean = assign_moving_average(kept, math_ops.reduce_mean(weights), mean_decay, zero_debias=True)
        rates = weights * overall_rate / mean
        found, *rows = resample_at_rate([rates, *inputs], rates, scope=outer, seed=seed)
        return rows, found
