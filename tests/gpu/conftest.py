"""Tests of GPUs have a driver, see `tests.gpu.driver`."""

from tests.gpu.driver import driver

__all__ = ["driver"]
