"""Recurrent layers: rnn, gru, lstm; in stacks, in both directions, by a loop or unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.recurrent import rnn, rnn_cell, wrappers
from toolkit.client.spec.layers.elementwise import RATE, rate_of
from toolkit.client.spec.layers.table import LayerCall, layer
from toolkit.client.spec.values import ACTIVATION, INITIALIZER, NAME, activation, initializer
from toolkit.client.variables.store import variable_scope
from toolkit.formats.schema.containers import Key
from toolkit.formats.schema.scalars import Boolean, Integer, Number, Text
from toolkit.formats.settings.tree import Section

_SEQUENCE, _LAST = "sequence", "last"

#: keys of every recurrent layer; it takes [batch, steps, features]
_COMMON: dict[str, Key] = {
    "units": Key(Integer(1), "size of the state", required=True),
    "layers": Key(Integer(1), "how many, one upon the other", default=1),
    "bidirectional": Key(Boolean(), "also from the end to the beginning; both outputs side by side", default=False),
    "return": Key(Text((_SEQUENCE, _LAST)), "the outputs of all steps, or the state after the last", default=_SEQUENCE),
    "lengths": Key(NAME, "how many steps of each row count"),
    "unrolled": Key(Boolean(), "nodes for each step instead of a loop", default=False),
    "activation": Key(ACTIVATION, "of the cell"),
    "dropout": Key(RATE, "share of each layer's outputs that becomes 0, or the name of a scalar that says it"),
    "kernel_initializer": Key(INITIALIZER, "first value of the weights"),
}
_LSTM: dict[str, Key] = {
    "forget_bias": Key(Number(), "added to the forget gate", default=1.0),
    "peepholes": Key(Boolean(), "gates see the cell's state", default=False),
    "projection": Key(Integer(1), "size of a projection of the output"),
    "clip": Key(Number(0), "bound of the cell's state"),
}

Cell = Callable[[Section], Any]


def _simple(section: Section) -> Any:
    return rnn_cell.BasicRNNCell(section.integer("units"), activation(section))


def _gru(section: Section) -> Any:
    weights = initializer(section.get("kernel_initializer"))
    return rnn_cell.GRUCell(section.integer("units"), activation(section), kernel_initializer=weights)


def _lstm(section: Section) -> Any:
    projection, clip = section.get("projection"), section.get("clip")
    return rnn_cell.LSTMCell(
        section.integer("units"),
        use_peepholes=section.boolean("peepholes", False),
        cell_clip=None if clip is None else clip.number(),
        initializer=initializer(section.get("kernel_initializer")),
        num_proj=None if projection is None else projection.integer(),
        forget_bias=section.number("forget_bias", 1.0),
        activation=activation(section),
    )


def _stack(call: LayerCall, make: Cell) -> Any:
    """The cell of a layer, or of all of them."""
    dropped = call.section.get("dropout")

    def cell() -> Any:
        made = make(call.section)
        if dropped is None:
            return made
        return wrappers.DropoutWrapper(made, output_keep_prob=1.0 - rate_of(call, dropped))

    count = call.section.integer("layers", 1)
    return cell() if count == 1 else rnn_cell.MultiRNNCell([cell() for _ in range(count)])


def _last(state: Any) -> Tensor:
    """What the topmost layer's state puts out."""
    if isinstance(state, rnn_cell.LSTMStateTuple):
        return state.h
    return _last(cast("tuple[Any, ...]", state)[-1]) if isinstance(state, tuple) else state


def _recurrent(call: LayerCall, make: Cell) -> Tensor:
    section, x = call.section, call.x
    lengths = None if (found := section.get("lengths")) is None else call.resolve(found)
    wants_sequence = section.text("return", _SEQUENCE) == _SEQUENCE
    options: dict[str, Any] = {"sequence_length": lengths, "dtype": x.dtype.base}
    with variable_scope(call.name):
        if section.boolean("unrolled", False):
            outputs, states = _unrolled(call, make, options)
        elif section.boolean("bidirectional", False):
            outputs, states = rnn.bidirectional_dynamic_rnn(_stack(call, make), _stack(call, make), x, **options)
        else:
            output, state = rnn.dynamic_rnn(_stack(call, make), x, **options)
            outputs, states = (output,), (state,)
        results = list(outputs) if wants_sequence else [_last(state) for state in states]
        if len(results) == 1:
            return array_ops.identity(results[0], name="output")
        return array_ops.concat(results, -1, name="output")


def _unrolled(call: LayerCall, make: Cell, options: dict[str, Any]) -> tuple[list[Tensor], list[Any]]:
    x = call.x
    if x.static_shape.rank is None or x.static_shape.dims is None or x.static_shape.dims[1] is None:
        raise call.section.item.error(f"unrolled needs a known number of steps; the input has shape {x.static_shape}")
    rows = array_ops.unstack(x, axis=1)
    if call.section.boolean("bidirectional", False):
        steps, forward, backward = rnn.static_bidirectional_rnn(_stack(call, make), _stack(call, make), rows, **options)
        return [array_ops.stack(steps, axis=1)], [forward, backward]
    steps, state = rnn.static_rnn(_stack(call, make), rows, **options)
    return [array_ops.stack(steps, axis=1)], [state]


@layer("rnn", **{key: kind for key, kind in _COMMON.items() if key != "kernel_initializer"})
def simple(call: LayerCall) -> Tensor:
    return _recurrent(call, _simple)


@layer("gru", **_COMMON)
def gru(call: LayerCall) -> Tensor:
    return _recurrent(call, _gru)


@layer("lstm", **_COMMON, **_LSTM)
def lstm(call: LayerCall) -> Tensor:
    return _recurrent(call, _lstm)
