"""Random numbers on GPUs: the same blocks of Philox, and the same numbers from them, as on the CPU.

A generator is a key and the counter of its next block, as numbers that a kernel is launched with, or in tensors on the
device ([1] and [2 or more], 64 bits each). A thread makes one block of four words, and of these four numbers, or two
of 64 bits. TensorFlow's GPUs hand out the counters in another order; here seeds mean one thing everywhere.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, shape_text
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.random.stateless import is_philox
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.operators.trigonometric import sine_and_cosine_of_turn
from toolkit.kernels.gpu.primitives.element_types import NumberType, number_type
from toolkit.kernels.random.philox import KEY_STEPS, MULTIPLIERS, Philox
from toolkit.kernels.types import Array

_BLOCK = 256
_ROUNDS = 10
_EPSILON = 1.0e-7  # keeps the logarithm finite
_TRUNCATE = 2.0
_RESERVED = 64  # blocks that each number of a truncated distribution has for itself

Words = Sequence[Value]


def philox_block(k: KernelBuilder, low: Value, high: Value, key: Value) -> list[Value]:
    """The block of a counter of 2 x 64 bits: four i32."""

    def halves(x: Value) -> tuple[Value, Value]:
        return k.convert(x, "i32"), k.convert(k.binary("lshr", x, k.number(32, "i64")), "i32")

    (c0, c1), (c2, c3), (k0, k1) = halves(low), halves(high), halves(key)
    for _ in range(_ROUNDS):
        first = k.mul(k.convert(c0, "i64", unsigned=True), k.number(MULTIPLIERS[0], "i64"))
        second = k.mul(k.convert(c2, "i64", unsigned=True), k.number(MULTIPLIERS[1], "i64"))
        (first_low, first_high), (second_low, second_high) = halves(first), halves(second)
        c0 = k.binary("xor", k.binary("xor", second_high, c1), k0)
        c2 = k.binary("xor", k.binary("xor", first_high, c3), k1)
        c1, c3 = second_low, first_low
        k0, k1 = (k.add(old, k.number(_signed(step), "i32")) for old, step in zip((k0, k1), KEY_STEPS, strict=True))
    return [c0, c1, c2, c3]


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


class PhiloxNumbers:
    """Where a kernel finds its key and counter.

    Args:
        is_tensor: they are in buffers, else among the numbers.
    """

    def __init__(self, k: KernelBuilder, *, is_tensor: bool):
        self._k = k
        if is_tensor:
            keys, counters = k.buffer("key", "i64"), k.buffer("counter", "i64")
            self._places = (keys, counters)
        else:
            self._places = None
            self._given = [k.scalar(name, "i64") for name in ("key", "low", "high")]

    def read(self) -> None:
        """Behind all arguments: look them up."""
        k = self._k
        if self._places is not None:
            keys, counters = self._places
            zero, one = k.number(0, "i64"), k.number(1, "i64")
            self._given = [k.load(keys, zero), k.load(counters, zero), k.load(counters, one)]

    def block(self, offset: Value) -> list[Value]:
        """The words of the block at a distance (i64) from the first."""
        k = self._k
        key, low, high = self._given
        at = k.add(low, offset)
        carried = k.compare("ult", at, offset)
        return philox_block(k, at, k.add(high, k.convert(carried, "i64")), key)


# -- words into numbers --------------------------------------------------------------------------------------------


def _mantissa(k: KernelBuilder, word: Value, bits: int, exponent: int, type: str) -> Value:
    """A random mantissa under the exponent of 1, less 1, of a float that is as wide as the word."""
    kept = k.both(word, k.number((1 << bits) - 1, word.type))
    whole = k.either(kept, k.number(exponent << bits, word.type))
    return k.sub(k.cast("bitcast", whole, type), k.number(1.0, type))


def uniform_float(k: KernelBuilder, word: Value) -> Value:
    return _mantissa(k, word, 23, 127, "float")


def uniform_double(k: KernelBuilder, first: Value, second: Value) -> Value:
    """The first word gives the upper 20 bits, the second the lower 32."""
    upper = k.binary("shl", k.convert(first, "i64", unsigned=True), k.number(32, "i64"))
    return _mantissa(k, k.either(upper, k.convert(second, "i64", unsigned=True)), 52, 1023, "double")


def _uniform(k: KernelBuilder, words: Words, type: NumberType) -> list[Value]:
    match type.memory:
        case "double":
            return [uniform_double(k, words[0], words[1]), uniform_double(k, words[2], words[3])]
        case "half" | "bfloat":
            # the same bits of a float's mantissa, the first of them
            bits = 10 if type.memory == "half" else 7
            shift = k.number(23 - bits, "i32")
            return [uniform_float(k, k.binary("shl", word, shift)) for word in words]
        case _:
            return [uniform_float(k, word) for word in words]


def _box_muller(k: KernelBuilder, u: Value, v: Value) -> list[Value]:
    """Two independent normals of two uniforms; of floats each function is computed in double and rounded, which is what
    a good C library gives."""
    type = u.type
    least = k.number(_EPSILON, type)
    u = k.select(k.compare("olt", u, least), least, u)
    angle = k.mul(k.convert(v, "double"), k.number(2 * math.pi, "double"))
    angle = k.convert(k.convert(angle, type), "double")
    logarithm = k.convert(cast("Value", functions.log(k, k.convert(u, "double"))), type)
    radius = k.intrinsic("sqrt", k.mul(logarithm, k.number(-2.0, type)))
    return [k.mul(k.convert(each, type), radius) for each in sine_and_cosine_of_turn(k, angle)]


def normal_numbers(k: KernelBuilder, words: Words, type: NumberType) -> list[Value]:
    if type.memory == "double":
        return _box_muller(k, uniform_double(k, words[0], words[1]), uniform_double(k, words[2], words[3]))
    flat = [uniform_float(k, word) for word in words]
    return [*_box_muller(k, flat[0], flat[1]), *_box_muller(k, flat[2], flat[3])]


def _full(k: KernelBuilder, words: Words, type: NumberType) -> list[Value]:
    if type.size == 4:
        return list(words)
    wide = [k.convert(word, "i64", unsigned=True) for word in words]
    upper = k.number(32, "i64")
    return [k.either(wide[i], k.binary("shl", wide[i + 1], upper)) for i in (0, 2)]


_NUMBERS: dict[str, Callable[[KernelBuilder, Words, NumberType], list[Value]]] = {
    "Uniform": _uniform, "Normal": normal_numbers, "FullInt": _full,
}  # fmt: skip
#: all that tensors are filled with; "Integers" are between two bounds
DISTRIBUTIONS = (*_NUMBERS, "TruncatedNormal", "Integers")


@functools.cache
def _fill_kernel(distribution: str, dtype: str, is_tensor: bool) -> SimtKernel:
    """A thread makes the numbers of one block, and writes those that are asked for."""
    type = number_type(dtype)
    k = KernelBuilder(f"random_{distribution}_{dtype}", _BLOCK)
    generator = PhiloxNumbers(k, is_tensor=is_tensor)
    y, n = k.buffer("y", type.memory, written=True), k.scalar("n", "i64")
    bounds = [k.scalar(name, type.memory) for name in ("start", "span")] if distribution == "Integers" else []
    count = 2 if type.size == 8 else 4
    index = k.global_thread("i64")
    first = k.mul(index, k.number(count, "i64"))
    with k.when(k.compare("slt", first, n)):
        generator.read()
        words = generator.block(index)
        if bounds:
            numbers = [k.add(k.binary("urem", word, bounds[1]), bounds[0]) for word in _full(k, words, type)]
        else:
            numbers = _NUMBERS[distribution](k, words, type)
        stored = [k.convert(number, type.memory) for number in numbers]
        with k.when(k.compare("sle", k.add(first, k.number(count, "i64")), n)):
            for i, number in enumerate(stored):
                k.store(y, k.add(first, k.number(i, "i64")), number)
        with k.otherwise():
            for i, number in enumerate(stored):
                at = k.add(first, k.number(i, "i64"))
                with k.when(k.compare("slt", at, n)):
                    k.store(y, at, number)
    return k.finish()


@functools.cache
def _truncated_kernel(dtype: str, is_tensor: bool) -> SimtKernel:
    """A thread makes as many numbers as a block has, from blocks of its own: the first that are within bounds."""
    type = number_type(dtype)
    k = KernelBuilder(f"random_TruncatedNormal_{dtype}", _BLOCK)
    generator = PhiloxNumbers(k, is_tensor=is_tensor)
    y, n = k.buffer("y", type.memory, written=True), k.scalar("n", "i64")
    count = 2 if type.size == 8 else 4
    index = k.global_thread("i64")
    first = k.mul(index, k.number(count, "i64"))
    with k.when(k.compare("slt", first, n)):
        generator.read()
        stop = k.add(first, k.number(count, "i64"))
        stop = k.select(k.compare("slt", stop, n), stop, n)
        at = k.variable(first)
        block = k.variable(k.mul(index, k.number(count * _RESERVED, "i64")))
        with k.while_(lambda: k.compare("slt", at.get(), stop)):
            for number in normal_numbers(k, generator.block(block.get()), type):
                inside = k.compare("olt", k.intrinsic("fabs", number), k.number(_TRUNCATE, number.type))
                with k.when(k.both(inside, k.compare("slt", at.get(), stop))):
                    k.store(y, at.get(), k.convert(number, type.memory))
                    at.set(k.add(at.get(), k.number(1, "i64")))
            block.set(k.add(block.get(), k.number(1, "i64")))
    return k.finish()


def kernel_of(distribution: str, dtype: str, *, is_tensor: bool) -> SimtKernel:
    """The kernel that fills tensors of a type; `is_tensor` says that the generator is in the device's memory."""
    if distribution == "TruncatedNormal":
        return _truncated_kernel(dtype, is_tensor)
    return _fill_kernel(distribution, dtype, is_tensor)


def require_generator(key: GpuArray, counter: GpuArray, algorithm: Array) -> None:
    """Refuse what describes no generator.

    Raises:
        InvalidArgumentError: a wrong shape or an algorithm other than Philox.
    """
    if np.ndim(algorithm) != 0:
        raise InvalidArgumentError(f"input alg must have shape [], not {shape_text(algorithm)}")
    if key.shape != (1,):
        raise InvalidArgumentError(f"key must have shape [1], not {shape_text(key)}")
    if counter.ndim != 1:
        raise InvalidArgumentError(f"counter must be a vector, not of shape {shape_text(counter)}")
    if not is_philox(algorithm):
        raise InvalidArgumentError(f"Unsupported algorithm id: {int(algorithm)}")
    if counter.size < 2:
        raise InvalidArgumentError(f"For the Philox algorithm, counter must have 2 elements, not {counter.size}")


Source = Philox | tuple[GpuArray, GpuArray]


def fill_random(
    device: CudaDevice, source: Source, shape: tuple[int, ...], dtype: Any, distribution: str, *bounds: int
) -> GpuArray:
    """A tensor of random numbers.

    Args:
        source: a generator, or its key and counter on the device.
        distribution: one of `DISTRIBUTIONS`.
        bounds: of "Integers" the least one, and what the largest is less than.
    """
    made = device.empty(shape, dtype)
    if not made.size:
        return made
    is_tensor = not isinstance(source, Philox)
    kernel = kernel_of(distribution, made.dtype.name, is_tensor=is_tensor)
    groups = -(-made.size // (2 if made.dtype.itemsize == 8 else 4))
    size = made.dtype.itemsize
    numbers = [as_signed(each, size) for each in (bounds[0], bounds[1] - bounds[0])] if bounds else []
    device.launch(kernel, -(-groups // _BLOCK), *generator_arguments(source), made, made.size, *numbers)
    return made


def generator_arguments(source: Source) -> list[Any]:
    """What kernels are launched with for `PhiloxNumbers`."""
    if isinstance(source, tuple):
        return list(source)
    return [as_signed(word, 8) for word in (source.key, source.counter, source.counter >> 64)]


def as_signed(value: int, size: int) -> int:
    """The same bits as a signed number of so many bytes."""
    bits = 8 * size
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
