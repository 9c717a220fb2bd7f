"""Which modules of a device type register the kernels of an op, so that no others are imported for it.

Each package of kernels of ours has a table `index.txt`, a line a module: its name in the package, then the ops. A test
holds it against the registrations and writes it (`pytest tests/kernels/test_index.py --update-golden`). An op that is
in no table, a plugin's say, has all modules imported.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Mapping, Sequence

from toolkit.kernels import device_types

#: the name of the table in a package
TABLE = "index.txt"


@functools.cache
def modules(device_type: str) -> Mapping[str, Sequence[str]]:
    """Op to the modules that register kernels of it; empty where a package has no table."""
    found: dict[str, list[str]] = {}
    for package in device_types.packages(device_type):
        try:
            table = pkgutil.get_data(package, TABLE)
        except OSError:
            return {}
        for line in (table or b"").decode().splitlines():
            module, *ops = line.split()
            for op in ops:
                found.setdefault(op, []).append(f"{package}.{module}")
    return found


__all__ = ["TABLE", "modules"]
