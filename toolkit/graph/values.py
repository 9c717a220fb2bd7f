"""Small values known before running: what shape functions need of `shape`, `axis`, `paddings` inputs.

A value is a number or (nested) lists of numbers; elements that are not known are None, as when a shape with an
unknown batch size is sliced and packed again. TensorFlow gets the same from constant folding and partial shape
evaluation while it builds a graph (its C++ shape refiner).
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from schemas import tensor_pb2
from toolkit.errors import GraphmillError
from toolkit.graph.dtypes import DType, from_enum
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import MAX_RANK, Shape

#: values with more elements are not followed
LIMIT = 4096
_MAX_EXPONENT = 1100

_FORMATS = {
    "float32": "f", "float64": "d", "int32": "i", "uint8": "B", "int16": "h", "int8": "b", "int64": "q",
    "bool": "?", "uint16": "H", "uint32": "I", "uint64": "Q", "float16": "e",
}  # fmt: skip
_FIELDS = {
    "float32": "float_val", "float64": "double_val", "int32": "int_val", "uint8": "int_val", "int16": "int_val",
    "int8": "int_val", "int64": "int64_val", "bool": "bool_val", "uint16": "int_val", "uint32": "uint32_val",
    "uint64": "uint64_val",
}  # fmt: skip


class Value(NamedTuple):
    """A small tensor: its sizes and its elements in row-major order."""

    shape: tuple[int, ...]
    flat: list[Any]

    @property
    def is_small(self) -> bool:
        """Whether it is worth following: few elements, and no size that a loop could not walk along."""
        return len(self.flat) <= LIMIT and len(self.shape) <= MAX_RANK and all(0 <= d <= LIMIT for d in self.shape)

    def nested(self) -> Any:
        """As a number or nested lists."""

        if len(self.shape) == 1:  # as nearly always: a shape, axes
            return list(self.flat)

        def build(sizes: tuple[int, ...], start: int, count: int) -> Any:
            if not sizes:
                return self.flat[start]
            step = count // sizes[0] if sizes[0] else 0
            return [build(sizes[1:], start + i * step, step) for i in range(sizes[0])]

        return build(self.shape, 0, len(self.flat))


def from_tensor_proto(proto: tensor_pb2.TensorProto) -> Value | None:
    """A small numeric tensor's value; None for other types, large tensors or damaged content."""
    dtype = from_enum(proto.dtype) if proto.dtype else None
    if dtype is None or dtype.name not in _FORMATS or proto.tensor_shape.unknown_rank:
        return None
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    count = math.prod(shape)
    if not 0 <= count <= LIMIT or len(shape) > MAX_RANK or any(d > LIMIT for d in shape):
        return None
    if proto.tensor_content:
        layout = f"<{count}{_FORMATS[dtype.name]}"
        if struct.calcsize(layout) != len(proto.tensor_content):
            return None
        return Value(shape, list(struct.unpack(layout, proto.tensor_content)))
    field = _FIELDS.get(dtype.name)
    if field is None:
        return None
    given = list(getattr(proto, field))
    if len(given) > count:
        return None
    # The last element repeats; none at all means zeros.
    fill = given[-1] if given else (False if dtype.kind == "b" else 0)
    return Value(shape, given + [fill] * (count - len(given)))


class Evaluator:
    """Finds values of outputs, with a memory.

    Args:
        shape_of: the static shape of an output, as far as it is known.
        recall: the values of a node's outputs where somebody knows them; None where nobody does.
    """

    def __init__(
        self,
        shape_of: Callable[[Output], Shape],
        recall: Callable[[Node], list[Value | None] | None] = lambda node: None,
    ):
        self.shape_of = shape_of
        self._recall = recall
        self._known: dict[Node, list[Value | None]] = {}
        self._constants: dict[NodeKind, list[Value | None]] = {}  # of constants that are alike
        self._blocked: set[Output] = set()

    def block(self, output: Output) -> None:
        """Treat an output as unknown from now on (it is fed)."""
        self._blocked.add(output)

    def forget(self, node: Node) -> None:
        """Drop what is remembered about a node whose input shapes or attributes have changed."""
        self._known.pop(node, None)

    def __call__(self, output: Output) -> Any:
        """The value of an output as a number or nested lists, or None when nothing is known."""
        value = self.value(output)
        return None if value is None else value.nested()

    def value(self, output: Output) -> Value | None:
        """The value of an output, or None when nothing is known."""
        known = self._known.get(output.node)
        if known is not None:
            return known[output.index] if output.index < len(known) else None
        stack = [output.node]
        entered: set[Node] = set()
        while stack:
            node = stack[-1]
            if node in self._known:
                stack.pop()
                continue
            recalled = self._recall(node)
            function = _functions.get(node.op)
            if recalled is not None or function is None:
                self._known[node] = recalled or []
            elif node not in entered:
                entered.add(node)
                if node.op not in _SHAPE_ONLY:
                    stack += [src for src, _ in node.inputs if src not in self._known]
            else:  # its inputs are done, or it is on a malformed cycle
                self._known[node] = self._compute(node, function)
        results = self._known[output.node]
        return results[output.index] if output.index < len(results) else None

    def _compute(self, node: Node, function: ValueFunction) -> list[Value | None]:
        kind = node.kind if node.op == "Const" and not self._blocked else None
        if kind is None:
            return self._results(node, function)
        found = self._constants.get(kind)
        if found is None:
            found = self._constants[kind] = self._results(node, function)
        return found

    def _results(self, node: Node, function: ValueFunction) -> list[Value | None]:
        try:
            result = function(_Args(node, self))
        except (GraphmillError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError):
            # Malformed nodes and unknown elements end up here; other code reports the former.
            return []
        found = list(result) if isinstance(result, list) else [result]
        found = [v if v is not None and v.is_small else None for v in found]
        if self._blocked:
            found = [None if Output(node, i) in self._blocked else v for i, v in enumerate(found)]
        return found


class _Args:
    """A node while it is evaluated."""

    def __init__(self, node: Node, evaluator: Evaluator):
        self.node = node
        self.evaluator = evaluator

    def __getitem__(self, index: int) -> Value:
        src, position = self.node.inputs[index]
        known = self.evaluator._known.get(src, [])  # pyright: ignore[reportPrivateUsage]
        value = known[position] if position < len(known) else None
        if value is None:
            raise ValueError  # the result is unknown as well
        return value

    def __len__(self) -> int:
        return len(self.node.inputs)

    def maybe(self, index: int) -> Value | None:
        try:
            return self[index]
        except ValueError:
            return None

    def shape(self, index: int) -> Shape:
        return self.evaluator.shape_of(self.node.inputs[index])

    def attr(self, name: str) -> Any:
        return self.node.attr(name)


ValueFunction = Callable[[_Args], Value | list[Value | None] | None]
_functions: dict[str, ValueFunction] = {}
_SHAPE_ONLY = frozenset({"Const", "Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"})


def _value(*ops: str) -> Callable[[ValueFunction], ValueFunction]:
    def register(function: ValueFunction) -> ValueFunction:
        _functions.update(dict.fromkeys(ops, function))
        return function

    return register


def is_foldable(op: str) -> bool:
    """Whether values are followed through this op."""
    return op in _functions


def _vector(items: Iterable[Any]) -> Value:
    flat = list(items)
    return Value((len(flat),), flat)


def _scalar(item: Any) -> Value:
    return Value((), [item])


@_value("Const")
def _const(args: _Args) -> Value | None:
    if args.node.packed is not None:  # larger than what is followed
        return None
    return from_tensor_proto(args.attr("value"))


def _shape_value(shape: Shape) -> Value | None:
    return None if shape.dims is None else _vector(shape.dims)


@_value("Shape")
def _shape(args: _Args) -> Value | None:
    return _shape_value(args.shape(0))


@_value("ShapeN")
def _shape_n(args: _Args) -> list[Value | None]:
    return [_shape_value(args.shape(i)) for i in range(len(args))]


@_value("Size")
def _size(args: _Args) -> Value | None:
    return _scalar(args.shape(0).num_elements)


@_value("Rank")
def _rank(args: _Args) -> Value | None:
    return _scalar(args.shape(0).rank)


@_value("Identity", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape")
def _identity(args: _Args) -> Value:
    return args[0]


@_value("IdentityN")
def _identity_n(args: _Args) -> list[Value | None]:
    return [args.maybe(i) for i in range(len(args))]


@_value("Enter")
def _enter(args: _Args) -> Value | None:
    return args[0] if args.attr("is_constant") else None


@_value("Cast")
def _cast(args: _Args) -> Value:
    source, target = args[0], args.attr("DstT").base.kind
    if target in "iu":
        dtype = args.node.output_types[0].base
        return Value(source.shape, [None if v is None else _wrap(int(v), dtype) for v in source.flat])
    if target == "b":
        return Value(source.shape, [None if v is None else bool(v) for v in source.flat])
    return Value(source.shape, [None if v is None else float(v) for v in source.flat])


@_value("Pack")
def _pack(args: _Args) -> Value | None:
    parts = [args.maybe(i) for i in range(len(args))]
    shapes = {part.shape for part in parts if part is not None}
    if args.attr("axis") not in (0, -1) or (shapes and shapes != {()}):
        known = [args[i] for i in range(len(args))]
        if args.attr("axis") != 0 or len(shapes) != 1 or sum(len(part.flat) for part in known) > LIMIT:
            return None
        return Value((len(known), *known[0].shape), [v for part in known for v in part.flat])
    if not all(args.shape(i).rank == 0 for i in range(len(args))):
        return None
    return _vector(None if part is None else part.flat[0] for part in parts)


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
        return _vector(flat)
    if axis == 0 and all(part is not None for part in parts):
        known = [part for part in parts if part is not None]
        if sum(len(part.flat) for part in known) > LIMIT:
            return None
        rows = sum(part.shape[0] for part in known)
        return Value((rows, *known[0].shape[1:]), [v for part in known for v in part.flat])
    return None


@_value("ConcatV2")
def _concat_v2(args: _Args) -> Value | None:
    count = len(args) - 1
    return _concat([args.maybe(i) for i in range(count)], [args.shape(i) for i in range(count)], args[count].flat[0])


@_value("Concat")
def _concat_v1(args: _Args) -> Value | None:
    indices = range(1, len(args))
    return _concat([args.maybe(i) for i in indices], [args.shape(i) for i in indices], args[0].flat[0])


@_value("Slice")
def _slice(args: _Args) -> Value | None:
    source, begins, sizes = args[0], args[1].flat, args[2].flat
    if len(source.shape) != 1:
        return None
    size = source.shape[0] - begins[0] if sizes[0] == -1 else sizes[0]
    return _vector(source.flat[begins[0] : begins[0] + size])


@_value("StridedSlice")
def _strided_slice(args: _Args) -> Value | None:
    source, begin, end, stride = (args[i] for i in range(4))
    if len(source.shape) != 1 or len(begin.flat) != 1 or args.attr("ellipsis_mask") or args.attr("new_axis_mask"):
        return None
    if args.attr("shrink_axis_mask") & 1:
        position = begin.flat[0]
        return _scalar(source.flat[position]) if -len(source.flat) <= position < len(source.flat) else None
    first = None if args.attr("begin_mask") & 1 else begin.flat[0]
    last = None if args.attr("end_mask") & 1 else end.flat[0]
    return _vector(source.flat[slice(first, last, stride.flat[0])])


@_value("Gather", "GatherV2")
def _gather(args: _Args) -> Value | None:
    source, indices = args[0], args[1]
    if len(source.shape) < 1 or (args.node.op == "GatherV2" and args[2].flat[0] != 0):
        return None
    row = math.prod(source.shape[1:])
    if any(not 0 <= i < source.shape[0] for i in indices.flat) or len(indices.flat) * row > LIMIT:
        return None
    flat = [v for i in indices.flat for v in source.flat[i * row : (i + 1) * row]]
    return Value(indices.shape + source.shape[1:], flat)


@_value("Reshape")
def _reshape(args: _Args) -> Value | None:
    source, target = args[0], list(args[1].flat)
    if -1 in target:
        rest = math.prod(d for d in target if d != -1)
        target[target.index(-1)] = len(source.flat) // rest if rest else 0
    return Value(tuple(target), source.flat) if math.prod(target) == len(source.flat) else None


@_value("ExpandDims")
def _expand_dims(args: _Args) -> Value:
    source, axis = args[0], args[1].flat[0]
    sizes = list(source.shape)
    sizes.insert(axis if axis >= 0 else len(sizes) + 1 + axis, 1)
    return Value(tuple(sizes), source.flat)


@_value("Squeeze")
def _squeeze(args: _Args) -> Value:
    source = args[0]
    rank = len(source.shape)
    axes = {a % rank for a in args.attr("squeeze_dims")} if rank else set[int]()
    sizes = [d for i, d in enumerate(source.shape) if d != 1 or (axes and i not in axes)]
    return Value(tuple(sizes), source.flat)


@_value("Transpose")
def _transpose(args: _Args) -> Value:
    source = args[0]
    perm: list[int] = args[1].flat
    if sorted(perm) != list(range(len(source.shape))):
        raise ValueError  # its shape function says so
    sizes = tuple(source.shape[p] for p in perm)
    strides = [math.prod(source.shape[i + 1 :]) for i in range(len(source.shape))]
    moved = [strides[p] for p in perm]
    flat = [source.flat[sum(map(operator.mul, position, moved))] for position in itertools.product(*map(range, sizes))]
    return Value(sizes, flat)


@_value("Fill")
def _fill(args: _Args) -> Value | None:
    sizes = tuple(args[0].flat)
    count = math.prod(sizes)
    return Value(sizes, args[1].flat * count) if count <= LIMIT else None


def _full(number: int) -> ValueFunction:
    def function(args: _Args) -> Value | None:
        shape = args.shape(0)
        count = shape.num_elements
        return None if count is None or count > LIMIT else Value(tuple(shape.as_list()), [number] * count)

    return function


_value("ZerosLike")(_full(0))
_value("OnesLike")(_full(1))


@_value("Range")
def _range(args: _Args) -> Value | None:
    start, limit, delta = (args[i].flat[0] for i in range(3))
    count = math.ceil((limit - start) / delta)
    return _vector(start + i * delta for i in range(count)) if count <= LIMIT else None


@_value("Tile")
def _tile(args: _Args) -> Value | None:
    source, times = args[0], args[1].flat
    if len(source.shape) != 1 or len(source.flat) * times[0] > LIMIT:
        return None
    return _vector(source.flat * times[0])


@_value("Unpack")
def _unpack(args: _Args) -> list[Value | None]:
    source = args[0]
    if args.attr("axis") != 0:
        return []
    row = math.prod(source.shape[1:])
    return [Value(source.shape[1:], source.flat[i * row : (i + 1) * row]) for i in range(source.shape[0])]


@_value("Split")
def _split(args: _Args) -> list[Value | None]:
    source, count = args[1], args.attr("num_split")
    size = len(source.flat) // count
    if len(source.shape) != 1 or size * count != len(source.flat) or count > LIMIT:
        return []
    return [_vector(source.flat[i * size : (i + 1) * size]) for i in range(count)]


@_value("SplitV")
def _split_v(args: _Args) -> list[Value | None]:
    source, sizes = args[0], list(args[1].flat)
    if len(source.shape) != 1:
        return []
    if -1 in sizes:
        sizes[sizes.index(-1)] = len(source.flat) - sum(s for s in sizes if s != -1)
    if any(size < 0 for size in sizes) or sum(sizes) != len(source.flat):
        return []
    starts = itertools.accumulate([0, *sizes[:-1]])
    return [_vector(source.flat[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


@_value("ReverseV2")
def _reverse(args: _Args) -> Value | None:
    source = args[0]
    if len(source.shape) != 1:
        return None
    return _vector(reversed(source.flat)) if args[1].flat else source


@_value("InvertPermutation")
def _invert(args: _Args) -> Value:
    source = args[0].flat
    out = [0] * len(source)
    for position, target in enumerate(source):
        out[target] = position
    return _vector(out)


@_value("BroadcastArgs")
def _broadcast_args(args: _Args) -> Value:
    return _vector(_broadcast_sizes(args[0].flat, args[1].flat))


def _broadcast_sizes(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    rank = max(len(a), len(b))
    left: list[Any] = [1] * (rank - len(a)) + list(a)
    right: list[Any] = [1] * (rank - len(b)) + list(b)
    out: list[Any] = []
    for x, y in zip(left, right, strict=True):
        if x == 1:
            out.append(y)
        elif y == 1 or x == y:
            out.append(x)
        elif x is None or y is None:
            out.append(y if x is None else x)
        else:
            raise ValueError
    return out


@_value("BroadcastGradientArgs")
def _broadcast_gradient_args(args: _Args) -> list[Value | None]:
    a, b = args[0].flat, args[1].flat
    if None in a or None in b:
        return []
    rank = max(len(a), len(b))
    left, right = [1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)
    if a == b:
        return [_vector([]), _vector([])]
    pairs = list(enumerate(zip(left, right, strict=True)))
    return [
        _vector(i for i, (x, y) in pairs if x == 1 and (y != 1 or i < rank - len(a) or x == y)),
        _vector(i for i, (x, y) in pairs if y == 1 and (x != 1 or i < rank - len(b) or x == y)),
    ]


@_value("ConcatOffset")
def _concat_offset(args: _Args) -> list[Value | None]:
    axis = args[0].flat[0]
    rank = len(args[1].flat)
    offset, out = 0, list[Value | None]()
    for i in range(1, len(args)):
        out.append(_vector(offset if d == axis % rank else 0 for d in range(rank)))
        offset += args[i].flat[axis]
    return out


_Binary = Callable[[Any, Any], Any]
_Unary = Callable[[Any], Any]


def _align(a: Value, b: Value) -> tuple[tuple[int, ...], list[Any], list[Any]]:
    """Two values broadcast to a common shape."""
    if a.shape == b.shape:
        return a.shape, a.flat, b.flat
    sizes = tuple(_broadcast_sizes(a.shape, b.shape))
    if math.prod(sizes) > LIMIT:
        raise ValueError
    return sizes, _spread(a, sizes), _spread(b, sizes)


def _spread(value: Value, sizes: tuple[int, ...]) -> list[Any]:
    own = (1,) * (len(sizes) - len(value.shape)) + value.shape
    strides = [0 if d == 1 else math.prod(own[i + 1 :]) for i, d in enumerate(own)]
    return [value.flat[sum(map(operator.mul, p, strides))] for p in itertools.product(*map(range, sizes))]


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


def _binary(function: Callable[[Any, Any], Any]) -> ValueFunction:
    def evaluate(args: _Args) -> Value:
        sizes, left, right = _align(args[0], args[1])
        dtype = args.node.output_types[0].base
        flat = [
            None if x is None or y is None else _wrap(function(x, y), dtype) for x, y in zip(left, right, strict=True)
        ]
        return Value(sizes, flat)

    return evaluate


def _multiply(args: _Args) -> Value:
    # zero times anything is known
    sizes, left, right = _align(args[0], args[1])
    dtype = args.node.output_types[0].base
    flat: list[Any] = []
    for x, y in zip(left, right, strict=True):
        if x is None or y is None:
            flat.append(0 if dtype.kind in "iu" and 0 in (x, y) else None)
        else:
            flat.append(_wrap(x * y, dtype))
    return Value(sizes, flat)


_value("Mul")(_multiply)
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
    _value(*_ops)(_binary(_function))


def _unary(function: Callable[[Any], Any]) -> ValueFunction:
    def evaluate(args: _Args) -> Value:
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
    _value(_op)(_unary(_one))


@_value("Select", "SelectV2")
def _select(args: _Args) -> Value | None:
    condition = args[0]
    if len(condition.flat) == 1 and condition.flat[0] is not None:
        chosen, other = (1, 2) if condition.flat[0] else (2, 1)
        return args[chosen] if args.shape(chosen) == args.shape(other) and not condition.shape else None
    if condition.shape == args[1].shape == args[2].shape:
        triples = zip(condition.flat, args[1].flat, args[2].flat, strict=True)
        return Value(condition.shape, [None if c is None else (t if c else e) for c, t, e in triples])
    return None


def _reduction(function: Callable[[list[Any]], Any]) -> ValueFunction:
    def evaluate(args: _Args) -> Value | None:
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
    _value(_op)(_reduction(_many))
