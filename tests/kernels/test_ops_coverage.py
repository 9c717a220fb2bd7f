"""Every kernel is exercised: each op with a CPU kernel has a case or a named test of its own."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.kernels import tables
from tests.kernels.op_suite import Case
from toolkit.graph import opdefs
from toolkit.kernels import registry

#: names made by the tests from parts, and other names of kernels that have cases
ELSEWHERE = {
    *(f"Batch{inverse}FFT{rank}" for inverse in ("", "I") for rank in ("", "2D", "3D")),  # test_old_batch_fft
    *(f"Segment{how}V2" for how in ("Sum", "Prod", "Max", "Min")),  # test_segments_of_given_number
    "_HostCast",
}
KERNELS = Path(__file__).parents[2] / "toolkit" / "kernels" / "cpu"
#: the modules whose ops are held to it: those the tables of test_ops_*.py are for
FAMILIES = ("arrays/*", "linalg/*", "lists/ragged", "math/*", "quantized/*", "sparse/*")


def sources() -> dict[str, str]:
    return {name: path.read_text() for name, path in tables.modules().items() if name != __name__}


def cases() -> list[Case]:
    """The rows of every table."""
    found: list[Case] = []
    for name in sources():
        module = importlib.import_module(name)
        found += getattr(module, "CASES", [])
    return found


def test_every_kernel_is_exercised() -> None:
    tabled = {case.op for case in cases()}
    text = "\n".join(sources().values())
    registered = {kernel.op for kernel in registry.all_kernels("CPU")}
    named = {
        name
        for family in FAMILIES
        for path in KERNELS.glob(f"{family}.py")
        for name in re.findall(r'"(\w+)"', path.read_text())
    }
    ours = registered & named
    assert len(ours) > 400, "the modules of the families were not found"
    missing = sorted(op for op in ours - tabled - ELSEWHERE if f'"{op}"' not in text)
    assert not missing, f"kernels without a case: {missing}"


def test_kernels_are_of_known_ops() -> None:
    unknown = sorted({kernel.op for kernel in registry.all_kernels() if opdefs.find(kernel.op) is None})
    assert not unknown, f"kernels for ops that no OpDef describes: {unknown}"
