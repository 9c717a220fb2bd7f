"""Cells as one op, and layers that take all steps of a sequence at once ([steps, batch, size])."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.construction.convert import DTypeLike, as_shape, convert_to_tensor
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.layers.base import Layer
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.recurrent.cells.gated import known_width
from toolkit.client.recurrent.rnn import dynamic_rnn, static_rnn
from toolkit.client.recurrent.rnn_cell import GRUCell, LayerRNNCell, LSTMStateTuple, size_of
from toolkit.client.variables.initializers import Constant
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

#: what the ops take for "no bound"
_UNBOUNDED = -1.0


def _peepholes(cell: Any, units: int, used: bool) -> list[Any]:
    return [cell.add_variable(f"w_{gate}_diag", [units]) for gate in "ifo"] if used else []


class LSTMBlockCell(LayerRNNCell):
    """LSTMCell as one op (LSTMBlockCell), with the same variables.

    Args:
        cell_clip: bound of the cell's state; None for none.
        use_peephole: gates see the cell's state.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None, use_peephole: bool = False,
        dtype: DTypeLike = None, reuse: bool | None = None, name: str = "lstm_cell",
    ):  # fmt: skip
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units, self._forget_bias, self._use_peephole = num_units, forget_bias, use_peephole
        self._cell_clip = _UNBOUNDED if cell_clip is None else cell_clip

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Shape) -> None:
        units = self._num_units
        self._kernel = self.add_variable("kernel", [known_width(inputs_shape) + units, 4 * units])
        self._bias = self.add_variable("bias", [4 * units], initializer=Constant(0.0))
        self._diagonals = _peepholes(self, units, self._use_peephole)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        c, h = state
        nothing = [array_ops.zeros([self._num_units], self._dtype or dtypes.float32)] * 3
        wci, wcf, wco = self._diagonals or nothing
        found = ops.lstm_block_cell(
            inputs, c, h, self._kernel, wci, wcf, wco, self._bias, forget_bias=self._forget_bias,
            cell_clip=self._cell_clip, use_peephole=self._use_peephole,
        )  # fmt: skip
        return found[6], LSTMStateTuple(found[1], found[6])


class GRUBlockCell(LayerRNNCell):
    """GRUCell as one op (GRUBlockCell); variables are w_ru, b_ru, w_c and b_c.

    Args:
        cell_size: an older name of num_units.

    Raises:
        UsageError: neither, or both, are given.
    """

    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self, num_units: int | None = None, cell_size: int | None = None, reuse: bool | None = None,
        name: str = "gru_cell",
    ):  # fmt: skip
        super().__init__(_reuse=reuse, name=name)
        size = cell_size if num_units is None else num_units
        if size is None or (num_units is not None and cell_size is not None):
            raise UsageError("a GRUBlockCell takes num_units, or cell_size, which is its older name")
        self._cell_size = size

    @property
    def state_size(self) -> int:
        return self._cell_size

    @property
    def output_size(self) -> int:
        return self._cell_size

    def build(self, inputs_shape: Shape) -> None:
        units, rows = self._cell_size, known_width(inputs_shape) + self._cell_size
        gates, gate_bias, candidate, bias = self._names
        self._gate_kernel = self.add_variable(gates, [rows, 2 * units])
        self._gate_bias = self.add_variable(gate_bias, [2 * units], initializer=Constant(1.0))
        self._kernel = self.add_variable(candidate, [rows, units])
        self._bias = self.add_variable(bias, [units], initializer=Constant(0.0))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        *_, output = ops.gru_block_cell(
            inputs, state, self._gate_kernel, self._kernel, self._gate_bias, self._bias
        )  # fmt: skip
        return output, output


class GRUBlockCellV2(GRUBlockCell):
    """GRUBlockCell with the variables of GRUCell."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """An LSTM with the variables and the forget bias of layers that cuDNN has computed."""

    def __init__(self, num_units: int, reuse: bool | None = None):
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """A GRU that resets what is computed of the state, as cuDNN does, not the state."""

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None):
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, inputs_shape: Shape) -> None:
        units, width, weights = self._num_units, known_width(inputs_shape), self._kernel_initializer
        self._gate_kernel = self.add_variable("gates/kernel", [width + units, 2 * units], initializer=weights)
        self._gate_bias = self.add_variable("gates/bias", [2 * units], initializer=Constant(1.0))
        inner = "candidate/hidden_projection"
        outer = "candidate/input_projection"
        self._input_kernel = self.add_variable(f"{outer}/kernel", [width, units], initializer=weights)
        self._hidden_kernel = self.add_variable(f"{inner}/kernel", [units, units], initializer=weights)
        self._input_bias = self.add_variable(f"{outer}/bias", [units], initializer=Constant(0.0))
        self._hidden_bias = self.add_variable(f"{inner}/bias", [units], initializer=Constant(0.0))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        gates = math_ops.matmul(array_ops.concat([inputs, state], 1), self._gate_kernel)
        reset, update = array_ops.split(math_ops.sigmoid(nn_ops.bias_add(gates, self._gate_bias)), 2, 1)
        given = nn_ops.bias_add(math_ops.matmul(inputs, self._input_kernel), self._input_bias)
        own = nn_ops.bias_add(math_ops.matmul(state, self._hidden_kernel), self._hidden_bias)
        fresh = self._activation(given + reset * own)
        output = (1 - update) * fresh + update * state
        return output, output


def _is_list(steps: Any) -> bool:
    return isinstance(steps, list)


class FusedRNNCell:
    """What takes all steps at once: `outputs, state = cell(inputs, ...)`."""

    @abstractmethod
    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: DTypeLike = None, sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Outputs of all steps, and the last state; inputs are [steps, batch, size], or a list of steps."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A cell over all steps, unrolled or in a loop (`use_dynamic_rnn`)."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False):
        self._cell, self._use_dynamic_rnn = cell, use_dynamic_rnn

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: DTypeLike = None, sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        as_list = _is_list(inputs)
        options: dict[str, Any] = {
            "sequence_length": sequence_length, "initial_state": initial_state, "dtype": dtype, "scope": scope
        }  # fmt: skip
        if self._use_dynamic_rnn:
            given = array_ops.stack(inputs) if as_list else inputs
            outputs, state = dynamic_rnn(self._cell, given, time_major=True, **options)
            return (array_ops.unstack(outputs) if as_list else outputs), state
        steps, state = static_rnn(self._cell, inputs if as_list else array_ops.unstack(inputs), **options)
        return (steps if as_list else array_ops.stack(steps)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """The steps from the last to the first; sequences that end before stay where they begin."""

    def __init__(self, cell: Any):
        self._cell = cell

    def __call__(
        self, inputs: Any, initial_state: Any = None, dtype: DTypeLike = None, sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        outputs, state = self._cell(
            _reversed(inputs, sequence_length), initial_state=initial_state, dtype=dtype,
            sequence_length=sequence_length, scope=scope,
        )  # fmt: skip
        return _reversed(outputs, sequence_length), state


def _reversed(steps: Any, lengths: Any) -> Any:
    if _is_list(steps):
        return steps[::-1]
    if lengths is None:
        return array_ops.reverse(steps, [0])
    return ops.reverse_sequence(steps, lengths, seq_dim=0, batch_dim=1)


class LSTMBlockWrapper(Layer):
    """A layer that computes all steps of an LSTM; a subclass has `num_units` and `_call_cell`."""

    @property
    @abstractmethod
    def num_units(self) -> int:
        """The size of outputs and state."""
        raise NotImplementedError("an LSTMBlockWrapper needs num_units")

    @abstractmethod
    def _call_cell(
        self, inputs: Tensor, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Tensor, Tensor]:
        """Cell states and outputs of all steps, [steps, batch, units] both."""

    def call(
        self, inputs: Any, initial_state: Any = None, dtype: DTypeLike = None,
        sequence_length: TensorLike | None = None, **_: Any,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Outputs of all steps, and the last state.

        Args:
            inputs: [steps, batch, size], or a list of steps.
            initial_state: (cell state, output), [batch, units] both; default: zeros of type `dtype`.
            sequence_length: [batch]; behind it outputs are zeros, and the state stays.

        Raises:
            UsageError: neither initial_state nor dtype is given.
        """
        as_list = _is_list(inputs)
        given = array_ops.stack(inputs) if as_list else convert_to_tensor(inputs)
        batch, steps = size_of(given, 1), size_of(given, 0)
        if initial_state is None:
            if dtype is None:
                raise UsageError("give initial_state, or the dtype of a state of zeros")
            zeros = array_ops.zeros(array_ops.stack([batch, self.num_units]), dtype)
            initial_state = (zeros, zeros)
        first_c, first_h = initial_state
        kind = first_c.dtype.base if dtype is None else dtype
        lengths = None if sequence_length is None else convert_to_tensor(sequence_length)
        states, outputs = self._call_cell(given, first_c, first_h, kind, lengths)
        if lengths is None:
            last_c, last_h = states[-1], outputs[-1]
        else:
            mask = array_ops.transpose(sequence_mask(lengths, steps, dtype=kind), [1, 0])
            outputs = outputs * array_ops.tile(array_ops.expand_dims(mask, -1), [1, 1, self.num_units])
            places = array_ops.stack([lengths, math_ops.range(batch)], axis=1)
            last_c, last_h = (
                ops.gather_nd(array_ops.concat([array_ops.expand_dims(first, 0), steps_], 0), places)
                for first, steps_ in ((first_c, states), (first_h, outputs))
            )
        return (array_ops.unstack(outputs) if as_list else outputs), LSTMStateTuple(last_c, last_h)


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """All steps of an LSTM as one op (BlockLSTM); arguments as in LSTMBlockCell."""

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, cell_clip: float | None = None, use_peephole: bool = False,
        reuse: bool | None = None, dtype: DTypeLike = None, name: str = "lstm_fused_cell",
    ):  # fmt: skip
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._forget_bias, self._use_peephole = num_units, forget_bias, use_peephole
        self._cell_clip = _UNBOUNDED if cell_clip is None else cell_clip

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        units = self._num_units
        self._kernel = self.add_variable("kernel", [known_width(as_shape(input_shape)) + units, 4 * units])
        self._bias = self.add_variable("bias", [4 * units], initializer=Constant(0.0))
        self._diagonals = _peepholes(self, units, self._use_peephole)
        self.built = True

    def _call_cell(
        self, inputs: Tensor, initial_cell_state: Any, initial_output: Any, dtype: Any, sequence_length: Any
    ) -> tuple[Tensor, Tensor]:
        nothing = [array_ops.zeros([self._num_units], dtype)] * 3
        wci, wcf, wco = self._diagonals or nothing
        longest = size_of(inputs, 0) if sequence_length is None else math_ops.reduce_max(sequence_length)
        found = ops.block_lstm(
            math_ops.cast(longest, dtypes.int64), inputs, initial_cell_state, initial_output, self._kernel, wci, wcf,
            wco, self._bias, forget_bias=self._forget_bias, cell_clip=self._cell_clip, use_peephole=self._use_peephole,
        )  # fmt: skip
        return found[1], found[6]
