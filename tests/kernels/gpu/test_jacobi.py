"""Eigenvalues and singular values on a GPU: values beside the CPU's, vectors by what they have to do."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, run_ours
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.linalg import jacobi_kernels

_RNG = np.random.default_rng(29)


def _roundings(x: np.ndarray) -> float:
    """How far a decomposition of matrices may be from one of exactly these.

    It is exact for a matrix that is off by as many units of the norm as rotations add to a number, each of which
    rounds some four times (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2002, lemma 19.9): n - 1 of
    a sweep, a dozen sweeps, in random directions, so the root of that.
    """
    rotations = 12 * min(x.shape[-2:])
    norm = float(np.linalg.norm(x.astype(np.float64), axis=(-2, -1)).max())
    return 4 * rotations**0.5 * float(np.finfo(x.dtype).eps) * (norm + 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 1, 1), (2, 2), (2, 2, 5, 5), (3, 8, 8), (1, 17, 17)])
def test_eigenvalues_and_vectors(shape: tuple[int, ...], dtype: str) -> None:
    x = _RNG.normal(size=shape).astype(dtype)  # of which only the lower triangle counts
    whole = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)
    near = _roundings(whole)
    values, vectors = run_ours(Case("SelfAdjointEigV2", [x]), "GPU")
    np.testing.assert_allclose(values, np.linalg.eigvalsh(whole.astype(np.float64)), rtol=0, atol=near)
    assert (np.diff(values, axis=-1) >= 0).all()
    np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], rtol=0, atol=near)
    identity = np.broadcast_to(np.eye(shape[-1]), shape)
    np.testing.assert_allclose(np.swapaxes(vectors, -1, -2) @ vectors, identity, rtol=0, atol=near)
    alone, nothing = run_ours(Case("SelfAdjointEigV2", [x], {"compute_v": False}), "GPU")
    np.testing.assert_array_equal(alone, values)
    assert nothing.shape == () and nothing.dtype == x.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(2, 1, 1), (5, 3), (2, 3, 5), (2, 2, 4, 4), (20, 6), (1, 7)])
def test_singular_values_and_vectors(shape: tuple[int, ...], full: bool, dtype: str) -> None:
    _check_svd(_RNG.normal(size=shape).astype(dtype), full)


def _check_svd(x: np.ndarray, full: bool) -> None:
    near = _roundings(x)
    least = min(x.shape[-2:])
    s, u, v = run_ours(Case("Svd", [x], {"full_matrices": full}), "GPU")
    np.testing.assert_allclose(s, np.linalg.svd(x.astype(np.float64), compute_uv=False), rtol=0, atol=near)
    again = (u[..., :least] * s[..., None, :]) @ np.swapaxes(v[..., :least], -1, -2)
    np.testing.assert_allclose(again, x, rtol=0, atol=near)
    for each, rows in ((u, x.shape[-2]), (v, x.shape[-1])):
        assert each.shape == (*x.shape[:-2], rows, rows if full else least)
        product = np.swapaxes(each, -1, -2) @ each
        np.testing.assert_allclose(product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=near)


@pytest.mark.parametrize("full", [False, True])
def test_matrices_without_full_rank(full: bool) -> None:
    """What a value of 0 has as its vector is any that is orthogonal to the others."""
    x = np.zeros((4, 5, 3))
    x[1] = np.outer(np.arange(5), [1, 2, 3])
    x[2, 2, 1] = 7
    x[3] = np.eye(5, 3)
    _check_svd(x, full)
    _check_svd(np.swapaxes(x, -1, -2).copy(), full)


def test_large_and_small_numbers() -> None:
    """Squares of which would be infinite, or nothing; opposite eigenvalues; multiple ones."""
    x = np.float32([[[3e30, 1e30], [1e30, -2e30]], [[1e-30, 2e-30], [2e-30, 0]], [[0, 1], [1, 0]], [[5, 0], [0, 5]]])
    values, _ = run_ours(Case("SelfAdjointEigV2", [x]), "GPU")
    wanted = np.linalg.eigvalsh(x.astype(np.float64))
    size = np.abs(wanted).max(-1, keepdims=True)
    near = _roundings(np.eye(2, dtype=np.float32))  # of their sizes
    np.testing.assert_allclose(values / size, wanted / size, atol=near)
    s, *_ = run_ours(Case("Svd", [x], {"compute_uv": False}), "GPU")
    np.testing.assert_allclose(s / size, np.sort(np.abs(wanted))[:, ::-1] / size, atol=near)


def test_what_is_not_finite_is_nan_alone() -> None:
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, np.inf, 2])])
    s, u, _ = run_ours(Case("Svd", [x]), "GPU")
    assert np.isnan(s[1:]).all() and np.isnan(u[1:]).all()
    np.testing.assert_array_equal(s[0], np.ones(3))
    values, _ = run_ours(Case("SelfAdjointEigV2", [x]), "GPU")
    assert np.isnan(values[1:]).all() and not np.isnan(values[0]).any()


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (2, 0, 3)])
def test_of_nothing(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    cases = [Case("Svd", [x], {"full_matrices": full}) for full in (False, True)]
    if shape[-1] == shape[-2]:
        cases.append(Case("SelfAdjointEigV2", [x]))
    for case in cases:
        for ours, wanted in zip(run_ours(case, "GPU"), run_ours(case), strict=True):
            np.testing.assert_array_equal(ours, wanted, strict=True)


def test_large_matrices_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.kernels.gpu.linalg import jacobi

    monkeypatch.setattr(jacobi.jacobi_kernels, "MOST", 3)
    x = _RNG.normal(size=(2, 4, 4))
    for op in ("Svd", "SelfAdjointEigV2"):
        for ours, wanted in zip(*(run_ours(Case(op, [x]), device) for device in ("GPU", "CPU")), strict=True):
            np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
@pytest.mark.parametrize("type", ["float", "double"])
def test_kernels_are_assembled(type: str, capability: tuple[int, int]) -> None:
    kernels = [jacobi_kernels.prepare(type, kind) for kind in ("tall", "wide", "symmetric")]
    kernels += [jacobi_kernels.rotate(type), jacobi_kernels.complete(type)]
    kernels += [
        jacobi_kernels.finish(type, symmetric=symmetric, with_u=not symmetric, with_v=True)
        for symmetric in (False, True)
    ]
    for kernel in kernels:
        # what completes a basis keeps its predicates through barriers: a few words, and once for a matrix
        most = 64 if kernel.name.startswith("jacobi_complete") else 0
        assert assembled(ptx.write(kernel, capability), capability).spills <= most, kernel.name
