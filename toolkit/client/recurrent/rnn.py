"""Recurrent layers: a cell over the steps of a sequence, unrolled (`static_rnn`) or in a loop (`dynamic_rnn`)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, control_dependencies
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, cond, while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn_cell import joined_shape, joined_static_shape, plain_joined_shape
from toolkit.client.structures import nest
from toolkit.client.variables.store import VariableScope, variable_scope
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Dim, Shape


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state: Any = None,
    dtype: DTypeLike = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """The outputs of all steps and the last state, by a loop.

    Args:
        inputs: [batch, steps, ...], or a structure; [steps, batch, ...] with `time_major`.
        sequence_length: [batch], integers: behind it, a row's outputs are zeros and its state stays.
        initial_state: in the structure of the cell's state; default: zeros of type `dtype`.
        parallel_iterations: default: 32.

    Returns:
        outputs in the layout of the inputs, and the state.

    Raises:
        GraphError: inputs have no batch or steps, or their sizes do not fit together.
        UsageError: neither `initial_state` nor `dtype` is given.
    """
    with _rnn_scope(scope, "rnn") as entered:
        flat = [convert_to_tensor(leaf) for leaf in nest.flatten(inputs)]
        if not time_major:
            flat = [batch_and_time_exchanged(tensor) for tensor in flat]
        lengths: Tensor | None = None
        if sequence_length is not None:
            lengths = _lengths(sequence_length)
        batch = _batch_size(flat)
        state = _start(cell, initial_state, batch, dtype)
        if lengths is not None:
            with control_dependencies([_has_shape(lengths, [batch])]):
                lengths = array_ops.identity(lengths, name="CheckSeqLen")
        packed = nest.pack_sequence_as(inputs, flat)
        outputs, state = _loop(cell, packed, state, parallel_iterations or 32, swap_memory, lengths, dtype)
        if not time_major:
            outputs = nest.map_structure(batch_and_time_exchanged, outputs)
        del entered
        return outputs, state


@contextmanager
def _rnn_scope(scope: Any, default: str) -> Generator[VariableScope]:
    """A scope whose variables are read once, outside of loops, where they are."""
    with variable_scope(scope or default) as entered:
        if entered.caching_device is None:
            entered.caching_device = _device_of
        yield entered


def _device_of(op: Any) -> str:
    return op.device


def batch_and_time_exchanged(x: Any) -> Tensor:
    """The first two axes exchanged: batch and steps."""
    tensor = convert_to_tensor(x)
    shape = tensor.static_shape
    if shape.rank is not None and shape.rank < 2:
        raise GraphError(f"'{tensor.name}' of shape {shape} has no batch and steps; at least two axes are needed")
    order = array_ops.concat(([1, 0], math_ops.range(2, array_ops.rank(tensor))), 0)
    turned = array_ops.transpose(tensor, order)
    if shape.rank is not None:
        turned.set_shape(Shape([shape[1], shape[0]]).concatenate(shape.slice(2)))
    return turned


def _lengths(given: TensorLike) -> Tensor:
    tensor = math_ops.cast(given, dtypes.int32)
    if tensor.static_shape.rank not in (None, 1):
        raise GraphError(f"sequence_length is a vector [batch]; '{tensor.name}' has shape {tensor.static_shape}")
    return array_ops.identity(tensor, name="sequence_length")


def _batch_size(flat: Sequence[Tensor]) -> Any:
    """The batch size of inputs with steps first: known, or computed from the first."""
    for tensor in flat:
        shape = tensor.static_shape
        if shape.rank is not None and shape.rank >= 2 and shape[1] is not None:
            return shape[1]
    return array_ops.shape(flat[0])[1]


def _start(cell: Any, initial: Any, batch: Any, dtype: DTypeLike) -> Any:
    if initial is not None:
        return initial
    if dtype is None:
        raise UsageError("give initial_state, or the dtype of a state of zeros")
    made = getattr(cell, "get_initial_state", None)
    return made(inputs=None, batch_size=batch, dtype=dtype) if made is not None else cell.zero_state(batch, dtype)


def _has_shape(tensor: Tensor, shape: Sequence[Any]) -> Any:
    found = array_ops.shape(tensor)
    wanted = array_ops.stack(list(shape))
    same = math_ops.reduce_all(ops.equal(found, wanted))
    return Assert(same, [f"Expected shape for Tensor {tensor.name} is ", wanted, " but saw shape: ", found])


def _state_type(dtype: DTypeLike, state: Any) -> DType:
    if dtype is not None:
        return as_dtype(dtype)
    types = {convert_to_tensor(leaf).dtype.base for leaf in nest.flatten(state)}
    if len(types) != 1:
        raise GraphError(f"the state has tensors of types {sorted(map(str, types))}; give dtype")
    return types.pop()


def _loop(
    cell: Any, inputs: Any, state: Any, parallel_iterations: int, swap_memory: bool, lengths: Tensor | None,
    dtype: DTypeLike,
) -> tuple[Any, Any]:  # fmt: skip
    flat: list[Tensor] = nest.flatten(inputs)
    sizes = nest.flatten(cell.output_size)
    steps = array_ops.shape(flat[0])[0]
    batch = _batch_size(flat)
    known_steps, known_batch = _known_sizes(flat)

    def zeros(size: Any) -> Tensor:
        return array_ops.zeros(array_ops.stack(joined_shape(batch, size)), _state_type(dtype, state))

    zero_outputs = [zeros(size) for size in sizes]
    longest: Any = steps
    if lengths is not None:
        math_ops.reduce_min(lengths)  # which TensorFlow makes and only uses in unrolled layers
        longest = math_ops.reduce_max(lengths)
    time = constant(0, dtypes.int32, name="time")
    with get_default_graph().name_scope("dynamic_rnn") as base:
        pass
    kind = _state_type(dtype, state)
    arrays = [
        TensorArray(
            kind, steps, element_shape=plain_joined_shape(known_batch, size), tensor_array_name=f"{base}output_{i}"
        )
        for i, size in enumerate(sizes)
    ]
    sources = [
        TensorArray(t.dtype.base, steps, element_shape=t.static_shape.slice(1), tensor_array_name=f"{base}input_{i}")
        for i, t in enumerate(flat)
    ]
    sources = [array.unstack(t) for array, t in zip(sources, flat, strict=True)]

    def step(time: Tensor, arrays: Any, state: Any) -> Any:
        rows = [array.read(time) for array in sources]
        for row, t in zip(rows, flat, strict=True):
            row.set_shape(t.static_shape.slice(1))
        row = nest.pack_sequence_as(inputs, rows)
        if lengths is None:
            output, following = cell(row, state)
        else:
            output, following = _masked(time, lengths, zero_outputs, state, lambda: cell(row, state))
        leaves = nest.flatten(output)
        written = tuple(array.write(time, leaf) for array, leaf in zip(arrays, leaves, strict=True))
        return time + 1, written, following

    bound = math_ops.minimum(steps, math_ops.maximum(1, longest))
    _, arrays, state = while_loop(
        lambda time, *_: ops.less(time, bound), step, (time, tuple(arrays), state),
        parallel_iterations=parallel_iterations, maximum_iterations=steps, swap_memory=swap_memory,
    )  # fmt: skip
    results = [array.stack() for array in arrays]
    for result, size in zip(results, sizes, strict=True):
        result.set_shape(joined_static_shape([known_steps, known_batch], size))
    return nest.pack_sequence_as(cell.output_size, results), state


def _known_sizes(flat: Sequence[Tensor]) -> tuple[Dim, Dim]:
    """Steps and batch as far as they are known.

    Raises:
        GraphError: an input has fewer than three axes, an unknown last size, or other steps or batch than the first.
    """
    shapes: list[Shape] = []
    for tensor in flat:
        shape = tensor.static_shape
        if shape.rank is None or shape.rank < 3:
            raise GraphError(f"'{tensor.name}' has shape {shape}; inputs are [batch, steps, size, ...]")
        if not shape.slice(2).is_fully_defined:
            raise GraphError(f"'{tensor.name}' has shape {shape}; the sizes behind batch and steps must be known")
        shapes.append(shape)
    first = shapes[0]
    for tensor, shape in zip(flat, shapes, strict=True):
        if not first.slice(0, 2).is_compatible_with(shape.slice(0, 2)):
            raise GraphError(f"'{tensor.name}' has shape {shape}, but the first input {first}")
    return first[0], first[1]


def _masked(
    time: Any, lengths: Tensor, zero_outputs: Sequence[Tensor], state: Any, call: Callable[[], tuple[Any, Any]]
) -> tuple[Any, Any]:
    """One step whose rows keep their state, and put out zeros, once their sequence is over."""
    past = ops.greater_equal(time, lengths)
    output, following = call()
    nest.assert_same_structure(state, following)
    outputs = [_chosen(past, old, new) for old, new in zip(zero_outputs, nest.flatten(output), strict=True)]
    states = [_chosen(past, old, new) for old, new in zip(nest.flatten(state), nest.flatten(following), strict=True)]
    return nest.pack_sequence_as(output, outputs), nest.pack_sequence_as(following, states)


def _chosen(past: Tensor, old: Any, new: Any) -> Any:
    if isinstance(new, TensorArray) or new.static_shape.rank == 0:
        return new
    with colocate_with(new):
        return array_ops.where(past, old, new)


# -- in both directions --------------------------------------------------------------------------------------------


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: TensorLike | None = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """`dynamic_rnn` forwards and over the reversed sequences; ((outputs, outputs), (state, state)).

    Raises:
        GraphError, UsageError: as `dynamic_rnn`.
    """
    options: dict[str, Any] = {
        "sequence_length": sequence_length, "dtype": dtype, "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory, "time_major": time_major,
    }  # fmt: skip
    steps, batch = (0, 1) if time_major else (1, 0)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            output_fw, state_fw = dynamic_rnn(cell_fw, inputs, initial_state=initial_state_fw, scope=forward, **options)

        def turned(x: Any) -> Tensor:
            if sequence_length is not None:
                return ops.reverse_sequence(x, sequence_length, seq_dim=steps, batch_dim=batch)
            return array_ops.reverse(x, [steps])

        with variable_scope("bw") as backward:
            given = nest.map_structure(turned, inputs)
            made, state_bw = dynamic_rnn(cell_bw, given, initial_state=initial_state_bw, scope=backward, **options)
    output_bw = nest.map_structure(turned, made)
    return (output_fw, output_bw), (state_fw, state_bw)


# -- unrolled ------------------------------------------------------------------------------------------------------


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: DTypeLike = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """The outputs of all steps as a list, and the last state: the cell once for each step of the graph.

    Args:
        inputs: a list of [batch, size], one for each step.
        sequence_length: [batch], as in `dynamic_rnn`.

    Raises:
        GraphError: there are no inputs, or their sizes do not fit together.
        UsageError: neither `initial_state` nor `dtype` is given.
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise GraphError("static_rnn takes a list of inputs, one for each step")
    outputs: list[Any] = []
    with _rnn_scope(scope, "rnn") as entered:
        first = nest.flatten(inputs[0])[0]
        shape = convert_to_tensor(first).static_shape
        batch: Any = shape[0] if shape.rank else None
        if batch is None:
            batch = array_ops.shape(first)[0]
        state = _start(cell, initial_state, batch, dtype)
        lengths = shortest = longest = None
        zero_outputs: list[Tensor] = []
        if sequence_length is not None:
            lengths = convert_to_tensor(sequence_length, name="sequence_length")
            if lengths.static_shape.rank not in (None, 1):
                raise GraphError(f"sequence_length is a vector [batch]; it has shape {lengths.static_shape}")
            kind = _state_type(dtype, state)
            for size in nest.flatten(cell.output_size):
                zero = array_ops.zeros(array_ops.stack(joined_shape(batch, size)), kind)
                zero.set_shape(joined_static_shape(shape[0] if shape.rank else None, size))
                zero_outputs.append(zero)
            lengths = math_ops.cast(lengths, dtypes.int32)
            shortest, longest = math_ops.reduce_min(lengths), math_ops.reduce_max(lengths)
        for time, row in enumerate(inputs):
            if time:
                entered.reuse_variables()
            if lengths is None:
                output, state = cell(row, state)
            else:
                assert shortest is not None and longest is not None
                output, state = _unrolled_step(
                    cell, time, row, state, zero_outputs, lengths, shortest, longest
                )  # fmt: skip
            outputs.append(output)
    return outputs, state


def _unrolled_step(
    cell: Any, time: int, row: Any, state: Any, zero_outputs: Sequence[Tensor], lengths: Tensor, shortest: Tensor,
    longest: Tensor,
) -> tuple[Any, Any]:  # fmt: skip
    """One step that is not computed when all sequences are over, and not masked when none is."""
    flat_state = nest.flatten(state)
    before = [*zero_outputs, *flat_state]
    past = ops.less_equal(lengths, time)

    def running() -> list[Any]:
        output, following = cell(row, state)
        new = [*nest.flatten(output), *nest.flatten(following)]
        return cond(
            ops.greater(shortest, time), lambda: new,
            lambda: [_chosen(past, old, one) for old, one in zip(before, new, strict=True)], strict=True,
        )  # fmt: skip

    found = cond(ops.less_equal(longest, time), lambda: before, running, strict=True)
    count = len(zero_outputs)
    for old, new in zip(before, found, strict=True):
        new.set_shape(old.static_shape)
    return nest.pack_sequence_as(cell.output_size, found[:count]), nest.pack_sequence_as(state, found[count:])


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """`static_rnn` whose first state comes from, and whose last goes to, an object with `state` and `save_state`.

    Raises:
        UsageError: names and states are not alike.
    """
    names = nest.flatten(state_name)
    sizes = nest.flatten(cell.state_size)
    if len(names) != len(sizes):
        raise UsageError(f"the cell has {len(sizes)} states, but {len(names)} names are given")
    initial = nest.pack_sequence_as(cell.state_size, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(cell, inputs, initial, sequence_length=sequence_length, scope=scope)
    saved = [state_saver.save_state(n, leaf) for n, leaf in zip(names, nest.flatten(state), strict=True)]
    with control_dependencies(saved):
        last = nest.map_structure(array_ops.identity, outputs[-1])
        state = nest.map_structure(array_ops.identity, state)
    return [*outputs[:-1], last], state


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: DTypeLike = None,
    sequence_length: TensorLike | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """`static_rnn` in both directions: outputs joined along the last axis, and the two states.

    Raises:
        GraphError, UsageError: as `static_rnn`.
    """
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as forward:
            output_fw, state_fw = static_rnn(cell_fw, inputs, initial_state_fw, dtype, sequence_length, forward)
        with variable_scope("bw") as backward:
            turned = _turned(inputs, sequence_length)
            made, state_bw = static_rnn(cell_bw, turned, initial_state_bw, dtype, sequence_length, backward)
    output_bw = _turned(made, sequence_length)
    outputs = [
        nest.map_structure(lambda a, b: array_ops.concat([a, b], 1), fw, bw)
        for fw, bw in zip(output_fw, output_bw, strict=True)
    ]
    return outputs, state_fw, state_bw


def _turned(rows: Sequence[Any], lengths: TensorLike | None) -> list[Any]:
    """A list of steps in reverse, each row only as far as its sequence goes."""
    if lengths is None:
        return list(reversed(rows))
    columns = [nest.flatten(row) for row in rows]
    turned: list[list[Any]] = [[] for _ in rows]
    for column in zip(*columns, strict=True):
        stacked = array_ops.stack(list(column))
        back = array_ops.unstack(ops.reverse_sequence(stacked, lengths, seq_dim=0, batch_dim=1), num=len(rows))
        for place, (tensor, old) in enumerate(zip(back, column, strict=True)):
            tensor.set_shape(old.static_shape)
            turned[place].append(tensor)
    return [nest.pack_sequence_as(rows[0], flat) for flat in turned]


# -- by a function -------------------------------------------------------------------------------------------------


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """A loop whose inputs, states and end a function decides: decoders.

    Args:
        loop_fn: of (time, output, state, loop state), the last three None at first; returns which rows are
            finished [batch], the next input, the next state, what to put out (None: the output) and the next loop
            state (None: there is none).

    Returns:
        outputs as TensorArrays in the cell's structure, the last state and the last loop state.

    Raises:
        UsageError: `loop_fn` is no function.
        GraphError: its first input has no batch size, or a loop state is missing later.
    """
    if not callable(loop_fn):
        raise UsageError(f"loop_fn must be a function, not {loop_fn!r}")
    with _rnn_scope(scope, "rnn"):
        time = constant(0, dtypes.int32)
        finished, first, state, shape, loop_state = loop_fn(time, None, None, None)
        flat = nest.flatten(first)
        known = [convert_to_tensor(t).static_shape for t in flat]
        batch: Any = next((s[0] for s in known if s.rank and s[0] is not None), None)
        static_batch = batch
        if batch is None:
            batch = array_ops.shape(flat[0])[0]
        nest.assert_same_structure(state, cell.state_size)
        extra = constant(0, dtypes.int32) if loop_state is None else loop_state
        like = cell.output_size if shape is None else shape
        arrays: list[TensorArray] = []
        zeros: list[Tensor] = []
        for i, one in enumerate(nest.flatten(like)):
            if isinstance(one, Tensor):
                size: Any = array_ops.shape(one) if shape is not None else one
                kind, static = one.dtype.base, one.static_shape
            else:
                size, kind = one, convert_to_tensor(flat[0]).dtype.base
                static = plain_joined_shape(None, size).slice(1)
            arrays.append(
                TensorArray(
                    kind, 0, dynamic_size=True, element_shape=Shape([static_batch]).concatenate(static),
                    name=f"rnn_output_{i}",
                )
            )  # fmt: skip
            zeros.append(array_ops.zeros(joined_shape(batch, size), kind))

        def more(_: Any, done: Tensor, *rest: Any) -> Tensor:
            return ops.logical_not(math_ops.reduce_all(done))

        def body(time: Tensor, done: Tensor, row: Any, arrays: Any, state: Any, extra: Any) -> Any:
            output, reached = cell(row, state)
            nest.assert_same_structure(state, reached)
            following = time + 1
            over, next_row, next_state, emitted, next_extra = loop_fn(
                following, output, reached, None if loop_state is None else extra
            )
            nest.assert_same_structure(state, next_state)
            if loop_state is not None and next_extra is None:
                raise GraphError("loop_fn returned a loop state at first and none later")
            emitted = output if emitted is None else emitted

            def kept(old: Any, new: Any) -> Any:
                return _chosen(done, old, new)

            outs = [kept(zero, out) for zero, out in zip(zeros, nest.flatten(emitted), strict=True)]
            states = [kept(a, b) for a, b in zip(nest.flatten(state), nest.flatten(next_state), strict=True)]
            written = [array.write(time, out) for array, out in zip(arrays, outs, strict=True)]
            joined = ops.logical_or(done, over)
            return (
                following, joined, next_row, written, nest.pack_sequence_as(state, states),
                extra if loop_state is None else next_extra,
            )  # fmt: skip

        _, _, _, arrays, state, extra = while_loop(
            more, body, [time, finished, first, arrays, state, extra], parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )  # fmt: skip
        return nest.pack_sequence_as(like, arrays), state, None if loop_state is None else extra
