"""Compiled gathers and scatters of rows, slices that are names, tensors put together in the arena."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.modes import MODES, check_modes, check_steps, session
from tests.compiler.operations.rows import numbers, positive
from toolkit import client as gm
from toolkit.client import ops
from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import from_numpy
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.runtime.session import Session

ROWS, WIDTH = 40, 33


def _ints(values: Any) -> Any:
    return np.asarray(values, np.int32)


def _table(resource: bool, dtype: Any = np.float32, shape: tuple[int, ...] = (ROWS, WIDTH)) -> Any:
    value = np.arange(1, np.prod(shape) + 1).reshape(shape).astype(dtype)
    return gm.get_variable(
        "table",
        list(shape),
        initializer=gm.initializers.Constant(value),
        use_resource=resource,
        dtype=value.dtype,
    )


def _changed(table: Any, resource: bool, name: str, ids: Any, rows: Any) -> Any:
    if resource:
        return getattr(ops, f"resource_scatter_{name}")(table.handle, ids, rows)
    return getattr(ops, f"scatter_{name}")(table.handle, ids, rows).op


def _gathered(table: Any, resource: bool, ids: Any, dtype: Any) -> Any:
    if resource:
        return ops.resource_gather(table.handle, ids, dtype=dtype)
    return ops.gather_v2(table.read_value(), ids, np.int32(0))


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("ids", [gm.int32, gm.int64])
@pytest.mark.parametrize("dtype", [gm.float32, gm.float64, gm.int32])
@pytest.mark.parametrize(("name", "shape"), [("add", (50,)), ("sub", (6, 9)), ("mul", (3,)), ("div", (0,))])
def test_rows(name: str, shape: tuple[int, ...], dtype: Any, ids: Any, resource: bool) -> None:
    with gm.Graph().as_default() as graph:
        table = _table(resource, dtype.numpy)
        which = gm.placeholder(ids, list(shape), name="which")
        before = _gathered(table, resource, which, dtype)
        with gm.control_dependencies([before]):
            change = _changed(
                table, resource, name, which, ops.tanh(before) * 0.5 + 1.0 if dtype.is_floating else before
            )
        with gm.control_dependencies([change]):
            after = [_gathered(table, resource, which, dtype), table.read_value()]
    turns = iter(range(1000))
    seen: list[Any] = []

    def step(running: Any) -> list[Any]:
        if not seen or seen[-1] is not running:
            seen.append(running)
            running.run(table.initializer)
        random = np.random.default_rng(next(turns) % 3)
        chosen = (ROWS ** random.random(shape) - 1).astype(ids.numpy)  # a few rows again and again
        return running.run([before, *after], {"which:0": chosen})

    check_steps(graph, step, times=3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bad", [-1, ROWS, 2**31 - 1])
def test_numbers_out_of_range(mode: str, bad: int) -> None:
    with gm.Graph().as_default() as graph:
        table = _table(True)
        which = gm.placeholder(gm.int32, [50], name="which")
        row = ops.resource_gather(table.handle, which, dtype=gm.float32, name="gathered")
        change = ops.resource_scatter_add(table.handle, which, positive(50, WIDTH), name="change")
        value = table.read_value()
    chosen = np.arange(50, dtype=np.int32) % ROWS
    chosen[[7, 30]] = bad
    with session(graph, mode) as running:
        running.run(table.initializer)
        first = running.run(value)
        running.run(row, {"which:0": chosen % ROWS})
        for fetch in (row, change):
            with pytest.raises(InvalidArgumentError, match=rf"\[7\] = {bad} is not in \[0, {ROWS}\)"):
                running.run(fetch, {"which:0": chosen})
        np.testing.assert_array_equal(running.run(value), first)


def test_a_variable_with_another_array() -> None:
    """Between the steps the variable is assigned, transposed values too; what was fetched stays as it was."""
    with gm.Graph().as_default() as graph:
        table = _table(True)
        which = gm.placeholder(gm.int32, [50], name="which")
        fed = gm.placeholder(gm.float32, [WIDTH, ROWS], name="fed")
        row = ops.resource_gather(table.handle, which, dtype=gm.float32)
        with gm.control_dependencies([row]):
            change = ops.resource_scatter_sub(table.handle, which, positive(50, WIDTH))
        assign = table.assign(gm.transpose(fed))
        value = table.read_value()
    chosen = {"which:0": (np.arange(50) * 7 % 23).astype(np.int32)}

    def work(running: Any) -> list[Any]:
        running.run(table.initializer)
        seen: list[Any] = []
        for turn in range(4):
            seen += [running.run([row, change], chosen)[0], running.run(value)]
            if turn % 2:
                running.run(assign, {"fed:0": numbers(WIDTH, ROWS, seed=turn)})
        return seen

    check_steps(graph, work)


def _bounds(draw: Any, size: int) -> tuple[int, int, int]:
    begin = draw(st.integers(0, size - 1))
    return begin, draw(st.integers(begin + 1, size)), draw(st.sampled_from([1, 1, 1, 2]))


@st.composite
def _slices(draw: Any) -> list[tuple[tuple[int, int, int], ...]]:
    shape = (12, 9, 4)
    return [tuple(_bounds(draw, size) for size in shape) for _ in range(draw(st.integers(1, 4)))]


@settings(deadline=None, max_examples=12)
@given(parts=_slices(), whole_rows=st.booleans(), shrink=st.booleans())
def test_slices(parts: list[tuple[tuple[int, int, int], ...]], whole_rows: bool, shrink: bool) -> None:
    """Slices of slices of what is in the arena and of what is fed, changed in place where nobody else looks."""
    made: list[Any] = []
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [12, 9, 4], name="x")
        for source in (ops.tanh(x) + 1.0, x):
            for part in parts:
                chosen = [(a, b, c) if not whole_rows or axis == 0 else (0, s, 1)
                          for axis, ((a, b, c), s) in enumerate(zip(part, (12, 9, 4), strict=True))]  # fmt: skip
                begin, end, strides = (_ints(list(each)) for each in zip(*chosen, strict=True))
                if shrink:
                    taken = ops.strided_slice(source, begin, end, np.abs(strides), shrink_axis_mask=1)
                else:
                    taken = ops.strided_slice(source, begin, end, strides)
                half = ops.slice(
                    ops.exp(taken), np.zeros(2 + (not shrink), np.int32), _ints([1] + [-1] * (1 + (not shrink)))
                )
                made += [ops.tanh(taken) * 2.0 - taken, half + 1.0]
        made.append(ops.concat_v2([gm.reshape(one, [-1]) for one in made], np.int32(0)))
    check_modes(graph, made, {"x:0": numbers(12, 9, 4)})


def test_small_joins_and_pads() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [3, 4], name="x")
        n = gm.placeholder(gm.int64, [3, 2], name="n")
        y, positive_ = ops.tanh(x), ops.greater(x, 0.0)
        made = [
            ops.concat_v2([y, x, np.ones((3, 1), np.float32), ops.exp(y)], np.int32(-1)),
            ops.concat_v2([n, n + 1, np.zeros((1, 2), np.int64)], np.int32(0)),
            ops.concat_v2([positive_, ops.logical_not(positive_)], np.int32(1)),
            ops.pad(y + x, _ints([[1, 2], [0, 3]])) * 2.0,
            ops.pad_v2(y, _ints([[0, 0], [2, 0]]), np.float32(-1.5)),
        ]
    check_modes(graph, made, {"x:0": numbers(3, 4), "n:0": np.arange(6).reshape(3, 2)})


@settings(deadline=None, max_examples=12)
@given(kind=st.sampled_from(["constant", "fed", "made"]), dtype=st.sampled_from([np.float32, np.int64, np.bool_]),
       ids=st.sampled_from([np.int32, np.int64]), seed=st.integers(0, 99))  # fmt: skip
def test_gathers_from_tensors(kind: str, dtype: Any, ids: Any, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 2 + (dtype is not np.bool_) * 90, (ROWS, 5, 7)).astype(dtype)
    with gm.Graph().as_default() as graph:
        x = (
            gm.constant(table)
            if kind == "constant"
            else gm.placeholder(from_numpy(table.dtype), [ROWS, 5, 7], name="x")
        )
        which = gm.placeholder(from_numpy(np.dtype(ids)), [6, 9], name="which")
        table_ = ops.reverse_v2(x, _ints([0])) if kind == "made" else x
        made = [ops.gather_v2(table_, which, np.int32(0)), ops.gather(table_, which)]
    feeds = {"which:0": np.random.default_rng(seed).integers(0, ROWS, (6, 9)).astype(ids)}
    feeds |= {} if kind == "constant" else {"x:0": table}
    check_modes(graph, made, feeds)
    feeds["which:0"][3, 2] = ROWS
    for mode in MODES:
        with session(graph, mode) as running, pytest.raises(InvalidArgumentError, match=rf"\[3,2\] = {ROWS} is not in"):
            running.run(made[0], feeds)


def test_the_plan_says_so() -> None:
    with gm.Graph().as_default() as graph:
        table = _table(True)
        x, which = gm.placeholder(gm.float32, [50, WIDTH], name="x"), gm.placeholder(gm.int32, [50], name="which")
        row = ops.resource_gather(table.handle, which, dtype=gm.float32)
        with gm.control_dependencies([row]):
            change = ops.resource_scatter_sub(table.handle, which, ops.tanh(x))
        small = ops.slice(ops.exp(x), _ints([3, 0]), _ints([9, WIDTH]))
    feeds = {"x:0": numbers(50, WIDTH), "which:0": np.arange(50, dtype=np.int32) % ROWS}
    with Session(graph) as running:
        running.run(table.initializer)
        said = "\n".join(running.explain([row, change, small], feeds))
    assert " alias " in said and " Slice " in said
    assert compiler() is None or ("gather_rows" in said and "scatter_rows" in said)


def test_small_sums() -> None:
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [3, 4, 5], name="x"), gm.placeholder(gm.int64, [3, 2], name="n")
        made: list[Any] = []
        for axes, keep in (([0], False), ([-1, 0], True), ([0, 1, 2], False), ([], False)):
            made += [ops.sum(ops.tanh(x), _ints(axes), keep_dims=keep), ops.mean(x, _ints(axes), keep_dims=keep)]
        made += [ops.sum(n, _ints([1])), ops.mean(n, _ints([0])), ops.mean(ops.cast(x, DstT=gm.float64), _ints([1]))]
        made += [total * 2.0 for total in made[:6]]
    check_modes(graph, made, {"x:0": numbers(3, 4, 5), "n:0": np.arange(6).reshape(3, 2)})
