"""Recurrent layers by `native.recurrent`: each thread does all time steps of examples of its own."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span, Workspace, whole
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operations.recurrent import (
    GruLayer,
    LinearBeforeResetGruLayer,
    LstmLayer,
    RecurrentLayer,
)
from toolkit.kernels.cpu.native.cells import CellKind
from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.native.openmp import OPENMP
from toolkit.kernels.cpu.native.recurrent import LayerForm, layer
from toolkit.kernels.cpu.native.row_products import RowTile, heights, pack_gates, row_kernel
from toolkit.kernels.cpu.onednn.library import openmp_symbols
from toolkit.target.target import Target

_KINDS: dict[type[RecurrentLayer], CellKind] = {
    LstmLayer: CellKind.LSTM, GruLayer: CellKind.GRU, LinearBeforeResetGruLayer: CellKind.LINEAR_BEFORE_RESET,
}  # fmt: skip


def compile_layers(block: Block, threads: int, target: Target) -> None:
    """Let layers be computed by code of our own where that pays.

    Args:
        threads: that a plan may use.
    """
    if not target.recurrent.pays:
        return
    can_spread = threads > 1 and bool(openmp_symbols(*OPENMP))
    for operation in block.operations:
        if not isinstance(operation, RecurrentLayer) or operation.backward:
            continue
        batch = _batch(operation)
        work = batch * operation.length * operation.weights.multiplications
        count = min(threads, batch) if can_spread and work >= target.threads.product else 1
        edges = [batch * i // count for i in range(count + 1)]
        operation.shares = tuple(pairwise(edges))


def _batch(operation: RecurrentLayer) -> int:
    shape = operation.outputs[0].shape
    assert shape is not None
    return shape[0 if operation.batch_major_output else -2]


def write_compiled_layer(emitter: Emitter, operation: RecurrentLayer) -> None:
    """The call of the compiled function."""
    kind, weights, shares = _KINDS[type(operation)], operation.weights, operation.shares
    x, (sequence, *last) = operation.input, operation.outputs
    batch, units, length = _batch(operation), weights.units, operation.length
    channels, panels = weights.layer.shape[0], -(-units // LANES)
    form, chunk, kernels = _form(operation, emitter.target)
    machine = compiler()
    assert machine is not None
    function = machine.function(_text(form), openmp_symbols(*OPENMP) if form.threads else {})
    kept = emitter.kept
    input_step, input_row = _strides(x.shape, batch_major=operation.batch_major_input)
    output_step, output_row = _strides(sequence.shape, batch_major=operation.batch_major_output)
    state_row, memory_row = (units if operation.initial else 0,) * 2
    numbers = [len(shares), length, channels, units, panels, input_step, input_row, output_step, output_row, state_row,
               memory_row, chunk]  # fmt: skip
    zeros = whole(kept(np.zeros(panels * LANES, np.float32)))
    first = [_all_rows(value, batch, units) for value in operation.initial] or [zeros, zeros]
    iteration = np.asarray(weights.iteration)
    candidate = zeros
    if kind is CellKind.GRU:
        candidate = whole(kept(pack_gates(iteration[:, 2:])))
        iteration = iteration[:, :2]
    place = 0

    def room(floats: int) -> Region:
        nonlocal place
        made = Span(Workspace(place), 4 * floats)
        place += -(-4 * floats // 64) * 64
        return made

    memory = _all_rows(last[1], batch, units) if len(last) > 1 else room(batch * units)
    regions: list[Region] = [
        Span(x, 4 * ((length - 1) * input_step + (batch - 1) * input_row + channels)),
        Span(sequence, 4 * ((length - 1) * output_step + (batch - 1) * output_row + units)),
        whole(kept(pack_gates(np.asarray(weights.layer)))), whole(kept(pack_gates(iteration))), candidate,
        whole(kept(pack_gates(np.asarray(weights.bias)[None]))),
        zeros if weights.peepholes is None else whole(kept(pack_gates(np.asarray(weights.peepholes)[None]))),
        first[0], first[-1], _all_rows(last[0], batch, units) if last else zeros, memory,
        *(whole(kept(_addresses(emitter, tile, heights))) for tile, heights in kernels),
        whole(kept(np.array(numbers, np.int64))),
    ]  # fmt: skip
    for start, stop in shares:
        rows = stop - start
        regions += [room(chunk * rows * panels * LANES * kind.inputs), room(rows * panels * LANES),
                    room(rows * panels * LANES), whole(kept(np.array([start, rows], np.int64)))]  # fmt: skip
    emitter.passing(place)
    emitter.execute_native(function, regions)


def _addresses(emitter: Emitter, tile: RowTile, heights: set[int]) -> Any:
    """A table with the addresses of a product's kernels, by rows."""
    machine = compiler()
    assert machine is not None
    addresses = np.zeros(tile.rows, np.int64)
    for height in heights:
        addresses[height - 1] = emitter.kept(machine.function(row_kernel(tile, height), {})).address
    return addresses


#: a tile of products, and how many rows there are at a time
_Kernels = tuple[RowTile, set[int]]


def _form(operation: RecurrentLayer, target: Target) -> tuple[LayerForm, int, tuple[_Kernels, _Kernels, _Kernels]]:
    """What the text depends on, for how many steps the product of the input is made at a time, and the kernels of that
    product and of those of the state."""
    kind, sizes, vectors, weights = _KINDS[type(operation)], target.recurrent, target.vectors, operation.weights

    def tile(gates: int) -> RowTile:
        return RowTile.of(gates * LANES, vectors.lanes, vectors.registers, sizes.in_flight)

    rows = {stop - start for start, stop in operation.shares}
    given, products = tile(kind.inputs), tuple(map(tile, kind.products))
    panels, length = -(-weights.units // LANES), operation.length
    a_step = 4 * max(rows) * panels * LANES * kind.inputs
    chunk = min(length, max(1, sizes.ready // a_step))
    along_time = chunk >= min(given.rows, max(rows))
    if chunk > given.rows:
        chunk = chunk // given.rows * given.rows
    form = LayerForm(
        kind, len(operation.shares) > 1, weights.units % LANES != 0, weights.peepholes is not None,
        len(operation.outputs) > 1, along_time, given, products,
    )  # fmt: skip
    counts = heights(length, chunk) if along_time else rows
    state = [(product, _heights(rows, product)) for product in products]
    return form, chunk, ((given, _heights(counts, given)), state[0], state[-1])


def _heights(counts: set[int], tile: RowTile) -> set[int]:
    return set().union(*(heights(count, tile.rows) for count in counts))


def _strides(shape: Any, *, batch_major: bool) -> tuple[int, int]:
    """Floats from one step to the next and from one example to the next; a matrix is a sequence of one step."""
    *_, second, channels = shape
    return (channels, second * channels) if batch_major else (second * channels, channels)


def _all_rows(value: Any, batch: int, units: int) -> Region:
    return Span(value, 4 * batch * units)


@functools.cache
def _text(form: LayerForm) -> str:
    return layer(form)
