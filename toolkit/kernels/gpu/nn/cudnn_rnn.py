"""cuDNN's recurrent networks on GPUs, in our own kernels: CudnnRNN, CudnnRNNBackprop and their versions.

For each layer and direction one product by the inputs of all steps, then in each step one by the state and one kernel
(`cudnn_kernels`); the gradient likewise, with one product for each kind of weights behind all steps. What is left
in `reserve_space` stands where the CPU leaves it (`toolkit.kernels.recurrent_params`), and so do the numbers of
dropout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np
from toolkit.kernels.cpu.nn.cudnn_rnn import check_gradient, keep_scale, lengths_of
from toolkit.kernels.cpu.random.basic import RESERVED, guarded
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.draws import drawn
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import TYPES
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.linalg.matmul import product
from toolkit.kernels.gpu.nn import cudnn_kernels as kernels
from toolkit.kernels.gpu.primitives.copying import copy_part
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.random.philox import fill_random
from toolkit.kernels.gpu.state.cells import aligned
from toolkit.kernels.gpu.state.updates import blocks_for, run_dense
from toolkit.kernels.gpu.state.variables import plus
from toolkit.kernels.recurrent_params import BufferPart, LayerParams, LayerReserve, RecurrentProblem, RecurrentSettings
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, Kind, kernel

_TYPES = {"T": FLOATING}


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a layer in one direction: its place in time, and those of the state before and behind it."""

    t: int
    before: int
    behind: int


class GpuNetwork:
    """A run of a network over tensors that are [time, batch, channels] and [layers * directions, batch, units].

    Args:
        reserve: what the gradient will need, of `layout`'s size, zeros at first.
    """

    def __init__(
        self, device: CudaDevice, problem: RecurrentProblem, params: GpuArray, reserve: GpuArray, dropout: float
    ):
        self.device, self.problem, self.model = device, problem, problem.model
        self.layout = problem.reserve(dropout)
        self._params, self._reserve, self._dropout = params, reserve, dropout
        self._dtype, self._type = params.dtype, TYPES[params.dtype.name]
        self._lengths = [] if problem.lengths is None else [lengths_tensor(device, problem.lengths)]

    def _kind(self, layer: int) -> kernels.RecurrentKind:
        model = self.model
        return kernels.RecurrentKind(
            model.mode, self._type, model.skips and not layer, bool(model.projection), bool(self._lengths)
        )

    def _ends(self, step: _Step) -> list[Any]:
        """The arguments of kernels where examples end."""
        return [*self._lengths, step.t] if self._lengths else []

    def _part(self, whole: GpuArray, part: BufferPart, shape: tuple[int, ...] | None = None) -> GpuArray:
        """A part of a buffer where libraries take it."""
        shape = part.shape if shape is None else shape
        return aligned(self.device, whole.viewed(self._dtype, shape, part.offset * self._dtype.itemsize))

    def _product(self, a: GpuArray, b: GpuArray, turns: str = "NN") -> GpuArray:
        """A product of matrices; "T" takes one transposed."""
        m, depth = a.shape if turns[0] == "N" else a.shape[::-1]
        n = b.shape[1] if turns[1] == "N" else b.shape[0]
        return product(self.device, a, b, (m, n), (m, n, depth), (turns[0], turns[1]), None)

    def _row(self, of: GpuArray, at: int) -> GpuArray:
        """A row of a tensor, in memory of its own."""
        shape = of.shape[1:]
        nbytes = math.prod(shape) * of.dtype.itemsize
        return self.device.copied(of.viewed(of.dtype, shape, at * nbytes))

    def _runs(self, layer: int) -> Iterator[tuple[int, LayerParams, LayerReserve, list[_Step]]]:
        """Of a layer: the number among all, its weights, what is left of it, and its steps in order."""
        for direction in range(self.model.directions):
            at = layer * self.model.directions + direction
            steps = range(self.problem.steps)
            order = [_Step(t, t + 1, t) for t in reversed(steps)] if direction else [_Step(t, t, t + 1) for t in steps]
            yield at, self.model.params[at], self.layout.layers[at], order

    def _without_padding(self, x: GpuArray) -> GpuArray:
        if not self._lengths or not x.size:
            return x
        made = self.device.empty(x.shape, x.dtype)
        self.device.launch(
            kernels.unpadded_kernel(self._type),
            blocks_for(x.size),
            x,
            *self._lengths,
            made,
            x.shape[1],
            x.shape[2],
            x.size,
        )
        return made

    def forward(
        self, x: GpuArray, h: GpuArray, c: GpuArray | None, uniform: Sequence[GpuArray]
    ) -> tuple[GpuArray, GpuArray, GpuArray | None]:
        """All outputs, the last states and the last memories.

        Args:
            uniform: for each layer but the first numbers in [0, 1) that say what of its inputs is dropped; or none.
        """
        device, problem, model = self.device, self.problem, self.model
        out = device.zeros(problem.output, self._dtype)
        states: list[GpuArray] = []
        memories: list[GpuArray] = []
        given = self._without_padding(x)
        for layer in range(model.layers):
            is_last = layer == model.layers - 1
            into, first = (out, 0) if is_last else (self._reserve, self.layout.inputs[layer].offset)
            for at, _, _, order in self._runs(layer):
                self._run(layer, at, given, (h, c), (into, first + at % model.directions * model.state), order)
                end = order[-1].behind if order else 0
                places = self.layout.layers[at]
                states.append(self._slot(places.states, end))
                if places.memories is not None:
                    memories.append(self._slot(places.memories, end))
            if is_last:
                break
            if uniform and uniform[layer].size:
                count = uniform[layer].size
                device.launch(
                    kernels.dropping_kernel(self._type), blocks_for(count), uniform[layer], self._reserve, first,
                    self.layout.masks[layer].offset, self._dropout, keep_scale(self._dropout), count,
                )  # fmt: skip
            given = self._part(self._reserve, self.layout.inputs[layer])
        return out, self._stacked(states), self._stacked(memories) if c is not None else None

    def _slot(self, part: BufferPart, at: int) -> GpuArray:
        """One of the states of a layer, as a tensor of [1, batch, width]."""
        shape = (1, *part.shape[1:])
        return self._reserve.viewed(self._dtype, shape, (part.offset + at * math.prod(shape)) * self._dtype.itemsize)

    def _stacked(self, rows: list[GpuArray]) -> GpuArray:
        made = joined(self.device, rows, 0)
        return self.device.copied(made) if len(rows) == 1 else made

    def _put(self, part: BufferPart, at: int, value: GpuArray) -> None:
        """Write one of the states of a layer."""
        size = value.size
        place = ElementLayout((size,), (1,), part.offset + at * size)
        copy_part(self.device, value, ElementLayout.dense((size,)), self._reserve, place)

    def _run(
        self, layer: int, at: int, given: GpuArray, first: tuple[GpuArray, GpuArray | None], out: tuple[GpuArray, int],
        order: Sequence[_Step],
    ) -> None:  # fmt: skip
        device, model, kind = self.device, self.model, self._kind(layer)
        batch, places, weights = self.problem.batch, self.layout.layers[at], model.params[at]
        begin = order[0].before if order else 0
        now = self._row(first[0], at)
        self._put(places.states, begin, now)
        if first[1] is not None and places.memories is not None:
            self._put(places.memories, begin, self._row(first[1], at))
        if not batch or not order:
            return
        rows = given.reshaped((math.prod(given.shape[:2]), given.shape[2]))
        products = rows if kind.skips else self._product(rows, self._part(self._params, weights.by_input), "NT")
        by_state = self._part(self._params, weights.by_state)
        projection = None if weights.projection is None else self._part(self._params, weights.projection)
        step_kernel, made = kernels.forward_kernel(kind), None
        count, width = batch * model.units, model.directions * model.state
        for step in order:
            behind = self._first(places.states, step.behind)
            after = device.empty(now.shape, self._dtype)
            target = (behind, after, out[0], out[1] + step.t * batch * width, width)
            arguments = [
                *self._ends(step), count, model.units,
                products, step.t * batch * products.shape[1], self._product(now, by_state, "NT"),
                self._params, weights.input_bias.offset, weights.state_bias.offset, now, self._reserve,
            ]  # fmt: skip
            if places.gates is not None:
                arguments.append(self._first(places.gates, step.t))
            if places.memories is not None:
                arguments += [self._first(places.memories, each) for each in (step.before, step.behind)]
            if projection is None:
                device.launch(step_kernel, blocks_for(count), *arguments, *target)
            else:
                made = device.empty((batch, model.units), self._dtype)
                device.launch(step_kernel, blocks_for(count), *arguments, made)
                found = self._product(made, projection, "NT")
                device.launch(
                    kernels.projected_kernel(kind), blocks_for(found.size), *self._ends(step), found.size, model.state,
                    found, now, self._reserve, *target,
                )  # fmt: skip
            now = after

    def _first(self, part: BufferPart, at: int) -> int:
        """The first element of a row of a part of what is left."""
        return part.offset + at * math.prod(part.shape[1:])

    def backward(
        self, x: GpuArray, out_grad: GpuArray, h_grad: GpuArray, c_grad: GpuArray | None
    ) -> tuple[GpuArray, GpuArray, GpuArray | None, GpuArray]:
        """The gradients by the inputs, the first states, the first memories and params."""
        device, model = self.device, self.model
        count = len(model.params)
        states: list[GpuArray | None] = [None] * count
        memories: list[GpuArray | None] = [None] * count
        pieces: dict[int, GpuArray] = {}
        grad = out_grad
        for layer in reversed(range(model.layers)):
            given = self._part(self._reserve, self.layout.inputs[layer - 1]) if layer else self._without_padding(x)
            total: GpuArray | None = None
            for at, _, _, order in self._runs(layer):
                by_given, states[at], memories[at] = self._back(layer, at, given, grad, (h_grad, c_grad), order, pieces)
                if total is None:
                    total = by_given
                elif total.size:
                    run_dense(device, "AddInto", plus, [total], by_given, [], 0)
            if total is not None:
                grad = total.reshaped(given.shape)
            if layer and self.layout.masks and grad.size:
                masked = device.empty(grad.shape, self._dtype)
                first = self.layout.masks[layer - 1].offset
                device.launch(
                    kernels.masked_kernel(self._type),
                    blocks_for(grad.size),
                    grad,
                    self._reserve,
                    first,
                    masked,
                    grad.size,
                )
                grad = masked
        flat = [pieces[offset] for offset in sorted(pieces)]
        into_h = self._stacked([each for each in states if each is not None])
        into_c = self._stacked([each for each in memories if each is not None]) if c_grad is not None else None
        return grad, into_h, into_c, joined(device, flat, 0)

    def _back(
        self, layer: int, at: int, given: GpuArray, grad: GpuArray, last: tuple[GpuArray, GpuArray | None],
        order: Sequence[_Step], pieces: dict[int, GpuArray],
    ) -> tuple[GpuArray, GpuArray, GpuArray | None]:  # fmt: skip
        """The gradients by the layer's inputs, its first state and its first memory; `pieces` gets those by weights."""
        device, model, kind, dtype = self.device, self.model, self._kind(layer), self._dtype
        steps, batch, weights, places = self.problem.steps, self.problem.batch, model.params[at], self.layout.layers[at]
        gated = model.gates * model.units
        into = self._row(last[0], at)
        memory = None if last[1] is None else self._row(last[1], at)
        beside = device.zeros(into.shape, dtype) if kind.has_past else None
        by_input = device.empty((steps * batch, gated), dtype)
        # but for a GRU's reset gate both products have the same gradient
        by_state = device.empty(by_input.shape, dtype) if model.mode == "gru" else by_input
        matrix = self._part(self._params, weights.by_state)
        projection = None if weights.projection is None else self._part(self._params, weights.projection)
        grads = device.empty((steps * batch, model.state), dtype) if projection is not None else None
        made = device.empty((steps * batch, model.units), dtype) if projection is not None else None
        count, stride = batch * model.units, model.directions * model.state
        side = at % model.directions * model.state
        for step in reversed(order) if batch else ():
            out = (grad, step.t * batch * stride + side, stride)
            passed = [device.empty(into.shape, dtype)] if kind.has_past else []
            before = [beside] if beside is not None else []
            if projection is None or grads is None or made is None:
                arguments: list[Any] = [into, *before, *out]
                behind: list[Any] = passed
            else:
                first = step.t * batch * model.state
                device.launch(
                    kernels.projected_gradient_kernel(kind), blocks_for(batch * model.state), *self._ends(step),
                    batch * model.state, model.state, into, *before, *out, grads, first, *passed,
                )  # fmt: skip
                row = aligned(device, grads.viewed(dtype, (batch, model.state), first * dtype.itemsize))
                arguments = [self._product(row, projection)]
                behind = [made, step.t * count]
            now = device.empty((batch, gated), dtype)
            saved = 0 if places.gates is None else self._first(places.gates, step.t)
            around = (step.before, step.behind)
            memories = [0 if places.memories is None else self._first(places.memories, each) for each in around]
            states = [self._first(places.states, each) for each in around]
            device.launch(
                kernels.gradient_kernel(kind), blocks_for(count), *self._ends(step), count, model.units, *arguments,
                self._reserve, saved, *memories, *states, *([] if memory is None else [memory]), by_input, by_state,
                step.t * batch * gated, now, *behind,
            )  # fmt: skip
            into = self._product(now, matrix)
            beside = passed[0] if passed else None
        if beside is not None and into.size:
            run_dense(device, "AddInto", plus, [into], beside, [], 0)
        self._weights(layer, at, given, by_input, by_state, pieces, order)
        if weights.projection is not None and grads is not None and made is not None:
            pieces[weights.projection.offset] = self._flat(self._product(grads, made, "TN"))
        first_state = into.reshaped((1, *into.shape))
        first_memory = None if memory is None else memory.reshaped((1, *memory.shape))
        return self._by_given(layer, at, by_input), first_state, first_memory

    def _flat(self, value: GpuArray) -> GpuArray:
        return value.reshaped((value.size,))

    def _weights(
        self, layer: int, at: int, given: GpuArray, by_input: GpuArray, by_state: GpuArray,
        pieces: dict[int, GpuArray], order: Sequence[_Step],
    ) -> None:  # fmt: skip
        """The gradients by a layer's matrices and biases, by their first elements in the buffer."""
        weights, states = self.model.params[at], self.layout.layers[at].states
        rows = math.prod(given.shape[:2])
        if not self._kind(layer).skips:
            flat = given.reshaped((rows, given.shape[2]))
            pieces[weights.by_input.offset] = self._flat(self._product(by_input, flat, "TN"))
        past = BufferPart(self._first(states, 1 if order and order[0].before else 0), (rows, self.model.state))
        pieces[weights.by_state.offset] = self._flat(
            self._product(by_state, self._part(self._reserve, past), "TN")
        )  # fmt: skip
        pieces[weights.input_bias.offset] = self._column_sums(by_input)
        same = by_state is by_input
        pieces[weights.state_bias.offset] = (
            pieces[weights.input_bias.offset] if same else self._column_sums(by_state)
        )  # fmt: skip

    def _column_sums(self, x: GpuArray) -> GpuArray:
        rows, columns = x.shape
        made = self.device.zeros((columns,), x.dtype)
        if rows:
            self.device.launch(kernels.column_sums_kernel(self._type), blocks_for(columns), x, made, rows, columns)
        return made

    def _by_given(self, layer: int, at: int, by_input: GpuArray) -> GpuArray:
        """The gradient by the inputs of a layer in one direction, [steps * batch, inputs]."""
        if not self._kind(layer).skips:
            return self._product(by_input, self._part(self._params, self.model.params[at].by_input))
        made = self.device.empty((by_input.shape[0], self.model.units), self._dtype)
        if made.size:
            kernel_ = kernels.over_gates_kernel(self._type, self.model.gates)
            self.device.launch(kernel_, blocks_for(made.size), by_input, made, self.model.units, made.size)
        return made


def lengths_tensor(device: CudaDevice, lengths: Sequence[int]) -> GpuArray:
    """The steps of each example, where kernels read them; in a recorded step they are among what is recorded."""
    if not device.is_recording:
        return device.to_device(np.asarray(lengths, np.int32))
    made, most = device.empty((len(lengths),), np.int32), kernels.LENGTHS_AT_ONCE
    for first in range(0, len(lengths), most):
        given = [*lengths[first : first + most], *[0] * most][:most]
        device.launch(kernels.lengths_kernel(), 1, made, first, len(lengths), *given)
    return made


def _turned(device: CudaDevice, value: GpuArray, time_major: bool) -> GpuArray:
    """Between time first and batch first, for sequences and for states."""
    if time_major:
        return value
    a, b, c = value.shape
    made = device.empty((b, a, c), value.dtype)
    copy_part(device, value, ElementLayout((b, a, c), (c, b * c, 1)), made, ElementLayout.dense((b, a, c)))
    return made


@kernel("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", types=_TYPES, kind=Kind.STATEFUL, device="GPU")
def cudnn_rnn(op: KernelNode) -> Compute:
    device, settings, generator = device_of(op.node), RecurrentSettings.of(op), guarded(op)
    training, count = op.attr("is_training"), len(op.output_types)
    dropout = settings.dropout if training else 0.0

    def compute(step: StepContext, x: Any, h: Any, c: Any, params: Any, *lengths: Any) -> list[Any]:
        problem = RecurrentProblem.of(settings, x, h, c, params, lengths_of(lengths[0]) if lengths else None)
        layout, dtype = problem.reserve(dropout), params.dtype
        reserve = device.zeros((layout.size,), dtype)
        uniform: list[GpuArray] = []
        for place in layout.masks:
            source = drawn(device, generator(step), place.size * RESERVED)
            uniform.append(fill_random(device, source, place.shape, np.float32, "Uniform"))
        network = GpuNetwork(device, problem, params, reserve, dropout)
        first, state = (_turned(device, value, settings.time_major) for value in (x, h))
        memory = _turned(device, c, settings.time_major) if problem.model.has_memory else None
        out, last_h, last_c = network.forward(first, state, memory, uniform)
        outputs: list[Any] = [_turned(device, value, settings.time_major) for value in (out, last_h)]
        outputs.append(device.zeros((), dtype) if last_c is None else _turned(device, last_c, settings.time_major))
        outputs.append(reserve if training else device.zeros((), dtype))
        return outputs if count == 4 else [*outputs, np.zeros((0,), np.int8)]

    return compute


@kernel("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", types=_TYPES, device="GPU")
def cudnn_rnn_backprop(op: KernelNode) -> Compute:
    device, settings, has_lengths = device_of(op.node), RecurrentSettings.of(op), op.op.endswith("V3")

    def compute(x: Any, h: Any, c: Any, params: Any, *rest: Any) -> list[Any]:
        lengths, rest = (lengths_of(rest[0]), rest[1:]) if has_lengths else (None, rest)
        problem = RecurrentProblem.of(settings, x, h, c, params, lengths)
        check_gradient(problem, settings, x, h, c, rest)
        reserve = rest[6].reshaped((rest[6].size,))
        network = GpuNetwork(device, problem, params, reserve, settings.dropout)
        first, out_grad, h_grad = (_turned(device, value, settings.time_major) for value in (x, rest[3], rest[4]))
        memory = _turned(device, rest[5], settings.time_major) if problem.model.has_memory else None
        by_x, by_h, by_c, by_params = network.backward(first, out_grad, h_grad, memory)
        found = [_turned(device, value, settings.time_major) for value in (by_x, by_h)]
        found.append(device.zeros(c.shape, c.dtype) if by_c is None else _turned(device, by_c, settings.time_major))
        return [*found, by_params]

    return compute
