"""Sparse tensors are fed and fetched whole, and say what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.client import Graph
from toolkit.client.construction.convert import constant
from toolkit.client.nn import embeddings
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.structures.values import SparseTensorValue
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.runtime.session import Session

VALUE = SparseTensorValue([[0, 1], [1, 0]], [1.5, -2.0], [2, 3])


def test_a_sparse_tensor_is_fed_and_fetched() -> None:
    with Graph().as_default() as graph:
        x = sparse_ops.placeholder(dtypes.float32)
        dense = sparse_ops.to_dense(x)
        with Session(graph) as session:
            same, whole, product = session.run([x, dense, x * [[2.0], [3.0]]], {x: VALUE})
    assert isinstance(same, SparseTensorValue)
    np.testing.assert_array_equal(same.indices, VALUE.indices)
    np.testing.assert_array_equal(whole, [[0, 1.5, 0], [-2, 0, 0]])
    np.testing.assert_array_equal(product.values, [3, -6])


def test_a_sparse_tensor_is_fed_three_parts() -> None:
    with Graph().as_default() as graph:
        x = sparse_ops.placeholder(dtypes.float32)
        with Session(graph) as session, pytest.raises(UsageError, match="is fed a tuple of 3 values"):
            session.run(x, {x: [1.0, 2.0]})


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (([0, 1], [1.0], [2]), "indices of a sparse tensor: expected 2 dimension"),
        (([[0], [1]], [1.0], [2]), "2 indices and 1 values"),
        (([[0, 1]], [1.0], [2]), "indices of 2 numbers do not fit a dense_shape of 1"),
    ],
)
def test_parts_that_do_not_fit(parts: tuple[object, object, object], said: str) -> None:
    with Graph().as_default(), pytest.raises(GraphError, match=said):
        SparseTensor(*parts)


def test_rows_of_parts_in_runs_and_in_turn() -> None:
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    with Graph().as_default() as graph:
        in_turn = embeddings.embedding_lookup([table[::2], table[1::2]], [3, 0, 4])
        in_runs = embeddings.embedding_lookup([table[:3], table[3:]], [3, 0, 4], "div")
        with Session(graph) as session:
            for rows in session.run([in_turn, in_runs]):
                np.testing.assert_array_equal(rows, table[[3, 0, 4]])


def test_a_placeholder_takes_its_shape_from_a_tensor() -> None:
    with Graph().as_default() as graph:
        x = sparse_ops.placeholder(dtypes.float32, constant([2, 3], dtypes.int64))
        dense = sparse_ops.to_dense(x)
        with Session(graph) as session:
            np.testing.assert_array_equal(session.run(dense, {x: VALUE}), [[0, 1.5, 0], [-2, 0, 0]])
            parts = {x.indices: VALUE.indices, x.values: VALUE.values}
            np.testing.assert_array_equal(session.run(x.dense_shape, parts), [2, 3])


def test_a_placeholder_whose_shape_is_a_matrix() -> None:
    with Graph().as_default(), pytest.raises(GraphError, match="a vector of sizes"):
        sparse_ops.placeholder(dtypes.float32, constant([[2, 3]], dtypes.int64))
