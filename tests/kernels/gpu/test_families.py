"""Special functions, sparse tensors, systems of three diagonals, draws on GPUs: gradients, many blocks, refusals."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.op_suite import Case, run_ours
from toolkit import client as gm
from toolkit.runtime.session import Session

ops = gm.ops
_RANDOM = np.random.default_rng(2)
POSITIVE, UNIT = _RANDOM.uniform(0.3, 3, (3, 4)), _RANDOM.uniform(0.1, 0.9, (3, 4))
PLACES, SHAPE = np.array([[0, 1], [2, 0], [2, 3]], np.int64), np.array([3, 4], np.int64)
VALUES = _RANDOM.normal(size=3)
DIAGONALS = _RANDOM.uniform(1, 2, (2, 3, 4)) + np.array([0, 3, 0])[:, None]

#: of functions of hundreds of terms, and of products of a few of them
ROUNDINGS = 1000
LEARNING: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "Igamma": (ops.igamma, [POSITIVE, POSITIVE + 0.2]),
    "Betainc": (ops.betainc, [POSITIVE, POSITIVE + 0.2, UNIT]),
    "Bessel functions": (
        lambda x: ops.bessel_i0e(x) + ops.bessel_i1(x) + ops.bessel_j0(x) + ops.bessel_k1(x) + ops.bessel_y0(x),
        [POSITIVE],
    ),
    "integrals": (lambda x: ops.dawsn(x) + ops.expint(x) + ops.fresnel_cos(x) + ops.spence(x), [POSITIVE]),
    "TridiagonalSolve": (ops.tridiagonal_solve, [DIAGONALS, _RANDOM.normal(size=(2, 4, 2))]),
    "StatelessRandomGammaV2": (lambda alpha: ops.stateless_random_gamma_v2([5, 4], [1, 2], alpha), [POSITIVE[0]]),
    "SparseReorder": (lambda v: ops.sparse_reorder(PLACES[::-1].copy(), v, SHAPE)[1], [VALUES]),
    "SparseFillEmptyRows": (
        lambda v: ops.sparse_fill_empty_rows(PLACES, v, SHAPE, np.float64(2))[1], [VALUES]
    ),
    "SparseSlice": (
        lambda v: ops.sparse_slice(PLACES, v, SHAPE, np.zeros(2, np.int64), np.array([3, 2], np.int64))[1], [VALUES]
    ),
    "ApproxTopK": (lambda x: ops.approx_top_k(gm.cast(x, gm.float32), k=2)[0], [POSITIVE]),
}  # fmt: skip


@pytest.mark.parametrize("family", LEARNING)
def test_gradients_are_those_of_the_cpu(family: str) -> None:
    make, given = LEARNING[family]
    results: list[Any] = []
    for device in ("/device:CPU:0", "/device:GPU:0"):
        with gm.Graph().as_default() as graph, graph.device(device):
            inputs = [gm.placeholder(gm.float64, value.shape) for value in given]
            y = make(*inputs)
            slopes = [each for each in gm.grad(ops.mul(y, y), inputs) if each is not None]
        assert slopes
        with Session(graph, devices={"GPU": 1}, precision="exact") as session:
            results.append(session.run([y, *slopes], dict(zip(inputs, given, strict=True))))
            if device != "/device:CPU:0":
                (known,) = session.device_statistics().values()
                assert known.allocations > 0
    for here, there in zip(*results, strict=True):
        unit = tolerance.unit() if here.dtype == np.float32 else float(np.finfo(np.float64).eps)
        # as many roundings as terms
        np.testing.assert_allclose(there, here, rtol=0, atol=ROUNDINGS * unit * max(np.abs(here).max(), 1))


def _agree(case: Case) -> None:
    """Equal to the bit: numbers are moved alone."""
    for here, there in zip(run_ours(case, defining=True), run_ours(case, "GPU"), strict=True):
        np.testing.assert_array_equal(np.asarray(there), np.asarray(here))


def _sparse(count: int, shape: tuple[int, ...], seed: int) -> list[Any]:
    """A sparse tensor of distinct places in no order."""
    random = np.random.default_rng(seed)
    flat = random.permutation(int(np.prod(shape)))[:count]
    places = np.stack(np.unravel_index(flat, shape), axis=1).astype(np.int64)
    return [places, random.normal(size=count).astype(np.float32), np.array(shape, np.int64)]


def test_more_numbers_than_a_tile_are_sorted_cut_and_filled() -> None:
    places, values, shape = _sparse(2500, (40, 13, 11), 1)
    _agree(Case("SparseReorder", [places, values, shape]))
    other = _sparse(700, (40, 13, 11), 2)
    args = [[places, other[0]], [values, other[1]], [shape, shape]]
    _agree(Case("SparseConcat", args, {"concat_dim": 0}))
    order = np.lexsort(places.T[::-1])
    ordered = [places[order], values[order], shape]
    _agree(Case("SparseSlice", [*ordered, np.array([3, 0, 2], np.int64), np.array([30, 9, 100], np.int64)]))
    _agree(Case("SparseSplit", [np.int64(2), *ordered], {"num_split": 3}))
    rows = _sparse(2500, (5000, 3), 3)
    _agree(Case("SparseFillEmptyRows", [*rows, np.float32(-1)]))


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("pivoting", [True, False])
def test_a_matrix_of_three_diagonals_without_inverse_has_no_solution(pivoting: bool, dtype: str) -> None:
    rhs = np.ones((2, 3, 2), dtype)
    first = np.tile(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 0]], dtype), (2, 1, 1))
    last = first.copy()
    first[1, 1, 0] = last[0, 1, 2] = 0
    for diagonals, singular in ((first, 1), (last, 0)):
        case = Case("TridiagonalSolve", [diagonals, rhs], {"partial_pivoting": pivoting})
        _agree(case)
        (y,) = run_ours(case)
        assert np.isnan(y[singular]).all() and (y[1 - singular] == 1).all()
