"""Cells that are one op, LSTMBlockCell and GRUBlockCell, are products and elementwise where a loop repeats them.

TensorFlow has a kernel for a cell's elementwise part. Here every chain becomes one kernel anyway, and what hides in the
op are the products: of what the step is given, which is one product of all steps in front of the loop
(`time_products`), and of the state. So with the gradients: those of the weights are one product behind the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolkit.compiler.backends.cuda.loops.made_nodes import MadeNodes, host_number, host_numbers
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.calls import Call, Loop
from toolkit.compiler.ir.value import Value
from toolkit.graph import dtypes
from toolkit.kernels.tensors import F32

Refused = Callable[[Operation], bool]
#: axes of a matrix
_MATRIX = 2
#: a number on the device, the same in each step
Constant = Callable[[float], Value]


def open_block_cells(block: Block, refused: Refused, constant: Constant) -> None:
    """Put products and elementwise operations in the place of cells in the bodies of loops.

    Args:
        refused: whether an operation must stay a call.
        constant: gives a float32 number on the device.
    """
    for operation in block.operations:
        for region in operation.regions():
            open_block_cells(region, refused, constant)
        if isinstance(operation, Loop) and not operation.predicates:
            for cell in operation.body.operations:
                opened = _CELLS.get(cell.op) if isinstance(cell, Call) else None
                if opened is not None and isinstance(cell, Call) and cell.is_plain and not refused(cell):
                    _open(operation.body, cell, opened, constant)


class _Made:
    """Operations in the place of a cell.

    Attributes:
        shape: of a state, [batch, units].
    """

    def __init__(self, cell: Call, constant: Constant, shape: tuple[int, int]):
        self._nodes = MadeNodes(cell)
        self.operations: list[Operation] = []
        self.constant = constant
        self.shape = shape

    def _add(self, op: str, given: Sequence[Value], shapes: Sequence[tuple[int, ...]], **attributes: object) -> Call:
        made = [Value(F32, shape) for shape in shapes]
        name = f"{op}_{len(self.operations)}"
        call = self._nodes.call(op, name, given, made, {"T": dtypes.float32, **attributes})
        self.operations.append(call)
        return call

    def of(self, op: str, *given: Value) -> Value:
        """An elementwise op, of numbers of a state."""
        return self._add(op, given, [self.shape]).output

    def joined(self, *parts: Value) -> Value:
        """Matrices side by side."""
        shape = self.shape[0], sum(relations.shape(part)[1] for part in parts)
        return self._add("ConcatV2", [*parts, host_number(1)], [shape], N=len(parts), Tidx=dtypes.int32).output

    def product(self, a: Value, w: Value, *, turned: bool = False) -> Value:
        """Of a matrix with another, or with that transposed."""
        shape = self.shape[0], relations.shape(w)[0 if turned else 1]
        return self._add("MatMul", [a, w], [shape], transpose_a=False, transpose_b=turned).output

    def biased(self, x: Value, bias: Value) -> Value:
        return self._add("BiasAdd", [x, bias], [relations.shape(x)], data_format="NHWC").output

    def parts(self, x: Value, count: int) -> list[Value]:
        """Of a matrix, so many side by side."""
        return list(self._add("Split", [host_number(1), x], [self.shape] * count, num_split=count).outputs)

    def behind(self, x: Value, width: int) -> tuple[Value, Value]:
        """The first columns of a matrix, and those behind them."""
        rows, columns = relations.shape(x)
        sizes = [(0, width), (width, columns - width)]
        one, other = (
            self._add("Slice", [x, host_numbers(0, begin), host_numbers(rows, count)], [(rows, count)],
                      Index=dtypes.int32).output
            for begin, count in sizes
        )  # fmt: skip
        return one, other

    def summed(self, x: Value) -> Value:
        """Over rows."""
        return self._add("BiasAddGrad", [x], [self.shape[1:]], data_format="NHWC").output


#: gives what stands in the place of the outputs of a cell, None for one that nobody may take
_Opened = Callable[[Call, _Made], list[Value | None] | None]


def _open(body: Block, cell: Call, opened: _Opened, constant: Constant) -> None:
    """One cell, if all about it is known."""
    if any(value.dtype != F32 or value.shape is None or 0 in value.shape for value in cell.inputs):
        return
    state = relations.shape(cell.inputs[1])
    if len(state) != _MATRIX or len(relations.shape(cell.inputs[0])) != _MATRIX:
        return
    made = _Made(cell, constant, (state[0], state[1]))
    outputs = opened(cell, made)
    if outputs is None or any(new is None and old.is_needed for old, new in zip(cell.outputs, outputs, strict=True)):
        return
    body.insert_before(cell, made.operations)
    for old, new in zip(cell.outputs, outputs, strict=True):
        if new is not None and old.is_needed:
            body.replace_value(old, new)
    body.erase(cell)
    for operation in reversed(made.operations):
        if not any(value.is_needed for value in operation.outputs):
            body.erase(operation)


def _lstm_fits(cell: Call) -> bool:
    """Whether the shapes are an LSTM's; what is wrong the kernel says."""
    x, cs, h, w, *peepholes, b = map(relations.shape, cell.inputs[:8])
    batch, units = cs
    fits = (h, w, b, x[0]) == (cs, (x[1] + units, 4 * units), (4 * units,), batch)
    return fits and (not cell.step.node.attr("use_peephole") or all(each == (units,) for each in peepholes))


def _lstm(cell: Call, made: _Made) -> list[Value | None] | None:
    """Outputs i, cs, f, o, ci, co, h."""
    x, before, h, w, wci, wcf, wco, b = cell.inputs
    node, of = cell.step.node, made.of
    if not _lstm_fits(cell) or node.attr("cell_clip") > 0:
        return None
    i, c, f, o = made.parts(made.biased(made.product(made.joined(x, h), w), b), 4)
    sees, forgets = node.attr("use_peephole"), node.attr("forget_bias")
    if sees:
        i, f = of("AddV2", i, of("Mul", before, wci)), of("AddV2", f, of("Mul", before, wcf))
    if forgets:
        f = of("AddV2", f, made.constant(forgets))
    i, c, f = of("Sigmoid", i), of("Tanh", c), of("Sigmoid", f)
    cs = of("AddV2", of("Mul", c, i), of("Mul", before, f))
    if sees:
        o = of("AddV2", o, of("Mul", cs, wco))
    o, co = of("Sigmoid", o), of("Tanh", cs)
    return [i, cs, f, o, c, co, of("Mul", co, o)]


def _lstm_back(cell: Call, made: _Made) -> list[Value | None] | None:
    """Outputs the gradients by the cell before, by the gates, and by the peepholes."""
    before, wci, wcf, wco = cell.inputs[1], *cell.inputs[4:7]
    i, cs, f, o, c, co, cs_grad, h_grad = rest = cell.inputs[8:]
    if not _lstm_fits(cell) or any(value.shape != before.shape for value in rest):
        return None
    of, sees = made.of, cell.step.node.attr("use_peephole")
    d_o = of("SigmoidGrad", o, of("Mul", h_grad, co))
    d_cs = of("AddV2", of("TanhGrad", co, of("Mul", h_grad, o)), cs_grad)
    if sees:
        d_cs = of("AddV2", d_cs, of("Mul", d_o, wco))
    d_c = of("TanhGrad", c, of("Mul", d_cs, i))
    d_f, d_i = of("SigmoidGrad", f, of("Mul", d_cs, before)), of("SigmoidGrad", i, of("Mul", d_cs, c))
    by_before = of("Mul", d_cs, f)
    peepholes: list[Value | None] = [None] * 3
    if sees:
        by_before = of("AddV2", of("AddV2", by_before, of("Mul", d_i, wci)), of("Mul", d_f, wcf))
        seen = ((d_i, before), (d_f, before), (d_o, cs))
        peepholes = [made.summed(of("Mul", gate, state)) for gate, state in seen]
    return [by_before, made.joined(d_i, d_c, d_f, d_o), *peepholes]


def _gru_fits(cell: Call) -> bool:
    x, h, w_ru, w_c, b_ru, b_c, *rest = map(relations.shape, cell.inputs)
    batch, units = h
    rows = x[1] + units
    wanted = ((rows, 2 * units), (rows, units), (2 * units,), (units,), batch)
    return (w_ru, w_c, b_ru, b_c, x[0]) == wanted and all(each == h for each in rest)


def _gru(cell: Call, made: _Made) -> list[Value | None] | None:
    """Outputs r, u, c, h."""
    if not _gru_fits(cell):
        return None
    (x, h, w_ru, w_c, b_ru, b_c), of = cell.inputs, made.of
    gates = made.parts(made.biased(made.product(made.joined(x, h), w_ru), b_ru), 2)
    r, u = (of("Sigmoid", gate) for gate in gates)
    c = of("Tanh", made.biased(made.product(made.joined(x, of("Mul", h, r)), w_c), b_c))
    rest = of("Sub", made.constant(1.0), u)
    return [r, u, c, of("AddV2", of("Mul", u, h), of("Mul", rest, c))]


def _gru_back(cell: Call, made: _Made) -> list[Value | None] | None:
    """Outputs the gradients by x, h, and what goes into c and into r and u side by side."""
    if not _gru_fits(cell):
        return None
    (x, h, w_ru, w_c, _, _, r, u, c, d_h), of = cell.inputs, made.of
    d_c = of("TanhGrad", c, of("Mul", d_h, of("Sub", made.constant(1.0), u)))
    width = relations.shape(x)[1]
    x_by_c, d_hr = made.behind(made.product(d_c, w_c, turned=True), width)
    d_r, d_u = of("SigmoidGrad", r, of("Mul", d_hr, h)), of("SigmoidGrad", u, of("Mul", d_h, of("Sub", h, c)))
    d_ru = made.joined(d_r, d_u)
    x_by_ru, h_by_ru = made.behind(made.product(d_ru, w_ru, turned=True), width)
    by_h = of("AddV2", of("AddV2", h_by_ru, of("Mul", d_hr, r)), of("Mul", d_h, u))
    made.shape = (made.shape[0], width)
    return [of("AddV2", x_by_ru, x_by_c), by_h, d_c, d_ru]


_CELLS: dict[str, _Opened] = {
    "LSTMBlockCell": _lstm, "LSTMBlockCellGrad": _lstm_back, "GRUBlockCell": _gru, "GRUBlockCellGrad": _gru_back,
}  # fmt: skip


def number_of_device(device: str) -> Constant:
    """Numbers in the memory of a GPU, each made once."""
    from toolkit.kernels.cuda.device import device_named

    known: dict[float, Value] = {}

    def constant(number: float) -> Value:
        array = known.get(number)
        if array is None:
            made = device_named(device).full((), F32, np.float32(number))
            array = known[number] = Value(F32, (), made)
        return Value(F32, (), array.constant)

    return constant
