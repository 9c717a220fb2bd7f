"""Two hosts on one machine: network namespaces with a cable between them that may be slow, lose packets or be cut.

Takes Linux, iproute2 and the right to make namespaces (root); `reason` says what lacks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
#: addresses for tests and documents, which no network has (RFC 5737)
ADDRESSES = ("192.0.2.1", "192.0.2.2")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """The two of them, 0 and 1.

    Attributes:
        names: of the namespaces.
    """

    def __init__(self) -> None:
        self.names = tuple(f"graphmill-{os.getpid()}-{number}" for number in (0, 1))
        self._cables = tuple(f"gm{os.getpid() % 100_000}.{number}" for number in (0, 1))
        self._running: list[subprocess.Popen[str]] = []

    def make(self) -> None:
        """Raises CalledProcessError where that is not allowed."""
        for name in self.names:
            _ip("netns", "add", name)
        _ip("link", "add", self._cables[0], "type", "veth", "peer", "name", self._cables[1])
        for name, cable, address in zip(self.names, self._cables, ADDRESSES, strict=True):
            _ip("link", "set", cable, "netns", name)
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", cable, "up")

    def start(self, host: int, *command: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
        """A graphmill command on a host, that is ended with the hosts."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], sys.executable, "-m", "commands.main", *command],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(_ROOT), **variables}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._running.append(process)
        return process

    def disturb(self, *how: str) -> None:
        """What happens to packets, both ways, in the words of netem: "delay", "20ms"; nothing for none."""
        for name, cable in zip(self.names, self._cables, strict=True):
            words = ["tc", "-n", name, "qdisc", "replace", "dev", cable, "root", "netem", *(how or ("delay", "0ms"))]
            subprocess.run(words, check=True, capture_output=True)

    def end(self) -> None:
        """End all that runs there, and take them away."""
        for process in self._running:
            process.kill()
            process.wait()
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", name)


@contextlib.contextmanager
def hosts() -> Generator[Hosts]:
    """Two hosts that are there during the block."""
    made = Hosts()
    try:
        made.make()
        yield made
    finally:
        made.end()


def reason() -> str:
    """Why there can be none here; "" where they can."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "no iproute2 (ip, tc)"
    try:
        with hosts() as made:
            made.disturb("loss", "1%")
    except (OSError, subprocess.CalledProcessError) as error:
        told: Any = getattr(error, "stderr", b"") or b""
        return f"no network namespaces here: {told.decode(errors='replace').strip() or error}"
    return ""
