"""Attention: how much each step of a memory counts for a query (Bahdanau et al. 2014, Luong et al. 2015).

Variables have the names of `tf.contrib.seq2seq`: memory_layer/kernel where the mechanism is made; query_layer/kernel,
attention_v, attention_g and attention_b where it is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.checks.assertions import assert_positive
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.layers.base import Layer
from toolkit.client.layers.core import Dense
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.rnn_cell import size_of, zeros_of
from toolkit.client.structures import nest
from toolkit.client.variables.initializers import Constant, Ones, Zeros
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: from scores [batch, steps] and the state of the last step to alignments [batch, steps]
Probabilities = Callable[[Tensor, Any], Tensor]


def hardmax(logits: TensorLike, name: str | None = None) -> Tensor:
    """1 at the largest of each row, else 0: [..., n] in the type of `logits`."""
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        return array_ops.one_hot(math_ops.argmax(logits, -1), size_of(logits, -1), dtype=logits.dtype.base)


def _layer(given: Any, what: str) -> Any:
    if given is not None and not isinstance(given, Layer):
        raise TypeError(f"{what} of an attention mechanism is a layer (tf.layers), not {type(given).__name__}")
    return given


def _function(given: Any) -> Callable[[Tensor], Tensor]:
    if given is None:
        return nn_ops.softmax
    if not callable(given):
        raise TypeError(f"probability_fn is a function of scores, not {given!r}")
    return cast("Callable[[Tensor], Tensor]", given)


class AttentionMechanism:
    """What an AttentionWrapper asks: `alignments, next_state = mechanism(query, state)`."""

    @property
    def alignments_size(self) -> Any:
        """How many steps the memory has."""
        raise NotImplementedError("an attention mechanism needs alignments_size")

    @property
    def state_size(self) -> Any:
        """The size of the state that goes from step to step."""
        raise NotImplementedError("an attention mechanism needs state_size")


class MemoryAttention(AttentionMechanism):
    """What the mechanisms share: a memory, masked behind its rows' ends, and keys made of it.

    Args:
        query_layer, memory_layer: what is applied to queries and to the memory; None for nothing.
        memory: [batch, steps, ...], or a structure.
        probability_fn: makes alignments of scores.
        memory_sequence_length: [batch]; what is behind counts as zeros and gets `score_mask_value`, by default -inf.
        custom_key_value_fn: from keys and values to others.

    Raises:
        TypeError: a layer is none.
        GraphError: sizes of the memory behind batch and steps are not known.
    """

    def __init__(
        self, query_layer: Any, memory: Any, probability_fn: Probabilities,
        memory_sequence_length: TensorLike | None = None, memory_layer: Any = None,
        check_inner_dims_defined: bool = True, score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None, name: str | None = None,
    ):  # fmt: skip
        self._query_layer, self._memory_layer = _layer(query_layer, "query_layer"), _layer(memory_layer, "memory_layer")
        self.dtype: Any = None if memory_layer is None else memory_layer.dtype
        least = -math.inf if score_mask_value is None else score_mask_value

        def alignments(score: Tensor, state: Any) -> Tensor:
            return probability_fn(_masked_score(score, memory_sequence_length, least), state)

        self._probability_fn = alignments
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._values: Any = _prepared(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys: Any = self._values if memory_layer is None else memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._batch_size = size_of(self._keys, 0)
            self._alignments_size = size_of(self._keys, 1)

    @property
    def memory_layer(self) -> Any:
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, with zeros behind its rows' ends."""
        return self._values

    @property
    def keys(self) -> Any:
        """What queries are compared with."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """What the first step takes for the alignments of the step before: zeros [batch, steps]."""
        return zeros_of(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        return self.initial_alignments(batch_size, dtype)


def _prepared(memory: Any, lengths: TensorLike | None, check_inner_dims_defined: bool) -> Any:
    memory = nest.map_structure(lambda m: convert_to_tensor(m, name="memory"), memory)
    if lengths is not None:
        lengths = convert_to_tensor(lengths, name="memory_sequence_length")
    first = nest.flatten(memory)[0]
    for part in nest.flatten(memory) if check_inner_dims_defined else ():
        if part.static_shape.rank is None or not part.static_shape.slice(2).is_fully_defined:
            raise GraphError(
                f"attention over '{part.name}' of shape {part.static_shape}: the sizes behind batch and steps must be "
                "known; set its shape"
            )
    if lengths is None:
        return memory
    mask = sequence_mask(lengths, maxlen=array_ops.shape(first)[1], dtype=first.dtype.base)

    def masked(m: Tensor) -> Tensor:
        rank: Any = m.static_shape.rank
        ones = array_ops.ones([rank - 2] if rank is not None else [array_ops.rank(m) - 2], dtypes.int32)
        return m * array_ops.reshape(mask, array_ops.concat((array_ops.shape(mask), ones), 0))

    return nest.map_structure(masked, memory)


def _masked_score(score: Tensor, lengths: TensorLike | None, least: float) -> Tensor:
    if lengths is None:
        return score
    with control_dependencies([assert_positive(lengths, message="each memory_sequence_length must be above zero")]):
        mask = sequence_mask(lengths, maxlen=array_ops.shape(score)[1])
    return array_ops.where(mask, score, least * array_ops.ones_like(score))


def luong_score(query: Tensor, keys: Tensor, scale: Any) -> Tensor:
    """The products of a query [batch, n] with keys [batch, steps, n]: [batch, steps].

    Raises:
        GraphError: their last sizes differ.
    """
    depth, units = query.static_shape[-1], keys.static_shape[-1]
    if depth is None or depth != units:
        raise GraphError(
            f"the query '{query.name}' has {depth} units, the keys of the memory {units}; give the attention "
            "num_units of the query's size"
        )
    score = math_ops.matmul(array_ops.expand_dims(query, 1), keys, transpose_b=True)
    score = array_ops.squeeze(score, [1])
    return score if scale is None else scale * score


class BahdanauQueries:
    """Additive scores: v . tanh(keys + query), with v normalized if wanted (Salimans, Kingma 2016)."""

    _num_units: int
    _normalize: bool
    _query_layer: Any
    _keys: Any

    def _score(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """The scores, and the query that they were made of."""
        asked = self._query_layer(query) if self._query_layer is not None else query
        units, kind = self._num_units, query.dtype.base
        direction = get_variable("attention_v", [units], kind)
        gain = offset = None
        if self._normalize:
            gain = get_variable("attention_g", [], kind, Constant(math.sqrt(1.0 / units)))
            offset = get_variable("attention_b", [units], kind, Zeros())
        expanded = array_ops.expand_dims(asked, 1)
        if gain is None or offset is None:
            return math_ops.reduce_sum(direction * math_ops.tanh(self._keys + expanded), [2]), asked
        square = math_ops.reduce_sum(math_ops.square(direction))
        normed = gain * direction * math_ops.rsqrt(square)
        return math_ops.reduce_sum(normed * math_ops.tanh(self._keys + expanded + offset), [2]), asked


class LuongQueries:
    """Multiplicative scores: keys . query, scaled by a variable if wanted."""

    _scale: bool
    _keys: Any

    def _score(self, query: Tensor) -> tuple[Tensor, Tensor]:
        scale = get_variable("attention_g", [], query.dtype.base, Ones()) if self._scale else None
        return luong_score(query, self._keys, scale), query


def dense(num_units: int, name: str, dtype: DTypeLike) -> Dense:
    """A layer without bias, of the given type or float32."""
    return Dense(num_units, name=name, use_bias=False, dtype=dtypes.float32 if dtype is None else as_dtype(dtype))


class LuongAttention(LuongQueries, MemoryAttention):
    """Luong et al. (arXiv 1508.04025).

    Args:
        num_units: the size of queries and keys.
        memory: [batch, steps, ...].
        memory_sequence_length: [batch], the steps that count.
        scale: the scores get a variable factor.
        probability_fn: from scores to alignments; default: softmax.
        score_mask_value: the score of what does not count; default: -inf.
        custom_key_value_fn: from keys and values to others.

    Raises:
        TypeError: probability_fn is no function.
        GraphError: queries are not of `num_units`, or the memory's sizes are not known.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: TensorLike | None = None, scale: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None, score_mask_value: Any = None, dtype: DTypeLike = None,
        custom_key_value_fn: Any = None, name: str = "LuongAttention",
    ):  # fmt: skip
        shares = _function(probability_fn)

        def probabilities(score: Tensor, _: Any) -> Tensor:
            return shares(score)

        self._num_units, self._scale, self._name = num_units, scale, name
        super().__init__(
            None, memory, probabilities, memory_sequence_length,
            dense(num_units, "memory_layer", dtype), score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Alignments [batch, steps], and the same as the next state."""
        with variable_scope(None, "luong_attention", [query]):
            score, _ = self._score(query)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauAttention(BahdanauQueries, MemoryAttention):
    """Bahdanau, Cho, Bengio (arXiv 1409.0473).

    Args:
        normalize: the weights have a length and a direction of their own, and a bias.
        the others: as in LuongAttention.
    """

    def __init__(
        self, num_units: int, memory: Any, memory_sequence_length: TensorLike | None = None, normalize: bool = False,
        probability_fn: Callable[[Tensor], Tensor] | None = None, score_mask_value: Any = None, dtype: DTypeLike = None,
        custom_key_value_fn: Any = None, name: str = "BahdanauAttention",
    ):  # fmt: skip
        shares = _function(probability_fn)

        def probabilities(score: Tensor, _: Any) -> Tensor:
            return shares(score)

        self._num_units, self._normalize, self._name = num_units, normalize, name
        super().__init__(
            dense(num_units, "query_layer", dtype), memory, probabilities, memory_sequence_length,
            dense(num_units, "memory_layer", dtype), score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn, name=name,
        )  # fmt: skip

    def __call__(self, query: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Alignments [batch, steps], and the same as the next state."""
        with variable_scope(None, "bahdanau_attention", [query]):
            score, _ = self._score(query)
        alignments = self._probability_fn(score, state)
        return alignments, alignments
