"""cuDNN's recurrent networks, all layers and directions of which are one op, as layers one behind the other.

LSTM and GRU of float32 whose weights are known, without projection, all of whose sequences are whole. What only the
gradient asks for is not made; in training a network is the same as long as nothing is left out between its layers.
Anything else stays a call of the op's kernel.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.networks.hosts import lowering
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.memory import Alias, Concat
from toolkit.compiler.ir.operations.recurrent import (
    CellWeights,
    LinearBeforeResetGruLayer,
    LstmLayer,
    RecurrentLayer,
)
from toolkit.compiler.ir.value import Value
from toolkit.compiler.transforms.elements import is_float
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.recurrent_params import BufferPart, LayerParams, RecurrentProblem, RecurrentSettings
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32
from toolkit.target.thresholds import PrimitiveThresholds

_LAYERS: dict[str, type[RecurrentLayer]] = {"lstm": LstmLayer, "gru": LinearBeforeResetGruLayer}
#: where the gates of a layer are among cuDNN's
_ORDERS = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2)}
#: outputs of the op: of all steps, the last h and the last c; what is behind them is the gradient's
_RESULTS = 3


@lowering("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def _network(operation: Operation, sizes: PrimitiveThresholds) -> bool:
    """All layers, from the first on."""
    settings = RecurrentSettings.of(KernelNode(operation.step.node))
    problem = _problem(operation, settings)
    if problem is None:
        return False
    block, model = operation.block, problem.model
    assert block is not None
    x, h, c, params = operation.inputs[:4]
    states = [h, c] if model.has_memory else [h]
    is_zero = all(value.is_constant and not np.any(value.constant) for value in states)
    wants = [operation.outputs[1 + i].is_needed for i in range(len(states))]
    cells = model.layers * model.directions
    if not settings.time_major and cells > 1 and (not is_zero or any(wants)):
        return False  # states of one example are together there
    made: list[Operation] = []
    last: list[list[Value]] = [[] for _ in states]
    given, batch_first = x, not settings.time_major
    shape = (problem.batch, problem.steps) if batch_first else (problem.steps, problem.batch)
    end = (problem.batch, 1, model.units) if batch_first else (1, problem.batch, model.units)
    for layer in range(model.layers):
        is_end = layer == model.layers - 1
        rows = shape if is_end else (problem.steps, problem.batch)
        sequences: list[Value] = []
        for direction in range(model.directions):
            at = layer * model.directions + direction
            initial = [] if is_zero else [_state(value, at, cells, made, operation) for value in states]
            ends = [Value(F32, end) for _ in states] if any(wants) else []
            for each, value in zip(last, ends, strict=False):
                each.append(value)
            sequences.append(Value(F32, (*rows, model.units)))
            cell = _LAYERS[model.mode](
                input=given, initial=tuple(initial), weights=_weights(params.constant, model.params[at], model.mode),
                length=problem.steps, batch_major_input=batch_first and not layer,
                batch_major_output=batch_first and is_end, backward=bool(direction),
                outputs=[sequences[-1], *ends], steps=[operation.step], conditions=operation.conditions,
            )  # fmt: skip
            made.append(cell)
        given = _joined(sequences, 2, made, operation)
    block.insert_before(operation, made)
    joins: list[Operation] = []
    results = [given, *(_joined(each, 0, joins, operation) for each in last if each)]
    block.insert_before(operation, joins)
    for output, value in zip(operation.outputs, results, strict=False):
        block.replace_value(output, value)
    block.remove([operation])
    return True


def _problem(operation: Operation, settings: RecurrentSettings) -> RecurrentProblem | None:
    """The network, if layers compute all of it that is asked for."""
    node, (x, h, c, params, *lengths) = operation.step.node, operation.inputs
    if settings.mode not in _LAYERS or settings.projection or (node.attr("is_training") and settings.dropout > 0):
        return None
    if any(output.is_needed for output in operation.outputs[_RESULTS if settings.mode == "lstm" else 2 :]):
        return None
    states = [h, c] if settings.mode == "lstm" else [h]
    if not all(map(is_float, [x, *states, params, operation.output])) or not params.is_constant:
        return None
    if lengths and not lengths[0].is_constant:
        return None
    try:
        known = np.asarray(lengths[0].constant).tolist() if lengths else None
        problem = RecurrentProblem.of(settings, x, h, c, params, known)
    except InvalidArgumentError:
        return None  # which the kernel tells
    is_whole = problem.lengths is None and problem.steps and problem.batch and problem.model.inputs
    return problem if is_whole else None


def _state(value: Value, at: int, cells: int, made: list[Operation], operation: Operation) -> Value:
    """What a layer begins with: a row of the op's states."""
    if cells == 1:
        return value
    assert value.shape is not None
    _, batch, units = value.shape
    row = Alias(
        input=value, start=at * batch * units, index=at, outputs=[Value(F32, (batch, units))], steps=[operation.step],
        conditions=operation.conditions,
    )  # fmt: skip
    made.append(row)
    return row.output


def _joined(values: list[Value], axis: int, made: list[Operation], operation: Operation) -> Value:
    """Values one behind the other."""
    if len(values) == 1:
        return values[0]
    shape = list(values[0].shape or ())
    shape[axis] = sum((value.shape or ())[axis] for value in values)
    join = Concat(
        parts=tuple(values), axis=axis, outputs=[Value(F32, tuple(shape))], steps=[operation.step],
        conditions=operation.conditions,
    )  # fmt: skip
    made.append(join)
    return join.output


def _weights(buffer: Any, places: LayerParams, mode: str) -> CellWeights:
    """Of a layer and direction; what is added to the same sum is added up."""
    order = list(_ORDERS[mode])
    flat = np.asarray(buffer)

    def taken(part: BufferPart) -> Any:
        return flat[part.offset : part.end].reshape(len(order), -1, *part.shape[1:])[order]

    by_state = taken(places.by_state)
    units = by_state.shape[1]
    if places.by_input.shape[1]:
        by_input = taken(places.by_input)
    else:  # inputs are added as they are
        by_input = np.broadcast_to(np.eye(units, dtype=flat.dtype), (len(order), units, units))
    given, own = taken(places.input_bias), taken(places.state_bias)
    bias = given + own
    if mode == "gru":  # the reset gate multiplies the new state's second bias, too
        bias = np.concatenate([bias[:2], given[2:], own[2:]])
    return CellWeights(by_input.transpose(2, 0, 1), by_state.transpose(2, 0, 1), bias)
