"""What variables are assigned: made without large tensors in between, donated, and nobody else's afterwards."""

# functions over tensors, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import explained
from tests.compiler.modes import check_modes, check_steps
from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.compiler.backends.cpu.emission.instance import Emitted
from toolkit.runtime.session import Session

ops = gm.ops
initializers = gm.initializers
SHAPE = (256, 1031)  # more than a megabyte


def _variable(name: str, value: Any, resource: bool, shape: tuple[int, ...] = SHAPE) -> Any:
    return gm.get_variable(name, list(shape), initializer=lambda *_: value, use_resource=resource)


def _spread(start: int) -> Any:
    """Numbers about 0 that are computed from their positions."""
    place = ops.range(np.int64(start), np.int64(start + SHAPE[0] * SHAPE[1]), np.int64(1))
    even = ops.cast(ops.floor_mod(place * place, np.int64(10007)), DstT=gm.float32) / 5003.5 - 1.0
    return ops.reshape(even, list(SHAPE))


def _tables(resource: bool) -> tuple[Any, list[Any]]:
    with gm.Graph().as_default() as graph:
        tables = [
            _variable("a", _spread(3), resource),
            _variable("b", _spread(70), resource),
            _variable("c", ops.fill(np.array(SHAPE, np.int32), np.float32(0.1)), resource),
        ]
        drawn = [initializers.RandomUniform(-1, 1, seed=4), initializers.TruncatedNormal(0.5, 0.1, seed=5)]
        tables += [
            gm.get_variable(f"r{n}", list(SHAPE), initializer=make, use_resource=resource)
            for n, make in enumerate(drawn)
        ]
    return graph, tables


@pytest.mark.parametrize("resource", [True, False])
def test_tables_have_no_place_in_the_arena(resource: bool) -> None:
    """Each is made when its variable is assigned, and of a table's size there is nothing else."""
    graph, tables = _tables(resource)
    text = explained(graph, [table.initializer for table in tables], {})
    assert "arena 0 B" in text
    kinds = [line.split()[1] for line in text.splitlines() if "float32[" in line or "Assign" in line]
    tensors = [kind for kind in kinds if kind not in ("alias", "pin")]
    made = 0
    for kind in tensors:
        made = 0 if kind.startswith("Assign") else made + 1
        assert made <= 2, text  # what was drawn, and what becomes of it
    assert "int64[" not in text


@pytest.mark.parametrize("resource", [True, False])
def test_tables_are_the_same_in_every_mode(resource: bool) -> None:
    graph, tables = _tables(resource)
    with graph.as_default():
        values = [table.read_value() for table in tables]

    def step(running: Session) -> list[Any]:
        running.run([table.initializer for table in tables])
        return running.run(values)

    first = check_steps(graph, step)
    place = np.arange(70, 70 + SHAPE[0] * SHAPE[1])
    np.testing.assert_array_equal(
        first[1].reshape(-1), (place * place % 10007).astype(np.float32) / np.float32(5003.5) - np.float32(1)
    )


_OTHERS: dict[str, Callable[[Any, Any, Any], tuple[Any, list[Any]]]] = {
    "a result": lambda x, v, w: (y := ops.tanh(x) * 2.0, [y]),
    "a result in another shape": lambda x, v, w: (ops.reshape(y := ops.tanh(x) * 2.0, list(SHAPE)), [y]),
    "its other shape is a result": lambda x, v, w: (y := ops.tanh(x) * 2.0, [ops.reshape(y, [-1])]),
    "nobody else's": lambda x, v, w: (ops.reshape(ops.reshape(ops.tanh(x) * 2.0, [-1]), list(SHAPE)), []),
    "what is fed": lambda x, v, w: (x, [x]),
    "a constant": lambda x, v, w: (gm.constant(numbers(*SHAPE)), []),
    "a kernel's": lambda x, v, w: (ops.cumsum(x, 0), []),
    "a kernel's in another shape": lambda x, v, w: (ops.reshape(ops.cumsum(ops.reshape(x, [-1]), 0), list(SHAPE)), []),
    "a part": lambda x, v, w: (ops.slice(y := ops.cumsum(ops.concat_v2([x, x], 0), 0), [256, 0], list(SHAPE)), [y]),
    "a transposed kernel's": lambda x, v, w: (ops.transpose(ops.cumsum(ops.transpose(x, [1, 0]), 0), [1, 0]), []),
    "another variable": lambda x, v, w: (w.read_value(), []),
    "made of itself": lambda x, v, w: (v.read_value() * 0.5 + 1.0, []),
    "itself": lambda x, v, w: (v.read_value(), []),
    "one of its own and itself": lambda x, v, w: (ops.maximum(v.read_value(), ops.tanh(x)), []),
}


@pytest.mark.parametrize("resource", [True, False])
@pytest.mark.parametrize("case", _OTHERS)
def test_nobody_else_sees_what_is_written_later(case: str, resource: bool) -> None:
    """Two variables get a value, one of them is changed in place: the other, and what was fetched, stay."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, list(SHAPE), name="x")
        first, second, other = (
            _variable(name, gm.constant(numbers(*SHAPE, seed=n)), resource) for n, name in enumerate("vuw")
        )
        value, fetches = _OTHERS[case](x, first, other)
        with gm.control_dependencies([value.op, *(fetch.op for fetch in fetches)]):
            one, both = first.assign(value), [first.assign(value), second.assign(value)]
        change = first.assign_add(numbers(*SHAPE, seed=7))
        values = [each.read_value() for each in (first, second, other)]

    def ran(thing: Any) -> Any:
        return getattr(thing, "op", thing)

    def step(running: Session) -> list[Any]:
        running.run([each.initializer for each in (first, second, other)])
        seen: list[Any] = []
        fed = numbers(*SHAPE, seed=9)
        for assign in ([ran(one)], list(map(ran, both)), [ran(one)]):
            got = running.run([*fetches, *assign], {"x:0": fed})[: len(fetches)]
            kept = [each.copy() for each in got]
            running.run(ran(change))
            held = running.run(values)
            running.run(ran(change))
            for mine, copy in zip(got, kept, strict=True):
                np.testing.assert_array_equal(mine, copy)
            seen += [*got, *held]
        np.testing.assert_array_equal(fed, numbers(*SHAPE, seed=9))
        return seen

    check_steps(graph, step, modes=("node by node", "compiled", "compiled without LLVM", "compiled without oneDNN"))


@pytest.mark.parametrize("resource", [True, False])
def test_late_means_not_too_late(resource: bool) -> None:
    """What is read before an assignment is what was there before it."""
    with gm.Graph().as_default() as graph:
        v, w = (_variable(name, gm.constant(numbers(*SHAPE)), resource) for name in "vw")
        before = v.read_value() * 2.0
        with gm.control_dependencies([before]):
            assign = v.assign(_spread(1) * 3.0)
        with gm.control_dependencies([getattr(assign, "op", assign)]):
            more = w.assign(before + _spread(2))
        with gm.control_dependencies([getattr(more, "op", more)]):
            values = [v.read_value(), w.read_value(), before]

    def step(running: Session) -> list[Any]:
        running.run([v.initializer, w.initializer])
        return [*running.run(values), *running.run(values)]

    check_steps(graph, step)


def test_arenas_of_initialisers_do_not_outlive_the_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    arenas: list[weakref.ref[Any]] = []
    instantiate = Emitted.instantiate

    def noted(emitted: Emitted) -> Any:
        made = instantiate(emitted)
        arenas.append(weakref.ref(made.arena))
        return made

    monkeypatch.setattr(Emitted, "instantiate", noted)
    with gm.Graph().as_default() as graph:
        value = ops.tanh(_spread(5))  # of two variables, so that none can have it
        v, w = (_variable(name, value, True) for name in "vw")
        step = _variable("s", gm.constant(numbers(*SHAPE)), True)
        change = step.assign_sub(ops.tanh(step.read_value() * 2.0) + 1.0)
        values = [v.read_value(), w.read_value()]
    with Session(graph) as running:
        gc.disable()  # only the counting of references may free them
        try:
            initialise = [v.initializer, w.initializer]
            assert "arena 1.0 MB" in "\n".join(running.explain(initialise))
            running.run(initialise)
            assert [arena() for arena in arenas] == [None]
            first = running.run(values)
            running.run(initialise)  # it is not the only time, so the arena is kept
            assert arenas[-1]() is not None
            count = len(arenas)
            running.run(initialise)
            running.run(step.initializer)
            del arenas[:count]
            running.run(change.op if hasattr(change, "op") else change)
            assert arenas[-1]() is not None
        finally:
            gc.enable()
        for one, two in zip(first, running.run(values), strict=True):
            np.testing.assert_array_equal(one, two)


_LEAST = {np.int32: -(2**31), np.int64: -(2**63)}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [1, 15, 70_001])
def test_quotients_of_integers(dtype: Any, size: int) -> None:
    random = np.random.default_rng(size)
    least = _LEAST[dtype]
    x = random.integers(least, -(least + 1), size, dtype)
    x[: min(size, 6)] = [least, -(least + 1), 0, -1, 1, -7][:size]
    with gm.Graph().as_default() as graph:
        fed = gm.placeholder(gm.dtypes.from_numpy(np.dtype(dtype)), [size], name="x")
        fetches: list[Any] = []
        for divisor in (1, -1, 2, -2, 7, -7, 10007, -(least + 1), least):
            by = dtype(divisor)
            fetches += [ops.floor_mod(fed + dtype(1), by) - dtype(1), ops.floor_div(fed - dtype(1), by) * dtype(3)]
        fetches.append(ops.floor_mod(fed, (np.arange(size) + 1).astype(dtype)) + dtype(1))
    check_modes(graph, fetches, {"x:0": x})


@pytest.mark.parametrize(("start", "limit", "delta"), [
    (0, 70_001, 1), (5, -300_000, -3), (-7, 9, 16), (2**31 - 17, 2**31 - 1, 1), (0, 0, 1), (3, 20, 1), (0, 300_000, 1),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_ranges_and_fills(dtype: Any, start: int, limit: int, delta: int) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [], name="x")
        places = ops.range(dtype(start), dtype(limit), dtype(delta))
        size = len(range(start, limit, delta))
        filled = ops.fill(np.array([size], np.int32), x * 2.0)
        fetches = [
            places * dtype(3) - dtype(1), ops.cast(places, DstT=gm.float32) * filled + filled, places,
            ops.neg(filled), ops.fill(np.array([size, 2], np.int32), x) * x + ops.fill(np.array([2], np.int32), x),
        ]  # fmt: skip
    check_modes(graph, fetches, {"x:0": np.float32(1.25)})
