"""Layers of recurrent cells over all time steps as machine code.

A thread does all time steps of examples of its own, and meets no other before it is done. The product of the input is
made for several steps at a time, that of the state step by step, by `row_products`; what becomes of the sums of a few
rows follows while the first cache has them (`cells`). h is read where the step before wrote it: in the output.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import NamedTuple

from toolkit.kernels.cpu.native.cells import CellKind, gru_state, lstm
from toolkit.kernels.cpu.native.code import LANES, Code, Lanes
from toolkit.kernels.cpu.native.functions import sigmoid
from toolkit.kernels.cpu.native.loops import ATTRIBUTES, MASK, load_masked, loop, store_masked
from toolkit.kernels.cpu.native.openmp import openmp_declarations
from toolkit.kernels.cpu.native.row_products import RowTile, row_product
from toolkit.kernels.cpu.native.shares import part, start
from toolkit.kernels.cpu.native.tiles import loaded

_VECTOR = f"<{LANES} x float>"


class LayerOperand(enum.IntEnum):
    """The operands that all shares have in common: addresses. Then come those of each share, `OF_A_SHARE`."""

    INPUT = 0
    OUTPUT = 1
    LAYER = 2  # weights by which the input is multiplied
    ITERATION = 3  # those of the state
    CANDIDATE = 4  # those of what a GRU's reset gate leaves of the state
    BIAS = 5  # [panels, biases, LANES]
    PEEPHOLES = 6  # [panels, 3, LANES]
    FIRST_STATE = 7
    FIRST_MEMORY = 8
    LAST_STATE = 9
    MEMORY = 10  # c, [batch, units]
    INPUT_KERNELS = 11  # addresses of the kernels (`row_products`) for 1, 2, ... rows
    STATE_KERNELS = 12
    CANDIDATE_KERNELS = 13
    NUMBERS = 14


class LayerSize(enum.IntEnum):
    """What is at LayerOperand.NUMBERS, int64."""

    SHARES = 0
    LENGTH = 1  # steps
    CHANNELS = 2
    UNITS = 3
    PANELS = 4
    INPUT_STEP = 5  # floats from one step of the input to the next
    INPUT_ROW = 6  # from one example to the next
    OUTPUT_STEP = 7
    OUTPUT_ROW = 8
    FIRST_ROW = 9  # of the first h, 0 where all examples have the same
    MEMORY_ROW = 10  # of the first c
    CHUNK = 11  # steps for which the product of the input is made at a time, at most


#: addresses for each share: products of the input [steps, rows, panels, gates, LANES], gates and states of its rows
#: [rows, panels, LANES] each, numbers
OF_A_SHARE = 4


class LayerShareField(enum.IntEnum):
    """The numbers of a share, int64."""

    FROM = 0  # the first example
    ROWS = 1  # how many


class LayerForm(NamedTuple):
    """What the text of a layer depends on.

    Attributes:
        kind: of the cell.
        threads: the shares are spread over threads of OpenMP.
        is_masked: the units do not fill the last panel.
        has_peepholes: gates look at the memory.
        keeps_last: the last h is wanted by itself.
        along_time: the product of the input is made for several steps of one example at a time, else for several
            examples of one step.
        input_tile, tiles: of the product of the input, and of each product of the state.
    """

    kind: CellKind
    threads: bool
    is_masked: bool
    has_peepholes: bool
    keeps_last: bool
    along_time: bool
    input_tile: RowTile
    tiles: tuple[RowTile, ...]


def layer(form: LayerForm) -> str:
    """The text of a module with `void run(ptr operands)`."""
    names = openmp_declarations(threads=form.threads)
    code = Code(calls=False)
    run = ["define void @run(ptr %operands) {", *loaded([LayerOperand.NUMBERS], "operands", "ptr"),
           *loaded([LayerSize.SHARES], "numbers"), *start(threads=form.threads), "  ret void", "}"]  # fmt: skip
    most = max(tile.rows * tile.columns for tile in form.tiles)
    head = [f"  %sums = alloca [{most} x float], align 64",
            *loaded(list(LayerOperand), "operands", "ptr"), *loaded(list(LayerSize), "numbers")]  # fmt: skip
    addresses = [("ready", 0), ("kept", 1), ("left_state", 2), ("own", 3)]
    share = [f"  %so = mul i64 %i, {OF_A_SHARE}"]
    for name, index in addresses:
        share += [f"  %{name}_n = add i64 %so, {len(LayerOperand) + index}",
                  f"  %{name}_at = getelementptr ptr, ptr %operands, i64 %{name}_n",
                  f"  %{name} = load ptr, ptr %{name}_at"]  # fmt: skip
    share += loaded(list(LayerShareField), "own")
    steps = loop("s", "0", "%span_rows", 1, _step(form, code))
    share += ["  %wide = mul i64 %panels, " + str(form.input_tile.columns),
              "  %padded = mul i64 %panels, " + str(LANES),
              "  %io = mul i64 %from, %input_row", "  %own_input = getelementptr float, ptr %input, i64 %io",
              "  %oo = mul i64 %from, %output_row", "  %own_output = getelementptr float, ptr %output, i64 %oo",
              "  %fo = mul i64 %from, %first_row", "  %own_first = getelementptr float, ptr %first_state, i64 %fo",
              "  %mo = mul i64 %from, %memory_row",
              "  %own_memory_first = getelementptr float, ptr %first_memory, i64 %mo",
              "  %co = mul i64 %from, %units", "  %own_memory = getelementptr float, ptr %memory, i64 %co",
              "  %own_last = getelementptr float, ptr %last_state, i64 %co",
              *tiled("span", "%length", "%chunk", [*_product_of_input(form), *steps])]  # fmt: skip
    lines = part(head, share, threads=form.threads)
    return "\n".join([*sorted({*names, *code.declared}), *code.defined.values(), *run, *lines,
                      f"attributes #0 = {ATTRIBUTES}", ""])  # fmt: skip


def tiled(name: str, count: str, most: int | str, body: Sequence[str]) -> list[str]:
    """Lines that go over so many rows in tiles of about the same height; the body has %NAME_first and %NAME_rows."""
    tile = [f"  %{name}_big = icmp ult i64 %{name}, %{name}_spare", f"  %{name}_one = zext i1 %{name}_big to i64",
            f"  %{name}_rows = add i64 %{name}_least, %{name}_one",
            f"  %{name}_over = select i1 %{name}_big, i64 %{name}, i64 %{name}_spare",
            f"  %{name}_full = mul i64 %{name}, %{name}_least",
            f"  %{name}_first = add i64 %{name}_full, %{name}_over"]  # fmt: skip
    return [f"  %{name}_up0 = add i64 {count}, {most}", f"  %{name}_up = sub i64 %{name}_up0, 1",
            f"  %{name}_tiles = udiv i64 %{name}_up, {most}", f"  %{name}_least = udiv i64 {count}, %{name}_tiles",
            f"  %{name}_spare = urem i64 {count}, %{name}_tiles",
            *loop(name, "0", f"%{name}_tiles", 1, [*tile, *body])]  # fmt: skip


def _product_of_input(form: LayerForm) -> list[str]:
    """%ready = input times weights for all rows of the steps from %span_first on."""
    columns, most = form.input_tile.columns, form.input_tile.rows
    if form.along_time:
        outer, outer_stop, count = "a", "%rows", "%span_rows"
        place = ["  %step0 = add i64 %span_first, %tile_first", "  %row0 = add i64 %a, 0",
                 "  %slot0 = mul i64 %tile_first, %rows", "  %slot = add i64 %slot0, %a"]  # fmt: skip
        apart, ready_apart = "%input_step", "%ready_step"
    else:
        outer, outer_stop, count = "a", "%span_rows", "%rows"
        place = ["  %step0 = add i64 %span_first, %a", "  %row0 = add i64 %tile_first, 0",
                 "  %slot0 = mul i64 %a, %rows", "  %slot = add i64 %slot0, %tile_first"]  # fmt: skip
        apart, ready_apart = "%input_row", "%wide"
    given = ("%ip", apart, "%iw", "%channels", "%rp", ready_apart)
    tile = [*place, "  %ix0 = mul i64 %step0, %input_step", "  %ix1 = mul i64 %row0, %input_row",
            "  %ix = add i64 %ix0, %ix1", "  %ip = getelementptr float, ptr %own_input, i64 %ix",
            "  %rx0 = mul i64 %slot, %wide", f"  %rx1 = mul i64 %ij, {columns}", "  %rx = add i64 %rx0, %rx1",
            "  %rp = getelementptr float, ptr %ready, i64 %rx",
            *row_product("of_input", "%input_kernels", "%tile_rows", given)]  # fmt: skip
    panel = [f"  %iw0 = mul i64 %channels, {columns}", "  %iw1 = mul i64 %iw0, %ij",
             "  %iw = getelementptr float, ptr %layer, i64 %iw1",
             *loop(outer, "0", outer_stop, 1, tiled("tile", count, most, tile))]  # fmt: skip
    return ["  %ready_step = mul i64 %wide, %rows", *loop("ij", "0", "%panels", 1, panel)]


def _step(form: LayerForm, code: Code) -> list[str]:
    """One time step of all rows, number %s of those for which the product of the input is there."""
    lines = ["  %t = add i64 %span_first, %s", "  %is_first = icmp eq i64 %t, 0", "  %t_before = sub i64 %t, 1",
             "  %bo = mul i64 %t_before, %output_step", "  %before0 = getelementptr float, ptr %own_output, i64 %bo",
             "  %before = select i1 %is_first, ptr %own_first, ptr %before0",
             "  %before_row = select i1 %is_first, i64 %first_row, i64 %output_row",
             "  %no = mul i64 %t, %output_step", "  %now = getelementptr float, ptr %own_output, i64 %no",
             "  %memory_before = select i1 %is_first, ptr %own_memory_first, ptr %own_memory",
             "  %memory_before_row = select i1 %is_first, i64 %memory_row, i64 %units",
             "  %sr0 = mul i64 %s, %rows"]  # fmt: skip
    if form.keeps_last:
        lines += ["  %t_next = add i64 %t, 1", "  %is_last = icmp eq i64 %t_next, %length"]
    for number, tile in enumerate(form.tiles):
        lines += _product_of_state(form, code, number, tile)
    return lines


def _product_of_state(form: LayerForm, code: Code, number: int, tile: RowTile) -> list[str]:
    """A product of the state, panel by panel, and what becomes of it."""
    j, u = f"j{number}", f"u{number}"
    source, apart = ("%left_state", "%padded") if number else ("%before", "%before_row")
    weights = "%candidate" if number else "%iteration"
    inner = Code(prefix=f"g{number}_")
    _cell(form, inner, number)
    code.declared |= inner.declared
    code.defined |= inner.defined
    row = [f"  %b = add i64 %{u}_first, %r", f"  %so0 = mul i64 %r, {tile.columns}",
           "  %sum = getelementptr float, ptr %sums, i64 %so0",
           "  %slot1 = add i64 %sr0, %b", "  %ro0 = mul i64 %slot1, %wide",
           f"  %ro1 = mul i64 %{j}, {form.input_tile.columns}", "  %ro2 = add i64 %ro0, %ro1",
           "  %given = getelementptr float, ptr %ready, i64 %ro2",
           "  %po0 = mul i64 %b, %padded", "  %po = add i64 %po0, %unit",
           "  %bx0 = mul i64 %b, %before_row", "  %bx = add i64 %bx0, %unit",
           "  %nx0 = mul i64 %b, %output_row", "  %nx = add i64 %nx0, %unit",
           "  %mx0 = mul i64 %b, %memory_before_row", "  %mx = add i64 %mx0, %unit",
           "  %cx0 = mul i64 %b, %units", "  %cx = add i64 %cx0, %unit",
           *(f"  {line}" for line in inner.lines)]  # fmt: skip
    given = ("%hx", apart, "%uw", "%units", "%sums", str(tile.columns))
    kernels = "%candidate_kernels" if number else "%state_kernels"
    rows = [f"  %hx0 = mul i64 %{u}_first, {apart}", f"  %hx = getelementptr float, ptr {source}, i64 %hx0",
            *row_product("of_state", kernels, f"%{u}_rows", given), *loop("r", "0", f"%{u}_rows", 1, row)]  # fmt: skip
    panel = [f"  %uw0 = mul i64 %units, {tile.columns}", f"  %uw1 = mul i64 %uw0, %{j}",
             f"  %uw = getelementptr float, ptr {weights}, i64 %uw1", f"  %unit = mul i64 %{j}, {LANES}",
             "  %left = sub i64 %units, %unit", *MASK,
             *tiled(u, "%rows", tile.rows, rows)]  # fmt: skip
    return _renamed(loop(j, "0", "%panels", 1, panel), number)


def _cell(form: LayerForm, code: Code, number: int) -> None:
    """What becomes of the sums of one row, %sum, for %unit and those behind it."""
    kind = form.kind
    gates = kind.products[number]

    def sums(first: int) -> list[Lanes]:
        """Of the gates from `first` on: of the state, of the input, and the bias."""
        return [
            code.add(code.add(_padded(code, "%sum", str(gate * LANES)), ready(first + gate)), bias(first + gate))
            for gate in range(gates)
        ]

    def ready(gate: int) -> Lanes:
        return _padded(code, "%given", str(gate * LANES))

    def bias(row: int) -> Lanes:
        return _padded(code, "%bias", code.emit("i64", f"add i64 %bias_at, {row * LANES}").name)

    def state() -> Lanes:
        return load(code, "%before", "%bx", "float")

    load, store = (load_masked, store_masked) if form.is_masked else (_load, _store)
    code.lines.append(f"%bias_at = mul i64 %j{number}, {kind.biases * LANES}")
    if kind is CellKind.LSTM:
        peepholes: list[Lanes] = []
        if form.has_peepholes:
            first = code.emit("i64", f"mul i64 %j{number}, {3 * LANES}").name
            for gate in range(3):
                place = code.emit("i64", f"add i64 {first}, {gate * LANES}").name
                peepholes.append(_padded(code, "%peepholes", place))
        memory = load(code, "%memory_before", "%mx", "float")
        hidden, memory = lstm(code, sums(0), memory, peepholes)
        store(code, "%own_memory", "%cx", memory)
    elif kind is CellKind.LINEAR_BEFORE_RESET:
        update, reset, new = (_padded(code, "%sum", str(gate * LANES)) for gate in range(3))
        update, reset = (
            sigmoid(code, code.add(code.add(gate, ready(row)), bias(row))) for row, gate in enumerate((update, reset))
        )
        new = code.add(code.add(ready(2), bias(2)), code.mul(reset, code.add(new, bias(3))))
        hidden = gru_state(code, update, new, state())
    elif number == 0:
        update, reset = (sigmoid(code, gate) for gate in sums(0))
        _store(code, "%kept", "%po", update)
        _store(code, "%left_state", "%po", code.mul(reset, state()))
        return
    else:
        (new,) = sums(2)
        hidden = gru_state(code, _padded(code, "%kept", "%po"), new, state())
    store(code, "%now", "%nx", hidden)
    if form.keeps_last:
        mask = f"<{LANES} x i1>"
        there = f"{mask} %mask" if form.is_masked else f"{mask} splat (i1 true)"
        only = code.emit("i1", f"select i1 %is_last, {there}, {mask} zeroinitializer")
        place = code.emit("ptr", "getelementptr float, ptr %own_last, i64 %cx")
        name = f"@llvm.masked.store.v{LANES}f32.p0"
        code.declared.add(f"declare void {name}({_VECTOR}, ptr, i32, {mask})")
        code.lines.append(f"call void {name}({_VECTOR} {hidden.name}, ptr {place.name}, i32 4, {mask} {only.name})")


def _padded(code: Code, base: str, index: str) -> Lanes:
    """Lanes of memory that has whole panels."""
    return _load(code, base, index, "float")


def _load(code: Code, base: str, index: str, type: str) -> Lanes:
    place = code.emit("ptr", f"getelementptr {type}, ptr {base}, i64 {index}")
    return code.emit(type, f"load {_VECTOR}, ptr {place.name}, align 4")


def _store(code: Code, base: str, index: str, lanes: Lanes) -> None:
    place = code.emit("ptr", f"getelementptr {lanes.type}, ptr {base}, i64 {index}")
    code.lines.append(f"store {lanes.vector} {lanes.name}, ptr {place.name}, align 4")


def _renamed(lines: list[str], number: int) -> list[str]:
    """Lines whose registers and labels are called after the product, for a step may have two."""
    own = {found[1] or found[2] for line in lines if (found := _DEFINED.match(line))}
    return [_USED.sub(lambda used: used[0] + f"_{number}" if used[1] in own else used[0], _labelled(line, own, number))
            for line in lines]  # fmt: skip


def _labelled(line: str, own: set[str], number: int) -> str:
    return f"{line[:-1]}_{number}:" if line.endswith(":") and line[:-1] in own else line


_DEFINED = re.compile(r"\s*%([\w.]+) =|([\w.]+):$")
_USED = re.compile(r"%([\w.]+)")
