"""What kernels touch outside of the process while they run, as the interpreter's audit events tell."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.formats.code_cache import cache_folders
from toolkit.policy import outside

_running = threading.local()
_EVENTS = ("open", "os.", "shutil.", "socket.", "subprocess.", "sqlite3.connect", "urllib.", "ftplib.", "glob.")
#: events that are about this process alone, or name nothing
_HARMLESS = frozenset({"os.putenv", "os.unsetenv", "socket.gethostname", "os.sched_setaffinity", "os.getxattr"})
#: modules that are imported, libraries that are loaded, and what the system says about itself
_OURS = tuple(
    str(path)
    for path in (
        *(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")),
        Path(__file__).resolve().parent.parent.parent / "toolkit",
        Path(__file__).resolve().parent.parent.parent / "schemas",
        "/proc", "/sys", "/lib", "/usr/lib", "/etc/ld.so.cache", "/dev/null",
        *cache_folders(),  # a kernel for GPUs is compiled when it is launched first, and kept there
    )
)  # fmt: skip


@contextmanager
def of(op: str) -> Generator[None]:
    """Within, this thread runs the kernel of an op; where it touches what the table does not say, it fails.

    Raises:
        AssertionError: the op is not in the table of `toolkit.policy.outside`, and reached outside.
    """
    if outside.has_effects(op):
        yield
        return
    _running.found = []
    try:
        yield
    finally:
        found, _running.found = _running.found, None
    assert not found, f"{op} reaches outside and is not in toolkit/policy/outside.py: {found[:3]}"


def _hear(event: str, args: tuple[Any, ...]) -> None:
    found = getattr(_running, "found", None)
    if found is None or not event.startswith(_EVENTS) or event in _HARMLESS:
        return
    target = args[0] if args else ""
    if isinstance(target, int):  # a descriptor that is open already, as when an import writes its bytecode
        return
    if isinstance(target, bytes):
        target = os.fsdecode(target)
    if not (isinstance(target, str) and (target.startswith(_OURS) or target in sys.path)):
        found.append((event, str(target)))


sys.addaudithook(_hear)
