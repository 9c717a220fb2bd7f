"""cuDNN's weights in checkpoints: under the names and in the form of cells that compute the same on any device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.cudnn.conversions import (
    UNIDIRECTIONAL,
    CudnnParamsFormatConverterGRU,
    CudnnParamsFormatConverterLSTM,
    CudnnParamsFormatConverterRelu,
    CudnnParamsFormatConverterTanh,
)
from toolkit.client.train.saveables import SaveableObject, SaveSpec, assign_restored
from toolkit.client.variables.store import VariableScope


class CudnnLSTMSaveable(SaveableObject):
    """The weights of an LSTM in a checkpoint.

    Args:
        opaque_params: the variable with cuDNN's vector.
        num_layers, num_units, input_size, input_mode, direction: as its converter's.
        scope: the variable scope, or its name, in which cells have these weights.
        name: what it is called.
    """

    _converter: ClassVar[type[CudnnParamsFormatConverterLSTM]] = CudnnParamsFormatConverterLSTM
    _cell: ClassVar[str] = "cudnn_compatible_lstm_cell"
    #: variables of a cell: matrices, and biases
    _weights: ClassVar[tuple[str, ...]] = ("kernel",)
    _biases: ClassVar[tuple[str, ...]] = ("bias",)
    #: the collection names objects of this process alone
    in_process_only = True

    def __init__(
        self, opaque_params: Any, num_layers: int, num_units: int, input_size: int, input_mode: str = "linear_input",
        direction: str = UNIDIRECTIONAL, scope: Any = None, name: str = "cudnn_rnn_saveable",
    ):  # fmt: skip
        self._variable = opaque_params
        self._made = self._converter(
            num_layers, num_units, input_size, input_mode=input_mode, direction=direction
        )  # fmt: skip
        weights, biases = self._made.opaque_to_tf_canonical(opaque_params)
        start = scope.name if isinstance(scope, VariableScope) else scope
        before = f"{start}/" if start else ""
        cells = _cell_scopes(num_layers, direction == UNIDIRECTIONAL)
        names = [
            f"{cell}/{self._cell}/{each}" for kind in (self._weights, self._biases) for cell in cells for each in kind
        ]
        specs = [
            SaveSpec(tensor, "", before + name) for tensor, name in zip([*weights, *biases], names, strict=True)
        ]  # fmt: skip
        super().__init__(array_ops.identity(opaque_params), specs, name)

    @property
    def format_converter(self) -> CudnnParamsFormatConverterLSTM:
        """What makes cuDNN's vector of the checkpoint's tensors, and these of it."""
        return self._made

    @property
    def optional_restore(self) -> bool:
        """Whether a checkpoint may lack it."""
        return False

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        opaque = self._made.tf_canonical_to_opaque(restored_tensors)
        return assign_restored(self._variable, opaque, reshaped=True)


class CudnnGRUSaveable(CudnnLSTMSaveable):
    """The weights of a GRU in a checkpoint."""

    _converter = CudnnParamsFormatConverterGRU
    _cell = "cudnn_compatible_gru_cell"
    _weights = ("gates/kernel", "candidate/input_projection/kernel", "candidate/hidden_projection/kernel")
    _biases = ("gates/bias", "candidate/input_projection/bias", "candidate/hidden_projection/bias")


class CudnnRNNTanhSaveable(CudnnLSTMSaveable):
    """The weights of a network of tanh in a checkpoint."""

    _converter = CudnnParamsFormatConverterTanh
    _cell = "basic_rnn_cell"


class CudnnRNNReluSaveable(CudnnRNNTanhSaveable):
    """The weights of a network of relu in a checkpoint."""

    _converter = CudnnParamsFormatConverterRelu


def _cell_scopes(num_layers: int, is_one_way: bool) -> list[str]:
    """The scopes that dynamic_rnn, or stack_bidirectional_dynamic_rnn, gives the cells of a stack."""
    if is_one_way:
        return [f"rnn/multi_rnn_cell/cell_{layer}" for layer in range(num_layers)]
    return [
        f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{way}"
        for layer in range(num_layers)
        for way in ("fw", "bw")
    ]
