"""Shapes of ops that pick, find and scatter elements."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import UNKNOWN, Dim, Shape, of_rank
from toolkit.graph.shapes.registry import ShapeContext, axis_of, merge_dims, shape_function


@shape_function("Slice")
def slice_(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    for index in (1, 2):
        length = c.rank(index, 1)[0]
        if source.dims is None and length is not None:
            source = of_rank(length)
        if length is not None and source.dims is not None and length != len(source.dims):
            raise GraphmillError(f"begin and size must have one element per axis of {source}; one has {length}")
    if source.dims is None:
        return [UNKNOWN]
    rank = len(source.dims)
    begins, sizes = c.vector(1, rank), c.vector(2, rank)
    if sizes is None:
        return [of_rank(rank)]
    starts = begins or [None] * rank
    out: list[Dim] = []
    for axis, (total, start, size) in enumerate(zip(source.dims, starts, sizes, strict=True)):
        if size == -1:
            out.append(None if total is None or start is None else total - start)
        else:
            # A slice beyond the end is reported when it runs, as TensorFlow does.
            out.append(size)
        if isinstance(out[-1], int) and out[-1] < 0:
            raise GraphmillError(f"axis {axis} has size {total}; its slice would have size {out[-1]}")
    return [Shape(out)]


@shape_function("StridedSlice")
def strided_slice(c: ShapeContext) -> list[Shape]:
    return [strided(c, c.inputs[0], 1)]


def strided(c: ShapeContext, source: Shape, first: int) -> Shape:
    """The shape of source[begin:end:strides], whose parts are the inputs first, first+1, first+2."""
    if c.constant(first + 2) is None:
        return UNKNOWN
    count: Dim = None
    for index in range(first, first + 3):
        count = merge_dims(count, c.rank(index, 1)[0], "lengths of begin, end and strides")
    if count is None or source.dims is None:
        return UNKNOWN
    of_rank(count)
    begins, ends, steps = (c.vector(first + i, count) or [None] * count for i in range(3))
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
                start = begins[i]
                if size is not None and start is not None and not -size <= start < size:
                    raise GraphmillError(f"index {start} is outside axis {axis - 1} of shape {source}")
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
        return [of_rank(source.rank - 1 + width) if width >= 0 else UNKNOWN]
    if source.dims is None or indices.dims is None:
        return [UNKNOWN]
    axis = axis_of(axis, len(source.dims))
    if batch:
        rank = len(indices.dims)
        if not -rank <= batch <= rank:
            raise GraphmillError(f"batch_dims {batch} is outside {-rank}..{rank}")
        batch = batch + rank if batch < 0 else batch
    if batch > axis:
        # The run reports it.
        return [Shape([*source.dims[:axis], *indices.dims[batch:], *source.dims[axis + 1 :]])]
    # Whether both have the same batches only the run looks at, as in TensorFlow.
    return [Shape([*source.dims[:batch], *source.dims[batch:axis], *indices.dims[batch:], *source.dims[axis + 1 :]])]


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
    if output.num_elements == 0 and (indices.num_elements or updates.num_elements):
        raise GraphmillError(f"indices {indices} and updates {updates} need a place; the output {output} is empty")
    if not indices.dims or not updates.dims:
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


@shape_function("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2")
def unique(c: ShapeContext) -> list[Shape]:
    source = c.inputs[0]
    some = Shape([None])
    if c.node.op.endswith("V2"):
        if source.dims is not None and c.constant(1) is not None and c.inputs[1].rank not in (1, None):
            raise GraphmillError(f"input 1, 'axis', must be a vector; it has shape {c.inputs[1]}")
        axes = c.integers(1) if c.inputs[1].rank == 1 else None
        length = c.inputs[1].num_elements
        if length == 0:
            merge_dims(source.rank, 1, "the rank of the input and 1")
            out, index = some, source if source.rank == 1 else some
        elif not axes or source.dims is None:
            out, index = UNKNOWN if source.dims is None else of_rank(len(source.dims)), some
        elif len(axes) > 1:
            raise GraphmillError(f"input 1, 'axis', must name one axis at most; it names {len(axes)}")
        else:
            axis = axis_of(axes[0], len(source.dims))
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


@shape_function("UpperBound", "LowerBound")
def bound(c: ShapeContext) -> list[Shape]:
    c.rank(0, 2)
    return [c.rank(1, 2)]


@shape_function("Bincount")
def bincount(c: ShapeContext) -> list[Shape]:
    c.rank(1, 0)
    return [Shape([c.integer(1)])]


@shape_function("InplaceAdd", "InplaceSub", "InplaceUpdate")
def inplace(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]
