"""Gradients of quantization: straight through where values were in range."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient

no_gradient(
    "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient"
)


def _attrs(op: Operation, *names: str) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in names}


@gradient("FakeQuantWithMinMaxArgs")
def fake_quantize(op: Operation, grad: Tensor) -> Gradient:
    attrs = _attrs(op, "min", "max", "num_bits", "narrow_range")
    return ops.fake_quant_with_min_max_args_gradient(grad, op.inputs[0], **attrs)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quantize_variables(op: Operation, grad: Tensor) -> list[Gradient]:
    return list(ops.function(op.type + "Gradient")(grad, *op.inputs, **_attrs(op, "num_bits", "narrow_range")))


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def quantize(op: Operation, grad: Gradient) -> list[Gradient]:
    return [grad] + [None] * (len(op.inputs) - 1)


@gradient("QuantizeAndDequantizeV4")
def quantize_v4(op: Operation, grad: Tensor) -> list[Gradient]:
    return list(ops.quantize_and_dequantize_v4_grad(grad, *op.inputs, **_attrs(op, "axis")))


@gradient("QuantizeAndDequantizeV4Grad")
def quantize_v4_grad(op: Operation, grad: Gradient, *_: Gradient) -> list[Gradient]:
    return [grad, None, None, None]
