"""Chains of small ops as one, as graph optimizers leave them."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import reduce

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels import registry
from toolkit.kernels.cpu.common import np
from toolkit.kernels.encodings.hashing import fingerprint64, hash_all
from toolkit.kernels.registry import INTEGER, UNSIGNED, Compute, Kernel, KernelNode, kernel
from toolkit.kernels.types import Array

_FLOATS = {dtypes.float16, dtypes.float32, dtypes.float64}
#: what may be chained
_UNARY = frozenset({
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Exp", "Expm1", "Floor",
    "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Relu", "Relu6", "Rint", "Round", "Rsqrt", "Selu", "Sigmoid", "Sin",
    "Sinh", "Sqrt", "Square", "Tan", "Tanh",
})  # fmt: skip


@kernel("_UnaryOpsComposition", types={"T": _FLOATS})
def unary_ops_composition(op: KernelNode) -> Compute:
    """The ops named, one after the other."""
    names = [name.decode() for name in op.attr("op_names")]
    unknown = [name for name in names if name not in _UNARY]
    if not names or unknown:
        raise InvalidArgumentError(f"cannot compose {unknown or 'nothing'}", node=op.name)
    computes = [_kernel(name, op.input_types[0]).factory(op) for name in names]  # none of them has attributes

    def compute(x: Array) -> Array:
        return reduce(lambda value, function: function(value), computes, x)

    return compute


def _kernel(name: str, dtype: DType) -> Kernel:
    """The best kernel for a type that does not ask for its node: oneDNN's do."""
    return next(
        entry
        for entry in registry.candidates(name, "CPU")
        if entry.label != "onednn" and all(dtype in types for types in entry.types.values())
    )


@kernel("_TensorToHashBucketFast", types={"T": INTEGER})
def tensor_to_hash_bucket_fast(op: KernelNode) -> Compute:
    """Numbers as text into buckets: AsString and StringToHashBucketFast in one, of signed numbers alone."""
    if op.input_types[0] in UNSIGNED:
        raise InvalidArgumentError(f"Type not supported: {op.input_types[0]}", node=op.name)
    buckets = np.uint64(op.attr("num_buckets"))

    def compute(x: Array) -> Array:
        hashes = hash_all([str(value).encode() for value in x.ravel().tolist()], fingerprint64)
        return (hashes % buckets).astype(np.int64).reshape(x.shape)

    return compute
