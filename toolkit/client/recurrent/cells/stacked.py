"""Layers of cells in both directions, and what layers over sequences need to know of their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.recurrent.rnn import batch_and_time_exchanged, bidirectional_dynamic_rnn, static_bidirectional_rnn
from toolkit.client.structures import nest
from toolkit.client.variables.store import variable_scope
from toolkit.errors import UsageError


def transpose_batch_time(x: TensorLike) -> Tensor:
    """The first two axes exchanged."""
    return batch_and_time_exchanged(x)


def best_effort_input_batch_size(flat_input: Sequence[Tensor]) -> Any:
    """The batch size of inputs [steps, batch, ...]: a number where one of them has it, else an int32 scalar."""
    for each in flat_input:
        shape = each.static_shape
        if shape.rank is not None and shape.rank >= 2 and shape[1] is not None:
            return shape[1]
    return array_ops.shape(flat_input[0])[1]


def _checked(cells_fw: Any, cells_bw: Any, states_fw: Any, states_bw: Any) -> None:
    for what, cells in (("cells_fw", cells_fw), ("cells_bw", cells_bw)):
        if not isinstance(cells, list) or not cells:
            raise UsageError(f"{what} is a list of cells, one for each layer")
    if len(cells_fw) != len(cells_bw):
        raise UsageError(f"there are {len(cells_fw)} cells forwards and {len(cells_bw)} backwards; it takes as many")
    for what, states in (("initial_states_fw", states_fw), ("initial_states_bw", states_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(cells_fw)):  # type: ignore[arg-type]
            raise UsageError(f"{what} is a list of states, one for each of {len(cells_fw)} layers")


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any], cells_bw: Sequence[Any], inputs: Sequence[Any],
    initial_states_fw: Sequence[Any] | None = None, initial_states_bw: Sequence[Any] | None = None,
    dtype: DTypeLike = None, sequence_length: TensorLike | None = None, scope: Any = None,
) -> tuple[list[Any], tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """Layers in both directions, unrolled; each sees the joined outputs of the one below.

    Args:
        inputs: a list of [batch, size], one for each step.

    Returns:
        outputs of the last layer, and the last states of all layers forwards and backwards.

    Raises:
        UsageError: there are no cells, or not as many cells and states in both directions.
    """
    _checked(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw: list[Any] = []
    states_bw: list[Any] = []
    below: Any = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for layer, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{layer}") as entered:
                below, state_fw, state_bw = static_bidirectional_rnn(
                    forward, backward, below,
                    initial_state_fw=initial_states_fw[layer] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[layer] if initial_states_bw else None,
                    sequence_length=sequence_length, dtype=dtype, scope=entered,
                )  # fmt: skip
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return below, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any], cells_bw: Sequence[Any], inputs: TensorLike,
    initial_states_fw: Sequence[Any] | None = None, initial_states_bw: Sequence[Any] | None = None,
    dtype: DTypeLike = None, sequence_length: TensorLike | None = None, parallel_iterations: int | None = None,
    time_major: bool = False, scope: Any = None, swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:  # fmt: skip
    """Layers in both directions, in loops; arguments as in `stack_bidirectional_rnn` and `dynamic_rnn`.

    Raises:
        UsageError: there are no cells, or not as many cells and states in both directions.
    """
    _checked(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw: list[Any] = []
    states_bw: list[Any] = []
    below: Any = inputs
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for layer, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{layer}"):
                outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    forward, backward, below,
                    initial_state_fw=initial_states_fw[layer] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[layer] if initial_states_bw else None,
                    sequence_length=sequence_length, parallel_iterations=parallel_iterations, dtype=dtype,
                    swap_memory=swap_memory, time_major=time_major,
                )  # fmt: skip
                below = array_ops.concat(nest.flatten(outputs), 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return below, tuple(states_fw), tuple(states_bw)
