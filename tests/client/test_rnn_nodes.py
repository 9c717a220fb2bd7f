"""Recurrent layers make the variables and nodes that TensorFlow's make, their gradients too."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.client.client_programs import tf1_semantics
from tests.client.node_descriptions import described
from toolkit import Session
from toolkit import client as gm
from toolkit.client.recurrent import rnn, rnn_cell, wrappers
from toolkit.errors import GraphError, UsageError

_LAYERS = ("dynamic_rnn", "static_rnn", "bidirectional_dynamic_rnn", "static_bidirectional_rnn", "raw_rnn")
_CELLS = ("BasicRNNCell", "GRUCell", "BasicLSTMCell", "LSTMCell", "MultiRNNCell")
_WRAPPERS = ("DropoutWrapper", "ResidualWrapper", "DeviceWrapper")


def _theirs(tf: ModuleType) -> Any:
    # TensorFlow 2.21 with Keras 3 hides the cells; they are where its older Keras has them
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells

    v1 = tf.compat.v1
    return SimpleNamespace(
        placeholder=v1.placeholder, float32=tf.float32, int32=tf.int32, unstack=v1.unstack, gradients=v1.gradients,
        reduce_sum=v1.reduce_sum, TensorArray=tf.TensorArray, constant=v1.constant, zeros=v1.zeros, cond=v1.cond,
        **{name: getattr(v1.nn, name) for name in _LAYERS},
        **{name: getattr(cells, name) for name in (*_CELLS, *_WRAPPERS)},
    )  # fmt: skip


def _ours() -> Any:
    return SimpleNamespace(
        placeholder=gm.placeholder, float32=gm.float32, int32=gm.int32, unstack=gm.unstack, gradients=gm.grad,
        reduce_sum=gm.reduce_sum, TensorArray=gm.TensorArray, constant=gm.constant, zeros=gm.zeros, cond=gm.cond,
        **{name: getattr(rnn, name) for name in _LAYERS},
        **{name: getattr(rnn_cell, name) for name in _CELLS},
        **{name: getattr(wrappers, name) for name in _WRAPPERS},
    )  # fmt: skip


def _inputs(t: Any) -> tuple[Any, Any]:
    return t.placeholder(t.float32, [None, 5, 3], name="x"), t.placeholder(t.int32, [None], name="lengths")


def basic_lstm(t: Any) -> None:
    x, lengths = _inputs(t)
    outputs, _ = t.dynamic_rnn(t.BasicLSTMCell(4), x, sequence_length=lengths, dtype=t.float32)
    t.gradients(t.reduce_sum(outputs), [x])


def basic_rnn(t: Any) -> None:
    t.dynamic_rnn(t.BasicRNNCell(4), _inputs(t)[0], dtype=t.float32)


def gru(t: Any) -> None:
    x, lengths = _inputs(t)
    t.dynamic_rnn(t.GRUCell(4), x, lengths, dtype=t.float32, time_major=True, swap_memory=True)


def full_lstm(t: Any) -> None:
    x, lengths = _inputs(t)
    cell = t.LSTMCell(4, use_peepholes=True, num_proj=2, cell_clip=1.0, proj_clip=2.0)
    t.dynamic_rnn(cell, x, lengths, dtype=t.float32)


def joined_state(t: Any) -> None:
    t.dynamic_rnn(t.LSTMCell(4, state_is_tuple=False), _inputs(t)[0], dtype=t.float32)


def stacked(t: Any) -> None:
    x, lengths = _inputs(t)
    t.dynamic_rnn(t.MultiRNNCell([t.BasicLSTMCell(4), t.GRUCell(3)]), x, lengths, dtype=t.float32)


def both_directions(t: Any) -> None:
    x, lengths = _inputs(t)
    t.bidirectional_dynamic_rnn(t.LSTMCell(4), t.LSTMCell(4), x, lengths, dtype=t.float32)


def unrolled(t: Any) -> None:
    t.static_rnn(t.BasicLSTMCell(4), t.unstack(_inputs(t)[0], axis=1), dtype=t.float32)


def unrolled_with_lengths(t: Any) -> None:
    x, lengths = _inputs(t)
    t.static_rnn(t.GRUCell(4), t.unstack(x, axis=1), dtype=t.float32, sequence_length=lengths)


def unrolled_in_both_directions(t: Any) -> None:
    t.static_bidirectional_rnn(t.GRUCell(4), t.GRUCell(4), t.unstack(_inputs(t)[0], axis=1), dtype=t.float32)


def residual_and_placed(t: Any) -> None:
    x, _ = _inputs(t)
    t.dynamic_rnn(t.ResidualWrapper(t.GRUCell(3)), x, dtype=t.float32)
    t.dynamic_rnn(t.DeviceWrapper(t.GRUCell(3), "/device:CPU:0"), x, dtype=t.float32, scope="placed")


PROGRAMS = [
    basic_lstm, basic_rnn, gru, full_lstm, joined_state, stacked, both_directions, unrolled, unrolled_with_lengths,
    unrolled_in_both_directions, residual_and_placed,
]  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.filterwarnings("ignore")
def test_same_nodes_as_tensorflow(tf: ModuleType, program: Callable[[Any], None]) -> None:
    theirs, ours = tf.Graph(), gm.Graph()
    with theirs.as_default(), tf1_semantics(tf):
        program(_theirs(tf))
    with ours.as_default():
        program(_ours())
    expected, found = described(theirs.as_graph_def().node), described(ours.as_graph_def().node)
    assert [n[:2] for n in found] == [n[:2] for n in expected]
    for mine, wanted in zip(found, expected, strict=True):
        assert mine == wanted


def test_sequences_end_where_they_end() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 4, 3], name="x")
        outputs, state = rnn.dynamic_rnn(rnn_cell.GRUCell(5), x, [2, 4], dtype=gm.float32)
        start = gm.global_variables_initializer()
    session = Session(graph)
    session.run(start)
    found, last = session.run([outputs, state], {"x:0": np.ones([2, 4, 3], np.float32)})
    assert not found[0, 2:].any() and found[1].all()
    np.testing.assert_array_equal(last, [found[0, 1], found[1, 3]])


def test_a_function_drives_the_loop() -> None:
    """A decoder that adds up what it puts out, until all rows are finished."""

    class Adds(rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs: Any, state: Any) -> Any:
            return inputs + state, inputs + state

    with gm.Graph().as_default() as graph:
        limits = gm.constant([2, 3])

        def step(time: Any, output: Any, state: Any, count: Any) -> Any:
            following = gm.zeros([2, 1]) if output is None else state
            return time >= limits, gm.ones([2, 1]), following, None, gm.constant(0) if count is None else count + 1

        arrays, state, count = rnn.raw_rnn(Adds(), step)
        outputs = arrays.stack()
    found, last, times = Session(graph).run([outputs, state, count])
    np.testing.assert_array_equal(found[:, :, 0], [[1, 1], [2, 2], [0, 3]])
    np.testing.assert_array_equal(last[:, 0], [2, 3])
    assert times == 3


def test_dropout_keeps_what_it_keeps() -> None:
    with gm.Graph().as_default() as graph:
        gm.set_random_seed(1)
        cell = wrappers.DropoutWrapper(
            rnn_cell.BasicRNNCell(64, activation=lambda g: g * 0.0 + 1.0), 1.0, 0.5, 1.0,
            variational_recurrent=True, dtype=gm.float32, seed=3,
        )  # fmt: skip
        outputs, _ = rnn.dynamic_rnn(cell, gm.ones([2, 6, 3]), dtype=gm.float32)
        start = gm.global_variables_initializer()
    session = Session(graph)
    session.run(start)
    found = session.run(outputs)
    assert set(np.unique(found)) == {0.0, 2.0}
    assert (found == found[:1, :1]).all()  # the same elements in all rows and steps


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: rnn.dynamic_rnn(rnn_cell.GRUCell(2), x), UsageError, "initial_state, or the dtype"),
        (lambda x: rnn.dynamic_rnn(rnn_cell.GRUCell(2), x[0], dtype=gm.float32), GraphError, "batch, steps, size"),
        (lambda x: rnn.static_rnn(rnn_cell.GRUCell(2), x), GraphError, "takes a list of inputs"),
        (lambda x: rnn.raw_rnn(rnn_cell.GRUCell(2), 3), UsageError, "must be a function"),
        (lambda x: rnn_cell.MultiRNNCell([]), UsageError, "at least one cell"),
        (lambda x: rnn_cell.MultiRNNCell([rnn_cell.LSTMCell(2)], False), UsageError, "states that are tuples"),
        (lambda x: rnn_cell.GRUCell(2, wrong=1), UsageError, "has no option wrong"),
        (lambda x: wrappers.DropoutWrapper(rnn_cell.GRUCell(2), 0.0), UsageError, r"in \(0, 1\], not 0.0"),
        (lambda x: wrappers.DropoutWrapper(3), UsageError, "takes a cell"),
        (
            lambda x: rnn.dynamic_rnn(wrappers.ResidualWrapper(rnn_cell.GRUCell(2)), x, dtype=gm.float32),
            GraphError,
            "a residual cell puts out",
        ),
    ],
)
def test_mistakes(call: Any, error: type[Exception], message: str) -> None:
    with gm.Graph().as_default(), pytest.raises(error, match=message):
        call(gm.placeholder(gm.float32, [4, 5, 3]))
