"""Loops over time steps that Keras and TensorFlow 1 write, and ops that are cells: as primitives where they can be."""

# TensorFlow has no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.compiler.loops.recurrent_cases import FORMS, KINDS, array, check_frozen, check_function

pytestmark = pytest.mark.tensorflow


def _layer(kind: str, units: int, **options: Any) -> Any:
    """A layer with random biases: zeros would hide one in the wrong place."""
    import keras

    options["bias_initializer"] = keras.initializers.RandomNormal(stddev=0.5, seed=3)
    if kind == "lstm":
        return keras.layers.LSTM(units, **options)
    return keras.layers.GRU(units, reset_after=kind == "lbr_gru", **options)


SIZES = [(32, 50, 64, 128), (1, 1, 3, 5), (1, 9, 7, 17), (3, 1, 16, 16), (5, 4, 1, 1), (2, 11, 33, 40)]


@FORMS
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_keras(tf: ModuleType, tmp_path: Path, kind: str, sizes: Any, lowered: bool) -> None:
    batch, steps, inputs, units = sizes
    for sequences, state in ((True, True), (False, False)):
        layer = _layer(kind, units, return_sequences=sequences, return_state=state)
        check_function(tf, tmp_path, layer, [array(batch, steps, inputs)], lowered, [kind])


@FORMS
@pytest.mark.parametrize("kind", KINDS)
def test_initial_states_that_are_fed(tf: ModuleType, tmp_path: Path, kind: str, lowered: bool) -> None:
    layer = _layer(kind, 12, return_sequences=True, return_state=True, go_backwards=True)
    states = [array(3, 12) for _ in range(2 if kind == "lstm" else 1)]
    check_function(
        tf, tmp_path, lambda x, *state: layer(x, initial_state=list(state)), [array(3, 6, 5), *states], lowered, [kind]
    )


@FORMS
def test_stacks_in_both_directions(tf: ModuleType, tmp_path: Path, lowered: bool) -> None:
    import keras

    layers = [
        keras.layers.Bidirectional(_layer(kind, 9, return_sequences=kind != "gru"))
        for kind in ("lstm", "lbr_gru", "gru")
    ]
    network = keras.Sequential([*layers, keras.layers.Dense(4)])
    check_function(tf, tmp_path, network, [array(2, 7, 6)], lowered, [*KINDS, *KINDS])


def test_an_initial_state_that_is_constant(tf: ModuleType, tmp_path: Path) -> None:
    layer = _layer("lstm", 12)

    def call(x: Any) -> Any:
        return layer(x, initial_state=[tf.ones([3, 12]), tf.zeros([3, 12])])

    check_function(tf, tmp_path, call, [array(3, 6, 5)], False, ["lstm"])


@FORMS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
def test_numbers_that_are_none(tf: ModuleType, tmp_path: Path, kind: str, bad: float, lowered: bool) -> None:
    layer = _layer(kind, 8, return_sequences=True, return_state=True)
    x, states = array(4, 6, 5), [array(4, 8) for _ in range(2 if kind == "lstm" else 1)]
    x[1, 2, 3] = bad
    x[2, 4, 1] = -bad
    for row, state in enumerate(states):
        state[3 * row, 4] = bad
    check_function(tf, tmp_path, lambda x, *state: layer(x, initial_state=list(state)), [x, *states], lowered, [kind])


@FORMS
@pytest.mark.parametrize("change", ["activation", "recurrent_activation", "mask"])
def test_layers_of_keras_that_stay(tf: ModuleType, tmp_path: Path, change: str, lowered: bool) -> None:
    inputs = [array(2, 5, 6)]
    if change == "mask":
        layer = _layer("lstm", 7)
        inputs.append(np.array([[True] * 5, [True, False, True, True, False]]))
        check_function(
            tf, tmp_path, lambda x, mask: layer(x, mask=mask), inputs, lowered, [], "not an LSTM or GRU layer: "
        )
    else:
        options = {change: "hard_sigmoid"}
        check_function(tf, tmp_path, _layer("lstm", 7, **options), inputs, lowered, [])


@FORMS
@pytest.mark.parametrize("implementation", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_the_keras_before(
    tf: ModuleType, tmp_path: Path, kind: str, implementation: int, lowered: bool
) -> None:
    """Which cuts the weights of each gate out, or joins them all."""
    from tensorflow.python.keras.layers import recurrent

    options: dict[str, Any] = {"implementation": implementation, "recurrent_activation": "sigmoid"}
    options |= {"bias_initializer": "random_normal", "return_sequences": True}
    layer = recurrent.LSTM(9, **options) if kind == "lstm" else recurrent.GRU(9, reset_after=kind[0] == "l", **options)
    check_function(tf, tmp_path, layer, [array(2, 5, 6)], lowered, [kind])


# -- TensorFlow 1 --------------------------------------------------------------------------------------------------


def _classic(
    tf: ModuleType, folder: Path, build: Callable[[Any, Any], Any], x: np.ndarray, functional: bool,
    layers: Sequence[str], why: str = "", loops: bool = True,
) -> None:  # fmt: skip
    """Freeze a graph with placeholder x and compare what `build(x, cells)` gives."""
    from tensorflow.python.keras.layers.legacy_rnn import rnn_cell_impl as cells

    v1 = tf.compat.v1
    if not functional:
        v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph, v1.Session(graph=graph) as running:
            v1.set_random_seed(5)
            given = v1.placeholder(tf.float32, x.shape, name="x")
            outputs = [tf.identity(value) for value in tf.nest.flatten(build(given, cells))]
            running.run(v1.global_variables_initializer())
            wanted = running.run(outputs, {given: x})
            nodes = [value.op.name for value in outputs]
            frozen = v1.graph_util.convert_variables_to_constants(running, graph.as_graph_def(), nodes)
    finally:
        v1.enable_control_flow_v2()
    check_frozen(folder, frozen, [value.name for value in outputs], {"x:0": x}, wanted, layers, why, loops)


CLASSIC = pytest.mark.parametrize("functional", [False, True], ids=["switch", "functional"])
CELLS: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "LSTMCell": (lambda cells, units: cells.LSTMCell(units, forget_bias=0.7), "lstm"),
    "BasicLSTMCell": (lambda cells, units: cells.BasicLSTMCell(units), "lstm"),
    "peepholes": (lambda cells, units: cells.LSTMCell(units, use_peepholes=True, initializer=_scattered), "lstm"),
    "GRUCell": (lambda cells, units: cells.GRUCell(units, bias_initializer=_scattered), "gru"),
}


def _scattered(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
    del dtype, partition_info
    return np.random.default_rng(2).standard_normal(list(shape)).astype(np.float32)


@CLASSIC
@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("sizes", [(4, 9, 6, 16), (1, 1, 5, 7)], ids=str)
def test_dynamic_rnn(tf: ModuleType, tmp_path: Path, name: str, sizes: Any, functional: bool) -> None:
    batch, steps, inputs, units = sizes
    make, kind = CELLS[name]

    def build(x: Any, cells: Any) -> Any:
        return tf.compat.v1.nn.dynamic_rnn(make(cells, units), x, dtype=tf.float32)

    _classic(tf, tmp_path, build, array(batch, steps, inputs), functional, [kind])


@CLASSIC
def test_cells_above_each_other_in_one_loop(tf: ModuleType, tmp_path: Path, functional: bool) -> None:
    def build(x: Any, cells: Any) -> Any:
        stack = cells.MultiRNNCell([cells.LSTMCell(6), cells.GRUCell(5), cells.BasicLSTMCell(4)])
        pair = cells.LSTMStateTuple
        initial = [pair(x[:, 0, :6], x[:, 1, :6]), x[:, 2, :5], pair(x[:, 1, :4], x[:, 1, 2:6])]
        ahead = tf.compat.v1.nn.dynamic_rnn(stack, x, initial_state=tuple(initial))
        return ahead, tf.compat.v1.nn.dynamic_rnn(cells.GRUCell(3), x, time_major=True, dtype=tf.float32, scope="other")

    _classic(tf, tmp_path, build, array(3, 4, 8), functional, ["lstm", "gru", "lstm", "gru"])


STAYS: dict[str, tuple[Callable[[Any, Any, Any], Any], str]] = {
    "projection": (lambda v1, x, cells: _rnn(v1, cells.LSTMCell(5, num_proj=3), x), ""),
    "clipping": (lambda v1, x, cells: _rnn(v1, cells.LSTMCell(5, cell_clip=0.5), x), "no part of a cell"),
    "activation": (lambda v1, x, cells: _rnn(v1, cells.GRUCell(5, activation=v1.nn.relu), x), ""),
    "residual": (lambda v1, x, cells: _rnn(v1, cells.ResidualWrapper(cells.GRUCell(6)), x), "the output of a cell"),
    "lengths": (lambda v1, x, cells: _rnn(v1, cells.LSTMCell(5), x, sequence_length=[4, 2, 3]), ""),
    "gradient": (lambda v1, x, cells: v1.gradients(_rnn(v1, cells.LSTMCell(5), x), x), "not an LSTM or GRU layer"),
}


def _rnn(v1: Any, cell: Any, x: Any, **options: Any) -> Any:
    return v1.nn.dynamic_rnn(cell, x, dtype=x.dtype, **options)[0]


@CLASSIC
@pytest.mark.parametrize("name", STAYS)
def test_dynamic_rnn_that_stays(tf: ModuleType, tmp_path: Path, name: str, functional: bool) -> None:
    build, why = STAYS[name]

    def bound(x: Any, cells: Any) -> Any:
        return build(tf.compat.v1, x, cells)

    _classic(tf, tmp_path, bound, array(3, 4, 6), functional, [], why)


# -- ops that are cells ----------------------------------------------------------------------------------------------


def _block(tf: ModuleType, folder: Path, call: Any, shape: tuple[int, ...], layers: list[str]) -> None:
    """Compare an op that is a cell or a layer."""
    _classic(tf, folder, lambda x, _: call(x), array(*shape), True, layers, loops=False)


def _lstm_inputs(batch: int, inputs: int, units: int) -> dict[str, Any]:
    names = ("wci", "wcf", "wco")
    return {
        "cs_prev": array(batch, units), "h_prev": array(batch, units), "w": array(inputs + units, 4 * units) / 3,
        "b": array(4 * units), **{name: array(units) for name in names},
    }  # fmt: skip


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("sizes", [(5, 3, 7, 16), (1, 1, 4, 33)], ids=str)
def test_block_lstm(tf: ModuleType, tmp_path: Path, second: bool, sizes: Any) -> None:
    steps, batch, inputs, units = sizes
    op = tf.raw_ops.BlockLSTMV2 if second else tf.raw_ops.BlockLSTM
    options = {} if second else {"forget_bias": 0.4}
    options |= _lstm_inputs(batch, inputs, units) | {"seq_len_max": np.int64(steps)}

    def call(x: Any, **other: Any) -> Any:
        return op(x=x, **({"cell_clip": -1.0} | options | other))

    shape = (steps, batch, inputs)
    _block(tf, tmp_path, lambda x: call(x).h, shape, ["lstm"])
    _block(tf, tmp_path, lambda x: [call(x).h, call(x).cs], shape, ["lstm"])  # two ops, one asked for its memory
    _block(tf, tmp_path, lambda x: call(x, cell_clip=0.3).h, shape, [])
    _block(tf, tmp_path, lambda x: call(x, use_peephole=True).h, shape, ["lstm"])
    _block(tf, tmp_path, lambda x: call(x, seq_len_max=np.int64(steps - 1)).h, shape, [])


def test_cells_of_one_step(tf: ModuleType, tmp_path: Path) -> None:
    given = _lstm_inputs(3, 7, 20)

    def lstm(x: Any, **other: Any) -> Any:
        return tf.raw_ops.LSTMBlockCell(x=x, **({"cell_clip": -1.0, "forget_bias": 0.6} | given | other))

    def gru(x: Any) -> Any:
        weights = {"w_ru": given["w"][:, :40], "w_c": given["w"][:, 40:60], "b_ru": given["b"][:40]}
        return tf.raw_ops.GRUBlockCell(x=x, h_prev=given["h_prev"], b_c=given["b"][40:60], **weights)

    _block(tf, tmp_path, lambda x: (lambda made: [made.h, made.cs])(lstm(x)), (3, 7), ["lstm"])
    _block(tf, tmp_path, lambda x: lstm(x).h, (3, 7), ["lstm"])
    _block(tf, tmp_path, lambda x: lstm(x).cs, (3, 7), ["lstm"])
    _block(tf, tmp_path, lambda x: gru(x).h, (3, 7), ["gru"])
    _block(tf, tmp_path, lambda x: list(lstm(x)), (3, 7), [])
    _block(tf, tmp_path, lambda x: list(gru(x)), (3, 7), [])
    _block(tf, tmp_path, lambda x: list(lstm(x, use_peephole=True))[1::5], (3, 7), ["lstm"])  # cs and h
    _block(tf, tmp_path, lambda x: lstm(x, cell_clip=0.5).h, (3, 7), [])
