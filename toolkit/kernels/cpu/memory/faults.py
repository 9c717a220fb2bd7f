"""Pages that may not be touched, and a line for people when somebody does.

The signal comes while machine code runs, in any thread, and cannot be gone on from: the line is written to standard
error, then whoever handled it before has it again (Python's `faulthandler`, which prints where each thread is), and
the process ends with it.
"""

# ctypes' functions and structures have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from toolkit.errors import UsageError

_WITH_INFO, _ADDRESS = 4, 16  # SA_SIGINFO; where siginfo_t has the address
_NO_ACCESS = 0
_SIGNALS = 128  # bytes of a sigset_t


class _Action(ctypes.Structure):
    """The C library's struct sigaction."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_char * _SIGNALS),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_kept: list[Any] = []


def forbid(address: int, size: int) -> None:
    """Let nobody touch whole pages.

    Raises:
        OSError: the system cannot do that; it keeps 65530 mappings for a process.
    """
    library = _library()
    if library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _NO_ACCESS):
        number = ctypes.get_errno()
        raise OSError(number, f"mprotect: {os.strerror(number)}")


def report(told: Callable[[int], str]) -> None:
    """Have a line written when memory is touched that may not be.

    Args:
        told: what it says, given the address.

    Raises:
        UsageError: this system's signals are not known here.
    """
    if sys.platform != "linux":
        raise UsageError("GRAPHMILL_GUARD=pages needs Linux; GRAPHMILL_GUARD=on works everywhere")
    if not faulthandler.is_enabled():
        faulthandler.enable()
    before = _Action()

    def handle(number: int, info: int, _: int) -> None:
        _library().sigaction(number, ctypes.byref(before), None)
        address = ctypes.c_uint64.from_address(info + _ADDRESS).value
        os.write(2, f"\n{told(address)}\n".encode())

    made = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(handle)
    _kept.append((made, before))
    action = _Action(handler=ctypes.cast(made, ctypes.c_void_p).value, flags=_WITH_INFO)
    _library().sigaction(int(signal.SIGSEGV), ctypes.byref(action), ctypes.byref(before))


def _library() -> Any:
    return ctypes.CDLL(None, use_errno=True)
