"""CTC loss and greedy decoding against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, check_against, run_ours, run_tensorflow, sample, suite
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"


def sparse(rows: Sequence[Sequence[int]]) -> list[Any]:
    pairs = [(b, i, v) for b, row in enumerate(rows) for i, v in enumerate(row)]
    return [np.array([p[:2] for p in pairs], np.int64).reshape(-1, 2), np.array([p[2] for p in pairs], np.int32)]


LABELS = [[1, 2, 3], [2, 2, 1], [3], [1, 3, 3]]


def losses() -> Iterator[Case]:
    lengths = np.int32([8, 6, 1, 5])
    for op, dtype in (("CTCLoss", "float32"), ("CTCLoss", "float64")):
        x = sample(dtype, (8, 4, 5), -3, 3)
        for collapse, merge, ignore in product((False, True), repeat=3):
            attrs = {
                "preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge,
                "ignore_longer_outputs_than_inputs": ignore,
            }  # fmt: skip
            tag = f"{dtype}-{collapse}-{merge}-{ignore}"
            yield Case(op, [x, *sparse(LABELS), lengths], attrs, id=tag)
            # the second row cannot be emitted in 3 steps when repeats are merged: an infinite loss
            yield Case(op, [x, *sparse(LABELS), np.int32([8, 3, 1, 5])], attrs, error="SAME", id=f"short-{tag}")
            yield Case(op, [x, *sparse(LABELS), np.int32([2, 6, 1, 5])], attrs, error="SAME", id=f"long-{tag}")
        yield Case(op, [x, *sparse([[1], [2], [], []]), np.int32([8, 0, 0, 5])], error="SAME", id=f"no-time-{dtype}")
        yield Case(op, [x, *sparse([[1], [2], [3], []]), lengths], error=BAD, id=f"no-labels-{dtype}")
        indices, values = sparse(LABELS)
        yield Case(op, [x[0], indices, values, lengths], error=BAD, id=f"{dtype}-rank")
        yield Case(op, [x, indices[0], values, lengths], error=BAD, id=f"{dtype}-indices")
        yield Case(op, [x, indices, values[:3], lengths], error=BAD, id=f"{dtype}-values")
        yield Case(op, [x, indices, values, lengths[:3]], error=BAD, id=f"{dtype}-lengths")
        yield Case(op, [x, indices, values, lengths + 3], error=BAD, id=f"{dtype}-over-time")


def decodings() -> Iterator[Case]:
    op = "CTCGreedyDecoder"
    for dtype, merge, blank in product(("float32", "float64"), (False, True), (-1, 0, 2, -3)):
        x = sample(dtype, (9, 3, 4))
        x[3:5] = x[2]  # repeats
        attrs = {"merge_repeated": merge, "blank_index": blank}
        for lengths in ([9, 9, 9], [9, 4, 0], [0, 0, 0]):
            yield Case(op, [x, np.int32(lengths)], attrs, id=f"{dtype}-{merge}-{blank}-{lengths}")
    x = sample("float32", (9, 3, 4))
    lengths = np.int32([9, 4, 5])
    yield Case(op, [x[0], lengths], error=BAD)
    yield Case(op, [x, lengths[:2]], error="FAILED_PRECONDITION")
    yield Case(op, [x, lengths + 2], error="FAILED_PRECONDITION")
    yield Case(op, [x, lengths], {"blank_index": 4}, error=BAD)
    yield Case(op, [x, lengths], {"blank_index": -5}, error=BAD)


CASES = [*losses(), *decodings()]


@suite(CASES)
def test_ctc(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("op", ["CTCLoss", "CTCLossV2"])
def test_label_that_is_no_class(op: str) -> None:
    """TensorFlow aborts the process here; ours says what is wrong."""
    indices, values = sparse(LABELS)
    case = Case(op, [sample("float32", (8, 4, 5)), indices, values + 3, np.int32([8, 6, 1, 5])])
    with pytest.raises(InvalidArgumentError, match="labels_values must be classes"):
        run_ours(case)


def test_second_version(tf: ModuleType) -> None:
    """TensorFlow runs it on GPUs alone: it is the first version with the blank in front."""
    x, lengths = sample("float32", (8, 4, 5), -3, 3), np.int32([8, 6, 1, 5])
    indices, values = sparse(LABELS)
    rolled = np.roll(x, -1, axis=2)
    loss, gradient = run_tensorflow(Case("CTCLoss", [rolled, indices, values - 1, lengths]))
    check_against(Case("CTCLossV2", [x, indices, values, lengths]), [loss, np.roll(gradient, 1, axis=2)])
