"""How kernels that move tensors are registered: for the types that TensorFlow has on GPUs.

TensorFlow keeps tensors of 32-bit integers in host memory for many ops on a GPU, shapes as a rule. Nodes all of whose
tensors are there are computed by the CPU's kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from toolkit.errors import GraphError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node
from toolkit.kernels import facts, registry
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.registry import Compute, Factory, KernelNode

_GPU = "GPU"
#: how many arguments a node's places are remembered for
_MOST_KNOWN = 256


def known_types(op: str) -> Mapping[str, frozenset[DType]]:
    """The types that TensorFlow has an op's kernels for on GPUs.

    Raises:
        GraphError: it has none.
    """
    entries = facts.registrations(op, _GPU)
    if not entries:
        raise GraphError(f"TensorFlow has no kernel for {op} on GPUs")
    found: dict[str, frozenset[DType]] = {}
    constrained: list[set[str]] = [set(entry.get("where") or ()) for entry in entries]
    there = opdefs.require_for(op, "a kernel").attrs  # a registration may name an attribute that the op has no more
    for attr in sorted(constrained[0].intersection(*constrained[1:], there)):
        names: set[Any] = {name for entry in entries for name in entry["where"][attr]}
        if all(isinstance(name, str) and name.startswith("DT_") for name in names):
            found[attr] = frozenset(dtypes.from_name(name) for name in names)
    return found


def is_on_host(node: Node) -> bool:
    """Whether all tensors of a node on a GPU are in host memory."""
    return all(facts.stays_on_host(node, _GPU, i, output=False) for i in range(len(node.input_types))) and all(
        facts.stays_on_host(node, _GPU, i, output=True) for i in range(len(node.output_types))
    )


def cpu_compute(op: KernelNode) -> Compute:
    """What the CPU has for a node."""
    return registry.get(op.node, "CPU", defining=True).factory(op)


def gpu_kernel(*ops: str) -> Callable[[Factory], Factory]:
    """Register a factory for ops on GPUs; nodes that live in host memory get the CPU's."""

    def register(factory: Factory) -> Factory:
        def placed(op: KernelNode) -> Compute:
            return cpu_compute(op) if is_on_host(op.node) else factory(op)

        placed.__module__ = factory.__module__
        for op in ops:
            registry.kernel(op, types=known_types(op), device=_GPU, label="simt")(placed)
        return factory

    return register


def layouts(op: KernelNode, tensor: int = 0) -> Callable[..., list[ElementLayout]]:
    """Where the CPU's kernel of a node finds its results, all of which are views of one argument.

    Args:
        tensor: the number of that argument; the others are in host memory.

    Returns:
        A function of the arguments, which remembers.
    """
    compute = cpu_compute(op)
    known: dict[Any, list[ElementLayout]] = {}

    def find(*arguments: Any) -> list[ElementLayout]:
        x: GpuArray = arguments[tensor]
        key = (x.shape, *((a.shape, a.tobytes()) for i, a in enumerate(arguments) if i != tensor))
        found = known.get(key)
        if found is None:
            # of no type, so that nothing is computed
            base = stand_in(x.shape, f"V{x.dtype.itemsize}")
            made: Any = compute(*arguments[:tensor], base, *arguments[tensor + 1 :])
            views = cast("Sequence[Any]", made if isinstance(made, list | tuple) else [made])
            found = [layout_of(np.asarray(view), base) for view in views]
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = found
        return found

    return find
