"""cuDNN's recurrent networks as TensorFlow computes them on a CPU, from canonical weights.

Layers of Keras where it has them (LSTM, GRU with reset_after, SimpleRNN): its own conversion to cuDNN's buffer says
how its gates stand to cuDNN's. Projections and skipped inputs, which it has not, are written in TensorFlow's ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, build, prepare, run_ours, sample
from toolkit.errors import InvalidArgumentError
from toolkit.graph.infer import infer
from toolkit.graph.node import Output
from toolkit.kernels.recurrent_params import RecurrentModel

#: cuDNN's gate for each of Keras's: i, f, c, o of an LSTM; z, r, h of a GRU
_KERAS_GATES = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn_relu": (0,), "rnn_tanh": (0,)}


@dataclass(frozen=True)
class Weights:
    """Of a layer in one direction: [gates, units, inputs], [gates, units, state], [state, units], [gates, units]."""

    by_input: Any
    by_state: Any
    projection: Any
    input_bias: Any
    state_bias: Any


def weights_of(model: RecurrentModel, params: Any) -> list[Weights]:
    """Layer by layer and direction by direction; params may be TensorFlow's."""
    import tensorflow as tf

    found: list[Weights] = []
    for each in model.params:
        gates = (model.gates, model.units)

        def part(place: Any, *shape: int) -> Any:
            return tf.reshape(params[place.offset : place.end], shape)

        columns = each.by_input.shape[1]
        found.append(
            Weights(
                part(each.by_input, *gates, columns) if columns else None,
                part(each.by_state, *gates, model.state),
                part(each.projection, *each.projection.shape) if each.projection else None,
                part(each.input_bias, *gates),
                part(each.state_bias, *gates),
            )
        )
    return found


def network(model: RecurrentModel, x: Any, h: Any, c: Any, params: Any, lengths: Sequence[int] | None) -> list[Any]:
    """All states of the last layer, the last states, the last memories (LSTM): tensors, with gradients.

    Args:
        x: [time, batch, inputs]; h, c: [layers * directions, batch, state or units].
    """
    import tensorflow as tf

    weights = weights_of(model, params)
    by_keras = not model.projection and not model.skips
    last_h, last_c = [], []
    for layer in range(model.layers):
        parts: list[Any] = []
        for direction in range(model.directions):
            at = layer * model.directions + direction
            state = [h[at], c[at]] if model.mode == "lstm" else [h[at]]
            run = _keras if by_keras else _written
            outputs, *last = run(model, weights[at], x, state, lengths, backwards=bool(direction))
            parts.append(outputs)
            last_h.append(last[0])
            last_c += last[1:]
        x = tf.concat(parts, axis=-1)
    return [x, tf.stack(last_h)] + ([tf.stack(last_c)] if last_c else [])


def _mask(lengths: Sequence[int] | None, steps: int) -> Any:
    import tensorflow as tf

    return None if lengths is None else tf.sequence_mask(lengths, steps)


def _keras(model: RecurrentModel, weights: Weights, x: Any, state: Any, lengths: Any, *, backwards: bool) -> list[Any]:
    """A step of Keras's own cell at a time: weights that are tensors, not variables, have gradients so."""
    import tensorflow as tf

    keras = tf.keras
    order = list(_KERAS_GATES[model.mode])
    dtype = x.dtype.name
    if model.mode == "lstm":
        cell = keras.layers.LSTMCell(model.units, dtype=dtype)
    elif model.mode == "gru":
        cell = keras.layers.GRUCell(model.units, reset_after=True, dtype=dtype)
    else:
        cell = keras.layers.SimpleRNNCell(model.units, activation=model.mode.removeprefix("rnn_"), dtype=dtype)
    cell.build((None, int(x.shape[-1])))

    def side_by_side(matrices: Any) -> Any:
        return tf.concat([tf.transpose(matrices[gate]) for gate in order], axis=-1)

    biases = [tf.concat([bias[gate] for gate in order], axis=-1) for bias in (weights.input_bias, weights.state_bias)]
    given = {
        "kernel": side_by_side(weights.by_input),
        "recurrent_kernel": side_by_side(weights.by_state),
        "bias": tf.stack(biases) if model.mode == "gru" else biases[0] + biases[1],
    }
    for name, value in given.items():
        object.__setattr__(cell, name, value)

    def step(row: Any, state: Any) -> list[Any]:
        _, new = cell(row, state)
        return list(new) if isinstance(new, list | tuple) else [new]

    return _over_time(step, x, state, lengths, backwards=backwards)


def _written(
    model: RecurrentModel, weights: Weights, x: Any, state: Any, lengths: Any, *, backwards: bool
) -> list[Any]:
    """By the formulas of cuDNN's documentation."""
    import tensorflow as tf

    def step(row: Any, state: Any) -> list[Any]:
        h = state[0]
        a = [
            (row if weights.by_input is None else row @ tf.transpose(weights.by_input[gate])) + weights.input_bias[gate]
            for gate in range(model.gates)
        ]
        b = [h @ tf.transpose(weights.by_state[gate]) + weights.state_bias[gate] for gate in range(model.gates)]
        if model.mode == "lstm":
            i, f, o = (tf.sigmoid(a[gate] + b[gate]) for gate in (0, 1, 3))
            c = f * state[1] + i * tf.tanh(a[2] + b[2])
            made = o * tf.tanh(c)
            return [made if weights.projection is None else made @ tf.transpose(weights.projection), c]
        if model.mode == "gru":
            r, u = tf.sigmoid(a[0] + b[0]), tf.sigmoid(a[1] + b[1])
            return [(1 - u) * tf.tanh(a[2] + r * b[2]) + u * h]
        return [(tf.nn.relu if model.mode == "rnn_relu" else tf.tanh)(a[0] + b[0])]

    return _over_time(step, x, state, lengths, backwards=backwards)


def _over_time(step: Any, x: Any, state: Any, lengths: Any, *, backwards: bool) -> list[Any]:
    """Outputs in order of time, zero behind the end of an example, and the last states."""
    import tensorflow as tf

    steps = int(x.shape[0])
    mask = _mask(lengths, steps)
    outputs: list[Any] = [None] * steps
    for t in reversed(range(steps)) if backwards else range(steps):
        new = step(x[t], state)
        if mask is not None:
            here = mask[:, t, None]
            outputs[t] = tf.where(here, new[0], tf.zeros_like(new[0]))
            new = [tf.where(here, one, other) for one, other in zip(new, state, strict=True)]
        else:
            outputs[t] = new[0]
        state = new
    return [tf.stack(outputs), *state]


def arguments(model: RecurrentModel, steps: int, batch: int, dtype: str) -> list[Any]:
    """x, h, c and params of random numbers; c is a scalar where cells have none."""
    rows = model.layers * model.directions
    c = sample(dtype, (rows, batch, model.units), -1, 1, 3) if model.mode == "lstm" else np.zeros((), dtype)
    return [
        sample(dtype, (steps, batch, model.inputs), -1, 1, 1),
        sample(dtype, (rows, batch, model.state), -1, 1, 2),
        c,
        sample(dtype, (model.size,), -1, 1, 4),
    ]


def check(case: Case) -> None:
    """A case that fits gives what shape inference says; one that does not is refused in one line."""
    if case.error:
        with pytest.raises(InvalidArgumentError) as caught:
            run_ours(case)
        assert "\n" not in str(caught.value)
        return
    outputs = run_ours(case)
    node = build(replace(case, graph=True), prepare(case))
    known = infer(node.graph)
    for index, value in enumerate(outputs):
        assert value.dtype == node.output_types[index].base.numpy
        shape = known[Output(node, index)]
        assert shape.dims is None or len(shape.dims) == value.ndim, (index, shape, value.shape)
        for size, found in zip(shape.dims or (), value.shape, strict=False):
            assert size in (None, found), (index, shape, value.shape)
