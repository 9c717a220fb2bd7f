"""Values of ops that take tensors apart, put them together and move their elements."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from toolkit.graph.shape import Shape
from toolkit.graph.values.table import Arguments, register
from toolkit.graph.values.value import LIMIT, Value, scalar, vector


@register("Pack")
def _pack(args: Arguments) -> Value | None:
    parts = [args.maybe(i) for i in range(len(args))]
    shapes = {part.shape for part in parts if part is not None}
    if args.attr("axis") not in (0, -1) or (shapes and shapes != {()}):
        known = [args[i] for i in range(len(args))]
        if args.attr("axis") != 0 or len(shapes) != 1 or sum(len(part.flat) for part in known) > LIMIT:
            return None
        return Value((len(known), *known[0].shape), [v for part in known for v in part.flat])
    if not all(args.shape(i).rank == 0 for i in range(len(args))):
        return None
    return vector(None if part is None else part.flat[0] for part in parts)


def _concat(parts: Sequence[Value | None], shapes: Sequence[Shape], axis: int) -> Value | None:
    if all(shape.rank == 1 for shape in shapes) and axis in (0, -1):
        flat: list[Any] = []
        for part, shape in zip(parts, shapes, strict=True):
            size = shape[0]
            if len(flat) > LIMIT:
                return None
            if part is not None:
                flat += part.flat
            elif size is not None and size <= LIMIT:
                flat += [None] * size
            else:
                return None
        return vector(flat)
    if axis == 0 and all(part is not None for part in parts):
        known = [part for part in parts if part is not None]
        if sum(len(part.flat) for part in known) > LIMIT:
            return None
        rows = sum(part.shape[0] for part in known)
        return Value((rows, *known[0].shape[1:]), [v for part in known for v in part.flat])
    return None


@register("ConcatV2")
def _concat_v2(args: Arguments) -> Value | None:
    count = len(args) - 1
    return _concat([args.maybe(i) for i in range(count)], [args.shape(i) for i in range(count)], args[count].flat[0])


@register("Concat")
def _concat_v1(args: Arguments) -> Value | None:
    indices = range(1, len(args))
    return _concat([args.maybe(i) for i in indices], [args.shape(i) for i in indices], args[0].flat[0])


@register("Slice")
def _slice(args: Arguments) -> Value | None:
    source, begins, sizes = args[0], args[1].flat, args[2].flat
    if len(source.shape) != 1:
        return None
    size = source.shape[0] - begins[0] if sizes[0] == -1 else sizes[0]
    return vector(source.flat[begins[0] : begins[0] + size])


@register("StridedSlice")
def _strided_slice(args: Arguments) -> Value | None:
    source, begin, end, stride = (args[i] for i in range(4))
    if len(source.shape) != 1 or len(begin.flat) != 1 or args.attr("ellipsis_mask") or args.attr("new_axis_mask"):
        return None
    if args.attr("shrink_axis_mask") & 1:
        position = begin.flat[0]
        return scalar(source.flat[position]) if -len(source.flat) <= position < len(source.flat) else None
    first = None if args.attr("begin_mask") & 1 else begin.flat[0]
    last = None if args.attr("end_mask") & 1 else end.flat[0]
    return vector(source.flat[slice(first, last, stride.flat[0])])


@register("Gather", "GatherV2")
def _gather(args: Arguments) -> Value | None:
    source, indices = args[0], args[1]
    if len(source.shape) < 1 or (args.node.op == "GatherV2" and args[2].flat[0] != 0):
        return None
    row = math.prod(source.shape[1:])
    if any(not 0 <= i < source.shape[0] for i in indices.flat) or len(indices.flat) * row > LIMIT:
        return None
    flat = [v for i in indices.flat for v in source.flat[i * row : (i + 1) * row]]
    return Value(indices.shape + source.shape[1:], flat)


@register("Reshape")
def _reshape(args: Arguments) -> Value | None:
    source, target = args[0], list(args[1].flat)
    if -1 in target:
        rest = math.prod(d for d in target if d != -1)
        target[target.index(-1)] = len(source.flat) // rest if rest else 0
    return Value(tuple(target), source.flat) if math.prod(target) == len(source.flat) else None


@register("ExpandDims")
def _expand_dims(args: Arguments) -> Value:
    source, axis = args[0], args[1].flat[0]
    sizes = list(source.shape)
    sizes.insert(axis if axis >= 0 else len(sizes) + 1 + axis, 1)
    return Value(tuple(sizes), source.flat)


@register("Squeeze")
def _squeeze(args: Arguments) -> Value:
    source = args[0]
    rank = len(source.shape)
    axes = {a % rank for a in args.attr("squeeze_dims")} if rank else set[int]()
    sizes = [d for i, d in enumerate(source.shape) if d != 1 or (axes and i not in axes)]
    return Value(tuple(sizes), source.flat)


@register("Transpose")
def _transpose(args: Arguments) -> Value:
    source = args[0]
    perm: list[int] = args[1].flat
    if sorted(perm) != list(range(len(source.shape))):
        raise ValueError  # its shape function says so
    sizes = tuple(source.shape[p] for p in perm)
    strides = [math.prod(source.shape[i + 1 :]) for i in range(len(source.shape))]
    moved = [strides[p] for p in perm]
    flat = [source.flat[sum(map(operator.mul, position, moved))] for position in itertools.product(*map(range, sizes))]
    return Value(sizes, flat)


@register("Tile")
def _tile(args: Arguments) -> Value | None:
    source, times = args[0], args[1].flat
    if len(source.shape) != 1 or len(source.flat) * times[0] > LIMIT:
        return None
    return vector(source.flat * times[0])


@register("Unpack")
def _unpack(args: Arguments) -> list[Value | None]:
    source = args[0]
    if args.attr("axis") != 0:
        return []
    row = math.prod(source.shape[1:])
    return [Value(source.shape[1:], source.flat[i * row : (i + 1) * row]) for i in range(source.shape[0])]


@register("Split")
def _split(args: Arguments) -> list[Value | None]:
    source, count = args[1], args.attr("num_split")
    size = len(source.flat) // count
    if len(source.shape) != 1 or size * count != len(source.flat) or count > LIMIT:
        return []
    return [vector(source.flat[i * size : (i + 1) * size]) for i in range(count)]


@register("SplitV")
def _split_v(args: Arguments) -> list[Value | None]:
    source, sizes = args[0], list(args[1].flat)
    if len(source.shape) != 1:
        return []
    if -1 in sizes:
        sizes[sizes.index(-1)] = len(source.flat) - sum(s for s in sizes if s != -1)
    if any(size < 0 for size in sizes) or sum(sizes) != len(source.flat):
        return []
    starts = itertools.accumulate([0, *sizes[:-1]])
    return [vector(source.flat[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


@register("ReverseV2")
def _reverse(args: Arguments) -> Value | None:
    source = args[0]
    if len(source.shape) != 1:
        return None
    return vector(reversed(source.flat)) if args[1].flat else source


@register("InvertPermutation")
def _invert(args: Arguments) -> Value:
    source = args[0].flat
    out = [0] * len(source)
    for position, target in enumerate(source):
        out[target] = position
    return vector(out)
