"""What holds for the whole process of a run."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_BLOCKS = """
import resource
import sys
import numpy as np
from toolkit.limits.process import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
for megabytes in (24, 8, 8, 8):  # as weights that are packed one after the other
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [np.ones(1 << 20, np.uint8) for _ in range(megabytes)]
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    blocks.clear()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is the GNU C library that can be told")
def test_freed_memory_is_given_out_again() -> None:
    def faults(how: str) -> list[int]:
        done = subprocess.run([sys.executable, "-c", _BLOCKS, how], capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.split()]

    first, *later = faults("kept")
    assert first > 1000  # of 6,144 pages; the system may give several at once
    assert max(later) < first // 100
