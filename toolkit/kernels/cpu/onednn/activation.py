"""Activations of large tensors, node by node: those that take oneDNN half of NumPy's time or less.

Additions and products of tensors are not among them; memory limits both alike. Nor are Tanh, at which NumPy is as
fast, and Softplus, of which oneDNN has few digits where it is near 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolkit.kernels.cpu.math import unary as math_unary
from toolkit.kernels.cpu.nn import activation as nn_activation
from toolkit.kernels.cpu.onednn.cached import KEPT, Kept, is_worth, onednn
from toolkit.kernels.cpu.onednn.memory import dense
from toolkit.kernels.cpu.onednn.primitive import FORWARD_INFERENCE, Arg, Eltwise, Primitive
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array


class _Function(NamedTuple):
    """oneDNN's name for an activation.

    Attributes:
        numpy: what it is of float32.
        hides_nan: of NaN it makes a number, so it is not for tensors with one.
    """

    numpy: Compute
    algorithm: Eltwise
    alpha: float = 0.0
    beta: float = 0.0
    hides_nan: bool = False


_FUNCTIONS = {
    "Relu": _Function(nn_activation.relu, Eltwise.RELU, hides_nan=True),
    "Relu6": _Function(nn_activation.relu6, Eltwise.CLIP_V2, 0.0, 6.0, hides_nan=True),
    "Elu": _Function(nn_activation.elu, Eltwise.ELU, 1.0),
    "Sigmoid": _Function(math_unary.sigmoid, Eltwise.LOGISTIC),
}


@onednn(*_FUNCTIONS, numpy=lambda op: _FUNCTIONS[op.op].numpy)
def activation(op: KernelNode, numpy: Compute) -> Compute:
    _, algorithm, alpha, beta, hides_nan = _FUNCTIONS[op.op]
    processor = op.target

    def make(size: int) -> Kept:
        desc = dense((size,), F32)
        primitive = Primitive("eltwise_forward", FORWARD_INFERENCE, algorithm, desc, desc, alpha, beta)
        return Kept(primitive, [(Arg.SRC, desc), (Arg.DST, desc)], processor)

    def compute(x: Array) -> Array:
        if not is_worth(x.size, processor.kernels.activation) or (hides_nan and np.isnan(np.max(x))):
            return numpy(x)
        kept = KEPT.get((algorithm, x.size), lambda: make(x.size))
        if kept is None:
            return numpy(x)
        return kept.like(x)

    return compute
