"""Matrix products and softmaxes, node by node."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.kernels.cpu.linalg import matmul as numpy_products
from toolkit.kernels.cpu.nn import softmax as nn_softmax
from toolkit.kernels.cpu.onednn.cached import KEPT, Kept, is_worth, onednn
from toolkit.kernels.cpu.onednn.memory import dense, matrix
from toolkit.kernels.cpu.onednn.primitive import FORWARD_INFERENCE, SOFTMAX_ACCURATE, Arg, Primitive
from toolkit.kernels.cpu.onednn.windows import Shape
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import F32
from toolkit.kernels.types import Array


@onednn("MatMul", numpy=numpy_products.matmul, narrow=True)
@onednn("BatchMatMul", "BatchMatMulV2", numpy=numpy_products.batch_matmul, narrow=True)
@onednn("BatchMatMulV3", numpy=numpy_products.batch_matmul, attrs=("Ta", "Tb", "Tout"), narrow=True)
def product(op: KernelNode, numpy: Compute) -> Compute:
    plain, processor = op.op == "MatMul", op.target
    transposes = tuple(
        bool(op.attr(name)) for name in (("transpose_a", "transpose_b") if plain else ("adj_x", "adj_y"))
    )
    broadcasts = op.op not in ("MatMul", "BatchMatMul")

    def make(a: Shape, b: Shape, dtype: Any) -> tuple[Kept, Shape] | None:
        rank = max(len(a), len(b))
        if rank > 6 or (not broadcasts and a[:-2] != b[:-2]):
            return None
        ends = [(s[-1], s[-2]) if turned else (s[-2], s[-1]) for s, turned in zip((a, b), transposes, strict=True)]
        if ends[0][1] != ends[1][0]:
            return None
        try:
            lead = np.broadcast_shapes(a[:-2], b[:-2])
        except ValueError:
            return None
        y = (*lead, ends[0][0], ends[1][1])
        descs = [matrix(s, rank, dtype, transposed=turned) for s, turned in zip((a, b), transposes, strict=True)]
        target = dense(y, dtype)
        primitive = Primitive("matmul", *descs, None, target)
        return Kept(primitive, [(Arg.SRC, descs[0]), (Arg.WEIGHTS, descs[1]), (Arg.DST, target)], processor), y

    def compute(a: Array, b: Array) -> Array:
        if min(a.ndim, b.ndim) < 2 or (plain and max(a.ndim, b.ndim) > 2):
            return numpy(a, b)
        rows, columns = a.shape[-1 if transposes[0] else -2], b.shape[-2 if transposes[1] else -1]
        if 0 in (a.size, b.size) or not is_worth(max(a.size * columns, b.size * rows), processor.kernels.product):
            return numpy(a, b)
        kept = KEPT.get(
            ("matmul", broadcasts, transposes, a.shape, b.shape, a.dtype), lambda: make(a.shape, b.shape, a.dtype)
        )
        if kept is None:
            return numpy(a, b)
        y = np.empty(kept[1], a.dtype)
        kept[0].run(np.ascontiguousarray(a), np.ascontiguousarray(b), y)
        return y

    return compute


@onednn("Softmax", numpy=nn_softmax.softmax)
def softmax(op: KernelNode, numpy: Compute) -> Compute:
    """Not LogSoftmax, of which oneDNN has fewer digits than TensorFlow."""
    processor = op.target

    def make(rows: int, columns: int) -> Kept:
        desc = dense((rows, columns), F32)
        primitive = Primitive("softmax_forward", FORWARD_INFERENCE, SOFTMAX_ACCURATE, desc, desc, 1)
        return Kept(primitive, [(Arg.SRC, desc), (Arg.DST, desc)], processor)

    def compute(x: Array) -> Array:
        if x.ndim == 0 or not is_worth(x.size, processor.kernels.softmax):
            return numpy(x)
        if not (np.isfinite(np.max(x)) and np.isfinite(np.min(x))):  # of infinities oneDNN makes numbers
            return numpy(x)
        columns = x.shape[-1]
        kept = KEPT.get(("softmax", x.size, columns), lambda: make(x.size // columns, columns))
        if kept is None:
            return numpy(x)
        return kept.like(x)

    return compute
