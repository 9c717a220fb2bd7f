"""The CTC beam search decoder against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import SAME, Case, check, sample, suite

pytestmark = pytest.mark.tensorflow


def cases() -> Iterator[Case]:
    for dtype, width, merge, shape in product(
        ("float32", "float64"), (1, 4, 20), (False, True), ((6, 2, 4), (12, 1, 3), (3, 3, 6))
    ):
        inputs = sample(dtype, shape, -4, 4)
        lengths = np.int32([shape[0] - i for i in range(shape[1])])
        attrs = {"beam_width": width, "top_paths": min(width, 3), "merge_repeated": merge}
        yield Case("CTCBeamSearchDecoder", [inputs, lengths], attrs)
    inputs = sample("float32", (4, 2, 3))
    one = {"beam_width": 5, "top_paths": 1}
    for lengths, attrs in (
        ([4], one), ([5, 4], one), ([-1, 4], one), ([4, 4], {"beam_width": 2, "top_paths": 3}), ([[4, 4]], one),
        ([0, 4], {"beam_width": 5, "top_paths": 2}),
    ):  # fmt: skip
        yield Case("CTCBeamSearchDecoder", [inputs, np.int32(lengths)], attrs, error=SAME)
    yield Case("CTCBeamSearchDecoder", [inputs, np.int32([0, 4])], one)


CASES = list(cases())


@suite(CASES)
def test_beam_search(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@settings(max_examples=30, deadline=None, print_blob=True)
@given(seed=st.integers(0, 999), classes=st.integers(2, 5), times=st.integers(1, 9), width=st.integers(1, 9))
def test_any_beams(seed: int, classes: int, times: int, width: int, tf: ModuleType) -> None:
    inputs = sample("float64", (times, 2, classes), -3, 3, seed=seed)
    attrs = {"beam_width": width, "top_paths": 1, "merge_repeated": bool(seed % 2)}
    # TensorFlow adds logarithms in single precision, whatever the type
    check(Case("CTCBeamSearchDecoder", [inputs, np.int32([times, max(times - 1, 0)])], attrs))
