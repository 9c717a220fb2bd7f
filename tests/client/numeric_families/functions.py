# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Special functions, Fourier transforms, Einstein sums, diagonals by number, and pictures that are turned."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.numeric_families.rows import off_zero, positive, row, u, z
from toolkit import client as gm
from toolkit.client import ops

# -- special functions -------------------------------------------------------------------------------------

for _op in (
    "BesselI0",
    "BesselI1",
    "BesselI0e",
    "BesselI1e",
    "BesselJ0",
    "BesselJ1",
    "Dawsn",
    "FresnelCos",
    "FresnelSin",
):
    row(_op, ops.function(_op), off_zero(2, 3))
    row(_op, ops.function(_op), 4 * off_zero(3), about="far from 0")
for _op in ("BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Expint"):
    row(_op, ops.function(_op), positive(2, 3))
    row(_op, ops.function(_op), 3 + positive(2), about="far from 0")
_NO_SECOND_AT = "there the gradient is a number by itself"
for _op in ("BesselI1", "BesselJ1"):
    row(_op, ops.function(_op), np.zeros(2), about="at 0", first_only=_NO_SECOND_AT)
row("Spence", ops.spence, np.ones(2), about="at 1", first_only=_NO_SECOND_AT)
row("Betainc", lambda x: ops.betainc(_A + 1, _A + 2, x), np.array([[0.15, 0.4, 0.8], [0.3, 0.5, 0.7]]))
row("Betainc", lambda x: ops.betainc(_A + 1, _A + 2, x), np.array(0.4), about="a scalar")
_A = positive(2, 3)
row("Zeta", lambda q: ops.zeta(_A + 2, q), positive(1, 3))
row("Polygamma", lambda x: ops.polygamma(gm.constant(2.0, "float64"), x), positive(2, 3))
row("Polygamma", lambda x: ops.polygamma(np.array([[1.0], [3.0]]), x), positive(3), about="broadcast")

# -- Fourier transforms ------------------------------------------------------------------------------------

for _op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"):
    row(_op, ops.function(_op), z(2, 2, 3, 4))
for _n in (4, 5):
    _half = _n // 2 + 1
    row("RFFT", lambda x, n=_n: ops.rfft(x, [n], Tcomplex=gm.complex128), u(3, _n), about=f"{_n}")
    row("RFFT2D", lambda x, n=_n: ops.rfft2d(x, [3, n], Tcomplex=gm.complex128), u(2, 3, _n), about=f"{_n}")
    row("IRFFT", lambda x, n=_n: ops.irfft(x, [n], Treal=gm.float64), z(3, _half), about=f"{_n}")
    row("IRFFT2D", lambda x, n=_n: ops.irfft2d(x, [3, n], Treal=gm.float64), z(2, 3, _half), about=f"{_n}")

# -- Einstein sums -----------------------------------------------------------------------------------------

_SIZES = {"a": 2, "b": 3, "c": 2, "d": 2, "i": 3, "j": 2, "n": 2}
for _equation in (
    "ab,bc->ac", "nab,nbc->nac", "ab->ba", "aab->ab", "ii->i", "a->aa", "ab,ab->", "a,b->ab", "aib->b", "abc,cd->abd",
    "iij->j", "aab,bc->ac", "ii,ij->j", "a,->a",
):  # fmt: skip
    _terms = _equation.partition("->")[0].split(",")
    for _make in (u, z):
        row(
            "Einsum", lambda *xs, e=_equation: ops.einsum(list(xs), equation=e),
            *(_make(*(_SIZES[label] for label in term)) for term in _terms), about=f"{_equation} {_make is z}",
        )  # fmt: skip
for _equation, _shapes in {
    "...ab,bc->...ac": [(2, 2, 3), (3, 2)], "...ab,...b->...a": [(2, 1, 2, 3), (2, 3)],
    "i...,j...->ij...": [(2, 1), (3, 2)],
    "...i,...i->...": [(2, 1, 3), (2, 3)],
}.items():  # fmt: skip
    row("Einsum", lambda *xs, e=_equation: ops.einsum(list(xs), equation=e), *(u(*s) for s in _shapes), about=_equation)

# -- moving ------------------------------------------------------------------------------------------------

for _version in ("V2", "V3"):
    for _align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT") if _version == "V3" else ("",):
        _more: dict[str, Any] = {"align": _align} if _align else {}
        row(
            f"MatrixDiag{_version}",
            lambda d, p, v=_version, m=_more: ops.function("MatrixDiag" + v)(d, [-1, 1], 4, 4, p, **m),
            u(2, 3, 4), u(), about=_align,
        )  # fmt: skip
        row(
            f"MatrixDiagPart{_version}",
            lambda x, p, v=_version, m=_more: ops.function("MatrixDiagPart" + v)(x, [-1, 2], p, **m),
            u(2, 3, 4), u(), about=_align,
        )  # fmt: skip
        row(
            f"MatrixSetDiag{_version}",
            lambda x, d, v=_version, m=_more: ops.function("MatrixSetDiag" + v)(x, d, [-1, 1], **m),
            u(2, 4, 4), u(2, 3, 4), about=_align,
        )  # fmt: skip
row("Reverse", lambda x: ops.function("Reverse")(x, [True, False]), u(3, 4))
# by whole pixels: elsewhere the gradient is a picture that is turned back, which is not what the derivative is
_MOVED = np.float32([[1, 0, 1, 0, 1, -1, 0, 0]])
for _how in ("NEAREST", "BILINEAR"):
    row(
        "ImageProjectiveTransformV2",
        lambda x, h=_how: ops.image_projective_transform_v2(x, _MOVED, [4, 5], interpolation=h), u(2, 4, 5, 2),
        about=_how, single=True,
    )  # fmt: skip
    row(
        "ImageProjectiveTransformV3",
        lambda x, h=_how: ops.image_projective_transform_v3(x, _MOVED, [4, 5], 0.0, interpolation=h), u(2, 4, 5, 2),
        about=_how, single=True,
    )  # fmt: skip
