"""What is not installed that makes networks many times faster."""

from __future__ import annotations

import os
import platform
import sys
from importlib.util import find_spec

from toolkit.kernels.cpu.native.compiler import is_enabled
from toolkit.kernels.cpu.onednn.library import VARIABLE, is_present


def missing_for_speed() -> str | None:
    """What networks and loops are slow without, and the command that brings it; None where it is there.

    What the environment switches off was not forgotten, and is not named.
    """
    missing: list[str] = []
    is_offered = sys.platform == "linux" and platform.machine() == "x86_64"  # as the extra `onednn` says
    if is_offered and os.environ.get(VARIABLE, "") != "off" and not is_present():
        missing.append("oneDNN")
    if is_enabled() and find_spec("llvmlite") is None:
        missing.append("LLVM")
    if not missing:
        return None
    return f"networks run many times slower without {' and '.join(missing)}: pip install 'graphmill[fast]'"
