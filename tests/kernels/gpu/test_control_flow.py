"""Loops, branches, functions, lists and stacks whose tensors are on a GPU give what the CPU gives."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit import client as gm
from toolkit.client.flow import control_flow
from toolkit.runtime.session import Session

ops = gm.ops
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
GPU = "/device:GPU:0"


def _agree(make: Callable[[Any], Any], *, force_tokens: bool = False) -> None:
    """A graph over a placeholder for X gives the same numbers on either device, to the bit: sums and products alone."""
    results: list[Any] = []
    for device in ("/device:CPU:0", GPU):
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, [None, 3])
            with graph.device(device):
                fetched = make(x)
        with Session(graph, devices={"GPU": 1}, precision="exact", force_tokens=force_tokens) as session:
            results.append(session.run(fetched, {x: X}))
            if device == GPU:
                (known,) = session.device_statistics().values()
                assert known.allocations > 0
    for here, there in zip(*results, strict=True):
        np.testing.assert_array_equal(there, here)


def _arrays(x: Any) -> Any:
    """A loop that reads one TensorArray and writes another, and its gradient (which are stacks and arrays again)."""
    given = gm.TensorArray(gm.float32, 4, clear_after_read=False).unstack(x)
    out = gm.TensorArray(gm.float32, 4)

    def body(i: Any, total: Any, out: Any) -> Any:
        total = given.read(i) * 2.0 + total
        return [i + 1, total, out.write(i, total)]

    state = [gm.constant(0), gm.constant(np.zeros(3, np.float32)), out]
    _, total, out = gm.while_loop(lambda i, total, out: i < 4, body, state)
    y = out.stack()
    return [y, total, gm.grad(y * y, x)[0]]


@pytest.mark.parametrize("force_tokens", [False, True])
def test_tensor_arrays_in_frames(force_tokens: bool) -> None:
    _agree(_arrays, force_tokens=force_tokens)


@pytest.mark.parametrize("force_tokens", [False, True])
def test_tensor_arrays_of_a_type_that_tensorflow_has_there_not(force_tokens: bool) -> None:
    """Positions and lengths stay on the host whatever the elements are."""

    def make(x: Any) -> Any:
        n = gm.cast(x * 10.0, gm.int64)
        rows = gm.TensorArray(gm.int64, 4, infer_shape=False, clear_after_read=False).scatter([0, 3, 2], n[:3])
        rows = rows.write(1, rows.read(0) + 1)
        parts = gm.TensorArray(gm.int64, 3, infer_shape=False, clear_after_read=False).split(n, [1, 0, 3])
        return [rows.gather([1, 3]), rows.stack(), rows.size(), parts.concat(), parts.read(2)]

    _agree(make, force_tokens=force_tokens)


def test_tensor_lists_in_functions() -> None:
    def make(x: Any) -> Any:
        control_flow.use_functions(True)
        try:
            return _arrays(x)
        finally:
            control_flow.use_functions(False)

    _agree(make)


def test_branches() -> None:
    def make(x: Any) -> Any:
        first = ops.reshape(x, [-1])[0]
        y = gm.cond(first < 0.0, lambda: x * 2.0, lambda: x - 1.0)
        z = gm.cond(first > 0.0, lambda: x * 2.0, lambda: x - 1.0)
        return [y, z, gm.grad(y * z, x)[0]]

    _agree(make)
    _agree(make, force_tokens=True)


def test_arrays_are_taken_apart_and_joined() -> None:
    def make(x: Any) -> Any:
        split = gm.TensorArray(gm.float32, 3, infer_shape=False, clear_after_read=False).split(x, [1, 0, 3])
        rows = gm.TensorArray(gm.float32, 4, clear_after_read=False).unstack(x)
        return [split.read(2), split.concat(), rows.gather([2, 0]), rows.stack()]

    _agree(make)


def test_lists() -> None:
    def make(x: Any) -> Any:
        kind, unknown = gm.float32, np.int32(-1)
        rows = ops.tensor_list_from_tensor(x, [3])
        pushed = ops.tensor_list_push_back(rows, x[0])
        changed = ops.tensor_list_set_item(pushed, 1, x[3])
        rest, last = ops.tensor_list_pop_back(changed, [3], element_dtype=kind)
        reserved = ops.tensor_list_reserve([3], 5, element_dtype=kind)
        scattered = ops.tensor_list_scatter_into_existing_list(reserved, x, [4, 1, 2, 0])
        split = ops.tensor_list_split(x, [-1, 3], [1, 3])
        doubled = ops.add_n([rest, ops.zeros_like(rest), rest])
        return [
            ops.tensor_list_stack(changed, [3], element_dtype=kind), last,
            ops.tensor_list_stack(scattered, [3], element_dtype=kind),
            ops.tensor_list_gather(rest, [2, 2, 0], [3], element_dtype=kind),
            ops.tensor_list_stack(doubled, [3], element_dtype=kind),
            ops.tensor_list_length(rest), ops.tensor_list_get_item(reserved, 2, [3], element_dtype=kind),
            ops.tensor_list_concat_v2(split, unknown, np.zeros(0, np.int64), kind)[0],
        ]  # fmt: skip

    _agree(make)


def test_a_loop_over_two_devices_with_stacks() -> None:
    """What goes into a stack of the host goes there in every step, whatever else of it is replayed as a CUDA graph."""
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [None, 3]), gm.placeholder(gm.int32, [])
        w = gm.constant(np.eye(3, dtype=np.float32) * 0.5)

        def body(i: Any, h: Any) -> Any:
            h = ops.mat_mul(h, w)
            with graph.device("/device:CPU:0"):
                return [i + 1, ops.tanh(h) * x]

        h = gm.while_loop(lambda i, h: i < n, body, [gm.constant(0), x])[1]
        gradient = gm.grad(ops.sum(h, [0, 1]), x)[0]
    expected: list[Any] = []
    for devices in ({}, {"GPU": 1}):
        with Session(graph, devices=devices, precision="exact") as session:
            results = [session.run([h, gradient], {x: X, n: np.int32(count)}) for count in (3, 2, 4, 0, 3)]
        if not devices:
            expected = results
        for given, wanted in zip(results, expected, strict=True):
            for a, b in zip(given, wanted, strict=True):
                tolerance.assert_within(a, b, 64 * tolerance.unit() * np.abs(b), "loop")  # some products in a row


def test_rows_are_chosen_by_a_condition_for_each() -> None:
    """Fused with other operations, and where there are as many columns as rows."""
    with gm.Graph().as_default() as graph:
        x, chosen = gm.placeholder(gm.float32, [3, 3]), gm.placeholder(gm.bool, [3])
        with graph.device(GPU):
            y = ops.select(chosen, x * 2.0, x + 1.0) * 0.5
    which = np.array([True, False, True])
    with Session(graph, devices={"GPU": 1}) as session:
        found = session.run(y, {x: X[:3], chosen: which})
    np.testing.assert_array_equal(found, np.where(which[:, None], X[:3] * 2, X[:3] + 1) / 2)
