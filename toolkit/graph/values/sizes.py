"""Values of ops that tell shapes, hand on what they are given, or make tensors of a given size."""

from __future__ import annotations

import math

from toolkit.graph.shape import Shape
from toolkit.graph.values.broadcasting import broadcast_sizes
from toolkit.graph.values.table import Arguments, ValueFunction, register
from toolkit.graph.values.value import LIMIT, Value, from_tensor_proto, scalar, vector


@register("Const")
def _const(args: Arguments) -> Value | None:
    if args.node.packed is not None:  # larger than what is followed
        return None
    return from_tensor_proto(args.attr("value"))


def _shape_value(shape: Shape) -> Value | None:
    return None if shape.dims is None else vector(shape.dims)


@register("Shape")
def _shape(args: Arguments) -> Value | None:
    return _shape_value(args.shape(0))


@register("ShapeN")
def _shape_n(args: Arguments) -> list[Value | None]:
    return [_shape_value(args.shape(i)) for i in range(len(args))]


@register("Size")
def _size(args: Arguments) -> Value | None:
    return scalar(args.shape(0).num_elements)


@register("Rank")
def _rank(args: Arguments) -> Value | None:
    return scalar(args.shape(0).rank)


@register("Identity", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape")
def _identity(args: Arguments) -> Value:
    return args[0]


@register("IdentityN")
def _identity_n(args: Arguments) -> list[Value | None]:
    return [args.maybe(i) for i in range(len(args))]


@register("Enter")
def _enter(args: Arguments) -> Value | None:
    return args[0] if args.attr("is_constant") else None


@register("Fill")
def _fill(args: Arguments) -> Value | None:
    sizes = tuple(args[0].flat)
    count = math.prod(sizes)
    return Value(sizes, args[1].flat * count) if count <= LIMIT else None


def _full(number: int) -> ValueFunction:
    def function(args: Arguments) -> Value | None:
        shape = args.shape(0)
        count = shape.num_elements
        return None if count is None or count > LIMIT else Value(tuple(shape.as_list()), [number] * count)

    return function


register("ZerosLike")(_full(0))
register("OnesLike")(_full(1))


@register("Range")
def _range(args: Arguments) -> Value | None:
    start, limit, delta = (args[i].flat[0] for i in range(3))
    count = math.ceil((limit - start) / delta)
    return vector(start + i * delta for i in range(count)) if count <= LIMIT else None


@register("BroadcastArgs")
def _broadcast_args(args: Arguments) -> Value:
    return vector(broadcast_sizes(args[0].flat, args[1].flat))


@register("BroadcastGradientArgs")
def _broadcast_gradient_args(args: Arguments) -> list[Value | None]:
    a, b = args[0].flat, args[1].flat
    if None in a or None in b:
        return []
    rank = max(len(a), len(b))
    left, right = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    if a == b:
        return [vector([]), vector([])]
    pairs = list(enumerate(zip(left, right, strict=True)))
    return [
        vector(i for i, (x, y) in pairs if x == 1 and (y != 1 or i < rank - len(a) or x == y)),
        vector(i for i, (x, y) in pairs if y == 1 and (x != 1 or i < rank - len(b) or x == y)),
    ]


@register("ConcatOffset")
def _concat_offset(args: Arguments) -> list[Value | None]:
    axis = args[0].flat[0]
    rank = len(args[1].flat)
    offset, out = 0, list[Value | None]()
    for i in range(1, len(args)):
        out.append(vector(offset if d == axis % rank else 0 for d in range(rank)))
        offset += args[i].flat[axis]
    return out
