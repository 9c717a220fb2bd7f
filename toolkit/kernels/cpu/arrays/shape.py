"""Shapes: asking for them, changing them, broadcasting, transposing."""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_vector, shape_text, to_ints, wrap_axis
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


@kernel("Shape", "ShapeN")
def shape(op: KernelNode) -> Compute:
    dtype = op.output_types[0].numpy if op.output_types else np.dtype(np.int32)
    many = op.op == "ShapeN"

    def compute(*values: Array) -> Array:
        shapes = [np.array(_sizes(v), dtype) for v in values]
        return shapes if many else shapes[0]

    return compute


def _sizes(x: Array) -> tuple[int, ...]:
    """The sizes of a tensor; a variant is a scalar, such as a list, whose `shape` is that of its elements."""
    return x.shape if isinstance(x, np.ndarray | np.generic) else ()


@kernel("Size")
def size(op: KernelNode) -> Compute:
    dtype = op.output_types[0].numpy

    def compute(x: Array) -> Array:
        return np.array(math.prod(_sizes(x)), dtype)

    return compute


@simple("Rank")
def rank(x: Array) -> Array:
    return np.array(len(_sizes(x)), np.int32)


@simple("Reshape")
def reshape(x: Array, wanted: Array) -> Array:
    """One size may be -1."""
    sizes = checked_shape(wanted, allow_unknown=True)
    if -1 in sizes:
        sizes[sizes.index(-1)] = _missing_size(x, sizes)
    else:
        require(
            math.prod(sizes) == x.size,
            f"Input to reshape is a tensor with {x.size} values, but the requested shape has {math.prod(sizes)}",
        )
    return x.reshape(sizes)


def _missing_size(x: Array, sizes: list[int]) -> int:
    """What -1 stands for. Where a 0 is asked for, the zero sizes of both shapes are left out of the division."""
    known = math.prod(s for s in sizes if s > 0)
    with_zero = 0 in sizes
    total = math.prod(s for s in x.shape if s or not with_zero)
    missing, rest = divmod(total, known)
    require(
        not rest or (with_zero and 0 in x.shape),
        f"Input to reshape is a tensor with {x.size} values, but the requested shape requires a multiple of {known}",
    )
    require(not with_zero or x.size == 0, f"Cannot reshape a tensor with {x.size} elements to shape {sizes}")
    return missing


def checked_shape(wanted: Array, *, allow_unknown: bool = False, what: str = "shape") -> list[int]:
    """A shape tensor as a list of sizes.

    Raises:
        InvalidArgumentError: it is no vector, or has a negative size (but one -1 with `allow_unknown`).
    """
    if wanted.ndim != 1:
        raise InvalidArgumentError(f"{what} must be a vector, not of shape {shape_text(wanted)}")
    sizes = wanted.tolist()
    for position, value in enumerate(sizes):
        if value == -1 and allow_unknown:
            require(sizes.count(-1) == 1, f"Only one input size may be -1, not both {position} and another")
        elif value < 0:
            raise InvalidArgumentError(f"Size {position} of {what} must be non-negative, not {value}")
    return sizes


@simple("ExpandDims")
def expand_dims(x: Array, dim: Array) -> Array:
    require(dim.size == 1, f"'dim' must be a tensor with a single value, got shape {shape_text(dim)}")
    axis = int(dim.reshape(()))
    require(
        -x.ndim - 1 <= axis <= x.ndim,
        f"Tried to expand dim index {axis} for tensor with {x.ndim} dimensions",
    )
    return np.expand_dims(x, axis)


@kernel("Squeeze")
def squeeze(op: KernelNode) -> Compute:
    axes = list(op.attr("squeeze_dims"))

    def compute(x: Array) -> Array:
        if not axes:
            return x.reshape([s for s in x.shape if s != 1])
        drop: set[int] = set()
        for axis in axes:
            require(
                -x.ndim <= axis < x.ndim,
                f"Tried to squeeze dim index {axis} for tensor with {x.ndim} dimensions",
            )
            drop.add(axis % x.ndim)
        for axis in drop:
            require(x.shape[axis] == 1, f"Can not squeeze dim[{axis}], expected a dimension of 1, got {x.shape[axis]}")
        return x.reshape([s for i, s in enumerate(x.shape) if i not in drop])

    return compute


@kernel("Transpose", "ConjugateTranspose")
def transpose(op: KernelNode) -> Compute:
    conjugate = op.op == "ConjugateTranspose"

    def compute(x: Array, perm: Array) -> Array:
        order = perm.tolist() if perm.ndim == 1 else None
        if order is None:
            raise InvalidArgumentError(f"perm must be rank 1, got shape {shape_text(perm)}")
        require(
            len(order) == x.ndim,
            f"transpose expects a vector of size {x.ndim}. But input(1) is a vector of size {len(order)}",
        )
        wrapped = [wrap_axis(axis, x.ndim, "an entry of perm") for axis in order]
        require(len(set(wrapped)) == x.ndim, f"{order} is not a permutation of the {x.ndim} dimensions")
        out = np.transpose(x, wrapped)
        return np.conj(out) if conjugate and out.dtype.kind == "c" else out

    return compute


@simple("InvertPermutation")
def invert_permutation(x: Array) -> Array:
    require_vector(x, "invert_permutation's input")
    size = len(x)
    outside = (x < 0) | (x >= size)
    if outside.any():
        raise InvalidArgumentError(f"{x[outside][0]} is not between 0 and {size}")
    counts = np.bincount(x, minlength=size)
    if (counts > 1).any():
        raise InvalidArgumentError(f"{int(counts.argmax())} is duplicated in the input.")
    out = np.empty_like(x)
    out[x] = np.arange(size, dtype=x.dtype)
    return out


@simple("BroadcastTo")
def broadcast_to(x: Array, wanted: Array) -> Array:
    sizes = checked_shape(wanted.reshape(-1) if wanted.ndim == 0 else wanted)
    require(
        x.ndim <= len(sizes),
        f"Rank of input ({x.ndim}) must be no greater than rank of output shape ({len(sizes)}).",
    )
    try:
        return np.broadcast_to(x, sizes)
    except ValueError:
        raise InvalidArgumentError(f"Incompatible shapes: {shape_text(x)} vs. {shape_text(tuple(sizes))}") from None


@simple("BroadcastArgs")
def broadcast_args(a: Array, b: Array) -> Array:
    """The shape that two shapes broadcast to."""
    for value in (a, b):
        require(value.ndim <= 1, f"In[] must be a vector, got shape {shape_text(value)}")
    try:
        return np.array(np.broadcast_shapes(tuple(to_ints(a)), tuple(to_ints(b))), a.dtype)
    except ValueError:
        raise InvalidArgumentError(f"Incompatible shapes: {to_ints(a)} vs. {to_ints(b)}") from None


@simple("BroadcastGradientArgs")
def broadcast_gradient_args(a: Array, b: Array) -> tuple[Array, Array]:
    """For each operand the axes of the result that its gradient is summed over."""
    for value in (a, b):
        require(value.ndim == 1, f"In[] must be a vector, got shape {shape_text(value)}")
    left, right = to_ints(a), to_ints(b)
    length = max(len(left), len(right))
    left, right = [1] * (length - len(left)) + left, [1] * (length - len(right)) + right
    reduce_left: list[int] = []
    reduce_right: list[int] = []
    equal = a.shape == b.shape and to_ints(a) == to_ints(b)
    for axis, (x, y) in enumerate(zip(left, right, strict=True)):
        require(x == y or 1 in (x, y), f"Incompatible shapes: {shape_text(tuple(left))} vs. {shape_text(tuple(right))}")
        if equal:
            continue
        if x == 1:
            reduce_left.append(axis)
        if y == 1:
            reduce_right.append(axis)
    return np.array(reduce_left, a.dtype), np.array(reduce_right, a.dtype)


@kernel("EnsureShape")
def ensure_shape(op: KernelNode) -> Compute:
    wanted = op.attr("shape")

    def compute(x: Array) -> Array:
        dims = wanted.dims
        fits = dims is None or (
            len(dims) == x.ndim and all(d is None or d == s for d, s in zip(dims, x.shape, strict=True))
        )
        require(
            fits,
            f"Shape of tensor {op.node.inputs[0].name} {shape_text(x)} is not compatible with expected shape {wanted}.",
        )
        return x

    return compute
