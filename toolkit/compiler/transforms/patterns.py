"""Well-known compositions of elementwise operations that oneDNN has as one function.

Each pattern is found from its last operation backwards. What it leaves without a user is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import call_of
from toolkit.compiler.ir.operations.elementwise import Activation
from toolkit.compiler.ir.post_ops import Apply, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import ADDS, is_float, scalar_of
from toolkit.compiler.transforms.layer_norms import find_layer_norm

_PRODUCTS = ("Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul")
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
        find = _PATTERNS.get(operation.op)
        if find is not None:
            find(operation)


def _follows_product(operation: Operation) -> bool:
    """Whether a convolution or matrix product may take the pattern up, however small it is."""
    if not operation.inputs:
        return False
    value: Value = operation.inputs[0]
    for _ in range(4):
        producer = value.producer
        if producer is None or not producer.inputs:
            return False
        if producer.op in _PRODUCTS:
            return True
        value = producer.inputs[0]
    return False


def _activation(root: Operation) -> None:
    found = activation_of(root)
    if found is not None:
        root.become(Activation, input=found[0], function=found[1])


def activation_of(root: Operation) -> tuple[Value, Apply] | None:
    """What an activation that is spelled out, and ends with this product, is taken of, and which it is."""
    scale, factors = _factors(root)
    if len(factors) != 2 or factors[0] is factors[1]:
        return None
    for x, gate in (factors, factors[::-1]):
        if x.shape != root.output.shape or gate.producer is None:
            continue
        found = _gate(x, gate.producer, scale)
        if found is not None:
            return x, found
    return None


def _factors(root: Operation) -> tuple[float, list[Value]]:
    """A product taken apart: the constant numbers in it multiplied, and the other factors."""
    scale = 1.0
    factors: list[Value] = []
    stack = list(root.inputs)
    while stack:
        value = stack.pop()
        number = scalar_of(value)
        product = call_of(value, "Mul")
        if number is not None:
            scale *= number
        elif product is not None and value.sole_user is not None:
            stack += product.inputs
        else:
            factors.append(value)
    return scale, factors


def _gate(x: Value, gate: Operation, scale: float) -> Apply | None:
    """Which function of x the product x * scale * gate is."""
    found = _GATES.get(gate.op)
    return None if found is None or not _near(scale, found.scale) else found.function(x, gate)


def _swish(x: Value, gate: Operation) -> Apply | None:
    """x * sigmoid(alpha * x)."""
    alpha = _multiple(gate.inputs[0], x)
    return None if alpha is None else Apply(UnaryFunction.SWISH, alpha)


def _gelu_of_erfc(x: Value, gate: Operation) -> Apply | None:
    """x / 2 * (1 + erf(a)), where 1 + erf(a) = erfc(-a) and a = x / sqrt(2)."""
    factor = _multiple(gate.inputs[0], x)
    return Apply(UnaryFunction.GELU_ERF) if factor is not None and _near(factor, -math.sqrt(0.5)) else None


def _hard_swish(x: Value, gate: Operation) -> Apply | None:
    """x / 6 * relu6(x + 3)."""
    return Apply(UnaryFunction.HARD_SWISH, 1.0 / 6.0, 0.5) if _shifted(gate.inputs[0], x, 3.0) else None


def _gelu(x: Value, gate: Operation) -> Apply | None:
    """x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh."""
    inner = _other_than(gate, 1.0)
    if inner is None:
        return None
    if (erf := call_of(inner, "Erf")) is not None:
        factor = _multiple(erf.inputs[0], x)
        return Apply(UnaryFunction.GELU_ERF) if factor is not None and _near(factor, math.sqrt(0.5)) else None
    tanh = call_of(inner, "Tanh")
    return Apply(UnaryFunction.GELU_TANH) if tanh is not None and _is_gelu_argument(tanh.inputs[0], x) else None


class _Gate(NamedTuple):
    """A factor that makes an activation of a product.

    Attributes:
        scale: what the product of the constants beside it must be.
        function: which activation it then is, given x and what makes the factor; None where it is none.
    """

    scale: float
    function: Callable[[Value, Operation], Apply | None]


#: by the op that makes the factor
_GATES: dict[str, _Gate] = {
    "Sigmoid": _Gate(1.0, _swish),
    "Erfc": _Gate(0.5, _gelu_of_erfc),
    "Relu6": _Gate(1.0 / 6.0, _hard_swish),
    **dict.fromkeys(ADDS, _Gate(0.5, _gelu)),
}


def _near(number: float, wanted: float) -> bool:
    return abs(number - wanted) <= _TOLERANCE * abs(wanted)


def _multiple(value: Value, x: Value, depth: int = 3) -> float | None:
    """c, where value is c * x, spelled out in so many operations at most."""
    if value is x:
        return 1.0
    producer = value.producer
    if producer is None or depth == 0:
        return None
    match producer.op:
        case "Neg":
            factor, inner = -1.0, producer.inputs[0]
        case "Mul" | "RealDiv" as op:
            inner, second = producer.inputs
            if op == "Mul" and scalar_of(inner) is not None:
                inner, second = second, inner
            number = scalar_of(second)
            if not number:
                return None
            factor = 1.0 / number if op == "RealDiv" else number
        case _:
            return None
    found = _multiple(inner, x, depth - 1)
    return None if found is None else factor * found


def _shifted(value: Value, x: Value, by: float) -> bool:
    total = call_of(value, *ADDS)
    return total is not None and x in total.inputs and any(scalar_of(term) == by for term in total.inputs)


def _other_than(add: Operation, number: float) -> Value | None:
    """The other term of a sum with this number."""
    first, second = add.inputs
    if scalar_of(first) == number:
        return second
    return first if scalar_of(second) == number else None


def _is_gelu_argument(value: Value, x: Value) -> bool:
    """Whether value is sqrt(2 / pi) * (x + 0.044715 * x^3)."""
    product = call_of(value, "Mul")
    if product is None:
        return False
    scale, factors = _factors(product)
    if not _near(scale, math.sqrt(2.0 / math.pi)) or len(factors) != 1:
        return False
    total = call_of(factors[0], *ADDS)
    if total is None or x not in total.inputs:
        return False
    cube = call_of(total.inputs[1] if total.inputs[0] is x else total.inputs[0], "Mul")
    if cube is None:
        return False
    weight, parts = _factors(cube)
    return _near(weight, 0.044715) and _is_cube(parts, x)


def _is_cube(parts: list[Value], x: Value) -> bool:
    if all(part is x for part in parts):
        return len(parts) == 3
    if len(parts) == 2 and x in parts:
        square = call_of(parts[1] if parts[0] is x else parts[0], "Square")
        return square is not None and square.inputs[0] is x
    power = call_of(parts[0], "Pow") if len(parts) == 1 else None
    return power is not None and power.inputs[0] is x and scalar_of(power.inputs[1]) == 3.0


#: by the op that a pattern ends with
_PATTERNS: dict[str, Callable[[Operation], None]] = {"Mul": _activation, **dict.fromkeys(ADDS, find_layer_norm)}
