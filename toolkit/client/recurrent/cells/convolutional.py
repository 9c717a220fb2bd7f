"""LSTMs whose products are convolutions (Shi et al., arXiv 1506.04214)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.nn.convolutions import conv1d, conv3d
from toolkit.client.recurrent.cells.linear import last_size
from toolkit.client.recurrent.rnn_cell import LSTMStateTuple, RNNCell
from toolkit.client.variables.initializers import Constant
from toolkit.errors import UsageError


class ConvLSTMCell(RNNCell):
    """An LSTM over inputs [batch, *sizes, channels].

    Args:
        conv_ndims: along how many axes there are sizes, 1 to 3.
        input_shape: [*sizes, channels].
        output_channels: of output and state.
        kernel_shape: the sizes of the kernel.
        use_bias: whether there is a variable "biases".
        skip_connection: inputs are joined to outputs.

    Raises:
        UsageError: input_shape has another number of sizes.
    """

    def __init__(
        self, conv_ndims: int, input_shape: Sequence[int], output_channels: int, kernel_shape: Sequence[int],
        use_bias: bool = True, skip_connection: bool = False, forget_bias: float = 1.0, initializers: Any = None,
        name: str = "conv_lstm_cell",
    ):  # fmt: skip
        super().__init__(name=name)
        sizes = list(input_shape)
        if conv_ndims != len(sizes) - 1:
            raise UsageError(f"input_shape is {conv_ndims} sizes and the number of channels, not {sizes}")
        self._ndims, self._sizes, self._channels, self._kernel = conv_ndims, sizes, output_channels, list(kernel_shape)
        self._use_bias, self._skip, self._forget_bias = use_bias, skip_connection, forget_bias

    @property
    def output_size(self) -> Any:
        return as_shape([*self._sizes[:-1], self._channels + (self._sizes[-1] if self._skip else 0)])

    @property
    def state_size(self) -> Any:
        size = as_shape([*self._sizes[:-1], self._channels])
        return LSTMStateTuple(size, size)

    def _convolved(self, x: Tensor) -> Tensor:
        size = 4 * self._channels
        kernel = self.add_variable("kernel", [*self._kernel, last_size(x), size], x.dtype.base)
        if self._ndims == 1:
            found = conv1d(x, kernel, 1, padding="SAME")
        else:
            convolve: Any = nn_ops.conv2d if self._ndims == 2 else conv3d
            found = convolve(x, kernel, [1] * (self._ndims + 2), padding="SAME")
        return found + self.add_variable("biases", [size], x.dtype.base, Constant(0.0)) if self._use_bias else found

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        gates = self._convolved(array_ops.concat([inputs, h], self._ndims + 1))
        i, j, f, o = array_ops.split(gates, 4, self._ndims + 1)
        new_c = math_ops.sigmoid(f + self._forget_bias) * c + math_ops.sigmoid(i) * math_ops.tanh(j)
        output = math_ops.tanh(new_c) * math_ops.sigmoid(o)
        if self._skip:
            output = array_ops.concat([output, inputs], -1)
        return output, LSTMStateTuple(new_c, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """An LSTM over inputs [batch, length, channels]; arguments as in ConvLSTMCell."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """An LSTM over inputs [batch, height, width, channels]; arguments as in ConvLSTMCell."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """An LSTM over inputs [batch, depth, height, width, channels]; arguments as in ConvLSTMCell."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any):
        super().__init__(conv_ndims=3, name=name, **kwargs)
