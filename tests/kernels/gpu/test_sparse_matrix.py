"""Sparse matrices on GPUs: each kernel beside the CPU's, and steps where some nodes are on either."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.op_suite import Case, compare, from_device, outcome, run_ours, sample
from toolkit import Session
from toolkit import client as gm
from toolkit.kernels import device_types
from toolkit.kernels.resources.sparse_matrix import CsrMatrix
from toolkit.kernels.resources.tensor_space import space_at

TYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((4, 5), (2, 4, 5), (1, 1), (3, 0), (0, 3), (0, 2, 3), (2, 0, 3), (3, 40, 7))
FLAGS = ("adjoint_a", "adjoint_b", "transpose_a", "transpose_b", "transpose_output", "conjugate_output")


def coordinates(shape: tuple[int, ...], count: int, seed: int = 0) -> Any:
    """Different places in order."""
    size = int(np.prod(shape))
    chosen = np.sort(np.random.default_rng(seed).permutation(size)[:count])
    return np.stack(np.unravel_index(chosen, shape), axis=1).astype(np.int64).reshape(len(chosen), len(shape))


def matrix(dtype: str, shape: tuple[int, ...], count: int = 9, seed: int = 0) -> CsrMatrix:
    """Of the host."""
    indices = coordinates(shape, count, seed)
    given = [indices, sample(dtype, (len(indices),), seed=seed), np.int64(shape)]
    return run_ours(Case("SparseTensorToCSRSparseMatrix", given, {"T": dtype}))[0]


def there(value: Any) -> Any:
    """A matrix in the memory of a GPU."""
    memory = device_types.memory("GPU", 0)
    assert memory is not None
    return value.moved(memory.copy_in, space_at("GPU", 0)) if isinstance(value, CsrMatrix) else value


def both(case: Case, allowed: Any = 0.0) -> None:
    """Values of the GPU's kernel are the CPU's, or it refuses the case in the same words."""
    mine = outcome(lambda: run_ours(case))
    moved = Case(case.op, [there(each) for each in case.inputs], case.attrs)
    status, made = outcome(lambda: run_ours(moved, "GPU"))
    assert status == mine[0]
    if status is not None:
        assert made == mine[1]
        return
    for got, wanted in zip(made, mine[1], strict=True):
        if not isinstance(wanted, CsrMatrix):
            compare(got, wanted, allowed=lambda: allowed)
            continue
        assert got.shape == wanted.shape
        compare(from_device("GPU", got.places), wanted.places)
        compare(from_device("GPU", got.values), wanted.values, allowed=lambda: allowed)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_forms(dtype: str, shape: tuple[int, ...]) -> None:
    given, kind = matrix(dtype, shape), {"type": dtype}
    indices = coordinates(shape, 7, 3)
    values = sample(dtype, (len(indices),))
    turned = np.arange(len(indices))[::-1]
    both(Case("SparseTensorToCSRSparseMatrix", [indices[turned], values, np.int64(shape)]))
    both(Case("DenseToCSRSparseMatrix", [sample(dtype, shape), indices[turned]]))
    both(Case("CSRSparseMatrixToDense", [given], kind))
    both(Case("CSRSparseMatrixToSparseTensor", [given], kind))
    for at in (-1, 0, 1, 2):
        both(Case("CSRSparseMatrixComponents", [given, np.int32(at)], kind))
    both(Case("SparseMatrixNNZ", [given]))
    for conjugate in (False, True):
        both(Case("SparseMatrixTranspose", [given], {"conjugate": conjugate, **kind}))
    both(Case("SparseMatrixZeros", [np.int64(shape)], kind))


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) == 2] + [(2, 4, 5), (3, 9, 7)])
@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic(dtype: str, shape: tuple[int, ...]) -> None:
    a, b = matrix(dtype, shape, 9, 1), matrix(dtype, shape, 12, 2)
    factors = [sample(dtype, (), seed=seed) for seed in (1, 2)]
    both(Case("SparseMatrixAdd", [a, b, *factors]))
    both(Case("SparseMatrixAdd", [a, b, factors[0], sample(dtype, (1,))]))
    for size in ((), (1,), (shape[-1],), (shape[-2], 1), (1, 1), shape, (*shape[:-2], 1, 1), (7, *shape)):
        both(Case("SparseMatrixMul", [a, sample(dtype, size)]))
    if dtype.startswith("float"):
        units = 2 * tolerance.likely(2 * shape[-1] + 8, dtype)  # exponentials of a few units, and sums of a row
        both(Case("SparseMatrixSoftmax", [a], {"type": dtype}), units)
        largest = 25 * (1 + shape[-1])  # numbers of at most 5, and a sum of their products
        both(Case("SparseMatrixSoftmaxGrad", [a, b], {"type": dtype}), units * largest)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gradient_between_more_places_than_there_is_memory(dtype: str) -> None:
    """Only what is stored is looked at; of several values for one place the last counts, elsewhere there is 0."""
    shape, far = (3, 1 << 40), (1 << 40) - 1
    places = {
        "softmax": [[0, 5], [0, far], [1, 7], [2, 0], [2, far]],
        "given": [[0, 0], [0, 5], [0, 5], [1, 8], [2, far]],
    }
    numbers = {"softmax": [0.25, 0.75, 1, 0.5, 0.5], "given": [9, 8, 4, 3, 2]}
    attrs = {"T": dtype}
    a, g = (
        run_ours(
            Case(
                "SparseTensorToCSRSparseMatrix",
                [np.int64(places[k]), np.array(numbers[k], dtype), np.int64(shape)],
                attrs,
            )
        )[0]
        for k in ("softmax", "given")
    )
    case = Case("SparseMatrixSoftmaxGrad", [a, g], {"type": dtype})
    both(case)
    np.testing.assert_array_equal(run_ours(case)[0].values, [0.75, -0.75, 0, -0.5, 0.5])


def products() -> list[dict[str, bool]]:
    """All ways to turn either factor, with one result each, and those that are refused."""
    ways = [dict.fromkeys(names, True) for size in (0, 1, 2) for names in itertools.combinations(FLAGS, size)]
    return [way for way in ways if len(way) < 2 or way.keys() & {"adjoint_a", "transpose_output"}]


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_products(dtype: str, batch: tuple[int, ...]) -> None:
    a = matrix(dtype, (*batch, 4, 4), 10, 1)
    # sums of at most 4 products of at most 5 times 5, complex ones of 5 + 5i
    parts = 2.0 if dtype.startswith("complex") else 1.0
    allowed = 2 * tolerance.likely(parts * 4, np.zeros(0, dtype).real.dtype) * 4 * parts * 25
    for flags in products():
        both(Case("SparseMatrixMatMul", [a, sample(dtype, (*batch, 4, 4))], flags), allowed)
        if not flags.keys() & {"transpose_output", "conjugate_output"}:
            both(
                Case("SparseMatrixSparseMatMul", [a, matrix(dtype, (*batch, 4, 4), 7, 2)], {"type": dtype, **flags}),
                allowed,
            )
    for shape in ((4, 0), (4, 3), (3, 4), (2, 4, 3), (1, 4, 3), (4,)):
        both(Case("SparseMatrixMatMul", [a, sample(dtype, shape)]), allowed)


@pytest.mark.parametrize("left", [(3, 5), (0, 5), (3, 0), (2, 3, 5)])
def test_products_of_other_sizes(left: tuple[int, ...]) -> None:
    a = matrix("float64", left, 8, 1)
    for right in ((5, 7), (0, 4), (5, 0), (2, 5, 2), (3, 5, 2)):
        allowed = 2 * tolerance.likely(5, np.float64) * 5 * 25  # sums of at most 5 products of 5 times 5
        both(Case("SparseMatrixSparseMatMul", [a, matrix("float64", right, 11, 2)], {"type": "float64"}), allowed)
        both(Case("SparseMatrixMatMul", [a, sample("float64", right)]), allowed)


def test_refusals() -> None:
    values = np.float32([1, 2])
    for indices, shape in (
        ([[0, 0], [3, 1]], [2, 2]),
        ([[0, -1], [0, 1]], [2, 2]),
        ([[0], [1]], [2]),
        ([[0, 0]], [2, 2]),
    ):
        both(Case("SparseTensorToCSRSparseMatrix", [np.int64(indices), values, np.int64(shape)]))
    both(Case("DenseToCSRSparseMatrix", [np.ones((2, 2), np.float32), np.int64([[0, 0], [0, 2]])]))
    both(Case("SparseMatrixZeros", [np.int64([2, -1])], {"type": "float32"}))
    both(Case("SparseMatrixAdd", [matrix("float32", (2, 2)), matrix("float32", (2, 3)), *np.float32([1, 1])]))
    both(Case("CSRSparseMatrixToDense", [matrix("float32", (2, 2))], {"type": "float64"}))


@pytest.mark.parametrize("tokens", [False, True])
def test_steps_with_nodes_on_either(tokens: bool) -> None:
    """Matrices cross between the memories with their tensors."""
    indices, shape = coordinates((4, 5), 8), np.int64([4, 5])
    x, values = sample("float32", (5, 3)), sample("float32", (8,))
    with gm.Graph().as_default() as graph:
        fed = gm.placeholder(gm.float32, [8], name="values")
        with graph.device("/device:GPU:0"):
            a = gm.ops.sparse_tensor_to_csr_sparse_matrix(indices, fed, shape)
        with graph.device("/device:CPU:0"):
            turned = gm.ops.sparse_matrix_transpose(a, type=gm.float32)
        with graph.device("/device:GPU:0"):
            y = gm.ops.sparse_matrix_mat_mul(turned, x, transpose_a=True)
            back = gm.ops.csr_sparse_matrix_to_dense(turned, type=gm.float32)
    dense = np.zeros((4, 5), np.float32)
    dense[tuple(indices.T)] = values
    with Session(graph, devices={"GPU": 1}, force_tokens=tokens) as session:
        for _ in range(3):
            product, whole = session.run([y, back], {fed: values})
            np.testing.assert_array_equal(whole, dense.T)
            tolerance.assert_within(product, dense @ x, 2 * tolerance.of_product(dense, x))
