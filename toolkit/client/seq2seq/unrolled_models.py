"""Encoders and decoders of symbols put together, over lists of steps (`tf.contrib.legacy_seq2seq`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.cells.wrappers import EmbeddingWrapper, OutputProjectionWrapper
from toolkit.client.recurrent.rnn import static_rnn
from toolkit.client.recurrent.rnn_cell import RNNCell
from toolkit.client.seq2seq.loss import sequence_loss_by_example, unrolled_sequence_loss
from toolkit.client.seq2seq.unrolled import (
    LoopFunction,
    attention_decoder,
    embedding_rnn_decoder,
    feed_back,
    tied_rnn_seq2seq,
)
from toolkit.client.structures import nest
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.graph.shape import Shape

#: a list of outputs and the last state
Decoded = tuple[list[Any], Any]
#: decodes with its own symbols fed back, or without
Decoder = Callable[[bool], Decoded]


def _decoded(feed_previous: Any, decode: Decoder) -> Decoded:
    """What a decoder makes, where a tensor may say in the step whether it is fed its own symbols."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)
    made: list[Decoded] = []

    def branch(fed: bool) -> list[Any]:
        # the first branch makes the variables, the other one has them too
        with variable_scope(get_variable_scope(), reuse=None if fed else True):
            outputs, state = decode(fed)
        made.append((outputs, state))
        return [*outputs, *nest.flatten(state)]

    found = list(cond(feed_previous, lambda: branch(True), lambda: branch(False)))
    outputs, state = made[0]
    rest = found[len(outputs) :]
    return found[: len(outputs)], nest.pack_sequence_as(state, rest) if nest.is_sequence(state) else rest[0]


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike], decoder_inputs: Sequence[TensorLike], cell: RNNCell,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int, output_projection: Any = None,
    feed_previous: Any = False, dtype: DTypeLike = None, scope: Any = None,
) -> Decoded:  # fmt: skip
    """An encoder and a decoder of symbols, [batch] int32 for each step, with variables of their own.

    Args:
        output_projection: (weights, biases) from outputs to symbols; without, outputs are the logits of symbols.
        feed_previous: whether the decoder is fed the symbols that it puts out; a bool, or a tensor.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as inner:
        if dtype is None:
            dtype = inner.dtype
        else:
            inner.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(fed: bool) -> Decoded:
            return embedding_rnn_decoder(
                decoder_inputs, state, cell, num_decoder_symbols, embedding_size, output_projection, fed,
                isinstance(feed_previous, bool),
            )  # fmt: skip

        return _decoded(feed_previous, decode)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike], decoder_inputs: Sequence[TensorLike], cell: RNNCell, num_symbols: int,
    embedding_size: int, num_decoder_symbols: int | None = None, output_projection: Any = None,
    feed_previous: Any = False, dtype: DTypeLike = None, scope: Any = None,
) -> Decoded:  # fmt: skip
    """An encoder and a decoder of the same symbols, which share all variables.

    Args:
        num_decoder_symbols: how many of the symbols are put out; all by default.
        output_projection, feed_previous: as of `embedding_rnn_seq2seq`.

    Raises:
        ValueError: `output_projection` is not for so many symbols.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as inner:
        dtype = inner.dtype
        _check_projection(output_projection, num_symbols, dtype, weights=True)
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=dtype)
        read = [nn_ops.embedding_lookup(embedding, given) for given in encoder_inputs]
        said = [nn_ops.embedding_lookup(embedding, given) for given in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_symbols if num_decoder_symbols is None else num_decoder_symbols)

        def decode(fed: bool) -> Decoded:
            loop: LoopFunction | None = None
            if fed:
                loop = feed_back(embedding, output_projection, isinstance(feed_previous, bool))
            return tied_rnn_seq2seq(read, said, cell, loop_function=loop, dtype=dtype)

        return _decoded(feed_previous, decode)


def embedding_attention_decoder(
    decoder_inputs: Sequence[TensorLike], initial_state: Any, attention_states: TensorLike, cell: RNNCell,
    num_symbols: int, embedding_size: int, num_heads: int = 1, output_size: int | None = None,
    output_projection: Any = None, feed_previous: bool = False, update_embedding_for_previous: bool = True,
    dtype: DTypeLike = None, scope: Any = None, initial_state_attention: bool = False,
) -> Decoded:  # fmt: skip
    """`attention_decoder` of symbols, [batch] int32 for each step, through the variable "embedding".

    Raises:
        ValueError: `output_projection` is not for so many symbols.
    """
    size = cell.output_size if output_size is None else output_size
    _check_projection(output_projection, num_symbols, dtype)
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = feed_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        inputs = [nn_ops.embedding_lookup(embedding, given) for given in decoder_inputs]
        return attention_decoder(
            inputs, initial_state, attention_states, cell, output_size=size, num_heads=num_heads, loop_function=loop,
            initial_state_attention=initial_state_attention,
        )  # fmt: skip


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[TensorLike], decoder_inputs: Sequence[TensorLike], cell: RNNCell,
    num_encoder_symbols: int, num_decoder_symbols: int, embedding_size: int, num_heads: int = 1,
    output_projection: Any = None, feed_previous: Any = False, dtype: DTypeLike = None, scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:  # fmt: skip
    """An encoder of symbols and a decoder that looks at all of its outputs.

    Args:
        output_projection, feed_previous: as of `embedding_rnn_seq2seq`.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as inner:
        dtype = inner.dtype
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(encoder, encoder_inputs, dtype=dtype)
        states = array_ops.concat([array_ops.reshape(each, [-1, 1, cell.output_size]) for each in outputs], 1)
        size: int | None = None
        if output_projection is None:
            cell, size = OutputProjectionWrapper(cell, num_decoder_symbols), num_decoder_symbols

        def decode(fed: bool) -> Decoded:
            return embedding_attention_decoder(
                decoder_inputs, state, states, cell, num_decoder_symbols, embedding_size, num_heads, size,
                output_projection, fed, isinstance(feed_previous, bool),
                initial_state_attention=initial_state_attention,
            )  # fmt: skip

        return _decoded(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[TensorLike], decoder_inputs_dict: Mapping[Any, Sequence[TensorLike]], enc_cell: RNNCell,
    dec_cells_dict: Mapping[Any, RNNCell], num_encoder_symbols: int, num_decoder_symbols_dict: Mapping[Any, int],
    embedding_size: int, feed_previous: Any = False, dtype: DTypeLike = None, scope: Any = None,
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:  # fmt: skip
    """One encoder and a decoder for each key, all of them from the encoder's state.

    Raises:
        TypeError: a cell is none.
        ValueError: cells and inputs have different keys.
    """
    for each in (enc_cell, *dec_cells_dict.values()):
        if not isinstance(each, RNNCell):
            raise TypeError(f"expected a cell, got {type(each).__name__}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError(
            f"dec_cells_dict has {sorted(map(str, dec_cells_dict))}, decoder_inputs_dict "
            f"{sorted(map(str, decoder_inputs_dict))}; give both for the same decoders"
        )
    outputs: dict[Any, list[Any]] = {}
    states: dict[Any, Any] = {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as inner:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=inner.dtype)
        for key, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[key]
            with variable_scope(f"one2many_decoder_{key}"):
                cell = OutputProjectionWrapper(dec_cells_dict[key], symbols)
                decode = _symbols_decoder(inputs, state, cell, symbols, embedding_size)
                outputs[key], states[key] = _decoded(feed_previous, decode)
    return outputs, states


def _symbols_decoder(
    inputs: Sequence[TensorLike], state: Any, cell: RNNCell, symbols: int, embedding_size: int
) -> Decoder:
    return lambda fed: embedding_rnn_decoder(inputs, state, cell, symbols, embedding_size, feed_previous=fed)


def model_with_buckets(
    encoder_inputs: Sequence[Any], decoder_inputs: Sequence[Any], targets: Sequence[Any], weights: Sequence[Any],
    buckets: Sequence[tuple[int, int]], seq2seq: Callable[[Sequence[Any], Sequence[Any]], Decoded],
    softmax_loss_function: Any = None, per_example_loss: bool = False, name: str | None = None,
) -> tuple[list[list[Any]], list[Any]]:  # fmt: skip
    """A model for each pair of lengths, with the same variables: outputs and losses, a list for each bucket.

    Args:
        buckets: lengths of inputs and outputs, from short to long.
        seq2seq: makes a model of the inputs of encoder and decoder.
        per_example_loss: losses [batch], not their mean.

    Raises:
        ValueError: there are fewer steps than the last bucket is long.
    """
    longest = buckets[-1]
    for label, given, length in (
        ("encoder_inputs", encoder_inputs, longest[0]), ("targets", targets, longest[1]),
        ("weights", weights, longest[1]),
    ):  # fmt: skip
        if len(given) < length:
            raise ValueError(f"{label}: the last bucket has {length} steps, got {len(given)}")
    loss = sequence_loss_by_example if per_example_loss else unrolled_sequence_loss
    outputs: list[list[Any]] = []
    losses: list[Any] = []
    with name_scope(name, "model_with_buckets", [*encoder_inputs, *decoder_inputs, *targets, *weights]):
        for number, (read, said) in enumerate(buckets):
            with variable_scope(get_variable_scope(), reuse=True if number else None):
                made, _ = seq2seq(encoder_inputs[:read], decoder_inputs[:said])
                outputs.append(made)
                losses.append(loss(made, targets[:said], weights[:said], softmax_loss_function=softmax_loss_function))
    return outputs, losses


def _check_projection(projection: Any, symbols: int, dtype: DTypeLike, weights: bool = False) -> None:
    if projection is None:
        return
    for label, given, shape in (("weights", projection[0], [None, symbols]), ("biases", projection[1], [symbols])):
        if weights or label == "biases":
            found = convert_to_tensor(given, dtype).static_shape
            if not found.is_compatible_with(Shape(shape)):
                raise ValueError(f"output_projection: expected {label} of shape {Shape(shape)}, got {found}")
