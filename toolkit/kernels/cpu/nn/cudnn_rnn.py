"""Recurrent networks of several layers in one op, as cuDNN has them: CudnnRNN, CudnnRNNBackprop and their versions.

TensorFlow has them on GPUs only. LSTM, GRU (reset after the product with the state), and plain cells of relu and
tanh; one direction or two; layers on top of each other; sequences of their own lengths, whose outputs behind the end
are zero and whose states stay. float16 and bfloat16 are computed in float32; memory and state are rounded in each step.

Dropout is between layers, in training only. Its numbers are the node's own (`seed`, `seed2`), not cuDNN's.

Arguments that do not fit are InvalidArgumentErrors; TensorFlow reports those that only cuDNN notices (a buffer of
another size, lengths out of range) as cuDNN's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text, wide
from toolkit.kernels.cpu.nn.cudnn_cells import GRADIENTS, STEPS, lstm_state
from toolkit.kernels.cpu.random.basic import RESERVED, guarded
from toolkit.kernels.random import distributions
from toolkit.kernels.recurrent_params import (
    BufferPart,
    LayerParams,
    RecurrentModel,
    RecurrentProblem,
    RecurrentSettings,
)
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": FLOATING}


def lengths_of(sequence_lengths: Array) -> list[int]:
    """The steps of each example."""
    require(np.ndim(sequence_lengths) == 1, f"sequence_lengths must be a vector, got {shape_text(sequence_lengths)}")
    return np.asarray(sequence_lengths).tolist()


def keep_scale(dropout: float) -> float:
    """What is kept is multiplied by it, so that its mean stays."""
    return 1 / (1 - dropout) if dropout < 1 else 0.0


class _Layer:
    """A layer in one direction.

    Args:
        buffer: the network's params, wide.
        dtype: what memory and state are rounded to.
    """

    def __init__(self, model: RecurrentModel, places: LayerParams, buffer: Array, dtype: Any):
        self.model, self._dtype = model, dtype
        self.by_input, self.by_state = part_of(buffer, places.by_input), part_of(buffer, places.by_state)
        self.projection = part_of(buffer, places.projection) if places.projection else None
        self.input_bias, self.state_bias = part_of(buffer, places.input_bias), part_of(buffer, places.state_bias)

    def settled(self, value: Array) -> Array:
        return wide(value.astype(self._dtype, copy=False))

    def products(self, x: Array) -> Array:
        """By the inputs of all steps."""
        if not self.by_input.shape[1]:  # added as they are, to each gate
            return np.tile(x, self.model.gates) + self.input_bias
        return x @ self.by_input.T + self.input_bias


def part_of(buffer: Array, part: BufferPart) -> Array:
    """A tensor in a flat array, as a view."""
    return buffer[part.offset : part.end].reshape(part.shape)


def _active(problem: RecurrentProblem) -> Sequence[Array | None]:
    """Step by step which examples have it, [batch, 1]; None where all have."""
    if problem.lengths is None:
        return [None] * problem.steps
    lengths = np.asarray(problem.lengths)[:, None]
    return [lengths > step for step in range(problem.steps)]


class Network:
    """A run of a network over arrays that are [time, batch, channels] and [layers * directions, batch, units].

    Args:
        params: the buffer.
        reserve: what the gradient will need, of `layout`'s size; written by `forward`. None where there will be no
            gradient, for which nothing of a step is kept but the state.
    """

    def __init__(self, problem: RecurrentProblem, params: Array, reserve: Array | None, dropout: float):
        self.problem, self.model, self.dropout = problem, problem.model, dropout
        self._dtype = params.dtype
        self.layout = problem.reserve(dropout)
        self._reserve = reserve
        buffer = wide(params)
        self._layers = [_Layer(self.model, places, buffer, self._dtype) for places in self.model.params]
        self._active = _active(problem)

    def _saved(self, part: BufferPart) -> Array:
        assert self._reserve is not None, "a gradient of a network that has kept nothing for it"
        return part_of(self._reserve, part)

    def _kept(self, part: BufferPart | None) -> Array | None:
        """Where `forward` writes what the gradient needs; None where it is not asked for, or the mode has no such."""
        return None if part is None or self._reserve is None else part_of(self._reserve, part)

    def _without_padding(self, x: Array) -> Array:
        """Sequences with zeros behind their ends: what is there, NaN say, is in no product."""
        return x if self.problem.lengths is None else np.where(np.stack(self._active), x, np.zeros((), x.dtype))

    def _runs(self, layer: int) -> Iterator[tuple[int, _Layer, list[tuple[int, int, int]]]]:
        """Of a layer: the number among all, and for each step its place, that of the state before and of the one
        behind."""
        for direction in range(self.model.directions):
            at = layer * self.model.directions + direction
            steps = range(self.problem.steps)
            order = [(t, t + 1, t) for t in reversed(steps)] if direction else [(t, t, t + 1) for t in steps]
            yield at, self._layers[at], order

    def forward(self, x: Array, h: Array, c: Array | None, masks: Sequence[Array]) -> tuple[Array, Array, Array | None]:
        """All outputs, the last states and the last memories."""
        problem, model, dtype = self.problem, self.model, self._dtype
        last_h = np.empty(h.shape, dtype)
        last_c = None if c is None else np.empty(c.shape, dtype)
        given, out = self._without_padding(x), np.zeros(problem.output, dtype)
        for layer in range(model.layers):
            if layer:
                given = out if not masks else (wide(out) * wide(masks[layer - 1])).astype(dtype)
                if (inputs := self._kept(self.layout.inputs[layer - 1])) is not None:
                    inputs[...] = given
                out = np.zeros(problem.output, dtype)
            for at, cell, order in self._runs(layer):
                side = at % model.directions * model.state
                part = out[..., side : side + model.state]
                state, memory = self._run(at, cell, order, wide(given), (h[at], None if c is None else c[at]), part)
                last_h[at] = state
                if last_c is not None:
                    last_c[at] = memory
        for place, mask in zip(self.layout.masks, masks, strict=True):
            self._saved(place)[...] = mask
        return out, last_h, last_c

    def _run(self, at: int, cell: _Layer, order: list[tuple[int, int, int]], x: Array,
             first: tuple[Array, Array | None], out: Array) -> tuple[Array, Array | None]:  # fmt: skip
        """The last state and the last memory; writes the others to `out`."""
        places, step = self.layout.layers[at], STEPS[self.model.mode]
        states, memories, gates = (self._kept(part) for part in (places.states, places.memories, places.gates))
        begin = order[0][1] if order else 0
        state, memory = wide(first[0]), None if first[1] is None else wide(first[1])
        if states is not None:
            states[begin] = state
        if memories is not None:
            memories[begin] = memory
        products, turned = cell.products(x), np.ascontiguousarray(cell.by_state.T)
        for t, _, after in order:
            made = step(products[t], state @ turned + cell.state_bias, state, memory)
            found = made.state if cell.projection is None else cell.settled(made.state) @ cell.projection.T
            found, active = cell.settled(found), self._active[t]
            if active is None:
                out[t] = found
            else:
                out[t] = np.where(active, found, 0)
                found = np.where(active, found, state)
            state = found
            if states is not None:
                states[after] = state
            if made.memory is not None:
                kept = cell.settled(made.memory)
                memory = kept if active is None else np.where(active, kept, memory)
                if memories is not None:
                    memories[after] = memory
            if gates is not None:
                gates[t] = made.gates
        return state, memory

    def backward(
        self, x: Array, out_grad: Array, h_grad: Array, c_grad: Array | None
    ) -> tuple[Array, Array, Array, Array]:
        """The gradients by the inputs, the first states, the first memories and params."""
        model = self.model
        into_h, into_c = wide(h_grad).copy(), None if c_grad is None else wide(c_grad).copy()
        by_params = np.zeros(model.size, into_h.dtype)
        grad = wide(out_grad)
        for layer in reversed(range(model.layers)):
            given = wide(self._saved(self.layout.inputs[layer - 1]) if layer else self._without_padding(x))
            by_given = np.zeros(given.shape, into_h.dtype)
            for at, cell, order in self._runs(layer):
                side = at % model.directions * model.state
                first = (into_h[at], None if into_c is None else into_c[at])
                part = grad[..., side : side + model.state]
                products, state, memory = self._back(at, cell, order, part, first, by_params)
                into_h[at] = state
                if into_c is not None:
                    into_c[at] = memory
                rows, places = products.reshape(-1, products.shape[-1]), model.params[at]
                part_of(by_params, places.input_bias)[...] = rows.sum(axis=0)
                if cell.by_input.shape[1]:
                    part_of(by_params, places.by_input)[...] = rows.T @ given.reshape(-1, given.shape[-1])
                    by_given += products @ cell.by_input
                else:
                    by_given += products.reshape(*given.shape[:2], model.gates, model.units).sum(axis=2)
            grad = by_given
            if layer and self.layout.masks:
                grad = grad * wide(self._saved(self.layout.masks[layer - 1]))
        return grad, into_h, into_c if into_c is not None else into_h[:0], by_params

    def _back(self, at: int, cell: _Layer, order: list[tuple[int, int, int]], out_grad: Array,
              last: tuple[Array, Array | None], by_params: Array) -> tuple[Array, Array, Array | None]:  # fmt: skip
        """The gradients by products with the inputs, by the first state and by the first memory; writes those by the
        weights of the state."""
        model, places, back = self.model, self.layout.layers[at], GRADIENTS[self.model.mode]
        states = wide(self._saved(places.states))
        memories = wide(self._saved(places.memories)) if places.memories else None
        gates = wide(self._saved(places.gates)) if places.gates else np.zeros((len(self._active), 1), states.dtype)
        shape = (self.problem.steps, self.problem.batch, model.gates * model.units)
        by_input, by_state = np.zeros(shape, states.dtype), np.zeros(shape, states.dtype)
        into, memory = last
        weights = model.params[at]
        by_projection = part_of(by_params, weights.projection) if weights.projection else None
        for t, before, after in reversed(order):
            active = self._active[t]
            grad = into + out_grad[t]
            if active is not None:
                grad = np.where(active, grad, 0)
            around = None if memories is None else (memories[before], memories[after])
            inner = grad
            if cell.projection is not None and by_projection is not None and around is not None:
                by_projection += grad.T @ cell.settled(lstm_state(gates[t], around[1]))
                inner = grad @ cell.projection
            found = back(gates[t], (states[before], states[after]), around, inner,
                         memory if active is None or memory is None else np.where(active, memory, 0))  # fmt: skip
            by_input[t], by_state[t] = found.by_input, found.by_state
            passed = found.by_state @ cell.by_state
            if found.past is not None:
                passed = passed + found.past
            into = passed if active is None else np.where(active, passed, into)
            if found.memory is not None:
                memory = found.memory if active is None else np.where(active, found.memory, memory)
        past = states[1:] if order and order[0][1] else states[:-1]
        flat = by_state.reshape(-1, shape[2])
        part_of(by_params, weights.by_state)[...] = flat.T @ past.reshape(-1, model.state)
        part_of(by_params, weights.state_bias)[...] = flat.sum(axis=0)
        return by_input, into, memory


def _turned(value: Array, time_major: bool) -> Array:
    """Between time first and batch first, for sequences and for states."""
    return value if time_major else np.ascontiguousarray(np.swapaxes(value, 0, 1))


@kernel("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", types=_TYPES, kind=Kind.STATEFUL)
def cudnn_rnn(op: KernelNode) -> Compute:
    """Outputs: all states of the last layer, the last states, the last memories, reserve_space, and from V2 on
    host_reserved, which is empty."""
    settings, generator = RecurrentSettings.of(op), guarded(op)
    training, count = op.attr("is_training"), len(op.output_types)
    dropout = settings.dropout if training else 0.0

    def compute(step: StepContext, x: Array, h: Array, c: Array, params: Array, *lengths: Array) -> list[Array]:
        problem = RecurrentProblem.of(settings, x, h, c, params, lengths_of(lengths[0]) if lengths else None)
        layout, dtype = problem.reserve(dropout), params.dtype
        reserve = np.zeros(layout.size, dtype) if training else None
        masks: list[Array] = []
        for place in layout.masks:
            source = generator(step).reserve(place.size * RESERVED)
            drawn = distributions.fill(source, place.shape, np.float32, distributions.uniform)
            masks.append(np.where(drawn < dropout, 0, keep_scale(dropout)).astype(dtype))
        network = Network(problem, params, reserve, dropout)
        first, state = (_turned(value, settings.time_major) for value in (x, h))
        memory = _turned(c, settings.time_major) if problem.model.has_memory else None
        out, *last = network.forward(first, state, memory, masks)
        outputs = [_turned(value, settings.time_major) for value in (out, last[0])]
        outputs.append(np.zeros((), dtype) if last[1] is None else _turned(last[1], settings.time_major))
        outputs.append(np.zeros((), dtype) if reserve is None else reserve)
        return outputs if count == 4 else [*outputs, np.zeros((0,), np.int8)]

    return compute


def check_gradient(problem: RecurrentProblem, settings: RecurrentSettings, x: Any, h: Any, c: Any,
                   rest: Sequence[Any]) -> None:  # fmt: skip
    """Refuse what does not fit a gradient.

    Args:
        rest: output, output_h, output_c, their gradients, and reserve_space.

    Raises:
        InvalidArgumentError: so.
    """
    steps, batch, width = problem.output
    output = problem.output if settings.time_major else (batch, steps, width)
    kept = c.shape if problem.model.has_memory else None
    names = ("output", "output_h", "output_c", "output_backprop", "output_h_backprop", "output_c_backprop")
    for name, value, shape in zip(names, rest, (output, h.shape, kept) * 2, strict=False):
        if shape is not None and tuple(value.shape) != tuple(shape):
            require(False, f"{name} must have shape {shape_text(shape)}, got {shape_text(value.shape)}")
    size = problem.reserve(settings.dropout).size
    found = math.prod(rest[6].shape)
    require(
        found == size,
        f"reserve_space has {found} elements, this network leaves {size}; is it of a forward op with is_training, of "
        "the same attributes, and of this runtime?",
    )


@kernel("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", types=_TYPES)
def cudnn_rnn_backprop(op: KernelNode) -> Compute:
    """Outputs: the gradients by input, input_h, input_c (zeros where the mode has none) and params."""
    settings, has_lengths = RecurrentSettings.of(op), op.op.endswith("V3")

    def compute(x: Array, h: Array, c: Array, params: Array, *rest: Array) -> list[Array]:
        lengths, rest = (lengths_of(rest[0]), rest[1:]) if has_lengths else (None, rest)
        problem = RecurrentProblem.of(settings, x, h, c, params, lengths)
        check_gradient(problem, settings, x, h, c, rest)
        out_grad, h_grad, c_grad = rest[3:6]
        network = Network(problem, params, rest[6].reshape(-1), settings.dropout)
        first, out_grad, h_grad = (_turned(value, settings.time_major) for value in (x, out_grad, h_grad))
        memory = _turned(c_grad, settings.time_major) if problem.model.has_memory else None
        by_x, by_h, by_c, by_params = network.backward(first, out_grad, h_grad, memory)
        if not problem.model.has_memory:
            by_c = np.zeros(c.shape, c.dtype)
        else:
            by_c = _turned(by_c, settings.time_major)
        found = (_turned(by_x, settings.time_major), _turned(by_h, settings.time_major), by_c, by_params)
        return [value.astype(x.dtype, copy=False) for value in found]

    return compute
