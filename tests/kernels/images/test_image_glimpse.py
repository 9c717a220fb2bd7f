"""Glimpses and random crops against TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.op_suite import REALS, Case, check, run_ours, sample, suite
from tests.kernels.op_types import taken

pytestmark = pytest.mark.tensorflow

BLANK = {"uniform_noise": False, "noise": "zero"}
OPS = ("ExtractGlimpse", "ExtractGlimpseV2")
OFFSETS = np.float32([[0, 0], [1, 1], [-1, 0.5], [2.6, 1.4], [-4, 0], [0, 10], [0.3, -0.2], [-0.1, -1]])


def glimpses() -> Iterator[Case]:
    images = sample("float32", (len(OFFSETS), 5, 7, 2))
    for op, centered, normalized in product(OPS, (True, False), (True, False)):
        attrs = {"centered": centered, "normalized": normalized, **BLANK}
        for size in ((3, 2), (1, 1), (5, 7), (9, 4), (2, 12)):
            yield Case(op, [images, np.int32(size), OFFSETS], attrs, id=f"{size}{centered}{normalized}")
    for op in OPS:
        inside = np.zeros((len(images), 2), np.float32)
        yield Case(op, [images, np.int32([3, 2]), inside], id="inside")
        yield Case(op, [images[:0], np.int32([3, 2]), inside[:0]], id="none")
        bad = {"error": "INVALID_ARGUMENT"}
        yield Case(op, [images[0], np.int32([3, 2]), inside], **bad)
        yield Case(op, [images, np.int32([3]), inside], **bad)
        yield Case(op, [images, np.int32([-3, 2]), inside], **bad, id="negative")
        yield Case(op, [images, np.int32([3, 2]), inside[0]], **bad)
        yield Case(op, [images, np.int32([3, 2]), inside[:2]], **bad)
        yield Case(op, [images, np.int32([3, 2]), inside[:, :1]], **bad)
        yield Case(op, [images, np.int32([3, 2]), inside], {"noise": "zero"}, **bad)
        yield Case(op, [images, np.int32([3, 2]), inside], {"noise": "loud", "uniform_noise": False}, **bad)


def crops() -> Iterator[Case]:
    old: dict[str, Any] = {"graph": True, "producer": 7}  # removed from version 8 on
    seeds = {"seed": 4, "seed2": 9}
    for dtype in taken("RandomCrop", REALS):
        yield Case("RandomCrop", [sample(dtype, (9, 8, 3)), np.int64([4, 5])], seeds, **old)
    image = sample("float32", (9, 8, 3))
    for size in ((9, 8), (9, 3), (2, 8), (0, 3), (1, 1)):
        yield Case("RandomCrop", [image, np.int64(size)], seeds, **old, id=str(size))
    for size in ((10, 8), (9, 9), (12, 12)):
        yield Case("RandomCrop", [image, np.int64(size)], seeds, **old, error="FAILED_PRECONDITION", id=str(size))
    for value, size in ((image[0], [1, 1]), (image, [1]), (image, [[1, 1]])):
        yield Case("RandomCrop", [value, np.int64(size)], seeds, **old, error="INVALID_ARGUMENT")


@suite([*glimpses(), *crops()])
def test_glimpse(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("noise", ["uniform", "gaussian"])
def test_noise_is_within_the_image(noise: str) -> None:
    """Random numbers without a seed: only their range can be told."""
    image = sample("float32", (1, 6, 6, 2))
    attrs = {"uniform_noise": noise == "uniform", "noise": noise}
    (out,) = run_ours(Case("ExtractGlimpse", [image, np.int32([40, 40]), np.zeros((1, 2), np.float32)], attrs))
    np.testing.assert_array_equal(out[:, 17:23, 17:23], image)
    assert out.std() > 0.1
    every = (1, 2)
    assert (out.min(every) >= image.min()).all() and (out.max(every) <= image.max()).all()


@settings(max_examples=25, deadline=None, print_blob=True)
@given(
    op=st.sampled_from(OPS),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    offset=st.tuples(*[st.floats(-3, 9, width=16)] * 2),
    centered=st.booleans(),
    normalized=st.booleans(),
)
def test_any_glimpse(op: str, size: Any, offset: Any, centered: bool, normalized: bool) -> None:
    attrs = {"centered": centered, "normalized": normalized, **BLANK}
    check(Case(op, [sample("float32", (1, 6, 5, 1)), np.int32(size), np.float32([offset])], attrs))
