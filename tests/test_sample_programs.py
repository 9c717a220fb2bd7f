"""The TensorFlow 1 programs under samples/programs run as they are, and learn."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted((ROOT / "samples" / "programs").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run_and_learn(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "commands.main", "python", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(r"^loss (\S+) -> (\S+)$", done.stdout, re.MULTILINE)
    assert found, done.stdout
    before, after = map(float, found.groups())
    assert after < 0.7 * before, "it has hardly learned"
    right = re.search(r"^accuracy (\S+)$", done.stdout, re.MULTILINE)
    assert right is None or float(right[1]) > 0.9
    assert not list(tmp_path.iterdir()), "a program leaves its files in a folder of its own"


def test_every_program_is_in_the_readme() -> None:
    text = (ROOT / "samples" / "README.md").read_text()
    assert [path.name for path in PROGRAMS if f"`programs/{path.name}`" not in text] == []
