"""NVIDIA's driver, through cuda-bindings."""

from __future__ import annotations

from toolkit.kernels.cuda.driver.base import Driver

#: what brings the Python side
PIP = 'pip install "graphmill[cuda]"'


def find() -> tuple[Driver | None, str]:
    """The driver, or why there is none."""
    return None, f"libcuda.so.1, NVIDIA's driver, is not installed; the Python side: {PIP}"
