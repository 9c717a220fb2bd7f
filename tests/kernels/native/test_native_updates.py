"""Optimizer updates as compiled loops give the same bits as the NumPy rules that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.graph import opdefs
from toolkit.kernels.cpu.native import updates
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS
from toolkit.target import rows as targets

#: rules that look at a number, or take powers
NOT_COMPILED = frozenset({"AdagradDA", "Ftrl", "FtrlV2", "PowerSign", "ProximalAdagrad", "ProximalGradientDescent"})


def _scalars(random: Any, count: int, dtype: Any) -> list[Any]:
    return [np.asarray(random.uniform(0.1, 0.9), dtype) for _ in range(count)]


def _setting(name: str) -> tuple[Any, int, int]:
    """The rule, where the gradient is among the inputs after the variables, and how many these are."""
    optimizer = OPTIMIZERS[name]
    return (
        optimizer,
        optimizer.gradient - optimizer.slots,
        len(opdefs.get(f"ResourceApply{name}").inputs) - optimizer.slots,
    )


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
@settings(deadline=None, max_examples=10)
@given(
    size=st.integers(1, 70), dtype=st.sampled_from(["float32", "float64", "float16"]), flag=st.booleans(),
    seed=st.integers(0, 999), is_bad=st.booleans(),
)  # fmt: skip
def test_dense(name: str, size: int, dtype: str, flag: bool, seed: int, is_bad: bool) -> None:
    optimizer, place, count = _setting(name)
    random = np.random.default_rng(seed)
    attributes = dict.fromkeys(optimizer.attributes, flag)
    scalars = _scalars(random, count - 1, dtype)
    known = [scalar[()] if seed >> at & 1 else None for at, scalar in enumerate(scalars)]
    update = updates.dense(
        optimizer.rule, optimizer.slots, place, known, attributes, np.dtype(dtype), size, {}, targets.current()
    )
    assert (update is not None) == (compiler() is not None and dtype != "float16" and name not in NOT_COMPILED)
    if update is None:
        return
    cells: list[Any] = [np.abs(random.normal(size=size)).astype(dtype) for _ in range(optimizer.slots)]
    gradient = random.normal(size=size).astype(dtype)
    if is_bad:
        gradient[random.integers(size)] = random.choice([np.nan, np.inf, 0.0])
    wanted = [cell.copy() for cell in cells]
    with np.errstate(all="ignore"):
        optimizer.rule(*wanted, *scalars[:place], gradient, *scalars[place:], **attributes)
        update.run([*cells, gradient], scalars)
    for mine, right in zip(cells, wanted, strict=True):
        np.testing.assert_array_equal(mine, right)


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - NOT_COMPILED))
@settings(deadline=None, max_examples=6)
@given(
    width=st.sampled_from([1, 5, 16, 33]), dtype=st.sampled_from(["float32", "float64"]), seed=st.integers(0, 999),
    ids=st.sampled_from(["int32", "int64"]),
)  # fmt: skip
def test_rows_one_after_the_other(name: str, width: int, dtype: str, seed: int, ids: str) -> None:
    optimizer, place, count = _setting(name)
    random = np.random.default_rng(seed)
    attributes = dict.fromkeys(optimizer.attributes, bool(seed % 2))
    update = updates.sparse(
        optimizer.rule, optimizer.slots, place, count - 1, attributes, np.dtype(dtype), width, ids, targets.current()
    )
    assert (update is not None) == (compiler() is not None)
    if update is None:
        return
    cells: list[Any] = [np.abs(random.normal(size=(7, width))).astype(dtype) for _ in range(optimizer.slots)]
    gradient, rows = random.normal(size=(20, width)).astype(dtype), random.integers(0, 7, 20).astype(ids)
    scalars = _scalars(random, count - 1, dtype)
    wanted = [cell.copy() for cell in cells]
    with np.errstate(all="ignore"):
        for at, row in enumerate(rows.tolist()):
            optimizer.rule(
                *(cell[row] for cell in wanted), *scalars[:place], gradient[at], *scalars[place:], **attributes
            )
        update.run([*cells, gradient], scalars, rows)
    for mine, right in zip(cells, wanted, strict=True):
        np.testing.assert_array_equal(mine, right)
