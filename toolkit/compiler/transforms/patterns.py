"""Well-known compositions of elementwise operations that oneDNN has as one function.

Each pattern is found from its last operation backwards. What it leaves without a user is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.elementwise import Activation
from toolkit.compiler.ir.operations.norms import LayerNorm
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_float, scalar_of
from toolkit.kernels.tensors import F32

_ADDS = frozenset({"Add", "AddV2"})
_PRODUCTS = frozenset({"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul"})
_TOLERANCE = 1e-3  # of the constants that authors round differently (0.7071 for the root of a half)


def find_patterns(block: Block, refused: Callable[[Operation], bool], least: int) -> None:
    """Replace activations and layer norms that are spelled out by single operations, where that is worth it.

    Args:
        least: elements of an output that no product takes up.
    """
    for operation in block.operations:
        if not operation.outputs or not is_float(operation.output) or refused(operation):
            continue
        if operation.output.size < least and not _follows_product(operation):
            continue
        if operation.kind == "Mul":
            _activation(operation)
        elif operation.kind in _ADDS:
            _layer_norm(operation)


def _follows_product(operation: Operation) -> bool:
    """Whether a convolution or matrix product may take the pattern up, however small it is."""
    if not operation.inputs:
        return False
    value: Value = operation.inputs[0]
    for _ in range(4):
        producer = value.producer
        if producer is None or not producer.inputs:
            return False
        if producer.kind in _PRODUCTS:
            return True
        value = producer.inputs[0]
    return False


# -- activations: products that contain a function of one of their factors ---------------------------------------


def _activation(root: Operation) -> None:
    scale, factors = _factors(root)
    if len(factors) != 2 or factors[0] is factors[1]:
        return
    for x, gate in (factors, factors[::-1]):
        if x.shape != root.output.shape or gate.producer is None:
            continue
        found = _gate(x, gate.producer, scale)
        if found is not None:
            root.become(Activation, input=x, function=found)
            return


def _factors(root: Operation) -> tuple[float, list[Value]]:
    """A product taken apart: the constant numbers in it multiplied, and the other factors."""
    scale = 1.0
    factors: list[Value] = []
    stack = list(root.inputs)
    while stack:
        value = stack.pop()
        number = scalar_of(value)
        producer = value.producer
        if number is not None:
            scale *= number
        elif producer is not None and producer.kind == "Mul" and value.sole_user is not None:
            stack += producer.inputs
        else:
            factors.append(value)
    return scale, factors


def _gate(x: Value, gate: Operation, scale: float) -> Apply | None:
    """Which function of x x * scale * gate is."""
    if gate.kind == "Sigmoid" and _near(scale, 1.0):
        alpha = _multiple(gate.inputs[0], x)
        return None if alpha is None else Apply(UnaryFunction.SWISH, alpha)
    if gate.kind == "Erfc" and _near(scale, 0.5):  # 1 + erf(a) = erfc(-a)
        factor = _multiple(gate.inputs[0], x)
        return Apply(UnaryFunction.GELU_ERF) if factor is not None and _near(factor, -math.sqrt(0.5)) else None
    if gate.kind == "Relu6" and _near(scale, 1.0 / 6.0):
        return Apply(UnaryFunction.HARD_SWISH, 1.0 / 6.0, 0.5) if _shifted(gate.inputs[0], x, 3.0) else None
    if gate.kind in _ADDS and _near(scale, 0.5):
        inner = _other_than(gate, 1.0)
        if inner is None or inner.producer is None:
            return None
        function = inner.producer
        if function.kind == "Erf":
            factor = _multiple(function.inputs[0], x)
            return Apply(UnaryFunction.GELU_ERF) if factor is not None and _near(factor, math.sqrt(0.5)) else None
        if function.kind == "Tanh" and _is_gelu_argument(function.inputs[0], x):
            return Apply(UnaryFunction.GELU_TANH)
    return None


def _near(number: float, wanted: float) -> bool:
    return abs(number - wanted) <= _TOLERANCE * abs(wanted)


def _multiple(value: Value, x: Value, depth: int = 3) -> float | None:
    """c, where value is c * x, spelled out in so many operations at most."""
    if value is x:
        return 1.0
    producer = value.producer
    if producer is None or depth == 0 or producer.kind not in ("Mul", "Neg", "RealDiv"):
        return None
    factor, inner = -1.0, producer.inputs[0]
    if producer.kind != "Neg":
        first, second = producer.inputs
        if producer.kind == "Mul" and scalar_of(first) is not None:
            first, second = second, first
        number, inner = scalar_of(second), first
        if not number:
            return None
        factor = 1.0 / number if producer.kind == "RealDiv" else number
    found = _multiple(inner, x, depth - 1)
    return None if found is None else factor * found


def _shifted(value: Value, x: Value, by: float) -> bool:
    producer = value.producer
    if producer is None or producer.kind not in _ADDS:
        return False
    return x in producer.inputs and any(scalar_of(v) == by for v in producer.inputs)


def _other_than(add: Operation, number: float) -> Value | None:
    """The other term of a sum with this number."""
    first, second = add.inputs
    if scalar_of(first) == number:
        return second
    return first if scalar_of(second) == number else None


def _is_gelu_argument(value: Value, x: Value) -> bool:
    """Whether value is sqrt(2 / pi) * (x + 0.044715 * x^3)."""
    if value.producer is None or value.producer.kind != "Mul":
        return False
    scale, factors = _factors(value.producer)
    if not _near(scale, math.sqrt(2.0 / math.pi)) or len(factors) != 1:
        return False
    total = factors[0].producer
    if total is None or total.kind not in _ADDS or x not in total.inputs:
        return False
    cube = total.inputs[1] if total.inputs[0] is x else total.inputs[0]
    if cube.producer is None:
        return False
    if cube.producer.kind != "Mul":
        return False
    weight, parts = _factors(cube.producer)
    return _near(weight, 0.044715) and _is_cube(parts, x)


def _is_cube(parts: list[Value], x: Value) -> bool:
    if all(part is x for part in parts):
        return len(parts) == 3
    if len(parts) == 2 and x in parts:
        other = parts[1] if parts[0] is x else parts[0]
        return other.producer is not None and other.producer.kind == "Square" and other.producer.inputs[0] is x
    if len(parts) == 1 and parts[0].producer is not None and parts[0].producer.kind == "Pow":
        base, exponent = parts[0].producer.inputs
        return base is x and scalar_of(exponent) == 3.0
    return False


# -- layer norms -------------------------------------------------------------------------------------------------


def _layer_norm(root: Operation) -> None:
    """x * s + (beta - mean * s), with s = gamma / sqrt(variance + epsilon), over the last axis."""
    for scaled, shifted in (root.inputs, root.inputs[::-1]):
        if scaled.producer is None or shifted.producer is None:
            continue
        if scaled.producer.kind != "Mul" or shifted.producer.kind != "Sub":
            continue
        beta, product = shifted.producer.inputs
        if product.producer is None or product.producer.kind != "Mul" or not beta.is_constant:
            continue
        for x, s in (scaled.producer.inputs, scaled.producer.inputs[::-1]):
            if s not in product.producer.inputs or x.shape != root.output.shape:
                continue
            mean = next((v for v in product.producer.inputs if v is not s), None)
            if mean is not None and _become_layer_norm(root, x, mean, s, beta):
                return


def _become_layer_norm(root: Operation, x: Value, mean: Value, s: Value, beta: Value) -> bool:
    found = _scale_of(s)
    if found is None or not is_float(x) or not _is_mean(mean, x):
        return False
    gamma, variance, epsilon = found
    assert x.shape is not None
    channels = x.shape[-1]
    squares = variance.producer
    if squares is None or squares.kind != "Mean" or not _last_axis(squares, len(x.shape)):
        return False
    difference = squares.inputs[0].producer
    if difference is None or difference.kind != "SquaredDifference" or set(difference.inputs) != {x, mean}:
        return False
    scale, shift = _vector(gamma, channels), _vector(beta, channels)
    if scale is None or shift is None:
        return False
    root.become(LayerNorm, input=x, scale=scale, shift=shift, epsilon=epsilon)
    return True


def _scale_of(s: Value) -> tuple[Value | None, Value, float] | None:
    """(gamma, variance, epsilon) of gamma * rsqrt(variance + epsilon)."""
    producer, gamma = s.producer, None
    if producer is not None and producer.kind == "Mul":
        first, second = producer.inputs
        root, gamma = (first, second) if second.is_constant else (second, first)
        if not gamma.is_constant:
            return None
        producer = root.producer
    if producer is None or producer.kind != "Rsqrt" or producer.inputs[0].producer is None:
        return None
    total = producer.inputs[0].producer
    if total.kind not in _ADDS:
        return None
    for variance, epsilon in (total.inputs, total.inputs[::-1]):
        number = scalar_of(epsilon)
        if number is not None:
            return gamma, variance, number
    return None


def _is_mean(value: Value, x: Value) -> bool:
    producer = value.producer
    assert x.shape is not None
    return (
        producer is not None
        and producer.kind == "Mean"
        and producer.inputs[0] is x
        and _last_axis(producer, len(x.shape))
    )


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
