"""Losses over many classes that are estimated from a few: noise contrast, sampled softmax."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.losses.cross_entropy import softmax_cross_entropy
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.nn.embeddings import embedding_lookup, parts_of
from toolkit.client.random.more_random_ops import compute_accidental_hits, log_uniform_candidate_sampler
from toolkit.graph import dtypes


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: logistic losses [batch] of the true classes against `num_sampled` others.

    Args:
        weights: [num_classes, size], or several variables with its rows (`partition_strategy` says how).
        biases: [num_classes].
        labels: [batch, num_true], the true classes.
        inputs: [batch, size].
        sampled_values: what a candidate sampler gave; default: that of `log_uniform_candidate_sampler`.
        remove_accidental_hits: draws that are true classes do not count.
    """
    logits, targets = sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        partition_strategy, name, None,
    )  # fmt: skip
    return _row_sums(nn_ops.sigmoid_cross_entropy_with_logits(targets, logits, name="sampled_losses"))


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Softmax cross-entropies [batch] over the true classes and `num_sampled` others; arguments as of `nce_loss`."""
    logits, targets = sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        partition_strategy, name, seed,
    )  # fmt: skip
    targets = array_ops.stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy(targets, logits)


def sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int,
    sampled_values: Any, without_hits: bool, strategy: str, name: str | None, seed: int | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Logits and targets [batch, num_true + num_sampled], less the logarithm of how often each is expected."""
    parts = parts_of(weights)
    with name_scope(name, "compute_sampled_logits", [*parts, biases, inputs, labels]):
        if labels.dtype.base is not dtypes.int64:
            labels = math_ops.cast(labels, dtypes.int64)
        flat = array_ops.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                true_classes=labels, num_true=num_true, num_sampled=num_sampled, unique=True, range_max=num_classes,
                seed=seed,
            )  # fmt: skip
        sampled, true_expected, sampled_expected = [array_ops.stop_gradient(each) for each in sampled_values]
        sampled = math_ops.cast(sampled, dtypes.int64)
        ids = array_ops.concat([flat, sampled], 0)

        rows = _like(embedding_lookup(parts, ids, partition_strategy=strategy), inputs)
        true_rows = array_ops.slice(rows, [0, 0], array_ops.stack([array_ops.shape(flat)[0], -1]))
        sampled_rows = array_ops.slice(rows, array_ops.stack([array_ops.shape(flat)[0], 0]), [-1, -1])
        sampled_logits = math_ops.matmul(inputs, sampled_rows, transpose_b=True)

        offsets = _like(embedding_lookup(biases, ids, partition_strategy=strategy), inputs)
        true_offsets = array_ops.slice(offsets, [0], array_ops.shape(flat))
        sampled_offsets = array_ops.slice(offsets, array_ops.shape(flat), [-1])

        size = array_ops.shape(true_rows)[1:2]
        shape = array_ops.concat([[-1, num_true], size], 0)
        products = math_ops.multiply(array_ops.expand_dims(inputs, 1), array_ops.reshape(true_rows, shape))
        products = array_ops.reshape(products, array_ops.concat([[-1], size], 0))
        true_logits = array_ops.reshape(_row_sums(products), [-1, num_true])
        true_logits = true_logits + array_ops.reshape(true_offsets, [-1, num_true])
        sampled_logits = sampled_logits + sampled_offsets
        if without_hits:
            sampled_logits = sampled_logits + _hits(labels, sampled, num_true, num_sampled, sampled_logits)
        true_logits = true_logits - ops.log(true_expected)
        sampled_logits = sampled_logits - ops.log(sampled_expected)
        logits = array_ops.concat([true_logits, sampled_logits], 1)
        shares = array_ops.ones_like(true_logits) / num_true
        return logits, array_ops.concat([shares, array_ops.zeros_like(sampled_logits)], 1)


def _like(tensor: Tensor, other: TensorLike) -> Tensor:
    return tensor if tensor.dtype.base is other.dtype.base else math_ops.cast(tensor, other.dtype.base)


def _hits(labels: Tensor, sampled: Tensor, num_true: int, num_sampled: int, logits: Tensor) -> Tensor:
    """Minus infinity, nearly, where a draw is a true class, to be added to the draws' logits."""
    rows, columns, weights = compute_accidental_hits(labels, sampled, num_true=num_true)
    row = array_ops.reshape(rows, [-1, 1])
    column = array_ops.reshape(math_ops.cast(columns, dtypes.int32), [-1, 1])
    places = array_ops.concat([row, column], 1, "sparse_indices")
    shape = array_ops.concat([array_ops.shape(labels)[:1], array_ops.expand_dims(num_sampled, 0)], 0)
    return ops.sparse_to_dense(places, shape, _like(weights, logits), 0.0, validate_indices=False)


def _row_sums(x: Tensor) -> Tensor:
    """The sum of each row, by a product with ones."""
    ones = array_ops.ones(array_ops.stack([array_ops.shape(x)[1], 1]), x.dtype)
    return array_ops.reshape(math_ops.matmul(x, ones), [-1])
