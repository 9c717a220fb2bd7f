"""A cell that looks at a memory after every step (`tf.contrib.seq2seq.AttentionWrapper`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, cast

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal
from toolkit.client.construction.convert import DTypeLike, as_shape, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn_cell import RNNCell, size_of, zeros_of
from toolkit.client.seq2seq.attention import AttentionMechanism, dense
from toolkit.client.structures import nest
from toolkit.client.variables.base import BaseVariable
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes

#: (mechanism, output of the cell, attention state, layer) to (attention, alignments, next attention state)
AttentionFunction = Callable[[Any, Tensor, Any, Any], tuple[Tensor, Tensor, Any]]


class AttentionWrapperState(NamedTuple):
    """The state of an AttentionWrapper; what belongs to a mechanism is a tuple where there are several.

    `cell_state`: the wrapped cell's. `attention`: what was seen in the last step, [batch, size]. `time`: the number of
    the step. `alignments`: [batch, steps of the memory]. `alignment_history`: a TensorArray of them, or ().
    `attention_state`: the mechanism's.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """The same with other parts, as `clone(cell_state=encoder_state)`; tensors get the shapes of those before.

        Raises:
            GraphError: a tensor has another shape than the one in its place.
            UsageError: a part has another structure.
        """

        def like(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                new.set_shape(old.static_shape.merge(new.static_shape))
            return new

        changed = self._replace(**kwargs)
        leaves = [like(old, new) for old, new in _pairs(self, changed)]
        return nest.pack_sequence_as(changed, leaves)


def _pairs(one: Any, other: Any) -> Iterable[tuple[Any, Any]]:
    nest.assert_same_structure(one, other)
    return zip(nest.flatten(one), nest.flatten(other), strict=True)


def _attention_of(mechanism: Any, output: Tensor, state: Any, layer: Any) -> tuple[Tensor, Tensor, Any]:
    """The memory's steps weighted by the alignments, and put together with the output where there is a layer."""
    alignments, following = mechanism(output, state=state)
    seen = math_ops.matmul(array_ops.expand_dims(alignments, 1), mechanism.values)
    seen = array_ops.squeeze(seen, [1])
    if layer is not None:
        seen = layer(array_ops.concat([output, seen], 1))
    return seen, alignments, following


def _joined(inputs: Any, seen: Tensor) -> Tensor:
    return array_ops.concat([inputs, seen], -1)


class AttentionWrapper(RNNCell):
    """A cell with attention: its input is joined with what was seen last, its output with what is seen now.

    Args:
        attention_mechanism: one, or a list.
        attention_layer_size: the size of a layer over output and context, one for each mechanism; None: the context
            itself is the attention.
        alignment_history: the state keeps the alignments of all steps.
        cell_input_fn: from inputs and attention to the cell's inputs; default: they are joined.
        output_attention: whether the attention is the output (Luong), or the cell's output (Bahdanau).
        initial_cell_state: what `zero_state` has for the wrapped cell.
        attention_layer: layers in the place of `attention_layer_size`.
        attention_fn: computes the attention of one mechanism.

    Raises:
        TypeError: an argument is of another kind.
        UsageError: there are not as many layers as mechanisms, or both sizes and layers.
    """

    def __init__(
        self, cell: Any, attention_mechanism: Any, attention_layer_size: Any = None, alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Tensor], Any] | None = None, output_attention: bool = True,
        initial_cell_state: Any = None, name: str | None = None, attention_layer: Any = None,
        attention_fn: AttentionFunction | None = None, dtype: DTypeLike = None,
    ):  # fmt: skip
        super().__init__(name=name, dtype=dtype)
        if not callable(cell) or not hasattr(cell, "state_size") or not hasattr(cell, "output_size"):
            raise TypeError(f"an AttentionWrapper wraps a cell, not {cell!r}")
        self._is_multi = isinstance(attention_mechanism, list | tuple)
        mechanisms: tuple[Any, ...] = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        for mechanism in mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(f"an AttentionWrapper takes an attention mechanism, not {mechanism!r}")
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(f"cell_input_fn is a function of inputs and attention, not {cell_input_fn!r}")
        self._cell: Any = cell
        self._attention_mechanisms = mechanisms
        self._attention_layers, self._attention_layer_size = _layers(
            cell, mechanisms, attention_layer_size, attention_layer
        )
        self._attention_fn: AttentionFunction = _attention_of if attention_fn is None else attention_fn
        self._cell_input_fn: Callable[[Any, Tensor], Any] = cell_input_fn or _joined
        self._output_attention, self._alignment_history = output_attention, alignment_history
        with name_scope(name, "AttentionWrapperInit"):
            self._initial_cell_state: Any = None
            if initial_cell_state is not None:
                batch = size_of(nest.flatten(initial_cell_state)[-1], 0)
                with control_dependencies(self._checks(batch, "initial_cell_state")):
                    self._initial_cell_state = nest.map_structure(
                        lambda s: array_ops.identity(s, name="check_initial_cell_state"), initial_cell_state
                    )

    def _checks(self, batch: Any, what: str) -> list[Any]:
        message = (
            f"AttentionWrapper '{self.name}': the batch size of the memory is not that of {what}; with beam search, "
            "tile memory, lengths and states with tile_batch(..., multiplier=beam_width)"
        )
        return [assert_equal(batch, each.batch_size, message=message) for each in self._attention_mechanisms]

    def _one_or_all(self, found: Sequence[Any]) -> Any:
        return tuple(found) if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        mechanisms = self._attention_mechanisms
        kept = [m.alignments_size if self._alignment_history else () for m in mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=as_shape([]),
            attention=self._attention_layer_size,
            alignments=self._one_or_all([m.alignments_size for m in mechanisms]),
            attention_state=self._one_or_all([m.state_size for m in mechanisms]),
            alignment_history=self._one_or_all(kept),
        )  # fmt: skip

    @property
    def variables(self) -> list[BaseVariable]:
        """Those of the wrapped cell, of the mechanisms' layers and of the attention's, as far as they are made."""
        layers = [layer for m in self._attention_mechanisms for layer in (m.query_layer, m.memory_layer) if layer]
        found = [*self._variables, *getattr(self._cell, "variables", [])]
        return found + [v for layer in [*layers, *(self._attention_layers or ())] for v in layer.weights]

    def zero_state(self, batch_size: Any, dtype: DTypeLike) -> Any:
        """A state before the first step, for `batch_size` (a number or an int32 scalar) rows."""
        with name_scope(None, type(self).__name__ + "ZeroState", [batch_size]):
            if self._initial_cell_state is not None:
                inner = self._initial_cell_state
            else:
                made = getattr(self._cell, "get_initial_state", None)
                inner = (
                    self._cell.zero_state(batch_size, dtype)
                    if made is None
                    else made(batch_size=batch_size, dtype=dtype)
                )
            with control_dependencies(self._checks(batch_size, "zero_state")):
                inner = nest.map_structure(lambda s: array_ops.identity(s, name="checked_cell_state"), inner)
            mechanisms = self._attention_mechanisms
            alignments = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            time = array_ops.zeros([], dtypes.int32)
            attention = zeros_of(self._attention_layer_size, batch_size, dtype)
            states = [m.initial_state(batch_size, dtype) for m in mechanisms]
            histories: list[Any] = [()] * len(mechanisms)
            if self._alignment_history:
                histories = [
                    TensorArray(dtype, 0, dynamic_size=True, element_shape=each.static_shape) for each in alignments
                ]
            several = self._one_or_all
            return AttentionWrapperState(
                inner, attention, time, several(alignments), several(histories), several(states)
            )  # fmt: skip

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """The attention (or the cell's output) of one step, and the next state.

        Raises:
            TypeError: the state is no AttentionWrapperState.
        """
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(f"the state of an AttentionWrapper is an AttentionWrapperState, not {type(state).__name__}")
        output, inner = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        with control_dependencies(self._checks(size_of(output, 0), "the decoder's inputs")):
            output = array_ops.identity(output, name="checked_cell_output")
        states: Any = state.attention_state if self._is_multi else [state.attention_state]
        histories: Any = state.alignment_history if self._is_multi else [state.alignment_history]
        seen: list[Any] = []
        aligned: list[Any] = []
        following: list[Any] = []
        kept: list[Any] = []
        for number, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[number] if self._attention_layers else None
            attention, alignments, after = self._attention_fn(mechanism, output, states[number], layer)
            kept.append(histories[number].write(state.time, alignments) if self._alignment_history else ())
            following.append(after)
            aligned.append(alignments)
            seen.append(attention)
        attention = array_ops.concat(seen, 1)
        several = self._one_or_all
        new = AttentionWrapperState(
            cell_state=inner, attention=attention, time=state.time + 1, alignments=several(aligned),
            alignment_history=several(kept), attention_state=several(following),
        )  # fmt: skip
        return (attention if self._output_attention else output), new


def _layers(cell: Any, mechanisms: tuple[Any, ...], sizes: Any, layers: Any) -> tuple[tuple[Any, ...] | None, Any]:
    """The layers over output and context, and the size of all attention."""
    if sizes is not None and layers is not None:
        raise UsageError("an AttentionWrapper takes attention_layer_size or attention_layer, not both")
    given: Any = sizes if sizes is not None else layers
    if given is None:
        return None, sum(_known(m.values, "memory") for m in mechanisms)
    each = tuple(cast("Sequence[Any]", given)) if isinstance(given, list | tuple) else (given,)
    if len(each) != len(mechanisms):
        raise UsageError(f"an AttentionWrapper of {len(mechanisms)} mechanisms needs as many layers, not {len(each)}")
    if sizes is not None:
        made = [dense(size, "attention_layer", m.dtype) for size, m in zip(each, mechanisms, strict=True)]
        return tuple(made), sum(each)
    width = 0
    for layer, mechanism in zip(each, mechanisms, strict=True):
        joined = cell.output_size + _known(mechanism.values, "memory")
        width += as_shape(layer.compute_output_shape(as_shape([None, joined])))[-1] or 0
    return each, width


def _known(tensor: Any, what: str) -> int:
    size = convert_to_tensor(tensor).static_shape[-1]
    if size is None:
        raise GraphError(f"the last size of the {what} '{tensor.name}' must be known; set its shape")
    return size
