"""Mistakes with attention and decoders are told when the graph is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit.client.arrays.array_ops import placeholder
from toolkit.client.construction.convert import constant
from toolkit.client.construction.graph import Graph
from toolkit.client.recurrent.rnn_cell import GRUCell
from toolkit.client.seq2seq.attention import BahdanauAttention, LuongAttention
from toolkit.client.seq2seq.beam_search import BeamSearchDecoder
from toolkit.client.seq2seq.beams import tile_batch
from toolkit.client.seq2seq.decoder import BasicDecoder, dynamic_decode
from toolkit.client.seq2seq.helpers import GreedyEmbeddingHelper, TrainingHelper
from toolkit.client.seq2seq.monotonic import monotonic_attention
from toolkit.client.seq2seq.wrapper import AttentionWrapper
from toolkit.errors import GraphError, InvalidArgumentError, UsageError
from toolkit.graph import dtypes


def _memory(*shape: int | None) -> Any:
    return placeholder(dtypes.float32, list(shape or (2, 5, 4)), name="memory")


def _wrapped(**options: Any) -> Any:
    return AttentionWrapper(GRUCell(4), LuongAttention(4, _memory()), **options)


def _helper() -> Any:
    return TrainingHelper(_memory(), [1, 2])


MISTAKES: dict[str, tuple[Any, type[Exception], str]] = {
    "no layer": (
        lambda: BahdanauAttention(4, _memory(), probability_fn=3),  # type: ignore[arg-type]
        TypeError, "is a function of scores, not 3",
    ),
    "sizes unknown": (lambda: LuongAttention(4, _memory(2, 5, None)), GraphError, "must be known; set its shape"),
    "another depth": (lambda: LuongAttention(3, _memory())(_memory(2, 4), None), GraphError, "has 4 units, the keys"),
    "no mode": (lambda: monotonic_attention([[0.5]], [[1.0]], "soft"), UsageError, "not 'soft'"),
    "no cell": (lambda: AttentionWrapper(3, LuongAttention(4, _memory())), TypeError, "wraps a cell, not 3"),
    "no mechanism": (lambda: AttentionWrapper(GRUCell(4), 3), TypeError, "takes an attention mechanism, not 3"),
    "two sizes": (lambda: _wrapped(attention_layer_size=[3, 4]), UsageError, "of 1 mechanisms needs as many"),
    "both": (lambda: _wrapped(attention_layer_size=3, attention_layer=3), UsageError, "not both"),
    "no function": (lambda: _wrapped(cell_input_fn=3), TypeError, "cell_input_fn is a function"),
    "another batch": (lambda: _wrapped().zero_state(6, dtypes.float32), InvalidArgumentError, "tile_batch"),
    "no state": (lambda: _wrapped()(_memory(2, 4), _memory(2, 4)), TypeError, "is an AttentionWrapperState"),
    "no helper": (lambda: BasicDecoder(GRUCell(4), 3, None), TypeError, "takes a helper"),
    "no output layer": (lambda: BasicDecoder(GRUCell(4), _helper(), None, 3), TypeError, "is a layer"),
    "no decoder": (lambda: dynamic_decode(3), TypeError, "runs a Decoder, not int"),
    "no scalar": (
        lambda: dynamic_decode(BasicDecoder(GRUCell(4), _helper(), _memory(2, 4)), maximum_iterations=[3]),
        GraphError, "maximum_iterations is a scalar",
    ),
    "no vector": (lambda: TrainingHelper(_memory(), 3), GraphError, "sequence_length is a vector"),
    "starts": (lambda: GreedyEmbeddingHelper(_memory(7, 4), 1, 0), GraphError, "start_tokens is a vector"),
    "ends": (lambda: GreedyEmbeddingHelper(_memory(7, 4), [1], [0]), GraphError, "end_token is a scalar"),
    "a scalar": (lambda: tile_batch(constant(1.0), 2), GraphError, "a known rank of at least 1"),
    "rows": (
        lambda: BeamSearchDecoder(GRUCell(4), _memory(7, 4), [1, 2], 0, _memory(3, 4), 2), GraphError,
        "batch_size",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_told(what: str) -> None:
    code, error, message = MISTAKES[what]
    with Graph().as_default(), pytest.raises(error, match=message):
        code()


def test_tiling_repeats_rows() -> None:
    from toolkit.runtime.session import Session

    with Graph().as_default() as graph:
        tiled = tile_batch(constant([[1.0], [2.0]]), 2)
        with Session(graph) as session:
            np.testing.assert_array_equal(session.run(tiled), [[1.0], [1.0], [2.0], [2.0]])
