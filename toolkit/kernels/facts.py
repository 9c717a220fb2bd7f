"""Which device types have a kernel for a node, from the op registry's facts (`schemas/op_facts.json.xz`)."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any, cast

from schemas import unpacked
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.graph.opdefs import ArgDef
from toolkit.kernels.device_types import described_by, is_foreign

#: ops that TensorFlow has kernels of for GPUs alone, and that run on CPUs here
_ALSO_ON_CPU = frozenset(
    (
        "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3", "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3",
        "CudnnRNNParamsSize", "CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2", "CudnnRNNCanonicalToParams",
        "CudnnRNNCanonicalToParamsV2", "GenerateBoundingBoxProposals", "MaxPoolGradGradWithArgmax", "NcclAllReduce",
        "NcclBroadcast", "NcclReduce", "SparseMatrixAdd", "SparseMatrixMul", "SparseMatrixSoftmax",
        "SparseMatrixSoftmaxGrad", "SparseMatrixZeros",
    )
)  # fmt: skip
#: whether a device type can run a node
Availability = Callable[[Node, str], bool]


@functools.cache
def _facts() -> dict[str, dict[str, Any]]:
    return json.loads(unpacked("op_facts.json.xz"))["ops"]


@functools.cache
def _types(names: tuple[str, ...]) -> frozenset[DType]:
    return frozenset(dtypes.from_name(name) for name in names)


def has_kernel(node: Node, device_type: str) -> bool:
    """Whether TensorFlow has a kernel for this node on a device type; whether there is one here, on a plugin's type,
    and of the few ops that TensorFlow has for GPUs alone.

    Functions, and ops of which nothing is known, run anywhere; so does an op without any kernel, whose absence
    only the run reports.
    """
    if node.op in node.graph.library:
        return True
    if is_foreign(device_type):
        from toolkit.kernels import registry  # which imports numpy, as does whoever registers a device type

        return registry.find(node, device_type) is not None
    if not _facts().get(node.op, {}).get("kernels"):
        return True
    if node.op in _ALSO_ON_CPU and device_type == "CPU":
        return True
    return any(_fits(node, entry.get("where")) for entry in registrations(node.op, device_type))


def registrations(op: str, device_type: str) -> list[dict[str, Any]]:
    """TensorFlow's kernels of an op for a device type, those for any type among them: `where` has the types of
    attributes, `host_memory` the arguments that stay with the host."""
    kernels = _facts().get(op, {}).get("kernels", {})
    return [*kernels.get(described_by(device_type), ()), *kernels.get("DEFAULT", ())]


def host_registrations(op: str, device_type: str) -> list[tuple[dict[str, frozenset[DType]], frozenset[str]]]:
    """TensorFlow's kernels of an op on a device type that keep arguments in host memory: types by attribute, and the
    names of these arguments. An attribute that is no type is left out."""
    return [
        (_allowed(each.get("where", {})), frozenset(each["host_memory"]))
        for each in registrations(op, device_type)
        if "host_memory" in each
    ]


def _allowed(where: dict[str, list[str]]) -> dict[str, frozenset[DType]]:
    return {name: _types(tuple(types)) for name, types in where.items() if types[0].startswith("DT_")}


def priority(node: Node, device_type: str) -> int:
    """How much TensorFlow prefers its kernel of a device type for a node, above other types' kernels; mostly 0.

    Iterators and datasets have kernels for GPUs and are not put there unasked.
    """
    for entry in registrations(node.op, device_type):
        if _fits(node, entry.get("where")):
            return entry.get("priority", 0)
    return 0


def _fits(node: Node, where: dict[str, list[str]] | None) -> bool:
    for attr, names in (where or {}).items():
        value = node.attr(attr, None)
        if value is None and (op_def := node.graph.find_op_def(node.op)) is not None and attr in op_def.attrs:
            value = op_def.attrs[attr].default
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        given = [v.base for v in values if isinstance(v, DType)]  # others are texts, of which any will do
        if given and not _types(tuple(names)).issuperset(given):
            return False
    return True


def output_in_host_memory(node: Node, device_type: str, index: int) -> bool:
    """Whether output `index` of a node lies in host memory when it runs on a device type."""
    return _in_host_memory(node, device_type, node.op_def.outputs, index)


def input_in_host_memory(node: Node, device_type: str, index: int) -> bool:
    """Whether a node that runs on a device type wants its input `index` in host memory."""
    return _in_host_memory(node, device_type, node.op_def.inputs, index)


def stays_on_host(node: Node, device_type: str, index: int, *, output: bool) -> bool:
    """Whether an argument of a node on a device is in host memory: texts, handles and references always are.

    Args:
        output: it is an output, else an input.
    """
    dtype = (node.output_types if output else node.input_types)[index]
    if dtype.is_ref or dtype.base.kind in "sr":
        return True
    if node.op in COPIES:
        return output is (node.op == COPY_OUT)
    return (output_in_host_memory if output else input_in_host_memory)(node, device_type, index)


#: what copies between the memory of a device and its host's; TensorFlow's names
COPY_OUT, COPY_IN = "_CopyFromGpuToHost", "_CopyFromHostToGpu"
COPIES = frozenset({COPY_IN, COPY_OUT})


def _in_host_memory(node: Node, device_type: str, args: Iterable[ArgDef], index: int) -> bool:
    known = registrations(node.op, device_type)
    if not known:
        return False
    fitting = next((entry for entry in known if _fits(node, entry.get("where"))), None)
    if fitting is not None:
        names = set(fitting.get("host_memory", ()))
    else:  # TensorFlow has no kernel for these types, and we may: what stays with the host whatever they are
        names = set[str].intersection(*(set(entry.get("host_memory", ())) for entry in known))
    ranges = node.op_def.arg_ranges(args, node.attrs)
    return any(index in ranges[name] for name in names if name in ranges)
