"""Regions of tensors, read in pieces of bounded size: partitioned tensors put together, whole ones cut."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from toolkit.formats.bundle.source import Array

#: (start, stop) in each dimension
Bounds = tuple[tuple[int, int], ...]
#: reads bytes at an offset within a stored part
ReadAt = Callable[[int, int], bytes]


def whole(dims: Sequence[int]) -> Bounds:
    """The region that is a whole tensor."""
    return tuple((0, size) for size in dims)


def blocks(bounds: Bounds, dims: Sequence[int], itemsize: int, size: int) -> Iterator[Bounds]:
    """Cut a region of a tensor into blocks in row-major order.

    The rows of the tensor that a block lies in take at most `size` bytes, or are a single innermost row.

    Args:
        bounds: the region.
        dims: the sizes of the tensor it lies in.
        itemsize: bytes of an element.
    """
    if any(start >= stop for start, stop in bounds):
        return
    if not bounds:
        yield ()
        return
    axis, row = len(dims) - 1, itemsize  # `row` is the bytes of one step along `axis`
    while axis > 0 and row * dims[axis] <= size:
        row *= dims[axis]
        axis -= 1
    step = max(1, size // row)
    start, stop = bounds[axis]
    for leading in product(*(range(*extent) for extent in bounds[:axis])):
        for at in range(start, stop, step):
            yield (*((index, index + 1) for index in leading), (at, min(at + step, stop)), *bounds[axis + 1 :])


def read_box(read_at: ReadAt, dims: Sequence[int], dtype: Array, box: Bounds) -> Array:
    """A region of a stored tensor, such that it spans several indices along one axis and those after it only.

    What lies between its rows is read too, in one go.

    Args:
        read_at: reads bytes of the tensor.
        dims: its sizes.
        dtype: numpy's type of its elements.
    """
    import numpy as np

    if not dims:
        return np.frombuffer(read_at(0, dtype.itemsize), dtype).reshape(())
    axis = next((at for at, (start, stop) in enumerate(box) if stop - start > 1), len(box) - 1)
    offset = sum(start * math.prod(dims[at + 1 :]) for at, (start, _) in enumerate(box[: axis + 1]))
    start, stop = box[axis]
    rows = (stop - start, *dims[axis + 1 :])
    data = read_at(offset * dtype.itemsize, math.prod(rows) * dtype.itemsize)
    found = np.frombuffer(data, dtype).reshape(rows)
    inner = (slice(None), *(slice(*extent) for extent in box[axis + 1 :]))
    return found[inner].reshape([b - a for a, b in box])


def overlap(a: Bounds, b: Bounds) -> Bounds | None:
    """What two regions share, or None."""
    shared = tuple((max(p, r), min(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))
    return None if any(start >= stop for start, stop in shared) else shared


def within(inner: Bounds, outer: Bounds) -> tuple[slice, ...]:
    """The index of one region in an array that is another."""
    return tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(inner, outer, strict=True))


def shifted(inner: Bounds, outer: Bounds) -> Bounds:
    """One region as counted from the start of another."""
    return tuple((a - c, b - c) for (a, b), (c, _) in zip(inner, outer, strict=True))


def first_overlap(regions: Sequence[Bounds]) -> tuple[int, int] | None:
    """The numbers of two regions that share elements, or None.

    Regions are compared in the order of their starts along the axis that tells most of them apart, with those only
    that have not ended: parts along one axis, what partitioned variables have, take linear time after sorting.
    """
    if len(regions) < 2 or not regions[0]:
        return None if len(regions) < 2 else (0, 1)
    axis = max(range(len(regions[0])), key=lambda at: len({region[at][0] for region in regions}))
    active: list[int] = []
    for at in sorted(range(len(regions)), key=lambda at: regions[at][axis][0]):
        region = regions[at]
        start = region[axis][0]
        active = [other for other in active if regions[other][axis][1] > start]
        for other in active:
            if overlap(region, regions[other]) is not None:
                return other, at
        active.append(at)
    return None


def covers(bounds: Bounds, regions: Sequence[Bounds]) -> bool:
    """Whether regions inside `bounds` cover all of it."""
    total = math.prod(stop - start for start, stop in bounds)
    volume = sum(math.prod(stop - start for start, stop in region) for region in regions)
    if volume < total:
        return False
    if volume == total and first_overlap(regions) is None:
        return True
    import numpy as np

    seen = np.zeros([stop - start for start, stop in bounds], bool)
    for region in regions:
        seen[within(region, bounds)] = True
    return bool(seen.all())


def rechunk(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in pieces of exactly `size`, the last one excepted."""
    pending = bytearray()
    for piece in pieces:
        if not pending and len(piece) == size:
            yield piece
            continue
        pending += piece
        while len(pending) >= size:
            yield bytes(pending[:size])
            del pending[:size]
    if pending:
        yield bytes(pending)
