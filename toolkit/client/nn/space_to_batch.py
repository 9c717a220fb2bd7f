"""Dilation by moving phases of the space into the batch: windows then meet neighbours that lie apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.errors import UsageError
from toolkit.graph import dtypes

Paddings = str | Sequence[Sequence[int]]


def required_space_to_batch_paddings(
    input_shape: TensorLike, block_shape: TensorLike, base_paddings: TensorLike = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """What must be added so that blocks divide the space, and what to cut off again.

    Args:
        input_shape, block_shape: int32 [n].
        base_paddings: int32 [n, 2], what is added in any case; default: nothing.

    Returns:
        paddings and crops, int32 [n, 2].

    Raises:
        UsageError: the number of dimensions is not known.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        count = blocks.static_shape[0] if blocks.static_shape.rank == 1 else None
        if count is None:
            raise UsageError(f"block_shape: expected a vector of known length, got shape {blocks.static_shape}")
        if count == 0:
            return array_ops.zeros([0, 2], dtypes.int32), array_ops.zeros([0, 2], dtypes.int32)
        if base_paddings is None:
            base = array_ops.zeros([count, 2], dtypes.int32)
        else:
            base = convert_to_tensor(base_paddings, dtypes.int32, name="base_paddings")
        known = [static_value(sizes), static_value(blocks), static_value(base)]
        if all(value is not None for value in known):
            return _computed(*known)
        before, after = base[:, 0], base[:, 1]
        whole = sizes + before + after
        extra = (blocks - whole % blocks) % blocks
        end = after + extra
        paddings = array_ops.stack([[before[i], end[i]] for i in range(count)], name="paddings")
        crops = array_ops.stack([[0, extra[i]] for i in range(count)], name="crops")
        return paddings, crops


def _computed(sizes: Any, blocks: Any, base: Any) -> tuple[Tensor, Tensor]:
    before, after = base[:, 0], base[:, 1]
    extra = -(sizes + before + after) % blocks
    paddings = np.stack([before, after + extra], 1)
    crops = np.stack([np.zeros_like(extra), extra], 1)
    return (
        convert_to_tensor(paddings.astype(np.int32), name="paddings"),
        convert_to_tensor(crops.astype(np.int32), name="crops"),
    )


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: TensorLike,
    padding: Paddings,
    op: Callable[..., Tensor],
    filter_shape: TensorLike = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """`op` over windows whose elements lie `dilation_rate` apart.

    Args:
        dilation_rate: int32 [n], one number for each dimension of the space.
        padding: "VALID", "SAME" (which needs `filter_shape`), or pairs for each dimension.
        op: takes the input, the number of spatial dimensions and a padding.
        filter_shape: the sizes of the window first.
        spatial_dims: which dimensions are the space; default: the first after the batch, and after the channels where
            `data_format` begins with "NC".

    Raises:
        UsageError: a rate below 1, dimensions that are none, "SAME" without `filter_shape`, an unknown padding.
    """
    input = convert_to_tensor(input, name="input")
    rate = convert_to_tensor(dilation_rate, dtypes.int32, name="dilation_rate")
    count = rate.static_shape[0] if rate.static_shape.rank == 1 else None
    if count is None:
        raise UsageError(f"dilation_rate: expected a vector of known length, got shape {rate.static_shape}")
    first = 2 if (data_format or "").startswith("NC") else 1
    dims = list(range(first, first + count)) if spatial_dims is None else sorted({int(d) for d in spatial_dims})
    if len(dims) != count or any(d < 1 for d in dims):
        raise UsageError(f"spatial_dims: expected {count} different positive dimensions, got {spatial_dims}")
    rank = input.static_shape.rank
    if rank is not None and rank <= dims[-1]:
        raise UsageError(f"'{input.name}' has rank {rank}; dimensions {dims} and a batch need {dims[-1] + 1}")
    known_rate = static_value(rate)
    if known_rate is not None and bool(np.any(known_rate < 1)):
        raise UsageError(f"dilation_rate: expected numbers from 1 on, got {known_rate.tolist()}")
    if known_rate is not None and bool(np.all(known_rate == 1)):
        return op(input, count, padding)
    base = _base_paddings(padding, filter_shape, rate if known_rate is None else known_rate, count)
    sizes = _space(input, dims)
    paddings, crops = required_space_to_batch_paddings(sizes, rate, base)
    blocks, added, cut = _spread(rate, 1, dims), _spread(paddings, 0, dims), _spread(crops, 0, dims)
    result = op(ops.space_to_batch_nd(input, blocks, added), count, "VALID")
    return ops.batch_to_space_nd(result, blocks, cut)


def _base_paddings(padding: Paddings, filter_shape: TensorLike, rate: Any, count: int) -> Any:
    """What is added before and after the space in any case."""
    if not isinstance(padding, str):
        return np.array(padding, np.int32)[-count - 1 : -1] if len(padding) > count else np.array(padding, np.int32)
    match padding.upper():
        case "VALID":
            return np.zeros([count, 2], np.int32)
        case "SAME":
            if filter_shape is None:
                raise UsageError("filter_shape: needed where the padding is 'SAME'")
            given = convert_to_tensor(filter_shape, name="filter_shape")
            known = static_value(given)
            window: Any = (given if known is None else known)[:count]
            extra = (window - 1) * rate
            start = extra // 2
            end = extra - start
            return array_ops.stack([[start[i], end[i]] for i in range(count)])
        case other:
            raise UsageError(f"padding: expected 'VALID', 'SAME' or pairs of numbers, got {other!r}")


def _space(input: Tensor, dims: list[int]) -> Any:
    """The sizes of the spatial dimensions: known ones as an array, else a tensor."""
    shape = input.static_shape
    known = [None] * len(dims) if shape.rank is None else [shape[d] for d in dims]
    if all(size is not None for size in known):
        return np.array(known, np.int32)
    sizes = array_ops.shape(input)
    return array_ops.stack([sizes[d] for d in dims])


def _spread(per_dimension: Tensor, filling: int, dims: list[int]) -> Any:
    """Rows for spatial dimensions, with rows of `filling` for those that lie between the batch and them."""
    known = static_value(per_dimension)
    source: Any = per_dimension if known is None else known
    tail: list[Any] = list(per_dimension.static_shape.slice(1))
    parts: list[Any] = []
    last = 0
    position = 0
    while position < len(dims):
        start = position
        if dims[start] > last + 1:
            parts.append(np.full([dims[start] - 1 - last, *tail], filling, np.int32))
        while position + 1 < len(dims) and dims[position + 1] == dims[position] + 1:
            position += 1
        parts.append(source[start : position + 1])
        last = dims[position]
        position += 1
    return array_ops.concat(parts, 0) if known is None else np.concatenate(parts, 0)
