"""The op suite on a GPU beside the CPU, an op a test: a few cases of each here, all of them with `-m long` or `-m gpu`.

Without hardware the fake driver runs the kernels (`GRAPHMILL_CUDA=fake`), and `-m gpu` asks for a real one. While a
kernel is written, `python -m tests.kernels.beside_cpu GPU --ops NAME` says more.
"""

from __future__ import annotations

import pytest

from tests.gpu.driver import require_hardware
from tests.kernels import beside_cpu

OPS = beside_cpu.ops_of("GPU")
#: cases of an op in every run: the fake driver takes ten to a hundred milliseconds for one
FEW = 3


def _assert_agree(op: str, most: int) -> None:
    problems = [each for each in beside_cpu.run_op((op, "GPU", most)) if each.problem]
    assert not problems, f"{len(problems)} cases: " + "\n".join(f"{each.label}: {each.problem}" for each in problems)


@pytest.mark.parametrize("op", OPS)
def test_a_few_cases(op: str) -> None:
    _assert_agree(op, FEW)


@pytest.mark.long
@pytest.mark.parametrize("op", OPS)
def test_every_case(op: str) -> None:
    _assert_agree(op, 0)


@pytest.mark.gpu
@pytest.mark.parametrize("op", OPS)
def test_every_case_on_hardware(op: str) -> None:
    require_hardware()
    _assert_agree(op, 0)


def test_kernels_have_cases() -> None:
    """An op with a kernel for GPUs has a case that runs it, or a test of its own elsewhere."""
    without = [op for op in OPS if not beside_cpu.cases_of(op, "GPU") and op not in ELSEWHERE]
    assert not without, f"kernels for GPUs without a case that runs them: {', '.join(without)}"


#: op to the tests that run it where it needs more than one node
ELSEWHERE: dict[str, str] = {
    "TileGrad": "tests.kernels.gpu.test_slice",
    "TopK": "tests.kernels.gpu.test_sorting",
}
