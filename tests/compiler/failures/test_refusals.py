"""What one mode refuses, every mode refuses, with the same error at the same node; the session goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from schemas.graph_pb2 import GraphDef
from tests import perturbation
from tests.compiler.modes import MODES, session
from tests.compiler.operations.rows import numbers
from toolkit import client as gm
from toolkit.errors import FailedPreconditionError, GraphmillError
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session

ops = gm.ops
_POOL = {"ksize": [1, 9, 9, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
_CONV = {"strides": [1, 1, 1, 1], "padding": "VALID"}
_W = numbers(3, 3, 8, 8)
_G = (2, 13, 14, 8)

#: name -> shapes that are right, shapes that are wrong, the function; shapes are not known while the graph is built
CASES: dict[str, tuple[tuple[Any, ...], tuple[Any, ...], Callable[..., Any]]] = {
    "product": (((64, 65), (65, 64)), ((64, 65), (64, 65)), ops.mat_mul),
    "product of constants": (((64, 65),), ((65, 64),), lambda x: ops.relu(ops.mat_mul(x, numbers(65, 64)) + 1.0)),
    "product of rank 3": (((64, 65),), ((2, 64, 65),), lambda x: ops.mat_mul(x, numbers(65, 64))),
    "batched product": (((3, 20, 64), (3, 64, 20)), ((3, 20, 64), (2, 64, 20)), ops.batch_mat_mul_v2),
    "conv": ((_G,), ((2, 13, 14, 7),), lambda x: ops.conv2d(x, _W, **_CONV)),
    "conv of a small image": ((_G,), ((2, 1, 14, 8),), lambda x: ops.conv2d(x, _W, **_CONV)),
    "conv of rank 3": ((_G,), ((13, 14, 8),), lambda x: ops.conv2d(x, _W, **_CONV)),
    "depthwise": ((_G,), ((2, 13, 14, 9),), lambda x: ops.depthwise_conv2d_native(x, _W, **_CONV)),
    "pool": ((_G,), ((2, 7, 14, 8),), lambda x: ops.max_pool(x, **_POOL)),
    "average": ((_G,), ((2, 13, 7, 8),), lambda x: ops.avg_pool(x, **_POOL)),
    "sum of two": (((64, 65), (65,)), ((64, 65), (64,)), lambda x, y: ops.relu(x + y)),
    "sum of many": (((64, 65), (64, 65)), ((64, 65), (65, 64)), lambda x, y: ops.add_n([x, y])),
    "bias": ((_G, (8,)), (_G, (7,)), ops.bias_add),
    "bias of a conv": ((_G, (8,)), (_G, (14,)), lambda x, b: ops.relu(ops.bias_add(ops.conv2d(x, _W, **_CONV), b))),
    "constant bias of a conv": ((_G, (3, 3, 8, 8)), (_G, (3, 3, 8, 7)), lambda x, w: ops.relu(
        ops.bias_add(ops.conv2d(x, w, **_CONV), numbers(8)))),
    "join": (((64, 65), (64, 3)), ((64, 65), (63, 3)), lambda x, y: ops.concat_v2([x, y], 1)),
    "join of another rank": (((64, 65), (64, 3)), ((64, 65), (64,)), lambda x, y: ops.concat_v2([x, y], 1)),
    "axis": (((5, 31, 37),), ((64, 65),), lambda x: ops.mean(x, [2])),
    "negative axis": (((5, 31, 37),), ((64, 65),), lambda x: ops.sum(x, [-3])),
    "reshape": (((64, 65),), ((64, 66),), lambda x: ops.tanh(ops.reshape(ops.tanh(x), [65, 64]))),
    "reshape with a free size": (((64, 65),), ((63, 67),), lambda x: ops.tanh(ops.reshape(x, [65, -1]))),
    "squeeze": (((1, 64, 65),), ((2, 64, 65),), lambda x: ops.tanh(ops.squeeze(x, squeeze_dims=[0]))),
    "transpose": (((5, 31, 37),), ((64, 65),), lambda x: ops.transpose(x, [2, 1, 0])),
    "pad": (((64, 65),), ((5, 31, 37),), lambda x: ops.pad(x, [[1, 1], [2, 2]])),
    "split": (((64, 66),), ((64, 65),), lambda x: ops.relu(ops.split(1, ops.tanh(x), 3)[1])),
    "slice": (((64, 65),), ((3, 4),), lambda x: ops.tanh(ops.slice(x, [5, 5], [50, 50]))),
    "gradient of relu": (((64, 65), (64, 65)), ((64, 65), (65, 64)), ops.relu_grad),
    "gradient of tanh": (((64, 65), (64, 65)), ((64, 65), (65, 64)), ops.tanh_grad),
    "batch norm": ((_G,), ((2, 13, 14, 9),), lambda x: ops.fused_batch_norm_v3(
        x, numbers(8), numbers(8), numbers(8), np.abs(numbers(8)), is_training=False)[0]),
}  # fmt: skip


def _feeds(shapes: tuple[Any, ...]) -> dict[str, Any]:
    return {f"x{i}:0": numbers(*shape, seed=i) for i, shape in enumerate(shapes)}


@pytest.mark.parametrize("name", sorted(CASES))
def test_refusals(name: str) -> None:
    right, wrong, function = CASES[name]
    with gm.Graph().as_default() as graph:
        made = function(*[gm.placeholder(gm.float32, None, name=f"x{i}") for i in range(len(right))])
    errors: dict[str, Any] = {}
    values: list[Any] = []
    for mode in MODES:
        with session(graph, mode) as running:
            for _ in range(2):
                values.append(running.run(made, _feeds(right)))
                with pytest.raises(GraphmillError) as caught:
                    running.run(made, _feeds(wrong))
                errors[mode] = (type(caught.value), str(caught.value))
    results = [value if isinstance(value, list) else [value] for value in reversed(values)]
    fetches = made if isinstance(made, list) else [made]
    perturbation.assert_close(graph, fetches, _feeds(right), results)
    assert len(set(errors.values())) == 1, errors


def test_reductions_refuse_axes_named_twice() -> None:
    errors: dict[str, Any] = {}
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, None, name="x")
        made = ops.mean(x, np.array([1, -1], np.int32))
    for mode in MODES:
        with session(graph, mode) as running:
            try:
                errors[mode] = running.run(made, {"x:0": numbers(64, 65)}).shape
            except GraphmillError as error:
                errors[mode] = (type(error), str(error))
    assert len(set(errors.values())) == 1, errors


def _texts(text: str) -> Graph:
    return Graph.from_proto(text_format.Parse(text, GraphDef()))


@pytest.mark.parametrize("mode", MODES)
def test_a_variable_of_an_impossible_size(mode: str) -> None:
    """Leaving its node to the kernel makes nothing better: the compiler has to give up, not to try again."""
    text = """node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "shape" value { shape { dim { size: 2147483647 } dim { size: 1099511627776 } } } } }"""
    with session(_texts(text), mode) as running, pytest.raises(FailedPreconditionError, match="uninitialized value v"):
        running.run("v:0")


@pytest.mark.parametrize("mode", MODES)
def test_a_list_of_types_that_must_not_be_empty(mode: str) -> None:
    text = """node { name: "i" op: "IteratorV2" attr { key: "shared_name" value { s: "i" } }
      attr { key: "container" value { s: "" } } attr { key: "output_types" value { list { type: DT_INT64 } } }
      attr { key: "output_shapes" value { list { shape { } } } } }
    node { name: "next" op: "IteratorGetNext" input: "i" attr { key: "output_types" value { list { } } }
      attr { key: "output_shapes" value { list { } } } }"""
    with session(_texts(text), mode) as running, pytest.raises(GraphmillError, match="at least 1 element") as info:
        running.run("next")
    assert info.value.node == "next"


def test_what_the_library_refuses_is_told_in_plain_words() -> None:
    """As group normalisation over the channels of a group: who runs it does not know what oneDNN calls its code."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [2, 16, 16, 4, 8], name="x")
        y = ops.mean(x, [1, 2, 4], keep_dims=True)
    with Session(graph, threads=1) as running:
        running.run(y, {x: np.ones((2, 16, 16, 4, 8), np.float32)})
        notes = running.notes()
    assert set(notes) <= {"Mean: oneDNN has no fast code for this reduction"}
