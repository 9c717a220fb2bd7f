"""The weights of cuDNN's recurrent networks: how large their buffer is, what is in it, and how it is made.

Canonical weights have a row for each unit; biases are vectors. Their order is that of the buffer
(`toolkit.kernels.recurrent_params`): of an LSTM of one layer four matrices of inputs, four of the state, the
projection's with num_proj, and eight biases.
"""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import integer, np, require
from toolkit.kernels.cpu.nn.cudnn_rnn import part_of
from toolkit.kernels.recurrent_params import RecurrentModel, RecurrentSettings
from toolkit.kernels.registry import FLOATING, INDEX, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def model_of(settings: RecurrentSettings, layers: Array, units: Array, inputs: Array) -> RecurrentModel:
    """The network that three numbers say.

    Raises:
        InvalidArgumentError: one is no scalar, or out of its range.
    """
    return settings.model(
        integer(layers, "num_layers"), integer(units, "num_units"), integer(inputs, "input_size")
    )  # fmt: skip


def numbers_of(op: KernelNode) -> tuple[int, int]:
    """How many matrices and how many biases a node has."""
    if op.has("num_params"):
        return (op.attr("num_params"),) * 2
    return op.attr("num_params_weights"), op.attr("num_params_biases")


def check_numbers(model: RecurrentModel, weights: int, biases: int) -> None:
    """Refuse other numbers of matrices and biases than a network has.

    Raises:
        InvalidArgumentError: so.
    """
    for found, what, parts in (
        (weights, "weights", model.canonical_weights),
        (biases, "biases", model.canonical_biases),
    ):
        require(found == len(parts), f"Number of params ({what}) mismatch. Expected {len(parts)}, got {found}")


@kernel("CudnnRNNParamsSize", types={"T": FLOATING, "S": INDEX})
def cudnn_rnn_params_size(op: KernelNode) -> Compute:
    settings, dtype = RecurrentSettings.of(op), op.output_types[0].numpy

    def compute(layers: Array, units: Array, inputs: Array) -> Array:
        size = model_of(settings, layers, units, inputs).size
        if op.output_types[0] == dtypes.int32 and size >= 1 << 31:
            raise InvalidArgumentError(f"params have {size} elements, more than S=int32 can say; use S=int64")
        return np.array([size], dtype)

    return compute


@kernel("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2", types={"T": FLOATING})
def cudnn_rnn_params_to_canonical(op: KernelNode) -> Compute:
    settings, numbers = RecurrentSettings.of(op), numbers_of(op)

    def compute(layers: Array, units: Array, inputs: Array, params: Array) -> list[Array]:
        model = model_of(settings, layers, units, inputs)
        check_numbers(model, *numbers)
        check_buffer(model, params)
        parts = (*model.canonical_weights, *model.canonical_biases)
        return [part_of(params, part) for part in parts]

    return compute


def check_buffer(model: RecurrentModel, params: Any) -> None:
    """Refuse a buffer of another size.

    Raises:
        InvalidArgumentError: so.
    """
    if tuple(params.shape) != (model.size,):
        raise InvalidArgumentError(f"params must have shape [{model.size}], got {list(params.shape)}")


def check_parts(model: RecurrentModel, weights: Any, biases: Any) -> None:
    """Refuse matrices and biases of other sizes than a network has.

    Raises:
        InvalidArgumentError: so.
    """
    for values, what, parts in (
        (weights, "weights", model.canonical_weights),
        (biases, "biases", model.canonical_biases),
    ):
        for at, (value, part) in enumerate(zip(values, parts, strict=True)):
            size = value.size
            require(
                size == part.size,
                f"Params size mismatch. {what}[{at}] must have shape {list(part.shape)}, got {list(value.shape)}",
            )


@kernel("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2", types={"T": FLOATING})
def cudnn_rnn_canonical_to_params(op: KernelNode) -> Compute:
    settings, numbers = RecurrentSettings.of(op), numbers_of(op)

    def compute(layers: Array, units: Array, inputs: Array, *parts: Array) -> Array:
        """Parts come in the order in which they stand in the buffer."""
        model = model_of(settings, layers, units, inputs)
        check_numbers(model, *numbers)
        check_parts(model, parts[: numbers[0]], parts[numbers[0] :])
        return np.concatenate([np.ravel(part) for part in parts])

    return compute
