"""Targets: which row is whose, and that programs are compiled for the one that is handed in."""

from __future__ import annotations

import pytest

from tests.compiler.targets import changed
from toolkit.compiler.settings import Settings
from toolkit.errors import UsageError
from toolkit.target import processor, rows


@pytest.mark.parametrize(
    "level,row", [("x86-64-v2", rows.BASELINE), ("x86-64-v3", rows.AVX2), ("x86-64-v4", rows.AVX512)]
)
def test_a_level_has_its_row(monkeypatch: pytest.MonkeyPatch, level: str, row: object) -> None:
    monkeypatch.setenv("GRAPHMILL_CPU", level)
    assert rows.current() is row
    assert Settings.current().target is row


def test_a_level_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_CPU", "x87")
    with pytest.raises(UsageError, match="x87"):
        rows.current()


def test_this_processor_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHMILL_CPU", raising=False)
    found = rows.current()
    assert found is rows.current()
    assert (found.vectors.lanes == 16) == processor.has("avx512f")
    assert found.vectors.bfloat16 == processor.has("avx512_bf16")


def test_a_row_that_names_a_model_comes_before_one_for_all_with_its_instructions() -> None:
    own = rows.AVX2._replace(name="mine", models=("Some EPYC 7", "Other"))
    table = (*rows.ROWS, own)
    assert rows.row_of("avx2", "Some EPYC 7543", table) is own
    assert rows.row_of("avx2", "Another", table) is rows.AVX2
    assert rows.row_of("avx2", "", table) is rows.AVX2
    assert rows.row_of("avx512", "Some EPYC 7543", table) is rows.AVX512


def test_names_of_rows_are_different() -> None:
    assert len({row.name for row in rows.ROWS}) == len(rows.ROWS)


def test_what_is_handed_in_is_the_target() -> None:
    mine = changed(winograd={"gain": 3.0})
    assert mine != rows.current()
    assert Settings.current(target=mine).target.winograd.gain == 3.0
