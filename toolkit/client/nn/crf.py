"""Linear-chain conditional random fields: likelihoods of sequences of tags, and the best sequence (`tf.contrib.crf`).

Scores of tags are [batch, steps, tags], scores of transitions [tags, tags], from the row's tag to the column's. Steps
behind a sequence's length count for nothing. Lafferty, McCallum, Pereira: Conditional random fields (2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn import dynamic_rnn
from toolkit.client.recurrent.rnn_cell import RNNCell
from toolkit.client.variables.store import get_variable
from toolkit.errors import GraphError
from toolkit.graph import dtypes


class CrfForwardRnnCell(RNNCell):
    """A step of the forward algorithm: log of the summed scores of all sequences that end in each tag."""

    def __init__(self, transition_params: TensorLike):
        super().__init__()
        self._transitions = array_ops.expand_dims(transition_params, 0)
        self._tags = self._transitions.static_shape[1]

    @property
    def state_size(self) -> Any:
        return self._tags

    @property
    def output_size(self) -> Any:
        return self._tags

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        sums = math_ops.reduce_logsumexp(array_ops.expand_dims(state, 2) + self._transitions, [1])
        return inputs + sums, inputs + sums


class CrfDecodeForwardRnnCell(RNNCell):
    """A step of Viterbi's algorithm: the best score of a sequence that ends in each tag, and the tag before."""

    def __init__(self, transition_params: TensorLike):
        super().__init__()
        self._transitions = array_ops.expand_dims(transition_params, 0)
        self._tags = self._transitions.static_shape[1]

    @property
    def state_size(self) -> Any:
        return self._tags

    @property
    def output_size(self) -> Any:
        return self._tags

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        scores = array_ops.expand_dims(state, 2) + self._transitions
        before = math_ops.argmax(scores, 1, output_type=dtypes.int32)
        return before, inputs + math_ops.reduce_max(scores, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """A step back along the tags that `CrfDecodeForwardRnnCell` has found."""

    def __init__(self, num_tags: int):
        super().__init__()
        self._tags = num_tags

    @property
    def state_size(self) -> Any:
        return 1

    @property
    def output_size(self) -> Any:
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        rows = math_ops.range(array_ops.shape(inputs)[0])
        tag = array_ops.gather_nd(inputs, array_ops.stack([rows, array_ops.squeeze(state, [1])], 1))
        tag = array_ops.expand_dims(tag, 1)
        return tag, tag


def _counted(sequence_lengths: TensorLike, steps: Tensor) -> Tensor:
    """[batch, steps], 1.0 within a sequence's length and 0.0 behind it."""
    lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    inside = math_ops.range(steps) < array_ops.expand_dims(lengths, 1)
    return math_ops.cast(inside, dtypes.float32)


def crf_unary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, inputs: TensorLike) -> Tensor:
    """[batch]: the scores of the tags of a sequence, without transitions.

    Args:
        tag_indices: [batch, steps], integers.
        sequence_lengths: [batch], integers.
        inputs: [batch, steps, tags].
    """
    inputs = convert_to_tensor(inputs)
    tags = array_ops.expand_dims(math_ops.cast(tag_indices, dtypes.int32), -1)
    sizes = array_ops.shape(inputs)
    flat = array_ops.reshape(inputs, [-1])
    first = math_ops.range(sizes[0] * sizes[1]) * sizes[2]
    scores = array_ops.gather(flat, array_ops.reshape(tags, [-1]) + first)
    return math_ops.reduce_sum(array_ops.reshape(scores, sizes[:2]) * _counted(sequence_lengths, sizes[1]), 1)


def crf_binary_score(tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike) -> Tensor:
    """[batch]: the scores of the transitions of a sequence of tags."""
    tags = math_ops.cast(tag_indices, dtypes.int32)
    transitions = convert_to_tensor(transition_params)
    number = array_ops.shape(transitions)[0]
    pairs = tags[:, :-1] * number + tags[:, 1:]
    scores = array_ops.gather(array_ops.reshape(transitions, [-1]), pairs)
    lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    return math_ops.reduce_sum(scores * _counted(lengths - 1, array_ops.shape(pairs)[1]), 1)


def crf_sequence_score(
    inputs: TensorLike, tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> Tensor:
    """[batch]: the score of a sequence of tags, transitions included, not normalized."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: TensorLike, tag_bitmap: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike
) -> Tensor:
    """[batch]: log of the summed scores of all sequences that a bitmap of tags, [batch, steps, tags], allows."""
    inputs = convert_to_tensor(inputs)
    never = array_ops.fill(array_ops.shape(inputs), float("-inf"))
    allowed = array_ops.where(math_ops.cast(tag_bitmap, dtypes.bool_), inputs, never)
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(inputs: TensorLike, sequence_lengths: TensorLike, transition_params: TensorLike) -> Tensor:
    """[batch]: log of the summed scores of all sequences of tags; 0 for a sequence without steps."""
    inputs = convert_to_tensor(inputs)
    lengths = math_ops.cast(sequence_lengths, dtypes.int32)
    cell = CrfForwardRnnCell(transition_params)
    _, last = dynamic_rnn(
        cell, inputs[:, 1:], sequence_length=math_ops.maximum(lengths - 1, 0), initial_state=inputs[:, 0],
        dtype=inputs.dtype.base,
    )  # fmt: skip
    found = math_ops.reduce_logsumexp(last, [1])
    return array_ops.where(lengths <= 0, array_ops.zeros_like(found), found)


def crf_log_likelihood(
    inputs: TensorLike, tag_indices: TensorLike, sequence_lengths: TensorLike, transition_params: Any = None
) -> tuple[Tensor, Any]:
    """[batch]: log of the likelihood of a sequence of tags; and the transitions' scores.

    Args:
        transition_params: default: the variable "transitions" of the scope.

    Raises:
        GraphError: the number of tags is not known and `transition_params` is not given.
    """
    inputs = convert_to_tensor(inputs)
    if transition_params is None:
        number = inputs.static_shape[2] if inputs.static_shape.rank == 3 else None
        if number is None:
            raise GraphError(f"crf_log_likelihood: the scores {inputs.name} have an unknown number of tags")
        transition_params = get_variable("transitions", [number, number])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def viterbi_decode(score: Any, transition_params: Any) -> tuple[Sequence[int], Any]:
    """The best sequence of tags of one example, and its score; outside of the graph.

    Args:
        score: array [steps, tags].
        transition_params: array [tags, tags].
    """
    import numpy as np

    score, transition_params = np.asarray(score), np.asarray(transition_params)
    best = np.array(score[0])
    before: list[Any] = []
    for row in score[1:]:
        ways = best[:, None] + transition_params
        before.append(ways.argmax(0))
        best = row + ways.max(0)
    tags = [int(best.argmax())]
    for row in reversed(before):
        tags.append(int(row[tags[-1]]))
    return tags[::-1], best.max()


def crf_decode(
    potentials: TensorLike, transition_params: TensorLike, sequence_length: TensorLike
) -> tuple[Tensor, Tensor]:
    """The best sequence of tags, [batch, steps], int32, 0 behind a sequence's length; and its score, [batch]."""
    potentials = convert_to_tensor(potentials)
    lengths = math_ops.cast(sequence_length, dtypes.int32)
    rest = math_ops.maximum(lengths - 1, 0)
    tags = potentials.static_shape[2]
    before, last = dynamic_rnn(
        CrfDecodeForwardRnnCell(transition_params), potentials[:, 1:], sequence_length=rest,
        initial_state=potentials[:, 0], dtype=dtypes.int32,
    )  # fmt: skip
    final = array_ops.expand_dims(math_ops.argmax(last, 1, output_type=dtypes.int32), 1)
    turned = _reversed(before, rest)
    found, _ = dynamic_rnn(
        CrfDecodeBackwardRnnCell(tags or 0), turned, sequence_length=rest, initial_state=final, dtype=dtypes.int32
    )
    backwards = array_ops.concat([final, array_ops.squeeze(found, [2])], 1)
    inside = math_ops.cast(_counted(lengths, array_ops.shape(backwards)[1]), dtypes.int32)
    decoded = _reversed(backwards, math_ops.maximum(lengths, 1)) * inside
    score = math_ops.reduce_max(last, [1])
    return decoded, array_ops.where(lengths <= 0, array_ops.zeros_like(score), score)


def _reversed(x: Tensor, lengths: Tensor) -> Tensor:
    from toolkit.client import ops

    return ops.reverse_sequence(x, lengths, seq_dim=1)
