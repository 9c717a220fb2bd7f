"""Where cuDNN's recurrent networks keep their weights in one buffer, and what a training step leaves its gradient.

The buffer is that of cuDNN's standard algorithm (NVIDIA, cuDNN API reference, cudnnGetRNNWeightParams and
cudnnRNNMode_t): for each layer, and in it for each direction, the matrices that inputs are multiplied by, gate by
gate, those of the state, and an LSTM's projection; behind all matrices the biases in the same order, two for each
gate. A matrix has a row for each unit. Gates: input, forget, new memory, output of an LSTM; reset, update, new memory
of a GRU, whose reset gate comes after the product with the state.

TensorFlow calls the buffer `params` and takes it apart by CudnnRNNParamsToCanonical. What is in `reserve_space` is
nobody's business but the gradient's: here the gates, memories and states of every step, the same on CPUs and GPUs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolkit.errors import InvalidArgumentError

#: the gates of a mode
GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}
#: numbers that the gradient needs of each unit in each step, beside memory and state: a GRU's fourth is the new
#: memory's product with the state, before the reset gate
SAVED = {"lstm": 4, "gru": 4, "rnn_relu": 0, "rnn_tanh": 0}
#: elements that parts of `reserve_space` begin at multiples of: 256 bytes of the narrowest type, as GPUs' libraries ask
_APART = 128


@dataclass(frozen=True, slots=True)
class BufferPart:
    """A tensor in a buffer: its first element and its shape."""

    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True)
class LayerParams:
    """Of one layer in one direction.

    Attributes:
        by_input: [gates * units, inputs]; no columns where inputs are added as they are.
        by_state: [gates * units, state].
        projection: [state, units], or None.
        input_bias, state_bias: [gates * units].
    """

    by_input: BufferPart
    by_state: BufferPart
    projection: BufferPart | None
    input_bias: BufferPart
    state_bias: BufferPart


@dataclass(frozen=True)
class RecurrentModel:
    """The sizes of a network.

    Attributes:
        mode: "lstm", "gru", "rnn_relu" or "rnn_tanh".
        units: of a cell; its gates are as wide.
        inputs: of the first layer.
        directions: 1 or 2.
        projection: what an LSTM's state is projected to, or 0.
        skips: the first layer adds its inputs to the gates without a matrix.
    """

    mode: str
    layers: int
    units: int
    inputs: int
    directions: int
    projection: int = 0
    skips: bool = False

    def __post_init__(self) -> None:
        for name, least in (("layers", 1), ("units", 1), ("inputs", 0), ("projection", 0)):
            if getattr(self, name) < least:
                raise InvalidArgumentError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.projection and self.mode != "lstm":
            raise InvalidArgumentError(f"num_proj is for rnn_mode lstm, not {self.mode}")
        if self.projection > self.units:
            raise InvalidArgumentError(f"num_proj {self.projection} is more than the {self.units} units of a cell")
        if self.skips and self.inputs != self.units:
            raise InvalidArgumentError(
                f"skip_input adds inputs to the gates: {self.inputs} inputs must be as many as the {self.units} units"
            )

    @property
    def gates(self) -> int:
        return GATES[self.mode]

    @property
    def state(self) -> int:
        """How wide h is."""
        return self.projection or self.units

    @property
    def has_memory(self) -> bool:
        """Whether cells have a c beside h."""
        return self.mode == "lstm"

    def width(self, layer: int) -> int:
        """How wide the inputs of a layer are."""
        return self.directions * self.state if layer else self.inputs

    @cached_property
    def params(self) -> Sequence[LayerParams]:
        """Layer by layer, and in each direction by direction."""
        rows, at = self.gates * self.units, 0
        matrices: list[list[BufferPart | None]] = []
        for layer in range(self.layers):
            columns = 0 if self.skips and not layer else self.width(layer)
            for _ in range(self.directions):
                by_input = BufferPart(at, (rows, columns))
                by_state = BufferPart(by_input.end, (rows, self.state))
                at = by_state.end
                projection = BufferPart(at, (self.projection, self.units)) if self.projection else None
                at += projection.size if projection else 0
                matrices.append([by_input, by_state, projection])
        found: list[LayerParams] = []
        for by_input, by_state, projection in matrices:
            if by_input is not None and by_state is not None:
                biases = (BufferPart(at, (rows,)), BufferPart(at + rows, (rows,)))
                found.append(LayerParams(by_input, by_state, projection, *biases))
            at += 2 * rows
        return found

    @property
    def size(self) -> int:
        """Elements of the buffer."""
        return self.params[-1].state_bias.end

    @cached_property
    def canonical_weights(self) -> Sequence[BufferPart]:
        """Matrix by matrix, as CudnnRNNParamsToCanonical puts them out."""
        found: list[BufferPart] = []
        for each in self.params:
            found += self._by_gate(each.by_input) + self._by_gate(each.by_state)
            found += [each.projection] if each.projection else []
        return found

    @cached_property
    def canonical_biases(self) -> Sequence[BufferPart]:
        """Bias by bias."""
        return [
            one for each in self.params for part in (each.input_bias, each.state_bias) for one in self._by_gate(part)
        ]

    def _by_gate(self, part: BufferPart) -> list[BufferPart]:
        shape = (self.units, *part.shape[1:])
        return [BufferPart(part.offset + gate * math.prod(shape), shape) for gate in range(self.gates)]


@dataclass(frozen=True, slots=True)
class LayerReserve:
    """Of one layer in one direction, what its gradient needs.

    Attributes:
        gates: [steps, batch, saved * units] behind their activations; None where the state says it.
        memories: [steps + 1, batch, units]; None without.
        states: [steps + 1, batch, state]: the first one where the direction begins, then one behind each step, all in
            order of time.
    """

    gates: BufferPart | None
    memories: BufferPart | None
    states: BufferPart


@dataclass(frozen=True)
class Reserve:
    """Where the parts of `reserve_space` are.

    Attributes:
        drops: inputs of all layers but the first are dropped at random.
    """

    model: RecurrentModel
    steps: int
    batch: int
    drops: bool

    @cached_property
    def _placed(self) -> tuple[list[LayerReserve], list[BufferPart], list[BufferPart], int]:
        model, at = self.model, 0

        def part(*shape: int) -> BufferPart:
            nonlocal at
            made = BufferPart(at, shape)
            at = -(-made.end // _APART) * _APART
            return made

        saved = SAVED[model.mode] * model.units
        layers = [
            LayerReserve(
                part(self.steps, self.batch, saved) if saved else None,
                part(self.steps + 1, self.batch, model.units) if model.has_memory else None,
                part(self.steps + 1, self.batch, model.state),
            )
            for _ in range(model.layers * model.directions)
        ]
        between = (self.steps, self.batch, model.directions * model.state)
        inputs = [part(*between) for _ in range(model.layers - 1)]
        masks = [part(*between) for _ in inputs] if self.drops else []
        return layers, inputs, masks, at

    @property
    def layers(self) -> Sequence[LayerReserve]:
        """As `RecurrentModel.params`."""
        return self._placed[0]

    @property
    def inputs(self) -> Sequence[BufferPart]:
        """[steps, batch, width] of the second layer, the third, and so on, after what was dropped."""
        return self._placed[1]

    @property
    def masks(self) -> Sequence[BufferPart]:
        """What these were multiplied by; none where nothing is dropped."""
        return self._placed[2]

    @property
    def size(self) -> int:
        """Elements of the buffer."""
        return self._placed[3]


@dataclass(frozen=True, slots=True)
class RecurrentSettings:
    """The attributes of a node of any of these ops, without those that are missing from it.

    Attributes:
        direction: "unidirectional" or "bidirectional".
        input_mode: "linear_input", "skip_input", or "auto_select", which skips where the sizes allow it.
        time_major: sequences are [time, batch, channels] and states [layers, batch, units]; else batch comes first.
    """

    mode: str
    direction: str
    input_mode: str
    dropout: float
    projection: int
    time_major: bool

    @classmethod
    def of(cls, op: Any) -> RecurrentSettings:
        """Those of a node (`toolkit.kernels.registry.KernelNode`).

        Raises:
            InvalidArgumentError: one is out of its range.
        """
        dropout, projection = op.attr("dropout"), op.attr("num_proj") if op.has("num_proj") else 0
        if not 0 <= dropout <= 1:
            raise InvalidArgumentError(f"dropout must be in [0, 1], got {dropout}")
        time_major = bool(op.attr("time_major")) if op.has("time_major") else True
        texts = (op.text("rnn_mode"), op.text("direction"), op.text("input_mode"))
        return cls(*texts, dropout, projection, time_major)

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def model(self, layers: int, units: int, inputs: int) -> RecurrentModel:
        """The network of a node that has so many layers, units of a cell, and inputs."""
        skips = self.input_mode == "skip_input" or (self.input_mode == "auto_select" and inputs == units)
        return RecurrentModel(self.mode, layers, units, inputs, self.directions, self.projection, skips)


@dataclass(frozen=True, slots=True)
class RecurrentProblem:
    """The sizes of a run of a network, from the shapes of its arguments.

    Attributes:
        lengths: steps of each example; None where all have as many as there are.
    """

    model: RecurrentModel
    steps: int
    batch: int
    lengths: Sequence[int] | None

    @property
    def output(self) -> tuple[int, int, int]:
        """The shape of all states of the last layer, [time, batch, channels]."""
        return (self.steps, self.batch, self.model.directions * self.model.state)

    @classmethod
    def of(
        cls, settings: RecurrentSettings, x: Any, h: Any, c: Any, params: Any, lengths: Sequence[int] | None
    ) -> RecurrentProblem:
        """What arguments mean that have a shape.

        Args:
            lengths: the steps of each example, or None.

        Raises:
            InvalidArgumentError: they do not fit; CudnnRNNV3's messages say the same.
        """
        for name, value in (("input", x), ("input_h", h)):
            if len(value.shape) != 3:
                raise InvalidArgumentError(f"RNN {name} must have 3 dimensions, got shape {list(value.shape)}")
        time, batch = (0, 1) if settings.time_major else (1, 0)
        steps, examples, rows = x.shape[time], x.shape[batch], h.shape[time]
        if rows % settings.directions or h.shape[batch] != examples:
            raise InvalidArgumentError(
                f"Invalid input_h shape: {list(h.shape)}; it must have {settings.directions} rows for each layer, and "
                f"{examples} examples as the input of shape {list(x.shape)}"
            )
        units = h.shape[2]
        if settings.mode == "lstm":
            units = _memory_units(settings, h, c)
        elif settings.projection:
            raise InvalidArgumentError(f"num_proj is for rnn_mode lstm, not {settings.mode}")
        model = settings.model(rows // settings.directions, units, x.shape[2])
        if tuple(params.shape) != (model.size,):
            raise InvalidArgumentError(
                f"Mismatching RNN parameter size: params has shape {list(params.shape)}, a network of {model.layers} "
                f"layers of {model.units} units over {model.inputs} inputs has [{model.size}]"
            )
        if lengths is not None:
            if len(lengths) != examples:
                raise InvalidArgumentError(f"sequence_lengths must have {examples} elements, got {len(lengths)}")
            wrong = next((each for each in lengths if not 0 <= each <= steps), None)
            if wrong is not None:
                raise InvalidArgumentError(f"sequence_lengths must be in [0, {steps}], got {wrong}")
            if all(each == steps for each in lengths):
                lengths = None
        return cls(model, steps, examples, lengths)

    def reserve(self, dropout: float) -> Reserve:
        return Reserve(self.model, self.steps, self.batch, dropout > 0 and self.model.layers > 1)


def _memory_units(settings: RecurrentSettings, h: Any, c: Any) -> int:
    if len(c.shape) != 3:
        raise InvalidArgumentError(f"RNN input_c must have 3 dimensions, got shape {list(c.shape)}")
    if settings.projection:
        if h.shape[2] != settings.projection or h.shape[2] > c.shape[2] or tuple(h.shape[:2]) != tuple(c.shape[:2]):
            raise InvalidArgumentError(
                f"Invalid input_h and input_c with num_proj {settings.projection}: {list(h.shape)} {list(c.shape)}"
            )
    elif tuple(h.shape) != tuple(c.shape):
        raise InvalidArgumentError(
            f"input_h and input_c must have the same shape without projection: {list(h.shape)} {list(c.shape)}"
        )
    return c.shape[2]
