"""The numbers of matrices in kernels of factors: real ones, or complex ones in two registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, Value
from toolkit.kernels.gpu.operators import complex_numbers
from toolkit.kernels.gpu.primitives import element_types as types
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber, Number, number_type


class FactorNumbers:
    """What a kernel does with numbers of a type.

    Args:
        name: NumPy's: float32, float64, complex64 or complex128.

    Attributes:
        part: the kernel IR's type of a part, in which sizes are.
        is_complex: whether there are two.
    """

    def __init__(self, k: KernelBuilder, name: str):
        self._k, self._type = k, number_type(name)
        self.part = self._type.memory
        self.is_complex = self._type.parts > 1

    def buffer(self, name: str, *, written: bool = False) -> KernelBuffer:
        """An argument of such numbers."""
        return self._k.buffer(name, self.part, written=written)

    def load(self, buffer: KernelBuffer, place: Value) -> Number:
        """The number at a place, which is counted in numbers, i64."""
        return types.load(self._k, buffer, self._first(place), 0, self._type)

    def store(self, buffer: KernelBuffer, place: Value, number: Number) -> None:
        types.store(self._k, buffer, self._first(place), 0, number, self._type)

    def _first(self, place: Value) -> Value:
        return self._k.mul(place, self._k.number(2, place.type)) if self.is_complex else place

    def number(self, real: float) -> Number:
        return self.of(self._k.number(real, self.part))

    def of(self, real: Value) -> Number:
        """A real number as one of them."""
        return ComplexNumber(real, self._k.number(0.0, real.type)) if self.is_complex else real

    def real(self, number: Number) -> Value:
        """Its real part."""
        return number.real if isinstance(number, ComplexNumber) else number

    def sub(self, a: Number, b: Number) -> Number:
        return self._do(self._k.sub, complex_numbers.sub, a, b)

    def add(self, a: Number, b: Number) -> Number:
        return self._do(self._k.add, complex_numbers.add, a, b)

    def mul(self, a: Number, b: Number) -> Number:
        return self._do(self._k.mul, complex_numbers.mul, a, b)

    def div(self, a: Number, b: Number) -> Number:
        return self._do(self._k.div, complex_numbers.div, a, b)

    def _do(self, real: Callable[..., Value], pair: Callable[..., Any], *numbers: Number) -> Number:
        return pair(self._k, *numbers) if self.is_complex else real(*numbers)

    def conj(self, number: Number) -> Number:
        """The conjugate; of a real one itself."""
        return complex_numbers.conj(self._k, number) if isinstance(number, ComplexNumber) else number

    def shrunk(self, number: Number, divisor: Value) -> Number:
        """Divided by a real number."""
        if isinstance(number, ComplexNumber):
            return ComplexNumber(*(self._k.div(part, divisor) for part in number))
        return self._k.div(number, divisor)

    def size(self, number: Number) -> Value:
        """How large it is."""
        if isinstance(number, ComplexNumber):
            return complex_numbers.size(self._k, number)
        return self._k.intrinsic("fabs", number)

    def is_zero(self, number: Number) -> Value:
        k, zero = self._k, self._k.number(0.0, self.part)
        if isinstance(number, ComplexNumber):
            return k.both(k.compare("oeq", number.real, zero), k.compare("oeq", number.imag, zero))
        return k.compare("oeq", number, zero)

    def choose(self, condition: Value, a: Number, b: Number) -> Number:
        """`a` where it holds, else `b`."""
        if isinstance(a, ComplexNumber) and isinstance(b, ComplexNumber):
            return complex_numbers.choose(self._k, condition, a, b)
        return self._k.select(condition, types.real(a), types.real(b))

    def variable(self, number: Number) -> FactorVariable:
        """A number that changes."""
        return FactorVariable(self._k, number)


class FactorVariable:
    """A number that changes."""

    def __init__(self, k: KernelBuilder, number: Number):
        parts = number if isinstance(number, ComplexNumber) else [number]
        self._parts = [k.variable(part) for part in parts]

    def get(self) -> Number:
        found = [part.get() for part in self._parts]
        return ComplexNumber(*found) if len(found) > 1 else found[0]

    def set(self, number: Number) -> None:
        for part, value in zip(self._parts, number if isinstance(number, ComplexNumber) else [number], strict=True):
            part.set(value)
