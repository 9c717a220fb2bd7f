"""What the op suite allows is less than any mistake: a term left out, one wrong number, digits that are not there."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.op_suite import Case, check_against, compare, compare_outputs, run_ours, sample


def _f(*shape: int, seed: int = 0) -> Any:
    return sample("float32", shape, -1, 1, seed)


_WINDOW = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_IMAGE = _f(2, 6, 7, 3)
#: one of each class
NAMED = {
    "sums": Case("Conv2D", [_IMAGE, _f(3, 3, 3, 4)], _WINDOW),
    "sums in one input": Case("MaxPoolGrad", [_IMAGE, *run_ours(Case("MaxPool", [_IMAGE], _WINDOW | {
        "ksize": [1, 2, 2, 1]})), _f(2, 6, 7, 3, seed=1)], _WINDOW | {"ksize": [1, 2, 2, 1]}),
    "means": Case("Mean", [_f(40, 50), np.int32([0])]),
    "products": Case("Prod", [_f(5, 7), np.int32([1])]),
    "matrices": Case("MatrixInverse", [_f(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)]),
    "weighed": Case("ResizeBicubic", [_IMAGE, np.int32([9, 5])]),
    "units": Case("LogSoftmax", [_f(5, 9)]),
    "condition": Case("FusedBatchNormV3", [_IMAGE, *_f(2, 3), np.zeros(0, np.float32), np.zeros(0, np.float32)],
                      normalize=lambda outputs: outputs[:3]),
    "in float32": Case("CTCLoss", [sample("float64", (8, 2, 5), -3, 3), np.int64([[0, 0], [1, 0]]), np.int32([1, 2]),
                                   np.int32([8, 8])]),
}  # fmt: skip


def _outputs(case: Case) -> list[Any]:
    outputs = run_ours(case, defining=True)
    return case.normalize(outputs) if case.normalize else outputs


@pytest.mark.parametrize("name", NAMED)
def test_one_wrong_number(name: str) -> None:
    """Off by a thousandth of the largest; and the right ones are within."""
    case = NAMED[name]
    wanted = _outputs(case)
    compare_outputs(case, wanted, wanted)
    for position, right in enumerate(wanted):
        wrong = [each.copy() for each in wanted]
        wrong[position].flat[right.size // 2] += np.abs(right).max() / 1000
        with pytest.raises(AssertionError, match="than rounding explains"):
            compare_outputs(case, wrong, wanted)


@pytest.mark.parametrize("name", NAMED)
def test_one_wrong_input(name: str) -> None:
    """A number of an input that is left out moves what depends on it by more than is allowed."""
    case = NAMED[name]
    at, given = next((i, x) for i, x in enumerate(case.inputs) if isinstance(x, np.ndarray) and x.dtype.kind == "f")
    at = 2 if case.op == "MaxPoolGrad" else at
    given = np.asarray(case.inputs[at])
    wrong = given.copy()
    wrong.flat[int(np.argmax(np.abs(given)))] = 0
    outputs = _outputs(Case(case.op, [*case.inputs[:at], wrong, *case.inputs[at + 1 :]], case.attrs))
    with pytest.raises(AssertionError, match="than rounding explains"):
        compare_outputs(case, outputs[: len(_outputs(case))], _outputs(case))


@pytest.mark.parametrize("name", ["sums", "means", "matrices", "condition"])
def test_eight_bits_are_not_enough(name: str) -> None:
    case = NAMED[name]
    narrow = [x.astype(ml_dtypes.bfloat16).astype(x.dtype) if x.dtype.kind == "f" else x for x in case.inputs]
    with pytest.raises(AssertionError, match="than rounding explains"):
        check_against(case, _outputs(Case(case.op, narrow, case.attrs, normalize=case.normalize)))


def test_sums_in_another_order() -> None:
    """One by one, forwards and backwards, in float32."""
    a, b = _f(6, 300), _f(300, 5)
    for order in (slice(None), slice(None, None, -1)):
        one_by_one = np.cumsum(a[:, order, None] * b[order], 1, dtype=np.float32)[:, -1]
        check_against(Case("MatMul", [a, b]), [one_by_one])


def test_infinities_and_exact_numbers() -> None:
    numbers = np.float32([1, np.inf, np.nan, 0])
    compare(numbers, numbers)
    for place, value in ((1, 3e38), (2, 1.0), (3, 1e-30)):
        other = numbers.copy()
        other[place] = value
        with pytest.raises(AssertionError):
            compare(other, numbers)
    with pytest.raises(AssertionError):
        compare(np.nextafter(numbers, np.float32(9)), numbers, exact=True)
    compare(np.int32([3, 5]), np.int32([4, 5]), levels=1)  # which is how far they are apart
    with pytest.raises(AssertionError):
        compare(np.int32([3, 5]), np.int32([4, 5]))
