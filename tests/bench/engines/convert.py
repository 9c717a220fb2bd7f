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


def _keep_weights_in_8_bits(model: Any) -> None:
    """Let filters be int8 constants that are dequantized and convolved, as onnxruntime's own tools write them.

    tf2onnx transposes and reshapes depthwise ones in between, behind which onnxruntime sees no 8-bit convolution.
    """
    import numpy as np
    from onnx import helper, numpy_helper

    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    producers = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
    for conv in [node for node in model.graph.node if node.op_type == "Conv"]:
        passed: list[Any] = []
        node = producers.get(conv.input[1])
        while node is not None and node.op_type in ("Transpose", "Reshape"):
            passed.insert(0, node)
            node = producers.get(node.input[0])
        quantizing = producers.get(node.input[0]) if node is not None and node.op_type == "DequantizeLinear" else None
        if quantizing is None or quantizing.input[0] not in constants:
            continue
        weights, scale = constants[quantizing.input[0]], constants[quantizing.input[1]]
        axis = next((each.i for each in quantizing.attribute if each.name == "axis"), 1)
        shape = [-1 if d == axis else 1 for d in range(weights.ndim)]
        numbers = np.clip(np.rint(weights / scale.reshape(shape)), -127, 127).astype(np.int8)
        for step in passed:
            if step.op_type == "Transpose":
                numbers = numbers.transpose(next(list(each.ints) for each in step.attribute if each.name == "perm"))
            else:
                numbers = numbers.reshape(constants[step.input[1]])
        if len(numbers) != scale.size:
            continue
        name = f"{conv.name}/int8"
        zero = numpy_helper.from_array(np.zeros(scale.size, np.int8), f"{name}/zero")
        model.graph.initializer.extend([numpy_helper.from_array(np.ascontiguousarray(numbers), name), zero])
        made = helper.make_node("DequantizeLinear", [name, quantizing.input[1], zero.name], [f"{name}/float"], axis=0)
        model.graph.node.insert(list(model.graph.node).index(conv), made)
        conv.input[1] = f"{name}/float"


@builder(_keep_weights_in_8_bits)
def eight_bit_onnx_file(folder: Path, source: str, inputs: str, outputs: str, opset: str) -> dict[str, Any]:
    """What tf2onnx makes of a rounded network, with filters in 8 bits."""
    import onnx

    made = onnx_file(source, inputs, outputs, opset)
    model = onnx.load(made.path)
    _keep_weights_in_8_bits(model)
    onnx.save(model, folder / "model.onnx")
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
    arguments = built.folder.name, inputs, ",".join(built.info["outputs"].values()), OPSET
    made = onnx_file(*arguments)  # first: a process that builds cannot start another
    return eight_bit_onnx_file(*arguments) if workload.suite == "quantized" else made
