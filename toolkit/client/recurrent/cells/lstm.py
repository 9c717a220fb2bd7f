"""Kinds of LSTM: coupled gates, layer normalization, phases in time, groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.client.recurrent.cells.linear import last_size, linear, normalized, sharded
from toolkit.client.recurrent.rnn_cell import Activation, LSTMStateTuple, RNNCell, size_of
from toolkit.client.variables.initializers import Constant, RandomUniform, Zeros
from toolkit.client.variables.store import get_variable_scope, variable_scope
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType


class CoupledInputForgetGateLSTMCell(RNNCell):
    """An LSTM that takes in as much as it forgets (Greff et al., arXiv 1503.04069).

    Args:
        use_peepholes: gates see the cell's state.
        num_proj, proj_clip: the size of a projected output, and its bound.
        num_unit_shards, num_proj_shards: in how many variables the weights are.
        layer_norm, norm_gain, norm_shift: gates and state are normalized, and what that begins with.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, initializer: Any = None, num_proj: int | None = None,
        proj_clip: float | None = None, num_unit_shards: int = 1, num_proj_shards: int = 1, forget_bias: float = 1.0,
        state_is_tuple: bool = True, activation: Activation = math_ops.tanh, reuse: bool | None = None,
        layer_norm: bool = False, norm_gain: float = 1.0, norm_shift: float = 0.0,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._num_proj, self._proj_clip = num_units, num_proj, proj_clip
        self._peepholes, self._initializer = use_peepholes, initializer
        self._shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._activation, self._state_is_tuple = forget_bias, activation, state_is_tuple
        self._norm = (norm_gain, norm_shift) if layer_norm else None

    @property
    def state_size(self) -> Any:
        sizes = self._num_units, self.output_size
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units, sigmoid, kind = self._num_units, math_ops.sigmoid, inputs.dtype.base
        if self._state_is_tuple:
            c, m = state
        else:
            c = array_ops.slice(state, [0, 0], [-1, units])
            m = array_ops.slice(state, [0, units], [-1, self.output_size])
        rows = last_size(inputs) + self.output_size
        weights = sharded(self, "W", [rows, 3 * units], kind, self._shards[0])
        bias = self.add_variable("B", [3 * units], kind, Zeros())
        gates = math_ops.matmul(array_ops.concat([inputs, m], 1), weights)
        if self._norm is None:
            gates = nn_ops.bias_add(gates, bias)
        j, f, o = array_ops.split(gates, 3, 1)
        if self._norm is not None:
            j = normalized(self, j, "transform", *self._norm)
            f = normalized(self, f, "forget", *self._norm)
            o = normalized(self, o, "output", *self._norm)
        if self._peepholes:
            forget, leave = (self.add_variable(f"W_{gate}_diag", [units], kind) for gate in "FO")
            kept = sigmoid(f + self._forget_bias + forget * c)
        else:
            leave, kept = None, sigmoid(f + self._forget_bias)
        new_c = kept * c + (1 - kept) * self._activation(j)
        if self._norm is not None:
            new_c = normalized(self, new_c, "state", *self._norm)
        new_m = sigmoid(o if leave is None else o + leave * new_c) * self._activation(new_c)
        if self._num_proj is not None:
            new_m = math_ops.matmul(new_m, sharded(self, "W_P", [units, self._num_proj], kind, self._shards[1]))
            if self._proj_clip is not None:
                new_m = clip_ops.clip_by_value(new_m, -self._proj_clip, self._proj_clip)
        return new_m, LSTMStateTuple(new_c, new_m) if self._state_is_tuple else array_ops.concat([new_c, new_m], 1)


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM with normalized gates (Ba, Kiros, Hinton, arXiv 1607.06450), whose updates may be dropped (1603.05118).

    Args:
        input_size: of no effect.
        layer_norm: whether gates are normalized; without, they have a bias.
        norm_gain, norm_shift: what gamma and beta begin with.
        dropout_keep_prob, dropout_prob_seed: of dropout of what is taken in.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, input_size: int | None = None,
        activation: Activation = math_ops.tanh, layer_norm: bool = True, norm_gain: float = 1.0,
        norm_shift: float = 0.0, dropout_keep_prob: Any = 1.0, dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed
        self._norm = (norm_gain, norm_shift) if layer_norm else None

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        joined = array_ops.concat([inputs, h], 1)
        kind, size = joined.dtype.base, 4 * self._num_units
        gates = math_ops.matmul(joined, self.add_variable("kernel", [last_size(joined), size], kind))
        if self._norm is None:
            gates = nn_ops.bias_add(gates, self.add_variable("bias", [size], kind))
        i, j, f, o = array_ops.split(gates, 4, 1)
        if self._norm is not None:
            names = ("input", "transform", "forget", "output")
            i, j, f, o = (
                normalized(self, each, name, *self._norm) for each, name in zip((i, j, f, o), names, strict=True)
            )
        fresh = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            fresh = nn_ops.dropout(fresh, rate=1 - self._keep_prob, seed=self._seed)
        new_c = c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * fresh
        if self._norm is not None:
            new_c = normalized(self, new_c, "state", *self._norm)
        new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)


def _log_uniform(low: float, high: float) -> Any:
    def initial(shape: Any, dtype: DType = dtypes.float32, **_: Any) -> Tensor:
        return math_ops.exp(random_ops.random_uniform(list(shape), float(np.log(low)), float(np.log(high)), dtype))

    return initial


class PhasedLSTMCell(RNNCell):
    """An LSTM whose units are open only in phases of their own (Neil, Pfeiffer, Liu, arXiv 1610.09513).

    Inputs are (time [batch, 1], x [batch, size]).

    Args:
        leak: how open a unit is while it is closed.
        ratio_on, trainable_ratio_on: which share of its period it is open, and whether that is trained.
        period_init_min, period_init_max: between which periods begin.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, leak: float = 0.001, ratio_on: float = 0.1,
        trainable_ratio_on: bool = True, period_init_min: float = 1.0, period_init_max: float = 1000.0,
        reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._peepholes = num_units, use_peepholes
        self._leak, self._ratio_on, self._trainable_ratio_on = leak, ratio_on, trainable_ratio_on
        self._period = period_init_min, period_init_max

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units, (c, h), (time, x) = self._num_units, state, inputs
        with variable_scope("mask_gates"):
            seen = [x, h, c] if self._peepholes else [x, h]
            enter, keep = array_ops.split(math_ops.sigmoid(linear(seen, 2 * units, cell=self)), 2, 1)
        with variable_scope("new_input"):
            fresh = math_ops.tanh(linear([x, h], units, cell=self))
        new_c = c * keep + enter * fresh
        with variable_scope("output_gate"):
            seen = [x, h, new_c] if self._peepholes else [x, h]
            leave = math_ops.sigmoid(linear(seen, units, cell=self))
        new_h = math_ops.tanh(new_c) * leave
        period = self.add_variable("period", [units], dtypes.float32, _log_uniform(*self._period))
        phase = self.add_variable("phase", [units], dtypes.float32, RandomUniform(0.0, period.initial_value))
        was = self.trainable
        self.trainable = was and self._trainable_ratio_on
        ratio = self.add_variable("ratio_on", [units], dtypes.float32, Constant(self._ratio_on))
        self.trainable = was
        length = math_ops.cast(period, time.dtype.base)
        shifted = time - math_ops.cast(phase, time.dtype.base)
        # how far in the period: its gradient goes through as if nothing were cut off
        within = array_ops.stop_gradient(ops.floor_mod(shifted, length) - shifted) + shifted
        cycle = math_ops.cast(within / length, dtypes.float32)
        opening = 2 * cycle / ratio
        open_ = array_ops.where(ops.less(cycle, ratio), 2 - opening, self._leak * cycle)
        open_ = array_ops.where(ops.less(cycle, 0.5 * ratio), opening, open_)
        new_c = open_ * new_c + (1 - open_) * c
        new_h = open_ * new_h + (1 - open_) * h
        return new_h, LSTMStateTuple(new_c, new_h)


class GLSTMCell(RNNCell):
    """Groups of units with weights of their own (Kuchaiev, Ginsburg, arXiv 1703.10722).

    Raises:
        UsageError: units, projection or inputs cannot be divided into the groups.
    """

    def __init__(
        self, num_units: int, initializer: Any = None, num_proj: int | None = None, number_of_groups: int = 1,
        forget_bias: float = 1.0, activation: Activation = math_ops.tanh, reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._num_proj, self._groups = num_units, num_proj, number_of_groups
        self._initializer, self._forget_bias, self._activation = initializer, forget_bias, activation
        self._divided("num_units", num_units)
        self._divided("num_proj", num_proj or 0)

    def _divided(self, what: str, size: int) -> int:
        if size % self._groups:
            raise UsageError(f"{what} of a GLSTMCell, {size}, cannot be divided into {self._groups} groups")
        return size // self._groups

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, m = state
        batch, kind, groups = size_of(inputs, 0), inputs.dtype.base, self._groups
        given = self._divided("the size of inputs", last_size(inputs))
        own, units = self.output_size // groups, self._num_units // groups

        def part(x: Any, group: int, size: int) -> Tensor:
            name = f"GLSTM_group{group}_input_generation"
            return array_ops.slice(x, [0, group * size], array_ops.stack([batch, size]), name=name)

        gates: list[list[Tensor]] = [[], [], [], []]
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            for group in range(groups):
                with variable_scope(f"group{group}"):
                    joined = array_ops.concat([part(inputs, group, given), part(m, group, own)], 1)
                    made = array_ops.split(linear([joined], 4 * units, bias=False, cell=self), 4, 1)
                for parts, each in zip(gates, made, strict=True):
                    parts.append(each)
            biases = [self.add_variable(f"bias_{gate}", [self._num_units], kind, Constant(0.0)) for gate in "ijfo"]
            i, j, f, o = (
                nn_ops.bias_add(array_ops.concat(parts, 1), bias) for parts, bias in zip(gates, biases, strict=True)
            )
        new_c = math_ops.sigmoid(f + self._forget_bias) * c + math_ops.sigmoid(i) * math_ops.tanh(j)
        new_m = math_ops.sigmoid(o) * self._activation(new_c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                new_m = linear([new_m], self._num_proj, bias=False, cell=self)
        return new_m, LSTMStateTuple(new_c, new_m)
