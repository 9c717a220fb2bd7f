"""Connectionist temporal classification (Graves et al. 2006): the loss with its gradient, and the greedy decoder.

Inputs are logits (time, batch, classes). Labels are sparse, (example, position) -> class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.errors import FailedPreconditionError, InvalidArgumentError, OpError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_TYPES = {"T": [dtypes.float32, dtypes.float64]}


def _check_inputs(inputs: Any, lengths: Array, error: type[OpError] = InvalidArgumentError) -> None:
    """Refuse what does not fit; `error` is for lengths."""
    require_rank(inputs, 3, "inputs")
    require_rank(lengths, 1, "sequence_length")
    if lengths.shape[0] != inputs.shape[1]:
        raise error(
            f"sequence_length must have one entry for each of the {inputs.shape[1]} examples, got {shape_text(lengths)}"
        )
    if lengths.size and (lengths.min() < 0 or lengths.max() > inputs.shape[0]):
        raise error(f"sequence_length must be in [0, {inputs.shape[0]}], got {lengths.tolist()}")


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _shift(x: Array, by: int) -> Array:
    """Along the last axis, filled with -inf."""
    out = np.full_like(x, -np.inf)
    if by > 0:
        out[..., by:] = x[..., :-by]
    else:
        out[..., :by] = x[..., -by:]
    return out


def _choose(allowed: Array, x: Array) -> Array:
    return np.where(allowed, x, -np.inf)


def forward_backward(
    log_y: Array, path: Array, sizes: Array, lengths: Array, blank: int, merge: bool
) -> tuple[Array, Array]:
    """log alpha and log beta, (time, batch, states); beta leaves out what is emitted at its own time.

    Args:
        log_y: log probabilities (time, batch, classes).
        path: the class of each state (batch, states): labels with blanks around; sizes: how many states count.
        merge: whether repeated labels are merged, so that a label may last and its repetition needs a blank.
    """
    times, batch = log_y.shape[:2]
    states = path.shape[1]
    number = np.arange(states)
    real = number < sizes[:, None]
    label = path != blank
    # from two states back, over a blank
    skip = label & (number >= 2)
    if merge:
        skip[:, 2:] &= path[:, 2:] != path[:, :-2]
    stay = np.full(path.shape, True) if merge else ~label
    emitted = np.take_along_axis(log_y, np.broadcast_to(path, (times, *path.shape)), axis=2)
    alpha = np.full((times, batch, states), -np.inf)
    beta = np.full((times, batch, states), -np.inf)
    alpha[0] = _choose(real & (number < 2), emitted[0])
    for t in range(1, times):
        before = alpha[t - 1]
        ways = np.logaddexp(_choose(stay, before), _shift(before, 1))
        ways = np.logaddexp(ways, _choose(skip, _shift(before, 2)))
        alpha[t] = _choose(real, ways + emitted[t])
    ends = real & (number >= sizes[:, None] - 2)
    skip_on = np.zeros_like(skip)
    skip_on[:, :-2] = skip[:, 2:]
    for t in reversed(range(times)):
        if t + 1 < times:
            after = beta[t + 1] + emitted[t + 1]
            ways = np.logaddexp(_choose(stay, after), _shift(after, -1))
            beta[t] = _choose(real, np.logaddexp(ways, _choose(skip_on, _shift(after, -2))))
        last = (lengths == t + 1)[:, None]
        beta[t] = np.where(last, np.where(ends, 0.0, -np.inf), np.where((lengths > t)[:, None], beta[t], -np.inf))
    return alpha, beta


def _labels(op: KernelNode, indices: Array, values: Array, batch: int, classes: int, blank: int) -> list[list[int]]:
    """The labels of each example."""
    require_rank(indices, 2, "labels_indices")
    require_rank(values, 1, "labels_values")
    require(
        indices.shape == (values.shape[0], 2),
        f"labels_indices must have shape [{values.shape[0]},2], got {shape_text(indices)}",
    )
    require(
        indices.size == 0 or (indices[:, 0].min() >= 0 and indices[:, 0].max() < batch),
        f"labels_indices name examples outside [0, {batch})",
    )
    require(
        values.size == 0 or (values.min() >= 0 and values.max() < classes and not (values == blank).any()),
        f"labels_values must be classes in [0, {classes}) other than the blank, {blank}",
    )
    found: list[list[int]] = [values[indices[:, 0] == example].tolist() for example in range(batch)]
    if op.attr("preprocess_collapse_repeated"):
        found = [[v for i, v in enumerate(row) if i == 0 or v != row[i - 1]] for row in found]
    return found


class CtcLabels(NamedTuple):
    """Labels of a loss as states of alignments.

    Attributes:
        path: the class of each state (batch, states): labels with blanks around.
        sizes: how many states count, of each example.
        lengths: how much time it has.
        too_long: it has more labels than time, and is left out.
        blank: the class of blanks.
    """

    path: Array
    sizes: Array
    lengths: Array
    too_long: Array
    blank: int


def lay_out(op: KernelNode, inputs: Any, indices: Array, values: Array, lengths: Array) -> CtcLabels:
    """Check what a loss is given and lay its labels out; of the logits only the shape is of interest."""
    _check_inputs(inputs, lengths)
    times, batch, classes = inputs.shape
    require(times > 0 and batch > 0 and classes > 0, f"inputs must not be empty, got {shape_text(inputs)}")
    blank = 0 if op.op == "CTCLossV2" else classes - 1
    labels = _labels(op, indices, values, batch, classes, blank)
    empty = [b for b, row in enumerate(labels) if not row and lengths[b] > 0]
    require(not empty, f"Labels length is zero in batch {empty[:1]}; every example with time needs a label")
    # repeats need a blank between them as well, but TensorFlow then says that the loss is infinite
    needed = np.array([len(row) for row in labels])
    too_long = needed > lengths
    short = np.flatnonzero(too_long)
    require(
        bool(op.attr("ignore_longer_outputs_than_inputs")) or short.size == 0,
        f"Not enough time for target transition sequence (required: {needed[short].tolist()}, available: "
        f"{lengths[short].tolist()}); set ignore_longer_outputs_than_inputs to leave such examples out",
    )
    sizes = np.array([2 * len(row) + 1 for row in labels])
    path = np.full((batch, int(sizes.max())), blank, np.int64)
    for example, row in enumerate(labels):
        path[example, 1 : 2 * len(row) : 2] = row
    return CtcLabels(path, sizes, lengths, too_long, blank)


@kernel("CTCLoss", types=_TYPES)
@kernel("CTCLossV2")
def ctc_loss(op: KernelNode) -> Compute:
    """The loss of each example and its gradient by the logits; the blank is the last class, in V2 the first."""
    merge = bool(op.attr("ctc_merge_repeated"))

    def compute(inputs: Array, indices: Array, values: Array, lengths: Array) -> tuple[Array, Array]:
        path, sizes, _, too_long, blank = lay_out(op, inputs, indices, values, lengths)
        times, batch, _ = inputs.shape
        log_y = _log_softmax(inputs.astype(np.float64))
        alpha, beta = forward_backward(log_y, path, sizes, lengths, blank, merge)
        both = alpha + beta
        total = np.logaddexp.reduce(both[0], axis=-1)
        loss = -total
        # how likely each class is at each time, given the labels
        share = np.exp(both - np.where(np.isfinite(total), total, 0.0)[:, None])
        given = np.zeros(log_y.shape)
        np.add.at(given, (np.arange(times)[:, None, None], np.arange(batch)[:, None], path), share)
        gradient = np.exp(log_y) - given
        counts = (np.arange(times)[:, None] < lengths) & ~too_long & (lengths > 0)
        gradient = np.where(counts[..., None], gradient, 0.0)
        loss = np.where(too_long | (lengths == 0), 0.0, loss)
        return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)

    return compute


@kernel("CTCGreedyDecoder", types=_TYPES)
def ctc_greedy_decoder(op: KernelNode) -> Compute:
    """The best class at each time, without blanks: sparse indices, values, shape, and minus the sum of logits."""
    merge = bool(op.attr("merge_repeated"))
    blank_index: int = op.attr("blank_index")

    def compute(inputs: Array, lengths: Array) -> tuple[Array, ...]:
        _check_inputs(inputs, lengths, FailedPreconditionError)
        times, batch, classes = inputs.shape
        require(classes > 0, "inputs must have classes")
        blank = blank_index + classes if blank_index < 0 else blank_index
        require(0 <= blank < classes, f"blank_index must be in [{-classes}, {classes}), got {blank_index}")
        best = inputs.argmax(axis=2)
        used = np.arange(times)[:, None] < lengths
        keep = used & (best != blank)
        if merge:
            keep[1:] &= best[1:] != best[:-1]
        # example by example, in order of time
        example, time = np.nonzero(keep.T)
        position = (np.cumsum(keep, axis=0) - 1)[time, example]
        shape = np.array([batch, position.max(initial=-1) + 1], np.int64)
        score = -np.where(used, inputs.max(axis=2), 0).sum(axis=0, dtype=inputs.dtype)[:, None]
        indices = np.stack([example, position], axis=1).astype(np.int64)
        return indices, best[time, example].astype(np.int64), shape, score

    return compute
