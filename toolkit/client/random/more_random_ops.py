"""Draws from other distributions, candidate classes, and draws that a seed alone determines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.random.seeds import get_seed
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: the number by which ops call the device's own choice of an algorithm
_AUTO_SELECT = 3


def _shape(shape: TensorLike) -> Tensor:
    return convert_to_tensor(shape, None if hasattr(shape, "dtype") else dtypes.int32, name="shape")


def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Class numbers, int64 by default, drawn with the probabilities that `logits` [batch, classes] give."""
    with name_scope(name, "categorical", [logits]):
        first, second = get_seed(seed)
        kind = dtypes.int64 if dtype is None else as_dtype(dtype)
        return ops.multinomial(logits, num_samples, seed=first, seed2=second, output_dtype=kind)


def _least(dtype: DType) -> Any:
    return np.finfo(dtype.numpy).tiny


def random_gamma(
    shape: TensorLike,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from Gamma distributions of shape `alpha` and rate `beta`, `shape` of each."""
    kind = as_dtype(dtype)
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        sizes = convert_to_tensor(shape, dtypes.int32, name="shape")
        alpha = convert_to_tensor(alpha, kind, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, kind, name="beta")
        both = ops.broadcast_args(array_ops.shape(alpha), array_ops.shape(beta))
        spread = array_ops.broadcast_to(alpha, both)
        first, second = get_seed(seed)
        drawn = ops.random_gamma(sizes, spread, seed=first, seed2=second) / beta
        return ops.maximum(_least(kind), drawn)


def random_poisson(
    lam: TensorLike,
    shape: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from Poisson distributions of mean `lam`, `shape` of each."""
    with name_scope(name, "random_poisson", [lam, shape]):
        sizes = convert_to_tensor(shape, dtypes.int32, name="shape")
        first, second = get_seed(seed)
        return ops.random_poisson_v2(sizes, lam, dtype=as_dtype(dtype), seed=first, seed2=second)


# -- candidates --------------------------------------------------------------------------------------------------


def _candidates(op: str, true_classes: TensorLike, seed: int | None, name: str | None, **attrs: Any) -> Any:
    import collections

    first, second = get_seed(seed)
    values = ops.function(op)(true_classes, seed=first, seed2=second, name=name, **attrs)
    fields = ["sampled_candidates", "true_expected_count", "sampled_expected_count"]
    return collections.namedtuple(op, fields)(*values)  # pyright: ignore[reportUntypedNamedTuple]


def uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Classes below `range_max`, each as likely as another, and how often each class is to be expected."""
    return _candidates(
        "UniformCandidateSampler", true_classes, seed, name, num_true=num_true, num_sampled=num_sampled, unique=unique,
        range_max=range_max,
    )  # fmt: skip


def log_uniform_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Classes below `range_max`, by Zipf's law: the first are the most frequent."""
    return _candidates(
        "LogUniformCandidateSampler", true_classes, seed, name, num_true=num_true, num_sampled=num_sampled,
        unique=unique, range_max=range_max,
    )  # fmt: skip


def learned_unigram_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Classes below `range_max`, as often as they have been seen in the steps so far."""
    return _candidates(
        "LearnedUnigramCandidateSampler", true_classes, seed, name, num_true=num_true, num_sampled=num_sampled,
        unique=unique, range_max=range_max,
    )  # fmt: skip


def all_candidate_sampler(
    true_classes: TensorLike, num_true: int, num_sampled: int, unique: bool, seed: int | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """All classes, for tests of what is sampled."""
    return _candidates(
        "AllCandidateSampler", true_classes, seed, name, num_true=num_true, num_sampled=num_sampled, unique=unique
    )


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes below `range_max` with the frequencies of a file or a list, to the power of `distortion`."""
    return _candidates(
        "FixedUnigramCandidateSampler", true_classes, seed, name, num_true=num_true, num_sampled=num_sampled,
        unique=unique, range_max=range_max, vocab_file=vocab_file, distortion=distortion,
        num_reserved_ids=num_reserved_ids, num_shards=num_shards, shard=shard, unigrams=list(unigrams),
    )  # fmt: skip


def compute_accidental_hits(
    true_classes: TensorLike, sampled_candidates: TensorLike, num_true: int, seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Where candidates are true classes: the row, the candidate's number, and minus the largest float."""
    first, second = get_seed(seed)
    return ops.compute_accidental_hits(
        true_classes, sampled_candidates, num_true=num_true, seed=first, seed2=second, name=name
    )


# -- draws that a seed alone determines --------------------------------------------------------------------------


def _key_and_counter(seed: TensorLike, alg: str) -> tuple[Tensor, Tensor]:
    if alg != "auto_select":
        raise UsageError(f"alg: only 'auto_select' is here, which is Philox on a CPU, not {alg!r}")
    return ops.stateless_random_get_key_counter(seed)


def _stateless(op: str, scope: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: Any, alg: str):
    with name_scope(name, scope, [shape, seed, mean, stddev]) as entered:
        sizes = _shape(shape)
        center = convert_to_tensor(mean, as_dtype(dtype), name="mean")
        width = convert_to_tensor(stddev, as_dtype(dtype), name="stddev")
        key, counter = _key_and_counter(seed, alg)
        drawn: Tensor = ops.function(op)(sizes, key, counter, _AUTO_SELECT, dtype=as_dtype(dtype))
        return math_ops.add(drawn * width, center, name=entered)


def stateless_random_normal(
    shape: TensorLike, seed: TensorLike, mean: TensorLike = 0.0, stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32, name: str | None = None, alg: str = "auto_select",
) -> Tensor:  # fmt: skip
    """Normally distributed values.

    Raises:
        UsageError: an algorithm other than "auto_select".
    """
    scope = "stateless_random_normal"
    return _stateless("StatelessRandomNormalV2", scope, shape, seed, mean, stddev, dtype, name, alg)


def stateless_truncated_normal(
    shape: TensorLike, seed: TensorLike, mean: TensorLike = 0.0, stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32, name: str | None = None, alg: str = "auto_select",
) -> Tensor:  # fmt: skip
    """Normally distributed values within two standard deviations.

    Raises:
        UsageError: an algorithm other than "auto_select".
    """
    scope = "stateless_truncated_normal"
    return _stateless("StatelessTruncatedNormalV2", scope, shape, seed, mean, stddev, dtype, name, alg)


def stateless_random_uniform(
    shape: TensorLike,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Uniformly distributed values in [minval, maxval), or all integers of a type where both are None.

    Raises:
        UsageError: one of the two bounds of integers is missing; an algorithm other than "auto_select".
    """
    kind = as_dtype(dtype)
    if kind.is_integer and (minval is None) != (maxval is None):
        raise UsageError("minval and maxval: integers need both, or neither for the whole range of the type")
    if maxval is None and not kind.is_integer:
        maxval = 1
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        sizes = _shape(shape)
        if minval is None:
            key, counter = _key_and_counter(seed, alg)
            return ops.stateless_random_uniform_full_int_v2(
                sizes, key, counter, constant(_AUTO_SELECT, dtypes.int32, name="alg"), dtype=kind, name=scope
            )
        low = convert_to_tensor(minval, kind, name="min")
        high = convert_to_tensor(maxval, kind, name="max")
        key, counter = _key_and_counter(seed, alg)
        if kind.is_integer:
            return ops.stateless_random_uniform_int_v2(
                sizes, key, counter, constant(_AUTO_SELECT, dtypes.int32, name="alg"), low, high, name=scope
            )
        drawn = ops.stateless_random_uniform_v2(sizes, key, counter, _AUTO_SELECT, dtype=kind)
        return math_ops.add(drawn * (high - low), low, name=scope)


def stateless_random_gamma(
    shape: TensorLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draws from Gamma distributions; the last sizes of `shape` are those of alpha and beta together."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]):
        sizes = _shape(shape)
        kind = as_dtype(dtype)
        alpha = convert_to_tensor(alpha, kind, name="alpha")
        beta = convert_to_tensor(1 if beta is None else beta, kind, name="beta")
        both = ops.broadcast_args(array_ops.shape(alpha), array_ops.shape(beta))
        spread = array_ops.broadcast_to(alpha, both)
        key, counter = _key_and_counter(seed, "auto_select")
        drawn = ops.stateless_random_gamma_v3(sizes, key, counter, _AUTO_SELECT, spread) / beta
        return ops.maximum(_least(kind), drawn)


def stateless_random_poisson(
    shape: TensorLike, seed: TensorLike, lam: TensorLike, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Draws from Poisson distributions of mean `lam`."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]):
        return ops.stateless_random_poisson(_shape(shape), seed, lam, dtype=as_dtype(dtype))


def stateless_random_binomial(
    shape: TensorLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How many of `counts` trials succeed, each with probability `probs`."""
    with name_scope(name, "stateless_random_binomial", [shape, seed, counts, probs]):
        sizes = _shape(shape)
        probs = convert_to_tensor(probs, dtypes.float32, name="probs")
        counts = convert_to_tensor(counts, probs.dtype.base, name="counts")
        return ops.stateless_random_binomial(sizes, seed, counts, probs, dtype=as_dtype(output_dtype))


def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """As `categorical`, by a seed alone."""
    with name_scope(name, "stateless_categorical", [logits, seed]):
        return ops.stateless_multinomial(logits, num_samples, seed, output_dtype=as_dtype(dtype))


def stateless_multinomial(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """`stateless_categorical` by its older name."""
    with name_scope(name, "stateless_multinomial", [logits, seed]):
        return ops.stateless_multinomial(logits, num_samples, seed, output_dtype=as_dtype(output_dtype))


def stateless_parameterized_truncated_normal(
    shape: TensorLike,
    seed: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    name: str | None = None,
) -> Tensor:
    """Normally distributed values between two bounds."""
    with name_scope(name, "stateless_parameterized_truncated_normal", [shape, seed, means, stddevs, minvals, maxvals]):
        sizes = _shape(shape)
        means = convert_to_tensor(means, name="means")
        kind = means.dtype.base
        stddevs = convert_to_tensor(stddevs, kind, name="stddevs")
        minvals = convert_to_tensor(minvals, kind, name="minvals")
        maxvals = convert_to_tensor(maxvals, kind, name="maxvals")
        return ops.stateless_parameterized_truncated_normal(sizes, seed, means, stddevs, minvals, maxvals)


def fold_in(seed: TensorLike, data: TensorLike, alg: str = "auto_select") -> Tensor:
    """A seed [2] made of a seed and a number.

    Raises:
        UsageError: an algorithm other than "auto_select".
    """
    number = convert_to_tensor(data)
    drawn = stateless_random_uniform([], seed, None, None, number.dtype.base, alg=alg)
    return array_ops.stack([drawn, number])


def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """Several seeds, [num, 2], made of one.

    Raises:
        UsageError: an algorithm other than "auto_select".
    """
    seed = convert_to_tensor(seed)
    return stateless_random_uniform([num, 2], seed, None, None, seed.dtype.base, alg=alg)
