"""Kernels of cuDNN's recurrent networks on GPUs: what of a step is done number by number, a thread for each.

The formulas are those of the CPU (`toolkit.kernels.cpu.nn.cudnn_cells`), in float32, or in double of doubles. Tensors
that are parts of larger ones come as the whole and a first element: parts need not be aligned.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.recurrent_params import GATES, SAVED

_BLOCK = 256
#: lengths that one launch writes
LENGTHS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class RecurrentKind:
    """What the kernels of a network are made for.

    Attributes:
        type: of the elements in the kernel IR.
        skips: inputs are added to each gate as they are.
        projects: what a step makes is multiplied by a matrix before it is the state.
        ends: examples have lengths of their own.
    """

    mode: str
    type: str
    skips: bool
    projects: bool
    ends: bool

    @property
    def wide(self) -> str:
        return "double" if self.type == "double" else "float"

    @property
    def has_memory(self) -> bool:
        return self.mode == "lstm"

    @property
    def has_past(self) -> bool:
        """Whether gradients by a state come beside those through the product with it."""
        return self.ends or self.mode == "gru"


class _Cell:
    """A kernel with a thread for each number of a [batch, width]: loads as wide, stores as the type.

    Numbers that are first elements are i64.
    """

    def __init__(self, name: str, kind: RecurrentKind):
        marks = "_skip" * kind.skips + "_project" * kind.projects + "_ends" * kind.ends
        self.k = k = KernelBuilder(f"{name}_{kind.mode}_{kind.type}{marks}", _BLOCK)
        self.kind = kind
        self.lengths = k.buffer("lengths", "i32") if kind.ends else None
        self.step = k.scalar("step", "i32") if kind.ends else None
        self.n, self.width = k.scalar("n", "i32"), k.scalar("width", "i32")
        self.one: Lanes = k.number(1.0, kind.wide)
        self.zero: Lanes = k.number(0.0, kind.wide)

    def buffer(self, name: str, *, written: bool = False) -> Any:
        return self.k.buffer(name, self.kind.type, written=written)

    def first(self, name: str) -> Any:
        return self.k.scalar(name, "i64")

    def place(self) -> None:
        """Behind all arguments: where the thread is."""
        k = self.k
        self.at = k.global_thread()

    def begin(self) -> None:
        """Within those that have a number."""
        k = self.k
        self.row, self.column = k.div(self.at, self.width), k.rem(self.at, self.width)
        self.active = None
        if self.lengths is not None and self.step is not None:
            self.active = k.compare("slt", self.step, k.load(self.lengths, self.row))

    def load(self, buffer: Any, at: Lanes, first: Lanes | None = None) -> Lanes:
        k = self.k
        place = at if first is None else k.add(first, k.convert(at, "i64"))
        return k.convert(k.load(buffer, place), self.kind.wide)

    def store(self, buffer: Any, at: Lanes, value: Lanes, first: Lanes | None = None) -> None:
        k = self.k
        place = at if first is None else k.add(first, k.convert(at, "i64"))
        k.store(buffer, place, k.convert(value, self.kind.type))

    def rounded(self, value: Lanes) -> Lanes:
        return self.k.convert(self.k.convert(value, self.kind.type), self.kind.wide)

    def here(self, value: Lanes, else_: Lanes) -> Lanes:
        """A value, or another where the example has ended."""
        return value if self.active is None else self.k.select(self.active, value, else_)

    def gate(self, gate: int, of: int) -> Lanes:
        """Where a gate of this number is in a row of so many."""
        k = self.k
        start = k.mul(self.width, k.add(k.mul(self.row, k.number(of, "i32")), k.number(gate, "i32")))
        return k.add(start, self.column)

    def bias(self, gate: int) -> Lanes:
        k = self.k
        return k.add(k.mul(self.width, k.number(gate, "i32")), self.column)

    def side(self, stride: Lanes) -> Lanes:
        """Where the number is in rows of another width."""
        return self.k.add(self.k.mul(self.row, stride), self.column)

    def slope(self, s: Lanes) -> Lanes:
        """Of a sigmoid whose value is s."""
        return self.k.mul(s, self.k.sub(self.one, s))

    def bend(self, t: Lanes) -> Lanes:
        """Of a tanh whose value is t."""
        return self.k.sub(self.one, self.k.mul(t, t))


@functools.cache
def forward_kernel(kind: RecurrentKind) -> SimtKernel:
    """A step of a cell.

    Returns:
        a kernel of: lengths and step (where examples end), n, width, by_input and its first, by_state, params and the
        firsts of both biases, past, reserve, the firsts of gates and of the memory before and behind (where there are
        any); then, without a projection: the first of the state behind, now, out, its first and the width of its rows;
        with one: made.
    """
    cell = _Cell("cudnn_cell", kind)
    k, saved = cell.k, SAVED[kind.mode]
    by_input, input_first, by_state = cell.buffer("by_input"), cell.first("input_first"), cell.buffer("by_state")
    params, input_bias, state_bias = cell.buffer("params"), cell.first("input_bias"), cell.first("state_bias")
    past, reserve = cell.buffer("past"), cell.buffer("reserve", written=True)
    gates = cell.first("gates") if saved else None
    memories = [cell.first("memory_before"), cell.first("memory_behind")] if kind.has_memory else []
    ends = _State(cell) if not kind.projects else None
    made = cell.buffer("made", written=True) if kind.projects else None
    cell.place()
    with k.when(k.compare("slt", cell.at, cell.n)):
        cell.begin()
        count = GATES[kind.mode]

        def of_input(gate: int) -> Lanes:
            at = cell.at if kind.skips else cell.gate(gate, count)
            return k.add(cell.load(by_input, at, input_first), cell.load(params, cell.bias(gate), input_bias))

        def of_state(gate: int) -> Lanes:
            found = cell.load(by_state, cell.gate(gate, count))
            return k.add(found, cell.load(params, cell.bias(gate), state_bias))

        kept: list[Lanes] = []
        if kind.mode == "lstm":
            i, f, new, o = (k.add(of_input(gate), of_state(gate)) for gate in range(4))
            i, f, o = (functions.sigmoid(k, each) for each in (i, f, o))
            new = functions.tanh(k, new)
            before = cell.load(reserve, cell.at, memories[0])
            memory = k.add(k.mul(f, before), k.mul(i, new))
            value = k.mul(o, functions.tanh(k, memory))
            cell.store(reserve, cell.at, cell.here(memory, before), memories[1])
            kept = [i, f, new, o]
        elif kind.mode == "gru":
            r = functions.sigmoid(k, k.add(of_input(0), of_state(0)))
            u = functions.sigmoid(k, k.add(of_input(1), of_state(1)))
            inner = of_state(2)
            new = functions.tanh(k, k.add(of_input(2), k.mul(r, inner)))
            value = k.add(k.mul(k.sub(cell.one, u), new), k.mul(u, cell.load(past, cell.at)))
            kept = [r, u, new, inner]
        else:
            value = k.add(of_input(0), of_state(0))
            value = (
                functions.tanh(k, value)
                if kind.mode == "rnn_tanh"
                else k.select(k.compare("olt", value, cell.zero), cell.zero, value)
            )
        for gate, each in enumerate(kept):
            cell.store(reserve, cell.gate(gate, saved), each, gates)
        if ends is not None:
            ends.write(value, past, reserve)
        elif made is not None:
            cell.store(made, cell.at, value)
    return k.finish()


class _State:
    """Where the state goes: into what the gradient needs, to the next step, and out."""

    def __init__(self, cell: _Cell):
        self._cell = cell
        self._state, self._now = cell.first("state"), cell.buffer("now", written=True)
        self._out, self._out_first = cell.buffer("out", written=True), cell.first("out_first")
        self._stride = cell.k.scalar("stride", "i32")

    def write(self, value: Lanes, past: Any, reserve: Any) -> None:
        cell = self._cell
        state = cell.here(value, cell.load(past, cell.at))
        cell.store(reserve, cell.at, state, self._state)
        cell.store(self._now, cell.at, state)
        cell.store(self._out, cell.side(self._stride), cell.here(value, cell.zero), self._out_first)


@functools.cache
def projected_kernel(kind: RecurrentKind) -> SimtKernel:
    """The end of a step whose state is projected.

    Returns:
        a kernel of: lengths and step (where examples end), n, width, found, past, reserve, the first of the state
        behind, now, out, its first and the width of its rows.
    """
    cell = _Cell("cudnn_projected", kind)
    k = cell.k
    found, past, reserve = cell.buffer("found"), cell.buffer("past"), cell.buffer("reserve", written=True)
    ends = _State(cell)
    cell.place()
    with k.when(k.compare("slt", cell.at, cell.n)):
        cell.begin()
        ends.write(cell.load(found, cell.at), past, reserve)
    return k.finish()


class _Into:
    """The gradient by the state behind a step: through the product, beside it, and by the output."""

    def __init__(self, cell: _Cell):
        self._cell = cell
        self._through = cell.buffer("through")
        self._beside = cell.buffer("beside") if cell.kind.has_past else None
        self._out, self._out_first = cell.buffer("out_grad"), cell.first("out_first")
        self._stride = cell.k.scalar("stride", "i32")

    def read(self) -> tuple[Lanes, Lanes]:
        """By the state of all behind the step; and with the output's, nothing where the example has ended."""
        cell, k = self._cell, self._cell.k
        into = cell.load(self._through, cell.at)
        if self._beside is not None:
            into = k.add(into, cell.load(self._beside, cell.at))
        out = cell.load(self._out, cell.side(self._stride), self._out_first)
        return into, cell.here(k.add(into, out), cell.zero)


@functools.cache
def projected_gradient_kernel(kind: RecurrentKind) -> SimtKernel:
    """The gradient by the state behind a step, before it goes through the projection.

    Returns:
        a kernel of: lengths and step (where examples end), n, width, through, beside (where there is such), out_grad,
        its first and the width of its rows, grads and its first, and what comes beside to the step before (likewise).
    """
    cell = _Cell("cudnn_projected_gradient", kind)
    k = cell.k
    into = _Into(cell)
    grads, first = cell.buffer("grads", written=True), cell.first("grads_first")
    passed = cell.buffer("passed", written=True) if kind.has_past else None
    cell.place()
    with k.when(k.compare("slt", cell.at, cell.n)):
        cell.begin()
        before, grad = into.read()
        cell.store(grads, cell.at, grad, first)
        if passed is not None:
            cell.store(passed, cell.at, cell.here(cell.zero, before))
    return k.finish()


@functools.cache
def gradient_kernel(kind: RecurrentKind) -> SimtKernel:
    """The gradient of a step of a cell.

    Returns:
        a kernel of: lengths and step (where examples end), n, width; what the state's is: without a projection
        through, beside (where there is such), out_grad, its first and the width of its rows, with one the gradient;
        reserve and the first of the gates, of the memory before and behind, of the state before and behind; memory (of
        an LSTM: its gradient, in place), the gradients by both products and their first, then now, as that by the
        product with the state, and passed (where there is such, without a projection); with one made, and its first.
    """
    cell = _Cell("cudnn_gradient", kind)
    k, saved, count = cell.k, SAVED[kind.mode], GATES[kind.mode]
    into = _Into(cell) if not kind.projects else None
    given = cell.buffer("given") if kind.projects else None
    reserve, first = (
        cell.buffer("reserve"),
        {name: cell.first(name) for name in ("gates", "before", "behind", "was", "is")},
    )
    memory = cell.buffer("memory", written=True) if kind.has_memory else None
    by_input, by_state = cell.buffer("by_input", written=True), cell.buffer("by_state", written=True)
    place, now = cell.first("place"), cell.buffer("now", written=True)
    passed = cell.buffer("passed", written=True) if kind.has_past and not kind.projects else None
    made, made_first = (cell.buffer("made", written=True), cell.first("made_first")) if kind.projects else (None, None)
    cell.place()
    with k.when(k.compare("slt", cell.at, cell.n)):
        cell.begin()
        before: Lanes = cell.zero
        grad: Lanes = cell.zero
        if into is not None:
            before, grad = into.read()
        elif given is not None:
            grad = cell.load(given, cell.at)
        kept = [cell.load(reserve, cell.gate(gate, saved), first["gates"]) for gate in range(saved)]
        beside: Lanes = cell.zero
        if kind.mode == "lstm" and memory is not None:
            i, f, new, o = kept
            past = cell.load(reserve, cell.at, first["before"])
            bent = functions.tanh(k, cell.load(reserve, cell.at, first["behind"]))
            memory_grad = cell.load(memory, cell.at)
            inner = k.add(cell.here(memory_grad, cell.zero), k.mul(k.mul(grad, o), cell.bend(bent)))
            found = [
                k.mul(k.mul(inner, new), cell.slope(i)), k.mul(k.mul(inner, past), cell.slope(f)),
                k.mul(k.mul(inner, i), cell.bend(new)), k.mul(k.mul(grad, bent), cell.slope(o)),
            ]  # fmt: skip
            through = found
            cell.store(memory, cell.at, cell.here(k.mul(inner, f), memory_grad))
            if made is not None:
                cell.store(made, cell.at, k.mul(o, bent), made_first)
        elif kind.mode == "gru":
            r, u, new, product = kept
            by_new = k.mul(k.mul(grad, k.sub(cell.one, u)), cell.bend(new))
            by_r = k.mul(k.mul(by_new, product), cell.slope(r))
            was = cell.load(reserve, cell.at, first["was"])
            by_u = k.mul(k.mul(grad, k.sub(was, new)), cell.slope(u))
            found, through = [by_r, by_u, by_new], [by_r, by_u, k.mul(by_new, r)]
            beside = k.mul(grad, u)
        else:
            state = cell.load(reserve, cell.at, first["is"])
            if kind.mode == "rnn_tanh":
                found = [k.mul(grad, cell.bend(state))]
            else:
                found = [k.select(k.compare("ogt", state, cell.zero), grad, cell.zero)]
            through = found
        for gate in range(count):
            at = cell.gate(gate, count)
            cell.store(by_input, at, found[gate], place)
            cell.store(by_state, at, through[gate], place)
            cell.store(now, at, through[gate])
        if passed is not None:
            cell.store(passed, cell.at, cell.here(beside, before))
    return k.finish()


@functools.cache
def dropping_kernel(type: str) -> SimtKernel:
    """Drops numbers at random.

    Returns:
        a kernel of: drawn (float32, uniform), reserve, the first of the numbers and that of their mask, dropout, scale,
        n.
    """
    k = KernelBuilder(f"cudnn_dropping_{type}", _BLOCK)
    wide = "double" if type == "double" else "float"
    drawn, reserve = k.buffer("drawn", "float"), k.buffer("reserve", type, written=True)
    numbers, masks = k.scalar("numbers", "i64"), k.scalar("masks", "i64")
    dropout, scale, n = k.scalar("dropout", "float"), k.scalar("scale", wide), k.scalar("n", "i64")
    at = k.global_thread("i64")
    with k.when(k.compare("slt", at, n)):
        is_dropped = k.compare("olt", k.load(drawn, at), dropout)
        mask = k.convert(k.select(is_dropped, k.number(0.0, wide), scale), type)
        k.store(reserve, k.add(masks, at), mask)
        value = k.mul(k.convert(k.load(reserve, k.add(numbers, at)), wide), k.convert(mask, wide))
        k.store(reserve, k.add(numbers, at), k.convert(value, type))
    return k.finish()


@functools.cache
def masked_kernel(type: str) -> SimtKernel:
    """Numbers times those of a mask.

    Returns:
        a kernel of: x, reserve, the first of the mask, y, n.
    """
    k = KernelBuilder(f"cudnn_masked_{type}", _BLOCK)
    wide = "double" if type == "double" else "float"
    x, reserve = k.buffer("x", type), k.buffer("reserve", type)
    first, y, n = k.scalar("first", "i64"), k.buffer("y", type, written=True), k.scalar("n", "i64")
    at = k.global_thread("i64")
    with k.when(k.compare("slt", at, n)):
        value = k.mul(k.convert(k.load(x, at), wide), k.convert(k.load(reserve, k.add(first, at)), wide))
        k.store(y, at, k.convert(value, type))
    return k.finish()


@functools.cache
def unpadded_kernel(type: str) -> SimtKernel:
    """Sequences with zeros behind their ends.

    Returns:
        a kernel of: x [time, batch, width], lengths, y, batch, width, n.
    """
    k = KernelBuilder(f"cudnn_unpadded_{type}", _BLOCK)
    x, lengths, y = k.buffer("x", type), k.buffer("lengths", "i32"), k.buffer("y", type, written=True)
    batch, width, n = k.scalar("batch", "i64"), k.scalar("width", "i64"), k.scalar("n", "i64")
    at = k.global_thread("i64")
    with k.when(k.compare("slt", at, n)):
        row = k.div(at, width)
        ends = k.convert(k.load(lengths, k.rem(row, batch)), "i64")
        k.store(y, at, k.select(k.compare("slt", k.div(row, batch), ends), k.load(x, at), k.number(0, type)))
    return k.finish()


@functools.cache
def over_gates_kernel(type: str, gates: int) -> SimtKernel:
    """Sums over the gates.

    Returns:
        a kernel of: x [rows, gates, width], y [rows, width], width, n.
    """
    k = KernelBuilder(f"cudnn_over_{gates}_gates_{type}", _BLOCK)
    wide = "double" if type == "double" else "float"
    x, y, width, n = (
        k.buffer("x", type),
        k.buffer("y", type, written=True),
        k.scalar("width", "i64"),
        k.scalar("n", "i64"),
    )
    at = k.global_thread("i64")
    with k.when(k.compare("slt", at, n)):
        first = k.add(k.mul(k.div(at, width), k.mul(width, k.number(gates, "i64"))), k.rem(at, width))
        total: Lanes = k.convert(k.load(x, first), wide)
        for gate in range(1, gates):
            place = k.add(first, k.mul(width, k.number(gate, "i64")))
            total = k.add(total, k.convert(k.load(x, place), wide))
        k.store(y, at, k.convert(total, type))
    return k.finish()


@functools.cache
def column_sums_kernel(type: str) -> SimtKernel:
    """Sums of columns, in order of the rows; a thread a column.

    Returns:
        a kernel of: x, y, rows, columns.
    """
    k = KernelBuilder(f"cudnn_column_sums_{type}", _BLOCK)
    wide = "double" if type == "double" else "float"
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    rows, columns = k.scalar("rows", "i64"), k.scalar("columns", "i64")
    column = k.global_thread("i64")
    with k.when(k.compare("slt", column, columns)):
        total = k.variable(k.number(0.0, wide))
        with k.loop(k.number(0, "i64"), rows) as row:
            total.set(k.add(total.get(), k.convert(k.load(x, k.add(k.mul(row, columns), column)), wide)))
        k.store(y, column, k.convert(total.get(), type))
    return k.finish()


@functools.cache
def lengths_kernel() -> SimtKernel:
    """Writes some numbers: what a recorded step has instead of a copy from the host.

    Returns:
        a kernel of: y, first, n, and `LENGTHS_AT_ONCE` numbers.
    """
    k = KernelBuilder("cudnn_lengths", 32)
    y, first, n = k.buffer("y", "i32", written=True), k.scalar("first", "i32"), k.scalar("n", "i32")
    given = [k.scalar(f"length{at}", "i32") for at in range(LENGTHS_AT_ONCE)]
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        for at, each in enumerate(given):
            place = k.add(first, k.number(at, "i32"))
            with k.when(k.compare("slt", place, n)):
                k.store(y, place, each)
    return k.finish()
