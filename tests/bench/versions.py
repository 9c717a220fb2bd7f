"""Another version of graphmill to be measured beside this one: a revision of this repository, or a folder."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.models import ROOT

#: what a version consists of; the tests, and with them the benchmark, are always this version's
PACKAGES = ("toolkit", "commands", "schemas")


class NoVersionError(Exception):
    """There is no such version; the message says what was looked for."""


@dataclass(frozen=True)
class Version:
    """A version of graphmill.

    Attributes:
        name: what rows call it; may be part of a file's name.
        folder: has its packages.
    """

    name: str
    folder: Path


@contextmanager
def version(text: str) -> Iterator[Version]:
    """The version that `text` names, until the block ends: a folder as it is, a revision in a temporary folder.

    Raises:
        NoVersionError: `text` is neither, or what it names has no packages of graphmill.
    """
    folder = Path(text)
    if folder.is_dir():
        if not (folder / "toolkit" / "__init__.py").exists():
            raise NoVersionError(f"{text}: a folder without graphmill's packages ({', '.join(PACKAGES)})")
        yield Version(f"graphmill in {folder.resolve().name}", folder.resolve())
        return
    found = _git("rev-parse", "--verify", "--quiet", "--short", "--end-of-options", f"{text}^{{commit}}")
    if found.returncode:
        raise NoVersionError(f"{text}: neither a folder nor a revision of this repository")
    short = found.stdout.decode().strip()
    archive = _git("archive", short, *PACKAGES)
    if archive.returncode:
        raise NoVersionError(f"{text}: {archive.stderr.decode(errors='replace').strip()}")
    with tempfile.TemporaryDirectory(prefix="graphmill-bench-") as name:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(name, filter="data")
        yield Version(f"graphmill {short}", Path(name).resolve())


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
