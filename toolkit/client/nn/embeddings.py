"""Rows of embeddings: of one variable or of parts between which the ids are dealt out, alone or combined."""

from __future__ import annotations

from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import colocate_with, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor, as_sparse
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

#: a combiner to what it is called in the names of ops
_COMBINERS = {"mean": "Mean", "sqrtn": "SqrtN", "sum": "Sum"}


def parts_of(params: Any) -> list[Any]:
    """The variables of an embedding: one, a list, or the parts of a partitioned one.

    Raises:
        UsageError: an empty list.
    """
    several = isinstance(params, list | tuple) or hasattr(params, "parts")
    found: list[Any] = list(cast("list[Any]", params)) if several else [cast("Any", params)]
    if not found:
        raise UsageError("params: expected an embedding, or the list of its parts, got nothing")
    return found


def _limited(rows: Tensor, max_norm: Any) -> Tensor:
    """Rows scaled down to a norm."""
    if max_norm is None:
        return rows
    rank = rows.static_shape.rank
    axes: Any = list(range(1, rank)) if rank is not None else ops.range(1, array_ops.rank(rows), 1)
    return clip_ops.clip_by_norm(rows, max_norm, axes)


def embedding_lookup(
    params: Any,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Rows of an embedding.

    Args:
        params: a variable, or a list of parts with rows of one shape.
        partition_strategy: how ids are dealt out to parts: "mod" (in turn) or "div" (in runs).
        validate_indices: has no effect, as in TensorFlow.
        max_norm: rows are scaled down to this norm.

    Raises:
        UsageError: an unknown strategy, or no params.
        GraphError: parts of an unknown or another shape.
    """
    del validate_indices
    parts = parts_of(params)
    with name_scope(name, "embedding_lookup", [*parts, ids]) as scope:
        parts = [p if hasattr(p, "graph") else convert_to_tensor(p, name=f"params_{i}") for i, p in enumerate(parts)]
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            with colocate_with(parts[0]):
                rows = _limited(array_ops.gather(parts[0], ids, name=scope), max_norm)
            return array_ops.identity(rows)
        return _from_parts(parts, ids, partition_strategy, max_norm, scope)


def _from_parts(parts: list[Any], ids: Tensor, strategy: str, max_norm: Any, scope: str) -> Tensor:
    count = len(parts)
    flat = array_ops.reshape(ids, [-1])
    places = math_ops.range(array_ops.size(flat))
    if strategy == "mod":
        part_of, rows = flat % count, flat // count
    elif strategy == "div":
        part_of, rows = _in_runs(parts, flat)
    else:
        raise UsageError(f"partition_strategy: expected 'mod' or 'div', got {strategy!r}")
    part_of = math_ops.cast(part_of, dtypes.int32)
    dealt = ops.dynamic_partition(rows, part_of, num_partitions=count)
    at = ops.dynamic_partition(places, part_of, num_partitions=count)
    found: list[Tensor] = []
    for part, chosen in zip(parts, dealt, strict=True):
        with colocate_with(part):
            found.append(_limited(array_ops.gather(part, chosen), max_norm))
    stitched = ops.parallel_dynamic_stitch(at, found, name=scope)
    width = found[0].static_shape.slice(1)
    if not width.is_fully_defined:
        raise GraphError(f"the rows of '{parts[0].name}' have an unknown shape {width}")
    sizes = array_ops.concat([array_ops.shape(ids), width.as_list()], 0)
    result = array_ops.reshape(stitched, sizes)
    result.set_shape(ids.static_shape.concatenate(width))
    return result


def _in_runs(parts: list[Any], flat: Tensor) -> tuple[Tensor, Tensor]:
    """The part and the row of each id, where the first parts have one row more if the rows cannot be dealt evenly."""
    lengths: list[Any] = [part.static_shape[0] if part.static_shape.rank else None for part in parts]
    count = len(parts)
    if all(length is not None for length in lengths):
        total = convert_to_tensor(sum(lengths), flat.dtype.base)
    else:
        sizes = [math_ops.cast(array_ops.shape(part)[0], flat.dtype.base) for part in parts]
        total = math_ops.reduce_sum(array_ops.stack(sizes))
    run = total // count
    more = total % count
    part_of = math_ops.maximum(flat // (run + 1), (flat - more) // run)
    is_longer = part_of < more
    return part_of, array_ops.where(is_longer, flat % (run + 1), (flat - more) % run)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """For each row of ids the sum of their embeddings, or their mean.

    Args:
        sp_ids: sparse integers [rows, any].
        sp_weights: sparse weights in the same places, or None.
        combiner: "sum", "mean" (by the sum of the weights) or "sqrtn" (by the root of the sum of their squares);
            default: "mean".
        allow_fast_lookup: has no effect, as ids are looked up once each.

    Raises:
        UsageError: an unknown combiner, or no params.
    """
    del allow_fast_lookup
    kind = "mean" if combiner is None else combiner
    if kind not in _COMBINERS:
        raise UsageError(f"combiner: expected one of {', '.join(_COMBINERS)}, got {kind!r}")
    parts = parts_of(params)
    ids = as_sparse(sp_ids)
    weights = None if sp_weights is None else as_sparse(sp_weights)
    with name_scope(name, "embedding_lookup_sparse", [*parts, ids.indices]) as scope:
        segments = ids.indices[:, 0]
        if weights is None and len(parts) == 1 and max_norm is None and not getattr(parts[0], "is_resource", False):
            op = ops.function(f"SparseSegment{_COMBINERS[kind]}")
            return op(parts[0], ids.values, segments, sparse_gradient=True, name=scope)
        unique, places = ops.unique(ids.values)
        rows = embedding_lookup(parts, unique, partition_strategy, max_norm=max_norm)
        if rows.dtype.base in (dtypes.float16, dtypes.bfloat16):
            rows = math_ops.cast(rows, dtypes.float32)
        if weights is None:
            op = ops.function(f"SparseSegment{_COMBINERS[kind]}")
            return op(rows, places, segments, name=scope)
        segments = math_ops.cast(segments, dtypes.int32)
        return _weighted(array_ops.gather(rows, places), weights.values, segments, kind, scope)


def _weighted(rows: Tensor, weights: Tensor, segments: Tensor, kind: str, scope: str) -> Tensor:
    weights = math_ops.cast(weights, rows.dtype.base)
    inner = array_ops.expand_dims(array_ops.rank(rows) - 1, 0)
    sizes = array_ops.concat([array_ops.shape(weights), array_ops.ones(inner, dtypes.int32)], 0)
    column = array_ops.reshape(weights, sizes)
    heavy = rows * column
    if kind == "sum":
        return ops.segment_sum(heavy, segments, name=scope)
    total = ops.segment_sum(heavy, segments)
    if kind == "mean":
        return ops.div_no_nan(total, ops.segment_sum(column, segments), name=scope)
    squares = ops.segment_sum(math_ops.pow(column, 2), segments)
    return ops.div_no_nan(total, ops.sqrt(squares), name=scope)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """`embedding_lookup_sparse` of ids [..., any] of which some are below 0 and do not count, nor do weights that are
    not above 0; rows without any get the embedding of `default_id`, or zeros.

    Raises:
        UsageError: there are no embeddings.
    """
    dtype = None if sparse_weights is None else sparse_weights.dtype.base
    parts = [
        part
        if getattr(part, "is_resource", False) and dtype in (None, part.dtype.base)
        else convert_to_tensor(part, dtype)
        for part in parts_of(embedding_weights)
    ]
    ids, weights = as_sparse(sparse_ids), sparse_weights
    of_weights = [] if weights is None else [weights.indices]
    with name_scope(name, "embedding_lookup", [*parts, ids.indices, *of_weights]) as scope:
        sizes = ids.dense_shape
        known = sizes.static_shape[0] if sizes.static_shape.rank else None
        rank: Any = array_ops.size(sizes) if known is None else known
        rows = math_ops.reduce_prod(array_ops.slice(sizes, [0], [rank - 1]))
        ids = sparse_ops.reshape(ids, [rows, array_ops.gather(sizes, rank - 1)])
        if weights is not None:
            weights = SparseTensor(ids.indices, weights.values, ids.dense_shape)
        ids, weights = _valid(ids, weights, combiner)
        ids, is_empty = sparse_ops.fill_empty_rows(ids, default_id or 0)
        if weights is not None:
            weights, _ = sparse_ops.fill_empty_rows(weights, 1.0)
        result = embedding_lookup_sparse(
            parts, ids, weights, partition_strategy, None if default_id is None else scope, combiner, max_norm,
            allow_fast_lookup,
        )  # fmt: skip
        if default_id is None:
            column = array_ops.reshape(is_empty, [-1, 1])
            is_empty = array_ops.tile(column, array_ops.stack([1, array_ops.shape(result)[1]]))
            result = array_ops.where(is_empty, array_ops.zeros_like(result), result, name=scope)
        outer = array_ops.slice(math_ops.cast(sizes, dtypes.int32), [0], [rank - 1])
        inner = array_ops.slice(array_ops.shape(result), [1], [-1])
        whole = array_ops.reshape(result, array_ops.concat([outer, inner], 0))
        if known is not None:
            whole.set_shape(Shape([None] * (known - 1)).concatenate(result.static_shape.slice(1)))
        return whole


def _valid(ids: SparseTensor, weights: Any, combiner: str) -> tuple[SparseTensor, Any]:
    """Without ids below 0 and, but for sums, without weights that are not above 0."""
    keep = ops.greater_equal(ids.values, 0)
    if weights is not None:
        keep = ops.logical_and(keep, array_ops.ones_like(weights.values, dtype=dtypes.bool_))
    ids = sparse_ops.retain(ids, keep)
    if weights is None:
        return ids, None
    weights = sparse_ops.retain(weights, keep)
    if combiner == "sum":
        return ids, weights
    keep = ops.greater(weights.values, 0)
    return sparse_ops.retain(ids, keep), sparse_ops.retain(weights, keep)
