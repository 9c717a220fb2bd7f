"""Loop nests over odd shapes and places, on several threads; sums; whole loops iteration by iteration."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.native.harness import call, machine, run_nest
from toolkit.kernels.cpu.native.code import LANES, TYPES
from toolkit.kernels.cpu.native.iterations import (
    BASE,
    CAPACITY,
    FLAGS,
    GONE,
    LENGTH,
    LIMIT,
    SET,
    STATUS,
    Iterations,
    Status,
)
from toolkit.kernels.cpu.native.loops import MASK, Operand, nest
from toolkit.kernels.cpu.native.numbers import Numbers
from toolkit.kernels.cpu.native.sums import sums
from toolkit.kernels.cpu.onednn.library import library, set_threads

_NAMES = ["float32", "float64", "int32", "int64"]


def _numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.asarray(np.random.default_rng(seed).normal(size=shape) * 100).astype(dtype)


# -- nests -------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    shape=st.lists(st.integers(1, 9) | st.sampled_from([16, 17, 33]), min_size=0, max_size=4),
    kept=st.integers(0, 255), dtype=st.sampled_from(_NAMES), dropped=st.integers(0, 2), in_text=st.booleans(),
)  # fmt: skip
def test_broadcasts(shape: list[int], kept: int, dtype: str, dropped: int, in_text: bool) -> None:
    whole = tuple(shape)
    other = tuple(size if (kept >> axis) & 1 else 1 for axis, size in enumerate(whole))[dropped:]
    third = tuple(size if (kept >> (axis + 4)) & 1 else 1 for axis, size in enumerate(whole))
    a, b, c = _numbers(whole, dtype), _numbers(other, dtype, 1), _numbers(third, dtype, 2)
    got = run_nest(
        [a, b, c], [dtype, "bool"],
        lambda code, x: [code.add(code.sub(x[0], x[1]), x[2]), code.compare(*_less(dtype), x[1], x[2])],
        in_text=in_text,
    )  # fmt: skip
    np.testing.assert_array_equal(got[0], a - b + c)
    np.testing.assert_array_equal(got[1], np.broadcast_to(b < c, whole))


def _less(dtype: str) -> tuple[str]:
    return ("olt" if dtype.startswith("float") else "slt",)


@pytest.mark.parametrize("dtype", _NAMES)
def test_windows(dtype: str) -> None:
    """Parts of tensors, read where they are."""
    x = _numbers((7, 9, 21), dtype)
    for window in (x[2:5, 1:7, 3:20], x[6], x[:, 4], x[3:4, :, :], x[:, :, :1], x[1:2, 2:3, 4:5], x[::2, ::3, :16]):
        steps = tuple(step // x.itemsize for step in window.strides)
        out = np.full(window.size + 64, 99, dtype)
        text = nest(
            window.shape, [Operand(TYPES[dtype], steps)],
            [Operand(TYPES[dtype], tuple(np.cumprod([1, *window.shape[:0:-1]])[::-1].tolist()))],
            lambda code, given: [code.add(given[0], given[0])], calls=False, spread=False,
        )  # fmt: skip
        call(text, [window, out])
        np.testing.assert_array_equal(out[: window.size].reshape(window.shape), window + window)
        np.testing.assert_array_equal(out[window.size :], np.full(64, 99, dtype))


@pytest.mark.parametrize("dtype", _NAMES)
@pytest.mark.parametrize("columns", [1, 2, 16, 17])
def test_columns_are_written_between_others(dtype: str, columns: int) -> None:
    x = _numbers((24, columns), dtype)
    out = np.full((24, columns + 8), 99, dtype)
    text = nest(
        x.shape, [Operand(TYPES[dtype], (columns, 1))], [Operand(TYPES[dtype], (columns + 8, 1))],
        lambda code, given: [code.add(given[0], given[0])], calls=False, spread=False,
    )  # fmt: skip
    call(text, [x, out])
    np.testing.assert_array_equal(out[:, :columns], x + x)
    np.testing.assert_array_equal(out[:, columns:], np.full((24, 8), 99, dtype))


@pytest.mark.parametrize("left", [1, 15, 16, 17, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 1, 2**63 - 1])
def test_lanes_are_those_that_are_left_of_any_number_of_elements(left: int) -> None:
    """Arrays of more than 2**32 elements have no room here; what says which lanes there are is asked by itself."""
    text = "\n".join([
        "define void @run(ptr %operands) {", "  %left_at = getelementptr i64, ptr %operands, i64 1",
        "  %left = load i64, ptr %left_at", *MASK, f"  %bytes = zext <{LANES} x i1> %mask to <{LANES} x i8>",
        "  %out = load ptr, ptr %operands", f"  store <{LANES} x i8> %bytes, ptr %out, align 1", "  ret void", "}", "",
    ])  # fmt: skip
    out = np.full(LANES, 99, np.uint8)
    call(text, [out], numbers=[left])
    np.testing.assert_array_equal(out, np.arange(LANES) < left)


@pytest.mark.parametrize("spread", [False, True])
def test_nests_of_one_form_have_one_text_whatever_their_sizes(spread: bool) -> None:
    def made(*shape: int) -> tuple[str, list[int]]:
        numbers = Numbers(2)
        whole = Operand("float", tuple(np.cumprod([1, *shape[:0:-1]])[::-1].tolist()))
        row = Operand("float", (shape[1], 0, 1))
        text = nest(
            shape, [row], [whole], lambda code, x: [code.mul(x[0], numbers.lanes(shape[0], "float"))], calls=False,
            spread=spread, numbers=numbers,
        )  # fmt: skip
        return text, numbers.given

    texts = {made(*shape)[0] for shape in ((3, 5, 7), (16, 2, 33), (2, 64, 16))}
    assert len(texts) == 1
    assert made(3, 5, 7)[1] != made(16, 2, 33)[1]


@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan, 1e-45])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_are_given_bit_by_bit(dtype: str, value: float) -> None:
    _given_to_every_lane(np.asarray(value, dtype))


@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_numbers_are_given_as_they_are(dtype: str, value: int) -> None:
    _given_to_every_lane(np.asarray(value, dtype))


def _given_to_every_lane(value: Any) -> None:
    out = np.full(40, 99, value.dtype)
    numbers, kind = Numbers(1), TYPES[value.dtype.name]
    text = nest(
        (40,), [], [Operand(kind, (1,))], lambda code, x: [numbers.lanes(value.item(), kind)], calls=False,
        spread=False, numbers=numbers,
    )  # fmt: skip
    call(text, [out], numbers=numbers.given)
    assert out.tobytes() == np.full(40, value).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    "shape", [(1 << 20,), ((1 << 20) + 5,), (3, 400_001), (1031, 1033), (2, 7, 100_003), (5000, 300)]
)
def test_threads_share_a_long_nest(shape: tuple[int, ...], threads: int) -> None:
    if library() is None:
        return  # without the runtime of OpenMP there is one thread
    x, y = _numbers(shape, "float32"), _numbers(shape[-1:], "float32", 1)
    set_threads(threads)
    try:
        got = run_nest([x, y], ["float32"], lambda code, given: [code.mul(given[0], given[1])], spread=True)
    finally:
        set_threads(1)
    np.testing.assert_array_equal(got[0], x * y)


# -- sums --------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    outer=st.sampled_from([1, 2, 5]), reduced=st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 40, 1000]),
    inner=st.sampled_from([1, 2, 3, 15, 16, 17, 50]), dtype=st.sampled_from(["float32", "float64"]),
    mean=st.booleans(),
)  # fmt: skip
def test_sums(outer: int, reduced: int, inner: int, dtype: str, mean: bool) -> None:
    x = _numbers((outer, reduced, inner), dtype)
    y = np.full(outer * inner + 64, 99, dtype)
    factor = 1.0 / reduced if mean else 1.0
    text, given = sums(outer, reduced, inner, TYPES[dtype], factor)
    call(text, [x, y], numbers=given)
    wanted = x.astype(np.longdouble).sum(1) * factor
    scale = np.abs(x).astype(np.float64).sum(1) * factor
    got = y[: outer * inner].reshape(outer, inner)
    assert np.all(np.abs(got - wanted) <= scale * np.finfo(dtype).eps * (4 + reduced / 16))
    np.testing.assert_array_equal(y[outer * inner :], np.full(64, 99, dtype))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("inner", [1, 3, 20])
def test_sums_of_special_values(special: float, inner: int) -> None:
    """One of them is seen by its own sum alone."""
    x = np.ones((2, 37, inner), np.float32)
    x[1, 30, inner - 1] = special
    y = np.zeros((2, inner), np.float32)
    text, given = sums(2, 37, inner, "float", 1.0)
    call(text, [x, y], numbers=given)
    np.testing.assert_array_equal(y, x.sum(1))


# -- iterations -------------------------------------------------------------------------------------------------------


class _Table:
    """A loop that is called with a table, as the runtime does."""

    def __init__(self, iterations: Iterations, entries: dict[int, Any], limit: int = 1000):
        self.function = machine().function(iterations.text(), {})
        self.table: Any = (ctypes.c_int64 * iterations.entries)()
        self.keep = entries | iterations.numbers
        for entry, thing in self.keep.items():
            self.table[entry] = thing if isinstance(thing, int) else thing.__array_interface__["data"][0]
        self.table[LIMIT] = limit

    def call(self) -> Status:
        self.function.call(ctypes.addressof(self.table))
        return Status(self.table[STATUS])

    def bind(self, sequence: Any, array: Any, length: int, flags: Any = None) -> None:
        self.keep[id(sequence)] = (array, flags)
        self.table[sequence.entry + BASE] = array.__array_interface__["data"][0]
        self.table[sequence.entry + LENGTH] = length
        self.table[sequence.entry + CAPACITY] = len(array)
        self.table[sequence.entry + FLAGS] = 0 if flags is None else flags.__array_interface__["data"][0]


def test_a_stack_grows_and_the_loop_goes_on() -> None:
    iterations = Iterations()
    stack = iterations.sequence(8, flags=False, once=False)
    go, value = iterations.reserve(), iterations.reserve()
    iterations.test(go)
    iterations.push(stack, value)
    iterations.push(stack, value)
    loop = _Table(iterations, {go: np.array([True]), value: np.array([7], np.int64)}, limit=10)
    array = np.full(5, -1, np.int64)
    loop.bind(stack, array, 1)
    assert loop.call() is Status.GROW
    assert loop.table[stack.entry + LENGTH] == 5
    np.testing.assert_array_equal(array, [-1, 7, 7, 7, 7])
    larger = np.full(100, -1, np.int64)
    larger[:5] = array
    loop.bind(stack, larger, 5)
    assert loop.call() is Status.PAUSED
    assert loop.table[stack.entry + LENGTH] == 25
    loop.keep[go][0] = False
    assert loop.call() is Status.DONE
    assert loop.table[stack.entry + LENGTH] == 25
    np.testing.assert_array_equal(larger[5:25], np.full(20, 7))
    np.testing.assert_array_equal(larger[25:], np.full(75, -1))


def test_pops_end_where_nothing_is_left() -> None:
    iterations = Iterations()
    stack = iterations.sequence(4, flags=False, once=False)
    out = iterations.reserve()
    iterations.pop(stack, out)
    iterations.drop(stack)
    target = np.zeros(1, np.float32)
    loop = _Table(iterations, {out: target})
    loop.bind(stack, np.arange(5, dtype=np.float32), 5)
    assert loop.call() is Status.IRREGULAR
    assert (loop.table[stack.entry + LENGTH], target[0]) == (1, 0)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("index", [-1, 3, -(1 << 31), (1 << 31) - 1])
def test_indices_out_of_range(index: int, bits: int) -> None:
    for write in (False, True):
        iterations = Iterations()
        array = iterations.sequence(4, flags=True, once=True)
        at, value = iterations.reserve(), iterations.reserve()
        (iterations.set if write else iterations.get)(array, at, bits, value)
        held = np.zeros(3, np.float32)
        loop = _Table(iterations, {at: np.array([index], f"int{bits}"), value: np.ones(1, np.float32)})
        loop.bind(array, held, 3, np.full(3, SET, np.uint8))
        assert loop.call() is Status.IRREGULAR
        np.testing.assert_array_equal(held, np.zeros(3))


def test_elements_that_are_set_and_gone() -> None:
    iterations = Iterations()
    array = iterations.sequence(4, flags=True, once=True)
    at, value = iterations.reserve(), iterations.reserve()
    iterations.get(array, at, 32, value)
    target, flags = np.zeros(1, np.float32), np.array([SET, SET, 0], np.uint8)
    loop = _Table(iterations, {at: np.array([1], np.int32), value: target}, limit=1)
    loop.bind(array, np.arange(3, dtype=np.float32), 3, flags)
    assert (loop.call(), target[0], list(flags)) == (Status.PAUSED, 1, [SET, GONE, 0])
    assert loop.call() is Status.IRREGULAR
    loop.keep[at][0] = 2
    assert loop.call() is Status.IRREGULAR


def test_a_loop_makes_as_many_turns_as_it_may() -> None:
    iterations = Iterations()
    counter = iterations.sequence(1, flags=False, once=False)
    value = iterations.reserve()
    iterations.push(counter, value)
    loop = _Table(iterations, {value: np.zeros(1, np.int8)}, limit=7)
    loop.bind(counter, np.zeros(100, np.int8), 0)
    for made in (7, 14, 21):
        assert loop.call() is Status.PAUSED
        assert loop.table[counter.entry + LENGTH] == made
