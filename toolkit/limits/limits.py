"""The limits of a run, as they are given: `memory=4G,time=60s,tensor=1G`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.settings.quantities import BYTES, QUANTITY, SECONDS


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use; None where there is no limit.

    Attributes:
        memory: bytes of all arrays that are alive at one time: constants, variables, tensors, and what kernels and
            compiled code work in.
        time: seconds for the whole run, not for each step.
        tensor: bytes of any one tensor.
    """

    memory: int | None = None
    time: float | None = None
    tensor: int | None = None

    def __post_init__(self) -> None:
        for name in ("memory", "time", "tensor"):
            value: float | None = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise UsageError(f"a limit is more than nothing: {name} cannot be {value}")
            if value is not None and name != "time" and value > _MOST:
                raise UsageError(f"a limit of {name} is at most 2^63-1 bytes, which no machine has")

    @staticmethod
    def parse(text: str) -> Limits:
        """The limits in `memory=4G,time=60s,tensor=1G`; each may be missing, in any order.

        K, M, G, T and KiB, MiB, ... are powers of 1024, KB, MB, ... of 1000; times end in ms, s, min or h.

        Raises:
            UsageError: a name or a number that there is not, or a limit that is given twice.
        """
        given: dict[str, float] = {}
        for part in text.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if name not in _UNITS:
                raise UsageError(
                    f"there is no limit '{name}'; a limit is one of {', '.join(_UNITS)}{did_you_mean(name, _UNITS)}"
                )
            if name in given:
                raise UsageError(f"the limit '{name}' is given twice")
            given[name] = _number(name, value if equals else "", _UNITS[name])
        return Limits(**{name: _KINDS[name](value) for name, value in given.items()})  # type: ignore[arg-type]


#: bytes are counted in 64 bits
_MOST = (1 << 63) - 1
_SECONDS: Mapping[str, float] = {unit: SECONDS[unit] for unit in ("ms", "s", "min", "h")}
_UNITS: Mapping[str, Mapping[str, float]] = {"memory": BYTES, "time": _SECONDS, "tensor": BYTES}
_KINDS: Mapping[str, Callable[[float], float]] = {"memory": int, "time": float, "tensor": int}
_EXAMPLES = {"memory": "memory=4G", "time": "time=60s", "tensor": "tensor=512M"}


def _number(name: str, text: str, units: Mapping[str, float]) -> float:
    match = QUANTITY.fullmatch(text)
    if match is None:
        raise UsageError(f"'{name}={text}' is not a limit; write a number and a unit, as in {_EXAMPLES[name]}")
    number, unit = match.groups()
    if unit not in units:
        known = ", ".join(each for each in units if each)
        said = f"'{unit}' is not a unit" if unit else "there is no unit"
        raise UsageError(f"{said} in '{name}={text}'; expected one of {known}, as in {_EXAMPLES[name]}")
    return float(number) * units[unit]


def size_text(size: float) -> str:
    """Bytes for reading: 4 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if size >= 100 or size == int(size) else f"{size:.2g} {unit}"


def time_text(seconds: float) -> str:
    """Seconds for reading: 60 s."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"
