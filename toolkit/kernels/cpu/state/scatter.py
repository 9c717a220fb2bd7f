"""Reading and writing parts of variables: gather, scatter by rows and by coordinates, strided assignment.

Each op exists for reference variables (ScatterAdd returns the reference) and resource variables
(ResourceScatterAdd returns nothing). Duplicate indices take effect one after the other.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.arrays.gather import check_indices, gather_nd, gather_v2, ignores_bad_indices, scatter_nd_into
from toolkit.kernels.cpu.arrays.slice import assign_slice, strided_index
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.native import rows as native_rows
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array
from toolkit.target.target import Target

Ufunc = Callable[..., Any]


def _divide(x: Array, y: Array) -> Array:
    """Division that stays in the type; integers round towards zero."""
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    if np.any(np.asarray(y) == 0):
        raise InvalidArgumentError("Integer division by zero")
    quotient = x // y
    return (quotient + ((x % y != 0) & ((x < 0) != (y < 0)))).astype(x.dtype)


#: None assigns
_ROWS: dict[str, Ufunc | None] = {
    "Update": None, "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _divide,
    "Min": np.minimum, "Max": np.maximum,
}  # fmt: skip
_COORDINATES: dict[str, Ufunc | None] = {
    "Update": None, "Add": np.add, "Sub": np.subtract, "Min": np.minimum, "Max": np.maximum,
}  # fmt: skip


#: a round of fewer rows than this costs more than taking its rows one by one
_SHORT_ROUND = 16
_ALL: Any = slice(None)
#: elements of updates, from which compiled code pays
_WORTH = 1 << 10


def _repeats(indices: Array) -> tuple[Array, Array]:
    """The positions of `indices` [n] whose value came before, by value and then by position, and where it came last."""
    order = np.argsort(indices, kind="stable")
    ordered = indices.take(order)
    again = ordered[1:] == ordered[:-1]
    return order[1:][again], order[:-1][again]


def _next_round(later: Array, before: Array) -> Array:
    """Which of the repeats are the first of their values that are left: those that do not follow the one ahead."""
    first = np.ones(later.size, bool)
    np.not_equal(before[1:], later[:-1], out=first[1:])
    return first


def occurrences(indices: Array) -> Iterator[Any]:
    """Positions of `indices` [n] in rounds: the first of each value, the second ones, and so on.

    No round has a value twice, and each value's rounds keep its order, so applying round after round with plain
    indexing is the same as going through the positions one by one. One round of all is given as a slice.
    """
    later, before = _repeats(indices)
    if not later.size:
        yield _ALL
        return
    is_first = np.ones(indices.size, bool)
    is_first[later] = False
    yield np.flatnonzero(is_first)
    while later.size:
        first = _next_round(later, before)
        yield later[first]
        later, before = later[~first], before[~first]


def scatter_rows(target: Array, indices: Array, updates: Array, how: Ufunc | None, processor: Target) -> None:
    """Apply `how` to rows of `target` in place; `updates` has a row per index, or is a scalar."""
    flat = indices.reshape(-1).astype(np.intp, copy=False)
    rows = updates if updates.ndim == 0 else updates.reshape(flat.size, *target.shape[1:])
    if how is None:
        target[flat] = rows
        return
    if target.ndim == 1 and isinstance(how, np.ufunc) and target.dtype.isbuiltin == 1:
        ufunc: Any = how
        ufunc.at(target, flat, rows)  # goes through the indices in turn, and is fast for vectors
        return
    if rows.size >= processor.kernels.rows and _change_natively(target, flat, rows, how, processor):
        return
    values = how(target.take(flat, 0), rows)
    later, before = _repeats(flat)
    if later.size:
        _repeat(values, rows, how, later, before)
    target[flat] = values  # of an index's rows the last stays, and it has them all


def _change_natively(target: Array, flat: Array, rows: Array, how: Ufunc, processor: Target) -> bool:
    """The change in one pass of compiled code, where there is any for these types."""
    if not isinstance(how, np.ufunc) or not target.flags.carray or rows.dtype != target.dtype:
        return False
    numbers, given = np.ascontiguousarray(flat), np.ascontiguousarray(rows)
    return native_rows.change(how.__name__, target, numbers, given, processor) == 0


def _repeat(values: Array, rows: Array, how: Ufunc, later: Array, before: Array) -> None:
    """Make each row of `values` whose index came before from the row that its index had then."""
    while later.size >= _SHORT_ROUND:
        first = _next_round(later, before)
        chosen = later[first]
        if chosen.size < _SHORT_ROUND:
            break
        values[chosen] = how(values.take(before[first], 0), rows if rows.ndim == 0 else rows.take(chosen, 0))
        later, before = later[~first], before[~first]
    for position, last in zip(later.tolist(), before.tolist(), strict=True):
        values[position] = how(values[last], rows if rows.ndim == 0 else rows[position])


def _register(name: str, how: Ufunc | None) -> None:
    @kernel(f"Scatter{name}", f"ResourceScatter{name}", kind=Kind.STATEFUL)
    def scatter(op: KernelNode) -> Compute:
        returns_reference, dtype = op.ref_inputs[0], op.input_types[2]

        def compute(step: StepContext, target: Any, indices: Array, updates: Array) -> Any:
            cell = variables.cell_of(step, target, dtype)
            with cell.lock:
                present = variables.read(cell)
                check_rows(present, indices, updates)
                if indices.size:
                    check_indices(indices, present.shape[0])
                    del present  # so that `writable` sees who else holds the array
                    scatter_rows(variables.writable(cell), indices, updates, how, op.target)
            return target if returns_reference else None

        return compute


def check_rows(present: Any, indices: Any, updates: Any) -> None:
    """Refuse updates that are not a row for each index, or one number.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    if present.ndim < 1:
        raise InvalidArgumentError(f"params must be at least 1-D, got shape {shape_text(present)}")
    if updates.ndim and updates.shape != indices.shape + present.shape[1:]:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {shape_text(updates)}, indices.shape {shape_text(indices)}, "
            f"params.shape {shape_text(present)}"
        )


def _register_coordinates(name: str, how: Ufunc | None) -> None:
    @kernel(f"ScatterNd{name}", f"ResourceScatterNd{name}", kind=Kind.STATEFUL)
    def scatter_nd(op: KernelNode) -> Compute:
        returns_reference = op.ref_inputs[0]
        ignore_bad = ignores_bad_indices(op)
        dtype = op.input_types[2]

        def compute(step: StepContext, target: Any, indices: Array, updates: Array) -> Any:
            cell = variables.cell_of(step, target, dtype)
            with cell.lock:
                shape = variables.read(cell).shape
                check_coordinates(shape, indices, updates)
                if updates.size:
                    index, values = indices, updates
                    if ignore_bad:
                        limits = np.array(shape[: indices.shape[-1]], np.int64)
                        good = ((indices >= 0) & (indices < limits)).all(axis=-1)
                        index, values = indices[good], updates[good]
                    _scatter_coordinates(variables.writable(cell), index, values, how)
            return target if returns_reference else None

        return compute


def check_coordinates(shape: tuple[int, ...], indices: Any, updates: Any) -> None:
    """Refuse updates that do not fit the coordinates and a variable's shape.

    Raises:
        InvalidArgumentError: the shapes do not fit.
    """
    require(indices.ndim >= 1, f"Indices shape must have rank at least one. Found:{shape_text(indices)}")
    require(updates.ndim >= 1, f"Updates shape must have rank at least one. Found:{shape_text(updates)}")
    depth = indices.shape[-1] if indices.ndim > 1 else 1
    lead = indices.shape[:-1] if indices.ndim > 1 else indices.shape
    require(
        depth <= len(shape),
        f"The inner {depth} dimensions of indices exceed the rank of the variable's shape {shape_text(shape)}",
    )
    require(
        updates.shape == lead + shape[depth:],
        f"updates must have shape {shape_text(lead + shape[depth:])} for indices of shape {shape_text(indices)} and a "
        f"variable of shape {shape_text(shape)}, not {shape_text(updates)}",
    )


def _scatter_coordinates(target: Array, indices: Array, updates: Array, how: Ufunc | None) -> None:
    rows = indices[:, None] if indices.ndim == 1 else indices
    if target.dtype == bool and how is not None:
        how = np.logical_or if how is np.add else how
    scatter_nd_into(target, rows, updates, how)


for _name, _how in _ROWS.items():
    _register(_name, _how)
for _name, _how in _COORDINATES.items():
    _register_coordinates(_name, _how)


@kernel("ResourceGather", kind=Kind.STATEFUL)
def resource_gather(op: KernelNode) -> Compute:
    take = gather_v2(op)  # it reads the same attribute, batch_dims
    axis = np.asarray(max(op.attr("batch_dims"), 0))
    dtype = op.attr("dtype")

    def compute(step: StepContext, handle: Any, indices: Array) -> Array:
        params = variables.read(variables.find(step, handle, dtype))
        require(params.ndim >= 1, "params must be at least 1 dimensional")
        return take(params, indices, axis)

    return compute


@kernel("ResourceGatherNd", kind=Kind.STATEFUL)
def resource_gather_nd(op: KernelNode) -> Compute:
    take, dtype = gather_nd(op), op.attr("dtype")
    return lambda step, handle, indices: take(variables.read(variables.find(step, handle, dtype)), indices)


@kernel("StridedSliceAssign", "ResourceStridedSliceAssign", kind=Kind.STATEFUL)
def strided_slice_assign(op: KernelNode) -> Compute:
    build = strided_index(op)
    returns_reference, dtype = op.ref_inputs[0], op.attr("T")

    def compute(step: StepContext, target: Any, begin: Array, end: Array, strides: Array, value: Array) -> Any:
        cell = variables.cell_of(step, target, dtype)
        with cell.lock:
            index = build(variables.read(cell).shape, begin, end, strides)
            assign_slice(variables.writable(cell), index, value)
        return target if returns_reference else None

    return compute
