"""The op suite on a GPU beside the CPU, an op a test: a few cases of each here, all of them with `-m long` or `-m gpu`.

Without hardware the fake driver runs the kernels (`GRAPHMILL_CUDA=fake`), and `-m gpu` asks for a real one. While a
kernel is written, `python -m tests.kernels.beside_cpu GPU --ops NAME` says more.
"""

from __future__ import annotations

import pytest

from tests.gpu.driver import require_hardware
from tests.kernels import beside_cpu
from toolkit.kernels import registry

OPS = beside_cpu.ops_of("GPU")
#: cases of an op in every run: the fake driver takes ten to a hundred milliseconds for one
FEW = 3


def _assert_agree(op: str, most: int) -> None:
    problems = [each for each in beside_cpu.run_op(beside_cpu.Work(op, "GPU", most)) if each.problem]
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


def _factories(op: str) -> set[object]:
    return {entry.factory for entry in registry.candidates(op, "GPU") if entry.device_type == "GPU"}


def test_kernels_have_cases() -> None:
    """An op with a kernel for GPUs has a case that runs it or a test elsewhere, or its kernel is that of such an op."""
    tried = {op for op in OPS if op in ELSEWHERE or beside_cpu.cases_of(op, "GPU")}
    kernels = set[object]().union(*map(_factories, tried))
    without = {op for op in OPS if op not in tried and not _factories(op) & kernels}
    assert without == UNTRIED


#: op to the tests that run it where it needs more than one node
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        (
            "CollectiveAllToAllV2", "CollectiveBcastRecv", "CollectiveBcastRecvV2", "CollectiveBcastSend",
            "CollectiveBcastSendV2", "CollectiveGather", "CollectiveGatherV2", "CollectiveReduce",
            "CollectiveReduceScatterV2", "CollectiveReduceV2", "NcclAllReduce", "NcclBroadcast", "NcclReduce",
        ),
        "tests.kernels.gpu.test_collectives",
    ),
    "CTCLossV2": "tests.kernels.gpu.test_ctc",
    **dict.fromkeys(("FFTND", "IFFTND", "IRFFTND", "RFFTND"), "tests.kernels.gpu.test_fourier"),
    **dict.fromkeys(
        (
            "FakeParam", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor", "OrderedMapClear",
            "OrderedMapPeek", "OrderedMapStage", "OrderedMapUnstageNoKey", "Stage", "Unstage",
        ),
        "tests.kernels.gpu.test_staging",
    ),
    **dict.fromkeys(
        (
            "CSRSparseMatrixComponents", "CSRSparseMatrixToDense", "CSRSparseMatrixToSparseTensor",
            "DenseToCSRSparseMatrix", "SparseMatrixAdd", "SparseMatrixMatMul", "SparseMatrixMul", "SparseMatrixNNZ",
            "SparseMatrixSoftmax", "SparseMatrixSoftmaxGrad", "SparseMatrixSparseMatMul", "SparseMatrixTranspose",
            "SparseMatrixZeros", "SparseTensorToCSRSparseMatrix",
        ),
        "tests.kernels.gpu.test_sparse_matrix",
    ),
    "GenerateBoundingBoxProposals": "tests.kernels.gpu.test_varied",
    "MaxPoolGradGradWithArgmax": "tests.kernels.gpu.test_varied",
    "TileGrad": "tests.kernels.gpu.test_slice",
    "TopK": "tests.kernels.gpu.test_sorting",
    "VarHandleOp": "tests.gpu.test_networks",
    "VariableV2": "tests.runtime.gpu.test_gpu_steps",
    # loops and branches
    **dict.fromkeys(
        ("Enter", "Exit", "LoopCond", "Merge", "NextIteration", "StackPopV2", "StackPushV2", "StackV2", "Switch"),
        "tests.gpu.test_steps",
    ),
    # lists and arrays
    **dict.fromkeys(
        (
            "EmptyTensorList", "TensorArrayConcatV3", "TensorArrayGatherV3", "TensorArrayGradV3", "TensorArrayReadV3",
            "TensorArrayScatterV3", "TensorArraySplitV3", "TensorArrayV3", "TensorArrayWriteV3", "TensorListConcatV2",
            "TensorListFromTensor", "TensorListGather", "TensorListGetItem", "TensorListLength", "TensorListPopBack",
            "TensorListPushBack", "TensorListReserve", "TensorListScatterIntoExistingList", "TensorListSetItem",
            "TensorListSplit", "TensorListStack",
        ),
        "tests.kernels.gpu.test_control_flow",
    ),
}  # fmt: skip
#: kernels that no test runs yet
UNTRIED = {
    "DestroyResourceOp", "DestroyTemporaryVariable", "DisableCopyOnRead", "RefIdentity", "StackClose",
    "StackCloseV2", "TemporaryVariable", "TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3",
    "TensorArrayPack", "TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3", "TensorArrayUnpack",
    "TensorListConcatLists", "TensorListElementShape", "TensorListPushBackBatch", "TensorListResize",
    "TensorListScatter", "TensorListScatterV2", "_FusedBatchNormEx", "_ReadVariablesOp",
}  # fmt: skip
