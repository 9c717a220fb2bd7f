"""ReadFile, WriteFile, MatchingFiles against TensorFlow."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, check, outcome, run_ours, run_tensorflow
from toolkit.errors import BY_CODE
from toolkit.kernels.cpu.files.file_io import matching
from toolkit.policy.access import Access, Files
from toolkit.policy.rules import Policy

pytestmark = pytest.mark.tensorflow


def text(*values: str) -> Any:
    array = np.array([os.fsencode(v) for v in values], object)
    return array.reshape(()) if len(values) == 1 else array


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("files")
    for name in (
        "a.txt",
        "b.txt",
        "c1.bin",
        "c2.bin",
        ".hidden.txt",
        "x[1].txt",
        "sub/a.txt",
        "sub/deep/b.txt",
        "other/a.txt",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() + b"\0\xff")
    (root / "empty").write_bytes(b"")
    return root


@pytest.mark.parametrize("name", ["a.txt", "empty", "sub/deep/b.txt"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_read_file(folder: Path, name: str, scheme: str, tf: ModuleType) -> None:
    check(Case("ReadFile", [text(f"{scheme}{folder / name}")]))


@pytest.mark.parametrize(
    ("name", "error"),
    [("missing", "NOT_FOUND"), ("sub", "FAILED_PRECONDITION"), ("a.txt/b", "FAILED_PRECONDITION"),
     ("n" * 300, "INVALID_ARGUMENT")],
)  # fmt: skip
def test_read_file_refuses(folder: Path, name: str, error: str, tf: ModuleType) -> None:
    check(Case("ReadFile", [text(str(folder / name))], error=error))


def test_read_file_wants_a_scalar(folder: Path, tf: ModuleType) -> None:
    check(Case("ReadFile", [text("a", "b")], error="INVALID_ARGUMENT"))
    check(Case("WriteFile", [text("a", "b"), text("c")], error="INVALID_ARGUMENT"))
    check(Case("WriteFile", [text("a"), text("b", "c")], error="INVALID_ARGUMENT"))


def test_write_file(tmp_path: Path, tf: ModuleType) -> None:
    for run, where in ((run_ours, "ours"), (run_tensorflow, "theirs")):
        for data in (b"first, longer", b"\0\xffsecond", b""):
            target = tmp_path / where / "new" / "file"
            assert run(Case("WriteFile", [text(str(target)), np.array(data, object)])) == []
            assert target.read_bytes() == data


@pytest.mark.parametrize(("name", "kind"), [(".", "folder"), ("file/below", "below a file")])
def test_write_file_refuses(tmp_path: Path, name: str, kind: str, tf: ModuleType) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    case = Case("WriteFile", [text(str(tmp_path / name)), text("x")])
    with pytest.raises(tf.errors.OpError) as theirs:
        run_tensorflow(case)
    status, message = outcome(lambda: run_ours(case))
    assert status == BY_CODE[theirs.value.error_code].status, message
    assert (tmp_path / "file").read_bytes() == b"kept"
    assert len(list(tmp_path.iterdir())) == 1


PATTERNS = [
    "*", "*.txt", "?.txt", "c[12].bin", "c[!1].bin", "c[^1].bin", "c[a-z0-9].bin", "*/a.txt", "*/*/*", "sub/*", "none*",
    "a.txt", "missing", "x\\[1\\].txt", "sub/deep", "*/deep/?.txt", "x[[]1].txt", "[ab].txt", "s*b/a*", "[.txt",
    "*.txt/a",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_matching_files(folder: Path, pattern: str, tf: ModuleType) -> None:
    check(Case("MatchingFiles", [text(f"{folder}/{pattern}")]))


def test_matching_files_of_several_patterns(folder: Path, tf: ModuleType) -> None:
    check(Case("MatchingFiles", [text(f"{folder}/*.txt", f"{folder}/a*", f"{folder}/*/a.txt")]))
    check(Case("MatchingFiles", [np.array([], object)]))
    check(Case("MatchingFiles", [np.full((1, 1), b"a", object)], error="INVALID_ARGUMENT"))


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + "/*", "x/" * 5000, "x" * 300 + "*", "a.txt/*"])
def test_matching_files_of_impossible_names(folder: Path, name: str, tf: ModuleType) -> None:
    check(Case("MatchingFiles", [text(f"{folder}/{name}")]))


def test_matching_files_relative(folder: Path, monkeypatch: pytest.MonkeyPatch, tf: ModuleType) -> None:
    monkeypatch.chdir(folder)
    for pattern in ("*.txt", "./*.txt", "sub/*.txt", "*/a.txt", "a.txt", "./a.txt", "sub/../*/*.txt"):
        check(Case("MatchingFiles", [text(pattern)]))


def test_an_empty_name(folder: Path, monkeypatch: pytest.MonkeyPatch, tf: ModuleType) -> None:
    """It is no file, and not the working directory."""
    monkeypatch.chdir(folder)
    check(Case("MatchingFiles", [text("")]))
    check(Case("ReadFile", [text("")], error="NOT_FOUND"))
    check(Case("WriteFile", [text(""), text("x")], error="NOT_FOUND"))


def test_a_pattern_of_many_stars_does_not_take_time_without_end(tmp_path: Path) -> None:
    files = Files(Access(Policy.everything()), "node", "MatchingFiles")
    (tmp_path / ("a" * 200)).touch()
    (tmp_path / ("a" * 200 + "b")).touch()
    assert matching(files, f"{tmp_path}/{'*a' * 40}*c") == []
    assert [Path(path).name for path in matching(files, f"{tmp_path}/*{'*a' * 40}*b")] == ["a" * 200 + "b"]
