"""CheckNumerics: whether there are NaNs and infinities; the host asks for a word and waits for the GPU."""

from __future__ import annotations

import functools

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.reduce_code import Running, State, block_reduce, first_thread, strided
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode

_BLOCK = 256
#: numbers that a thread looks at before there are more blocks than a GPU holds at once
_EACH = 16
_NAN, _HIGH, _LOW = 1, 2, 4


@gpu_kernel("CheckNumerics", "CheckNumericsV2")
def check_numerics(op: KernelNode) -> Compute:
    device = device_of(op.node)
    message = op.attr("message").decode(errors="backslashreplace")
    signed = op.op == "CheckNumericsV2"

    def compute(x: GpuArray) -> GpuArray:
        if not x.nbytes:
            return x
        flag = device.zeros((1,), np.int32)
        device.launch(_look(x.dtype.name), -(-x.size // (_BLOCK * _EACH)), x, flag, x.size)
        found = int(device.to_host(flag)[0])
        if found:
            names: list[str] = []
            if signed:
                names += ["-Inf"] if found & _LOW else []
                names += ["+Inf"] if found & _HIGH else []
            elif found & (_LOW | _HIGH):
                names.append("Inf")
            names += ["NaN"] if found & _NAN else []
            raise InvalidArgumentError(f"{message} : Tensor had {' and '.join(names)} values")
        return x

    return compute


@functools.cache
def _look(name: str) -> SimtKernel:
    """What there is of it, a bit each. Scalars: how many numbers."""
    number = number_of(name)
    k = KernelBuilder(f"check_numerics_{name}", _BLOCK)
    x, flag = k.buffer("x", number.memory), k.buffer("flag", "i32", written=True)
    count = k.scalar("count", "i64")
    running = Running(k, (k.number(0, "i32"),))

    def use(found: State) -> None:
        (value,) = found
        bits = running.get()[0]
        type = value.type
        for bit, odd in (
            (_NAN, k.compare("uno", value, value)),
            (_HIGH, k.compare("oeq", value, k.number(float("inf"), type))),
            (_LOW, k.compare("oeq", value, k.number(-float("inf"), type))),
        ):
            bits = k.binary("or", bits, k.select(odd, k.number(bit, "i32"), k.number(0, "i32")))
        running.set((bits,))

    strided(k, k.global_thread("i64"), count, k.grid_threads("i64"), lambda i: (number.load(k, x, i),), use)
    total = block_reduce(k, running.get(), lambda a, b: (k.binary("or", a[0], b[0]),))[0]
    with k.when(k.both(first_thread(k), k.compare("ne", total, k.number(0, "i32")))):
        k.atomic("or", flag, k.number(0, "i32"), total)
    return k.finish()
