"""What a step gives its caller: values of its own, and a RunMetadata."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas import config_pb2
from toolkit.runtime.steps.compiled import CompiledStep

if TYPE_CHECKING:
    from toolkit.runtime.probes.trace import TraceProbe


def fill_metadata(
    metadata: config_pb2.RunMetadata,
    options: config_pb2.RunOptions | None,
    tracer: TraceProbe | None,
    compiled: CompiledStep,
) -> None:
    if tracer is not None:
        metadata.step_stats.CopyFrom(tracer.stats())
    if options is not None and options.output_partition_graphs:
        for graph in compiled.stages.partitions.values():
            metadata.partition_graphs.add().CopyFrom(graph.to_proto())


def detached(values: list[Any]) -> list[Any]:
    """Make results the caller's own: scalars become numpy scalars, arrays that something else holds are copied.

    Variables are updated in place and constants are shared between steps, so neither may leak out. Changes the
    list and returns it.
    """
    for position in range(len(values)):
        value = values[position]
        if isinstance(value, np.ndarray):
            if value.ndim == 0:
                values[position] = value[()]
            # three references: the list, `value`, and the argument of getrefcount
            elif value.base is not None or sys.getrefcount(value) > 3:
                values[position] = value.copy()
    return values
