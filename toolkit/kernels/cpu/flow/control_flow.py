"""Control-flow ops. The executor carries them out itself, by moving tokens; they are registered so that reports and
placement know that they can run."""

from __future__ import annotations

from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.kernels.registry import Compute, KernelNode, kernel


@kernel(*sorted(CONTROL_FLOW_OPS))
def control_flow(op: KernelNode) -> Compute:
    """Never called."""
    raise AssertionError(f"the executor handles {op.op} itself")
