"""Numbers that are whole multiples of a step: what is rounded to a few bits and back, and weights that were.

FakeQuant and QuantizeAndDequantize give floats of which at most 256 differ; quantized weights are recognised by what
they are, whichever tool made them and whatever was folded into them since, for each output channel by itself.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.integers.rewriting import constants
from toolkit.compiler.ir.operation import Operation
from toolkit.kernels.cpu.quantized.quantize import (
    fake_quant_attributes,
    fake_quant_steps,
    range_given,
    round_limits,
    rounding_bits,
    rounding_of,
)
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32

#: int8 weights are 128 steps at most
_MOST_STEPS = 128
#: how far from a whole number of steps a weight may be: it, a factor folded into it, both of the largest weight, which
#: says how large a step is, the step and the quotient were rounded to float32, by 2^-24 of 128 steps each
_ROUNDED = 6 * _MOST_STEPS * 2.0**-24
#: products that are looked at first: hardly any weights that were not quantized pass them
_SAMPLE = 16
#: products that are looked at together, which stay in the cache
_ROWS = 128
_TINY = np.finfo(np.float32).tiny


@dataclass(frozen=True, slots=True)
class Grid:
    """Numbers (k - zero) * step for whole k, low <= k <= high, none of which is outside 0..255.

    Attributes:
        zero: the k of 0.
    """

    step: float
    zero: int
    low: int
    high: int


def _fake_quant(operation: Operation) -> Grid | None:
    bits, narrow = fake_quant_attributes(KernelNode(operation.step.node))
    node = operation.step.node
    if operation.op == "FakeQuantWithMinMaxArgs":
        ends: list[Any] | None = [np.float32(node.attr("min")), np.float32(node.attr("max"))]
    else:
        ends = constants(operation.inputs[1:])
    if bits > 8 or ends is None or any(np.shape(end) for end in ends):
        return None
    a, b = (np.float32(end) for end in ends)
    if not a < b:
        return None
    _, _, step, _, zero, is_empty = fake_quant_steps(a, b, bits, narrow)
    return None if is_empty else _grid(float(step), int(zero), 0, (1 << bits) - 1 - narrow)


def _round_trip(operation: Operation) -> Grid | None:
    rounding = rounding_of(KernelNode(operation.step.node))
    arguments = constants(operation.inputs[1:])
    if arguments is None or not rounding.is_given or rounding.axis != -1:
        return None
    bits = rounding_bits(rounding, arguments)
    ends = range_given(rounding, np.zeros((), np.float32), arguments)
    if bits > 8 or ends is None:
        return None
    low, high = round_limits(bits, rounding.signed, rounding.narrow)
    a, b = (float(end) for end in ends)
    step = max(a / low if low and a < 0 else 0.0, b / high if b > 0 else 0.0)
    return _grid(float(np.float32(step)), -low, 0, high - low)


def _grid(step: float, zero: int, low: int, high: int) -> Grid | None:
    is_usable = np.isfinite(step) and step >= np.finfo(np.float32).tiny and low <= zero <= high
    return Grid(step, zero, low, high) if is_usable else None


_GRIDS: dict[str, Callable[[Operation], Grid | None]] = {
    **dict.fromkeys(("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars"), _fake_quant),
    **dict.fromkeys(
        ("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4"),
        _round_trip,
    ),
}
ROUND_TRIPS = frozenset(_GRIDS)


def grid_of(operation: Operation) -> Grid | None:
    """What the numbers are that a node of `ROUND_TRIPS` gives; None where that is not known, or too many.

    Raises:
        GraphmillError: the node is wrong; its kernel says so when it runs.
    """
    x, y = operation.inputs[0], operation.output
    if x.dtype != F32 or y.dtype != F32 or x.is_constant:
        return None
    return _GRIDS[operation.op](operation)


def whole_multiples(weights: Any) -> tuple[Any, Any] | None:
    """Weights float32[products, outputs] as (int8 of the same shape, a step float32 for each output).

    Returns:
        None if those of an output are no whole multiples, up to 128, of any step.
    """
    peaks = np.maximum(weights.max(axis=0, initial=0), -weights.min(axis=0, initial=0))
    if not np.isfinite(peaks).all():
        return None
    # the second time where those looked at first say too little, being 0
    for looked_at in (weights[:: max(1, len(weights) // _SAMPLE)], weights):
        steps = _steps(looked_at, peaks)
        if steps is None:
            return None
        numbers = _counted(weights, steps)
        if numbers is not None:
            return numbers, steps
    return None


def _steps(weights: Any, peaks: Any) -> Any:
    """A step for each column that it is made of; None where there is none."""
    steps = np.ones_like(peaks)
    left = np.flatnonzero(peaks)
    for count in (_MOST_STEPS - 1, _MOST_STEPS, *range(_MOST_STEPS - 2, 0, -1)):
        if not left.size:
            break
        tried = peaks[left] / F32.type(count)
        if (tried < _TINY).any():
            return None
        counts = weights[:, left] / tried
        fits = (np.abs(counts - np.rint(counts)) <= _ROUNDED).all(axis=0)
        steps[left[fits]] = tried[fits]
        left = left[~fits]
    return None if left.size else steps


def _counted(weights: Any, steps: Any) -> Any:
    """How many steps each weight is, int8; None where one is no whole number of them that int8 has."""
    numbers = np.empty(weights.shape, np.int8)
    for start in range(0, len(weights), _ROWS):
        counts = weights[start : start + _ROWS] / steps
        whole = np.rint(counts)
        counts -= whole
        is_int8 = whole.min(initial=0) >= -_MOST_STEPS and whole.max(initial=0) < _MOST_STEPS
        if not is_int8 or max(counts.max(initial=0), -counts.min(initial=0)) > _ROUNDED:
            return None
        numbers[start : start + _ROWS] = whole
    return numbers
