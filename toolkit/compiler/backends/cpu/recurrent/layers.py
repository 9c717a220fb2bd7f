"""Primitives for layers of recurrent cells over all time steps, and the ops that are such layers or single cells."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import Operand, alone, fixed, make, packed
from toolkit.compiler.backends.cpu.networks.hosts import lowering
from toolkit.compiler.backends.cpu.recurrent.compiled import write_compiled_layer
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.recurrent import (
    CellWeights,
    GruLayer,
    LinearBeforeResetGruLayer,
    LstmLayer,
    RecurrentLayer,
)
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_float
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.memory import Desc, any_layout, strided
from toolkit.kernels.cpu.onednn.primitive import FORWARD_INFERENCE, Arg, DescriptorQuery
from toolkit.kernels.tensors import F32
from toolkit.target.thresholds import PrimitiveThresholds

_FORWARD, _BACKWARD = 1, 2  # dnnl_unidirectional_left2right, dnnl_unidirectional_right2left
#: oneDNN's names
_PRIMITIVES: dict[type[RecurrentLayer], str] = {
    LstmLayer: "lstm_forward", GruLayer: "gru_forward", LinearBeforeResetGruLayer: "lbr_gru_forward",
}  # fmt: skip


def write_layer(emitter: Emitter, operation: RecurrentLayer) -> None:
    """One layer, one direction."""
    if operation.shares:
        write_compiled_layer(emitter, operation)
    else:
        _write_primitive(emitter, operation)


def _write_primitive(emitter: Emitter, operation: RecurrentLayer) -> None:
    """Tensors are (layers, directions, ...) for oneDNN, weights l, d, in, gates, units."""
    weights, x, initial = operation.weights, operation.input, operation.initial
    sequence, *last = operation.outputs
    assert x.shape is not None and sequence.shape is not None
    source = _sequence(x.shape, operation.length, batch_major=operation.batch_major_input)
    target = _sequence(sequence.shape, operation.length, batch_major=operation.batch_major_output)
    batch = sequence.shape[0 if operation.batch_major_output else -2]
    state = memory.dense((1, 1, batch, weights.units), F32)
    is_lstm = isinstance(operation, LstmLayer)
    states = 2 if is_lstm else 1
    shapes = [(1, 1, *array.shape) for array in (weights.layer, weights.iteration, weights.bias)]
    before = [state if initial else None] * states
    after = [state if last else None] * states
    peepholes = memory.dense((1, 1, 3, weights.units), F32) if weights.peepholes is not None else None
    of_lstm = [peepholes, None] if is_lstm else []  # no projection
    way = _BACKWARD if operation.backward else _FORWARD
    with alone(batch * weights.multiplications, emitter.target.threads.product_in_loops):
        # all of oneDNN's code for GRUs is called "ref"; it is products by gemm with compiled gates, and no slower
        # than the LSTM that is called "brgemm"
        primitive = make(
            operation, _PRIMITIVES[type(operation)], FORWARD_INFERENCE, way, source, *before,
            any_layout(shapes[0], F32), any_layout(shapes[1], F32), *of_lstm, memory.dense(shapes[2], F32), target,
            *after, 0, allow_reference=True,
        )  # fmt: skip
    arguments: list[Operand] = [
        (Arg.SRC, x, source),
        (Arg.DST, sequence, target),
        (Arg.WEIGHTS, _packed(weights.layer, shapes[0], primitive.desc(DescriptorQuery.WEIGHTS)), None),
        (Arg.WEIGHTS_1, _packed(weights.iteration, shapes[1], primitive.desc(DescriptorQuery.WEIGHTS, 1)), None),
        (Arg.BIAS, fixed(weights.bias, memory.dense(shapes[2], F32)), None),
    ]
    arguments += [(arg, value, state) for arg, value in zip((Arg.SRC_1, Arg.SRC_2), initial, strict=False)]
    arguments += [(arg, value, state) for arg, value in zip((Arg.DST_1, Arg.DST_2), last, strict=False)]
    if peepholes is not None:
        arguments.append((Arg.WEIGHTS_2, fixed(weights.peepholes, peepholes), None))
    emitter.execute(primitive, arguments)


def _sequence(shape: Sequence[int], length: int, *, batch_major: bool) -> Desc:
    """The first steps of a sequence as oneDNN sees it: time, batch, channels; batch-major ones by strides.

    A matrix is a sequence of one step.
    """
    first, second, channels = shape if len(shape) == 3 else (1, *shape)
    if batch_major:
        return strided((length, first, channels), F32, (channels, second * channels, 1))
    return strided((length, second, channels), F32, (second * channels, channels, 1))


def _packed(array: Any, shape: tuple[int, ...], wanted: Desc) -> Any:
    return packed(np.ascontiguousarray(array), memory.dense(shape, F32), wanted)


# -- ops that are whole cells ----------------------------------------------------------------------------------------


#: where the gates i, f, c, o of oneDNN are among those of the op
_FIRST, _SECOND = (0, 2, 1, 3), (0, 1, 2, 3)


@lowering("LSTMBlockCell", order=_FIRST, is_cell=True)
@lowering("BlockLSTM", order=_FIRST)
@lowering("BlockLSTMV2", order=_SECOND)
def _block_lstm(
    operation: Operation, sizes: PrimitiveThresholds, *, order: Sequence[int], is_cell: bool = False
) -> bool:
    """One step, or all steps, of an LSTM; of the outputs i, cs, f, o, ci, co, h the primitive for all makes only h.

    Args:
        order: where oneDNN's gates are among those of the op.
        is_cell: it is one step.
    """
    node = operation.step.node
    x, memory, hidden, w, *peepholes, b = operation.inputs[-8:]
    _, cs, _, _, _, _, h = operation.outputs
    peepholes = peepholes if node.attr("use_peephole", False) else []
    if node.attr("cell_clip", 0.0) > 0:
        return False
    if not _can_be_layer(
        operation, [x, memory, hidden], [w, b, *peepholes], [h, cs] if is_cell else [h], 2 if is_cell else 3
    ):
        return False
    length, batch, rows = _as_sequence(x)
    units = (w.shape or (0,))[-1] // 4
    expected = [(rows + units, 4 * units), (batch, units), (batch, units), (4 * units,)]
    if [value.shape for value in (w, memory, hidden, b)] != expected or any(p.shape != (units,) for p in peepholes):
        return False
    if not is_cell and (not operation.inputs[0].is_constant or int(operation.inputs[0].constant) != length):
        return False
    order = list(order)
    gates = np.asarray(w.constant).reshape(-1, 4, units)[:, order]
    bias = np.asarray(b.constant).reshape(4, units)[order]
    bias[1] += np.float32(node.attr("forget_bias", 0.0))
    seen = np.stack([peephole.constant for peephole in peepholes]) if peepholes else None
    weights = CellWeights(gates[:rows], gates[rows:], bias, seen)
    last = [Value(h.dtype, hidden.shape), cs] if cs.is_needed else []
    operation.become(LstmLayer, input=x, initial=(hidden, memory), weights=weights, length=length, outputs=[h, *last])
    return True


@lowering("GRUBlockCell")
def _gru_block_cell(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """One step of a GRU; outputs r, u, c, h."""
    x, hidden, w_ru, w_c, b_ru, b_c = operation.inputs
    h = operation.outputs[3]
    if not _can_be_layer(operation, [x, hidden], [w_ru, w_c, b_ru, b_c], [h], 2):
        return False
    length, batch, rows = _as_sequence(x)
    units = (w_c.shape or (0,))[-1]
    if (w_ru.shape, w_c.shape, hidden.shape) != ((rows + units, 2 * units), (rows + units, units), (batch, units)):
        return False
    reset, update = np.split(np.asarray(w_ru.constant), 2, axis=1)
    gates = np.stack([update, reset, w_c.constant], axis=1)
    bias = np.concatenate([np.roll(b_ru.constant, units), b_c.constant]).reshape(3, units)
    weights = CellWeights(gates[:rows], gates[rows:], bias)
    operation.become(GruLayer, input=x, initial=(hidden,), weights=weights, length=length, outputs=[h])
    return True


def _can_be_layer(
    operation: Operation, inputs: list[Value], constants: list[Value], made: list[Value], rank: int
) -> bool:
    """Whether shapes and weights are known and only what a primitive makes is asked for.

    Args:
        rank: of the input.
    """
    if any(value.is_needed for value in operation.outputs if value not in made):
        return False
    if not all(map(is_float, [*inputs, *constants, *made])) or not all(value.is_constant for value in constants):
        return False
    return len(inputs[0].shape or ()) == rank


def _as_sequence(x: Value) -> tuple[int, int, int]:
    """Time, batch and channels of a sequence, or of a matrix, which is a sequence of one step."""
    assert x.shape is not None
    *length, batch, channels = x.shape
    return (*length, 1)[0], batch, channels
