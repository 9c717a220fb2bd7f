"""PyTorch, as it is or compiled: convolutions over channels-last images where tensor cores want them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.bench.cuda.engines import GPU, STEPS, last_weights
from tests.bench.cuda.networks.base import Tensors
from tests.bench.cuda.workloads import CudaWorkload

_NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


class _Module(torch.nn.Module):
    """A network's weights as parameters, whose addresses compiled code and CUDA graphs may rely on."""

    def __init__(self, workload: CudaWorkload, weights: Tensors, state: Tensors, data: list[str]):
        super().__init__()
        self.workload, self.given = workload, data
        self.names = {name: "v_" + name.replace(".", "_") for name in (*weights, *state)}
        for name, tensor in weights.items():
            self.register_parameter(self.names[name], torch.nn.Parameter(tensor, requires_grad=workload.training))
        for name, tensor in state.items():
            self.register_buffer(self.names[name], tensor)
        self.layer: Any = None

    def forward(self, *given: Any) -> Any:
        values = {name: getattr(self, label) for name, label in self.names.items()}
        if self.layer is not None:
            values["layer"] = self.layer
        data = dict(zip(self.given, given, strict=True))
        return self.workload.network.torch(torch, values, values, data, self.workload.training).value


class Loaded:
    """A module and its optimizer."""

    note = ""

    def __init__(self, workload: CudaWorkload, device: str = GPU, compiled: bool = False):
        network, precision = workload.network, workload.precision
        if precision == "fp8":
            raise NotImplementedError("PyTorch's modules have no products of 8-bit floats by themselves")
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cudnn.benchmark = True
        self._device = torch.device("cuda" if device == GPU else "cpu")
        self._training = workload.training
        # for inference everything is in 16 bits; in training weights are float32, and autocast says where it pays
        narrow = _NARROW.get(precision)
        self._type = torch.float32 if narrow is None or workload.training else narrow
        self._last = precision != "f32"
        self._autocast: Callable[[], Any] = contextlib.nullcontext
        if narrow is not None and workload.training:
            self._autocast = lambda: torch.autocast(self._device.type, narrow)
        weights = network.weights()
        layer = None
        if hasattr(network, "torch_weights"):
            layer = network.torch_weights(torch, weights).to(self._device, self._type)
            layer.flatten_parameters()
            weights = {name: array for name, array in weights.items() if name.startswith("last")}
        data = network.data()
        filters = {name: self._tensor(array, (3, 2, 0, 1)) for name, array in weights.items()}
        state = {name: self._tensor(array) for name, array in network.state().items()}
        self._module = _Module(workload, filters, state, list(data))
        self._module.layer = layer
        self._host = data["x"]
        self._data = [self._tensor(array, (0, 3, 1, 2)) for array in data.values()]
        self._watched = "v_" + last_weights(network).replace(".", "_") if workload.training else ""
        self._call: Any = self._module
        if compiled:
            mode = "reduce-overhead" if workload.latency and device == GPU else "default"
            self._call = torch.compile(self._module, mode=mode, dynamic=False)
        if workload.optimizer is not None:
            parameters = [each for each in self._module.parameters() if each.requires_grad]
            self._optimizer = workload.optimizer.torch(torch, parameters)
            self.run = self._learn
        else:
            self.run = self._infer

    def _tensor(self, array: Any, order: tuple[int, ...] = ()) -> Any:
        """An array on the device.

        Args:
            order: of the dimensions of filters and images, as PyTorch has them.
        """
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if tensor.ndim == 4:
            form = torch.channels_last if self._last else torch.contiguous_format
            tensor = tensor.permute(*order).contiguous(memory_format=form)
        kind = self._type if tensor.is_floating_point() else tensor.dtype
        return tensor.to(self._device, kind)

    def _infer(self) -> Any:
        with torch.inference_mode():
            return self._call(*self._data)

    def _learn(self) -> Any:
        self._optimizer.zero_grad(set_to_none=True)
        with self._autocast():
            loss = self._call(*self._data)
        loss.backward()
        self._optimizer.step()
        return loss

    def wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()

    def results(self) -> dict[str, Any]:
        if not self._training:
            return {"output": self.run().float().cpu().numpy()}
        weights = getattr(self._module, self._watched)
        before = weights.detach().cpu().numpy().copy()
        losses = [self.run().item() for _ in range(STEPS)]
        return {"losses": np.array(losses, np.float32), "change": weights.detach().cpu().numpy() - before}

    def fed(self) -> Callable[[], Any] | None:
        host = torch.from_numpy(self._host)
        host = host.pin_memory() if self._device.type == "cuda" else host

        def step() -> Any:
            given = host.to(self._device, non_blocking=True)
            given = given.permute(0, 3, 1, 2) if given.ndim == 4 else given
            if given.ndim == 4 and not self._last:
                given = given.contiguous()
            with torch.inference_mode():
                return self._call(given.to(self._type), *self._data[1:]).float().cpu().numpy()

        return step
