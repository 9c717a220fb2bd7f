"""Decoding in a loop: a decoder makes one step after the other until all sequences are over."""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_shape, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.contexts import WhileContext
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import known_value
from toolkit.client.layers.base import Layer
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn import batch_and_time_exchanged
from toolkit.client.recurrent.rnn_cell import zeros_of
from toolkit.client.seq2seq.helpers import Helper
from toolkit.client.structures import nest
from toolkit.client.variables.store import variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class Decoder:
    """What `dynamic_decode` runs.

    A subclass has `batch_size`, `output_size` and `output_dtype` (structures of one step's output), `initialize()`,
    which returns (finished, first inputs, initial state), and `step(time, inputs, state)`, which returns (outputs,
    next state, next inputs, finished).
    """

    @property
    def batch_size(self) -> Any:
        """How many sequences are decoded: a number or an int32 scalar."""
        raise NotImplementedError("a decoder needs batch_size")

    @property
    def output_size(self) -> Any:
        """Sizes of one step's output, without the batch axis."""
        raise NotImplementedError("a decoder needs output_size")

    @property
    def output_dtype(self) -> Any:
        """Types of one step's output, in the structure of `output_size`."""
        raise NotImplementedError("a decoder needs output_dtype")

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished [batch], inputs of the first step, initial state)."""
        raise NotImplementedError("a decoder needs initialize()")

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """(outputs, next state, next inputs, finished [batch])."""
        raise NotImplementedError("a decoder needs step(time, inputs, state)")

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Outputs, [steps, batch, ...], and state made what `dynamic_decode` returns; not everyone needs it."""
        raise NotImplementedError("this decoder returns its outputs as they are")

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` itself remembers which sequences are over, as beams do, which change places."""
        return False


class BasicDecoderOutput(NamedTuple):
    """One step of a BasicDecoder: what the cell (or the output layer) put out, and what was chosen."""

    rnn_output: Any
    sample_id: Any


def layered_output_size(cell: Any, layer: Any) -> Any:
    """The output size of a cell with a layer upon it."""
    size = cell.output_size
    if layer is None:
        return size
    shapes = nest.map_structure(lambda s: Shape([None]).concatenate(as_shape(s)), size)
    return nest.map_structure(lambda s: as_shape(s).slice(1), layer.compute_output_shape(shapes))


class BasicDecoder(Decoder):
    """A cell whose next inputs a helper chooses.

    Args:
        helper: where inputs come from.
        initial_state: the cell's.
        output_layer: applied to the cell's output before the helper sees it.

    Raises:
        TypeError: an argument is of another kind.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None):
        check_cell("BasicDecoder", cell, output_layer)
        if not isinstance(helper, Helper):
            raise TypeError(f"a BasicDecoder takes a helper, such as TrainingHelper, not {helper!r}")
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        return BasicDecoderOutput(layered_output_size(self._cell, self._output_layer), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        kind = nest.flatten(self._initial_state)[0].dtype.base
        size = layered_output_size(self._cell, self._output_layer)
        return BasicDecoderOutput(nest.map_structure(lambda _: kind, size), self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with name_scope(name, "BasicDecoderStep", [time, *nest.flatten(inputs)]):
            outputs, following = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            chosen = self._helper.sample(time=time, outputs=outputs, state=following)
            finished, inputs, following = self._helper.next_inputs(
                time=time, outputs=outputs, state=following, sample_ids=chosen
            )
        return BasicDecoderOutput(outputs, chosen), following, inputs, finished


def check_cell(what: str, cell: Any, layer: Any) -> None:
    """Refuse what is no cell, or no layer.

    Raises:
        TypeError: as it says.
    """
    if not callable(cell) or not hasattr(cell, "state_size") or not hasattr(cell, "output_size"):
        raise TypeError(f"a {what} takes a cell, not {cell!r}")
    if layer is not None and not isinstance(layer, Layer):
        raise TypeError(f"output_layer of a {what} is a layer, such as tf.layers.Dense, not {layer!r}")


def dynamic_decode(
    decoder: Any, output_time_major: bool = False, impute_finished: bool = False,
    maximum_iterations: TensorLike | None = None, parallel_iterations: int = 32, swap_memory: bool = False,
    scope: Any = None, **kwargs: Any,
) -> tuple[Any, Any, Tensor]:  # fmt: skip
    """All steps of a decoder.

    Args:
        output_time_major: outputs are [steps, batch, ...] rather than [batch, steps, ...].
        impute_finished: sequences that are over keep their state and put out zeros.
        maximum_iterations: how many steps there are at most.
        parallel_iterations, swap_memory: as in `while_loop`.

    Returns:
        outputs, final state, and the lengths of the sequences, int32 [batch].

    Raises:
        TypeError: the decoder is none, or an argument is not known.
        GraphError: maximum_iterations is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"dynamic_decode runs a Decoder, not {type(decoder).__name__}")
    if kwargs:
        raise TypeError(f"dynamic_decode has no argument '{next(iter(kwargs))}' for this decoder")
    with variable_scope(scope, "decoder") as entered:
        if entered.caching_device is None and not _in_loop():
            entered.set_caching_device(lambda op: op.device)  # pyright: ignore[reportUnknownMemberType]
        longest: Tensor | None = None
        if maximum_iterations is not None:
            longest = convert_to_tensor(maximum_iterations, dtypes.int32, name="maximum_iterations")
            if longest.static_shape.rank != 0:
                raise GraphError(f"maximum_iterations is a scalar; it has shape {longest.static_shape}")
        finished, inputs, state = decoder.initialize()
        sizes, kinds, batch = decoder.output_size, decoder.output_dtype, decoder.batch_size
        nothing = nest.map_structure(lambda size, kind: zeros_of(as_shape(size), batch, kind), sizes, kinds)
        if longest is not None:
            finished = ops.logical_or(finished, ops.greater_equal(0, longest))
        lengths = array_ops.zeros_like(finished, dtypes.int32)
        time = constant(0, dtypes.int32)
        arrays = nest.map_structure(
            lambda size, kind: TensorArray(kind, 0, dynamic_size=True, element_shape=_element_shape(batch, size)),
            sizes, kinds,
        )  # fmt: skip

        def going(_: Any, __: Any, ___: Any, ____: Any, finished: Tensor, *_____: Any) -> Tensor:
            return ops.logical_not(math_ops.reduce_all(finished))

        def body(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            outputs, new_state, new_inputs, ended = decoder.step(time, inputs, state)
            after = ended if decoder.tracks_own_finished else ops.logical_or(ended, finished)
            here = ops.fill(array_ops.shape(lengths), time + 1)
            new_lengths = array_ops.where(ops.logical_not(finished), here, lengths)
            nest.assert_same_structure(state, new_state)
            nest.assert_same_structure(arrays, outputs)
            nest.assert_same_structure(inputs, new_inputs)
            if impute_finished:
                outputs = nest.map_structure(
                    lambda out, zero: array_ops.where(finished, zero, out), outputs, nothing
                )  # fmt: skip
                new_state = nest.map_structure(lambda new, old: _kept(finished, new, old), new_state, state)
            arrays = nest.map_structure(functools.partial(_written, time), arrays, outputs)
            return time + 1, arrays, new_state, new_inputs, after, new_lengths

        _, arrays, state, _, _, lengths = while_loop(
            going, body, (time, arrays, state, inputs, finished, lengths), parallel_iterations=parallel_iterations,
            maximum_iterations=longest, swap_memory=swap_memory,
        )  # fmt: skip
        outputs = nest.map_structure(TensorArray.stack, arrays)
        with suppress(NotImplementedError):  # which is how a decoder says that it has nothing to do
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(batch_and_time_exchanged, outputs)
    return outputs, state, lengths


def _written(time: Any, array: TensorArray, value: Any) -> TensorArray:
    return array.write(time, value)


def _in_loop() -> bool:
    context = get_default_graph().control_flow_context
    while context is not None:
        if isinstance(context, WhileContext):
            return True
        context = context.outer
    return False


def _element_shape(batch: Any, size: Any) -> Shape | None:
    if isinstance(size, int):
        return None
    known = known_value(convert_to_tensor(batch, name="batch_size"))
    plain = as_shape(size)
    return None if plain.rank == 0 else Shape([known]).concatenate(plain)


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """The old state of sequences that are over; arrays and scalars are all sequences' and go on."""
    if isinstance(old, TensorArray):
        return new
    new.set_shape(old.static_shape)
    return new if new.static_shape.rank == 0 else array_ops.where(finished, old, new)
