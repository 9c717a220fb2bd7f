"""Classes drawn with given probabilities: Multinomial and its stateless form.

A block for each row of logits makes the sums of its weights up to each class; a thread for each sample then looks for
its random number among these. Random numbers are the CPU's, sums may be rounded otherwise where there are more classes
than threads.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.random.basic import RESERVED, check_multinomial, guarded
from toolkit.kernels.cpu.random.stateless import from_seed
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.draws import drawn
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.gpu.primitives.element_types import number_type
from toolkit.kernels.gpu.random.philox import PhiloxNumbers, Source, generator_arguments, uniform_double
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.types import Array

_BLOCK = 256


@functools.cache
def _sums_kernel(dtype: str) -> SimtKernel:
    """The sums of e^(logit - the largest) from the first class on, in double; what is not finite weighs nothing."""
    type = number_type(dtype)
    k = KernelBuilder(f"multinomial_sums_{dtype}", _BLOCK)
    logits, sums = k.buffer("logits", type.memory), k.buffer("sums", "double", written=True)
    classes = k.scalar("classes", "i64")
    shared = k.shared("parts", "double", _BLOCK)
    thread, threads = k.convert(k.thread, "i64"), k.number(_BLOCK, "i64")
    row = k.mul(k.convert(k.block_index, "i64"), classes)
    zero, least = k.number(0.0, "double"), k.number(-math.inf, "double")

    def logit(j: Value) -> tuple[Value, Value]:
        value = k.convert(k.load(logits, k.add(row, j)), "double")
        return value, k.compare("olt", k.intrinsic("fabs", value), k.number(math.inf, "double"))

    highest = k.variable(least)
    with k.loop(thread, classes, threads) as j:
        value, is_finite = logit(j)
        is_higher = k.both(is_finite, k.compare("ogt", value, highest.get()))
        highest.set(k.select(is_higher, value, highest.get()))
    k.store(shared, thread, highest.get())
    k.barrier()
    _reduce_highest(k, shared, thread)
    largest = k.load(shared, k.number(0, "i64"))
    largest = k.select(k.compare("oeq", largest, least), zero, largest)

    def weight(j: Value) -> Value:
        value, is_finite = logit(j)
        inside = k.select(is_finite, k.sub(value, largest), zero)
        return k.select(is_finite, k.convert(_exp(k, inside), "double"), zero)

    chunk = k.binary("udiv", k.add(classes, k.number(_BLOCK - 1, "i64")), threads)
    first = k.mul(thread, chunk)
    stop = k.add(first, chunk)
    stop = k.select(k.compare("slt", stop, classes), stop, classes)
    total = k.variable(zero)
    with k.loop(first, stop) as j:
        total.set(k.add(total.get(), weight(j)))
    k.barrier()
    k.store(shared, thread, total.get())
    k.barrier()
    with k.when(k.compare("eq", thread, k.number(0, "i64"))):
        running = k.variable(zero)
        with k.loop(k.number(0, "i64"), threads) as i:
            own = k.load(shared, i)
            k.store(shared, i, running.get())
            running.set(k.add(running.get(), own))
    k.barrier()
    running = k.variable(k.load(shared, thread))
    with k.loop(first, stop) as j:
        running.set(k.add(running.get(), weight(j)))
        k.store(sums, k.add(row, j), running.get())
    return k.finish()


def _exp(k: KernelBuilder, x: Value) -> Any:
    return functions.exp(k, x)


def _reduce_highest(k: KernelBuilder, shared: KernelBuffer, thread: Value) -> None:
    """The largest of all threads' numbers in the first place, by halves."""
    step = _BLOCK // 2
    while step:
        with k.when(k.compare("slt", thread, k.number(step, "i64"))):
            own, other = k.load(shared, thread), k.load(shared, k.add(thread, k.number(step, "i64")))
            k.store(shared, thread, k.select(k.compare("ogt", other, own), other, own))
        k.barrier()
        step //= 2


@functools.cache
def _draw_kernel(dtype: str, is_tensor: bool) -> SimtKernel:
    """The first class whose sum is above a random part of the row's last.

    Args:
        is_tensor: the generator is in the device's memory.
    """
    type = number_type(dtype)
    k = KernelBuilder(f"multinomial_draw_{dtype}", _BLOCK)
    numbers = PhiloxNumbers(k, is_tensor=is_tensor)
    sums, y = k.buffer("sums", "double"), k.buffer("y", type.memory, written=True)
    n, samples, classes = k.scalar("n", "i64"), k.scalar("samples", "i64"), k.scalar("classes", "i64")
    index, one = k.global_thread("i64"), k.number(1, "i64")
    with k.when(k.compare("slt", index, n)):
        numbers.read()
        words = numbers.block(k.binary("lshr", index, one))  # a block is two doubles
        is_second = k.compare("ne", k.both(index, one), k.number(0, "i64"))
        point = uniform_double(k, *(k.select(is_second, words[i + 2], words[i]) for i in (0, 1)))
        row = k.mul(k.binary("udiv", index, samples), classes)
        point = k.mul(point, k.load(sums, k.sub(k.add(row, classes), one)))
        low, high = k.variable(k.number(0, "i64")), k.variable(classes)
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), one)
            is_below = k.compare("ole", k.load(sums, k.add(row, middle)), point)
            below, above = low.get(), high.get()
            low.set(k.select(is_below, k.add(middle, one), below))
            high.set(k.select(is_below, above, middle))
        k.store(y, index, k.convert(low.get(), type.memory))
    return k.finish()


def draw_classes(device: CudaDevice, source: Source, logits: GpuArray, samples: int, dtype: Any) -> GpuArray:
    """Classes [batch, samples] of logits [batch, classes]."""
    batch, classes = logits.shape
    made = device.empty((batch, samples), dtype)
    if made.size:
        sums = device.empty(logits.shape, np.dtype(np.float64))
        device.launch(_sums_kernel(logits.dtype.name), batch, logits, sums, classes)
        given = generator_arguments(source)
        blocks = -(-made.size // _BLOCK)
        kernel = _draw_kernel(made.dtype.name, not isinstance(source, Philox))
        device.launch(kernel, blocks, *given, sums, made, made.size, samples, classes)
    return made


@number_kernel("Multinomial", kind=Kind.STATEFUL)
def random_multinomial(op: KernelNode) -> Compute:
    device, generator, dtype = device_of(op.node), guarded(op), op.attr("output_dtype").numpy

    def compute(step: StepContext, logits: GpuArray, samples: Array) -> GpuArray:
        count = check_multinomial(logits, samples)
        batch = logits.shape[0]
        if not batch * count:
            return device.empty((batch, count), dtype)
        reserved = -(-count // 4) * 4 * 2 * batch * RESERVED  # doubles take two words
        return draw_classes(device, drawn(device, generator(step), reserved), logits, count, dtype)

    return compute


@number_kernel("StatelessMultinomial")
def stateless_multinomial(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("output_dtype").numpy

    def compute(logits: GpuArray, samples: Array, seed: Array) -> GpuArray:
        count = check_multinomial(logits, samples)
        return draw_classes(device, from_seed(seed), logits, count, dtype)

    return compute
