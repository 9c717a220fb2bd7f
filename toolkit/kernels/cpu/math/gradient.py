"""Gradients of elementwise functions, in terms of the function's value y and the incoming gradient dy.

Both have the same shape; TensorFlow's kernels do not broadcast here.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.kernels.cpu.common import np, require, shape_text, widened
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array


def _conj(x: Array) -> Array:
    return np.conj(x) if x.dtype.kind == "c" else x


_GRADIENTS: dict[str, Callable[[Array, Array], Array]] = {
    "SigmoidGrad": lambda y, dy: dy * (y * (1 - y)),  # TensorFlow's gradient function conjugates y before
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SqrtGrad": lambda y, dy: dy * np.asarray(0.5, y.dtype) / _conj(y),
    "RsqrtGrad": lambda y, dy: dy * _conj(np.asarray(-0.5, y.dtype) * (y * y * y)),
    "ReciprocalGrad": lambda y, dy: -dy * _conj(y * y),
    "InvGrad": lambda y, dy: -dy * _conj(y * y),
}


def _same_shape(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    compute = widened(function)

    def checked(y: Array, dy: Array) -> Array:
        require(
            y.shape == dy.shape,
            f"The gradient has shape {shape_text(dy)} but the value has shape {shape_text(y)}",
        )
        return compute(y, dy)

    return checked


for _name, _function in _GRADIENTS.items():
    simple(_name)(_same_shape(_function))
