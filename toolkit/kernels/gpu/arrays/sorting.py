"""TopK, TopKV2, ApproxTopK, InTopKV2, LowerBound and UpperBound."""

from __future__ import annotations

import functools
import math

from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, wrap_axis
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import FLOATING, SimtKernel
from toolkit.kernels.gpu.arrays.sort_kernels import BLOCK, is_wide, key_and_place, record_types, sort_rows
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.layout import layout_of, stand_in
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.reduce_code import Running, group_reduce, strided
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import REAL, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


@kernel("TopK", types={"T": REAL}, device="GPU", label="simt")
@gpu_kernel("TopKV2")
def top_k(op: KernelNode) -> Compute:
    """The k largest of each row, largest first; of equal ones the lower index comes first."""
    device, fixed = device_of(op.node), op.attr("k") if op.op == "TopK" else None
    index_type = op.output_types[1].numpy

    def compute(x: GpuArray, *given: Array) -> tuple[GpuArray, GpuArray]:
        if fixed is None:
            require_scalar(given[0], "k")
        k = int(given[0]) if fixed is None else fixed
        require(k >= 0, f"Need k >= 0, got {k}")
        require(x.ndim >= 1, f"input must be >= 1-D, got shape {shape_text(x)}")
        columns, rows = x.shape[-1], math.prod(x.shape[:-1])
        require(columns >= k, f"input must have at least k columns. Had {columns}, needed {k}")
        shape = (*x.shape[:-1], k)
        values, indices = device.empty(shape, x.dtype), device.empty(shape, index_type)
        if rows * k:
            found = sort_rows(device, x, rows, columns, k, descending=True)
            count = rows * k
            device.launch(take_first(x.dtype.name), -(-count // BLOCK), x, *found.records, values, indices, columns,
                          found.stride, k, count)  # fmt: skip
        return values, indices

    return compute


@gpu_kernel("ApproxTopK")
def approx_top_k(op: KernelNode) -> Compute:
    """The exact answer, which is a valid approximation, along any axis."""
    device, wanted, is_max = device_of(op.node), op.attr("k"), bool(op.attr("is_max_k"))
    dim, index_type = op.attr("reduction_dimension"), op.output_types[1].numpy

    def turned(x: GpuArray, source: int, target: int) -> GpuArray:
        """The tensor with an axis moved."""
        base = stand_in(x.shape, x.dtype)
        return part(device, x, layout_of(np.moveaxis(base, source, target), base))

    def compute(x: GpuArray) -> tuple[GpuArray, GpuArray]:
        axis = wrap_axis(dim, x.ndim, "reduction_dimension")
        require(wanted <= x.shape[axis], f"input must have at least k={wanted} columns, got {x.shape[axis]}")
        rows = turned(x, axis, -1)
        values, indices = (device.empty((*rows.shape[:-1], wanted), dtype) for dtype in (x.dtype, index_type))
        count, columns = values.size, rows.shape[-1]
        if count:
            found = sort_rows(device, rows, count // wanted, columns, wanted, descending=is_max)
            device.launch(take_first(x.dtype.name), -(-count // BLOCK), rows, *found.records, values, indices, columns,
                          found.stride, wanted, count)  # fmt: skip
        return turned(values, -1, axis), turned(indices, -1, axis)

    return compute


@functools.cache
def take_first(name: str) -> SimtKernel:
    """The numbers of the first records of each row. Scalars: columns, records of a row, wanted ones, in all."""
    number = number_of(name)
    wide = is_wide(number)
    k = KernelBuilder(f"take_first_{name}", BLOCK)
    x = k.buffer("x", number.memory)
    records = [k.buffer(f"record{i}", type) for i, type in enumerate(record_types(wide))]
    values, indices = k.buffer("values", number.memory, written=True), k.buffer("indices", "i32", written=True)
    columns, stride, wanted, count = (k.scalar(each, "i64") for each in ("columns", "stride", "wanted", "count"))
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        row = k.div(i, wanted)
        at = k.add(k.mul(row, stride), k.rem(i, wanted))
        _, place = key_and_place(k, tuple(k.load(each, at) for each in records), wide)
        k.store(indices, i, place)
        k.store(values, i, k.load(x, k.add(k.mul(row, columns), k.convert(place, "i64"))))
    return k.finish()


@gpu_kernel("InTopKV2")
def in_top_k(op: KernelNode) -> Compute:
    """Whether the target's prediction is among the k largest of its row; ties count in favour.

    Nowhere, as soon as the row has a NaN or an infinity.
    """
    device = device_of(op.node)

    def compute(predictions: GpuArray, targets: GpuArray, wanted: GpuArray) -> GpuArray:
        require_scalar(wanted, "k")
        require(predictions.ndim == 2, "predictions must be 2-dimensional")
        require(targets.ndim == 1, "targets must be 1-dimensional")
        rows, columns = predictions.shape
        require(
            rows == targets.shape[0],
            f"First dimension of predictions {rows} must match length of targets {targets.shape[0]}",
        )
        if not rows * columns:
            return device.zeros((rows,), bool)
        made = device.empty((rows,), bool)
        blocks = -(-rows * 32 // BLOCK)
        device.launch(_in_top(targets.dtype.name), blocks, predictions, targets, wanted, made, rows, columns)
        return made

    return compute


@functools.cache
def _in_top(name: str) -> SimtKernel:
    """A row for each warp. Scalars: rows, columns."""
    target = number_of(name)
    k = KernelBuilder(f"in_top_{name}", BLOCK)
    x, targets, wanted = k.buffer("x", "float"), k.buffer("targets", target.memory), k.buffer("k", target.memory)
    y, rows, columns = k.buffer("y", "i8", written=True), k.scalar("rows", "i64"), k.scalar("columns", "i64")
    none, one = k.number(0, "i64"), k.number(1, "i64")
    row = k.binary("lshr", k.global_thread("i64"), k.number(5, "i64"))
    lane = k.convert(k.binary("and", k.thread, k.number(31, "i32")), "i64")
    inside = k.compare("slt", row, rows)
    running = Running(k, (none, none))  # larger ones, and those that are no finite number
    class_ = k.variable(none)
    with k.when(inside):
        class_.set(k.convert(k.load(targets, row), "i64"))
    place = class_.get()
    valid = k.both(inside, k.both(k.compare("sge", place, none), k.compare("slt", place, columns)))
    with k.when(valid):
        first = k.mul(row, columns)
        score = k.load(x, k.add(first, place))

        def use(found: tuple[object, ...]) -> None:
            (value,) = found
            more, odd = running.get()
            larger = k.convert(k.compare("ogt", value, score), "i64")  # type: ignore[arg-type]
            apart = k.sub(value, value)  # type: ignore[arg-type] # NaN, unless the number is finite
            running.set((k.add(more, larger), k.add(odd, k.convert(k.compare("uno", apart, apart), "i64"))))

        strided(k, lane, columns, k.number(32, "i64"), lambda j: (k.load(x, k.add(first, j)),), use)
    more, odd = group_reduce(k, running.get(), lambda a, b: (k.add(a[0], b[0]), k.add(a[1], b[1])))
    with k.when(k.both(inside, k.compare("eq", lane, none))):
        few = k.compare("slt", more, k.convert(k.load(wanted, none), "i64"))
        k.store_bool(y, row, k.both(valid, k.both(few, k.compare("slt", odd, one))))
    return k.finish()


@gpu_kernel("LowerBound", "UpperBound")
def bound(op: KernelNode) -> Compute:
    """Where each value belongs in its sorted row."""
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def compute(rows: GpuArray, values: GpuArray) -> GpuArray:
        require(rows.ndim == 2, "sorted input argument must be a matrix")
        require(values.ndim == 2, "values argument must be a matrix")
        require(
            rows.shape[0] == values.shape[0],
            f"Leading dim_size of both tensors must match: {shape_text(rows)} vs. {shape_text(values)}",
        )
        made = device.empty(values.shape, dtype)
        count = math.prod(values.shape)
        if count:
            device.launch(_bound(rows.dtype.name, dtype.name, op.op == "UpperBound"), -(-count // BLOCK), rows, values,
                          made, rows.shape[1], values.shape[1], count)  # fmt: skip
        return made

    return compute


@functools.cache
def _bound(name: str, result: str, upper: bool) -> SimtKernel:
    """A value for each thread. Scalars: columns of the sorted rows and of the values, values in all."""
    number, place_type = number_of(name), number_of(result)
    k = KernelBuilder(f"{'upper' if upper else 'lower'}_bound_{name}", BLOCK)
    rows, values = k.buffer("rows", number.memory), k.buffer("values", number.memory)
    made = k.buffer("made", place_type.memory, written=True)
    columns, wanted, count = (k.scalar(each, "i64") for each in ("columns", "wanted", "count"))
    one = k.number(1, "i64")
    how = "ole" if upper else "olt"
    if number.compute not in FLOATING:
        how = ("u" if number.unsigned and number.memory in ("i32", "i64") else "s") + how[1:]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        value = number.load(k, values, i)
        begin = k.mul(k.div(i, wanted), columns)
        low, high = k.variable(k.number(0, "i64")), k.variable(columns)
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), one)
            before = k.compare(how, number.load(k, rows, k.add(begin, middle)), value)
            low.set(k.select(before, k.add(middle, one), low.get()))
            high.set(k.select(before, high.get(), middle))
        place_type.store(k, made, i, low.get() if result == "int64" else k.convert(low.get(), "i32"))
    return k.finish()
