"""Weights of cuDNN's recurrent networks as variables of cells, and back.

cuDNN keeps all of a network's numbers in one vector, whose layout is its own. Two ops take it apart into matrices and
biases, an input's and a state's for each gate (cuDNN's canonical form); cells of TensorFlow have the gates' matrices
joined and transposed, and one bias where cuDNN has two. What is joined is halved on the way back.

| network | gates of cuDNN | of the cell | variables of a cell |
|---|---|---|---|
| LSTM | input, forget, new, output | input, new, forget, output | kernel, bias |
| GRU | reset, update, new | reset, update in one; new | gates, input and hidden projections, with biases |
| tanh, relu | one | one | kernel, bias |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor

UNIDIRECTIONAL, BIDIRECTIONAL = "unidirectional", "bidirectional"
DIRECTIONS = (UNIDIRECTIONAL, BIDIRECTIONAL)
INPUT_MODES = ("linear_input", "skip_input", "auto_select")
#: where cuDNN's ops are, as TensorFlow asks
DEVICE = "/gpu:0"
_NEW_INPUT, _NEW_STATE = 2, 5  # the matrices and biases of a GRU's new state, which stay apart
_HALF = 0.5


class CudnnParamsFormatConverterLSTM:
    """The weights of an LSTM.

    Args:
        num_layers, num_units, input_size: sizes of the network.
        num_proj: numbers of a projected output; None or 0: outputs are not projected.
        input_mode: of `INPUT_MODES`.
        direction: of `DIRECTIONS`.
    """

    mode: ClassVar[str] = "lstm"
    #: matrices of a layer and direction, and as many biases
    params: ClassVar[int] = 8
    #: the cell's gates among cuDNN's; these are the other way round in the same places
    _order: ClassVar[tuple[int, ...]] = (0, 2, 1, 3)

    def __init__(
        self, num_layers: int, num_units: int, input_size: int, num_proj: int | None = None,
        input_mode: str = "linear_input", direction: str = UNIDIRECTIONAL,
    ):  # fmt: skip
        self._num_layers, self._num_units, self._input_size = num_layers, num_units, input_size
        self._num_proj = num_proj or 0
        self._settings: dict[str, Any] = {
            "num_layers": num_layers, "num_units": num_units, "input_size": input_size, "rnn_mode": self.mode,
            "input_mode": input_mode, "direction": direction,
        }  # fmt: skip
        self._directions = 1 if direction == UNIDIRECTIONAL else 2

    # -- whole networks --------------------------------------------------------------------------------------------

    def opaque_to_tf_canonical(self, opaque_param: Any) -> tuple[list[Tensor], ...]:
        """Variables of cells from cuDNN's vector: matrices and biases by layers, backward behind forward; with
        projections their matrices, too."""
        matrices, vectors = self._taken_apart(opaque_param)
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        projections: list[Tensor] = []
        each = self.params + bool(self._num_proj)
        for cell in range(self._num_layers * self._directions):
            own = matrices[cell * each : (cell + 1) * each]
            weights += self._joined(own[: self.params])
            if self._num_proj:
                projections.append(array_ops.transpose(own[-1]))
            biases += self._joined_biases(vectors[cell * self.params : (cell + 1) * self.params])
        return (weights, biases, projections) if self._num_proj else (weights, biases)

    def tf_canonical_to_opaque(self, tf_canonicals: Sequence[Any], weights_proj: Sequence[Any] | None = None) -> Tensor:
        """cuDNN's vector from variables of cells.

        Args:
            tf_canonicals: matrices by layers, then biases.
            weights_proj: matrices of projections.
        """
        half = len(tf_canonicals) // 2
        cells = self._num_layers * self._directions
        each = half // cells
        matrices: list[Tensor] = []
        vectors: list[Tensor] = []
        for cell in range(cells):
            own = slice(cell * each, (cell + 1) * each)
            matrices += self._parted(cell // self._directions, tf_canonicals[:half][own])
            if weights_proj is not None:
                matrices.append(array_ops.transpose(weights_proj[cell]))
            vectors += self._parted_biases(tf_canonicals[half:][own])
        flat = [array_ops.reshape(matrix, [-1]) for matrix in matrices]
        with get_default_graph().device(DEVICE):
            if self._num_proj:
                return ops.cudnn_rnn_canonical_to_params_v2(
                    weights=flat, biases=vectors, num_proj=self._num_proj, **self._settings
                )
            return ops.cudnn_rnn_canonical_to_params(weights=flat, biases=vectors, **self._settings)

    def _taken_apart(self, opaque: Any) -> tuple[list[Tensor], list[Tensor]]:
        cells = self._num_layers * self._directions
        count = self.params * cells
        with get_default_graph().device(DEVICE):
            if self._num_proj:
                return ops.cudnn_rnn_params_to_canonical_v2(
                    params=opaque, num_params_weights=count + cells, num_params_biases=count, num_proj=self._num_proj,
                    **self._settings,
                )  # fmt: skip
            return ops.cudnn_rnn_params_to_canonical(params=opaque, num_params=count, **self._settings)

    def _widths(self, layer: int) -> list[int]:
        """Columns of the matrices of a gate: of a layer's input, and of the state."""
        state = self._num_proj or self._num_units
        return [self._directions * state if layer else self._input_size, state]

    # -- one layer and direction -----------------------------------------------------------------------------------

    def _joined(self, matrices: Sequence[Any]) -> list[Tensor]:
        gates = len(matrices) // 2
        rows = [array_ops.concat([matrices[gate], matrices[gates + gate]], 1) for gate in range(gates)]
        return [array_ops.transpose(array_ops.concat([rows[gate] for gate in self._order], 0))]

    def _parted(self, layer: int, variables: Sequence[Any]) -> list[Tensor]:
        rows = array_ops.split(array_ops.transpose(variables[0]), len(self._order), 0)
        pairs = [array_ops.split(each, self._widths(layer), 1) for each in rows]
        return [pairs[gate][part] for part in (0, 1) for gate in self._order]

    def _joined_biases(self, biases: Sequence[Any]) -> list[Tensor]:
        gates = len(biases) // 2
        sums = [biases[gate] + biases[gates + gate] for gate in range(gates)]
        return [array_ops.concat([sums[gate] for gate in self._order], 0)]

    def _parted_biases(self, variables: Sequence[Any]) -> list[Tensor]:
        parts = array_ops.split(variables[0], len(self._order), 0)
        halves = [parts[gate] * _HALF for gate in self._order]
        return [*halves, *halves]


class CudnnParamsFormatConverterGRU(CudnnParamsFormatConverterLSTM):
    """The weights of a GRU."""

    mode = "gru"
    params = 6

    def _joined(self, matrices: Sequence[Any]) -> list[Tensor]:
        rows = [array_ops.concat([matrices[gate], matrices[3 + gate]], 1) for gate in (0, 1)]
        gates = array_ops.transpose(array_ops.concat(rows, 0))
        return [gates, *(array_ops.transpose(matrices[each]) for each in (_NEW_INPUT, _NEW_STATE))]

    def _parted(self, layer: int, variables: Sequence[Any]) -> list[Tensor]:
        gates, given, state = map(array_ops.transpose, variables)
        (first, own_first), (second, own_second) = (
            array_ops.split(each, self._widths(layer), 1) for each in array_ops.split(gates, 2, 0)
        )
        return [first, second, given, own_first, own_second, state]

    def _joined_biases(self, biases: Sequence[Any]) -> list[Tensor]:
        given, own = (array_ops.concat(list(biases[at : at + 2]), 0) for at in (0, 3))
        return [given + own, biases[_NEW_INPUT], biases[_NEW_STATE]]

    def _parted_biases(self, variables: Sequence[Any]) -> list[Tensor]:
        gates, given, state = variables
        halves = [gates * _HALF, gates * _HALF]
        (first, second), (own_first, own_second) = (array_ops.split(half, 2, 0) for half in halves)
        return [first, second, given, own_first, own_second, state]


class CudnnParamsFormatConverterTanh(CudnnParamsFormatConverterLSTM):
    """The weights of a network of tanh."""

    mode = "rnn_tanh"
    params = 2

    def _joined(self, matrices: Sequence[Any]) -> list[Tensor]:
        return [array_ops.transpose(array_ops.concat(list(matrices), 1))]

    def _parted(self, layer: int, variables: Sequence[Any]) -> list[Tensor]:
        return array_ops.split(array_ops.transpose(variables[0]), self._widths(layer), 1)

    def _joined_biases(self, biases: Sequence[Any]) -> list[Tensor]:
        return [biases[0] + biases[1]]

    def _parted_biases(self, variables: Sequence[Any]) -> list[Tensor]:
        return [variables[0] * _HALF, variables[0] * _HALF]


class CudnnParamsFormatConverterRelu(CudnnParamsFormatConverterTanh):
    """The weights of a network of relu."""

    mode = "rnn_relu"
