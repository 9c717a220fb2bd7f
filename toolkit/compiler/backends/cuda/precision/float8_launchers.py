"""What runs the operations of `float8_operations`; see `launchers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.precision.float8_operations import Float8Product, QuantizeCall, QuantizedNest
from toolkit.compiler.ir import relations
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.float8 import multiply_float8, quantized
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.prepared import Prepared
from toolkit.kernels.gpu.elementwise.float8_nests import Given, launch_quantized_nest
from toolkit.kernels.tensors import F8, F32

Launch = Callable[..., list[GpuArray]]


def _quantize(device: CudaDevice, operation: QuantizeCall) -> Launch:
    turned = operation.turned
    kept = Prepared(("float8", turned)) if operation.stays else None

    def launch(x: GpuArray, maxima: GpuArray | None = None) -> list[GpuArray]:
        if kept is None:
            return [*quantized(device, x, turned=turned, maxima=maxima)]
        return [*kept.of(device, [x], lambda: quantized(device, x, turned=turned))]

    return launch


def _nest(device: CudaDevice, operation: QuantizedNest) -> Launch:
    shape, members, place = operation.shape, operation.members, operation.place
    given = tuple(Given(value.dtype.name, value.shape != shape) for value in operation.reads)

    def launch(*arrays: GpuArray) -> list[GpuArray]:
        made, factor = device.empty(shape, F8), device.empty((1,), F32)
        launch_quantized_nest(device, members, given, place, arrays, made, factor)
        return [made, factor]

    return launch


def _product(device: CudaDevice, operation: Float8Product) -> Launch:
    shape, dtype = relations.shape(operation.output), operation.output.dtype
    product, name = operation.product, operation.activation

    def launch(
        a: GpuArray, b: GpuArray, a_factor: GpuArray, b_factor: GpuArray, bias: GpuArray | None = None
    ) -> list[GpuArray]:
        out = device.empty(shape, dtype)
        multiply_float8(device, product, a, b, (a_factor, b_factor), out, bias=bias, name=name)
        return [out]

    return launch


#: of `float8_operations`
FLOAT8_LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    QuantizeCall: _quantize,
    QuantizedNest: _nest,
    Float8Product: _product,
}
