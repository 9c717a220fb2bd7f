"""Exponential, logarithm and square root of matrices."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, wide
from toolkit.kernels.cpu.linalg.decompositions import check_square
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array

#: coefficients of the [13/13] Pade approximant of exp (Higham, SIAM J. Matrix Anal. Appl. 26, 2005)
_PADE13 = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
#: up to this 1-norm the approximant is exact in float64
_THETA13 = 5.371920351148152


def _norms(x: Array) -> Array:
    return np.abs(x).sum(axis=-2).max(axis=-1)


@simple("MatrixExponential")
def matrix_exponential(x: Array) -> Array:
    """Scaling and squaring."""
    check_square(x)
    if x.size == 0:
        return x
    values = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    norms = np.maximum(_norms(values), 1e-300)
    squarings = np.maximum(0, np.ceil(np.log2(norms / _THETA13))).astype(np.int64)
    a = values / np.exp2(squarings)[..., None, None]
    eye = np.eye(x.shape[-1], dtype=a.dtype)
    b = _PADE13
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a2 @ a4
    u = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
    v = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    out = np.linalg.solve(v - u, v + u)
    for step in range(int(squarings.max(initial=0))):
        out = np.where((squarings > step)[..., None, None], out @ out, out)
    return out.astype(x.dtype)


def _square_root(a: Array) -> Array:
    """The principal root by the product form of the Denman-Beavers iteration, with determinantal scaling (Cheng,
    Higham, Kenney, Laub, SIAM J. Matrix Anal. Appl. 22, 2001)."""
    size = a.shape[-1]
    eye = np.eye(size, dtype=a.dtype)
    m, root = a.copy(), a.copy()
    for step in range(60):
        inverse = np.linalg.inv(m)
        if step < 6:
            scale = np.abs(np.linalg.det(m)) ** (-0.5 / size)
            scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1)[..., None, None]
        else:
            scale = np.ones((1, 1))
        root = 0.5 * scale * root @ (eye + inverse / scale**2)
        m = 0.5 * (eye + 0.5 * (scale**2 * m + inverse / scale**2))
        if (_norms(m - eye) < 1e-14 * size).all():
            break
    return root


def _checked_root(a: Array) -> Array:
    try:
        root = _square_root(a)
    except np.linalg.LinAlgError:
        root = _root_of_singular(a)
    if not np.isfinite(root).all():
        raise InvalidArgumentError("the matrix has no principal square root: it has eigenvalues that are not positive")
    return root


def _root_of_singular(a: Array) -> Array:
    """The iteration inverts its matrix; a singular one is taken apart into eigenvectors instead."""
    values, vectors = np.linalg.eig(a)
    return (vectors * np.sqrt(values)[..., None, :]) @ np.linalg.inv(vectors)


@simple("MatrixSquareRoot")
def matrix_square_root(x: Array) -> Array:
    check_square(x)
    if x.size == 0:
        return x
    root = _checked_root(wide(x).astype(np.complex128))
    return (root if x.dtype.kind == "c" else root.real).astype(x.dtype)


@simple("MatrixLogarithm")
def matrix_logarithm(x: Array) -> Array:
    """Inverse scaling and squaring: roots until the matrix is near the identity, then the integral of
    (1 + t X)^-1 X by Gauss-Legendre quadrature, which is the Pade approximant of log(1 + X)."""
    check_square(x)
    if x.size == 0:
        return x
    a = x.astype(np.complex128)
    eye = np.eye(x.shape[-1], dtype=a.dtype)
    roots = 0
    while (_norms(a - eye) > 0.25).any() and roots < 40:
        a = _checked_root(a)
        roots += 1
    nodes, weights = np.polynomial.legendre.leggauss(9)
    out = np.zeros_like(a)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        out = out + weight * np.linalg.solve(eye + node * (a - eye), a - eye)
    return (out * 2.0**roots).astype(x.dtype)
