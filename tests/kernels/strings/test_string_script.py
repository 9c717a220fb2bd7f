"""Scripts of characters and fingerprints of rows against TensorFlow."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import export_scripts
from tests.kernels.op_suite import NUMBERS, Case, check, sample, suite

pytestmark = pytest.mark.tensorflow

FARM = np.array(b"farmhash64", object)


def rows() -> Iterator[Case]:
    for shape in ((), (0,), (3, 2)):
        yield Case("UnicodeScript", [sample("int32", shape, 0, 70000)])
    ends = [-(2**31), -2, -1, 0, 64, 65, 0x3B1, 0x4E00, 0xD800, 0xE000, 0xFFFF, 0x10FFFF, 0x110000, 2**31 - 1]
    yield Case("UnicodeScript", [np.int32(ends)], id="ends")
    for dtype in (*NUMBERS, "bool"):
        yield Case("Fingerprint", [sample(dtype, (3, 5)), FARM])
    for shape in ((4,), (2, 3), (2, 1), (2, 2, 2), (0,), (0, 3), (3, 0)):
        if shape != (3, 0):  # TensorFlow leaves the fingerprints of no strings as they were in memory
            yield Case("Fingerprint", [sample("string", shape), FARM])
        yield Case("Fingerprint", [sample("float32", shape), FARM])
    yield Case("Fingerprint", [sample("uint8", (2, 300)), FARM])
    bad = {"error": "INVALID_ARGUMENT"}
    yield Case("Fingerprint", [np.float32(1), FARM], **bad)
    yield Case("Fingerprint", [np.arange(3), np.array(b"md5", object)], **bad)
    yield Case("Fingerprint", [np.arange(3), np.array([b"farmhash64"], object)], **bad)


@suite(list(rows()))
def test_scripts_and_fingerprints(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_every_character(tf: ModuleType) -> None:
    """The table is what TensorFlow tells, run for run."""
    table = lzma.decompress(export_scripts.TARGET.read_bytes()).decode().splitlines()
    assert table == export_scripts.lines()
    check(Case("UnicodeScript", [np.arange(-3, 0x110003, dtype=np.int32)], id="all"))


@settings(max_examples=25, deadline=None, print_blob=True)
@given(st.lists(st.lists(st.binary(max_size=150), min_size=2, max_size=2), min_size=1, max_size=4))
def test_any_strings(values: Any) -> None:
    check(Case("Fingerprint", [np.array(values, object), FARM]))
