"""Numbers that compiled code is given when it runs instead of having them in its text.

A program meets tensors of many sizes. Code that has sizes, steps and factors in its text is compiled for each of them;
code that is given them is compiled once for all. They stand behind the operands of a function, int64s in the places of
addresses.
"""

from __future__ import annotations

import struct

from toolkit.kernels.cpu.native.code import BITS, LANES, Lanes, literal


class Numbers:
    """What a function is given behind its operands, and the lines that read it.

    Args:
        first: how many operands are before.

    Attributes:
        given: the numbers, in order.
    """

    def __init__(self, first: int):
        self.given: list[int] = []
        self._first = first
        self._lines: list[str] = []

    def size(self, number: int) -> str:
        """The register of a size or a step, an i64. Equal numbers have registers of their own: the text must not depend
        on which happen to be equal."""
        return self._read(number)

    def scalar(self, value: float, type: str) -> str:
        """The register of one number of a type of LLVM's."""
        whole = self._read(bits_of(value, type))
        if type == "i64":
            return whole
        name, bits = f"{whole}_{type}", BITS.get(type, type)
        if bits != "i64":
            narrow = name if bits == type else f"{name}_bits"
            self._lines.append(f"  {narrow} = trunc i64 {whole} to {bits}")
            whole = narrow
        if bits != type:
            self._lines.append(f"  {name} = bitcast {bits} {whole} to {type}")
        return name

    def lanes(self, value: float, type: str) -> Lanes:
        """The same number in every lane."""
        one = self.scalar(value, type)
        vector = f"<{LANES} x {type}>"
        self._lines += [
            f"  {one}_first = insertelement {vector} poison, {type} {one}, i64 0",
            f"  {one}_all = shufflevector {vector} {one}_first, {vector} poison, <{LANES} x i32> zeroinitializer",
        ]
        return Lanes(f"{one}_all", type)

    def lines(self) -> list[str]:
        """What reads the numbers, for the beginning of the function that takes %operands."""
        return self._lines

    def _read(self, number: int) -> str:
        name = f"%given{len(self.given)}"
        self._lines += [f"  {name}_at = getelementptr i64, ptr %operands, i64 {self._first + len(self.given)}",
                        f"  {name} = load i64, ptr {name}_at, align 8"]  # fmt: skip
        self.given.append(number)
        return name


class InText(Numbers):
    """Numbers that are in the text, for code that is made for one size: nothing is given."""

    def __init__(self) -> None:
        super().__init__(0)

    def size(self, number: int) -> str:
        return str(number)

    def scalar(self, value: float, type: str) -> str:
        return literal(value, type)

    def lanes(self, value: float, type: str) -> Lanes:
        return Lanes(f"splat ({type} {literal(value, type)})", type)


def bits_of(value: float, type: str) -> int:
    """The bits of a number of a type of LLVM's, as the int64 that it is given as."""
    if type == "float":
        return struct.unpack("<i", struct.pack("<f", value))[0]
    if type == "double":
        return struct.unpack("<q", struct.pack("<d", value))[0]
    return int(value)
