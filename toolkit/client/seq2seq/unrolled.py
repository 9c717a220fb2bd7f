"""Decoders over lists of steps, one after the other in the graph (`tf.contrib.legacy_seq2seq`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.cells.linear import linear
from toolkit.client.recurrent.rnn import static_rnn
from toolkit.client.recurrent.rnn_cell import RNNCell
from toolkit.client.structures import nest
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: makes the next input of a decoder from its last output and the number of the step
LoopFunction = Callable[[Any, int], Any]


def rnn_decoder(
    decoder_inputs: Sequence[Any], initial_state: Any, cell: RNNCell, loop_function: LoopFunction | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """The outputs of a cell over a list of inputs, and its last state.

    Args:
        loop_function: from the second step on, the input is what it makes of the last output.
    """
    with variable_scope(scope or "rnn_decoder"):
        state = initial_state
        outputs: list[Any] = []
        for step, given in enumerate(decoder_inputs):
            if step:
                get_variable_scope().reuse_variables()
                if loop_function is not None:
                    with variable_scope("loop_function", reuse=True):
                        given = loop_function(outputs[-1], step)
            output, state = cell(given, state)
            outputs.append(output)
        return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: RNNCell, dtype: DTypeLike = dtypes.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """An encoder and a decoder of the same cell, with variables of their own."""
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], cell: RNNCell,
    loop_function: LoopFunction | None = None, dtype: DTypeLike = dtypes.float32, scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """An encoder and a decoder that share their variables."""
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def feed_back(embedding: Any, output_projection: Any, update_embedding: bool) -> LoopFunction:
    """The embedding of the class with the largest output."""

    def loop(previous: Any, _: int) -> Tensor:
        if output_projection is not None:
            previous = nn_ops.bias_add(math_ops.matmul(previous, output_projection[0]), output_projection[1])
        found = nn_ops.embedding_lookup(embedding, math_ops.argmax(previous, 1))
        return found if update_embedding else array_ops.stop_gradient(found)

    return loop


def embedding_rnn_decoder(
    decoder_inputs: Sequence[TensorLike], initial_state: Any, cell: RNNCell, num_symbols: int, embedding_size: int,
    output_projection: Any = None, feed_previous: bool = False, update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """A decoder of symbols, [batch] int32 for each step, through the variable "embedding".

    Args:
        output_projection: (weights, biases) from outputs to symbols.
        feed_previous: only the first input counts; the others are the symbols that were put out.
    """
    with variable_scope(scope or "embedding_rnn_decoder"):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = feed_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [nn_ops.embedding_lookup(embedding, given) for given in decoder_inputs]
        return rnn_decoder(inputs, initial_state, cell, loop_function=loop)


def attention_decoder(
    decoder_inputs: Sequence[TensorLike], initial_state: Any, attention_states: TensorLike, cell: RNNCell,
    output_size: int | None = None, num_heads: int = 1, loop_function: LoopFunction | None = None,
    dtype: DTypeLike = None, scope: Any = None, initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:  # fmt: skip
    """A decoder that looks at all states of the encoder in every step (Bahdanau, Cho, Bengio, 2014).

    Args:
        attention_states: [batch, length, size], length and size known.
        output_size: default: the cell's.
        initial_state_attention: look before the first step, too; otherwise that sees zeros.

    Raises:
        GraphError: there is no input, no head, or a size is not known.
    """
    if not decoder_inputs:
        raise GraphError("attention_decoder: there are no inputs")
    if num_heads < 1:
        raise GraphError(f"attention_decoder: {num_heads} heads; there has to be one")
    memory = convert_to_tensor(attention_states)
    length, size = memory.static_shape[1], memory.static_shape[2]
    if length is None or size is None:
        raise GraphError(f"attention_decoder: {memory.name}: length and size of {memory.static_shape} are needed")
    with variable_scope(scope or "attention_decoder"):
        first = convert_to_tensor(decoder_inputs[0])
        batch = array_ops.shape(first)[0]
        hidden = array_ops.reshape(memory, [-1, length, 1, size])
        features: list[Tensor] = []
        scales: list[Any] = []
        for head in range(num_heads):
            kernel = get_variable(f"AttnW_{head}", [1, 1, size, size], dtype=memory.dtype.base)
            features.append(ops.conv2d(hidden, kernel, strides=[1, 1, 1, 1], padding="SAME"))
            scales.append(get_variable(f"AttnV_{head}", [size], dtype=memory.dtype.base))

        def attention(query: Any) -> list[Tensor]:
            parts = [convert_to_tensor(part) for part in nest.flatten(query)]
            joined = parts[0] if len(parts) == 1 else array_ops.concat(parts, 1)
            found: list[Tensor] = []
            for head in range(num_heads):
                with variable_scope(f"Attention_{head}"):
                    asked = array_ops.reshape(linear([joined], size), [-1, 1, 1, size])
                    scores = math_ops.reduce_sum(scales[head] * math_ops.tanh(features[head] + asked), [2, 3])
                    shares = array_ops.reshape(nn_ops.softmax(scores), [-1, length, 1, 1])
                    seen = math_ops.reduce_sum(shares * hidden, [1, 2])
                    found.append(array_ops.reshape(seen, [-1, size]))
            return found

        state = initial_state
        outputs: list[Any] = []
        looked = [array_ops.zeros(array_ops.stack([batch, size]), memory.dtype.base) for _ in range(num_heads)]
        for each in looked:
            each.set_shape([None, size])
        if initial_state_attention:
            looked = attention(initial_state)
        wanted = output_size or cell.output_size
        for step, given in enumerate(decoder_inputs):
            if step:
                get_variable_scope().reuse_variables()
                if loop_function is not None:
                    with variable_scope("loop_function", reuse=True):
                        given = loop_function(outputs[-1], step)
            given = convert_to_tensor(given)
            width = given.static_shape[1]
            if width is None:
                raise GraphError(f"attention_decoder: the input {given.name} has an unknown size")
            merged = linear([given, *looked], width)
            output, state = cell(merged, state)
            if step == 0 and initial_state_attention:
                with variable_scope(get_variable_scope(), reuse=True):
                    looked = attention(state)
            else:
                looked = attention(state)
            with variable_scope("AttnOutputProjection"):
                outputs.append(linear([output, *looked], wanted))
        return outputs, state
