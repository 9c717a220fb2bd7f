"""CTC losses on a GPU beside the CPU's, and their kernels as machine code."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, run_ours
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.nn import ctc_kernels

pytest.importorskip("llvmlite")
#: both compute in float64 and round once; what is large is a loss of about 10 and an exponential of it
_NEAR = 2.0**-22
_RNG = np.random.default_rng(5)


def _case(rows: list[list[int]], times: int, classes: int, lengths: list[int], **attrs: bool) -> Case:
    pairs = [(b, i, label) for b, row in enumerate(rows) for i, label in enumerate(row)]
    indices = np.array([pair[:2] for pair in pairs], np.int64).reshape(-1, 2)
    x = _RNG.normal(size=(times, len(rows), classes)).astype(np.float32) * np.float32(2)
    return Case(
        "CTCLossV2", [x, indices, np.array([pair[2] for pair in pairs], np.int32), np.array(lengths, np.int32)], attrs
    )


def _compare(case: Case) -> None:
    for found, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=_NEAR, atol=_NEAR)


@pytest.mark.parametrize(("collapse", "merge"), list(product((False, True), repeat=2)))
def test_labels_that_repeat(collapse: bool, merge: bool) -> None:
    _compare(
        _case(
            [[1, 2, 3], [2, 2, 1], [3], [1, 3, 3]], 8, 5, [8, 6, 1, 5], preprocess_collapse_repeated=collapse,
            ctc_merge_repeated=merge,
        )
    )  # fmt: skip


def test_what_cannot_be_is_infinite_and_what_is_left_out_is_zero() -> None:
    """Of two equal labels in two steps there is no alignment; three labels in two steps are left out; one has no
    time."""
    case = _case([[1, 1], [1, 2, 3], [], [2]], 4, 4, [2, 2, 0, 4], ignore_longer_outputs_than_inputs=True)
    _compare(case)
    loss, gradient = run_ours(case, "GPU")
    assert loss[0] == np.inf and loss[1] == loss[2] == 0 and not gradient[:, 1:3].any() and not gradient[2:, 0].any()


def test_more_states_and_classes_than_a_block_has_threads() -> None:
    rows = [_RNG.integers(1, 300, 150).tolist(), _RNG.integers(1, 300, 3).tolist()]
    _compare(_case(rows, 160, 300, [160, 7]))


def test_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Not enough time"):
        run_ours(_case([[1, 2, 3]], 4, 4, [2]), "GPU")


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
def test_kernels_are_assembled(capability: tuple[int, int]) -> None:
    for kernel in (ctc_kernels.log_softmax("float"), ctc_kernels.ways(True), ctc_kernels.ways(False),
                   ctc_kernels.results("float")):  # fmt: skip
        assert assembled(ptx.write(kernel, capability), capability).spills == 0
