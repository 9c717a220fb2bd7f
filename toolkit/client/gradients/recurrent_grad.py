"""Gradients of cuDNN's recurrent networks, each by one op of its own."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.errors import GraphError

_ATTRS = ("rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2")
#: those of the third version
_MORE = ("num_proj", "time_major")


@gradient("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def cudnn_rnn(op: Operation, *grads: Tensor) -> list[Gradient]:
    """By input, input_h, input_c and params; sequence_lengths have none.

    Raises:
        GraphError: the op leaves nothing for it, as it is not for training.
    """
    if not op.get_attr("is_training"):
        raise GraphError(f"To use {op.type} in gradients, is_training must be set to True", node=op.name)
    is_third = op.type == "CudnnRNNV3"
    attrs: dict[str, Any] = {name: op.get_attr(name) for name in (*_ATTRS, *(_MORE if is_third else ()))}
    name = op.type.replace("CudnnRNN", "CudnnRNNBackprop")
    found = ops.function(name)(*op.inputs, *op.outputs[:3], *grads[:3], *op.outputs[3:], **attrs)
    return [*found, None] if is_third else list(found)
