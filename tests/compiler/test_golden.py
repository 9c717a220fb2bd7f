"""Every pass by itself: what it makes of small programs, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compiler.golden_case import (
    ALL_PASSES,
    BECOMES,
    FOLDER,
    PASSED_OVER,
    REFUSED,
    STAYS,
    Case,
    cases,
    read_case,
)
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver

_CASES = cases()
#: passes that look at a program and change nothing; that they refuse one is what they are for
_CHECKS = frozenset({"find_test", "verify_shapes"})


@pytest.fixture(autouse=True, scope="module")
def _libraries() -> None:
    if library() is None or compiler() is None:
        pytest.skip("what passes choose needs oneDNN and LLVM (extra `fast`), and one of them is not there")


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_golden(case: Case, request: pytest.FixtureRequest) -> None:
    with choose.using(FakeDriver()):  # some passes ask the library of GPUs what it can
        after = case.run()
    if request.config.getoption("--update-golden"):
        case.file.write_text(case.before + after, encoding="utf-8")
    else:
        assert after == case.after, "the pass makes something else now; if it should, run pytest --update-golden"


def test_folders_are_passes() -> None:
    assert {folder.name for folder in FOLDER.iterdir()} <= {each.name for each in ALL_PASSES}


def test_excluded_is_a_node_of_the_program() -> None:
    case = next(case for case in _CASES if "excluded" in case.options)
    with pytest.raises(AssertionError, match="no node of the program is called 'wrong'"):
        replace(case, options={**case.options, "excluded": "wrong"}).run()


def test_what_a_case_is_given_has_names(tmp_path: Path) -> None:
    file = tmp_path / "case.txt"
    file.write_text("// with: exclude = a\nprogram() {\n  return\n}\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="'exclude' is no option of a case; expected excluded, precision"):
        read_case(file)


@pytest.mark.parametrize("name", [each.name for each in ALL_PASSES])
def test_both_ways(name: str, request: pytest.FixtureRequest) -> None:
    """Of each pass there is a program that it changes, and one that it must leave alone."""
    if request.config.getoption("--update-golden"):
        pytest.skip("what becomes of programs is just being written")
    outcomes = {case.outcome for case in _CASES if case.applied.name == name}
    assert outcomes & ({REFUSED} if name in _CHECKS else {BECOMES}), f"no case shows what '{name}' does"
    assert outcomes & {STAYS, PASSED_OVER, REFUSED}, f"no case shows what '{name}' must leave alone"
