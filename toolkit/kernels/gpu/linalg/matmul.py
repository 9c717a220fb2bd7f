"""Matrix products."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.products import Batch, batches, multiply
from toolkit.kernels.registry import COMPLEX, FLOATING, Compute, KernelNode, kernel

_TYPES = FLOATING | COMPLEX


@kernel("MatMul", types={"T": _TYPES}, device="GPU")
def matmul(op: KernelNode) -> Compute:
    """[m, k] x [k, n]; either operand may be stored transposed."""
    device = device_of(op.node)
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    turns = ("T" if transpose_a else "N", "T" if transpose_b else "N")

    def compute(a: GpuArray, b: GpuArray) -> GpuArray:
        require(
            a.ndim == b.ndim == 2,
            f"In[0] and In[1] has different ndims or are not matrices: {shape_text(a)} vs. {shape_text(b)}",
        )
        m, k = a.shape[::-1] if transpose_a else a.shape
        depth, n = b.shape[::-1] if transpose_b else b.shape
        require(k == depth, f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}")
        return product(device, a, b, (m, n), (m, n, k), turns, None)

    return compute


def product(
    device: CudaDevice,
    a: GpuArray,
    b: GpuArray,
    shape: tuple[int, ...],
    sizes: tuple[int, int, int],
    turns: tuple[str, str],
    of: list[Batch] | None,
) -> GpuArray:
    """Products as a new array, one or some batches; zeros where there is nothing to add up."""
    if not a.nbytes or not b.nbytes:
        return device.zeros(shape, a.dtype)
    out = device.empty(shape, a.dtype)
    for batch in of or [None]:
        multiply(device, a, b, out, sizes, turns, batch=batch)
    return out


@kernel("BatchMatMul", "BatchMatMulV2", types={"T": _TYPES}, device="GPU")
def batch_matmul(op: KernelNode) -> Compute:
    return _batch_matmul(op)


def _batch_matmul_v3(dtype: Any) -> None:
    @kernel("BatchMatMulV3", types={"Ta": [dtype], "Tb": [dtype], "Tout": [dtype]}, device="GPU")
    def batch_matmul_v3(op: KernelNode) -> Compute:
        return _batch_matmul(op)


for _dtype in sorted(_TYPES, key=lambda each: each.name):
    _batch_matmul_v3(_dtype)


def _batch_matmul(op: KernelNode) -> Compute:
    """Products over leading batch axes, which broadcast from V2 on."""
    device = device_of(op.node)
    adjoint_x, adjoint_y = bool(op.attr("adj_x")), bool(op.attr("adj_y"))
    turned = "C" if op.output_types[0] in COMPLEX else "T"
    turns = (turned if adjoint_x else "N", turned if adjoint_y else "N")
    broadcasts = op.op != "BatchMatMul"

    def compute(x: GpuArray, y: GpuArray) -> GpuArray:
        require(x.ndim >= 2, f"In[0] ndims must be >= 2: {x.ndim}")
        require(y.ndim >= 2, f"In[1] ndims must be >= 2: {y.ndim}")
        lead_x, lead_y = x.shape[:-2], y.shape[:-2]
        require(
            _broadcast(lead_x, lead_y) if broadcasts else lead_x == lead_y,
            f"In[0] and In[1] must have compatible batch dimensions: {shape_text(x)} vs. {shape_text(y)}",
        )
        m, k = x.shape[:-3:-1] if adjoint_x else x.shape[-2:]
        depth, n = y.shape[:-3:-1] if adjoint_y else y.shape[-2:]
        require(k == depth, f"In[0] mismatch In[1] shape: {k} vs. {depth}")
        if not adjoint_x and lead_x == np.broadcast_shapes(lead_x, lead_y) and not any(size != 1 for size in lead_y):
            # one matrix for all: the rows of a batch are those of a single matrix
            rows = int(np.prod(lead_x)) * m
            return product(device, x, y, (*lead_x, m, n), (rows, n, k), turns, None)
        lead, of = batches(lead_x, lead_y)
        return product(device, x, y, (*lead, m, n), (m, n, k), turns, of)

    return compute


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))
