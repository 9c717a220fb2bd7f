"""What a graph asks about where it runs, and values that stand in for others."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.common import np
from toolkit.kernels.registry import Compute, KernelNode, kernel


@kernel("DeviceIndex")
def device_index(op: KernelNode) -> Compute:
    """The place of this device's type among the names, or their number where it is not among them."""
    names: list[bytes] = op.attr("device_names")
    index = np.array(names.index(b"CPU") if b"CPU" in names else len(names), np.int32)
    return lambda: index


@kernel("FakeParam")
def fake_param(op: KernelNode) -> Compute:
    """A value of a type and shape that nobody reads; unknown sizes are 0."""
    dtype: Any = op.attr("dtype").numpy
    dims = op.attr("shape").dims or ()
    value = np.full([n or 0 for n in dims], b"" if dtype.kind == "O" else 0, dtype)
    return lambda: value


@kernel("GraphDefVersion")
def graph_def_version(op: KernelNode) -> Compute:
    """The producer version of the graph."""
    version = np.array(op.node.graph.versions.producer, np.int32)
    return lambda: version
