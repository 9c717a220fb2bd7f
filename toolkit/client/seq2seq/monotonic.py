"""Monotonic attention, which only ever moves forward over its memory (Raffel et al., arXiv 1704.00784)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import functional_ops
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.random import random_ops
from toolkit.client.recurrent.rnn_cell import size_of
from toolkit.client.seq2seq.attention import BahdanauQueries, LuongQueries, MemoryAttention, dense
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import UsageError
from toolkit.graph import dtypes

#: what divides sums of attention is at least this, so that they stay finite; TensorFlow's choice
_LEAST_REMAINING = 1e-10


def safe_cumprod(x: TensorLike, *args: Any, **kwargs: Any) -> Tensor:
    """The cumulative product of numbers in [0, 1], through logarithms; zeros count as the smallest normal number.

    Args:
        args, kwargs: as of tf.cumsum (axis, exclusive, reverse).
    """
    with name_scope(None, "SafeCumprod", [x]):
        x = convert_to_tensor(x, name="x")
        least = np.finfo(x.dtype.base.numpy).tiny
        return math_ops.exp(math_ops.cumsum(math_ops.log(clip_ops.clip_by_value(x, least, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: TensorLike, previous_attention: TensorLike, mode: str) -> Tensor:
    """How likely it is that attention stops at each step of the memory: [batch, steps].

    Args:
        p_choose_i: [batch, steps], the probability of stopping at a step that is reached.
        previous_attention: [batch, steps], where it stopped before.
        mode: "recursive": exactly, step by step. "parallel": at once, less stable for long memories. "hard": for
            probabilities that are 0 or 1.

    Raises:
        UsageError: another mode.
    """
    chosen = convert_to_tensor(p_choose_i, name="p_choose_i")
    before = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = size_of(chosen, 0)
        beginning = array_ops.ones(array_ops.stack([batch, 1]))
        passed = array_ops.concat([beginning, 1 - chosen[:, :-1]], 1)

        def reached(last: Tensor, row: Any) -> Tensor:
            return array_ops.reshape(row[0] * last + row[1], [batch])

        rows = [array_ops.transpose(passed), array_ops.transpose(before)]
        found = functional_ops.scan(reached, rows, array_ops.zeros(array_ops.stack([batch])))
        return chosen * array_ops.transpose(found)
    if mode == "parallel":
        remaining = safe_cumprod(1 - chosen, axis=1, exclusive=True)
        least = clip_ops.clip_by_value(remaining, _LEAST_REMAINING, 1.0)
        return chosen * remaining * math_ops.cumsum(before / least, axis=1)
    if mode == "hard":
        chosen = chosen * math_ops.cumsum(before, axis=1)
        return chosen * ops.cumprod(1 - chosen, 1, exclusive=True)
    raise UsageError(f"monotonic attention has the modes 'recursive', 'parallel' and 'hard', not {mode!r}")


def _probabilities(score: Tensor, before: Any, sigmoid_noise: float, mode: str, seed: int | None) -> Tensor:
    if sigmoid_noise > 0:
        score = score + sigmoid_noise * random_ops.random_normal(
            array_ops.shape(score), dtype=score.dtype.base, seed=seed
        )
    if mode == "hard":
        return monotonic_attention(math_ops.cast(ops.greater(score, 0), score.dtype.base), before, mode)
    return monotonic_attention(math_ops.sigmoid(score), before, mode)


class _Monotonic(MemoryAttention):
    """Attention that begins at the memory's first step, and stands where it stopped last."""

    _score_bias_init: Any
    _scope = ""

    def _score(self, query: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def initial_alignments(self, batch_size: Any, dtype: DTypeLike) -> Any:
        first = array_ops.zeros(array_ops.stack([batch_size]), dtypes.int32)
        return array_ops.one_hot(first, self._alignments_size, dtype=dtype)

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Alignments [batch, steps], and the same as the next state."""
        with variable_scope(None, self._scope, [query]):
            score, asked = self._score(query)
            bias = get_variable("attention_score_bias", None, asked.dtype.base, self._score_bias_init)
            score = score + bias
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauMonotonicAttention(BahdanauQueries, _Monotonic):
    """Monotonic attention with additive scores.

    Args:
        num_units, memory, memory_sequence_length, normalize: as in BahdanauAttention.
        sigmoid_noise: the deviation of what is added to scores, so that probabilities learn to be 0 or 1;
            `sigmoid_noise_seed` is its seed.
        score_bias_init: what the variable attention_score_bias begins with.
        mode: as in `monotonic_attention`.
    """

    _scope = "bahdanau_monotonic_attention"

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: TensorLike | None = None, normalize: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0, mode: str = "parallel", dtype: DTypeLike = None,
        name: str = "BahdanauMonotonicAttention",
    ):  # fmt: skip
        self._num_units, self._normalize, self._name = num_units, normalize, name
        self._score_bias_init = score_bias_init
        probabilities = functools.partial(
            _probabilities, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            dense(num_units, "query_layer", dtype), memory, probabilities, memory_sequence_length,
            dense(num_units, "memory_layer", dtype), score_mask_value=score_mask_value, name=name,
        )  # fmt: skip


class LuongMonotonicAttention(LuongQueries, _Monotonic):
    """Monotonic attention with multiplicative scores; `scale` as in LuongAttention, the rest as in Bahdanau's."""

    _scope = "luong_monotonic_attention"

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: TensorLike | None = None, scale: bool = False,
        score_mask_value: Any = None, sigmoid_noise: float = 0.0, sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0, mode: str = "parallel", dtype: DTypeLike = None,
        name: str = "LuongMonotonicAttention",
    ):  # fmt: skip
        self._num_units, self._scale, self._name = num_units, scale, name
        self._score_bias_init = score_bias_init
        probabilities = functools.partial(
            _probabilities, sigmoid_noise=sigmoid_noise, mode=mode, seed=sigmoid_noise_seed
        )
        super().__init__(
            None, memory, probabilities, memory_sequence_length, dense(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value, name=name,
        )  # fmt: skip
