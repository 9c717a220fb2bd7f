"""Targets: which row is whose, and that programs are compiled for the one that is handed in."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.compiler.targets import changed
from toolkit.compiler.settings import Settings
from toolkit.errors import UsageError
from toolkit.target import processor, rows
from toolkit.target.target import Target

_LEVELS = [
    ("x86_64", "x86-64-v2", rows.BASELINE),
    ("x86_64", "x86-64-v3", rows.AVX2),
    ("x86_64", "x86-64-v4", rows.AVX512),
    ("aarch64", "armv8-a", rows.NEON),
]


@pytest.mark.parametrize("machine,level,row", _LEVELS)
def test_a_level_has_its_row(monkeypatch: pytest.MonkeyPatch, machine: str, level: str, row: object) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setenv("GRAPHMILL_CPU", level)
    assert rows.current() is row
    assert Settings.current().target is row


def test_a_level_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_CPU", "x87")
    with pytest.raises(UsageError, match="x87"):
        rows.current()


@pytest.mark.parametrize(
    "machine,level,expected",
    [
        ("aarch64", "x86-64-v3", "expected armv8-a, or nothing"),
        ("x86_64", "armv8-a", "expected x86-64-v2, x86-64-v3, x86-64-v4, or nothing"),
        ("riscv64", "armv8-a", "expected or nothing"),
    ],
)
def test_a_level_of_another_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, machine: str, level: str, expected: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setenv("GRAPHMILL_CPU", level)
    with pytest.raises(UsageError, match=f"^GRAPHMILL_CPU is '{level}'; {expected} for this processor$"):
        rows.current()


#: what Linux says on machines, and what an emulator of one shows on another
_X86_TEXT = (
    "processor\t: 0\nmodel name\t: Some Xeon\nflags\t\t: fpu avx2 avx512f avx512_bf16\n\nprocessor\t: 1\nflags\t: fpu\n"
)
_ARM_TEXT = "processor\t: 0\nFeatures\t: fp asimd bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
_PROCESSORS = [
    ("x86_64", _X86_TEXT, "Some Xeon", rows.AVX512),
    ("AMD64", _X86_TEXT, "Some Xeon", rows.AVX512),
    ("x86_64", "flags : fpu avx2x\n", "", rows.BASELINE),  # names are whole words
    ("aarch64", _ARM_TEXT, "0x41 0xd40", rows.NEON),
    ("arm64", "", "", rows.NEON),  # a system that says nothing: all of them have vectors
    ("aarch64", _X86_TEXT, "", rows.NEON),  # an emulator's host
    ("riscv64", "isa : rv64gc\n", "", rows.BASELINE),
]


@pytest.mark.parametrize("machine,text,model,row", _PROCESSORS)
def test_what_linux_says_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str, text: str, model: str, row: Target
) -> None:
    monkeypatch.delenv("GRAPHMILL_CPU", raising=False)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    (tmp_path / "cpuinfo").write_text(text)
    monkeypatch.setattr(processor, "_INFORMATION", tmp_path / "cpuinfo")
    found = rows._found.__wrapped__("")  # what is known of this processor stays known
    assert found.name == row.name and processor.model() == model
    assert found.vectors.bfloat16 == (row is rows.AVX512)


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
