"""onnxruntime's CPU provider over the model converted to ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench.engines import UnsupportedError
from tests.bench.engines.convert import onnx_model
from tests.bench.workloads.base import Workload
from tests.models import Built


class Loaded:
    """An InferenceSession with all its graph optimisations on."""

    def __init__(self, workload: Workload, built: Built, threads: int | None, precision: str):
        if precision != "f32":
            raise UnsupportedError(f"its CPU provider has no {precision}")
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0  # 0: as many as it takes
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        path = str(onnx_model(workload, built).path)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        inputs, outputs = list(built.info["inputs"].values()), list(built.info["outputs"].values())

        def step(values: Sequence[Any]) -> list[Any]:
            return session.run(outputs, dict(zip(inputs, values, strict=True)))

        self.step = step

    def reset(self) -> None:
        """There is no state."""
