"""Elementwise ops: the CPU's writers where there is one, and what floating numbers need beside these."""

from __future__ import annotations

import struct
from typing import cast

from toolkit.kernels.cpu.native import functions, operations
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import WriteNumber, gpu_operator
from toolkit.kernels.gpu.primitives.element_types import Number

# -- the CPU's -----------------------------------------------------------------------------------------------------

#: what needs other instructions on GPUs, or is there for more kinds
_OWN = frozenset({"Cast", "Select", "SelectV2", "FloorDiv", "FloorMod"})
_KINDS = {"float32": "f", "int32": "i", "bool": "b"}
#: the same instructions whether integers are signed or not
_UNSIGNED = frozenset({"Add", "AddV2", "AddN", "BiasAdd", "BiasAddV1", "Sub", "Mul", "Square", "Equal", "NotEqual"})

for _op, _row in operations.OPERATORS.items():
    if _op not in _OWN:
        _found = "".join(kind for name, kind in _KINDS.items() if name in _row.types)
        _found += "u" if _op in _UNSIGNED else ""
        gpu_operator(_op, kinds=_found, attributes=_row.attributes, weight=_row.weight)(_row.write)
gpu_operator("AccumulateNV2", kinds="fiu", weight=2)(operations.add_n)
gpu_operator("Div", kinds="f")(KernelBuilder.div)


@gpu_operator("Equal", kinds="b")
def equal(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.compare("eq", a, b)


@gpu_operator("NotEqual", kinds="b")
def not_equal(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.compare("ne", a, b)


@gpu_operator("Select", "SelectV2", kinds="fiub")
def select(k: KernelBuilder, condition: Value, a: Value, b: Value) -> Value:
    return k.select(condition, a, b)


# -- floating numbers ----------------------------------------------------------------------------------------------


def is_whole(k: KernelBuilder, x: Value) -> Value:
    """Whether a floating number has no fraction; infinities have none."""
    return k.compare("oeq", k.intrinsic("trunc", x), x)


@gpu_operator("TruncateDiv", kinds="f")
def truncate_div(k: KernelBuilder, a: Value, b: Value) -> Value:
    """Of floating numbers the quotient as it is."""
    return k.div(a, b)


@gpu_operator("FloorDiv", kinds="f", weight=2)
def floor_div(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.intrinsic("floor", k.div(a, b))


@gpu_operator("Mod", "TruncateMod", kinds="f", weight=200)
def truncate_mod(k: KernelBuilder, a: Value, b: Value) -> Value:
    """C's fmod, exact: long division of the mantissas, a bit at a time, with the sign of the dividend."""
    zero, infinity = k.number(0.0, a.type), k.number(float("inf"), a.type)
    x, y = k.intrinsic("fabs", a), k.intrinsic("fabs", b)
    rest = k.variable(x)
    is_number = k.both(k.compare("olt", x, infinity), k.compare("ogt", y, zero))
    with k.when(k.both(is_number, k.compare("oge", x, y))):
        step = k.variable(y)
        half = k.mul(x, k.number(0.5, a.type))
        with k.while_(lambda: k.compare("ole", step.get(), half)):
            step.set(k.add(step.get(), step.get()))
        with k.while_(lambda: k.both(k.compare("oge", step.get(), y), k.compare("oge", rest.get(), y))):
            now = step.get()
            fits = k.compare("oge", rest.get(), now)
            rest.set(k.select(fits, k.sub(rest.get(), now), rest.get()))
            step.set(k.mul(now, k.number(0.5, a.type)))
    value = k.intrinsic("copysign", rest.get(), a)
    wrong = k.either(k.compare("uno", a, b), k.inverse(is_number))
    return k.select(wrong, k.number(float("nan"), a.type), value)


@gpu_operator("FloorMod", kinds="f", weight=200)
def floor_mod(k: KernelBuilder, a: Value, b: Value) -> Value:
    """The remainder with the sign of the divisor."""
    zero = k.number(0.0, a.type)
    rest = truncate_mod(k, a, b)
    other = k.binary("xor", k.compare("olt", rest, zero), k.compare("olt", b, zero))
    return k.select(k.both(k.compare("une", rest, zero), other), k.add(rest, b), rest)


def _zero_where_first_is(write: WriteNumber) -> WriteNumber:
    def run(k: KernelBuilder, x: Value, y: Value) -> Value:
        zero = k.number(0.0, x.type)
        return k.select(k.compare("oeq", x, zero), zero, write(k, x, y))

    return run


gpu_operator("Xdivy", kinds="f", weight=3)(_zero_where_first_is(KernelBuilder.div))


@gpu_operator("Xlogy", kinds="f", weight=32)
@_zero_where_first_is
def xlogy(k: KernelBuilder, x: Value, y: Value) -> Value:
    return k.mul(x, functions.log(k, y))


@gpu_operator("Xlog1py", kinds="f", weight=52)
@_zero_where_first_is
def xlog1py(k: KernelBuilder, x: Value, y: Value) -> Value:
    return k.mul(x, functions.log1p(k, y))


@gpu_operator("SoftsignGrad", kinds="f", weight=4)
def softsign_grad(k: KernelBuilder, dy: Value, x: Value) -> Value:
    below = k.add(k.intrinsic("fabs", x), k.number(1.0, x.type))
    return k.div(dy, k.mul(below, below))


@gpu_operator("ClipByValue", kinds="fi", weight=6)
def clip_by_value(k: KernelBuilder, x: Value, low: Value, high: Value) -> Value:
    return cast("Value", operations.minimum(k, operations.maximum(k, x, low), high))


@gpu_operator("ApproximateEqual", kinds="f", attributes=("tolerance",), weight=3)
def approximate_equal(k: KernelBuilder, x: Value, y: Value, tolerance: float) -> Value:
    limit = k.convert(k.number(_single(tolerance), "float"), x.type)
    return k.compare("olt", k.intrinsic("fabs", k.sub(x, y)), limit)


def _single(value: float) -> float:
    """As an attribute of type float is seen."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


@gpu_operator("NextAfter", kinds="f", weight=10)
def next_after(k: KernelBuilder, x: Value, y: Value) -> Value:
    """The number beside x on the way to y."""
    bits = {"float": "i32", "double": "i64"}[x.type]
    zero, one = k.number(0.0, x.type), k.number(1, bits)
    raw = k.cast("bitcast", x, bits)
    away = k.binary("xor", k.compare("ogt", y, x), k.compare("slt", raw, k.number(0, bits)))
    moved = k.cast("bitcast", k.select(away, k.add(raw, one), k.sub(raw, one)), x.type)
    least = k.intrinsic("copysign", k.cast("bitcast", one, x.type), y)
    value = k.select(k.compare("oeq", x, zero), least, moved)
    value = k.select(k.compare("oeq", x, y), y, value)
    return k.select(k.compare("uno", x, y), k.add(x, y), value)


def identity(k: KernelBuilder, x: Number) -> Number:
    """What an op that changes nothing gives."""
    return x


gpu_operator("Identity", "Snapshot", "StopGradient", "PreventGradient", kinds="fiubc", weight=0)(identity)
gpu_operator("Round", "Floor", "Ceil", "Rint", kinds="iu", weight=0)(identity)
gpu_operator("Conj", kinds="fiu", weight=0)(identity)
