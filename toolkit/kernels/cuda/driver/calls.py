"""Calls of cuda-bindings, whose first result is a status."""

from __future__ import annotations

from typing import Any

from toolkit.kernels.cuda.driver.base import DriverError, OutOfDeviceMemory


class Calls:
    """Calls functions of the driver and checks what they say.

    Args:
        module: cuda.bindings.driver.

    Attributes:
        success: the status of a call that went well.
    """

    def __init__(self, module: Any):
        self.module = module
        self.success: Any = module.CUresult.CUDA_SUCCESS

    def __call__(self, name: str, *arguments: Any) -> Any:
        """What a call gives besides its status: nothing, a value, or several.

        Raises:
            DriverError: the status is not success.
        """
        status, *results = getattr(self.module, name)(*arguments)
        if status != self.success:
            raise self.error(name, status)
        return results[0] if len(results) == 1 else results or None

    def error(self, call: str, status: Any, more: str = "") -> DriverError:
        """The error for a status.

        Args:
            more: words of a compiler, say.
        """
        name, text = self._told("cuGetErrorName", status), self._told("cuGetErrorString", status)
        kind = OutOfDeviceMemory if name == "CUDA_ERROR_OUT_OF_MEMORY" else DriverError
        return kind(call, name or f"status {int(status)}", f"{text}: {more}" if more else text)

    def _told(self, function: str, status: Any) -> str:
        _, said = getattr(self.module, function)(status)
        return said.decode(errors="replace") if said else ""
