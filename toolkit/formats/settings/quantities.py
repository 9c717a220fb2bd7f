"""Numbers with a unit, as people write them in options and files: 4G, 512MiB, 60s, 5us."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolkit.errors import UsageError

#: K, M, G, T and KiB, MiB, ... are powers of 1024, KB, MB, ... of 1000
BYTES: Mapping[str, float] = {
    "": 1, "B": 1,
    **{unit + tail: 1024**power for power, unit in enumerate("KMGT", 1) for tail in ("", "iB")},
    **{unit + "B": 1000**power for power, unit in enumerate("KMGT", 1)},
}  # fmt: skip
SECONDS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}
#: how many, such as operations per second: powers of 1000
COUNT: Mapping[str, float] = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([A-Za-z]{0,3})")


def read_quantity(text: str, units: Mapping[str, float], example: str) -> float:
    """The number that a text such as "4G" stands for.

    Args:
        units: unit to factor.
        example: how it is written, for messages.

    Raises:
        UsageError: it is no number with one of the units.
    """
    match = QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        known = ", ".join(unit for unit in units if unit)
        raise UsageError(f"'{text[:40]}' is not a number with a unit ({known}); expected the like of {example}")
    return float(match[1]) * units[match[2]]
