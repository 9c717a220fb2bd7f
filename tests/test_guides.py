"""The guides: the files of each page are written into an empty folder, and its commands run there.

Where they are files of the repository, the folder is a copy of what they need of it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDES = ROOT / "samples" / "guides"
PAGES = sorted(path for path in GUIDES.glob("*.md") if path.name != "README.md")
#: what files of the repository are tried with
_NEEDED = ("toolkit", "schemas", "commands", "tests/compiler")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_works_as_it_stands(page: Path, tmp_path: Path) -> None:
    commands: list[str] = []
    files: dict[str, str] = {}
    for language, text in _BLOCK.findall(page.read_text(encoding="utf8")):
        if language == "sh":
            commands += text.splitlines()
        else:
            name, _, _ = text.partition("\n")
            files[name.removeprefix("# ").removeprefix("// ")] = text
    if any("/" in name for name in files):
        _copy_checkout(tmp_path)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf8")
    assert commands, "a guide ends with what the reader can run"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert _changed(tmp_path) == _said_to_change(page)


def _copy_checkout(folder: Path) -> None:
    for name in _NEEDED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in [ROOT / "pyproject.toml", *(ROOT / "tests").glob("*.py")]:
        shutil.copy(file, folder / file.relative_to(ROOT))


def _changed(folder: Path) -> list[str]:
    """The files of the repository that are others now."""
    found: list[str] = []
    for path in sorted(folder.glob("toolkit/**/*.py")):
        own = ROOT / path.relative_to(folder)
        if own.exists() and own.read_bytes() != path.read_bytes():
            found.append(str(path.relative_to(folder)))
    return found


def _said_to_change(page: Path) -> list[str]:
    """What the list of guides says of a page: files in its last column."""
    (row,) = (
        line for line in (GUIDES / "README.md").read_text(encoding="utf8").splitlines() if f"({page.name}) |" in line
    )
    return re.findall(r"`(\S+)`", row.rpartition("|")[0].rpartition("|")[2])


def test_every_guide_is_listed() -> None:
    listed = re.findall(r"\]\((\w+\.md)\)", (GUIDES / "README.md").read_text(encoding="utf8"))
    assert sorted(listed) == [page.name for page in PAGES]
