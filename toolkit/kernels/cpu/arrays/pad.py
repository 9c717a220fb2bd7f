"""Padding, tiling, reversing, rolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_vector, shape_text, to_ints, wrap_axis
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def pad_pairs(x: Any, paddings: Array) -> list[tuple[int, int]]:
    """How much is added before and behind each axis.

    Raises:
        InvalidArgumentError: it is not said for each axis, or is negative.
    """
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise InvalidArgumentError(f"paddings must be a matrix with 2 columns: {shape_text(paddings)}")
    if paddings.shape[0] != x.ndim:
        raise InvalidArgumentError(
            f"The first dimension of paddings must be the rank of inputs: {shape_text(paddings)} {shape_text(x)}"
        )
    pairs = [(before, after) for before, after in paddings.tolist()]
    for before, after in pairs:
        if before < 0 or after < 0:
            raise InvalidArgumentError(f"Paddings must be non-negative: {before} {after}")
    return pairs


def pad_constant(x: Array, pairs: Sequence[tuple[int, int]], value: Any) -> Array:
    shape = [s + a + b for s, (a, b) in zip(x.shape, pairs, strict=True)]
    is_zero = isinstance(value, int) and value == 0
    out = np.zeros(shape, x.dtype) if is_zero else np.full(shape, value, x.dtype)
    out[tuple(slice(a, a + s) for s, (a, _) in zip(x.shape, pairs, strict=True))] = x
    return out


@simple("Pad")
def pad(x: Array, paddings: Array) -> Array:
    return pad_constant(x, pad_pairs(x, paddings), b"" if x.dtype == object else 0)


@simple("PadV2")
def pad_v2(x: Array, paddings: Array, value: Array) -> Array:
    require(value.ndim == 0, f"constant_values must be a scalar. Found: {shape_text(value)}")
    return pad_constant(x, pad_pairs(x, paddings), value[()])


def _mirror(x: Array, pairs: list[tuple[int, int]], offset: int) -> list[Array]:
    """Source positions along each axis of the padded tensor; `offset` 1 leaves the edge itself out."""
    sources: list[Array] = []
    check_mirrored(x.shape, pairs, offset)
    for axis, (before, after) in enumerate(pairs):
        size = x.shape[axis]
        head = np.arange(before, 0, -1) - 1 + offset
        tail = np.arange(size - 1 - offset, size - 1 - offset - after, -1)
        sources.append(np.concatenate([head, np.arange(size), tail]).astype(np.int64))
    return sources


def check_mirrored(shape: Sequence[int], pairs: Sequence[tuple[int, int]], offset: int) -> None:
    """Refuse paddings that are more than there is to mirror.

    Raises:
        InvalidArgumentError: they are.
    """
    for size, (before, after) in zip(shape, pairs, strict=True):
        require(
            before <= size - offset and after <= size - offset,
            f"paddings must be no greater than the dimension size{' minus 1' if offset else ''}: {before}, {after} "
            f"greater than {size - offset}",
        )


@kernel("MirrorPad")
def mirror_pad(op: KernelNode) -> Compute:
    offset = 1 if op.text("mode") == "REFLECT" else 0

    def compute(x: Array, paddings: Array) -> Array:
        sources = _mirror(x, pad_pairs(x, paddings), offset)
        return x[np.ix_(*sources)] if sources else x

    return compute


@kernel("MirrorPadGrad")
def mirror_pad_grad(op: KernelNode) -> Compute:
    """Sums what MirrorPad copied back to where it came from."""
    offset = 1 if op.text("mode") == "REFLECT" else 0

    def compute(dy: Array, paddings: Array) -> Array:
        pairs = pad_pairs(dy, paddings)
        sizes = unpadded(dy, pairs)
        sources = _mirror(np.empty(sizes), pairs, offset)
        out = dy.astype(np.float32) if dy.dtype.itemsize < 4 and dy.dtype.kind not in "iu" else dy
        for axis, source in enumerate(sources):
            folded = np.zeros((sizes[axis], *np.moveaxis(out, axis, 0).shape[1:]), out.dtype)
            np.add.at(folded, source, np.moveaxis(out, axis, 0))
            out = np.moveaxis(folded, 0, axis)
        return out.astype(dy.dtype)

    return compute


def unpadded(dy: Any, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The shape of a tensor without its paddings.

    Raises:
        InvalidArgumentError: they are more than it has.
    """
    sizes = [s - a - b for s, (a, b) in zip(dy.shape, pairs, strict=True)]
    for axis, size in enumerate(sizes):
        require(size >= 0, f"the paddings {pairs[axis]} exceed the size of dimension {axis} of {shape_text(dy)}")
    return sizes


@simple("Tile")
def tile(x: Array, multiples: Array) -> Array:
    counts = tile_counts(x, multiples)
    return np.tile(x, counts) if counts else x


def tile_counts(x: Any, multiples: Array) -> list[int]:
    """How often a tensor is repeated along each axis.

    Raises:
        InvalidArgumentError: there is no count for each axis, or one is negative.
    """
    require_vector(multiples, "multiples")
    counts = to_ints(multiples)
    require(
        len(counts) == x.ndim,
        f"Expected multiples argument to be a vector of length {x.ndim} but got length {len(counts)}",
    )
    for i, count in enumerate(counts):
        require(count >= 0, f"Expected multiples[{i}] >= 0, but got {count}")
    return counts


def tile_parts(dy: Any, multiples: Array) -> list[int]:
    """The shape of a tensor whose copies along each axis have an axis of their own, in front of it.

    Raises:
        InvalidArgumentError: there are no such copies.
    """
    counts = to_ints(multiples)
    require(
        len(counts) == dy.ndim,
        f"Expected multiples argument to be a vector of length {dy.ndim} but got length {len(counts)}",
    )
    split: list[int] = []
    for size, count in zip(dy.shape, counts, strict=True):
        require(count > 0 and size % count == 0, f"the multiples {counts} do not divide the shape {shape_text(dy)}")
        split += [count, size // count]
    return split


@simple("TileGrad")
def tile_grad(dy: Array, multiples: Array) -> Array:
    """The sum of the copies."""
    split = tile_parts(dy, multiples)
    wide = dy.astype(np.float32) if dy.dtype.itemsize < 4 and dy.dtype.kind not in "iu" else dy
    return np.asarray(wide.reshape(split).sum(axis=tuple(range(0, 2 * dy.ndim, 2)), dtype=wide.dtype)).astype(dy.dtype)


@simple("Reverse")
def reverse(x: Array, dims: Array) -> Array:
    """V1: a vector of one bool per axis."""
    require(x.ndim <= 8, f"reverse is not implemented for tensors of rank > 8; got {x.ndim}")
    require(dims.ndim <= 1, f"'dims' must be 1-dimension. {dims.ndim}")
    require(dims.size == x.ndim, f"'dims' must have the same number of values as 'input' has dimensions ({x.ndim})")
    return np.flip(x, [i for i, flag in enumerate(dims.reshape(-1).tolist()) if flag])


@simple("ReverseV2")
def reverse_v2(x: Array, axes: Array) -> Array:
    require(axes.ndim == 1, f"'dims' must be 1-dimension. {shape_text(axes)}")
    wrapped: list[int] = []
    for axis in to_ints(axes):
        require(-x.ndim <= axis < x.ndim, f"'axis' {axis} is out of valid range [-{x.ndim}, {x.ndim - 1}]")
        require(axis % x.ndim not in wrapped, f"axis {axis} specified more than once.")
        wrapped.append(axis % x.ndim)
    return np.flip(x, wrapped) if wrapped else x


@kernel("ReverseSequence")
def reverse_sequence(op: KernelNode) -> Compute:
    """Reverses the first seq_lengths[i] elements of each row."""
    seq_dim, batch_dim = op.attr("seq_dim"), op.attr("batch_dim")

    def compute(x: Array, lengths: Array) -> Array:
        check_sequences(x, lengths, batch_dim, seq_dim)
        size = x.shape[seq_dim]
        for i, length in enumerate(to_ints(lengths)):
            require(0 <= length <= size, f"seq_lens({i}) must be in [0, {size}], got {length}")
        position = np.arange(size)[None, :]
        source = np.where(position < lengths[:, None], lengths[:, None] - 1 - position, position)
        shape = [1] * x.ndim
        shape[batch_dim], shape[seq_dim] = source.shape
        oriented = source if batch_dim < seq_dim else source.T
        return np.take_along_axis(x, oriented.reshape(shape), axis=seq_dim) if x.size else x

    return compute


def check_sequences(x: Any, lengths: Any, batch_dim: int, seq_dim: int) -> None:
    """Refuse what ReverseSequence does not take; the lengths themselves are not looked at.

    Raises:
        InvalidArgumentError: the axes are none, or equal, or there is no length for each example.
    """
    require_vector(lengths, "seq_lens")
    require(min(batch_dim, seq_dim) >= 0, f"batch_dim {batch_dim} and seq_dim {seq_dim} must be >= 0")
    require(batch_dim < x.ndim, f"batch_dim must be < input rank ( {batch_dim} vs. {x.ndim})")
    require(seq_dim < x.ndim, f"seq_dim must be < input rank ( {seq_dim} vs. {x.ndim})")
    require(seq_dim != batch_dim, f"batch_dim == seq_dim == {seq_dim}")
    require(
        lengths.shape[0] == x.shape[batch_dim],
        f"Length of seq_lens != input.dims({batch_dim}), ({lengths.shape[0]} vs. {x.shape[batch_dim]})",
    )


@simple("Roll")
def roll(x: Array, shift: Array, axis: Array) -> Array:
    axes = roll_axes(x, shift, axis)
    return np.roll(x, to_ints(shift), axes) if x.size else x


def roll_axes(x: Any, shift: Array, axis: Array) -> list[int]:
    """The axes that are rolled, one for each shift.

    Raises:
        InvalidArgumentError: one does not exist, or there are more or fewer than shifts.
    """
    require(x.ndim >= 1, "input must be 1-D or higher")
    require(shift.ndim <= 1, f"shift must be a scalar or a 1-D vector. Found: {shape_text(shift)}")
    require(axis.ndim <= 1, f"axis must be a scalar or a 1-D vector. Found: {shape_text(axis)}")
    require(shift.shape == axis.shape, "shift and axis must have the same size")
    return [wrap_axis(a, x.ndim) for a in to_ints(axis)]


def block_sizes(x: Any, block: Array, pairs: Array, what: str) -> tuple[list[int], Array]:
    """The sizes of blocks, and what is added or cut.

    Raises:
        InvalidArgumentError: they are none, or not for this tensor.
    """
    require_vector(block, "block_shape")
    require(x.ndim >= 1 + len(block), f"input rank should be >= {1 + len(block)} instead of {x.ndim}")
    require(
        pairs.shape == (len(block), 2), f"{what} should have shape [{len(block)}, 2] instead of {shape_text(pairs)}"
    )
    require((block >= 1).all(), f"all values in block_shape must be positive, got {to_ints(block)}")
    require((pairs >= 0).all(), f"all values in {what} must be non-negative")
    return to_ints(block), pairs


def check_blocks(padded: Sequence[int], sizes: Sequence[int]) -> None:
    """Refuse a shape whose axes behind the first are no whole blocks.

    Raises:
        InvalidArgumentError: they are not.
    """
    for axis, size in enumerate(sizes, 1):
        require(
            padded[axis] % size == 0,
            f"padded_shape[{axis - 1}]={padded[axis]} is not divisible by block_shape[{axis - 1}]={size}",
        )


def space_to_batch(x: Array, block: Array, paddings: Array) -> Array:
    """Moves blocks of the axes after the first into the batch axis."""
    sizes, pads = block_sizes(x, block, paddings, "paddings")
    count = len(sizes)
    pairs = [(0, 0), *((int(a), int(b)) for a, b in pads), *[(0, 0)] * (x.ndim - 1 - count)]
    padded = pad_constant(x, pairs, 0)
    check_blocks(padded.shape, sizes)
    split: list[int] = [padded.shape[0]]
    for axis, size in enumerate(sizes, 1):
        split += [padded.shape[axis] // size, size]
    rest = padded.shape[1 + count :]
    order = [
        *range(2, 2 * count + 1, 2),
        0,
        *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, 2 * count + 1 + len(rest)),
    ]
    moved = padded.reshape([*split, *rest]).transpose(order)
    return moved.reshape([padded.shape[0] * int(np.prod(sizes, dtype=int)), *split[1::2], *rest])


def batch_blocks(x: Any, sizes: Sequence[int]) -> int:
    """The size of a batch whose blocks are in the batch axis.

    Raises:
        InvalidArgumentError: there are no whole blocks.
    """
    blocks = int(np.prod(sizes, dtype=int))
    require(
        x.shape[0] % blocks == 0,
        f"Input batch dimension ({x.shape[0]}) is not divisible by product of block sizes ({blocks})",
    )
    return x.shape[0] // blocks


def batch_to_space(x: Array, block: Array, crops: Array) -> Array:
    """The inverse of `space_to_batch`."""
    sizes, cuts = block_sizes(x, block, crops, "crops")
    count, batch = len(sizes), batch_blocks(x, sizes)
    rest = x.shape[1 + count :]
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, 2 * count + 1 + len(rest))
    spatial = [s * b for s, b in zip(x.shape[1 : 1 + count], sizes, strict=True)]
    out = x.reshape([*sizes, batch, *x.shape[1:]]).transpose(order).reshape([batch, *spatial, *rest])
    index: list[slice] = [slice(None)]
    for axis, (before, after) in enumerate(cuts.tolist()):
        require(
            before + after <= spatial[axis],
            f"cropped_shape[{axis}]={spatial[axis] - before - after} must be non-negative",
        )
        index.append(slice(before, spatial[axis] - after))
    return out[tuple(index)]


simple("SpaceToBatchND")(space_to_batch)
simple("BatchToSpaceND")(batch_to_space)


@kernel("SpaceToBatch", "BatchToSpace")
def square_blocks(op: KernelNode) -> Compute:
    """The 4-D forms with one block size for height and width."""
    size = op.attr("block_size")
    function = space_to_batch if op.op == "SpaceToBatch" else batch_to_space

    def compute(x: Array, pairs: Array) -> Array:
        require(x.ndim == 4, f"Input should have rank 4, got shape {shape_text(x)}")
        return function(x, np.array([size, size]), pairs)

    return compute


def depth_block(height: int, width: int, channels: int, block: int, to_depth: bool) -> None:
    """Refuse images that are no whole blocks.

    Raises:
        InvalidArgumentError: their sides are not, or their channels.
    """
    if to_depth:
        require(
            height % block == 0 and width % block == 0,
            f"Image width {width} and height {height} should be divisible by block_size: {block}",
        )
    else:
        square = block * block
        require(channels % square == 0, f"Input depth dimension {channels} should be divisible by: {square}")


@kernel("SpaceToDepth", "DepthToSpace")
def space_and_depth(op: KernelNode) -> Compute:
    """Moves square blocks between the spatial axes and the channels, in NHWC or NCHW."""
    block, layout = op.attr("block_size"), op.text("data_format")
    to_depth = op.op == "SpaceToDepth"
    if layout not in ("NHWC", "NCHW"):
        raise InvalidArgumentError(f"Only NHWC and NCHW are supported by {op.op}, not {layout}")
    channels_first = layout == "NCHW"

    def compute(x: Array) -> Array:
        require(x.ndim == 4, f"Input rank should be: 4 instead of: {x.ndim}")
        if channels_first:
            x = x.transpose(0, 2, 3, 1)
        n, h, w, c = x.shape
        depth_block(h, w, c, block, to_depth)
        if to_depth:
            out = x.reshape(n, h // block, block, w // block, block, c).transpose(0, 1, 3, 2, 4, 5)
            out = out.reshape(n, h // block, w // block, block * block * c)
        else:
            depth = c // (block * block)
            out = x.reshape(n, h, w, block, block, depth).transpose(0, 1, 3, 2, 4, 5)
            out = out.reshape(n, h * block, w * block, depth)
        return out.transpose(0, 3, 1, 2) if channels_first else out

    return compute
