"""Grids of coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.graph import dtypes


def meshgrid(values: Sequence[TensorLike], indexing: str = "xy", name: str | None = "meshgrid") -> list[Tensor]:
    """For each list of coordinates the tensor that has them at every point of the grid.

    Args:
        indexing: "xy": the second list counts along the first axis; "ij": the first does.

    Raises:
        ValueError: another indexing.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing: expected 'xy' or 'ij', got {indexing!r}")
    with name_scope(name, "meshgrid", list(values)):
        count = len(values)
        ones = (1,) * count
        columns = [
            ops.reshape(array_ops.stack(x), (*ones[:i], -1, *ones[i + 1 :])) for i, x in enumerate(values)
        ]  # fmt: skip
        sizes = [array_ops.size(x) for x in values]
        dtype = convert_to_tensor(values[0]).dtype.base if values else dtypes.float32
        if indexing == "xy" and count > 1:
            columns[0] = ops.reshape(columns[0], (1, -1) + (1,) * (count - 2))
            columns[1] = ops.reshape(columns[1], (-1, 1) + (1,) * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        grid = array_ops.ones(sizes, dtype)
        return [x * grid for x in columns]
