"""Connectionist temporal classification with labels as dense rows."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import functional_ops
from toolkit.client.math import math_ops
from toolkit.client.nn import ctc_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import UsageError
from toolkit.graph import dtypes


def ctc_loss_v2(
    labels: Any,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The negative log-likelihood [batch] of labels [batch, any], dense or sparse.

    Args:
        logits: [steps, batch, classes]; [batch, steps, classes] unless `logits_time_major`.
        label_length, logit_length: how many of each row count, [batch]; the first only for dense labels.
        unique: what `ctc_unique_labels` gives; the op needs no such help.
        blank_index: the class that stands for no label; default: 0; sparse labels have no default.

    Raises:
        UsageError: sparse labels without a blank.
    """
    is_sparse = isinstance(labels, SparseTensor)
    if is_sparse and blank_index is None:
        raise UsageError("ctc_loss_v2: sparse labels need blank_index")
    blank = 0 if blank_index is None else blank_index
    with name_scope(name, "ctc_loss" if is_sparse else "ctc_loss_dense", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        kind = logits.dtype.base
        if kind in (dtypes.float16, dtypes.bfloat16):
            logits = math_ops.cast(logits, dtypes.float32)
        if blank < 0:
            blank = blank + (logits.static_shape[2] or array_ops.shape(logits)[2])
        parts = [logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank : blank + 1]]
        logits = array_ops.concat(parts, 2)
        found = labels if is_sparse else _sparse(labels, label_length)
        values = array_ops.where(ops.less(found.values, blank), found.values, found.values - 1)
        found = SparseTensor(found.indices, values, found.dense_shape)
        lengths = math_ops.cast(convert_to_tensor(logit_length), dtypes.int32)
        loss = ctc_ops.ctc_loss(found, logits, lengths, time_major=logits_time_major)
        return loss if loss.dtype.base is kind else math_ops.cast(loss, kind)


def _sparse(labels: TensorLike, lengths: TensorLike) -> SparseTensor:
    """The first `lengths` of each row."""
    labels = math_ops.cast(convert_to_tensor(labels, name="labels"), dtypes.int32)
    places = array_ops.where(sequence_mask(lengths, array_ops.shape(labels)[1]))
    return SparseTensor(places, array_ops.gather_nd(labels, places), array_ops.shape(labels, out_type=dtypes.int64))


def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Labels [batch, any] with runs of one label as one, and how many of each row are left."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        lengths = convert_to_tensor(seq_length, name="seq_length")
        first = array_ops.ones_like(labels[:, :1], dtypes.bool_)
        starts = array_ops.concat([first, math_ops.not_equal(labels[:, 1:], labels[:, :-1])], 1)
        width: Any = labels.static_shape[1] or array_ops.shape(labels)[1]
        starts = ops.logical_and(starts, sequence_mask(lengths, width))
        left = math_ops.reduce_sum(math_ops.cast(starts, dtypes.int32), 1)
        longest = math_ops.reduce_max(left)
        kept = sequence_mask(left, longest)
        flat_labels, flat_starts, kept = [array_ops.reshape(each, [-1]) for each in (labels, starts, kept)]
        count: Any = kept.static_shape[0] or array_ops.shape(kept)[0]
        places = array_ops.expand_dims(array_ops.boolean_mask(math_ops.range(count), kept), 1)
        values = array_ops.boolean_mask(flat_labels, flat_starts)
        flat = ops.scatter_nd(places, values, array_ops.shape(kept))
        rows: Any = labels.static_shape[0] or array_ops.shape(labels)[0]
        return array_ops.reshape(flat, [rows, longest]), math_ops.cast(left, lengths.dtype.base)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> Any:
    """The different labels of each row, filled up with zeros, int64; and which of them each label is, int32."""
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")

        def one(row: Tensor) -> list[Tensor]:
            found, places = ops.unique(row)
            width: Any = places.static_shape[0] or array_ops.shape(places)[0]
            rest = width - array_ops.shape(found)[0]
            return [math_ops.cast(array_ops.pad(found, [[0, rest]]), dtypes.int64), places]

        return functional_ops.map_fn(one, labels, dtype=[dtypes.int64, dtypes.int32])
