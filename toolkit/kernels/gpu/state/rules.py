"""Rules that NumPy computes, written as kernels: optimizers, `+=` and what else changes variables.

There are no formulas here. A rule is a function that changes its first arguments; it is run on stand-ins that write
what is done to them as instructions, one number per thread. So the arithmetic is that of the CPU's definition, in its
order: sums, products, quotients and roots are the same bits. float16 and bfloat16 are rounded behind every operation,
as NumPy rounds them.

Complex numbers are pairs of registers, with the operations that rules use of them.

A rule may ask whether a number that is the same for all threads is true (`if l1 > 0`): both ways are written.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from toolkit.errors import InternalError
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cpu.native.operations import OPERATORS
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.gpu.operators import complex_numbers
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber

Rule = Callable[..., None]
Write = Callable[..., Any]
#: NumPy's types by those of the kernel IR
NUMPY: dict[str, Any] = {
    "half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32),
    "double": np.dtype(np.float64), "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64), "complex64": np.dtype(np.complex64), "complex128": np.dtype(np.complex128),
}  # fmt: skip
#: those of complex numbers, which are two parts each
COMPLEX_TYPES = {"complex64": "float", "complex128": "double"}
_NARROW = frozenset({"half", "bfloat"})
_FLOATING = frozenset({"half", "bfloat", "float", "double"})


def _power(k: KernelBuilder, x: Lanes, y: Lanes) -> Lanes:
    """x to the y for x >= 0, as exp(y log x) in double: of floats that is right but for the last rounding.

    Roots are taken as such: 0.5 is what `Ftrl` has by default.
    """
    wide_x, wide_y = k.convert(x, "double"), k.convert(y, "double")
    power = functions.exp(k, k.mul(wide_y, functions.log(k, wide_x)))
    zero, one = k.number(0.0, "double"), k.number(1.0, "double")
    power = k.select(k.compare("oeq", wide_y, zero), one, power)
    root = k.intrinsic("sqrt", wide_x)
    power = k.select(k.compare("oeq", wide_y, k.number(0.5, "double")), root, power)
    return k.convert(power, x.type)


def _operator(name: str) -> Write:
    return OPERATORS[name].write


def _compare(predicate: str, signed: str) -> Write:
    def write(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
        return k.compare(predicate if a.type in _FLOATING else signed, a, b)

    return write


_WRITERS: dict[Any, Write] = {
    np.add: _operator("Add"), np.subtract: _operator("Sub"), np.multiply: _operator("Mul"),
    np.true_divide: _operator("RealDiv"), np.negative: _operator("Neg"), np.square: _operator("Square"),
    np.sqrt: _operator("Sqrt"), np.absolute: _operator("Abs"), np.maximum: _operator("Maximum"),
    np.minimum: _operator("Minimum"), np.sign: _operator("Sign"), np.exp: functions.exp, np.power: _power,
    np.greater: _compare("ogt", "sgt"), np.bitwise_xor: lambda k, a, b: k.binary("xor", a, b),
}  # fmt: skip


#: of complex numbers
_COMPLEX_WRITERS: dict[Any, Write] = {
    np.add: complex_numbers.add, np.subtract: complex_numbers.sub, np.multiply: complex_numbers.mul,
    np.true_divide: complex_numbers.div, np.negative: complex_numbers.neg, np.square: complex_numbers.square,
    np.sqrt: complex_numbers.sqrt,
}  # fmt: skip


class Fork(Exception):  # noqa: N818
    """The rule asks about a number for which nothing was decided.

    Attributes:
        condition: that it is true.
    """

    def __init__(self, condition: Any):
        super().__init__()
        self.condition = condition


class Traced(NDArrayOperatorsMixin):
    """A number of a thread in place of an array, or of a scalar.

    Attributes:
        lanes: its value now.
        dtype: of the array.
    """

    def __init__(self, trace: Trace, lanes: Any):
        self._trace = trace
        self.lanes = lanes
        self.dtype = trace.dtype_of(lanes)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        write = self._trace.writers.get(function)
        if method != "__call__" or options or write is None:
            raise InternalError(f"a rule for GPUs uses {getattr(function, '__name__', function)}, which is not written")
        lanes = self._trace.written(write, inputs)
        if out is None:
            return Traced(self._trace, lanes)
        out[0].lanes = lanes
        return out[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        assert index is Ellipsis
        self.lanes = self._trace.lanes(value)

    def clip(self, low: Any, high: Any, out: Any = None) -> Traced:
        """`np.clip`."""
        own: Any = self
        return np.minimum(np.maximum(own, low), high)

    def __bool__(self) -> bool:
        return self._trace.decided(self.lanes)


class Trace:
    """One run of a rule.

    Args:
        decisions: what was decided of the conditions that the rule asks for, in their order.
    """

    def __init__(self, k: KernelBuilder, type: str, decisions: Sequence[bool] = ()):
        self._k, self._type = k, type
        self._decisions = list(decisions)
        self.writers = _COMPLEX_WRITERS if type in COMPLEX_TYPES else _WRITERS

    def dtype_of(self, lanes: Any) -> Any:
        """NumPy's type of what is in registers; None where it has none."""
        return NUMPY[self._type] if isinstance(lanes, ComplexNumber) else NUMPY.get(lanes.type)

    def lanes(self, value: Any) -> Any:
        if isinstance(value, Traced):
            return value.lanes
        if (part := COMPLEX_TYPES.get(self._type)) is not None:
            number = complex(value)
            return ComplexNumber(self._k.number(number.real, part), self._k.number(number.imag, part))
        return self._k.number(float(value), self._type)

    def written(self, write: Write, inputs: Sequence[Any]) -> Any:
        """What an operation gives, rounded to the type of the arrays."""
        k, given = self._k, [self.lanes(each) for each in inputs]
        if self._type not in _NARROW:
            return write(k, *given)
        made = write(k, *(k.convert(each, "float") for each in given))
        return k.convert(made, self._type) if made.type == "float" else made

    def decided(self, condition: Lanes) -> bool:
        """Whether a condition is taken to hold."""
        if not self._decisions:
            raise Fork(condition)
        return self._decisions.pop(0)


def follow(k: KernelBuilder, type: str, rule: Rule, arguments: Sequence[Any], decisions: Sequence[bool]) -> list[Any]:
    """Run a rule; returns the arguments' values afterwards.

    Raises:
        Fork: it asks for a decision more.
    """
    trace = Trace(k, type, decisions)
    traced = [Traced(trace, lanes) for lanes in arguments]
    rule(*traced)
    return [each.lanes for each in traced]


def branching(
    k: KernelBuilder, type: str, rule: Rule, probes: Sequence[Any], body: Callable[[Sequence[bool]], None]
) -> None:
    """Write a body once for each way that a rule can take.

    Args:
        probes: arguments of the rule that decide like the real ones: the numbers, and anything for the arrays.
        body: writes the rule's code for some decisions.
    """

    def write(decisions: list[bool]) -> None:
        try:
            follow(k, type, rule, probes, decisions)
        except Fork as fork:
            with k.when(fork.condition):
                write([*decisions, True])
            with k.otherwise():
                write([*decisions, False])
        else:
            body(decisions)

    write([])
