"""Cells whose state is one vector: UGRNN, IntersectionRNN, SRU, independently recurrent ones; and NASCell."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.cells.linear import last_size, linear
from toolkit.client.recurrent.rnn_cell import Activation, LayerRNNCell, LSTMStateTuple, RNNCell
from toolkit.client.variables.initializers import Constant, RandomUniform, Zeros
from toolkit.client.variables.store import get_variable_scope, variable_scope
from toolkit.errors import UsageError
from toolkit.graph.shape import Shape


def known_width(shape: Any) -> int:
    """The last size of inputs' shape.

    Raises:
        UsageError: it is not known.
    """
    size = shape[-1] if shape.rank else None
    if size is None:
        raise UsageError(f"a cell needs inputs whose last size is known; their shape is {shape}")
    return int(size)


class _OneVector(RNNCell):
    """State and output have `num_units`."""

    _num_units: int

    @property
    def state_size(self) -> int:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class UGRNNCell(_OneVector):
    """Collins, Sohl-Dickstein, Sussillo (arXiv 1611.09913): between a plain and a gated cell, with one gate."""

    def __init__(
        self, num_units: int, initializer: Any = None, forget_bias: float = 1.0, activation: Activation = math_ops.tanh,
        reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._initializer = num_units, initializer
        self._forget_bias, self._activation = forget_bias, activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            joined = linear([inputs, state], 2 * self._num_units, cell=self)
            gate, fresh = array_ops.split(joined, 2, 1)
            fresh, gate = self._activation(fresh), math_ops.sigmoid(gate + self._forget_bias)
            output = gate * state + (1.0 - gate) * fresh
        return output, output


class IntersectionRNNCell(_OneVector):
    """Collins, Sohl-Dickstein, Sussillo (arXiv 1611.09913): a gate for the state, and one for what goes on upwards.

    Args:
        num_in_proj: inputs of another size are projected to `num_units` first.
        y_activation: of what goes upwards.

    Raises:
        UsageError: inputs are of another size, and are not projected.
    """

    def __init__(
        self, num_units: int, num_in_proj: int | None = None, initializer: Any = None, forget_bias: float = 1.0,
        y_activation: Activation = nn_ops.relu, reuse: bool | None = None,
    ):  # fmt: skip
        super().__init__(_reuse=reuse)
        self._num_units, self._projected, self._initializer = num_units, num_in_proj, initializer
        self._forget_bias, self._y_activation = forget_bias, y_activation

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        units = self._num_units
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if last_size(inputs) != units:
                if not self._projected:
                    raise UsageError(
                        f"an IntersectionRNNCell of {units} units takes inputs of as many, not {last_size(inputs)}; "
                        "num_in_proj projects them"
                    )
                with variable_scope("in_projection"):
                    inputs = linear([inputs], units, cell=self)
            joined = linear([inputs, state], 4 * units, cell=self)
        gate_h, h, gate_y, y = (joined[:, i * units : (i + 1) * units] for i in range(4))
        h, y = math_ops.tanh(h), self._y_activation(y)
        gate_h = math_ops.sigmoid(gate_h + self._forget_bias)
        gate_y = math_ops.sigmoid(gate_y + self._forget_bias)
        following = gate_h * state + (1.0 - gate_h) * h
        return gate_y * inputs + (1.0 - gate_y) * y, following


class NASCell(LayerRNNCell):
    """The cell that Zoph and Le (arXiv 1611.01578) found by search.

    Args:
        num_proj: the size of a projected output.
        use_bias: whether the recurrent part has one.
    """

    #: how many products the search put together
    _PARTS = 8

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False, reuse: bool | None = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units, self._num_proj, self._use_bias = num_units, num_proj, use_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, inputs_shape: Shape) -> None:
        width = self._PARTS * self._num_units
        self.recurrent_kernel = self.add_variable("recurrent_kernel", [self.output_size, width])
        self.kernel = self.add_variable("kernel", [known_width(inputs_shape), width])
        if self._use_bias:
            self.bias = self.add_variable("bias", [width], initializer=Zeros())
        if self._num_proj is not None:
            self.projection_weights = self.add_variable("projection_weights", [self._num_units, self._num_proj])

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        sigmoid, tanh, relu = math_ops.sigmoid, math_ops.tanh, nn_ops.relu
        c, m = state
        recurrent = math_ops.matmul(m, self.recurrent_kernel)
        given = math_ops.matmul(inputs, self.kernel)
        if self._use_bias:
            recurrent = nn_ops.bias_add(recurrent, self.bias)
        r, x = array_ops.split(recurrent, self._PARTS, 1), array_ops.split(given, self._PARTS, 1)
        first = [
            sigmoid(x[0] + r[0]), relu(x[1] + r[1]), sigmoid(x[2] + r[2]), relu(x[3] * r[3]), tanh(x[4] + r[4]),
            sigmoid(x[5] + r[5]), tanh(x[6] + r[6]), sigmoid(x[7] + r[7]),
        ]  # fmt: skip
        left, right = tanh(first[0] * first[1]), tanh(first[2] + first[3])
        below, beside = tanh(first[4] * first[5]), sigmoid(first[6] + first[7])
        new_c = tanh(left + c) * right
        output = tanh(new_c * tanh(below + beside))
        if self._num_proj is not None:
            output = math_ops.matmul(output, self.projection_weights)
        return output, LSTMStateTuple(new_c, output)


class _Layered(LayerRNNCell):
    """State and output have `num_units`; variables are made in `build`."""

    def __init__(
        self, num_units: int, activation: Activation | None = None, reuse: bool | None = None, name: str | None = None,
        dtype: DTypeLike = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units = num_units
        self._activation: Activation = activation or math_ops.tanh

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units


class SRUCell(_Layered):
    """Lei, Zhang, Artzi (arXiv 1709.02755): nothing but the state is recurrent."""

    def __init__(
        self, num_units: int, activation: Activation | None = None, reuse: bool | None = None, name: str | None = None,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(num_units, activation, reuse, name, **kwargs)

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        self._kernel = self.add_variable("kernel", [known_width(inputs_shape), 4 * units])
        self._bias = self.add_variable("bias", [2 * units], initializer=Zeros())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        fresh, forget, reset, carried = array_ops.split(math_ops.matmul(inputs, self._kernel), 4, 1)
        gates = math_ops.sigmoid(nn_ops.bias_add(array_ops.concat([forget, reset], 1), self._bias))
        forget, reset = array_ops.split(gates, 2, 1)
        c = forget * state + (1.0 - forget) * fresh
        return reset * self._activation(c) + (1.0 - reset) * carried, c


def _recurrent() -> RandomUniform:
    return RandomUniform(-1, 1)


class IndRNNCell(_Layered):
    """Li et al. (arXiv 1803.04831): each unit sees its own state only."""

    def __init__(
        self, num_units: int, activation: Activation | None = None, reuse: bool | None = None, name: str | None = None,
        dtype: DTypeLike = None,
    ):  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        self._kernel_w = self.add_variable("kernel_w", [known_width(inputs_shape), units])
        self._kernel_u = self.add_variable("kernel_u", [1, units], initializer=_recurrent())
        self._bias = self.add_variable("bias", [units], initializer=Zeros())

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math_ops.matmul(inputs, self._kernel_w) + state * self._kernel_u
        output = self._activation(nn_ops.bias_add(gates, self._bias))
        return output, output


class IndyGRUCell(_Layered):
    """A GRU whose units see their own state only."""

    def __init__(
        self, num_units: int, activation: Activation | None = None, reuse: bool | None = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None, dtype: DTypeLike = None,
    ):  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, inputs_shape: Shape) -> None:
        units, width, weights = self._num_units, known_width(inputs_shape), self._kernel_initializer
        given = self._bias_initializer
        ones, zeros = (Constant(1.0), Zeros()) if given is None else (given, given)
        self._gate_w = self.add_variable("gates/kernel_w", [width, 2 * units], initializer=weights)
        self._gate_u = self.add_variable("gates/kernel_u", [1, 2 * units], initializer=_recurrent())
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=ones)
        self._w = self.add_variable("candidate/kernel", [width, units], initializer=weights)
        self._u = self.add_variable("candidate/kernel_u", [1, units], initializer=_recurrent())
        self._bias = self.add_variable("candidate/bias", [units], initializer=zeros)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math_ops.matmul(inputs, self._gate_w) + array_ops.tile(state, [1, 2]) * self._gate_u
        gates = math_ops.sigmoid(nn_ops.bias_add(gates, self._gate_bias))
        reset, update = array_ops.split(gates, 2, 1)
        candidate = math_ops.matmul(inputs, self._w) + reset * state * self._u
        fresh = self._activation(nn_ops.bias_add(candidate, self._bias))
        output = update * state + (1 - update) * fresh
        return output, output


class IndyLSTMCell(_Layered):
    """An LSTM whose units see their own state only (Gonnet, Deselaers, arXiv 1903.08023)."""

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, activation: Activation | None = None, reuse: bool | None = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None, dtype: DTypeLike = None,
    ):  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype)
        self._forget_bias = forget_bias
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, inputs_shape: Shape) -> None:
        width, size = known_width(inputs_shape), 4 * self._num_units
        given = self._bias_initializer
        self._kernel_w = self.add_variable("kernel_w", [width, size], initializer=self._kernel_initializer)
        self._kernel_u = self.add_variable("kernel_u", [1, size], initializer=_recurrent())
        self._bias = self.add_variable("bias", [size], initializer=Zeros() if given is None else given)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        gates = math_ops.matmul(inputs, self._kernel_w) + array_ops.tile(h, [1, 4]) * self._kernel_u
        i, j, f, o = array_ops.split(nn_ops.bias_add(gates, self._bias), 4, 1)
        forget = convert_to_tensor(self._forget_bias, f.dtype.base)
        new_c = c * math_ops.sigmoid(f + forget) + math_ops.sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return new_h, LSTMStateTuple(new_c, new_h)
