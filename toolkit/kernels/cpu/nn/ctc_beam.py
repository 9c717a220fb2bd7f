"""The CTC beam search decoder (Graves et al. 2006, section 3.2; Hannun et al. 2014).

Beams are prefixes of labels in a tree. Each has the log probability of all alignments that end in a blank, and of
those that end in its last label.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any

from toolkit.errors import FailedPreconditionError, InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, require_rank, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_ZERO = -math.inf


def _add(a: float, b: float) -> float:
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == _ZERO else a + math.log1p(math.exp(b - a))


class _Beam:
    """One prefix; `now` and `before` are (total, blank, label) log probabilities of this step and the last."""

    __slots__ = ("before", "children", "label", "now", "parent")

    def __init__(self, parent: _Beam | None, label: int):
        self.parent = parent
        self.label = label
        self.children: dict[int, _Beam] = {}
        self.now = self.before = (_ZERO, _ZERO, _ZERO)

    @property
    def is_active(self) -> bool:
        return self.now[0] != _ZERO

    def labels(self, merge: bool) -> list[int]:
        out: list[int] = []
        beam: _Beam = self
        after = -1
        while beam.parent is not None:
            if not merge or beam.label != after:
                out.append(beam.label)
            after = beam.label
            beam = beam.parent
        return out[::-1]


def _step(beams: list[_Beam], log_y: list[float], array: Array, width: int) -> list[_Beam]:
    """The beams after one more time step, best first."""
    blank = len(log_y) - 1
    for beam in beams:
        beam.before = beam.now
    order = itertools.count()
    heap: list[tuple[float, int, _Beam]] = []
    for beam in beams:
        total, _, label = beam.now
        parent = beam.parent
        if parent is not None:
            if parent.is_active:
                # the same label twice needs a blank between
                label = _add(label, parent.before[1] if beam.label == parent.label else parent.before[0])
            label += log_y[beam.label]
        ends_blank = total + log_y[blank]
        beam.now = (_add(ends_blank, label), ends_blank, label)
        heapq.heappush(heap, (beam.now[0], next(order), beam))

    def fits(total: float) -> bool:
        return total > _ZERO and (len(heap) < width or total > heap[0][0])

    for beam in beams:
        if not fits(beam.before[0]):
            continue
        totals = array[:blank] + beam.before[0]
        if beam.label >= 0:
            totals[beam.label] = array[beam.label] + beam.before[1]
        floor = heap[0][0] if len(heap) >= width else _ZERO
        # children that were made before are looked at too: one that has no place now must not be expanded any more
        for label in sorted({*np.flatnonzero(totals > floor).tolist(), *beam.children}):
            child = beam.children.get(label)
            if child is None:
                child = beam.children[label] = _Beam(beam, label)
            if child.is_active:
                continue
            total = float(totals[label])
            if not fits(total):
                child.now = child.before = (_ZERO, _ZERO, _ZERO)
                continue
            child.now = (total, _ZERO, total)
            entry = (total, next(order), child)
            if len(heap) >= width:
                _, _, gone = heapq.heapreplace(heap, entry)
                gone.now = (_ZERO, _ZERO, _ZERO)
            else:
                heapq.heappush(heap, entry)
    return [beam for _, _, beam in sorted(heap, key=lambda entry: -entry[0])]


def decode(logits: Array, width: int, paths: int, merge: bool) -> list[tuple[list[int], float]]:
    """The best `paths` label sequences of one example (time, classes), with their log probabilities.

    Raises:
        InvalidArgumentError: there are fewer beams.
    """
    root = _Beam(None, -1)
    root.now = (0.0, 0.0, _ZERO)
    beams = [root]
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    log_y = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    for row in log_y:
        beams = _step(beams, row.tolist(), row, width)
    if len(beams) < paths:
        raise InvalidArgumentError("Less leaves in the beam search than requested.")
    return [(beam.labels(merge), beam.now[0]) for beam in beams[:paths]]


@kernel("CTCBeamSearchDecoder", types={"T": [dtypes.float32, dtypes.float64]})
def ctc_beam_search_decoder(op: KernelNode) -> Compute:
    """For each path the decoded labels as a sparse matrix (indices, values, shape); then log probabilities."""
    width, paths, merge = op.attr("beam_width"), op.attr("top_paths"), op.attr("merge_repeated")

    def compute(inputs: Array, lengths: Array) -> list[Any]:
        require_rank(inputs, 3, "inputs")
        require_rank(lengths, 1, "sequence_length")
        times, batch, classes = inputs.shape
        require(times > 0, f"inputs must have at least one time step: {shape_text(inputs)}")
        require(classes > 0, f"inputs must have at least one class: {shape_text(inputs)}")
        if lengths.shape[0] != batch:
            raise FailedPreconditionError(
                f"len(sequence_length) != batch_size. len(sequence_length): {lengths.shape[0]} batch_size: {batch}"
            )
        require(paths <= width, "top_paths is greater than the beam width")
        if lengths.size and lengths.max() > times:
            raise FailedPreconditionError(f"sequence_length(b) <= {times}, got {lengths.tolist()}")
        found = [decode(inputs[: max(n, 0), b], width, paths, merge) for b, n in enumerate(lengths.tolist())]
        indices: list[Array] = []
        values: list[Array] = []
        shapes: list[Array] = []
        for path in range(paths):
            rows = [example[path][0] for example in found]
            places = [(b, i) for b, row in enumerate(rows) for i in range(len(row))]
            indices.append(np.array(places, np.int64).reshape(-1, 2))
            values.append(np.array([label for row in rows for label in row], np.int64))
            shapes.append(np.array([batch, max(map(len, rows), default=0)], np.int64))
        scores = np.array([[score for _, score in example] for example in found], inputs.dtype).reshape(batch, paths)
        return [*indices, *values, *shapes, scores]

    return compute
