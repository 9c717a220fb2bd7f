"""Few functions of networks that TensorFlow has dropped: dropout that keeps means, softplus of a width, losses whose
arguments stand the other way round."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.losses.sampled import sampled_logits, sampled_softmax_loss
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.nn.embeddings import embedding_lookup, parts_of
from toolkit.client.random import random_ops
from toolkit.graph import dtypes

#: what a self-normalizing network's activation, SELU, tends to: -lambda * alpha (Klambauer et al., arXiv 1706.02515)
_LEAST = -1.7580993408473766


def alpha_dropout(
    x: TensorLike, keep_prob: TensorLike, noise_shape: TensorLike | None = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Dropout that leaves mean and variance as they were, for networks of SELU.

    Args:
        keep_prob: how likely each number stays, above 0 and at most 1.
        noise_shape: of the draws, broadcast to `x`.

    Raises:
        ValueError: `keep_prob` is a number that is no such probability.
    """
    with name_scope(name, "alpha_dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, int | float) and not 0 < keep_prob <= 1:
            raise ValueError(f"keep_prob: expected a probability above 0 and at most 1, got {keep_prob}")
        keep = convert_to_tensor(keep_prob, x.dtype.base, name="keep_prob")
        if keep.static_shape.rank not in (None, 0):
            raise ValueError(f"keep_prob: expected one number, got a tensor of shape {keep.static_shape}")
        known = static_value(keep)
        if known is not None and known == 1:
            return x
        shape = array_ops.shape(x) if noise_shape is None else noise_shape
        drawn = random_ops.random_uniform(shape, seed=seed, dtype=x.dtype.base)
        kept = math_ops.cast(ops.greater_equal(drawn, 1 - keep), x.dtype.base)
        mixed = x * kept + _LEAST * (1 - kept)
        scale = (keep + keep * (1 - keep) * _LEAST**2) ** (-0.5)
        shift = -scale * _LEAST * (1 - keep)
        return scale * mixed + shift


def scaled_softplus(
    x: TensorLike, alpha: TensorLike, clip: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """alpha * log(1 + exp(x / alpha)), at most `clip`."""
    with name_scope(name, "scaled_softplus", [x, alpha, *([] if clip is None else [clip])]):
        x = convert_to_tensor(x, name="x")
        width = convert_to_tensor(alpha, x.dtype.base, name="alpha")
        y = width * nn_ops.softplus(x / width)
        return y if clip is None else ops.minimum(y, convert_to_tensor(clip, x.dtype.base, name="clip"))


def nth_element(input: TensorLike, n: TensorLike, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th smallest number of each row (`reverse`: the n-th largest), from 0 on."""
    return ops.nth_element(input, n, reverse=reverse, name=name)


def sampled_sparse_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, sampled_values: Any = None,
    remove_accidental_hits: bool = True, partition_strategy: str = "mod",
    name: str | None = "sampled_sparse_softmax_loss",
) -> Tensor:  # fmt: skip
    """`sampled_softmax_loss` of one true class for each example, computed with its number."""
    logits, _ = sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, 1, sampled_values, remove_accidental_hits,
        partition_strategy, name, None,
    )  # fmt: skip
    first = array_ops.zeros([array_ops.shape(logits)[0]], dtypes.int64)  # the true class stands before the others
    return nn_ops.sparse_softmax_cross_entropy_with_logits(first, logits)


def rank_sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_resampled: int, num_classes: int,
    num_true: int, sampled_values: Any, resampling_temperature: TensorLike, remove_accidental_hits: bool,
    partition_strategy: str, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`sampled_softmax_loss` over the draws that the batch finds likeliest: the hardest of many.

    Args:
        num_sampled: how many classes are drawn, more than
        num_resampled: how many of them count.
        sampled_values: what a candidate sampler gave; default: that of `learned_unigram_candidate_sampler`.
        resampling_temperature: logits are divided by it before draws are ranked.

    Raises:
        ValueError: too many classes are drawn, or too few; an unknown strategy.
    """
    if num_sampled > num_classes:
        raise ValueError(f"num_sampled: {num_sampled} classes cannot be drawn of {num_classes}")
    if num_sampled <= num_resampled:
        raise ValueError(f"num_resampled: expected fewer than the {num_sampled} that are drawn, got {num_resampled}")
    if partition_strategy not in ("div", "mod"):
        raise ValueError(f"partition_strategy: expected 'div' or 'mod', got {partition_strategy!r}")
    with name_scope(name, "rank_sampled_softmax_loss", [*parts_of(weights), biases, labels, inputs]) as scope:
        drawn = sampled_values or ops.learned_unigram_candidate_sampler(
            true_classes=math_ops.cast(labels, dtypes.int64),
            num_true=num_true,
            num_sampled=num_sampled,
            unique=True,
            range_max=num_classes,
            seed=0,
            seed2=0,
        )
        sampled, true_expected, sampled_expected = (array_ops.stop_gradient(each) for each in drawn)
        sampled = math_ops.cast(sampled, dtypes.int64)
        rows = embedding_lookup(parts_of(weights), sampled, partition_strategy=partition_strategy)
        scores = math_ops.reduce_logsumexp(
            math_ops.matmul(rows, inputs / resampling_temperature, transpose_b=True), axis=1
        )
        offsets = array_ops.reshape(embedding_lookup(biases, sampled, partition_strategy=partition_strategy), [-1])
        scores = scores + offsets / resampling_temperature
        _, hardest = ops.top_kv2(scores, num_resampled, sorted=False)
        chosen = (
            array_ops.gather(sampled, hardest), true_expected, array_ops.gather(sampled_expected, hardest),
        )  # fmt: skip
        return sampled_softmax_loss(
            weights, biases, labels, inputs, num_resampled, num_classes, num_true, chosen, remove_accidental_hits,
            partition_strategy, scope,
        )  # fmt: skip
