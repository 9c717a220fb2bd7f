"""Shapes of ops that make, cut, join and reorder tensors."""

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import shape_from_proto
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape, broadcast
from toolkit.graph.shapes.registry import ShapeContext, axis_of, listed, merge_dims, shape_function


@shape_function("Const", "HostConst")
def const(c: ShapeContext) -> list[Shape]:
    return [shape_from_proto(c.attr("value").tensor_shape)]


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
    if source.dims is None:
        return [UNKNOWN]
    if axis is None:  # and it may even be more than one number, which only the run reports
        return [Shape([None] * (len(source.dims) + 1)) if c.inputs[1].num_elements == 1 else UNKNOWN]
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


def _concat(parts: list[Shape], axis: int | None) -> Shape:
    if axis is None:
        common = UNKNOWN
        for part in parts:
            if part.rank is not None:
                common = common.merge(Shape([None] * part.rank))
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
    return [_concat(c.inputs[:-1], c.integer(len(c.inputs) - 1))]


@shape_function("Concat")
def concat(c: ShapeContext) -> list[Shape]:
    return [_concat(c.inputs[1:], c.integer(0))]


@shape_function("ConcatOffset")
def concat_offset(c: ShapeContext) -> list[Shape]:
    return list(c.inputs[1:])


@shape_function("ParallelConcat")
def parallel_concat(c: ShapeContext) -> list[Shape]:
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
        return [Shape([None] * len(source.dims))] * count
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
    wanted = c.constant(1)
    if axis is None or source.dims is None:
        if source.rank is not None and count > 1:
            return [Shape([None] * source.rank)] * count
        return [source] if count == 1 else [UNKNOWN] * count
    position = axis_of(axis, len(source.dims))
    total = source.dims[position]
    sizes: list[Dim] = [None] * count
    parts = listed(wanted)
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


@shape_function("Slice")
def slice_(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    begins, sizes = c.constant(1), c.constant(2)
    for index in (1, 2):
        length = c.rank(index, 1)[0]
        if source.dims is None and length is not None:
            source = Shape([None] * length)
        if length is not None and source.dims is not None and length != len(source.dims):
            raise GraphmillError(f"begin and size must have one element per axis of {source}; one has {length}")
    if source.dims is None:
        return [UNKNOWN]
    if not isinstance(sizes, list):
        return [Shape([None] * len(source.dims))]
    starts: list[Any] = listed(begins) or [None] * len(source.dims)
    out: list[Dim] = []
    for axis, (total, start, size) in enumerate(zip(source.dims, starts, sizes, strict=True)):  # type: ignore[arg-type]
        if size == -1:
            out.append(None if total is None or start is None else total - start)
        else:
            # A slice beyond the end is reported when it runs, as TensorFlow does.
            out.append(size)  # type: ignore[arg-type]
        if isinstance(out[-1], int) and out[-1] < 0:
            raise GraphmillError(f"axis {axis} has size {total}; its slice would have size {out[-1]}")
    return [Shape(out)]


@shape_function("StridedSlice")
def strided_slice(c: ShapeContext) -> list[Shape]:
    return [strided(c, c.inputs[0], 1)]


def strided(c: ShapeContext, source: Shape, first: int) -> Shape:
    """The shape of source[begin:end:strides], whose parts are the inputs first, first+1, first+2."""
    begin, end, strides = (c.constant(first + i) for i in range(3))
    if strides is None:
        return UNKNOWN
    count: Dim = None
    for index in range(first, first + 3):
        count = merge_dims(count, c.rank(index, 1)[0], "lengths of begin, end and strides")
    if count is None or source.dims is None:
        return UNKNOWN
    begins: list[Any] = listed(begin) or [None] * count
    ends: list[Any] = listed(end) or [None] * count
    steps: list[Any] = listed(strides) or [None] * count
    masks = {name: c.attr(name + "_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}

    def has(name: str, i: int) -> bool:
        return bool(masks[name] >> i & 1)

    ellipses = [i for i in range(count) if has("ellipsis", i)]
    if len(ellipses) > 1:
        raise GraphmillError("more than one ellipsis in a slice")
    added_after = sum(1 for i in range(count) if has("new_axis", i) and not has("ellipsis", i))
    consumed = count - added_after - len(ellipses)
    rank = len(source.dims)
    if consumed > rank:
        raise GraphmillError(f"{consumed} indices are too many for shape {source}")
    out: list[Dim] = []
    axis = 0
    for i in range(count):
        if has("ellipsis", i):
            skipped = rank - consumed
            out += source.dims[axis : axis + skipped]
            axis += skipped
        elif has("new_axis", i):
            out.append(1)
        else:
            size, step = source.dims[axis], steps[i]
            axis += 1
            if has("shrink_axis", i):
                if size is not None and begins[i] is not None and not -size <= begins[i] < size:
                    raise GraphmillError(f"index {begins[i]} is outside axis {axis - 1} of shape {source}")
                continue
            if step == 0:
                raise GraphmillError("a stride is 0")
            lower = None if has("begin", i) else begins[i]
            upper = None if has("end", i) else ends[i]
            known = (has("begin", i) or lower is not None) and (has("end", i) or upper is not None)
            out.append(_slice_size(size, lower, upper, step) if known and step is not None else None)
    return Shape([*out, *source.dims[axis:]]) if not ellipses else Shape(out)


def _slice_size(size: Dim, lower: int | None, upper: int | None, step: int) -> Dim:
    if size is not None:
        return len(range(*slice(lower, upper, step).indices(size)))
    # With an unknown size only an interval that is empty or counted from one end is certain.
    if lower is not None and upper is not None and (lower < 0) == (upper < 0):
        # Both ends count from the same side; clipping can only make it smaller, unless it is empty anyway.
        return 0 if len(range(lower, upper, step)) == 0 else None
    return None


@shape_function("StridedSliceGrad")
def strided_slice_grad(c: ShapeContext) -> list[Shape]:
    return [c.constant_shape(0)]


@shape_function("StridedSliceAssign", "TensorStridedSliceUpdate")
def strided_slice_assign(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("Transpose", "ConjugateTranspose")
def transpose(c: ShapeContext) -> list[Shape]:
    source, perm = c.inputs[0], c.constant(1)
    length = c.rank_at_most(1, 1).num_elements
    rank = source.rank if source.rank is not None else length
    if rank is None:
        return [UNKNOWN]
    if length is not None and length != rank:
        raise GraphmillError(f"a permutation of {length} axes does not fit shape {source}")
    if not isinstance(perm, list) or None in perm:
        return [Shape([None] * rank)]
    axes = [axis_of(p, rank) for p in perm]  # type: ignore[arg-type]
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
        times = Shape([None] * len(source.dims))
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


@shape_function("Pad", "PadV2", "MirrorPad")
def pad(c: ShapeContext) -> list[Shape]:
    source, amounts = c.inputs[0], c.constant(1)
    rows = c.rank(1, 2)
    merge_dims(rows[1], 2, "columns of 'paddings' and 2")
    rank = source.rank if source.rank is not None else rows[0]
    if rank is None:
        return [UNKNOWN]
    merge_dims(rows[0], rank, "rows of 'paddings' and the rank of the input")
    if not isinstance(amounts, list):
        return [Shape([None] * rank)]
    out: list[Dim] = []
    for size, pair in zip(source.with_rank(rank), amounts, strict=True):  # type: ignore[arg-type]
        before, after = pair  # type: ignore[misc]
        unknown = size is None or before is None or after is None
        out.append(None if unknown else size + before + after)  # type: ignore[operator]
    return [Shape(out)]


@shape_function("MirrorPadGrad")
def mirror_pad_grad(c: ShapeContext) -> list[Shape]:
    source, amounts = c.inputs[0], c.constant(1)
    rows = c.rank(1, 2)
    rank = source.rank if source.rank is not None else rows[0]
    if rank is None:
        return [UNKNOWN]
    if not isinstance(amounts, list):
        return [Shape([None] * rank)]
    pairs = listed(amounts) or []
    sizes = source.with_rank(rank)
    return [Shape([None if s is None or None in p else s - p[0] - p[1] for s, p in zip(sizes, pairs, strict=True)])]


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


@shape_function("Gather", "GatherV2")
def gather(c: ShapeContext) -> list[Shape]:
    source, indices = c.rank_at_least(0, 1), c.inputs[1]
    if c.node.op == "Gather":
        return [indices.concatenate(source.slice(1))]
    axis = c.integer(2)
    c.rank(2, 0)
    batch: int = c.attr("batch_dims")
    if axis is None:
        if source.rank is None or indices.rank is None:
            return [UNKNOWN]
        width = indices.rank - batch if batch >= 0 else -batch
        return [Shape([None] * (source.rank - 1 + width))]
    if source.dims is None or indices.dims is None:
        return [UNKNOWN]
    axis = axis_of(axis, len(source.dims))
    if batch:
        batch = axis_of(batch, len(indices.dims) + 1, "batch_dims")
    if batch > axis:
        # The run reports it.
        return [Shape([*source.dims[:axis], *indices.dims[batch:], *source.dims[axis + 1 :]])]
    head = [merge_dims(a, b) for a, b in zip(source.dims[:batch], indices.dims[:batch], strict=True)]
    return [Shape([*head, *source.dims[batch:axis], *indices.dims[batch:], *source.dims[axis + 1 :]])]


def gather_nd_shape(source: Shape, indices: Shape) -> Shape:
    if indices.dims is None or not indices.dims or source.dims is None:
        return UNKNOWN
    depth = indices.dims[-1]
    if depth is None:
        return UNKNOWN
    if depth > len(source.dims):
        raise GraphmillError(f"indices of length {depth} are too long for shape {source}")
    return Shape([*indices.dims[:-1], *source.dims[depth:]])


@shape_function("GatherNd")
def gather_nd(c: ShapeContext) -> list[Shape]:
    c.rank_at_least(1, 1)
    return [gather_nd_shape(c.inputs[0], c.inputs[1])]


def check_scatter_nd(indices: Shape, updates: Shape, output: Shape) -> None:
    """Raises GraphmillError unless updates of these indices fit the output."""
    if indices.num_elements == 0 or updates.num_elements == 0 or output.num_elements == 0:
        if 0 in (output.num_elements,) and 0 not in (indices.num_elements, updates.num_elements):
            raise GraphmillError(f"indices of shape {indices} need a place; the output {output} is empty")
        return
    if indices.dims is None or updates.dims is None or not indices.dims or not updates.dims:
        return
    depth, outer = indices.dims[-1], len(indices.dims) - 1
    if depth is not None:
        updates.slice(0, outer).merge(indices.slice(0, -1))
        output.slice(depth).merge(updates.slice(outer))


@shape_function("ScatterNd")
def scatter_nd(c: ShapeContext) -> list[Shape]:
    target = c.constant_shape(2)
    c.rank_at_least(0, 1)
    c.rank_at_least(1, 1)
    check_scatter_nd(c.inputs[0], c.inputs[1], target)
    return [target]


@shape_function(
    "ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
    "TensorScatterUpdate",
)  # fmt: skip
def tensor_scatter(c: ShapeContext) -> list[Shape]:
    check_scatter_nd(c.inputs[1], c.inputs[2], c.inputs[0])
    return [c.inputs[0]]


@shape_function("OneHot")
def one_hot(c: ShapeContext) -> list[Shape]:
    indices, depth, axis = c.inputs[0], c.integer(1), c.attr("axis")
    if depth is not None and depth < 0:
        raise GraphmillError(f"the depth must not be negative; it is {depth}")
    if indices.dims is None:
        return [UNKNOWN]
    if axis < -1:
        raise GraphmillError(f"axis {axis} is less than -1")
    position = len(indices.dims) if axis == -1 else min(axis, len(indices.dims))
    return [Shape([*indices.dims[:position], depth, *indices.dims[position:]])]


@shape_function("Where")
def where(c: ShapeContext) -> list[Shape]:
    return [Shape([None, c.inputs[0].rank])]


@shape_function("ReverseV2")
def reverse_v2(c: ShapeContext) -> list[Shape]:
    c.rank(1, 1)
    axes = c.integers(1)
    rank = c.inputs[0].rank
    if axes is not None and rank is not None:
        found = [axis_of(a, rank) for a in axes]
        if len(set(found)) != len(found):
            raise GraphmillError(f"axes {axes} name one axis twice")
    return [c.inputs[0]]


@shape_function("Reverse")
def reverse(c: ShapeContext) -> list[Shape]:
    length = c.rank(1, 1)[0]
    return [c.inputs[0] if length is None else c.inputs[0].with_rank(length)]


@shape_function("ReverseSequence")
def reverse_sequence(c: ShapeContext) -> list[Shape]:
    source, lengths = c.inputs[0], c.rank(1, 1)
    if source.dims is None:
        return [source]
    batch = axis_of(c.attr("batch_dim"), len(source.dims), "batch_dim")
    axis_of(c.attr("seq_dim"), len(source.dims), "seq_dim")
    sizes = list(source.dims)
    sizes[batch] = merge_dims(sizes[batch], lengths[0], "the batch size and the number of lengths")
    return [Shape(sizes)]


@shape_function("Diag")
def diag(c: ShapeContext) -> list[Shape]:
    c.rank_at_least(0, 1)
    return [c.inputs[0].concatenate(c.inputs[0])]


@shape_function("DiagPart")
def diag_part(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    if source.dims is None:
        return [UNKNOWN]
    half = len(source.dims) // 2
    if len(source.dims) % 2 or not half:
        raise GraphmillError(f"the input must have an even rank above 0; it has shape {source}")
    return [source.slice(0, half).merge(source.slice(half))]


@shape_function("MatrixBandPart")
def matrix_band_part(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("MatrixDiag")
def matrix_diag(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    return [UNKNOWN if source.dims is None else Shape([*source.dims, source.dims[-1]])]


@shape_function("MatrixDiagPart")
def matrix_diag_part(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    if source.dims is None:
        return [UNKNOWN]
    rows, columns = source.dims[-2:]
    return [Shape([*source.dims[:-2], None if rows is None or columns is None else min(rows, columns)])]


def _band(c: ShapeContext, index: int) -> tuple[int, int] | None:
    """The lowest and highest diagonal of a matrix-diagonal op's `k`."""
    k = c.integers(index)
    if not k:
        return None
    low, high = (k[0], k[0]) if len(k) == 1 else (k[0], k[1])
    if low > high:
        raise GraphmillError(f"the lowest diagonal {low} is above the highest {high}")
    return low, high


@shape_function("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v2(c: ShapeContext) -> list[Shape]:
    source, band = c.rank_at_least(0, 2), _band(c, 1)
    if source.dims is None or band is None:
        return [UNKNOWN]
    rows, columns = source.dims[-2:]
    low, high = band
    longest = None
    if rows is not None and columns is not None:
        longest = min(rows + min(high, 0), columns - max(low, 0))
        for k in band:
            if not (-rows < k < columns or k == 0):
                raise GraphmillError(f"diagonal {k} is outside a matrix of {rows} x {columns}")
    middle = [] if low == high else [high - low + 1]
    return [Shape([*source.dims[:-2], *middle, longest])]


@shape_function("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_v2(c: ShapeContext) -> list[Shape]:
    source, band = c.rank_at_least(0, 1), _band(c, 1)
    if source.dims is None or band is None:
        return [UNKNOWN]
    low, high = band
    longest = source.dims[-1]
    batch = source.dims[:-1] if low == high else source.dims[:-2]
    rows, columns = c.integer(2), c.integer(3)
    rows = None if rows == -1 else rows
    columns = None if columns == -1 else columns
    known = c.constant(2) is not None and c.constant(3) is not None
    if longest is not None and known:
        least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
        if rows is None and columns is None:
            rows = columns = max(least_rows, least_columns)
        rows = least_rows if rows is None else rows
        columns = least_columns if columns is None else columns
    return [Shape([*batch, rows, columns])]


@shape_function("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 2)
    diagonal = c.rank_at_least(1, 1)
    if diagonal.dims is None:
        return [source]
    if source.dims is None:
        band = (0, 0) if c.node.op == "MatrixSetDiag" else _band(c, 2)
        if band is None:
            return [Shape([*diagonal.dims[:-1], None, None]) if c.inputs[2].rank == 0 else UNKNOWN]
        batch = diagonal.dims[:-1] if band[0] == band[1] else diagonal.dims[:-2]
        return [Shape([*batch, None, None])]
    if c.node.op != "MatrixSetDiag":
        return [source]
    rows, columns = source.dims[-2:]
    if rows is not None and columns is not None:
        merge_dims(diagonal.dims[-1], min(rows, columns), "the diagonal's and the matrix's sizes")
    return [source.slice(0, -2).merge(diagonal.slice(0, -1)).concatenate(source.slice(-2))]


@shape_function("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    some = Shape([None])
    if c.node.op.endswith("V2"):
        axes = c.constant(1)
        length = c.inputs[1].num_elements
        if length == 0:
            merge_dims(source.rank, 1, "the rank of the input and 1")
            out, index = some, source if source.rank == 1 else some
        elif not isinstance(axes, list) or source.dims is None:
            out, index = UNKNOWN if source.dims is None else Shape([None] * len(source.dims)), some
        else:
            axis = axis_of(axes[0], len(source.dims))  # type: ignore[arg-type]
            sizes = list(source.dims)
            index = Shape([sizes[axis]])
            sizes[axis] = None
            out = Shape(sizes)
    else:
        out, index = some, source if c.node.op == "UniqueWithCounts" else c.rank(0, 1)
    return [out, index, some][: c.node.num_outputs]


@shape_function("ListDiff")
def list_diff(c: ShapeContext) -> list[Shape]:
    c.rank(0, 1)
    c.rank(1, 1)
    return [Shape([None]), Shape([None])]


@shape_function("EditDistance")
def edit_distance(c: ShapeContext) -> list[Shape]:
    first, second = c.constant_shape(2), c.constant_shape(5)
    if first.dims is None or second.dims is None:
        return [UNKNOWN]
    a, b = first.with_rank(len(first.dims)), second.with_rank(len(first.dims))
    # Each size of the batch is the larger of the two.
    pairs = zip(a.slice(0, -1), b.slice(0, -1), strict=True)
    return [Shape([None if x is None or y is None else max(x, y) for x, y in pairs])]


def _blocks(c: ShapeContext, source: Shape, blocks: list[int] | None, pads: Any, *, to_batch: bool) -> Shape:
    if source.dims is None:
        return UNKNOWN
    if blocks is None:
        return Shape([None] * len(source.dims))
    sizes = list(source.dims)
    rows = listed(pads)
    batch = sizes[0]
    factor = math.prod(blocks)
    if to_batch:
        sizes[0] = None if batch is None else batch * factor
    else:
        if batch is not None and batch % factor:
            raise GraphmillError(f"batch size {batch} cannot be divided by the blocks {blocks}")
        sizes[0] = None if batch is None else batch // factor
    for i, block in enumerate(blocks):
        size = sizes[i + 1]
        pair: list[Any] = rows[i] if rows else [None, None]
        if size is None or None in pair:
            sizes[i + 1] = None
        elif to_batch:
            padded: int = size + pair[0] + pair[1]
            if padded % block:
                raise GraphmillError(f"padded size {padded} cannot be divided by block {block}")
            sizes[i + 1] = padded // block
        else:
            sizes[i + 1] = size * block - pair[0] - pair[1]
    return Shape(sizes)


@shape_function("SpaceToBatchND", "BatchToSpaceND")
def space_to_batch_nd(c: ShapeContext) -> list[Shape]:
    count = c.rank(1, 1)[0]
    if count is not None:
        c.rank_at_least(0, count + 1)
    return [_blocks(c, c.inputs[0], c.integers(1), c.constant(2), to_batch=c.node.op == "SpaceToBatchND")]


@shape_function("SpaceToBatch", "BatchToSpace")
def space_to_batch(c: ShapeContext) -> list[Shape]:
    block = c.attr("block_size")
    return [_blocks(c, c.rank(0, 4), [block, block], c.constant(1), to_batch=c.node.op == "SpaceToBatch")]


@shape_function("SpaceToDepth", "DepthToSpace")
def space_to_depth(c: ShapeContext) -> list[Shape]:
    block, layout = c.attr("block_size"), c.text("data_format")
    vectorized = layout == "NCHW_VECT_C"
    source = c.rank(0, 5 if vectorized else 4)
    height, width, depth = (2, 3, 1) if layout.startswith("NCHW") else (1, 2, 3)
    sizes = list(source)
    if vectorized:
        sizes[4] = 4
    to_depth = c.node.op == "SpaceToDepth"
    for axis in (height, width):
        size = sizes[axis]
        if size is None:
            continue
        if to_depth and size % block:
            raise GraphmillError(f"size {size} cannot be divided by block {block}")
        sizes[axis] = size // block if to_depth else size * block
    channels = sizes[depth]
    if channels is not None:
        if not to_depth and channels % (block * block):
            raise GraphmillError(f"depth {channels} cannot be divided by {block * block}")
        sizes[depth] = channels * block * block if to_depth else channels // (block * block)
    return [Shape(sizes)]


@shape_function("ExtractImagePatches")
def extract_image_patches(c: ShapeContext) -> list[Shape]:
    from toolkit.graph.shapes.nn import window_size

    source = c.rank(0, 4)
    sizes, strides, rates = c.attr("ksizes"), c.attr("strides"), c.attr("rates")
    padding = c.text("padding")
    rows, columns = (window_size(source[i], sizes[i], strides[i], padding, rates[i]) for i in (1, 2))
    depth = source[3]
    return [Shape([source[0], rows, columns, None if depth is None else depth * sizes[1] * sizes[2]])]


@shape_function("ExtractVolumePatches")
def extract_volume_patches(c: ShapeContext) -> list[Shape]:
    from toolkit.graph.shapes.nn import window_size

    source = c.rank(0, 5)
    sizes, strides = c.attr("ksizes"), c.attr("strides")
    padding = c.text("padding")
    inner = [window_size(source[i], sizes[i], strides[i], padding) for i in (1, 2, 3)]
    depth = source[4]
    return [Shape([source[0], *inner, None if depth is None else depth * sizes[1] * sizes[2] * sizes[3]])]


@shape_function("UpperBound", "LowerBound")
def bound(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    return [c.rank(1, 2)]


@shape_function("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
                "QuantizeAndDequantizeV4", "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient",
                "FakeQuantWithMinMaxVars")  # fmt: skip
def fake_quant(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_per_channel(c: ShapeContext) -> list[Shape]:
    source = c.rank_at_least(0, 1)
    if source.dims is None:
        return [source]
    last: Dim = source.dims[-1]
    for index in (1, 2):
        last = merge_dims(last, c.rank(index, 1)[0], "channels and the length of min and max")
    return [Shape([*source.dims[:-1], last])]


@shape_function("Bincount")
def bincount(c: ShapeContext) -> list[Shape]:
    c.rank(1, 0)
    return [Shape([c.integer(1)])]


@shape_function("InplaceAdd", "InplaceSub", "InplaceUpdate")
def inplace(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("BatchMatrixBandPart", "BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag")
def unknown_one(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


__all__ = ["broadcast", "check_scatter_nd", "gather_nd_shape", "resolve_reshape", "strided"]
