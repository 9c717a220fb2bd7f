"""The weights of cuDNN's recurrent networks on GPUs: taken out of their buffer, and put together to one.

Sizes are in host memory, and so is the size of the buffer, which the CPU's kernel works out.
"""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cpu.nn.cudnn_params import check_buffer, check_numbers, check_parts, model_of, numbers_of
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.layout import ElementLayout, row_major
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.recurrent_params import RecurrentSettings
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@gpu_kernel("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2")
def cudnn_rnn_params_to_canonical(op: KernelNode) -> Compute:
    device, settings, numbers = device_of(op.node), RecurrentSettings.of(op), numbers_of(op)

    def compute(layers: Array, units: Array, inputs: Array, params: GpuArray) -> list[GpuArray]:
        model = model_of(settings, layers, units, inputs)
        check_numbers(model, *numbers)
        check_buffer(model, params)
        places = (*model.canonical_weights, *model.canonical_biases)
        return [
            part(device, params, ElementLayout(each.shape, tuple(row_major(each.shape)), each.offset))
            for each in places
        ]

    return compute


@gpu_kernel("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2")
def cudnn_rnn_canonical_to_params(op: KernelNode) -> Compute:
    device, settings, numbers = device_of(op.node), RecurrentSettings.of(op), numbers_of(op)

    def compute(layers: Array, units: Array, inputs: Array, *parts: Any) -> GpuArray:
        model = model_of(settings, layers, units, inputs)
        check_numbers(model, *numbers)
        check_parts(model, parts[: numbers[0]], parts[numbers[0] :])
        return joined(device, [each.reshaped((each.size,)) for each in parts], 0)

    return compute
