"""NVIDIA's assembler, which comes in a wheel: takes PTX for a real GPU without there being one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Resources:
    """What a kernel takes on a GPU.

    Attributes:
        registers: of a thread.
        spills: bytes that do not fit into registers, stores and loads.
        shared: bytes of a block.
        local: bytes of a thread's memory.
    """

    registers: int
    spills: int
    shared: int
    local: int


def ptxas() -> str:
    """The assembler; the test is skipped where there is none."""
    found = importlib.util.find_spec("nvidia.cuda_nvcc") if importlib.util.find_spec("nvidia") else None
    for folder in found.submodule_search_locations or () if found else ():
        program = Path(folder) / "bin" / "ptxas"
        if program.is_file():
            return str(program)
    pytest.skip("no ptxas: the extra `test` brings it")


def assembled(text: str, capability: tuple[int, int], *options: str) -> Resources:
    """What ptxas makes of PTX.

    Args:
        options: "-c" leaves functions from outside to a linker.

    Raises:
        AssertionError: it does not take it.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        command = [
            ptxas(),
            "-v",
            f"-arch=sm_{capability[0]}{capability[1]}",
            *options,
            "-o",
            f"{folder}/out",
            str(source),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    report = done.stderr + done.stdout

    def number(pattern: str) -> int:
        return sum(map(int, re.findall(pattern, report)))

    return Resources(
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        number(r"(\d+) bytes smem"),
        number(r"(\d+) bytes stack frame"),
    )
