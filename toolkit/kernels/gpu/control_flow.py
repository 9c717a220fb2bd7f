"""Control-flow ops on GPUs: the executors carry them out; predicates are in host memory, tensors stay where they are.

They are registered so that reports and placement know that they can run.
"""

from __future__ import annotations

import dataclasses

from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.kernels import registry


def _register() -> None:
    for op in sorted(CONTROL_FLOW_OPS):
        for entry in registry.candidates(op, "CPU"):
            registry.add(dataclasses.replace(entry, device_type="GPU"))


_register()
