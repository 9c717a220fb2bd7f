"""Arrays, stacks and lists whose elements are rows of one tensor, against TensorFlow."""

# functions over tensors of TensorFlow, which have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.runtime.oracle import Both, assert_same
from toolkit.errors import GraphmillError
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
_ROWS = 4


def _random_uses(v1: Any, seed: int) -> None:
    """Writes and reads of an array in some order, which may turn out to be errors."""
    raw, random = v1.raw_ops, np.random.default_rng(seed)
    x = v1.placeholder("float32", [_ROWS, 3], name="x")
    keeps, dynamic = bool(random.integers(2)), bool(random.integers(2))
    handle, flow = raw.TensorArrayV3(
        size=_ROWS, dtype=v1.float32, element_shape=[None, [3], [None]][random.integers(3)], dynamic_size=dynamic,
        clear_after_read=not keeps, identical_element_shapes=bool(random.integers(2)), tensor_array_name="a",
    )  # fmt: skip
    made: list[Any] = []

    def scatter(value: Any, places: list[int]) -> Any:
        return raw.TensorArrayScatterV3(handle=handle, indices=places, value=value, flow_in=flow)

    everything = list(range(_ROWS))
    with v1.control_dependencies([scatter(x, everything if random.random() < 0.8 else everything[::-1])]):
        previous = v1.no_op()
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(_ROWS + dynamic))
        with v1.control_dependencies([previous]):
            match random.choice(["all", "some", "read", "write", "size", "concat", "again"]):
                case "all":
                    made.append(raw.TensorArrayGatherV3(handle=handle, indices=everything, flow_in=flow,
                                                        dtype=v1.float32))  # fmt: skip
                case "some":
                    places = random.permutation(_ROWS)[: random.integers(1, _ROWS + 1)].tolist()
                    made.append(raw.TensorArrayGatherV3(handle=handle, indices=places, flow_in=flow,
                                                        dtype=v1.float32))  # fmt: skip
                case "read":
                    made.append(raw.TensorArrayReadV3(handle=handle, index=at, flow_in=flow, dtype=v1.float32))
                case "write":
                    made.append(raw.TensorArrayWriteV3(handle=handle, index=at, value=[1.0, 2.0, 3.0], flow_in=flow))
                case "size":
                    made.append(raw.TensorArraySizeV3(handle=handle, flow_in=flow))
                case "concat":
                    made.append(raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=v1.float32)[0])
                case _:
                    made.append(scatter(x * 2.0, everything))
            with v1.control_dependencies([made[-1]]):
                previous = v1.no_op()
    with v1.control_dependencies([previous]):
        for index, tensor in enumerate(made):
            v1.identity(tensor, name=f"out{index}")


@pytest.mark.parametrize("seed", range(40))
def test_uses_of_an_array_that_was_written_at_once(seed: int, tf: ModuleType) -> None:
    both = Both(tf, lambda v1: _random_uses(v1, seed))
    fetches = [f"{node.name}:0" for node in both.graph if node.name.startswith("out")]
    feeds = {"x:0": np.random.default_rng(seed).normal(size=(_ROWS, 3)).astype(np.float32)}
    with both.v1.Session(graph=both.tf_graph) as theirs, Session(both.graph) as ours:
        for _ in range(2):
            try:
                wanted = theirs.run(fetches, feeds)
            except tf.errors.OpError as error:
                with pytest.raises(GraphmillError) as caught:
                    ours.run(fetches, feeds)
                assert getattr(caught.value, "code", None) == error.error_code
                continue
            for name, mine, reference in zip(fetches, ours.run(fetches, feeds), wanted, strict=True):
                assert_same(mine, reference, name)


def test_what_is_gathered_at_once_stays(tf: ModuleType) -> None:
    """The tensor that was scattered, a gathered one and a result of an earlier step never change."""

    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [_ROWS, 3], name="x")
        array = v1.TensorArray("float32", _ROWS, clear_after_read=False, element_shape=[3]).unstack(x)
        filled = v1.while_loop(
            lambda i, _: i < _ROWS, lambda i, out: (i + 1, out.write(i, array.read(i) * 2.0)),
            [0, v1.TensorArray("float32", _ROWS, element_shape=[3], clear_after_read=False)],
        )[1]  # fmt: skip
        whole = filled.stack()
        v1.identity(whole, name="out0")
        v1.identity(array.stack() + whole, name="out1")
        v1.identity(filled.gather([2, 1]), name="out2")
        v1.identity(filled.stack(), name="out3")

    random = np.random.default_rng(0)
    names = [f"out{index}:0" for index in range(4)]
    for v2 in (False, True):
        both = Both(tf, build, control_flow_v2=v2)
        with Session(both.graph) as running:
            kept: list[Any] = []
            for _ in range(4):
                x = random.normal(size=(_ROWS, 3)).astype(np.float32)
                fed = x.copy()
                got = running.run(names, {"x:0": fed})
                kept.append((got, [2 * x, 3 * x, 2 * x[[2, 1]], 2 * x], fed, x))
            for got, wanted, fed, x in kept:
                np.testing.assert_array_equal(fed, x)
                for mine, reference in zip(got, wanted, strict=True):
                    np.testing.assert_array_equal(mine, reference)
