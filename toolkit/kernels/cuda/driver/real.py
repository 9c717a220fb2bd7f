"""NVIDIA's driver, through cuda-bindings (NVIDIA's own, a thin layer over libcuda; versions 12 and 13).

Nothing of the CUDA toolkit is needed: the driver compiles PTX itself.
"""

from __future__ import annotations

import importlib
import threading
from typing import Any

from toolkit.kernels.cuda.driver.base import DeviceProperties, Driver, DriverError, dotted
from toolkit.kernels.cuda.driver.calls import Calls
from toolkit.kernels.cuda.driver.real_context import CudaContext

#: what brings the Python side
PIP = 'pip install "graphmill[cuda]"'
#: drivers before that load no PTX of LLVM's for sm_90, and are older than cuda-bindings 12
_LEAST_DRIVER = 12000


def find() -> tuple[Driver | None, str]:
    """The driver, or why there is none, in a line."""
    try:
        module: Any = importlib.import_module("cuda.bindings.driver")
        bindings: Any = importlib.import_module("cuda.bindings")
    except ImportError as error:
        return None, f"cuda-bindings is not installed ({error}): {PIP}"
    calls = Calls(module)
    try:
        calls("cuInit", 0)
        version: int = calls("cuDriverGetVersion")
        count: int = calls("cuDeviceGetCount")
    except RuntimeError as error:  # libcuda.so.1 cannot be opened, or lacks a function
        return None, f"NVIDIA's driver (libcuda.so.1) is not installed: {error}"
    except DriverError as error:
        return None, f"NVIDIA's driver finds no GPU: {error.message}"
    if version < _LEAST_DRIVER:
        return None, f"NVIDIA's driver is for CUDA {dotted(version)}; install one for {dotted(_LEAST_DRIVER)} or later"
    if not count:
        return None, "NVIDIA's driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)"
    return CudaDriver(calls, count, version, str(getattr(bindings, "__version__", ""))), ""


class CudaDriver:
    """The driver, initialised.

    Args:
        version: of CUDA that it brings, 12040.
        bindings: the version of cuda-bindings.
    """

    def __init__(self, calls: Calls, count: int, version: int, bindings: str):
        self._calls = calls
        self._count = count
        self._version = version
        self._bindings = bindings
        self._contexts: dict[int, CudaContext] = {}
        self._lock = threading.Lock()

    def count(self) -> int:
        return self._count

    def properties(self, index: int) -> DeviceProperties:
        call, attribute = self._calls, self._calls.module.CUdevice_attribute
        device = call("cuDeviceGet", index)

        def number(name: str) -> int:
            return call("cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device)

        name: bytes = call("cuDeviceGetName", 256, device)
        return DeviceProperties(
            name=name.split(b"\0")[0].decode().strip(),
            memory=int(call("cuDeviceTotalMem", device)),
            capability=(number("COMPUTE_CAPABILITY_MAJOR"), number("COMPUTE_CAPABILITY_MINOR")),
            multiprocessors=number("MULTIPROCESSOR_COUNT"),
            shared_per_block=number("MAX_SHARED_MEMORY_PER_BLOCK"),
            l2=number("L2_CACHE_SIZE"),
            clock=number("CLOCK_RATE"),
            driver=self._version,
            runtime=self._bindings,
        )

    def open(self, index: int) -> CudaContext:
        with self._lock:
            found = self._contexts.get(index)
            if found is None:
                found = self._contexts[index] = CudaContext(self._calls, index, self.properties(index))
            return found
