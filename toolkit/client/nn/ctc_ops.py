"""Connectionist temporal classification: the loss, and decoders."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.sparse.tensor import SparseTensor, as_sparse

Decoded = tuple[list[SparseTensor], Tensor]


def ctc_loss(
    labels: Any,
    inputs: TensorLike,
    sequence_length: TensorLike,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
) -> Tensor:
    """The negative log-likelihood of sparse labels [batch, any] given logits [steps, batch, classes].

    The last class is the blank.
    """
    sparse = as_sparse(labels)
    logits = inputs if time_major else array_ops.transpose(inputs, [1, 0, 2])
    return ops.ctc_loss(
        logits, sparse.indices, sparse.values, sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated, ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )[0]  # fmt: skip


def ctc_greedy_decoder(
    inputs: TensorLike, sequence_length: TensorLike, merge_repeated: bool = True, blank_index: int | None = None
) -> Decoded:
    """The likeliest class of each step, without blanks; and minus the sum of the logits."""
    places, values, shape, score = ops.ctc_greedy_decoder(
        inputs, sequence_length, merge_repeated=merge_repeated, blank_index=-1 if blank_index is None else blank_index
    )
    return [SparseTensor(places, values, shape)], score


def ctc_beam_search_decoder(
    inputs: TensorLike,
    sequence_length: TensorLike,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> Decoded:
    """The `top_paths` likeliest labellings that a beam search finds, and their log-probabilities."""
    places, values, shapes, score = ops.ctc_beam_search_decoder(
        inputs, sequence_length, beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated
    )
    return [SparseTensor(*parts) for parts in zip(places, values, shapes, strict=True)], score


def ctc_beam_search_decoder_v2(
    inputs: TensorLike, sequence_length: TensorLike, beam_width: int = 100, top_paths: int = 1
) -> Decoded:
    """`ctc_beam_search_decoder` that keeps repeated classes."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)
