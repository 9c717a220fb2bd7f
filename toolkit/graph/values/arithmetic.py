"""Values of arithmetic, comparisons, choices and reductions, as the types of their results hold them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from toolkit.graph.dtypes import DType
from toolkit.graph.values.broadcasting import align
from toolkit.graph.values.table import Arguments, ValueFunction, register
from toolkit.graph.values.value import Value

_MAX_EXPONENT = 1100

_Binary = Callable[[Any, Any], Any]
_Unary = Callable[[Any], Any]


def _wrap(value: Any, dtype: DType) -> Any:
    """A result as its type holds it; unknown where Python's and the type's arithmetic differ."""
    if dtype.kind in "iu" and dtype.size:
        bits = 8 * dtype.size - (dtype.kind == "i")
        low = -(1 << bits) if dtype.kind == "i" else 0
        return value if low <= value < 1 << bits else None
    return value


def _truncated(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _power(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b > _MAX_EXPONENT:
        raise ValueError  # no type holds it, but for 0 and 1
    return a**b


@register("Cast")
def _cast(args: Arguments) -> Value:
    source, target = args[0], args.attr("DstT").base.kind
    if target in "iu":
        dtype = args.node.output_types[0].base
        return Value(source.shape, [None if v is None else _wrap(int(v), dtype) for v in source.flat])
    if target == "b":
        return Value(source.shape, [None if v is None else bool(v) for v in source.flat])
    return Value(source.shape, [None if v is None else float(v) for v in source.flat])


def _binary(function: Callable[[Any, Any], Any]) -> ValueFunction:
    def evaluate(args: Arguments) -> Value:
        sizes, left, right = align(args[0], args[1])
        dtype = args.node.output_types[0].base
        flat = [
            None if x is None or y is None else _wrap(function(x, y), dtype) for x, y in zip(left, right, strict=True)
        ]
        return Value(sizes, flat)

    return evaluate


def _multiply(args: Arguments) -> Value:
    # zero times anything is known
    sizes, left, right = align(args[0], args[1])
    dtype = args.node.output_types[0].base
    flat: list[Any] = []
    for x, y in zip(left, right, strict=True):
        if x is None or y is None:
            flat.append(0 if dtype.kind in "iu" and 0 in (x, y) else None)
        else:
            flat.append(_wrap(x * y, dtype))
    return Value(sizes, flat)


register("Mul")(_multiply)
_BINARY: tuple[tuple[tuple[str, ...], _Binary], ...] = (
    (("Add", "AddV2"), operator.add),
    (("Sub",), operator.sub),
    (("FloorDiv",), lambda a, b: a // b),
    (("Div", "TruncateDiv"), _truncated),
    (("RealDiv",), lambda a, b: a / b),
    (("FloorMod",), operator.mod),
    (("Mod", "TruncateMod"), lambda a, b: a - _truncated(a, b) * b),
    (("Maximum",), max),
    (("Minimum",), min),
    (("Pow",), _power),
    (("SquaredDifference",), lambda a, b: (a - b) * (a - b)),
    (("Equal",), operator.eq),
    (("NotEqual",), operator.ne),
    (("Less",), operator.lt),
    (("LessEqual",), operator.le),
    (("Greater",), operator.gt),
    (("GreaterEqual",), operator.ge),
    (("LogicalAnd",), lambda a, b: a and b),
    (("LogicalOr",), lambda a, b: a or b),
)
for _ops, _function in _BINARY:
    register(*_ops)(_binary(_function))


def _unary(function: Callable[[Any], Any]) -> ValueFunction:
    def evaluate(args: Arguments) -> Value:
        source = args[0]
        dtype = args.node.output_types[0].base
        return Value(source.shape, [None if v is None else _wrap(function(v), dtype) for v in source.flat])

    return evaluate


def _floor(value: Any) -> Any:
    return value // 1


def _ceil(value: Any) -> Any:
    return -(-value // 1)


_UNARY: tuple[tuple[str, _Unary], ...] = (
    ("Neg", operator.neg),
    ("Abs", abs),
    ("Square", lambda v: v * v),
    ("LogicalNot", operator.not_),
    ("Sign", lambda v: (v > 0) - (v < 0)),
    ("Floor", _floor),
    ("Ceil", _ceil),
)
for _op, _one in _UNARY:
    register(_op)(_unary(_one))


@register("Select", "SelectV2")
def _select(args: Arguments) -> Value | None:
    condition = args[0]
    if len(condition.flat) == 1 and condition.flat[0] is not None:
        chosen, other = (1, 2) if condition.flat[0] else (2, 1)
        return args[chosen] if args.shape(chosen) == args.shape(other) and not condition.shape else None
    if condition.shape == args[1].shape == args[2].shape:
        triples = zip(condition.flat, args[1].flat, args[2].flat, strict=True)
        return Value(condition.shape, [None if c is None else (t if c else e) for c, t, e in triples])
    return None


def _reduction(function: Callable[[list[Any]], Any]) -> ValueFunction:
    def evaluate(args: Arguments) -> Value | None:
        source = args[0]
        axes = {a % len(source.shape) for a in args[1].flat} if source.shape else set[int]()
        if source.shape and not axes:
            return source
        if len(axes) != len(source.shape):
            return None  # only full reductions occur in shape computations
        unknown = None in source.flat
        dtype = args.node.output_types[0].base
        result = None if unknown else _wrap(function(source.flat), dtype)
        return Value((1,) * len(source.shape) if args.attr("keep_dims") else (), [result])

    return evaluate


def _product(items: list[Any]) -> Any:
    return math.prod(items)


for _op, _many in (("Prod", _product), ("Sum", sum), ("Max", max), ("Min", min), ("All", all), ("Any", any)):
    register(_op)(_reduction(_many))
