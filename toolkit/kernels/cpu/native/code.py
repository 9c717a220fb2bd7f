"""Straight-line LLVM IR over lanes: `LANES` consecutive elements at a time, in values of one type each.

Comparisons and logical values are of type "i1". Nothing here reorders or contracts arithmetic: sums, products and
quotients are the same bits as NumPy's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

LANES = 16
#: numpy's names of types and LLVM's, in registers and in memory
TYPES = {"float32": "float", "float64": "double", "int32": "i32", "int64": "i64", "bool": "i1"}
MEMORY = {"float": "float", "double": "double", "i32": "i32", "i64": "i64", "i1": "i8", "bfloat": "bfloat",
          "i16": "i16"}  # fmt: skip
SIZES = {"float": 4, "double": 8, "i32": 4, "i64": 8, "i1": 1, "i8": 1, "bfloat": 2, "i16": 2}
#: integers as wide as a floating type
BITS = {"float": "i32", "double": "i64"}


class Lanes:
    """A value: one number in each lane.

    Attributes:
        name: of the register, or the text of a constant.
        type: "float", "double", "i32", "i64" or "i1".
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: str):
        self.name = name
        self.type = type

    @property
    def vector(self) -> str:
        return f"<{LANES} x {self.type}>"


class Code:
    """Instructions of one basic block, the intrinsics that they call, and functions.

    Args:
        calls: long functions are called; else they are written out in every place.
        prefix: of the names of registers, where several pieces of code end up in one function.

    Attributes:
        defined: text of the functions that are called, by name.
    """

    def __init__(self, *, calls: bool = False, prefix: str = "t") -> None:
        self.lines: list[str] = []
        self.declared: set[str] = set()
        self.defined: dict[str, str] = {}
        self.calls = calls
        self._counter = 0
        self._prefix = prefix

    def fresh(self) -> str:
        self._counter += 1
        return f"%{self._prefix}{self._counter}"

    def emit(self, type: str, text: str) -> Lanes:
        """`%t = text`, a vector of `type`."""
        value = Lanes(self.fresh(), type)
        self.lines.append(f"{value.name} = {text}")
        return value

    def number(self, value: float, type: str) -> Lanes:
        """The same number in every lane."""
        return Lanes(f"splat ({type} {literal(value, type)})", type)

    def unary(self, instruction: str, a: Lanes) -> Lanes:
        return self.emit(a.type, f"{instruction} {a.vector} {a.name}")

    def binary(self, instruction: str, a: Lanes, b: Lanes) -> Lanes:
        return self.emit(a.type, f"{instruction} {a.vector} {a.name}, {b.name}")

    def add(self, a: Lanes, b: Lanes) -> Lanes:
        return self.binary("fadd" if a.type in BITS else "add", a, b)

    def sub(self, a: Lanes, b: Lanes) -> Lanes:
        return self.binary("fsub" if a.type in BITS else "sub", a, b)

    def mul(self, a: Lanes, b: Lanes) -> Lanes:
        return self.binary("fmul" if a.type in BITS else "mul", a, b)

    def div(self, a: Lanes, b: Lanes) -> Lanes:
        return self.binary("fdiv", a, b)

    def neg(self, a: Lanes) -> Lanes:
        if a.type in BITS:
            return self.unary("fneg", a)
        return self.sub(self.number(0, a.type), a)

    def compare(self, predicate: str, a: Lanes, b: Lanes) -> Lanes:
        """Predicates are those of fcmp (olt, uno, ...) or icmp (slt, eq, ...)."""
        kind = "fcmp" if a.type in BITS else "icmp"
        return self.emit("i1", f"{kind} {predicate} {a.vector} {a.name}, {b.name}")

    def select(self, condition: Lanes, a: Lanes, b: Lanes) -> Lanes:
        return self.emit(
            a.type, f"select {condition.vector} {condition.name}, {a.vector} {a.name}, {b.vector} {b.name}"
        )

    def intrinsic(self, name: str, *args: Lanes) -> Lanes:
        """An intrinsic whose arguments and result have one type."""
        first = args[0]
        full = f"llvm.{name}.v{LANES}{_SUFFIX[first.type]}"
        self.declared.add(f"declare {first.vector} @{full}({', '.join(a.vector for a in args)})")
        return self.emit(first.type, f"call {first.vector} @{full}({', '.join(f'{a.vector} {a.name}' for a in args)})")

    def fma(self, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        """a * b + c, in one rounding where the processor can: only inside functions that are approximations anyway."""
        return self.intrinsic("fmuladd", a, b, c)

    def cast(self, instruction: str, a: Lanes, type: str) -> Lanes:
        return self.emit(type, f"{instruction} {a.vector} {a.name} to <{LANES} x {type}>")

    def widen(self, half: Lanes) -> Lanes:
        """Floats of the bits of bfloat16 numbers."""
        whole = self.binary("shl", self.cast("zext", half, "i32"), self.number(16, "i32"))
        return self.cast("bitcast", whole, "float")

    def call(self, write: Callable[[Code, Lanes], Lanes], x: Lanes) -> Lanes:
        """A function of one argument, by a call."""
        name = f"{write.__name__}_{x.type}"
        if name not in self.defined:
            inner = Code()
            result = write(inner, Lanes("%x", x.type))
            lines = [f"define internal {x.vector} @{name}({x.vector} %x) #0 {{", *inner.lines,
                     f"ret {result.vector} {result.name}", "}"]  # fmt: skip
            self.defined[name] = "\n".join(lines)
            self.declared |= inner.declared
        return self.emit(x.type, f"call {x.vector} @{name}({x.vector} {x.name})")


_SUFFIX = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64", "i1": "i1"}


def literal(value: float, type: str) -> str:
    """A constant as LLVM writes it; floats as the bits of the double that is the same number."""
    if type in BITS:
        number = struct.unpack("<f", struct.pack("<f", value))[0] if type == "float" and _is_finite(value) else value
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if type == "i1":
        return "true" if value else "false"
    return str(int(value))


def _is_finite(value: float) -> bool:
    return abs(value) < 3.4028235677973366e38  # beyond, packing as a float overflows
