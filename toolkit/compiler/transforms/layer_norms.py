"""Layer norms that are spelled out, as Keras and TensorFlow's own layers do."""

from __future__ import annotations

import numpy as np

from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import call_of
from toolkit.compiler.ir.operations.norms import LayerNorm
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, is_float, scalar_of
from toolkit.kernels.tensors import F32


def find_layer_norm(root: Operation) -> None:
    """Put a `LayerNorm` over the last axis in the place of x * s + (beta - mean * s).

    There s is gamma / sqrt(variance + epsilon).
    """
    for scaled, shifted in (root.inputs, root.inputs[::-1]):
        scaled, shifted = call_of(scaled, "Mul"), call_of(shifted, "Sub")
        if scaled is None or shifted is None:
            continue
        beta, moved = shifted.inputs
        product = call_of(moved, "Mul")
        if product is None or not beta.is_constant:
            continue
        for x, s in (scaled.inputs, scaled.inputs[::-1]):
            if s not in product.inputs or x.shape != root.output.shape:
                continue
            mean = next((v for v in product.inputs if v is not s), None)
            if mean is not None and _become_layer_norm(root, x, mean, s, beta):
                return


def _become_layer_norm(root: Operation, x: Value, mean: Value, s: Value, beta: Value) -> bool:
    found = _scale_of(s)
    if found is None or not is_float(x) or not _is_mean(mean, x):
        return False
    gamma, variance, epsilon = found
    assert x.shape is not None
    channels = x.shape[-1]
    squares = call_of(variance, "Mean")
    if squares is None or not _last_axis(squares, len(x.shape)):
        return False
    difference = call_of(squares.inputs[0], "SquaredDifference")
    if difference is None or set(difference.inputs) != {x, mean}:
        return False
    scale, shift = _vector(gamma, channels), _vector(beta, channels)
    if scale is None or shift is None:
        return False
    root.become(LayerNorm, input=x, scale=scale, shift=shift, epsilon=epsilon)
    return True


def _scale_of(s: Value) -> tuple[Value | None, Value, float] | None:
    """(gamma, variance, epsilon) of gamma * rsqrt(variance + epsilon)."""
    gamma = None
    if (product := call_of(s, "Mul")) is not None:
        first, second = product.inputs
        s, gamma = (first, second) if second.is_constant else (second, first)
        if not gamma.is_constant:
            return None
    root = call_of(s, "Rsqrt")
    total = call_of(root.inputs[0], *ADDS) if root is not None else None
    if total is None:
        return None
    for variance, epsilon in (total.inputs, total.inputs[::-1]):
        number = scalar_of(epsilon)
        if number is not None:
            return gamma, variance, number
    return None


def _is_mean(value: Value, x: Value) -> bool:
    mean = call_of(value, "Mean")
    assert x.shape is not None
    return mean is not None and mean.inputs[0] is x and _last_axis(mean, len(x.shape))


def _last_axis(mean: Operation, rank: int) -> bool:
    axes = mean.inputs[1].constant if len(mean.inputs) > 1 else None
    if axes is None or not mean.step.node.attr("keep_dims", False):
        return False
    return [int(axis) % rank for axis in np.asarray(axes).reshape(-1)] == [rank - 1]


def _vector(value: Value | None, channels: int) -> np.ndarray | None:
    if value is None:
        return np.ones(channels, np.float32)
    array = np.asarray(value.constant)
    if array.dtype != F32 or not (array.size == 1 or (array.size == channels and array.shape[-1:] == (channels,))):
        return None
    return np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (channels,)))
