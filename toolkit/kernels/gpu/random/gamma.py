"""Gamma-distributed random numbers that a seed alone determines: StatelessRandomGammaV2 and V3.

By rejection (Marsaglia and Tsang, 2000) in double, as `kernels.random.rejection` has it: a thread draws a number, from
blocks of the generator that are its own, so they are the CPU's numbers up to the last bits of logarithms and sines.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from toolkit.kernels.cpu.common import finfo
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.random.basic import output_shape
from toolkit.kernels.cpu.random.rejection import stateless_count
from toolkit.kernels.cpu.random.stateless import from_seed
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.gpu.operators.special import power
from toolkit.kernels.gpu.primitives.element_types import number_type
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.random.philox import (
    PhiloxNumbers,
    Source,
    Words,
    generator_arguments,
    normal_numbers,
    require_generator,
    uniform_double,
)
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.random.rejection import MOST_ROUNDS, RESERVED
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


class _Drawn:
    """Numbers of a block, two at a time, used from the last to the first."""

    def __init__(self, k: KernelBuilder, words: Callable[[], Words], make: Callable[[Words], list[Value]]):
        self._k, self._words, self._make = k, words, make
        zero = k.number(0.0, "double")
        self._first, self._second = k.variable(zero), k.variable(zero)
        self._is_left = k.variable(k.number(0, "i32"))

    def take(self) -> Value:
        k = self._k
        taken = k.variable(self._first.get())
        with k.when(k.compare("eq", self._is_left.get(), k.number(0, "i32"))):
            first, second = self._make(self._words())
            self._first.set(first)
            self._second.set(second)
            taken.set(second)
        self._is_left.set(k.sub(k.number(1, "i32"), self._is_left.get()))
        return taken.get()


@functools.cache
def gamma_kernel(dtype: str, *, is_tensor: bool) -> SimtKernel:
    """Takes the generator, alpha [parameters], y [samples, parameters], parameters, samples, all numbers."""
    type = number_type(dtype)
    k = KernelBuilder(f"random_gamma_{dtype}", BLOCK)
    generator = PhiloxNumbers(k, is_tensor=is_tensor)
    alphas, y = k.buffer("alpha", type.memory), k.buffer("y", type.memory, written=True)
    parameters, samples, count = (k.scalar(name, "i64") for name in ("parameters", "samples", "count"))
    i = k.global_thread("i64")

    def number(value: float) -> Value:
        return k.number(value, "double")

    with k.when(k.compare("slt", i, count)):
        generator.read()
        parameter = k.rem(i, parameters)
        own = k.add(k.mul(parameter, samples), k.div(i, parameters))
        block = k.variable(k.mul(own, k.number(RESERVED, "i64")))

        def words() -> Words:
            found = generator.block(block.get())
            block.set(k.add(block.get(), k.number(1, "i64")))
            return found

        def uniforms_of(words: Words) -> list[Value]:
            return [uniform_double(k, words[at], words[at + 1]) for at in (0, 2)]

        normals = _Drawn(k, words, lambda words: normal_numbers(k, words, number_type("float64")))
        uniforms = _Drawn(k, words, uniforms_of)
        alpha = k.convert(k.convert(k.load(alphas, parameter), type.register), "double")
        one, zero = number(1.0), number(0.0)
        is_small = k.compare("olt", alpha, one)
        is_one, found = k.compare("oeq", alpha, one), k.variable(number(math.nan))
        left = k.variable(k.number(MOST_ROUNDS, "i32"))
        with k.while_(lambda: k.compare("sgt", left.get(), k.number(0, "i32"))):
            left.set(k.sub(left.get(), k.number(1, "i32")))
            x, v = k.variable(zero), k.variable(one)
            with k.when(k.inverse(is_one)):
                d = k.add(alpha, k.select(is_small, number(2 / 3), number(-1 / 3)))
                x.set(normals.take())
                v.set(k.add(one, k.mul(k.div(number(1 / 3), k.intrinsic("sqrt", d)), x.get())))
            with k.when(k.inverse(k.compare("ole", v.get(), zero))):  # NaN is accepted, and is the sample
                u, cube = uniforms.take(), k.mul(k.mul(v.get(), v.get()), v.get())
                square = k.mul(x.get(), x.get())
                squeeze = k.sub(one, k.mul(k.mul(number(0.0331), square), square))
                d = k.add(alpha, k.select(is_small, number(2 / 3), number(-1 / 3)))
                rest = k.mul(d, k.add(k.sub(one, cube), functions.log(k, cube)))
                limit = k.add(k.mul(number(0.5), square), rest)
                good = k.either(k.compare("olt", u, squeeze), k.compare("olt", functions.log(k, u), limit))
                exponential = k.neg(functions.log1p(k, k.neg(u)))
                with k.when(k.either(good, is_one)):
                    found.set(k.select(is_one, exponential, k.mul(d, cube)))
                    left.set(k.number(0, "i32"))
        with k.when(is_small):
            found.set(k.mul(found.get(), power(k, uniforms.take(), k.div(one, alpha))))
        value = k.convert(k.convert(found.get(), type.register), type.memory)
        if type.size > 2:  # TensorFlow computes with subnormal numbers flushed to zero
            is_less = k.compare("olt", value, k.number(float(finfo(dtype).tiny), type.memory))
            value = k.select(is_less, k.number(0.0, type.memory), value)
        k.store(y, i, value)
    return k.finish()


def _gamma(device: CudaDevice, source: Source, shape: Array, alpha: GpuArray) -> GpuArray:
    sizes = output_shape(shape)
    made = device.empty(sizes, alpha.dtype)
    if made.size:
        samples = stateless_count(sizes, alpha, "alpha")
        kernel = gamma_kernel(np.dtype(alpha.dtype).name, is_tensor=not isinstance(source, Philox))
        device.launch(kernel, blocks_for(made.size), *generator_arguments(source), alpha, made, alpha.size, samples,
                      made.size)  # fmt: skip
    return made


@number_kernel("StatelessRandomGammaV2")
def stateless_gamma_v2(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(shape: Array, seed: Array, alpha: GpuArray) -> GpuArray:
        return _gamma(device, from_seed(seed), shape, alpha)

    return compute


@number_kernel("StatelessRandomGammaV3")
def stateless_gamma_v3(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(shape: Array, key: GpuArray, counter: GpuArray, algorithm: Array, alpha: GpuArray) -> GpuArray:
        require_generator(key, counter, algorithm)
        return _gamma(device, (key, counter), shape, alpha)

    return compute
