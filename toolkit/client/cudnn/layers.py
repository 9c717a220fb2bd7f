"""Recurrent networks of cuDNN as layers: CudnnLSTM, CudnnGRU, CudnnRNNTanh, CudnnRNNRelu.

All weights are one variable, a vector in cuDNN's own layout. In checkpoints they are the variables of cells
(`saveables`), so that either can be restored from what the other has saved.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.tensor import Tensor
from toolkit.client.cudnn.conversions import (
    BIDIRECTIONAL,
    DEVICE,
    DIRECTIONS,
    INPUT_MODES,
    UNIDIRECTIONAL,
    CudnnParamsFormatConverterGRU,
    CudnnParamsFormatConverterLSTM,
    CudnnParamsFormatConverterRelu,
    CudnnParamsFormatConverterTanh,
)
from toolkit.client.cudnn.saveables import (
    CudnnGRUSaveable,
    CudnnLSTMSaveable,
    CudnnRNNReluSaveable,
    CudnnRNNTanhSaveable,
)
from toolkit.client.layers.base import InputSpec, Layer
from toolkit.client.random.seeds import get_seed
from toolkit.client.variables.initializers import Constant, glorot_uniform
from toolkit.client.variables.store import get_variable, get_variable_scope, variable_scope
from toolkit.graph import dtypes

_TYPES = (dtypes.float16, dtypes.float32, dtypes.float64)


class _CudnnNetwork(Layer):
    """What the kinds of networks share.

    Args:
        num_layers, num_units: sizes of the network.
        input_mode: "linear_input", or "skip_input" and "auto_select", with which the first layer takes inputs of
            num_units numbers as they are.
        direction: "unidirectional" or "bidirectional".
        dropout: which part of the numbers between layers is left out.
        seed: of dropout and of the initial weights.
        dtype: float16, float32 or float64.
        kernel_initializer, bias_initializer: of cuDNN's matrices and biases; default: Glorot's uniform numbers, and 0.
    """

    _converter: ClassVar[type[CudnnParamsFormatConverterLSTM]]
    _saveable_class: ClassVar[type[CudnnLSTMSaveable]]
    #: how many tensors a state consists of
    _states: ClassVar[int] = 1

    def __init__(
        self, num_layers: int, num_units: int, input_mode: str = "linear_input", direction: str = UNIDIRECTIONAL,
        dropout: float = 0.0, seed: int | None = None, dtype: DTypeLike = dtypes.float32,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None,
    ):  # fmt: skip
        super().__init__(dtype=dtype, name=name)
        _require(direction in DIRECTIONS, f"direction is '{direction}'; expected {' or '.join(DIRECTIONS)}")
        _require(input_mode in INPUT_MODES, f"input_mode is '{input_mode}'; expected {', '.join(INPUT_MODES)}")
        self._kind = as_dtype(dtype)
        _require(self._kind in _TYPES, f"dtype is {self._kind}; expected {', '.join(map(str, _TYPES))}")
        self._num_layers, self._num_units = num_layers, num_units
        self._input_mode, self._direction = input_mode, direction
        self._dropout, self._seed = dropout, seed
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer
        self._input_size: int | None = None
        self._saveable: CudnnLSTMSaveable | None = None

    @property
    def num_layers(self) -> int:
        return self._num_layers

    @property
    def num_units(self) -> int:
        return self._num_units

    @property
    def input_mode(self) -> str:
        return self._input_mode

    @property
    def direction(self) -> str:
        return self._direction

    @property
    def num_dirs(self) -> int:
        return 2 if self._direction == BIDIRECTIONAL else 1

    @property
    def rnn_mode(self) -> str:
        """cuDNN's name of the network's kind."""
        return self._converter.mode

    @property
    def saveable(self) -> CudnnLSTMSaveable | None:
        """What saves the weights; None before they are made, and where they are another layer's."""
        return self._saveable

    @property
    def input_size(self) -> int:
        """Numbers of an input.

        Raises:
            ValueError: they are not known before the layer is built.
        """
        _require(self._input_size is not None, f"layer {self._name} has no input_size before it is first called")
        assert self._input_size is not None
        return self._input_size

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of cuDNN's matrices: of inputs, then of states, a gate each, by layers and directions.

        Raises:
            RuntimeError: the layer has not been built.
        """
        if self._input_size is None:
            raise RuntimeError(f"layer {self._name} has no matrices before it is first called")
        units, gates = self._num_units, self._converter.params // 2
        shapes: list[tuple[int, int]] = []
        for layer in range(self._num_layers):
            width = self.num_dirs * units if layer else self._input_size
            shapes += ([(units, width)] * gates + [(units, units)] * gates) * self.num_dirs
        return shapes

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        """The shapes of cuDNN's biases."""
        return [[self._num_units]] * (self.num_dirs * self._converter.params * self._num_layers)

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of the tensors of a state."""
        return ([self._num_layers * self.num_dirs, batch_size, self._num_units],) * self._states

    def build(self, input_shape: Any) -> None:
        """Make the weights.

        Raises:
            ValueError: an input has not three axes, or its last size is not known.
        """
        if self.built:
            return
        shape = as_shape(input_shape)
        _require(shape.rank == 3, f"layer {self._name} takes inputs of 3 dimensions, not of shape {shape}")
        size = shape[-1]
        _require(size is not None, f"layer {self._name} takes inputs whose last size is known, not of shape {shape}")
        self._input_size = size
        self.input_spec = InputSpec(ndim=3, axes={-1: size})
        self._open()
        with variable_scope(self._scope, reuse=self.built):
            matrices = self._kernel_initializer or glorot_uniform(self._seed)
            vectors = self._bias_initializer or Constant(0.0)
            weights = [matrices(each, self._kind) for each in self.canonical_weight_shapes]
            biases = [vectors(each, self._kind) for each in self.canonical_bias_shapes]
            opaque = self._opaque(weights, biases)
            self.kernel = get_variable("opaque_kernel", dtype=self._kind, initializer=opaque, validate_shape=False)
            self._weights.append(self.kernel)
        if not get_variable_scope().reuse:
            self._saveable = self._saveable_class(
                self.kernel, self._num_layers, self._num_units, self.input_size, self._input_mode, self._direction,
                get_variable_scope(), f"{self.kernel.name.split(':')[0]}_saveable",
            )  # fmt: skip
            get_default_graph().add_to_collection("saveable_objects", self._saveable)
        self.built = True

    def _opaque(self, weights: list[Tensor], biases: list[Tensor]) -> Tensor:
        with get_default_graph().device(DEVICE):
            seed, seed2 = get_seed(self._seed)
            return ops.cudnn_rnn_canonical_to_params(
                num_layers=self._num_layers, num_units=self._num_units, input_size=self._input_size, weights=weights,
                biases=biases, **self._settings(seed, seed2),
            )  # fmt: skip

    def _settings(self, seed: int, seed2: int) -> dict[str, Any]:
        return {
            "rnn_mode": self.rnn_mode, "input_mode": self._input_mode, "direction": self._direction,
            "dropout": self._dropout, "seed": seed, "seed2": seed2,
        }  # fmt: skip

    def call(
        self, inputs: Any, initial_state: Any = None, sequence_lengths: Any = None, time_major: bool = True,
        training: bool = True, **_: Any,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:  # fmt: skip
        """Outputs of all steps, and the state behind them.

        Args:
            inputs: [steps, batch, input_size]; with `time_major` False [batch, steps, input_size], and so outputs.
            initial_state: a tuple of [layers * directions, batch, units] (h and c of an LSTM, else h); default: zeros.
            sequence_lengths: how many steps each example has; default: all.
            training: whether gradients may be asked for, and numbers between layers are left out.

        Raises:
            TypeError: the state is no tuple.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"initial_state of layer {self._name} is {initial_state}; expected a tuple")
        given = convert_to_tensor(inputs, self._kind)
        batch = array_ops.shape(given)[1]
        if initial_state is None:
            initial_state = tuple(array_ops.zeros(shape, self._kind) for shape in self.state_shape(batch))
        parts = cast("tuple[Any, ...]", initial_state)
        state = [convert_to_tensor(each, self._kind) for each in parts]
        if len(state) < 2:
            state.append(convert_to_tensor([], self._kind))  # cuDNN has a c of all kinds
        outputs, *ends = self._run(given, state, sequence_lengths, time_major, training)
        return outputs, tuple(ends[: self._states])

    def _run(self, inputs: Tensor, state: list[Tensor], lengths: Any, time_major: bool, training: bool) -> list[Tensor]:
        seed, seed2 = get_seed(self._seed)
        settings = {**self._settings(seed, seed2), "is_training": training}
        if lengths is None and time_major:
            return list(ops.cudnn_rnn(inputs, *state, self.kernel, **settings))[:3]
        if lengths is None:
            batch, steps = array_ops.shape(inputs)[0], array_ops.shape(inputs)[1]
            lengths = array_ops.fill([batch], steps)
        made = ops.cudnn_rnnv3(inputs, *state, self.kernel, lengths, time_major=time_major, num_proj=0, **settings)
        return list(made)[:3]


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


class CudnnLSTM(_CudnnNetwork):
    """An LSTM of cuDNN."""

    _converter = CudnnParamsFormatConverterLSTM
    _saveable_class = CudnnLSTMSaveable
    _states = 2


class CudnnGRU(_CudnnNetwork):
    """A GRU of cuDNN, which resets what is computed of the state."""

    _converter = CudnnParamsFormatConverterGRU
    _saveable_class = CudnnGRUSaveable


class CudnnRNNTanh(_CudnnNetwork):
    """A plain recurrent network of cuDNN with tanh."""

    _converter = CudnnParamsFormatConverterTanh
    _saveable_class = CudnnRNNTanhSaveable


class CudnnRNNRelu(_CudnnNetwork):
    """A plain recurrent network of cuDNN with relu."""

    _converter = CudnnParamsFormatConverterRelu
    _saveable_class = CudnnRNNReluSaveable
