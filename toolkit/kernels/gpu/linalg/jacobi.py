"""SelfAdjointEigV2 and Svd of real matrices up to 1024 rows and columns, many at a time; larger ones are the CPU's, as
are eigenvalues of complex ones."""

from __future__ import annotations

import functools
import math
from typing import Any

from toolkit.kernels import registry
from toolkit.kernels.boundary import through_copies
from toolkit.kernels.cpu.linalg.decompositions import check_matrix, check_square
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import TYPES
from toolkit.kernels.gpu.linalg import jacobi_kernels
from toolkit.kernels.registry import COMPLEX, Compute, KernelNode, kernel

_REAL = {"T": ["float", "double"]}


def _decomposed(
    device: CudaDevice, x: GpuArray, kind: str, width: int, *, with_u: bool, with_v: bool
) -> tuple[GpuArray, GpuArray | None, GpuArray | None]:
    """Values in order, u with `width` columns, v; those that are wanted. See `jacobi_kernels`.

    Args:
        x: [..., rows, columns], without an axis of no size.
    """
    rows, columns = x.shape[-2:]
    m, n = (columns, rows) if kind == "wide" else (rows, columns)
    lead, type = x.shape[:-2], TYPES[x.dtype.name]
    batch = math.prod(lead)
    a, v = device.empty((batch, n, m), x.dtype), device.empty((batch, n, n), x.dtype)
    scale = device.empty((batch,), x.dtype)
    device.launch(jacobi_kernels.prepare(type, kind), batch, x, a, v, scale, m, n)
    device.launch(jacobi_kernels.rotate(type), batch, a, v, m, n)
    values = device.empty((*lead, n), x.dtype)
    u = device.empty((*lead, m, width), x.dtype) if with_u else None
    vectors = device.empty((*lead, n, n), x.dtype) if with_v else None
    finish = jacobi_kernels.finish(type, symmetric=kind == "symmetric", with_u=with_u, with_v=with_v)
    device.launch(finish, batch, a, v, scale, values, *(each for each in (u, vectors) if each is not None), m, n, width)
    if u is not None:
        device.launch(jacobi_kernels.complete(type), batch, u, values, m, n, width)
    return values, u, vectors


def _large_by_cpu(op: KernelNode) -> Compute:
    """The CPU's kernel, through copies."""
    return through_copies(registry.get(op.node, "CPU", defining=True))(op)


def _is_plain(x: GpuArray) -> bool:
    """Whether the kernels take a matrix: one that has numbers, and not too many of them."""
    return bool(x.size) and max(x.shape[-2:]) <= jacobi_kernels.MOST


@kernel("SelfAdjointEigV2", "BatchSelfAdjointEigV2", types=_REAL, device="GPU", label="simt")
def self_adjoint_eig_v2(op: KernelNode) -> Compute:
    """Eigenvalues, rising, and eigenvectors; of a matrix with NaNs all are NaN."""
    device, with_vectors = device_of(op.node), bool(op.attr("compute_v"))
    by_cpu = functools.cache(lambda: _large_by_cpu(op))

    def compute(x: GpuArray) -> Any:
        check_square(x)
        if not _is_plain(x):
            return by_cpu()(x)
        values, _, vectors = _decomposed(device, x, "symmetric", 0, with_u=False, with_v=with_vectors)
        return [values, device.zeros((), x.dtype) if vectors is None else vectors]

    return compute


@kernel("SelfAdjointEigV2", types={"T": COMPLEX}, device="GPU", label="simt")
def complex_self_adjoint_eig(op: KernelNode) -> Compute:
    """Of Hermitian matrices: the CPU's, through copies. The rotations are written for real numbers."""
    return _large_by_cpu(op)


@kernel("Svd", "BatchSvd", types=_REAL, device="GPU", label="simt")
def svd(op: KernelNode) -> Compute:
    """x = u diag(s) v^T, the singular values falling."""
    device = device_of(op.node)
    with_vectors, full = bool(op.attr("compute_uv")), bool(op.attr("full_matrices"))
    by_cpu = functools.cache(lambda: _large_by_cpu(op))

    def compute(x: GpuArray) -> Any:
        check_matrix(x)
        if not _is_plain(x):
            return by_cpu()(x)
        rows, columns = x.shape[-2:]
        kind = "wide" if rows < columns else "tall"
        width = max(rows, columns) if full else min(rows, columns)
        values, long, short = _decomposed(device, x, kind, width, with_u=with_vectors, with_v=with_vectors)
        if long is None or short is None:
            nothing = device.zeros((), x.dtype)
            return [values, nothing, nothing]
        return [values, short, long] if kind == "wide" else [values, long, short]

    return compute
