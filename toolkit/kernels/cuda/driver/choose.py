"""Which CUDA driver a process uses: NVIDIA's where there is one, or a fake one on request.

`GRAPHMILL_CUDA` is "off", or "fake", "fake:N" for N devices, with ",seed=S" for another order of work and
",memory=BYTES" for smaller ones. Nothing of CUDA is imported before somebody asks.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

from toolkit.errors import UsageError
from toolkit.forks import held_over_forks
from toolkit.kernels.cuda.driver.base import Driver

VARIABLE = "GRAPHMILL_CUDA"
_EXPECTED = "expected off, fake, fake:N, each with ,seed=S or ,memory=BYTES"

_lock = held_over_forks()
#: what the variable said, to the driver, or why there is none
_known: dict[str, tuple[Driver | None, str]] = {}
#: for tests
_instead: list[Driver] = []


def driver() -> Driver:
    """The driver, the same each time.

    Raises:
        UsageError: there is none, or no GPU; the message says what is missing and what brings it.
    """
    found, missing = _find()
    if found is None:
        raise UsageError(f"there is no GPU here: {missing}")
    return found


def known() -> Driver | None:
    """The driver, if anybody has asked for it and there is one."""
    if _instead:
        return _instead[-1]
    found = _known.get(os.environ.get(VARIABLE, ""))
    return None if found is None else found[0]


def missing() -> str:
    """Why there is no GPU; "" where there is one.

    Raises:
        UsageError: GRAPHMILL_CUDA says nothing that is understood.
    """
    return _find()[1]


def _find() -> tuple[Driver | None, str]:
    if _instead:
        return _instead[-1], ""
    chosen = os.environ.get(VARIABLE, "")
    found = _known.get(chosen)
    if found is None:
        with _lock:
            found = _known.get(chosen)
            if found is None:
                found = _known[chosen] = _made(chosen)
    return found


def _made(chosen: str) -> tuple[Driver | None, str]:
    if chosen == "off":
        return None, f"{VARIABLE} is off"
    if chosen:
        return _fake(chosen), ""
    from toolkit.kernels.cuda.driver import real

    return real.find()


def _fake(chosen: str) -> Driver:
    from toolkit.kernels.cuda.driver.fake import MEMORY, FakeDriver

    kind, *settings = chosen.split(",")
    kind, _, count = kind.partition(":")
    named = {name: value for name, _, value in (one.partition("=") for one in settings)}
    numbers = [count or "1", *named.values()]
    if (
        kind != "fake"
        or not set(named) <= {"seed", "memory"}
        or not all(n.isdecimal() for n in numbers)
        or count == "0"
    ):
        raise UsageError(f"{VARIABLE} is '{chosen}'; {_EXPECTED}")
    given = {name: int(value) for name, value in named.items()}
    return FakeDriver(int(count or "1"), seed=given.get("seed", 0), memory=given.get("memory", MEMORY))


@contextmanager
def using(chosen: Driver) -> Generator[None]:
    """Within this, the driver is another one; for tests."""
    _instead.append(chosen)
    try:
        yield
    finally:
        _instead.remove(chosen)
