"""What small networks launch with factors of 16 bits, as PTX: NVIDIA's assembler takes all of it, for each kind."""

from __future__ import annotations

import dataclasses

import pytest

from tests.bench.cuda.engines.graphmill_gpu import Loaded
from tests.bench.cuda.paper import PaperDriver
from tests.bench.cuda.workloads import TINY
from tests.kernels.cuda.assembler import assembled
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.simt import ptx

pytest.importorskip("llvmlite")
#: bytes of registers that a thread may keep in memory: none of what these kernels hold has to go there
_SPILLS = 0


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("name", ["tiny residual momentum", "tiny encoder adam"])
def test_kernels_of_a_training_step(name: str, capability: tuple[int, int]) -> None:
    driver = PaperDriver()
    with choose.using(driver):
        engine = Loaded(dataclasses.replace(TINY[name], precision="bf16"), strict=True)
        for _ in range(2):
            engine.run()
        engine.wait()
    kernels = driver.open(0).kernels
    narrow = [kernel for kernel in kernels if "bfloat" in kernel.text]
    assert len(narrow) > 5
    for kernel in narrow:
        assert assembled(ptx.write(kernel, capability), capability).spills == _SPILLS, kernel.name
