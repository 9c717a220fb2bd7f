"""What a machine lacks is told before anything is run on it."""

from __future__ import annotations

import pytest

from tests.gpu import packages


@pytest.mark.parametrize(
    ("there", "bounds", "fit"),
    [
        ("0.28.1", ">=0.26,<0.29", True), ("0.29.0", ">=0.26,<0.29", False), ("0.9", ">=0.26", False),
        ("2.11.0+cu130", ">=2.11", True), ("1.80.1", "==1.80", True), ("13.5.0", "", True),
    ],
)  # fmt: skip
def test_versions(there: str, bounds: str, fit: bool) -> None:
    assert packages.fits(there, bounds) == fit


def test_what_is_missing_is_told_but_for_what_few_cases_need() -> None:
    found = list(packages.problems(iter(["numpy>=1", "nobody-s-package>=2; python_version > '3'", "torch", "numpy<1"])))
    assert len(found) == 2
    assert found[0] == "nobody-s-package is missing (>=2 is needed)"
    assert found[1].startswith("numpy ") and found[1].endswith("(<1 is needed)")


def test_pyproject_names_what_kernels_and_libraries_need() -> None:
    assert {each.partition(">")[0] for each in packages.asked()} >= {"numpy", "llvmlite", "cuda-bindings"}
