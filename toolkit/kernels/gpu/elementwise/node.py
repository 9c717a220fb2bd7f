"""Nodes that are one elementwise op: how they are registered, and their launches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels import facts, registry
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.nests import (
    FusedKernel,
    NestOperand,
    NestStep,
    broadcast_strides,
    fused,
    wanted_attributes,
)
from toolkit.kernels.gpu.primitives.element_types import NUMBER_TYPES
from toolkit.kernels.gpu.registering import cpu_compute, is_on_host
from toolkit.kernels.registry import Compute, Factory, KernelNode, Kind

#: bytes that vectors of 16 are aligned to; what is a part of another tensor may begin anywhere
_ALIGNMENT = 16
#: shapes that a node's kernels are remembered for
_MOST_KNOWN = 256


def number_kernel(*ops: str, kind: Kind = Kind.PURE) -> Callable[[Factory], Factory]:
    """Register a factory for ops on GPUs, for those of TensorFlow's types that kernels compute with.

    Nodes that live in host memory get the CPU's kernel.

    Raises:
        GraphError: TensorFlow has none.
    """

    def register(factory: Factory) -> Factory:
        def placed(op: KernelNode) -> Compute:
            return cpu_compute(op) if is_on_host(op.node) else factory(op)

        placed.__module__ = factory.__module__
        for op in ops:
            for types in _rows(op):
                registry.kernel(op, types=types, device="GPU", kind=kind, label="simt")(placed)
        return factory

    return register


def _rows(op: str) -> list[dict[str, frozenset[DType]]]:
    """The types of each of TensorFlow's registrations; what is said for GPUs and for any device counts once."""
    found: list[dict[str, frozenset[DType]]] = []
    for entry in facts.registrations(op, "GPU"):
        where: dict[str, list[str]] = entry.get("where") or {}
        types = {
            attr: frozenset(dtype for dtype in map(dtypes.from_name, names) if dtype.numpy.name in NUMBER_TYPES)
            for attr, names in where.items()
            if all(name.startswith("DT_") for name in names)
        }
        if types not in found:
            found.append(types)
    if not found:
        raise GraphError(f"TensorFlow has no kernel for {op} on GPUs")
    return found


class ElementwiseLaunches:
    """The launches of chains of ops of one node.

    Args:
        steps: of the types of the node's inputs; the last one's result is the output.
    """

    def __init__(self, device: CudaDevice, steps: Sequence[NestStep], dtype: Any):
        self.device = device
        self._steps = tuple(steps)
        self._dtype = dtype
        self._known: dict[Any, FusedKernel] = {}

    @classmethod
    def of(cls, op: KernelNode, name: str = "") -> ElementwiseLaunches:
        """Of a node's own op, or of another op of its inputs and output."""
        types = [dtype.numpy.name for dtype in op.input_types]
        wanted = wanted_attributes(name or op.op, types)
        attributes = tuple((attr, op.attr(attr)) for attr in wanted)
        target = op.output_types[0].numpy
        step = NestStep(name or op.op, tuple(range(len(types))), target.name, attributes)
        return cls(device_of(op.node), [step], target)

    def run(self, shape: tuple[int, ...], *inputs: GpuArray, shapes: Sequence[tuple[int, ...]] = ()) -> GpuArray:
        """The output, of a shape to which the inputs broadcast.

        Args:
            shapes: of the inputs as they broadcast, where that is not their own.
        """
        device = self.device
        aligned = not any(each.address % _ALIGNMENT for each in inputs)
        own = tuple(shapes) or tuple([each.shape for each in inputs])
        key = (shape, aligned, own)
        found = self._known.get(key)
        if found is None:
            operands = [
                NestOperand(each.dtype.name, broadcast_strides(lies, shape))
                for each, lies in zip(inputs, own, strict=True)
            ]
            last = len(inputs) + len(self._steps) - 1
            found = fused(self._steps, operands, [last], shape, aligned=aligned)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = found
        output = device.empty(shape, self._dtype)
        device.launch(found.kernel, found.blocks, *inputs, output, *found.numbers)
        return output
