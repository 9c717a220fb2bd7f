"""Numbers as other types, as TensorFlow's Cast gives them.

Of floating numbers that an integer type cannot hold, the result is what the CPU's kernel gives (its module
`cast`): the conversion goes through 32 or 64 bits, whose lowest value stands for what does not fit, and then wraps.
"""

from __future__ import annotations

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.primitives.element_types import NUMBER_TYPES, ComplexNumber, Number, NumberType, number_type

#: explicit bits of mantissas, for `Truncate`
_MANTISSA = {"double": 52, "float": 23, "half": 10, "bfloat": 7}
_BITS = {"double": "i64", "float": "i32"}


def is_castable(source: str, target: str) -> bool:
    """Whether a kernel can do it, by NumPy's names of the types."""
    return source in NUMBER_TYPES and target in NUMBER_TYPES


def cast_number(k: KernelBuilder, x: Number, source: NumberType, target: NumberType, truncate: bool = False) -> Number:
    """A number in registers as another type, in registers."""
    if source.name == target.name:
        return x
    if target.kind == "c":
        part = number_type({"float": "float32", "double": "float64"}[target.register])
        if isinstance(x, ComplexNumber):
            return ComplexNumber(*(k.convert(each, part.register) for each in x))
        return ComplexNumber(_real(k, x, source, part, truncate), k.number(0.0, part.register))
    if isinstance(x, ComplexNumber):
        if target.kind == "b":
            zero = k.number(0.0, x.real.type)
            return k.either(*(k.compare("une", each, zero) for each in x))
        source = number_type({"float": "float32", "double": "float64"}[source.register])
        return _real(k, x.real, source, target, truncate)
    return _real(k, x, source, target, truncate)


def _real(k: KernelBuilder, x: Value, source: NumberType, target: NumberType, truncate: bool) -> Value:
    if target.kind == "b":
        return x if source.kind == "b" else k.convert(x, "i1")
    if source.kind == "f" and target.kind in "iu":
        return _to_integer(k, x, target)
    if target.kind in "iu":
        if source.register == target.register:
            return x
        return k.convert(x, target.register, unsigned=source.kind in "ub")
    # to a floating type; 16-bit ones are rounded where the result ends
    if source.kind == "f":
        return _truncated(k, x, source, target) if truncate else _narrowed(k, x, target)
    unsigned = source.kind in "ub"
    return k.convert(x, target.register, unsigned=unsigned)


def _narrowed(k: KernelBuilder, x: Value, target: NumberType) -> Value:
    """Of a double directly to the 16 bits, in one rounding."""
    if x.type == "double" and target.memory in ("half", "bfloat"):
        return k.convert(k.convert(x, target.memory), target.register)
    return k.convert(x, target.register)


def _truncated(k: KernelBuilder, x: Value, source: NumberType, target: NumberType) -> Value:
    """Rounded toward zero: the bits of the mantissa that the target lacks are cleared first."""
    drop = _MANTISSA[source.memory] - _MANTISSA[target.memory]
    if drop > 0:
        shift = drop + _MANTISSA[source.register] - _MANTISSA[source.memory]
        bits = _BITS[x.type]
        x = k.cast("bitcast", k.both(k.cast("bitcast", x, bits), k.number(-(1 << shift), bits)), x.type)
    return _narrowed(k, x, target)


def _to_integer(k: KernelBuilder, x: Value, target: NumberType) -> Value:
    if target.name == "uint64":
        high = k.number(2.0**63, x.type)
        is_high = k.compare("oge", x, high)
        low = _through(k, k.select(is_high, k.sub(x, high), x), "i64")
        return k.select(is_high, k.binary("xor", low, k.number(-(1 << 63), "i64")), low)
    through = "i64" if target.size == 8 or target.name == "uint32" else "i32"
    return k.convert(_through(k, x, through), target.register)


def _through(k: KernelBuilder, x: Value, type: str) -> Value:
    """Toward zero; the lowest value of what does not fit."""
    bits = {"i32": 32, "i64": 64}[type]
    limit = 2.0 ** (bits - 1)
    fits = k.both(k.compare("oge", x, k.number(-limit, x.type)), k.compare("olt", x, k.number(limit, x.type)))
    inside = k.select(fits, x, k.number(0.0, x.type))
    return k.select(fits, k.convert(inside, type), k.number(-(1 << (bits - 1)), type))
