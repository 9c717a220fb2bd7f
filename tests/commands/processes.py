"""Running commands as processes of their own."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path


def processor_seconds(*command: str, cwd: Path | None = None) -> float:
    """What a process takes from the processor: other processes on the machine do not count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=cwd)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
