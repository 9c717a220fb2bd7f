"""OpenVINO's CPU plugin over the model converted to ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.bench.engines.convert import onnx_model
from tests.bench.workloads.base import Workload
from tests.models import Built


class Loaded:
    """One inference request of a model compiled for latency."""

    def __init__(self, workload: Workload, built: Built, threads: int | None, precision: str):
        import openvino

        path = str(onnx_model(workload, built).path)
        settings = {
            "INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY",
            **({} if threads is None else {"INFERENCE_NUM_THREADS": threads}),
        }  # fmt: skip
        compiled = openvino.Core().compile_model(path, "CPU", settings)
        request = compiled.create_infer_request()
        inputs, outputs = list(built.info["inputs"].values()), list(built.info["outputs"].values())
        ports = [compiled.output(name) for name in outputs]

        def step(values: Sequence[Any]) -> list[Any]:
            results = request.infer(dict(zip(inputs, values, strict=True)), share_inputs=True)
            return [results[port] for port in ports]

        self.step = step

    def reset(self) -> None:
        """There is no state."""
