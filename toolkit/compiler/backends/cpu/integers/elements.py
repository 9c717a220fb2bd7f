"""Rules for what is elementwise on quantized numbers, and for pools, joins and other names of them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.tiles import Stage, Tiled, kernel_stage, table_stage
from toolkit.compiler.backends.cpu.integers.products import I8, U8
from toolkit.compiler.backends.cpu.integers.rewriting import Rewriter, Rule, constants
from toolkit.compiler.backends.cpu.networks.hosts import lower_pool
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias, Concat
from toolkit.compiler.ir.operations.pools import PoolFunction
from toolkit.compiler.ir.value import Value

_SMALL_TYPES = (I8, U8)


def elementwise(rewriter: Rewriter, operation: Operation, beside: int = 0) -> Tiled | None:
    """The first input, and so many of the others that have its shape, number by number; the rest holds for all.

    Returns:
        what it has become; None where it stays.
    """
    x, *others = operation.inputs
    compute, parameters = operation.step.compute, others[beside:]
    shape = x.shape
    if not shape or shape != operation.output.shape or any(value.shape != shape for value in others[:beside]):
        return None
    last, columns = len(shape) - 1, shape[-1]
    if not _along_last(operation, last):
        return None
    if any(value.size not in (1, columns) for value in parameters):
        return None
    small = x.size < rewriter.target.primitives.elementwise
    if small and constants(parameters) is None:
        return None
    some = [np.zeros((1,) * last + (columns,), value.dtype) for value in (x, *others[:beside])]

    def ranges(*given: Any) -> Sequence[Any]:
        result = compute(*some, *given)  # the ranges of anything, for they do not depend on it
        return result[1:] if isinstance(result, tuple) else ()

    rewriter.set_ranges(operation, rewriter.numbers(operation, ranges, parameters, operation.outputs[1:]))
    if small:
        return None
    stage = _stage(operation, x, parameters, beside)
    return rewriter.finish(operation, Tiled, input=x, stages=(stage,), further=tuple(others))


def _stage(operation: Operation, x: Value, parameters: Sequence[Value], beside: int) -> Stage:
    assert x.shape is not None
    if x.dtype in _SMALL_TYPES and not beside and all(value.size == 1 for value in parameters):
        return table_stage(operation.step.compute, x.dtype, len(x.shape), len(parameters))
    return kernel_stage(operation.step.compute, len(parameters), beside)


def _along_last(operation: Operation, last: int) -> bool:
    """Whether scales that differ do so along the last axis; that of a vector is its own."""
    node = operation.step.node
    names = {name for name in node.attrs if name == "axis" or name.endswith("quantization_axis")}
    if operation.op == "UniformQuantizedAdd" and operation.inputs[1].shape != operation.inputs[0].shape:
        names.discard("rhs_quantization_axis")
    return all(node.attr(name) in (-1, last) for name in names)


def _relu(rewriter: Rewriter, operation: Operation) -> None:
    if operation.inputs[0].dtype == operation.output.dtype:  # the kernel keeps the type, whatever is declared
        elementwise(rewriter, operation)


def add(rewriter: Rewriter, operation: Operation) -> Tiled | None:
    """Of two tensors of one shape, or of a tensor and a vector for its last axis."""
    x, y = operation.inputs[:2]
    assert x.shape is not None
    if y.shape == x.shape and y.size > 1:
        return elementwise(rewriter, operation, beside=1)
    return elementwise(rewriter, operation) if y.shape == x.shape[-1:] else None


def _same_range(rewriter: Rewriter, operation: Operation, low: Value, high: Value) -> bool:
    """The ranges of the result are those of the input; says whether they are scalars, as they must be."""
    if any(value.shape != () for value in (low, high)):
        return False
    rewriter.set_ranges(operation, [low, high])
    return True


def _max_pool(rewriter: Rewriter, operation: Operation) -> None:
    low, high = operation.inputs[1:]
    if low.shape == high.shape == () and lower_pool(operation, PoolFunction.MAX) is not None:
        _same_range(rewriter, operation, low, high)


def _mean_pool(rewriter: Rewriter, operation: Operation) -> None:
    """Stays as it is: oneDNN multiplies by 1 / count, which at times rounds halves to the other side."""
    _same_range(rewriter, operation, *operation.inputs[1:])


def _reshape(rewriter: Rewriter, operation: Operation) -> None:
    x, _, low, high = operation.inputs
    if x.size == operation.output.size and not x.is_constant and _same_range(rewriter, operation, low, high):
        rewriter.finish(operation, Alias, input=x)


def _concat(of: Callable[[Operation], tuple[Sequence[Value], Value, Sequence[Value], Sequence[Value]]]) -> Rule:
    """Parts of the range of the result as they are, others looked up, then joined."""

    def rule(rewriter: Rewriter, operation: Operation) -> None:
        parts, axis, lows, highs = of(operation)
        compute = operation.step.compute
        if operation.output.size < rewriter.target.primitives.elementwise or constants([axis, *lows, *highs]) is None:
            return
        known = list(operation.inputs)

        def alone(part: Any, which: int) -> Any:
            """What the kernel makes of numbers as the part with this index, beside parts of one number."""
            given = [np.zeros((1,), v.dtype) if v in parts else np.asarray(v.constant) for v in known]
            given[known.index(axis)] = np.zeros_like(given[known.index(axis)])
            given[known.index(parts[which])] = part
            return compute(*given)

        if len(set(parts)) < len(parts) or any(part.is_constant for part in parts):
            return
        ranges = alone(np.zeros((1,), parts[0].dtype), 0)[1:]
        low, high = (np.float32(each) for each in ranges)
        moved: list[Value] = []
        for which, (part, a, b) in enumerate(zip(parts, lows, highs, strict=True)):
            if np.float32(np.reshape(a.constant, ())) == low and np.float32(np.reshape(b.constant, ())) == high:
                moved.append(part)
                continue
            assert part.shape is not None

            def looked_up(numbers: Any, which: int = which) -> Any:
                whole = alone(numbers.reshape(-1), which)[0]
                return whole[which : which + numbers.size]

            value = Value(part.dtype, part.shape)
            stage = table_stage(looked_up, part.dtype, len(part.shape), 0)
            rewriter.add(operation, Tiled, outputs=[value], input=part, stages=(stage,), further=())
            moved.append(value)
        assert operation.output.shape is not None
        rewriter.set_ranges(operation, [Value(r.dtype, r.shape, r) for r in map(np.asarray, ranges)])
        where = int(np.reshape(axis.constant, ())) % len(operation.output.shape)
        rewriter.finish(operation, Concat, parts=tuple(moved), axis=where)

    return rule


def _first_form(operation: Operation) -> tuple[Sequence[Value], Value, Sequence[Value], Sequence[Value]]:
    axis, rest = operation.inputs[0], operation.inputs[1:]
    count = len(rest) // 3
    return rest[:count], axis, rest[count : 2 * count], rest[2 * count :]


def _second_form(operation: Operation) -> tuple[Sequence[Value], Value, Sequence[Value], Sequence[Value]]:
    inputs = operation.inputs
    count = len(inputs) // 3
    return inputs[:count], inputs[count], inputs[count + 1 : 2 * count + 1], inputs[2 * count + 1 :]


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("Dequantize", "QuantizeV2", "Requantize", "RequantizePerChannel",
         "UniformDequantize", "UniformQuantize", "UniformQuantizedClipByValue"),
        elementwise,
    ),
    "QuantizedAdd": add,
    "QuantizedBiasAdd": add,
    "QuantizedConcat": _concat(_first_form),
    "QuantizedConcatV2": _concat(_second_form),
    "QuantizedAvgPool": _mean_pool,
    "QuantizedMaxPool": _max_pool,
    "QuantizedRelu": _relu,
    "QuantizedRelu6": _relu,
    "QuantizedReshape": _reshape,
}  # fmt: skip
