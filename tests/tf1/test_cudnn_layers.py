"""tf.contrib.cudnn_rnn: the variables, checkpoints and numbers of its layers.

1.15 has no kernels of them without a GPU. So its nodes are compared, and numbers are compared with cells that 1.15 has
for the same networks, restored from what layers have saved, and the other way round.
"""

# TensorFlow's names have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.tf1 import dropped, node_oracle
from toolkit import tensorflow as tf

FAMILY = "cudnn_layers"
_LINE = re.compile(r"(?P<name>\S+) = (?P<op>\w+)\(.*?\) @ (?P<attributes>.*)")
#: nodes that decide what a layer computes, and what of it is saved
_OPS = re.compile(r"Cudnn|VariableV2|SaveV2|RestoreV2|Assign")


def _essence(lines: list[str]) -> list[tuple[str, ...]]:
    """Name, op and attributes of the nodes that matter, and the names in checkpoints."""
    found: list[tuple[str, ...]] = []
    for line in lines:
        parts = _LINE.match(line)
        if parts and (_OPS.match(parts["op"]) or parts["name"].endswith("tensor_names")):
            found.append((parts["name"], parts["op"], parts["attributes"]))
    return found


@pytest.mark.parametrize("name", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"])
def test_variables_ops_and_checkpoints_are_those_of_1_15(name: str) -> None:
    for code in dropped.calls(FAMILY)[f"contrib.cudnn_rnn.{name}"]:
        wanted = _essence(dropped.recorded(FAMILY)[code])
        got = _essence(node_oracle.described(node_oracle.graph_of(tf, code), across_releases=True))
        assert len(wanted) > 1
        assert got == wanted, code


def _cell(name: str, units: int) -> Any:
    made: dict[str, Any] = {
        "CudnnLSTM": tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell,
        "CudnnGRU": tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell,
        "CudnnRNNTanh": tf.nn.rnn_cell.BasicRNNCell,
        "CudnnRNNRelu": lambda units: tf.nn.rnn_cell.BasicRNNCell(units, activation=tf.nn.relu),
    }
    return made[name](units)


X = np.random.default_rng(3).normal(size=(4, 2, 3)).astype(np.float32)
LAYERS, UNITS = 2, 5
SCOPES = {
    "CudnnLSTM": "cudnn_lstm", "CudnnGRU": "cudnn_gru", "CudnnRNNTanh": "cudnn_rnn_tanh",
    "CudnnRNNRelu": "cudnn_rnn_relu",
}  # fmt: skip
#: roundings that numbers go through on either way: sums of a step's products, over steps and layers
ROUNDINGS = LAYERS * X.shape[0] * (2 * UNITS + UNITS)


def _layer(name: str, direction: str) -> tuple[Any, Any]:
    """Its outputs and state."""
    initializer = tf.random_uniform_initializer(-0.5, 0.5, seed=4)
    made: Any = getattr(tf.contrib.cudnn_rnn, name)(
        LAYERS, UNITS, direction=direction, kernel_initializer=initializer, bias_initializer=initializer
    )
    return made(tf.constant(X), training=False)


def _cells(name: str, direction: str) -> Any:
    """The outputs of a stack of cells, in the scope that a layer has."""
    with tf.variable_scope(SCOPES[name]):
        return _stack(name, direction)


def _stack(name: str, direction: str) -> Any:
    x = tf.constant(X)
    if direction == "unidirectional":
        stack = tf.nn.rnn_cell.MultiRNNCell([_cell(name, UNITS) for _ in range(LAYERS)])
        return tf.nn.dynamic_rnn(stack, x, dtype=tf.float32, time_major=True)[0]
    ways = [[_cell(name, UNITS) for _ in range(LAYERS)] for _ in range(2)]
    return tf.contrib.rnn.stack_bidirectional_dynamic_rnn(*ways, x, dtype=tf.float32, time_major=True)[0]


def _run(make: Any, restored: str | None, saved: str) -> np.ndarray[Any, Any]:
    """Numbers of a graph whose weights are restored or initial, and a checkpoint of them."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        made = make()
        outputs = made[0] if isinstance(made, tuple) else made
        saver = tf.train.Saver(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS) or None)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            if restored:
                saver.restore(session, restored)
            else:
                session.run(tf.global_variables_initializer())
            saver.save(session, saved, write_meta_graph=False)
            return session.run(outputs)


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("name", ["CudnnLSTM", "CudnnGRU", "CudnnRNNTanh", "CudnnRNNRelu"])
def test_cells_compute_what_a_layer_has_saved_and_back(name: str, direction: str, tmp_path: Path) -> None:
    first, second, third = (str(tmp_path / part) for part in "abc")
    wanted = _run(lambda: _layer(name, direction), None, first)
    assert wanted.shape == (*X.shape[:2], UNITS * (1 if direction == "unidirectional" else 2))
    assert np.abs(wanted).max() > 0
    allowed = tolerance.likely(ROUNDINGS) * float(np.abs(wanted).max())
    by_cells = _run(lambda: _cells(name, direction), first, second)
    np.testing.assert_allclose(by_cells, wanted, rtol=0, atol=allowed)
    again = _run(lambda: _layer(name, direction), second, third)
    np.testing.assert_allclose(again, wanted, rtol=0, atol=allowed)
    names = {entry[0] for entry in tf.train.list_variables(first)}
    assert names == {entry[0] for entry in tf.train.list_variables(second)}


def test_what_no_layer_can_be_is_refused() -> None:
    make = tf.contrib.cudnn_rnn.CudnnLSTM
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="direction is 'both'; expected unidirectional or bidirectional"):
            make(1, 2, direction="both")
        with pytest.raises(ValueError, match="input_mode is 'none'; expected linear_input, skip_input, auto_select"):
            make(1, 2, input_mode="none")
        with pytest.raises(ValueError, match="dtype is int32; expected"):
            make(1, 2, dtype=tf.int32)
        layer = make(1, 2)
        with pytest.raises(ValueError, match="has no input_size before it is first called"):
            _ = layer.input_size
        with pytest.raises(RuntimeError, match="has no matrices before it is first called"):
            _ = layer.canonical_weight_shapes
        with pytest.raises(ValueError, match="takes inputs of 3 dimensions"):
            layer.build([2, 3])
        with pytest.raises(ValueError, match="takes inputs whose last size is known"):
            layer.build([None, 2, None])
        with pytest.raises(TypeError, match="expected a tuple"):
            layer(tf.zeros([2, 2, 3]), tf.zeros([1, 2, 2]))
