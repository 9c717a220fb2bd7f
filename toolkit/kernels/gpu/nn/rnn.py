"""Recurrent cells in one op on GPUs: LSTMBlockCell, BlockLSTM, GRUBlockCell, and their gradients.

Products by the library, one for all steps where they do not depend on the state; everything of a step that is done
number by number in one kernel. Shapes are those of the CPU's kernels (`toolkit.kernels.cpu.nn.rnn`). float16 is
computed in float32 between products.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require_rank
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cpu.nn.rnn import check_gru, check_lstm, steps_of
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.linalg.matmul import product
from toolkit.kernels.gpu.state.cells import aligned
from toolkit.kernels.gpu.state.updates import blocks_for, run_dense
from toolkit.kernels.gpu.state.variables import plus
from toolkit.kernels.registry import Compute, KernelNode, kernel

_TYPES = {"T": [dtypes.float16, dtypes.float32]}
_BLOCK = 256
_OUTPUTS = ("i", "cs", "f", "o", "ci", "co", "h")


@dataclass(frozen=True, slots=True)
class _Settings:
    """What of a node its kernels are made for.

    Attributes:
        type: of the elements in the kernel IR.
        order: of the gates' quarters.
        peepholes: whether there are any.
    """

    type: str
    order: str
    peepholes: bool


class _Cell:
    """A kernel with a thread for each number of the state: loads as float, stores as the type."""

    def __init__(self, name: str, settings: _Settings):
        self.k = KernelBuilder(f"{name}_{settings.type}_{settings.order}{'_peepholes' * settings.peepholes}", _BLOCK)
        self.settings = settings
        self.one = self.k.number(1.0, "float")

    def load(self, buffer: Any, at: Lanes) -> Lanes:
        return self.k.convert(self.k.load(buffer, at), "float")

    def store(self, buffer: Any, at: Lanes, value: Lanes) -> None:
        self.k.store(buffer, at, self.k.convert(value, self.settings.type))

    def gate(self, row: Lanes, column: Lanes, cell: Lanes, quarter: str) -> Lanes:
        """Where a gate of a number is: row of 4 cell, the quarter, the column."""
        k, place = self.k, self.settings.order.index(quarter)
        start = k.add(k.mul(row, k.mul(cell, k.number(4, "i32"))), k.mul(cell, k.number(place, "i32")))
        return k.add(start, column)

    def slope(self, s: Lanes) -> Lanes:
        """Of a sigmoid whose value is s."""
        return self.k.mul(s, self.k.sub(self.one, s))

    def bend(self, t: Lanes) -> Lanes:
        """Of a tanh whose value is t."""
        return self.k.sub(self.one, self.k.mul(t, t))


@functools.cache
def _lstm_kernel(settings: _Settings, clips: bool, of_layer: bool) -> SimtKernel:
    """A step from the gates before activation, without bias.

    Args:
        of_layer: the gates are the sum of those by the inputs of all steps, of which this step's begin at 4 `first`,
            and of those by the state, in float32; outputs are of all steps too, and this step's begin at `first`; h
            goes to `now` as well.
    """
    cell = _Cell("lstm" + "_clip" * clips + "_layer" * of_layer, settings)
    k, type = cell.k, settings.type
    gates = k.buffer("gates", "float" if of_layer else type)
    by_state = k.buffer("by_state", "float") if of_layer else None
    previous, bias = (k.buffer(name, type) for name in ("previous", "bias"))
    peepholes = [k.buffer(name, type) for name in ("wci", "wcf", "wco")] if settings.peepholes else []
    out = [k.buffer(name, type, written=True) for name in _OUTPUTS]
    now = k.buffer("now", type, written=True) if of_layer else None
    first, past_first = (k.scalar("first", "i64"), k.scalar("past", "i64")) if of_layer else (None, None)
    n, width = k.scalar("n", "i32"), k.scalar("width", "i32")
    forget, clip = k.scalar("forget", "float"), k.scalar("clip", "float")
    at = k.global_thread()

    def behind(start: Lanes | None, place: Lanes, times: int = 1) -> Lanes:
        return place if start is None else k.add(k.mul(start, k.number(times, "i64")), k.convert(place, "i64"))

    with k.when(k.compare("slt", at, n)):
        row, column = k.div(at, width), k.rem(at, width)
        zero = k.number(0, "i32")

        def before(quarter: str) -> Lanes:
            place = cell.gate(row, column, width, quarter)
            given = cell.load(gates, behind(first, place, 4))
            if by_state is not None:
                given = k.add(given, cell.load(by_state, place))
            return k.add(given, cell.load(bias, cell.gate(zero, column, width, quarter)))

        i, c, f, o = (before(quarter) for quarter in "icfo")
        past = cell.load(previous, behind(past_first, at))
        if peepholes:
            i = k.add(i, k.mul(past, cell.load(peepholes[0], column)))
            f = k.add(f, k.mul(past, cell.load(peepholes[1], column)))
        i, ci, f = functions.sigmoid(k, i), functions.tanh(k, c), functions.sigmoid(k, k.add(f, forget))
        cs: Lanes = k.add(k.mul(ci, i), k.mul(past, f))
        if clips:
            low = k.neg(clip)
            cs = k.select(k.compare("olt", cs, low), low, cs)
            cs = k.select(k.compare("ogt", cs, clip), clip, cs)
        if peepholes:
            o = k.add(o, k.mul(cs, cell.load(peepholes[2], column)))
        o, co = functions.sigmoid(k, o), functions.tanh(k, cs)
        h = k.mul(co, o)
        for buffer, value in zip(out, (i, cs, f, o, ci, co, h), strict=True):
            cell.store(buffer, behind(first, at), value)
        if now is not None:
            cell.store(now, at, h)
    return k.finish()


@functools.cache
def _lstm_back_kernel(settings: _Settings, carried: bool) -> SimtKernel:
    """Gradients by the gates and the cell before, and what the peepholes' are sums of.

    Args:
        carried: gradients of the step behind are added to those that are given.
    """
    cell = _Cell("lstm_back" + "_carried" * carried, settings)
    k, type = cell.k, settings.type
    names = ["previous", "i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"]
    given = {name: k.buffer(name, type) for name in [*names, *(("cs_more", "h_more") if carried else ())]}
    peepholes = [k.buffer(name, type) for name in ("wci", "wcf", "wco")] if settings.peepholes else []
    gates, before = k.buffer("gates", type, written=True), k.buffer("before", type, written=True)
    sums = [k.buffer(name, type, written=True) for name in ("by_i", "by_f", "by_o")] if settings.peepholes else []
    n, width = k.scalar("n", "i32"), k.scalar("width", "i32")
    at = k.global_thread()
    with k.when(k.compare("slt", at, n)):
        row, column = k.div(at, width), k.rem(at, width)
        value = {name: cell.load(buffer, at) for name, buffer in given.items()}
        cs_grad, h_grad = value["cs_grad"], value["h_grad"]
        if carried:
            cs_grad, h_grad = k.add(cs_grad, value["cs_more"]), k.add(h_grad, value["h_more"])
        i, f, o, ci, co = (value[name] for name in ("i", "f", "o", "ci", "co"))
        by_o = k.mul(k.mul(cell.slope(o), h_grad), co)
        by_cs = k.add(k.mul(k.mul(cell.bend(co), h_grad), o), cs_grad)
        if peepholes:
            by_cs = k.add(by_cs, k.mul(by_o, cell.load(peepholes[2], column)))
        by_c = k.mul(k.mul(cell.bend(ci), by_cs), i)
        by_f = k.mul(k.mul(cell.slope(f), by_cs), value["previous"])
        by_i = k.mul(k.mul(cell.slope(i), by_cs), ci)
        past: Lanes = k.mul(by_cs, f)
        if peepholes:
            past = k.add(past, k.mul(by_i, cell.load(peepholes[0], column)))
            past = k.add(past, k.mul(by_f, cell.load(peepholes[1], column)))
            cell.store(sums[0], at, k.mul(by_i, value["previous"]))
            cell.store(sums[1], at, k.mul(by_f, value["previous"]))
            cell.store(sums[2], at, k.mul(by_o, value["cs"]))
        for quarter, found in (("i", by_i), ("c", by_c), ("f", by_f), ("o", by_o)):
            cell.store(gates, cell.gate(row, column, width, quarter), found)
        cell.store(before, at, past)
    return k.finish()


@functools.cache
def _column_sums(type: str) -> SimtKernel:
    """Sums of columns, in order of the rows; a thread a column."""
    k = KernelBuilder(f"rnn_column_sums_{type}", _BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    rows, columns = k.scalar("rows", "i32"), k.scalar("columns", "i32")
    column = k.global_thread()
    with k.when(k.compare("slt", column, columns)):
        total = k.variable(k.number(0.0, "float"))
        with k.loop(0, rows) as row:
            here = k.load(x, k.add(k.mul(row, columns), column))
            total.set(k.add(total.get(), k.convert(here, "float")))
        k.store(y, column, k.convert(total.get(), type))
    return k.finish()


def _summed(device: CudaDevice, x: GpuArray, columns: int) -> GpuArray:
    out = device.empty((columns,), x.dtype)
    if out.size:
        device.launch(_column_sums(TYPES[x.dtype.name]), blocks_for(columns), x, out, x.size // columns, columns)
    return out


def _multiplied(device: CudaDevice, a: GpuArray, b: GpuArray, turns: str = "NN") -> GpuArray:
    """A product of matrices; "T" takes one transposed."""
    m, depth = a.shape if turns[0] == "N" else a.shape[::-1]
    n = b.shape[1] if turns[1] == "N" else b.shape[0]
    return product(device, a, b, (m, n), (m, n, depth), (turns[0], turns[1]), None)


def _beside(device: CudaDevice, *parts: GpuArray) -> GpuArray:
    return joined(device, parts, 1)


def _row(device: CudaDevice, x: GpuArray, step: int) -> GpuArray:
    """A step of [time, ...], where kernels take it."""
    inner = x.shape[1:]
    size = x.nbytes // max(1, x.shape[0])
    return aligned(device, x.viewed(x.dtype, inner, step * size))


class _Lstm:
    """The LSTM of a node over the weights that it was given."""

    def __init__(self, op: KernelNode, device: CudaDevice, weights: Sequence[GpuArray]):
        self._device = device
        self.w, wci, wcf, wco, self.bias = weights
        self.peepholes = [wci, wcf, wco] if op.attr("use_peephole") else []
        is_second, forward = "V2" in op.op, "Grad" not in op.op
        order = "ifco" if is_second else "icfo"
        self._settings = _Settings(TYPES[self.w.dtype.name], order, bool(self.peepholes))
        self._forget = float(op.attr("forget_bias")) if forward and not is_second else 0.0
        self._clip = float(op.attr("cell_clip")) if forward else 0.0

    def step(self, x: GpuArray, previous: GpuArray, h: GpuArray) -> list[GpuArray]:
        """i, cs, f, o, ci, co, h."""
        device = self._device
        gates = _multiplied(device, _beside(device, x, h), self.w)
        out = [device.empty(previous.shape, previous.dtype) for _ in _OUTPUTS]
        if previous.size:
            kernel = _lstm_kernel(self._settings, self._clip > 0, of_layer=False)
            numbers = (previous.size, previous.shape[1], self._forget, self._clip)
            blocks = blocks_for(previous.size)
            device.launch(kernel, blocks, gates, previous, self.bias, *self.peepholes, *out, *numbers)
        return out

    def layer(self, x: GpuArray, previous: GpuArray, h: GpuArray, out: Sequence[GpuArray]) -> None:
        """All steps of x (time, batch, inputs), written to the first rows of i, cs, f, o, ci, co, h.

        The product by the inputs is one for all steps; both it and that by the state are added up in float32.
        """
        device, (steps, batch, inputs), cell = self._device, x.shape, previous.shape[1]
        kernel, count, dtype = _lstm_kernel(self._settings, self._clip > 0, of_layer=True), previous.size, x.dtype
        if not steps or not count:
            return
        rows = 4 * cell
        gates = device.zeros((steps * batch, rows), np.float32)
        if inputs:
            by_x = self.w.viewed(dtype, (inputs, rows))
            multiply(device, x.reshaped((steps * batch, inputs)), by_x, gates, (steps * batch, rows, inputs))
        by_h = aligned(device, self.w.viewed(dtype, (cell, rows), inputs * rows * dtype.itemsize))
        past, past_first = previous, 0
        for step in range(steps):
            by_state, now = device.empty((batch, rows), np.float32), device.empty(h.shape, dtype)
            multiply(device, h, by_h, by_state, (batch, rows, cell))
            given = (gates, by_state, past, self.bias, *self.peepholes, *out, now)
            numbers = (step * count, past_first, count, cell, self._forget, self._clip)
            device.launch(kernel, blocks_for(count), *given, *numbers)
            h, past, past_first = now, out[1], step * count

    def back(
        self, previous: GpuArray, saved: Sequence[GpuArray], grads: Sequence[GpuArray], more: Sequence[GpuArray] = ()
    ) -> tuple[GpuArray, GpuArray, list[GpuArray]]:
        """Gradients by the cell before, by the gates, and rows that those by the peepholes are sums of.

        Args:
            saved: i, cs, f, o, ci, co.
            grads: by cs and h, to which `more` are added.
        """
        device, (batch, cell) = self._device, previous.shape
        gates, before = device.empty((batch, 4 * cell), previous.dtype), device.empty(previous.shape, previous.dtype)
        rows = [device.empty(previous.shape, previous.dtype) for _ in self.peepholes]
        if previous.size:
            kernel = _lstm_back_kernel(self._settings, bool(more))
            given = (previous, *saved, *grads, *more, *self.peepholes, gates, before, *rows)
            device.launch(kernel, blocks_for(previous.size), *given, previous.size, cell)
        return before, gates, rows


@kernel("LSTMBlockCell", types=_TYPES, device="GPU")
def lstm_block_cell(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: Any, previous: Any, h: Any, w: Any, *rest: Any) -> Any:
        require_rank(x, 2, "x")
        check_lstm(x, previous, h, w, rest[:3], rest[3], op.attr("use_peephole"))
        return _Lstm(op, device, (w, *rest)).step(x, previous, h)

    return compute


@kernel("LSTMBlockCellGrad", types=_TYPES, device="GPU")
def lstm_block_cell_gradient(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: Any, previous: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *rest: Any) -> Any:
        require_rank(x, 2, "x")
        check_lstm(x, previous, h, w, (wci, wcf, wco), b, op.attr("use_peephole"))
        for value, name in zip(rest, ("i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"), strict=True):
            _require_like(value, previous.shape, name)
        lstm = _Lstm(op, device, (w, wci, wcf, wco, b))
        before, gates, rows = lstm.back(previous, rest[:6], rest[6:])
        cell = previous.shape[1]
        return [before, gates, *_peephole_gradients(device, rows, cell, x.dtype)]

    return compute


def _require_like(value: Any, shape: tuple[int, ...], name: str) -> None:
    if value.shape != shape:
        raise InvalidArgumentError(f"{name} must have shape {list(shape)}, got {list(value.shape)}")


def _peephole_gradients(device: CudaDevice, rows: Sequence[GpuArray], cell: int, dtype: Any) -> list[GpuArray]:
    return [_summed(device, each, cell) for each in rows] or [device.zeros((cell,), dtype) for _ in range(3)]


@kernel("BlockLSTM", "BlockLSTMV2", types=_TYPES, device="GPU")
def block_lstm(op: KernelNode) -> Compute:
    """All steps of x (time, batch, inputs); outputs (time, batch, cell), zero from `seq_len_max` on."""
    device = device_of(op.node)

    def compute(most: Any, x: Any, previous: Any, h: Any, w: Any, *rest: Any) -> Any:
        steps = steps_of(most, x)
        first = x.viewed(x.dtype, x.shape[1:]) if x.shape[0] else device.zeros(x.shape[1:], x.dtype)
        check_lstm(first, previous, h, w, rest[:3], rest[3], op.attr("use_peephole"))
        make = device.zeros if steps < x.shape[0] else device.empty
        out = [make((x.shape[0], *previous.shape), x.dtype) for _ in _OUTPUTS]
        used = x if steps == x.shape[0] else x.viewed(x.dtype, (steps, *x.shape[1:]))
        _Lstm(op, device, (w, *rest)).layer(used, previous, h, out)
        return out

    return compute


@kernel("BlockLSTMGrad", "BlockLSTMGradV2", types=_TYPES, device="GPU")
def block_lstm_gradient(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(
        most: Any, x: Any, previous: Any, h_prev: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *rest: Any
    ) -> Any:
        steps = steps_of(most, x)
        first = x.viewed(x.dtype, x.shape[1:]) if x.shape[0] else device.zeros(x.shape[1:], x.dtype)
        check_lstm(first, previous, h_prev, w, (wci, wcf, wco), b, op.attr("use_peephole"))
        for value, name in zip(rest, ("i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"), strict=True):
            _require_like(value, (x.shape[0], *previous.shape), name)
        lstm = _Lstm(op, device, (w, wci, wcf, wco, b))
        inputs, (batch, cell), dtype = x.shape[2], previous.shape, x.dtype
        by_x = w.viewed(dtype, (inputs, 4 * cell))
        by_h = aligned(device, w.viewed(dtype, (cell, 4 * cell), by_x.nbytes))
        dcs, dh = device.zeros(previous.shape, dtype), device.zeros(previous.shape, dtype)
        all_gates: list[GpuArray] = []
        sums: list[list[GpuArray]] = []
        for step in reversed(range(steps)):
            saved = [_row(device, each, step) for each in rest[:6]]
            grads = [_row(device, each, step) for each in rest[7:]]
            before = _row(device, rest[1], step - 1) if step else previous
            dcs, gates, rows = lstm.back(before, saved, grads, (dcs, dh))
            dh = _multiplied(device, gates, by_h, "NT")
            all_gates.insert(0, gates)
            sums.append(rows)
        flat = joined(device, all_gates, 0) if all_gates else device.zeros((0, 4 * cell), dtype)
        used = aligned(device, x.viewed(dtype, (steps * batch, inputs)))
        dx = _multiplied(device, flat, by_x, "NT").reshaped((steps, batch, inputs))
        if steps < x.shape[0]:
            dx = joined(device, [dx, device.zeros((x.shape[0] - steps, batch, inputs), dtype)], 0)
        states = [h_prev, *(_row(device, rest[6], step) for step in range(steps - 1))][:steps]
        states = joined(device, states, 0) if states else device.zeros((0, cell), dtype)
        dw = joined(device, [_multiplied(device, used, flat, "TN"), _multiplied(device, states, flat, "TN")], 0)
        peepholes = [joined(device, list(rows), 0) for rows in zip(*sums, strict=True)] if steps else []
        db = _summed(device, flat, 4 * cell)
        return [dx, dcs, dh, dw, *_peephole_gradients(device, peepholes, cell, dtype), db]

    return compute


# -- GRU -------------------------------------------------------------------------------------------------------------


@functools.cache
def _gru_kernel(part: str) -> SimtKernel:
    """Number by number: "gates" makes r, u and h * r of both gates, "state" c and h, "candidate" the gradient by c's
    input, "back" those by both gates', "last" that by h."""
    cell = _Cell(f"gru_{part}", _Settings("float", "", False))
    k = cell.k
    names = {
        "gates": (["both", "bias", "h"], ["r", "u", "hr"]),
        "state": (["before", "bias", "h", "u"], ["c", "out"]),
        "candidate": (["dh", "u", "c"], ["by_c"]),
        "back": (["dh", "h", "r", "u", "c", "by_hr"], ["by_ru"]),
        "last": (["by_h", "by_hr", "r", "dh", "u"], ["out"]),
    }[part]
    given = {name: k.buffer(name, "float") for name in names[0]}
    made = {name: k.buffer(name, "float", written=True) for name in names[1]}
    n, width = k.scalar("n", "i32"), k.scalar("width", "i32")
    at, one = k.global_thread(), cell.one
    with k.when(k.compare("slt", at, n)):
        row, column = k.div(at, width), k.rem(at, width)
        left = k.add(k.mul(row, k.mul(width, k.number(2, "i32"))), column)
        right = k.add(left, width)
        value = {name: k.load(given[name], at) for name in names[0] if name not in ("both", "bias")}
        if part == "gates":
            r = functions.sigmoid(k, k.add(k.load(given["both"], left), k.load(given["bias"], column)))
            u = functions.sigmoid(k, k.add(k.load(given["both"], right), k.load(given["bias"], k.add(column, width))))
            k.store(made["r"], at, r)
            k.store(made["u"], at, u)
            k.store(made["hr"], at, k.mul(value["h"], r))
        elif part == "state":
            c = functions.tanh(k, k.add(value["before"], k.load(given["bias"], column)))
            u = value["u"]
            k.store(made["c"], at, c)
            k.store(made["out"], at, k.add(k.mul(u, value["h"]), k.mul(k.sub(one, u), c)))
        elif part == "candidate":
            by_c = k.mul(k.mul(value["dh"], k.sub(one, value["u"])), cell.bend(value["c"]))
            k.store(made["by_c"], at, by_c)
        elif part == "back":
            by_r = k.mul(k.mul(k.mul(value["by_hr"], value["h"]), value["r"]), k.sub(one, value["r"]))
            past = k.mul(k.mul(value["dh"], k.sub(value["h"], value["c"])), value["u"])
            k.store(made["by_ru"], left, by_r)
            k.store(made["by_ru"], right, k.mul(past, k.sub(one, value["u"])))
        else:
            through = k.add(value["by_h"], k.mul(value["by_hr"], value["r"]))
            k.store(made["out"], at, k.add(through, k.mul(value["dh"], value["u"])))
    return k.finish()


def _gru(device: CudaDevice, part: str, given: Sequence[GpuArray], made: Sequence[GpuArray], like: GpuArray) -> None:
    if like.size:
        device.launch(_gru_kernel(part), blocks_for(like.size), *given, *made, like.size, like.shape[1])


@kernel("GRUBlockCell", types={"T": [dtypes.float32]}, device="GPU")
def gru_block_cell(op: KernelNode) -> Compute:
    """Outputs r, u, c, h."""
    device = device_of(op.node)

    def compute(x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any) -> Any:
        check_gru(x, h, w_ru, w_c, b_ru, b_c)
        r, u, hr, c, out = (device.empty(h.shape, h.dtype) for _ in range(5))
        both = _multiplied(device, _beside(device, x, h), w_ru)
        _gru(device, "gates", (both, b_ru, h), (r, u, hr), h)
        before = _multiplied(device, _beside(device, x, hr), w_c)
        _gru(device, "state", (before, b_c, h, u), (c, out), h)
        return [r, u, c, out]

    return compute


@kernel("GRUBlockCellGrad", types={"T": [dtypes.float32]}, device="GPU")
def gru_block_cell_gradient(op: KernelNode) -> Compute:
    """Outputs the gradients by x, h_prev, and what goes into c and into r and u side by side."""
    device = device_of(op.node)

    def compute(x: Any, h: Any, w_ru: Any, w_c: Any, b_ru: Any, b_c: Any, r: Any, u: Any, c: Any, dh: Any) -> Any:
        inputs = check_gru(x, h, w_ru, w_c, b_ru, b_c)
        for value, name in ((r, "r"), (u, "u"), (c, "c"), (dh, "d_h")):
            _require_like(value, h.shape, name)
        (batch, cell), dtype = h.shape, x.dtype

        def through(gates: GpuArray, w: GpuArray) -> tuple[GpuArray, GpuArray]:
            """Gradients by the two inputs of a product."""
            first = w.viewed(dtype, (inputs, w.shape[1]))
            second = aligned(device, w.viewed(dtype, (cell, w.shape[1]), first.nbytes))
            return _multiplied(device, gates, first, "NT"), _multiplied(device, gates, second, "NT")

        by_c, out = device.empty(h.shape, dtype), device.empty(h.shape, dtype)
        by_ru = device.empty((batch, 2 * cell), dtype)
        _gru(device, "candidate", (dh, u, c), (by_c,), h)
        x_by_c, by_hr = through(by_c, w_c)
        _gru(device, "back", (dh, h, r, u, c, by_hr), (by_ru,), h)
        x_by_ru, by_h = through(by_ru, w_ru)
        _gru(device, "last", (by_h, by_hr, r, dh, u), (out,), h)
        total = device.copied(x_by_ru)
        if total.size:
            run_dense(device, "AddInto", plus, [total], x_by_c, [], 0)
        return [total, out, by_c, by_ru]

    return compute
