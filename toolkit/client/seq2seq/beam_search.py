"""Beam search: the best sequences of a cell, several for each row of a batch (`tf.contrib.seq2seq`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape, constant
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.math import math_ops
from toolkit.client.seq2seq.beam_step import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    alignments_of,
    beam_search_step,
)
from toolkit.client.seq2seq.beams import gather_tree, merge_beams, rank_of, sorted_beams, split_beams
from toolkit.client.seq2seq.decoder import Decoder, check_cell, layered_output_size
from toolkit.client.seq2seq.helpers import as_embedding, scalar, vector
from toolkit.client.structures import nest
from toolkit.graph import dtypes


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Whole sequences [batch, steps, width], best first, and what each step had."""

    predicted_ids: Any
    beam_search_decoder_output: Any


class BeamSearchDecoder(Decoder):
    """Keeps the `beam_width` best sequences of each row.

    Args:
        embedding: a function of class numbers [batch, width], or a table [classes, size].
        start_tokens: int32 [batch].
        end_token: the class that ends a sequence.
        initial_state: the cell's, for batch * beam_width rows (`tile_batch`).
        output_layer: makes the logits of the cell's outputs.
        length_penalty_weight: above 0, long sequences lose less.
        coverage_penalty_weight: above 0, sequences whose attention leaves much of the memory out lose.
        reorder_tensor_arrays: arrays in the final state (alignment histories) follow the best beams.

    Raises:
        TypeError: an argument is of another kind.
        GraphError: the initial state, start_tokens or end_token have another shape.
    """

    def __init__(
        self, cell: Any, embedding: Any, start_tokens: TensorLike, end_token: TensorLike, initial_state: Any,
        beam_width: int, output_layer: Any = None, length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0, reorder_tensor_arrays: bool = True,
    ):  # fmt: skip
        check_cell("BeamSearchDecoder", cell, output_layer)
        self._cell, self._output_layer, self._beam_width = cell, output_layer, beam_width
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._length_penalty_weight, self._coverage_penalty_weight = length_penalty_weight, coverage_penalty_weight
        self._embedding_fn = as_embedding(embedding)
        starts = vector(start_tokens, "start_tokens")
        self._end_token = scalar(end_token, "end_token")
        self._batch_size = array_ops.size(start_tokens)
        self._initial_cell_state: Any = nest.map_structure(self._split, initial_state, cell.state_size)
        self._start_tokens = array_ops.tile(array_ops.expand_dims(starts, 1), [1, beam_width])
        self._start_inputs = self._embedding_fn(self._start_tokens)
        self._finished = array_ops.one_hot(
            array_ops.zeros(array_ops.stack([self._batch_size]), dtypes.int32), beam_width, on_value=False,
            off_value=True, dtype=dtypes.bool_,
        )  # fmt: skip

    def _split(self, t: Any, inner: Any) -> Any:
        if isinstance(t, TensorArray) or rank_of(t) < 1:
            return t
        return split_beams(t, self._batch_size, self._beam_width, inner)

    def _rows(self, t: Tensor) -> Tensor:
        return merge_beams(t, self._batch_size, self._beam_width, t.static_shape.slice(2))

    def _beams(self, t: Tensor) -> Tensor:
        return split_beams(t, self._batch_size, self._beam_width, t.static_shape.slice(1))

    def _merged(self, t: Any, inner: Any) -> Any:
        if isinstance(t, TensorArray) or rank_of(t) < 2:
            return t
        return merge_beams(t, self._batch_size, self._beam_width, inner)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        return True

    @property
    def output_size(self) -> Any:
        beams = as_shape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> Any:
        kind = self._kind()
        scores = nest.map_structure(lambda _: kind, layered_output_size(self._cell, self._output_layer))
        return BeamSearchDecoderOutput(scores, dtypes.int32, dtypes.int32)

    def _kind(self) -> Any:
        return nest.flatten(self._initial_cell_state)[0].dtype.base

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        kind, width, batch = self._kind(), self._beam_width, self._batch_size
        log_probs = array_ops.one_hot(
            array_ops.zeros(array_ops.stack([batch]), dtypes.int32), width, on_value=constant(0.0, kind),
            off_value=constant(-np.inf, kind), dtype=kind,
        )  # fmt: skip
        alignments = alignments_of(self._initial_cell_state, self._coverage_penalty_weight)
        lengths = array_ops.zeros(array_ops.stack([batch, width]), dtypes.int64)
        state = BeamSearchDecoderState(
            self._initial_cell_state, log_probs, self._finished, lengths, () if alignments is None else alignments
        )
        return self._finished, self._start_inputs, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        batch, width = self._batch_size, self._beam_width
        with name_scope(name, "BeamSearchDecoderStep", [time, *nest.flatten(inputs)]):
            inputs = nest.map_structure(self._rows, inputs)
            inner = nest.map_structure(self._merged, state.cell_state, self._cell.state_size)
            outputs, inner = self._cell(inputs, inner)
            outputs = nest.map_structure(self._beams, outputs)
            inner = nest.map_structure(self._split, inner, self._cell.state_size)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            found, following = beam_search_step(
                outputs, inner, state, batch, width, self._end_token, self._length_penalty_weight,
                self._coverage_penalty_weight,
            )  # fmt: skip
            next_inputs = cond(
                math_ops.reduce_all(following.finished), lambda: self._start_inputs,
                lambda: self._embedding_fn(found.predicted_ids),
            )  # fmt: skip
        return found, following, next_inputs, following.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Sequences, followed backwards from the last step's beams."""
        longest = math_ops.cast(math_ops.reduce_max(final_state.lengths, 1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            inner = nest.map_structure(
                lambda t: sorted_beams(t, outputs.parent_ids, final_state.lengths, self._batch_size, self._beam_width),
                final_state.cell_state,
            )  # fmt: skip
            final_state = final_state._replace(cell_state=inner)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state
