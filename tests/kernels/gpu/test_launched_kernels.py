"""What the op suite's cases launch for families of ops, as PTX: NVIDIA's assembler takes all of it, for each GPU."""

from __future__ import annotations

import pytest

from tests.kernels import beside_cpu
from tests.kernels.cuda.assembler import assembled
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.cuda.simt.ir import SimtKernel

pytest.importorskip("llvmlite")
#: Ampere, Hopper, Blackwell
CAPABILITIES = ((8, 0), (9, 0), (10, 0))
#: cases of an op whose kernels are assembled
FEW = 2
FAMILIES = {
    "Bessel functions": ("BesselI1", "BesselJ1", "BesselK0e", "BesselY1"),
    "integrals": ("Betainc", "Dawsn", "Expint", "FresnelSin", "Spence", "IgammaGradA", "RandomGammaGrad"),
    "sparse tensors in order": ("SparseReorder", "SparseReshape", "SparseConcat"),
    "parts of sparse tensors": ("SparseSlice", "SparseSplit", "SparseSliceGrad"),
    "draws": ("StatelessRandomGammaV2", "StatelessRandomGammaV3"),
    "matrices of three diagonals": ("TridiagonalSolve",),
    "pictures and norms": (
        "AdjustContrast",
        "BatchNormWithGlobalNormalization",
        "BatchNormWithGlobalNormalizationGrad",
        "ApproxTopK",
    ),
    "rows of sparse tensors": ("SparseFillEmptyRows", "RaggedFillEmptyRows", "SparseFillEmptyRowsGrad"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_are_assembled(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: dict[SimtKernel, None] = {}
    launch = CudaDevice.launch

    def record(self: CudaDevice, kernel: SimtKernel, *arguments: object) -> None:
        launched[kernel] = None
        launch(self, kernel, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(CudaDevice, "launch", record)
    for op in FAMILIES[family]:
        results = beside_cpu.run_op(beside_cpu.Work(op, "GPU", FEW))
        assert results and not [each for each in results if each.problem]
    assert launched
    for kernel in launched:
        for capability in CAPABILITIES:
            assert assembled(ptx.write(kernel, capability), capability).spills == 0, kernel.name
