"""Rows of tables by number, in compiled code: gathered into the arena, or of variables changed in place.

What the kernels do on every step (finding the variable, comparing shapes, checking numbers in a pass of its own) is
done once, or in the same loop.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Span
from toolkit.compiler.backends.cpu.learning.operations import GatherRows, ScatterRows
from toolkit.compiler.context import RunningStep
from toolkit.compiler.importer.facts import concrete
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.value import Value
from toolkit.errors import GraphmillError
from toolkit.kernels.context import RefVariable
from toolkit.kernels.cpu.arrays.gather import check_indices
from toolkit.kernels.cpu.native.rows import changer, gatherer
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.handles import ResourceHandle, lookup
from toolkit.target.thresholds import TableThresholds

_CHANGES = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide"}
#: whether the table is a variable
_GATHERS = {"Gather": False, "GatherV2": False, "ResourceGather": True}
_SCATTERS = {f"{prefix}{name}": how for prefix in ("ResourceScatter", "Scatter") for name, how in _CHANGES.items()}


def has_rows(block: Block, least: int) -> bool:
    """Whether there is anything to compile.

    Args:
        least: elements of what is gathered.
    """
    return any(
        operation.op in _SCATTERS or (operation.op in _GATHERS and _is_large(operation.output, least))
        for operation in block.operations
    )


def _is_large(value: Value, least: int) -> bool:
    return value.shape is not None and value.size >= least


def lower_rows(
    block: Block, running: RunningStep, refused: Callable[[Operation], bool], sizes: TableThresholds
) -> None:
    """Turn gathers from variables that are there already into `GatherRows`, changes into `ScatterRows`."""
    for operation in block.operations:
        if refused(operation):
            continue
        if operation.op in _GATHERS:
            _lower_gather(operation, running, sizes)
        elif operation.op in _SCATTERS:
            _lower_scatter(operation, running, sizes)


def _lower_gather(operation: Operation, running: RunningStep, sizes: TableThresholds) -> None:
    table, ids, *axis = operation.inputs
    target = operation.output
    is_first = all(value.is_constant and value.constant == 0 for value in axis)
    if not is_first or operation.step.node.attr("batch_dims", 0):
        return
    cell = None
    if _GATHERS[operation.op]:
        cell = known_cell(running, table.constant)
        if cell is None:
            return
        table = Value(cell.value.dtype, cell.value.shape)
    if not (_is_known(table) and _is_known(ids) and _is_known(target)) or not table.shape or target.size == 0:
        return
    if table.dtype.hasobject or table.dtype != target.dtype or target.shape != (*(ids.shape or ()), *table.shape[1:]):
        return
    if gatherer(ids.dtype.name, sizes) is None:
        return
    operation.become(
        GatherRows, ids=ids, table=None if cell is not None or table.is_constant else table, cell=cell,
        constant=np.ascontiguousarray(table.constant) if table.is_constant else None,
        limit=table.shape[0],
    )  # fmt: skip


def _lower_scatter(operation: Operation, running: RunningStep, sizes: TableThresholds) -> None:
    target, ids, rows = operation.inputs
    cell = known_cell(running, target.constant)
    if cell is None or any(value.is_needed for value in operation.outputs) or not (_is_known(ids) and _is_known(rows)):
        return
    table = cell.value
    if rows.dtype != table.dtype or rows.shape != (*(ids.shape or ()), *table.shape[1:]) or rows.size == 0:
        return
    change = _SCATTERS[operation.op]
    if table.ndim and changer(change, table.dtype.name, ids.dtype.name, sizes) is not None:
        operation.become(ScatterRows, ids=ids, rows=rows, cell=cell, change=change, limit=table.shape[0], outputs=[])


def known_cell(running: RunningStep, target: Any) -> Any:
    """The variable behind a reference or handle, if it has an array, of a shape that it must keep; else None."""
    if isinstance(target, RefVariable):
        cell: Any = target
    elif isinstance(target, ResourceHandle):
        try:
            cell = lookup(running, target, variables.Variable)
        except GraphmillError:
            return None
    else:
        return None
    return cell if isinstance(cell.value, np.ndarray) and concrete(cell.shape) == cell.value.shape else None


def _is_known(value: Value) -> bool:
    return value.dtype is not None and value.shape is not None


def write_gather_rows(emitter: Emitter, operation: GatherRows) -> None:
    """Copy the rows, from where the variable's array is now."""
    ids, target = operation.ids, operation.output
    width = target.nbytes // ids.size
    if operation.cell is None:
        source: Any = operation.constant if operation.table is None else operation.table
        if operation.table is None:
            emitter.keep.append(source)
        _write_call(emitter, operation, source, target, width, target.nbytes, "")
        return
    table, place = _table(emitter, operation)
    emitter.shared.update(read_variable=variables.read)
    emitter.line(f"{table} = contiguous(read_variable({emitter.share('k', operation.cell)}))")
    _write_place(emitter, table, place, "")
    _write_call(emitter, operation, place, target, width, target.nbytes, "")
    emitter.line(f"{table} = None")  # who still holds the array makes the next writer copy it


def write_scatter_rows(emitter: Emitter, operation: ScatterRows) -> None:
    """Change the rows, in the variable's own array."""
    ids, rows = operation.ids, operation.rows
    table, place = _table(emitter, operation)
    cell = emitter.share("k", operation.cell)
    emitter.shared.update(writable=variables.writable)
    emitter.line(f"with {cell}.lock:")
    emitter.line(f"    {table} = writable({cell})")
    _write_place(emitter, table, place, "    ")
    _write_call(emitter, operation, place, rows, rows.size // ids.size, 2 * rows.nbytes, "    ")
    emitter.line(f"    {table} = None")


def _table(emitter: Emitter, operation: GatherRows | ScatterRows) -> tuple[str, Value]:
    """A name for the variable's array, and the value that stands for it."""
    array = operation.cell.value
    return emitter.fresh("t"), Value(array.dtype, array.shape)


def _write_place(emitter: Emitter, table: str, standing: Value, indent: str) -> None:
    place = emitter.place(standing)
    emitter.line(f"{indent}if {place}.array() is not {table}: {place}.move({table})")


def _write_call(emitter: Emitter, operation: GatherRows | ScatterRows, table: Any, rows: Value, width: int,
                touched: int, indent: str) -> None:  # fmt: skip
    ids, limit = operation.ids, operation.limit
    numbers = emitter.read(ids)
    emitter.shared.update(check_indices=check_indices)
    unit = 1 if isinstance(operation, GatherRows) else int(rows.dtype.itemsize)  # of width
    regions = [Span(table, limit * width * unit), Span(ids, ids.nbytes), Span(rows, ids.size * width * unit)]
    function = operation.function(emitter.target.tables)
    assert function is not None
    call = emitter.native(function, [*regions, ids.size, limit, width], touched)
    emitter.line(f"{indent}{call} and check_indices({numbers}, {limit})")
