"""Shapes of ops that make, cut, join and reorder tensors."""

from __future__ import annotations

import math

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import shape_from_proto
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, of_rank
from toolkit.graph.shapes.registry import ShapeContext, axis_of, merge_dims, shape_function


@shape_function("Const", "HostConst")
def const(c: ShapeContext) -> list[Shape]:
    packed = c.node.packed
    return [shape_from_proto((c.attr("value") if packed is None else packed.head).tensor_shape)]


@shape_function("Placeholder", "PlaceholderV2")
def placeholder(c: ShapeContext) -> list[Shape]:
    shape: Shape = c.attr("shape")
    # Before GraphDef version 24 the default shape, a scalar, stood for "unknown".
    if shape == SCALAR and c.node.op == "Placeholder" and c.node.graph.versions.producer < 24:
        return [UNKNOWN]
    return [shape]


@shape_function("PlaceholderWithDefault")
def placeholder_with_default(c: ShapeContext) -> list[Shape]:
    shape: Shape = c.attr("shape")
    c.inputs[0].merge(shape)  # the default must fit
    return [shape]


@shape_function("ImmutableConst")
def immutable_const(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


@shape_function("_Arg", "_DeviceArg")
def arg(c: ShapeContext) -> list[Shape]:
    shapes = c.attr("_output_shapes", None)
    return [shapes[0] if shapes else c.attr("shape", None) or UNKNOWN]


@shape_function("_Retval", "_DeviceRetval")
def retval(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("Identity", "RefIdentity", "Snapshot", "Copy", "CopyHost")
def identity(c: ShapeContext) -> list[Shape]:
    handle = c.handle(0)
    if handle is not None:
        c.output_handles[0] = handle
    return [c.inputs[0]]


@shape_function("IdentityN")
def identity_n(c: ShapeContext) -> list[Shape]:
    for index in range(len(c.inputs)):
        handle = c.handle(index)
        if handle is not None:
            c.output_handles[index] = handle
    return list(c.inputs)


@shape_function("EnsureShape")
def ensure_shape(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].merge(c.attr("shape"))]


@shape_function("Shape")
def shape_of(c: ShapeContext) -> list[Shape]:
    return [Shape([c.inputs[0].rank])]


@shape_function("ShapeN")
def shape_n(c: ShapeContext) -> list[Shape]:
    return [Shape([shape.rank]) for shape in c.inputs]


@shape_function("Rank", "Size")
def scalar_of_one(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("Reshape")
def reshape(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    value = c.constant(1)
    target = Shape(None) if isinstance(value, int) else c.constant_shape(1)
    c.rank_at_most(1, 1)
    return [resolve_reshape(source, target)]


def resolve_reshape(source: Shape, target: Shape) -> Shape:
    """The target with a single unknown size worked out from the source.

    Raises:
        GraphmillError: the number of elements differs.
    """
    if target.dims is None:
        return target
    total = source.num_elements
    known = math.prod(d for d in target.dims if d is not None)
    missing = [i for i, d in enumerate(target.dims) if d is None]
    if not missing:
        if total is not None and total != known:
            raise GraphmillError(f"a tensor of shape {source} ({total} elements) cannot become {target} ({known})")
        return target
    if len(missing) > 1 or known == 0 or total is None:
        return target
    if total % known:
        raise GraphmillError(f"a tensor of shape {source} ({total} elements) cannot become {target}")
    sizes = list(target.dims)
    sizes[missing[0]] = total // known
    return Shape(sizes)


@shape_function("ExpandDims")
def expand_dims(c: ShapeContext) -> list[Shape]:
    source, axis = c.inputs[0], c.integer(1)
    given = c.constant(1)
    if given is not None and axis is None:
        raise GraphmillError(f"input 1, 'dim', must be one number; it has shape {c.inputs[1]}")
    if source.dims is None:
        return [UNKNOWN]
    if axis is None:  # and it may even be more than one number, which only the run reports
        return [of_rank(len(source.dims) + 1) if c.inputs[1].num_elements == 1 else UNKNOWN]
    position = axis_of(axis, len(source.dims) + 1)
    return [Shape([*source.dims[:position], 1, *source.dims[position:]])]


@shape_function("Squeeze")
def squeeze(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    if source.dims is None:
        return [UNKNOWN]
    axes = {axis_of(a, len(source.dims)) for a in c.attr("squeeze_dims")}
    if not axes:
        # A size not known yet may be 1, and then the rank is smaller.
        return [UNKNOWN if None in source.dims else Shape([d for d in source.dims if d != 1])]
    for axis in axes:
        if source.dims[axis] not in (None, 1):
            raise GraphmillError(f"axis {axis} of shape {source} is not 1 and cannot be squeezed")
    return [Shape([d for i, d in enumerate(source.dims) if i not in axes])]


def concat_shape(parts: list[Shape], axis: int | None) -> Shape:
    if axis is None:
        common = UNKNOWN
        for part in parts:
            if part.rank is not None:
                common = common.merge(of_rank(part.rank))
        if common.rank == 0:
            raise GraphmillError("scalars cannot be concatenated; stack them instead")
        return common
    out: list[Dim] | None = None
    total: Dim = 0
    some_unknown = False
    for part in parts:
        if part.dims is None:
            some_unknown = True
            continue
        position = axis_of(axis, len(part.dims)) if part.dims else -1
        if position < 0:
            raise GraphmillError("scalars cannot be concatenated; stack them instead")
        size = part.dims[position]
        total = None if total is None or size is None else total + size
        if out is None:
            out = list(part.dims)
        elif len(out) != len(part.dims):
            raise GraphmillError(f"tensors of ranks {len(out)} and {len(part.dims)} cannot be concatenated")
        else:
            for i, size in enumerate(part.dims):
                if i != position:
                    out[i] = merge_dims(out[i], size, f"sizes of axis {i}")
    if out is None:
        return UNKNOWN
    out[axis_of(axis, len(out))] = None if some_unknown else total
    return Shape(out)


@shape_function("ConcatV2")
def concat_v2(c: ShapeContext) -> list[Shape]:
    return [concat_shape(c.inputs[:-1], c.integer(len(c.inputs) - 1))]


@shape_function("Concat")
def concat(c: ShapeContext) -> list[Shape]:
    return [concat_shape(c.inputs[1:], c.integer(0))]


@shape_function("ConcatOffset")
def concat_offset(c: ShapeContext) -> list[Shape]:
    return list(c.inputs[1:])


@shape_function("ParallelConcat")
def parallel_concat(c: ShapeContext) -> list[Shape]:
    shape: Shape = c.attr("shape")
    if not shape.is_fully_defined:
        raise GraphmillError(f"attribute 'shape' must have no unknown size; it is {shape}")
    rest = shape.slice(1)
    for index, part in enumerate(c.inputs):
        if part.dims is None:
            continue
        if not part.dims or part.dims[0] not in (1, None):
            raise GraphmillError(f"input {index} must have one row; it has shape {part}")
        rest.merge(part.slice(1))
    return [c.attr("shape")]


@shape_function("_ParallelConcatStart")
def parallel_concat_start(c: ShapeContext) -> list[Shape]:
    return [c.attr("shape")]


@shape_function("_ParallelConcatUpdate")
def parallel_concat_update(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("Pack")
def pack(c: ShapeContext) -> list[Shape]:
    out = c.inputs[-1]
    for shape in reversed(c.inputs[:-1]):
        out = shape.merge(out)
    if out.dims is None:
        return [UNKNOWN]
    position = axis_of(c.attr("axis"), len(out.dims) + 1)
    return [Shape([*out.dims[:position], len(c.inputs), *out.dims[position:]])]


@shape_function("Unpack")
def unpack(c: ShapeContext) -> list[Shape]:
    source, count = c.inputs[0], c.attr("num")
    if source.dims is None:
        return [UNKNOWN] * count
    c.rank_at_least(0, 1)
    position = axis_of(c.attr("axis"), len(source.dims))
    merge_dims(source.dims[position], count, "'num' and the size of the axis")
    return [Shape([*source.dims[:position], *source.dims[position + 1 :]])] * count


@shape_function("Split")
def split(c: ShapeContext) -> list[Shape]:
    axis, source, count = c.integer(0), c.rank_at_least(1, 1), c.attr("num_split")
    if source.dims is None:
        return [UNKNOWN] * count
    if axis is None:
        return [of_rank(len(source.dims))] * count
    sizes = list(source.dims)
    position = axis_of(axis, len(sizes))
    size = sizes[position]
    if size is not None and size % count:
        raise GraphmillError(f"size {size} of axis {position} cannot be split into {count} equal parts")
    sizes[position] = None if size is None else size // count
    return [Shape(sizes)] * count


@shape_function("SplitV")
def split_v(c: ShapeContext) -> list[Shape]:
    source, count, axis = c.inputs[0], c.attr("num_split"), c.integer(2)
    parts = c.vector(1)
    if axis is None or source.dims is None:
        if source.rank is not None and count > 1:
            return [of_rank(source.rank)] * count
        return [source] if count == 1 else [UNKNOWN] * count
    position = axis_of(axis, len(source.dims))
    total = source.dims[position]
    sizes: list[Dim] = [None] * count
    if parts is not None and len(parts) == count:
        sizes = [None if d is None or d < 0 else d for d in parts]
        if sizes.count(None) == 1 and total is not None:
            rest = total - sum(d for d in sizes if d is not None)
            if rest < 0:
                raise GraphmillError(f"the parts {parts} are more than the size {total} of axis {position}")
            sizes[sizes.index(None)] = rest
        elif None not in sizes and total is not None and sum(d for d in sizes if d is not None) != total:
            raise GraphmillError(f"the parts {parts} do not add up to the size {total} of axis {position}")
    elif count == 1:
        sizes = [total]
    return [Shape([*source.dims[:position], size, *source.dims[position + 1 :]]) for size in sizes]


@shape_function("Transpose", "ConjugateTranspose")
def transpose(c: ShapeContext) -> list[Shape]:
    source, perm = c.inputs[0], c.integers(1)
    length = c.rank_at_most(1, 1).num_elements
    rank = source.rank if source.rank is not None else length
    if rank is None:
        return [UNKNOWN]
    if length is not None and length != rank:
        raise GraphmillError(f"a permutation of {length} axes does not fit shape {source}")
    if perm is None:
        return [of_rank(rank)]
    axes = [axis_of(p, rank) for p in perm]
    sizes = source.with_rank(rank)
    if sorted(axes) != list(range(rank)):
        raise GraphmillError(f"{perm} is not a permutation of {rank} axes")
    return [Shape([sizes[a] for a in axes])]


@shape_function("InvertPermutation")
def invert_permutation(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 1)]


@shape_function("Tile")
def tile(c: ShapeContext) -> list[Shape]:
    source, times = c.inputs[0], c.constant_shape(1)
    if times.dims is None and source.dims is not None:
        times = of_rank(len(source.dims))
    if times.dims is None:
        return [UNKNOWN]
    source = source.with_rank(len(times.dims))
    return [Shape([_times(a, b) for a, b in zip(source, times, strict=True)])]


def _times(a: Dim, b: Dim) -> Dim:
    if a is None or b is None:
        return 0 if 0 in (a, b) else None
    return a * b


@shape_function("TileGrad")
def tile_grad(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


def _paddings(c: ShapeContext, rank: int) -> list[list[int | None]] | None:
    """The paddings before and after each axis, as far as they are known.

    Raises:
        GraphmillError: one is negative.
    """
    amounts = c.pairs(1, rank)
    if amounts is not None and any(n is not None and n < 0 for row in amounts for n in row):
        raise GraphmillError(f"input 1, 'paddings', must not have negative numbers; it is {amounts}")
    return amounts


@shape_function("Pad", "PadV2", "MirrorPad")
def pad(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    rows = c.rank(1, 2)
    merge_dims(rows[1], 2, "columns of 'paddings' and 2")
    rank = source.rank if source.rank is not None else rows[0]
    if rank is None:
        return [UNKNOWN]
    merge_dims(rows[0], rank, "rows of 'paddings' and the rank of the input")
    amounts = _paddings(c, rank)
    if amounts is None:
        return [of_rank(rank)]
    out: list[Dim] = []
    for size, (before, after) in zip(source.with_rank(rank), amounts, strict=True):
        out.append(None if size is None or before is None or after is None else size + before + after)
    return [Shape(out)]


@shape_function("MirrorPadGrad")
def mirror_pad_grad(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    rows = c.rank(1, 2)
    rank = source.rank if source.rank is not None else rows[0]
    if rank is None:
        return [UNKNOWN]
    amounts = _paddings(c, rank)
    if amounts is None:
        return [of_rank(rank)]
    out: list[Dim] = []
    for size, (before, after) in zip(source.with_rank(rank), amounts, strict=True):
        out.append(None if size is None or before is None or after is None else size - before - after)
    return [Shape(out)]


@shape_function("Fill")
def fill(c: ShapeContext) -> list[Shape]:
    c.rank(0, 1)
    c.rank(1, 0)
    return [c.constant_shape(0)]


@shape_function("Empty")
def empty(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0)]


@shape_function("BroadcastTo")
def broadcast_to(c: ShapeContext) -> list[Shape]:
    target = c.constant_shape(1)
    source = c.inputs[0]
    if source.dims is not None and target.dims is not None:
        if len(source.dims) > len(target.dims):
            raise GraphmillError(f"shape {source} cannot be broadcast to {target}")
        sizes = list(target.dims)
        for back, have in enumerate(reversed(source.dims), 1):
            if have not in (None, 1):
                if sizes[-back] not in (None, have):
                    raise GraphmillError(f"shape {source} cannot be broadcast to {target}")
                sizes[-back] = have
        target = Shape(sizes)
    return [target]


@shape_function("BroadcastArgs")
def broadcast_args(c: ShapeContext) -> list[Shape]:
    a, b = c.rank(0, 1)[0], c.rank(1, 1)[0]
    return [Shape([None if a is None or b is None else max(a, b)])]


@shape_function("BroadcastGradientArgs")
def broadcast_gradient_args(c: ShapeContext) -> list[Shape]:
    c.rank(0, 1)
    c.rank(1, 1)
    return [Shape([None]), Shape([None])]
