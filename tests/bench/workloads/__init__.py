"""The workloads of `python -m tests.bench`; one file a family.

from tests.bench.workloads import WORKLOADS
built = WORKLOADS["ResNet50 batch 1"].model()   # in the cache from then on
"""

from __future__ import annotations

from tests.bench.workloads import int8, networks, quantized, rnn, small, training, transformer, varying, vision
from tests.bench.workloads.base import Target, Workload

__all__ = ["SUITES", "WORKLOADS", "Target", "Workload"]

WORKLOADS: dict[str, Workload] = {}
for _family in (networks, vision, quantized, int8, transformer, rnn, training, small, varying):
    for _workload in _family.workloads():
        if _workload.name in WORKLOADS:
            raise ValueError(f"two workloads are called '{_workload.name}'")
        WORKLOADS[_workload.name] = _workload

SUITES = tuple(dict.fromkeys(workload.suite for workload in WORKLOADS.values()))
