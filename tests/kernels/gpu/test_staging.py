"""What is put aside stays in the memory of the GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.client.inputs.staging import StagingArea
from toolkit.errors import InvalidArgumentError, NotFoundError
from toolkit.kernels.cuda.device import device
from toolkit.runtime.session import Session

ops = gm.ops
GPU, CPU = "/device:GPU:0", "/device:CPU:0"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("force_tokens", [False, True])
def test_tuples_are_staged_and_taken_in_order(force_tokens: bool) -> None:
    with gm.Graph().as_default() as graph, graph.device(GPU):
        x = gm.placeholder(gm.float32, [2, 3])
        area: Any = StagingArea([gm.float32], [[2, 3]], names=["x"])
        put, size = area.put({"x": x * 2.0}), area.size()
        taken = area.get()["x"] + 1.0
    with Session(graph, devices={"GPU": 1}, force_tokens=force_tokens) as session:
        before = device(0).memory.statistics().allocations
        for factor in (1, 10):  # a second step of one plan uses its memory again
            session.run(put, {x: factor * X})
        assert session.run(size) == 2
        assert device(0).memory.statistics().allocations > before
        for factor in (1, 10):
            np.testing.assert_array_equal(session.run(taken), 2 * factor * X + 1)
        assert session.run(size) == 0


def test_keys_are_staged_and_taken() -> None:
    attributes: dict[str, Any] = {"dtypes": [gm.float32], "capacity": 0, "memory_limit": 0, "shared_name": "kept"}
    with gm.Graph().as_default() as graph, graph.device(GPU):
        x = gm.placeholder(gm.float32, [2, 3])
        key, first = gm.constant(7, gm.int64), gm.constant([0], gm.int32)
        put = ops.ordered_map_stage(key, first, [x * 2.0], **attributes)
        peeked = ops.ordered_map_peek(key, first, **attributes)
        taken = ops.ordered_map_unstage_no_key(first, **attributes)
        clear = ops.ordered_map_clear(**attributes)
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(put, {x: X})
        np.testing.assert_array_equal(session.run(peeked[0] if isinstance(peeked, list) else peeked), 2 * X)
        found = session.run(taken)
        assert found[0] == 7
        np.testing.assert_array_equal(np.asarray(found[1]).reshape(X.shape), 2 * X)
        session.run(clear)


@pytest.mark.parametrize(("kept_on", "read_on"), [(GPU, GPU), (GPU, CPU), (CPU, GPU)])
def test_tensors_are_kept_by_the_session(kept_on: str, read_on: str) -> None:
    """And are what they were, though the step that made them has run again."""
    with gm.Graph().as_default() as graph:
        with graph.device(kept_on):
            x = gm.placeholder(gm.float32, [2, 3])
            handle, resource = ops.get_session_handle(x * 2.0), ops.get_session_handle_v2(x * 3.0)
        with graph.device(read_on):
            given = gm.placeholder(gm.string, [])
            read = ops.get_session_tensor(given, dtype=gm.float32) + 1.0
            wrong = ops.get_session_tensor(given, dtype=gm.float64)
        delete = ops.delete_session_tensor(given)
    with Session(graph, devices={"GPU": 1}) as session:
        before = device(0).memory.statistics().allocations
        session.run(resource.op, {x: X})
        assert kept_on == CPU or device(0).memory.statistics().allocations > before
        first, second = (session.run(handle, {x: factor * X}) for factor in (1, 10))
        for name, factor in ((first, 1), (second, 10), (first, 1)):
            np.testing.assert_array_equal(session.run(read, {given: name}), 2 * factor * X + 1)
        with pytest.raises(InvalidArgumentError, match="has type float32, not float64"):
            session.run(wrong, {given: first})
        session.run(delete, {given: first})
        with pytest.raises(NotFoundError, match="was it deleted"):
            session.run(read, {given: first})


def test_what_nobody_reads_has_its_shape() -> None:
    with gm.Graph().as_default() as graph, graph.device(GPU):
        made = ops.fake_param(dtype=gm.float32, shape=[2, 3])
        shape = ops.shape(made)
    with Session(graph, devices={"GPU": 1}) as session:
        assert session.run(shape).tolist() == [2, 3]


@pytest.mark.parametrize(("put_on", "taken_on"), [(GPU, CPU), (CPU, GPU), (GPU, GPU), (CPU, CPU)])
@pytest.mark.parametrize("waits", [False, True])
def test_what_one_device_puts_aside_another_takes(put_on: str, taken_on: str, waits: bool) -> None:
    attributes: dict[str, Any] = {
        "dtypes": [gm.float32, gm.int32], "capacity": 0, "memory_limit": 0, "shared_name": "shared",
    }  # fmt: skip
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.int32, [2])
        with graph.device(put_on):
            put = ops.stage([x * 2.0, n], capacity=0, memory_limit=0, shared_name="tuples")
            keyed = ops.map_stage(gm.constant(7, gm.int64), gm.constant([0, 1], gm.int32), [x * 3.0, n], **attributes)
        with graph.device(taken_on):
            peeked = ops.stage_peek(gm.constant(0, gm.int32), capacity=0, memory_limit=0, shared_name="tuples",
                                    dtypes=[gm.float32, gm.int32])  # fmt: skip
            taken = ops.unstage(capacity=0, memory_limit=0, shared_name="tuples", dtypes=[gm.float32, gm.int32])
            found = ops.map_unstage_no_key(gm.constant([0, 1], gm.int32), **attributes)
            first, second = taken[0] + 1.0, found[1][0] + 1.0
    given = {x: X, n: np.array([4, 5], np.int32)}
    with Session(graph, devices={"GPU": 1}) as session:
        if waits:  # both in one step: whoever puts something aside wakes whoever waits for it
            got = session.run([first, taken[1], put], given)
        else:
            session.run(put, given)
            np.testing.assert_array_equal(session.run(peeked[0]), 2 * X)
            got = session.run([first, taken[1]])
        np.testing.assert_array_equal(got[0], 2 * X + 1)
        np.testing.assert_array_equal(got[1], [4, 5])
        session.run(keyed, given)
        key, value, number = session.run([found[0], second, found[1][1]])
        assert key == 7
        np.testing.assert_array_equal(value, 3 * X + 1)
        np.testing.assert_array_equal(number, [4, 5])
