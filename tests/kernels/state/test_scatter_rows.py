"""Scatters of repeated indices are the same, to the bit, as going through the indices one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.kernels.cpu.native import rows as native_rows
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.state.scatter import occurrences, scatter_rows
from toolkit.target import rows as targets

HOWS = [np.add, np.subtract, np.multiply, np.minimum, np.maximum, np.divide]


@pytest.mark.parametrize("how", HOWS, ids=lambda how: how.__name__)
@pytest.mark.parametrize("row", [(), (3,), (2, 2), (37,)], ids=str)
@pytest.mark.parametrize("native", ["", "off"])
@settings(deadline=None, max_examples=20)
@given(
    count=st.integers(1, 300), values=st.integers(1, 60), scalar=st.booleans(), seed=st.integers(0, 999),
    ids=st.sampled_from([np.int32, np.int64]), dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_as_one_by_one(
    how: Callable[..., Any], row: tuple[int, ...], native: str, count: int, values: int, scalar: bool, seed: int,
    ids: Any, dtype: Any,
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    target = random.standard_normal((values, *row)).astype(dtype)
    indices = (values ** random.random(count)).astype(ids) - 1  # by Zipf's law: a few values again and again
    # near 1, so that no product of hundreds of them overflows
    updates = random.uniform(0.8, 1.25, () if scalar else (count, *row))
    updates = np.asarray(updates, dtype)
    wanted = target.copy()
    for position, index in enumerate(indices.tolist()):
        wanted[index] = how(wanted[index], updates if scalar else updates[position])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHMILL_NATIVE", native)
        scatter_rows(target, indices, updates, how, targets.current())
    assert target.tobytes() == wanted.tobytes()


@settings(deadline=None, max_examples=40)
@given(
    how=st.sampled_from(["add", "subtract", "multiply", "divide"]), seed=st.integers(0, 999),
    width=st.sampled_from([1, 15, 16, 17, 48]), dtype=st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    ids=st.sampled_from([np.int32, np.int64]), bad=st.sampled_from([-1, 9, 1 << 30]),
)  # fmt: skip
def test_numbers_out_of_range_change_nothing(
    how: str, seed: int, width: int, dtype: Any, ids: Any, bad: int
) -> None:  # fmt: skip
    random = np.random.default_rng(seed)
    table = random.integers(1, 99, (9, width)).astype(dtype)
    rows, numbers = random.integers(1, 99, (12, width)).astype(dtype), random.integers(0, 9, 12).astype(ids)
    before = table.copy()
    numbers[[7, 10]] = bad
    found = native_rows.change(how, table, numbers, rows, targets.current())
    is_compiled = compiler() is not None and (how != "divide" or table.dtype.kind == "f")
    assert found == (8 if is_compiled else None)
    assert table.tobytes() == before.tobytes()


@settings(deadline=None, max_examples=40)
@given(indices=st.lists(st.integers(-5, 9), max_size=60))
def test_rounds_have_every_position_once_and_in_order(indices: list[int]) -> None:
    given_indices = np.array(indices, np.int64)
    seen: list[int] = []
    for chosen in occurrences(given_indices):
        positions: list[int] = np.arange(len(indices))[chosen].tolist()
        values = [indices[p] for p in positions]
        assert len(set(values)) == len(values)
        assert all(indices[:p].count(indices[p]) == [indices[q] for q in seen].count(indices[p]) for p in positions)
        seen += positions
    assert sorted(seen) == list(range(len(indices)))
