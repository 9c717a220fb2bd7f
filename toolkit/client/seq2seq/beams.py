"""Tensors of beams: several sequences for each row of a batch, told apart, joined, and followed backwards."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, while_loop
from toolkit.client.flow.tensor_array import TensorArray
from toolkit.client.gradients.common import known_value
from toolkit.client.math import math_ops
from toolkit.client.recurrent.rnn_cell import size_of
from toolkit.client.structures import nest
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def _joined(*sizes: Any) -> Tensor:
    """A shape out of numbers, scalars and vectors."""
    parts = [
        array_ops.stack([each]) if not isinstance(each, Tensor) or each.static_shape.rank == 0 else each
        for each in sizes
    ]
    return array_ops.concat(parts, 0)


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Every row `multiplier` times, one after the other: [batch * multiplier, ...]; of all parts of a structure.

    Raises:
        GraphError: a tensor is a scalar, or its rank is not known.
    """

    def tiled(given: TensorLike) -> Tensor:
        each = convert_to_tensor(given, name="t")
        shape = each.static_shape
        if not shape.rank:
            raise GraphError(f"tile_batch: '{each.name}' has shape {shape}; a known rank of at least 1 is needed")
        sizes = array_ops.shape(each)
        multiples = [1, multiplier, *[1] * (shape.rank - 1)]
        found = array_ops.tile(array_ops.expand_dims(each, 1), multiples)
        found = array_ops.reshape(found, _joined(sizes[0] * multiplier, sizes[1:]))
        rows = shape[0]
        found.set_shape(Shape([None if rows is None else rows * multiplier, *shape.slice(1)]))
        return found

    with name_scope(name, "tile_batch", [*nest.flatten(t), multiplier]):
        return nest.map_structure(tiled, t)


def split_beams(t: Tensor, batch: Tensor, width: int, inner: Any) -> Tensor:
    """[batch * width, ...] as [batch, width, ...].

    Raises:
        GraphError: the shape is known not to fit.
    """
    known = known_value(batch)
    expected = Shape([known, width]).concatenate(_inner(inner))
    rows = Shape([None if known is None else known * width]).concatenate(_inner(inner))
    if not t.static_shape.is_compatible_with(rows):
        raise GraphError(
            f"'{t.name}' of shape {t.static_shape} is not one row for each beam, {rows}; make the initial state for "
            "batch_size * beam_width rows"
        )
    found = array_ops.reshape(t, _joined(batch, width, array_ops.shape(t)[1:]))
    found.set_shape(expected)
    return found


def merge_beams(t: Tensor, batch: Tensor, width: int, inner: Any) -> Tensor:
    """[batch, width, ...] as [batch * width, ...]."""
    found = array_ops.reshape(t, _joined(batch * width, array_ops.shape(t)[2:]))
    known = known_value(batch)
    found.set_shape(Shape([None if known is None else known * width]).concatenate(_inner(inner)))
    return found


def _inner(size: Any) -> Shape:
    return as_shape(known_value(size) if isinstance(size, Tensor) else size)


def rank_of(t: Tensor) -> int:
    """The rank.

    Raises:
        GraphError: it is not known.
    """
    if t.static_shape.rank is None:
        raise GraphError(f"beam search needs states of known rank; '{t.name}' has none")
    return t.static_shape.rank


def gathered(
    indices: Tensor, values: Tensor, batch: Tensor, range_size: Any, shape: list[Any], name: str | None = None
) -> Tensor:
    """For each row of the batch, what stands at `indices` [batch, width] of its `range_size` values."""
    with name_scope(name, "tensor_gather_helper"):
        offsets = array_ops.expand_dims(math_ops.range(batch) * range_size, 1)
        flat = array_ops.reshape(indices + offsets, [-1])
        found = array_ops.gather(array_ops.reshape(values, _joined(*shape)), flat)
        kept = 1 + len(shape)
        found = array_ops.reshape(found, array_ops.shape(values)[:kept], name="output")
        found.set_shape(Shape([known_value(batch)]).concatenate(values.static_shape.slice(1, kept)))
        return found


def sorted_beams(t: Any, parent_ids: Tensor, lengths: Tensor, batch: Tensor, width: int) -> Any:
    """An array of what all steps had for the beams of that step, as a tensor of what led to the last step's beams.

    Anything else than an array stays, and arrays whose elements are not one for each beam.
    """
    if not isinstance(t, TensorArray) or not _has_beams(t.element_shape, known_value(batch), width):
        return t
    values = t.stack()
    shape = array_ops.shape(values)
    merged = ops.equal(shape[1], batch * width)
    if values.static_shape.rank == 2:
        fits = merged
    else:
        apart = ops.logical_and(ops.equal(shape[1], batch), ops.equal(shape[2], width))
        fits = ops.logical_or(merged, apart)
    message = (
        f"{values.name}: its elements are not [batch, beam_width, ...], so that they cannot follow the beams; "
        "reorder_tensor_arrays=False leaves them as they are"
    )
    with control_dependencies([Assert(fits, [message])]):
        return gather_tree_from_array(values, parent_ids, lengths)


def _has_beams(element: Shape, batch: int | None, width: int) -> bool:
    """Whether elements of an array may be one for each beam, as far as their shape says.

    As TensorFlow, it takes none whose first size is known together with the second, unless these are batch and width.
    """
    if not element.rank:
        return False
    if batch is None or element[0] is None:
        return True
    second = element[1] if element.rank > 1 else None
    if second is None:
        return element[0] == batch * width
    return element[0] == batch * width == batch and second == width


def gather_tree(
    step_ids: TensorLike, parent_ids: TensorLike, max_sequence_lengths: TensorLike, end_token: TensorLike,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Sequences [steps, batch, width] from what each step chose and which beam it came from.

    TensorFlow 1 had an op for it (GatherTree), which later releases do not know; here it is a loop of ops that they do.

    Args:
        step_ids, parent_ids: int32 [steps, batch, width].
        max_sequence_lengths: int32 [batch]; behind it, and behind its first occurrence, there is `end_token`.
        end_token: int32 scalar.
    """
    with name_scope(name, "GatherTree", [step_ids, parent_ids, max_sequence_lengths, end_token]):
        ids = convert_to_tensor(step_ids, dtypes.int32, name="step_ids")
        parents = convert_to_tensor(parent_ids, dtypes.int32, name="parent_ids")
        lengths = array_ops.expand_dims(convert_to_tensor(max_sequence_lengths, dtypes.int32), 1)
        end = convert_to_tensor(end_token, dtypes.int32, name="end_token")
        steps, batch, width = (size_of(ids, axis) for axis in range(3))
        own = array_ops.tile(array_ops.expand_dims(math_ops.range(width), 0), array_ops.stack([batch, 1]))
        rows = array_ops.expand_dims(math_ops.range(batch) * width, 1)
        ends = ops.fill(array_ops.stack([batch, width]), end)

        def followed(time: Tensor, beams: Tensor, found: TensorArray) -> Any:
            """The step before: where each beam was then."""
            within = ops.logical_and(ops.less(time, lengths), ops.greater_equal(beams, 0))  # of [batch, width]
            places = array_ops.reshape(beams + rows, [-1])

            def taken(values: Tensor) -> Tensor:
                flat = array_ops.gather(array_ops.reshape(values[time], [-1]), places)
                return array_ops.reshape(flat, array_ops.stack([batch, width]))

            before = array_ops.where(within, taken(parents), beams)
            return time - 1, before, found.write(time, array_ops.where(within, taken(ids), ends))

        found = TensorArray(dtypes.int32, steps)
        last = steps - 1
        _, _, found = while_loop(
            lambda time, *_: ops.greater_equal(time, 0), followed, (convert_to_tensor(last), own, found),
            back_prop=False,
        )  # fmt: skip
        sequences = found.stack()
        is_end = math_ops.cast(ops.equal(sequences, end), dtypes.int32)
        behind = ops.greater(math_ops.cumsum(is_end, 0, exclusive=True), 0)
        result = array_ops.where(behind, ops.fill(array_ops.shape(sequences), end), sequences)
        result.set_shape(ids.static_shape)
        return result


def gather_tree_from_array(t: Tensor, parent_ids: Tensor, sequence_length: Tensor) -> Tensor:
    """The values [steps, batch * width, ...] of the beams that led to those of the last step.

    Args:
        parent_ids: [steps, batch, width], which beam each came from.
        sequence_length: [batch, width].
    """
    steps, batch, width = (size_of(parent_ids, axis) for axis in range(3))
    beams = array_ops.expand_dims(array_ops.expand_dims(math_ops.range(width), 0), 0)
    beams = array_ops.tile(beams, array_ops.stack([steps, batch, 1]))
    longest = math_ops.cast(math_ops.reduce_max(sequence_length, 1), dtypes.int32)
    order = gather_tree(beams, parent_ids, longest, width + 1)
    inside = array_ops.transpose(sequence_mask(sequence_length, maxlen=steps), [2, 0, 1])
    order = array_ops.where(inside, order, beams)
    times = array_ops.tile(
        array_ops.reshape(math_ops.range(steps), [-1, 1, 1]), array_ops.stack([1, batch, width])
    )  # fmt: skip
    rows = array_ops.tile(
        array_ops.reshape(math_ops.range(batch), [-1, 1, 1]), array_ops.stack([1, steps, width])
    )  # fmt: skip
    rows = array_ops.transpose(rows, [1, 0, 2])
    indices = array_ops.stack([times, rows, order], -1)
    shape = array_ops.shape(t)
    apart = array_ops.reshape(t, array_ops.stack([steps, batch, width, -1]))
    return array_ops.reshape(ops.gather_nd(apart, indices), shape)
