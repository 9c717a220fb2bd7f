"""Products of small matrices by the threads of a warp together: which thread has which element, and what comes out.

`mma.sync.aligned.m16n8k8` of TF32 and `m16n8k16` of bfloat16 and half, with sums in float (PTX ISA 8.x, "Matrix
multiply-accumulate operation using mma instruction"): D (16 x 8) = A (16 x depth) B (depth x 8) + C. A thread has four
registers of A, two of B, and four numbers each of C and D.

NVIDIA does not say in which order a tensor core adds, nor how it rounds; what was measured (Fasi, Higham, Mikaitis,
Pranesh 2021) are exact products, sums that are cut off instead of rounded, and a few bits beyond float's. `multiply`
adds exactly and cuts off once, towards zero. Error bounds should allow for `MMA_ROUNDING` of the sum of the absolute
values of C and all products, for each addend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import ml_dtypes
import numpy as np

from toolkit.kernels.cuda.simt.ir import WARP
from toolkit.kernels.types import Array

ROWS, COLUMNS = 16, 8
#: registers of a thread for A, for B, and for the sums
LEFT, RIGHT, SUMS = 4, 2, 4
#: what cutting off an addend at float's last place loses at most, as a part of the largest number there
MMA_ROUNDING = 2.0**-23
#: what `cvt.rna.tf32` loses: TF32 keeps 10 bits of a fraction, and the 11th is rounded
TF32_ROUNDING = 2.0**-11
#: what `ex2.approx` is off by at most, relatively (PTX ISA, ex2)
EXP2_ERROR = 2.0**-22.5
_CUT = np.uint32(0xFFFFE000)  # the bits of a float that TF32 keeps
_HALF = np.uint32(0x1000)  # half of TF32's last place


@dataclass(frozen=True, slots=True)
class MatrixKind:
    """What factors are made of.

    Attributes:
        depth: of one product.
        packed: elements in a register, the first one in the low bits.
        register: the type of registers; TF32 numbers are floats, of which the last 13 bits are not looked at.
        intrinsic: LLVM's.
    """

    depth: int
    packed: int
    register: str
    intrinsic: str


#: by the type of an element
MATRIX_KINDS = {
    "tf32": MatrixKind(8, 1, "float", "llvm.nvvm.mma.m16n8k8.row.col.tf32"),
    "bfloat": MatrixKind(16, 2, "i32", "llvm.nvvm.mma.m16n8k16.row.col.bf16"),
    "half": MatrixKind(16, 2, "i32", "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"),
}


def left_place(kind: MatrixKind, register: int, element: int, lane: int) -> tuple[int, int]:
    """Row and depth of an element of A in a register of a lane."""
    return lane // 4 + 8 * (register & 1), lane % 4 * kind.packed + element + kind.depth // 2 * (register >> 1)


def right_place(kind: MatrixKind, register: int, element: int, lane: int) -> tuple[int, int]:
    """Depth and column of an element of B in a register of a lane."""
    return lane % 4 * kind.packed + element + kind.depth // 2 * register, lane // 4


def sum_place(register: int, lane: int) -> tuple[int, int]:
    """Row and column of an element of C and D in a register of a lane."""
    return lane // 4 + 8 * (register >> 1), 2 * (lane % 4) + (register & 1)


def round_tf32(x: Array) -> Array:
    """float32 numbers as TF32, to the nearest, ties away from zero (`cvt.rna.tf32.f32`)."""
    rounded = ((x.view(np.uint32) + _HALF) & _CUT).view(np.float32)
    return cast("Array", np.where(np.isfinite(x), rounded, x))


def exp2_approximate(x: Array) -> Array:
    """2 ** x (`ex2.approx.ftz.f32`); results below float's normal numbers are 0."""
    found = np.exp2(x)
    return cast("Array", np.where(found < np.finfo(np.float32).tiny, np.float32(0), found))


def multiply(name: str, registers: Sequence[Array]) -> list[Array]:
    """A B + C for some warps.

    Args:
        name: of a kind.
        registers: of A, B and C, each with the threads of all warps one behind the other.
    """
    kind = MATRIX_KINDS[name]
    a, b, c = registers[:LEFT], registers[LEFT : LEFT + RIGHT], registers[LEFT + RIGHT :]
    left = _matrix(name, kind, a, (ROWS, kind.depth), left_place)
    right = _matrix(name, kind, b, (kind.depth, COLUMNS), right_place)
    product = np.matmul(left, right)
    lanes = range(WARP)
    found: list[Array] = []
    for register in range(SUMS):
        rows, columns = zip(*(sum_place(register, lane) for lane in lanes), strict=True)
        exact = product[:, list(rows), list(columns)] + c[register].reshape(-1, WARP).astype(np.float64)
        found.append(_towards_zero(exact).reshape(-1))
    return found


def _matrix(
    name: str, kind: MatrixKind, registers: Sequence[Array], shape: tuple[int, int],
    place: Callable[[MatrixKind, int, int, int], tuple[int, int]],
) -> Array:  # fmt: skip
    """The matrices of all warps, from what their threads have in registers."""
    warps = registers[0].size // WARP
    made = np.empty((warps, *shape))
    for number, register in enumerate(registers):
        if name == "tf32":
            elements = (np.ascontiguousarray(register).view(np.uint32) & _CUT).view(np.float32)
        else:
            dtype = np.float16 if name == "half" else ml_dtypes.bfloat16
            elements = np.ascontiguousarray(register).view(dtype)
        each = elements.astype(np.float64).reshape(warps, WARP, kind.packed)
        for element in range(kind.packed):
            first, second = zip(*(place(kind, number, element, lane) for lane in range(WARP)), strict=True)
            made[:, list(first), list(second)] = each[:, :, element]
    return made


def _towards_zero(x: Array) -> Array:
    """Doubles as floats, cut off."""
    near = x.astype(np.float32)
    beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    return cast("Array", np.where(beyond & np.isfinite(x), np.nextafter(near, np.float32(0)), near))
