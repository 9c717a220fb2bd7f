"""Embeddings of ids: sequences, bags of words, sparse ids with nothing in some rows."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_same_float_dtype
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import embeddings
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.variables.model_variables import model_variable
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def embed_sequence(
    ids: Any, vocab_size: int | None = None, embed_dim: int | None = None, unique: bool = False,
    initializer: Any = None, regularizer: Any = None, trainable: bool = True, scope: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """The embeddings of ids [batch, length], in variables of the scope.

    Args:
        unique: look each id up once, however often it is there.

    Raises:
        ValueError: a size is not given, and nothing is reused.
    """
    if not reuse and not (vocab_size and embed_dim):
        raise ValueError(f"vocab_size and embed_dim: expected both, got {vocab_size} and {embed_dim}")
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = None if (reuse and vocab_size is None) or embed_dim is None else [vocab_size, embed_dim]
        table = model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )  # fmt: skip
        return embedding_lookup_unique(table, ids) if unique else embeddings.embedding_lookup(table, ids)


def bow_encoder(
    ids: Any, vocab_size: int, embed_dim: int, sparse_lookup: bool = True, initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, scope: Any = None, reuse: Any = None,
) -> Tensor:  # fmt: skip
    """The mean of the embeddings of each row of ids.

    Args:
        sparse_lookup: id 0 of dense ids is padding.

    Raises:
        ValueError: a size is not given.
        TypeError: sparse ids without `sparse_lookup`.
    """
    if not vocab_size or not embed_dim:
        raise ValueError(f"vocab_size and embed_dim: expected both, got {vocab_size} and {embed_dim}")
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        table = model_variable(
            "embeddings", [vocab_size, embed_dim], initializer=initializer, regularizer=regularizer, trainable=trainable
        )  # fmt: skip
        if not sparse_lookup:
            if isinstance(ids, SparseTensor):
                raise TypeError("ids: expected a dense tensor where sparse_lookup is False, got a SparseTensor")
            return math_ops.reduce_mean(embeddings.embedding_lookup(table, ids), 1)
        sparse = ids if isinstance(ids, SparseTensor) else _sparse(ids)
        return safe_embedding_lookup_sparse([table], sparse, combiner="mean", default_id=0)


def _sparse(dense: Any) -> SparseTensor:
    """What is not 0."""
    with variable_scope(None, "dense_to_sparse", [dense]):
        dense = convert_to_tensor(dense)
        places = array_ops.where(math_ops.not_equal(dense, convert_to_tensor(0, dense.dtype.base)))
        return SparseTensor(places, array_ops.gather_nd(dense, places), array_ops.shape(dense, out_type=dtypes.int64))


def embedding_lookup_unique(params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None) -> Tensor:
    """The embeddings of ids, each of which is looked up once, however often it is there."""
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        sizes = array_ops.shape(ids)
        flat = array_ops.reshape(ids, math_ops.reduce_prod(sizes, keepdims=True))
        unique, places = ops.unique(flat)
        rows = embeddings.embedding_lookup(params, unique, partition_strategy)
        found = array_ops.reshape(
            array_ops.gather(rows, places), array_ops.concat([sizes, array_ops.shape(rows)[1:]], 0)
        )  # fmt: skip
        found.set_shape(ids.static_shape.concatenate(rows.static_shape.slice(1)))
        return found


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: SparseTensor, sparse_weights: Any = None, combiner: str | None = None,
    default_id: int | None = None, name: str | None = None, partition_strategy: str = "div", max_norm: Any = None,
) -> Tensor:  # fmt: skip
    """`embedding_lookup_sparse` without invalid ids (below 0) and weights (0 or below), and for rows without any.

    Args:
        sparse_ids: [d0, ..., dn], combined over the last axis.
        default_id: the id of rows without any; None: their result is 0.

    Raises:
        ValueError: there are no weights.
    """
    kind = "mean" if combiner is None else combiner
    several = isinstance(embedding_weights, list) or hasattr(embedding_weights, "parts")
    parts: list[Any] = list(cast("Any", embedding_weights)) if several else [embedding_weights]
    if not parts or parts[0] is None:
        raise ValueError("embedding_weights: expected an embedding, or its parts, got nothing")
    dtype = None if sparse_weights is None else sparse_weights.dtype
    tensors = [convert_to_tensor(part, dtype) for part in parts]
    assert_same_float_dtype([*tensors, sparse_weights])
    with name_scope(name, "embedding_lookup", [*tensors, sparse_ids, sparse_weights]) as scope:
        shape = sparse_ids.dense_shape
        static = shape.static_shape[0] if shape.static_shape.rank else None
        rank: Any = array_ops.size(shape) if static is None else static
        rows = math_ops.reduce_prod(array_ops.slice(shape, [0], [rank - 1]))
        ids = sparse_ops.reshape(sparse_ids, [rows, array_ops.gather(shape, rank - 1)])
        weights = None if sparse_weights is None else SparseTensor(ids.indices, sparse_weights.values, ids.dense_shape)
        ids, weights = _valid(ids, weights, kind)
        ids, is_empty = sparse_ops.fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_ops.fill_empty_rows(weights, 1.0)
        found = embeddings.embedding_lookup_sparse(
            tensors, ids, weights, partition_strategy, None if default_id is None else scope, kind, max_norm
        )
        if default_id is None:
            width = array_ops.stack([1, array_ops.shape(found)[1]])
            empty = array_ops.tile(array_ops.reshape(is_empty, [-1, 1]), width)
            found = array_ops.where(empty, array_ops.zeros_like(found), found, name=scope)
        outer = array_ops.slice(math_ops.cast(shape, dtypes.int32), [0], [rank - 1])
        final = array_ops.reshape(
            found, array_ops.concat([outer, array_ops.slice(array_ops.shape(found), [1], [-1])], 0)
        )
        if static is not None:
            final.set_shape(Shape([None] * (static - 1)).concatenate(found.static_shape.slice(1)))
        return final


def _valid(ids: SparseTensor, weights: SparseTensor | None, combiner: str) -> tuple[SparseTensor, SparseTensor | None]:
    """Without ids below 0, and, where means are taken, without weights that are not above 0."""
    holds = ops.greater_equal(ids.values, 0)
    if weights is not None:
        holds = ops.logical_and(holds, array_ops.ones_like(weights.values, dtypes.bool_))
    ids = sparse_ops.retain(ids, holds)
    if weights is None:
        return ids, None
    weights = sparse_ops.retain(weights, holds)
    if combiner != "sum":
        holds = ops.greater(weights.values, 0)
        ids, weights = sparse_ops.retain(ids, holds), sparse_ops.retain(weights, holds)
    return ids, weights
