"""Ops that TensorFlow's GPU kernels compute on the host: arithmetic of shapes, in 32-bit integers.

Their arguments and results stay in host memory, so the CPU's kernel is the kernel. What depends on shapes alone thus
stays in the GPU's program, where it is computed once, while it is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolkit.graph.dtypes import DType
from toolkit.kernels import registry
from toolkit.kernels.facts import host_kernels
from toolkit.kernels.registry import Compute, Kernel, KernelNode, Kind

#: those that only compute; which of their types are on the host, the registrations say
OPS = (
    "Abs", "Add", "AddN", "AddV2", "BroadcastArgs", "BroadcastGradientArgs", "BroadcastTo", "ClipByValue", "Concat",
    "ConcatOffset", "ConcatV2", "Div", "Equal", "Fill", "FloorDiv", "FloorMod", "Greater", "GreaterEqual",
    "InvertPermutation", "Less", "LessEqual", "LinSpace", "Max", "Maximum", "Min", "Minimum", "Mod", "Mul", "Neg",
    "NotEqual", "Pack", "Pad", "PadV2", "ParallelDynamicStitch", "Range", "Reverse", "ReverseV2", "ScatterNd", "Sign",
    "Slice", "SplitV", "Square", "SquaredDifference", "StridedSlice", "StridedSliceGrad", "Sub", "Sum",
    "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate",
    "TensorStridedSliceUpdate", "TruncateMod", "Unique", "Unpack", "Where",
)  # fmt: skip


def _on_host(op: KernelNode) -> Compute:
    return registry.get(op.node, "CPU").factory(op)


def _types(op: str) -> Iterator[Mapping[str, frozenset[DType]]]:
    """The types for which all arguments of an op are in host memory, without repetition."""
    seen: list[Mapping[str, frozenset[DType]]] = []
    for types in host_kernels(op, "GPU"):
        if types not in seen:
            seen.append(types)
            yield types


def _register() -> None:
    for op in OPS:
        for types in _types(op):
            # below those that were written for GPUs, of whose types some may be these
            registry.add(Kernel(op, "GPU", types, -1, Kind.PURE, _on_host, "host"))


_register()
