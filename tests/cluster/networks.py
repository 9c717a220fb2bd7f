"""Two hosts on one machine: network namespaces with a cable between them that may be slow, lose packets or be cut.

The cable is this process: each host has a TUN device, whose packets a thread hands on, later, or not at all. So it
takes Linux, the right to make namespaces (root) and `ip`, and none of the kernel's ways to disturb a network, which
not every machine has; `reason` says what lacks.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
#: addresses for documents, which no network has (RFC 5737)
ADDRESSES = ("192.0.2.1", "192.0.2.2")
_TUNSETIFF = 0x400454CA  # linux/if_tun.h
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_PACKET = 1 << 16


class Cable:
    """Hands packets from one device to the other.

    Attributes:
        delay: seconds that each packet takes.
        loss: what part of them is lost; 1 where it is cut.
    """

    def __init__(self, devices: tuple[int, int]):
        self.delay = 0.0
        self.loss = 0.0
        self._devices = devices
        self._chance = random.Random(1)
        self._stop, self._stopped = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []
        number = 0
        while True:
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, _, there, packet = heapq.heappop(under_way)
                with contextlib.suppress(OSError):  # the device is gone
                    os.write(there, packet)
            wait = max(0.0, under_way[0][0] - now) if under_way else None
            ready, _, _ = select.select([*self._devices, self._stop], [], [], wait)
            if self._stop in ready:
                return
            for here in ready:
                packet = os.read(here, _PACKET)
                if self._chance.random() >= self.loss:
                    there = self._devices[1 - self._devices.index(here)]
                    number += 1
                    heapq.heappush(under_way, (time.monotonic() + self.delay, number, there, packet))

    def end(self) -> None:
        """Take it away."""
        os.write(self._stopped, b"x")
        self._thread.join()
        for each in (self._stop, self._stopped, *self._devices):
            os.close(each)


class Hosts:
    """The two of them, 0 and 1.

    Attributes:
        names: of the namespaces.
        cable: between them.
    """

    cable: Cable

    def __init__(self) -> None:
        self.names = tuple(f"graphmill-{os.getpid()}-{number}" for number in (0, 1))
        self._running: list[subprocess.Popen[str]] = []

    def make(self) -> None:
        """Raises OSError or CalledProcessError where that is not allowed."""
        devices: list[int] = []
        for number, (name, address) in enumerate(zip(self.names, ADDRESSES, strict=True)):
            _ip("netns", "add", name)
            tun = f"gm{os.getpid()}.{number}"
            devices.append(os.open("/dev/net/tun", os.O_RDWR))
            fcntl.ioctl(devices[-1], _TUNSETIFF, struct.pack("16sH", tun.encode(), _IFF_TUN | _IFF_NO_PI))
            _ip("link", "set", tun, "netns", name)
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", tun)
            for each in ("lo", tun):
                _ip("-n", name, "link", "set", each, "up")
        self.cable = Cable((devices[0], devices[1]))

    def start(self, host: int, *command: str, folder: Path, **variables: str) -> subprocess.Popen[str]:
        """A graphmill command on a host, that is ended with the hosts."""
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], sys.executable, "-m", "commands.main", *command],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(_ROOT), **variables}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._running.append(process)
        return process

    def end(self) -> None:
        """End all that runs there, and take them away."""
        for process in self._running:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if hasattr(self, "cable"):
            self.cable.end()
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "delete", name)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


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
    if sys.platform != "linux" or shutil.which("ip") is None:
        return "no Linux with iproute2 (ip)"
    try:
        with hosts():
            return ""
    except (OSError, subprocess.CalledProcessError) as error:
        told: Any = getattr(error, "stderr", b"") or b""
        return f"no network namespaces here: {told.decode(errors='replace').strip() or error}"
