"""Frozen graphs as ONNX, for the peers that read it; in the cache of `tests.models`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.bench.engines import UnsupportedError
from tests.bench.workloads.base import Workload
from tests.models import CACHE, Built, builder

OPSET = "18"


@builder()
def onnx_file(folder: Path, source: str, inputs: str, outputs: str, opset: str) -> dict[str, Any]:
    """What tf2onnx makes of frozen.pb in the cache's folder `source`, with inputs "name[shape],..." fixed."""
    command = [sys.executable, "-m", "tf2onnx.convert", "--graphdef", str(CACHE / source / "frozen.pb")]
    command += ["--inputs", inputs, "--outputs", outputs, "--opset", opset, "--output", str(folder / "model.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"tf2onnx could not convert {source}:\n{done.stderr[-2000:]}")
    return {"main": "model.onnx"}


def onnx_model(workload: Workload, built: Built) -> Built:
    """The workload's model as ONNX with its shapes fixed.

    Raises:
        UnsupportedError: the workload has no shapes for it.
    """
    if not workload.onnx_shapes:
        raise UnsupportedError("it is not converted to ONNX")
    inputs = ",".join(
        f"{name}[{','.join(map(str, workload.onnx_shapes[label]))}]" for label, name in built.info["inputs"].items()
    )
    return onnx_file(built.folder.name, inputs, ",".join(built.info["outputs"].values()), OPSET)
