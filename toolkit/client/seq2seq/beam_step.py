"""One step of beam search: every beam continued by every class, and the best kept."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.rnn_cell import size_of
from toolkit.client.seq2seq.beams import gathered, rank_of
from toolkit.client.seq2seq.wrapper import AttentionWrapperState
from toolkit.client.structures import nest
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: of a length penalty, ((5 + length) / 6) ** weight (Wu et al., arXiv 1609.08144)
_PENALTY_START = 5.0


class BeamSearchDecoderState(NamedTuple):
    """Beams [batch, width]: the cell's states, log probabilities, which are over, lengths, sums of alignments or ()."""

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """One step's beams [batch, width]: their scores, the classes chosen, the beams they came from."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


def alignments_of(cell_state: Any, coverage_penalty_weight: float) -> Any:
    """The mean of all alignments in a state, where there is a coverage penalty.

    Raises:
        GraphError: no state is that of an AttentionWrapper.
    """
    if isinstance(coverage_penalty_weight, int | float) and coverage_penalty_weight == 0:
        return None
    several: list[Any] = [cell_state]
    if isinstance(cell_state, tuple) and not isinstance(cell_state, AttentionWrapperState):
        several = list(cast("tuple[Any, ...]", cell_state))
    found = [_mean(each.alignments) for each in several if isinstance(each, AttentionWrapperState)]
    if not found:
        raise GraphError("a coverage penalty needs a cell with attention (AttentionWrapper); the weight must be 0.0")
    return _mean(tuple(found)) if len(found) > 1 else found[0]


def _mean(alignments: Any) -> Tensor:
    if not isinstance(alignments, tuple):
        return alignments
    several = [array_ops.expand_dims(each, -1) for each in cast("tuple[Tensor, ...]", alignments)]
    return math_ops.reduce_mean(array_ops.concat(several, -1), -1)


def beam_search_step(
    logits: Tensor, cell_state: Any, before: BeamSearchDecoderState, batch: Tensor, width: int, end_token: Tensor,
    length_penalty_weight: Any, coverage_penalty_weight: Any,
) -> tuple[BeamSearchDecoderOutput, BeamSearchDecoderState]:  # fmt: skip
    """The best `width` continuations of each row's beams.

    Args:
        logits: [batch, width, classes].
        cell_state: the cell's next states, [batch, width, ...].
    """
    known = known_value(batch)
    open_beams = ops.logical_not(before.finished)
    step_probs = _only_end(nn_ops.log_softmax(logits), end_token, before.finished)
    totals = array_ops.expand_dims(before.log_probs, 2) + step_probs
    classes = size_of(logits, -1)
    longer = array_ops.one_hot(
        ops.fill(array_ops.stack([batch, width]), end_token), classes, on_value=constant(0, dtypes.int64),
        off_value=constant(1, dtypes.int64), dtype=dtypes.int64,
    )  # fmt: skip
    longer = longer * array_ops.expand_dims(math_ops.cast(open_beams, dtypes.int64), 2)
    lengths = longer + array_ops.expand_dims(before.lengths, 2)
    covered = None
    alignments = alignments_of(cell_state, coverage_penalty_weight)
    if alignments is not None:
        alignments = alignments * array_ops.expand_dims(math_ops.cast(open_beams, dtypes.float32), 2)
        covered = before.accumulated_attention_probs + alignments
    scores = _scores(totals, lengths, length_penalty_weight, coverage_penalty_weight, before.finished, covered)
    flat = array_ops.reshape(scores, array_ops.stack([batch, -1]))
    best, chosen = nn_ops.top_k(flat, convert_to_tensor(width, dtypes.int32, name="beam_width"))
    for each in (best, chosen):
        each.set_shape([known, width])
    probs = gathered(chosen, totals, batch, width * classes, [-1], name="next_beam_probs")
    words = math_ops.cast(ops.floor_mod(chosen, classes, name="next_beam_word_ids"), dtypes.int32)
    parents = math_ops.cast(chosen / classes, dtypes.int32, name="next_beam_parent_ids")
    over = gathered(parents, before.finished, batch, width, [-1])
    finished = ops.logical_or(over, ops.equal(words, end_token), name="next_beam_finished")
    grown = math_ops.cast(ops.logical_not(over), dtypes.int64)
    new_lengths = gathered(parents, before.lengths, batch, width, [-1]) + grown
    beams = [batch * width, -1]
    sums: Any = ()
    if covered is not None:
        sums = gathered(parents, covered, batch, width, beams, name="next_accumulated_attention_probs")

    def followed(value: Any) -> Any:
        if isinstance(value, TensorArray) or rank_of(value) < len(beams):
            return value
        return gathered(parents, value, batch, width, beams)

    state = nest.map_structure(followed, cell_state)
    following = BeamSearchDecoderState(state, probs, finished, new_lengths, sums)
    return BeamSearchDecoderOutput(best, words, parents), following


def _only_end(log_probs: Tensor, end_token: Tensor, finished: Tensor) -> Tensor:
    """Beams that are over go on with the end token, whose log probability is 0, and nothing else."""
    kind = log_probs.dtype.base
    classes = array_ops.shape(log_probs)[2]
    row = array_ops.one_hot(
        end_token, classes, on_value=constant(0.0, kind), off_value=constant(kind.min, kind), dtype=kind
    )
    counts = array_ops.concat([array_ops.shape(finished), [1]], 0)
    rows = array_ops.tile(array_ops.reshape(row, [1, 1, -1]), counts)
    mask = array_ops.tile(array_ops.expand_dims(finished, 2), array_ops.stack([1, 1, classes]))
    return array_ops.where(mask, rows, log_probs)


def _scores(
    log_probs: Tensor, lengths: Tensor, length_weight: Any, coverage_weight: Any, finished: Tensor, covered: Any
) -> Tensor:
    """Log probabilities over a penalty of length, and a penalty of what attention has not covered.

    Raises:
        GraphError: the weight of coverage is no scalar.
    """
    scores = log_probs / math_ops.cast(_length_penalty(lengths, length_weight), log_probs.dtype.base)
    weight = convert_to_tensor(coverage_weight, name="coverage_penalty_weight")
    if weight.static_shape.rank != 0:
        raise GraphError(f"coverage_penalty_weight is a scalar; it has shape {weight.static_shape}")
    if covered is None:
        return scores
    seen = array_ops.where(ops.equal(covered, 0.0), array_ops.ones_like(covered), covered)
    penalty = math_ops.reduce_sum(math_ops.log(math_ops.minimum(seen, 1.0)), 2)
    penalty = penalty * math_ops.cast(finished, dtypes.float32)
    return scores + array_ops.expand_dims(penalty * weight, 2)


def _length_penalty(lengths: Tensor, weight: Any) -> Any:
    factor = convert_to_tensor(weight, name="penalty_factor")
    factor.set_shape([])
    known = static_value(factor)
    if known is not None and known == 0:
        return 1.0
    grown = (_PENALTY_START + math_ops.cast(lengths, dtypes.float32)) ** factor
    return math_ops.divide(grown, (_PENALTY_START + 1.0) ** factor)
