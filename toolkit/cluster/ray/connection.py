"""A Ray of this process's own, or one that it joins.

    ray                  the Ray that the program has started, or one of its own: at loopback, without a dashboard,
                         and gone when the process is
    ray://HOST:PORT      the Ray cluster whose head listens there, as `ray start` prints it; ray:HOST:PORT is the same

Who joins a cluster is on one of its hosts, as Ray wants it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import nullcontext
from typing import Any

from toolkit.cluster.ray.library import ray
from toolkit.cluster.rpc.server import is_loopback
from toolkit.errors import UnavailableError, UsageError

SCHEME = "ray"
_TARGET = re.compile(r"ray:(?://)?((?:\[[0-9a-fA-F:.]+\]|[^/:\s\[\]]+):(\d{1,5}))")
#: seconds that a head has to accept a connection
_CONNECT_SECS = 5.0
_TOKEN_HINT = "; one that asks for a token wants RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH"
_ATTEMPTS = "RAY_gcs_server_port_wait_time_s"
#: characters: a socket's path has 107 at most, and Ray adds 63 to our 23
_LONGEST_FOLDER = 20


def address_of(target: str) -> str:
    """The address in a target; "" for a Ray of this process's own.

    Raises:
        UsageError: it is none.
    """
    if target in (SCHEME, f"{SCHEME}://"):
        return ""
    found = _TARGET.fullmatch(target)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise UsageError(f"'{target}' is no Ray cluster; expected ray, or ray://HOST:PORT, as `ray start` prints it")
    return found[1]


class Connection:
    """This process as a driver of a Ray cluster. There is one at most, as Ray has it.

    Args:
        address: of the head; "" for the Ray that the program has started already, or one of its own.
        cpus: as many tasks may run at once on a Ray of its own; at least one for each processor.

    Raises:
        UsageError: Ray is not installed, or the process is a driver of another cluster.
        UnavailableError: nobody listens at the address, or Ray does not start.
    """

    def __init__(self, address: str, cpus: int = 1):
        library = ray(own=not address)
        self.address = address
        self._folder = ""
        self._owns = False
        if library.is_initialized():
            return  # the program's, which ends it
        self._owns = True
        if address:
            _check_listening(address)
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address:
            settings["address"] = address
        else:
            self._folder = _own_folder()
            settings |= {
                "num_cpus": max(os.cpu_count() or 1, cpus), "include_dashboard": False, "_temp_dir": self._folder,
            }  # fmt: skip
        try:
            at_loopback = not address or _is_at_loopback_alone(address, library)
            with _own_signals(), _one_attempt(), _at_loopback() if at_loopback else nullcontext():
                library.init(**settings)
        except BaseException as error:
            self.close()
            if not isinstance(error, Exception):
                raise
            what = str(error).strip().partition("\n")[0]
            where = f"the Ray cluster at {address} cannot be joined" if address else "Ray does not start"
            hint = _TOKEN_HINT if address and isinstance(error, ConnectionError) else ""
            raise UnavailableError(f"{where}: {type(error).__name__}: {what}{hint}") from None

    def close(self) -> None:
        """Leave the cluster, or end it where it was started here. Again is fine."""
        if self._owns:
            self._owns = False
            with _own_signals():
                ray().shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""


def _own_folder() -> str:
    """A folder for Ray's files; where the one for temporary files has too long a path for sockets, below /tmp."""
    folder = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="graphmill-ray-", dir=folder if len(folder) <= _LONGEST_FOLDER else "/tmp")


@contextlib.contextmanager
def _own_signals() -> Generator[None]:
    """Ray takes SIGTERM for itself; what the program has for it is put back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:  # else it is none of Python's
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _at_loopback() -> Generator[None]:
    """Where the program has imported Ray before us, it has read `library`'s settings before they were made."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _is_at_loopback_alone(address: str, library: Any) -> bool:
    """Whether a head of this host is none for others: Ray would look for it at the address that leads out."""
    host, _, port = address.rpartition(":")
    if not is_loopback(host):
        return False
    try:
        socket.create_connection((library.util.get_node_ip_address(), int(port)), timeout=_CONNECT_SECS).close()
    except OSError:
        return True
    return False


@contextlib.contextmanager
def _one_attempt() -> Generator[None]:
    """Ray takes twenty attempts, of half a minute each, to reach a head that does not answer as one."""
    before = os.environ.get(_ATTEMPTS)
    os.environ.setdefault(_ATTEMPTS, "1")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_ATTEMPTS, None)


def _check_listening(address: str) -> None:
    """Raises UnavailableError where nobody listens: Ray itself would try for a minute."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECS).close()
    except OSError as error:
        raise UnavailableError(
            f"no Ray cluster answers at {address}: {error.strerror or error}; give the address that `ray start` "
            "printed, whose port is 6379 unless it was told otherwise"
        ) from None
