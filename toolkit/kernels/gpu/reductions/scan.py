"""Cumsum, Cumprod and CumulativeLogsumexp: exclusive or not, from either end."""

from __future__ import annotations

import functools
import math

from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.reduce_code import largest, smallest
from toolkit.kernels.gpu.reductions.scan_kernels import GpuScan, scan_array, scan_with_totals
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


def _log_add(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
    """log(e^a + e^b); of equal ones, infinite ones too, a + log(2)."""
    top = largest(k, a, b)
    apart = k.add(top, functions.log1p(k, functions.exp(k, k.sub(smallest(k, a, b), top))))
    return k.select(k.compare("oeq", a, b), k.add(a, k.number(math.log(2.0), a.type)), apart)


def _add(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
    return k.add(a, b)


def _multiply(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
    return k.mul(a, b)


_OPS = {
    "Cumsum": (0, _add),
    "Cumprod": (1, _multiply),
    "CumulativeLogsumexp": (-math.inf, _log_add),
}


@functools.cache
def scan_of(op: str, name: str) -> GpuScan:
    """What an op computes of numbers of a type."""
    number = number_of(name)
    identity, combine = _OPS[op]
    return scan_with_totals(GpuScan(f"{op}_{name}", number, number, number.compute, identity, _itself, combine))


def _itself(k: KernelBuilder, value: Value) -> Lanes:
    return value


@gpu_kernel("Cumsum", "Cumprod", "CumulativeLogsumexp")
def scan(op: KernelNode) -> Compute:
    device = device_of(op.node)
    exclusive, backwards = bool(op.attr("exclusive")), bool(op.attr("reverse"))

    def compute(x: GpuArray, axis_input: Array) -> GpuArray:
        require(axis_input.ndim == 0, "axis must be a scalar, not " + shape_text(axis_input))
        axis = int(axis_input)
        require(-x.ndim <= axis < x.ndim, f"Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {axis}")
        axis %= x.ndim
        made = device.empty(x.shape, x.dtype)
        sizes = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
        scan_array(device, scan_of(op.op, x.dtype.name), x, sizes, made, exclusive=exclusive, backwards=backwards)
        return made

    return compute
