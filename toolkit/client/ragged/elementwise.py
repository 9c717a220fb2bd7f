"""Computed value by value: what does not change rows is computed on the values alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.client.ragged.tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor, is_ragged


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function of the innermost values of ragged tensors; all of them must have the same rows.

    Raises:
        ValueError: the ragged tensors are known to have different rows, or the result has another number of values.
    """
    found: list[RaggedTensor] = []
    inner_args, inner_kwargs = _flattened(list(args), found), _flattened(kwargs, found)
    if not found:
        return op(*args, **kwargs)
    leader = _same_rows(found)
    made = convert_to_tensor_or_ragged_tensor(op(*inner_args, **inner_kwargs))
    sizes = [each.static_shape[0] if each.static_shape.rank else None for each in (leader.flat_values, made)]
    if made.static_shape.rank == 0 or (None not in sizes and sizes[0] != sizes[1]):
        raise ValueError(f"op: expected a result for each of {sizes[0]} values, got shape {made.static_shape}")
    return leader.with_flat_values(made)


def _flattened(value: Any, found: list[RaggedTensor]) -> Any:
    """Innermost values in place of ragged tensors, in lists as well."""
    if is_ragged(value):
        tensor = convert_to_tensor_or_ragged_tensor(value)
        found.append(tensor)
        return tensor.flat_values
    if isinstance(value, dict):
        return {key: _flattened(item, found) for key, item in value.items()}  # type: ignore[misc]
    if isinstance(value, list | tuple) and any(is_ragged(item) for item in value):  # type: ignore[misc]
        return [_flattened(item, found) for item in value]  # type: ignore[misc]
    return cast("Any", value)


def _same_rows(tensors: list[RaggedTensor]) -> RaggedTensor:
    """The first, once all others are known to have its rows.

    Raises:
        ValueError: they have other axes.
    """
    leader = tensors[0]
    checks: list[Any] = []
    for other in tensors[1:]:
        if other.ragged_rank != leader.ragged_rank:
            raise ValueError(
                f"ragged tensors of {leader.ragged_rank} and {other.ragged_rank} ragged axes do not have the same rows"
            )
        for one, two in zip(leader.nested_row_splits, other.nested_row_splits, strict=True):
            if one is not two:
                told = "rows of ragged tensors differ in length"
                checks.append(assert_equal(one, math_ops.cast(two, one.dtype.base), message=told))
    if not checks:
        return leader
    return leader.with_flat_values(with_dependencies(checks, leader.flat_values))


def aligned(values: list[Any]) -> tuple[RaggedTensor, list[Any]]:
    """A ragged tensor that has the rows of the result, and what is computed with in place of each value.

    Raises:
        ValueError: they do not broadcast against each other.
    """
    tensors = [convert_to_tensor_or_ragged_tensor(value) if is_ragged(value) else value for value in values]
    ragged = [each for each in tensors if isinstance(each, RaggedTensor)]
    deepest = max(ragged, key=lambda each: each.ragged_rank)
    made: list[Any] = []
    others: list[RaggedTensor] = []
    for each in tensors:
        if not isinstance(each, RaggedTensor):
            each = _beside(deepest, each)
        if isinstance(each, RaggedTensor):
            others.append(each)
        made.append(each)
    leader = _same_rows(others)
    first = others[0]
    return leader, [
        (leader if each is first else each).flat_values if isinstance(each, RaggedTensor) else each for each in made
    ]


def _beside(leader: RaggedTensor, value: Any) -> Any:
    """A dense value as it meets the values of a ragged tensor."""
    if not isinstance(value, Tensor) and not hasattr(value, "shape") and not isinstance(value, list | tuple):
        return value  # one number or text
    tensor = convert_to_tensor(value, leader.dtype.base if not isinstance(value, Tensor) else None)
    shape = tensor.static_shape
    if shape.rank is None:
        raise ValueError(f"'{tensor.name}' has an unknown rank, so it cannot meet a ragged tensor; set_shape says it")
    inner = (leader.flat_values.static_shape.rank or 1) - 1
    if shape.rank <= inner or shape.num_elements == 1:
        return array_ops.reshape(tensor, []) if shape.num_elements == 1 else tensor
    if shape.rank == leader.ragged_rank + 1 + inner or shape.rank > leader.ragged_rank:
        if shape[1] == 1:
            return _one_for_each_row(leader, tensor)
        return RaggedTensor.from_tensor(
            tensor, ragged_rank=leader.ragged_rank, row_splits_dtype=leader.partition.dtype
        )  # fmt: skip
    raise ValueError(f"shape {shape} does not broadcast against the ragged shape {leader.static_shape}")


def _one_for_each_row(leader: RaggedTensor, tensor: Tensor) -> Tensor:
    """A column of numbers, each for all values of its row."""
    column = tensor[:, 0]
    rows = leader.value_rowids()
    values: Any = leader.values
    if column.static_shape.rank and column.static_shape[0] == 1:
        return column[0]
    column = array_ops.gather(column, rows)
    while isinstance(values, RaggedTensor):
        if column.static_shape.rank and column.static_shape.rank > 1:
            column = column[:, 0]
        column = array_ops.gather(column, values.value_rowids())
        values = values.values
    return column


def operate(operator: str, left: Any, right: Any) -> RaggedTensor:
    """What Python's operators give."""
    leader, (x, y) = aligned([left, right])
    return leader.with_flat_values(math_ops.binary_operator(operator, x, y))


def elementwise(function: Callable[..., Any], operands: list[Any], *args: Any, **kwargs: Any) -> RaggedTensor:
    """A function of dense tensors, of which some are ragged here."""
    leader, values = aligned(operands)
    return leader.with_flat_values(function(*values, *args, **kwargs))


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Where a ragged condition holds: coordinates [n, axes], or values of two tensors of the same rows.

    Raises:
        ValueError: only one of the two is given.
    """
    if (x is None) != (y is None):
        raise ValueError("where takes both x and y, or neither")
    with name_scope(name, "RaggedWhere"):
        if x is None:
            sparse = convert_to_tensor_or_ragged_tensor(condition).to_sparse()
            return array_ops.boolean_mask(sparse.indices, sparse.values)
        leader, parts = aligned([condition, x, y])
        return leader.with_flat_values(ops.select_v2(*parts))
