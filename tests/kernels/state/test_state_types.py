"""A variable is written in place, by compiled code too: what an op brings has its type, or the step fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit.errors import InvalidArgumentError, OpError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels.cpu.state.optimizers_dense import OPTIMIZERS
from toolkit.runtime.session import Session

ROWS, WIDTH = 64, 64  # large enough for compiled code


def _const(graph: Graph, name: str, value: Any) -> Node:
    from toolkit.formats.arrays.tensor import from_array

    return graph.add("Const", name, attrs={"dtype": dtypes.from_numpy(value.dtype), "value": from_array(value)})


def _handle(graph: Graph, name: str, dtype: Any) -> tuple[Node, Node]:
    """The handle of a variable [ROWS, WIDTH] of zeros, and what assigns it."""
    kind = dtypes.from_name(dtype)
    attrs = {"dtype": kind, "shape": Shape([ROWS, WIDTH]), "shared_name": name.encode()}
    handle = graph.add("VarHandleOp", name, attrs=attrs)
    zeros = _const(graph, f"{name}/zeros", np.zeros((ROWS, WIDTH), kind.numpy))
    return handle, graph.add("AssignVariableOp", f"{name}/assign", [handle, zeros], attrs={"dtype": kind})


def _run(graph: Graph, first: list[str], then: str) -> None:
    with Session(graph) as session:
        session.run(first)
        session.run(then)


def _optimizer(op: str, sparse: bool, wrong: int) -> tuple[Graph, list[str]]:
    """An optimizer op of float32 whose cell number `wrong` is of uint8."""
    graph = Graph()
    optimizer = OPTIMIZERS[op.split("Apply")[1]]
    inputs: list[Any] = []
    controls: list[str] = []
    for position, arg in enumerate(opdefs.get(op).inputs):
        if position < optimizer.slots:
            handle, assign = _handle(graph, f"v{position}", "uint8" if position == wrong else "float32")
            inputs.append(handle)
            controls.append(assign.name)
        elif arg.name == "indices":
            inputs.append(_const(graph, "indices", np.arange(ROWS, dtype=np.int32)))
        elif position == optimizer.gradient:
            inputs.append(_const(graph, "grad", np.ones((ROWS, WIDTH), np.float32)))
        else:
            kind = np.int64 if arg.name == "global_step" else np.float32
            inputs.append(_const(graph, arg.name, np.array(1, kind)))
    attrs: dict[str, Any] = {"T": dtypes.float32}
    if sparse:
        attrs["Tindices"] = dtypes.int32
    graph.add(op, "update", inputs, attrs=attrs)
    return graph, controls


_DENSE = [f"ResourceApply{name}" for name in OPTIMIZERS if opdefs.find(f"ResourceApply{name}")]
_SPARSE = [f"ResourceSparseApply{name}" for name in OPTIMIZERS if opdefs.find(f"ResourceSparseApply{name}")]


@pytest.mark.parametrize("segments", ["on", "off"])
@pytest.mark.parametrize("op", _DENSE + _SPARSE)
def test_optimizers(op: str, segments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    for wrong in range(OPTIMIZERS[op.split("Apply")[1]].slots):
        graph, controls = _optimizer(op, op in _SPARSE, wrong)
        with pytest.raises(InvalidArgumentError, match="is of type uint8, but the op works on float"):
            _run(graph, controls, "update")


def _updates() -> dict[str, Callable[[Graph, Node], Any]]:
    rows, ones = np.arange(ROWS, dtype=np.int32), np.ones((ROWS, WIDTH), np.float32)
    ends = [np.array(bound, np.int32) for bound in ([0], [ROWS], [1])]

    def add(op: str, values: list[Any], **attrs: Any) -> Callable[[Graph, Node], Any]:
        def build(graph: Graph, handle: Node) -> Any:
            given = [_const(graph, f"c{at}", value) for at, value in enumerate(values)]
            return graph.add(op, "update", [handle, *given], attrs=attrs)

        return build

    of, ids = dtypes.float32, dtypes.int32
    return {
        **{op: add(op, [ones], dtype=of) for op in ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")},
        **{
            f"ResourceScatter{how}": add(f"ResourceScatter{how}", [rows, ones], dtype=of, Tindices=ids)
            for how in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")
        },
        **{
            f"ResourceScatterNd{how}": add(f"ResourceScatterNd{how}", [rows[:, None], ones], T=of, Tindices=ids)
            for how in ("Add", "Sub", "Min", "Max", "Update")
        },
        "ResourceStridedSliceAssign": add("ResourceStridedSliceAssign", [*ends, ones], T=of, Index=ids),
        "ReadVariableOp": add("ReadVariableOp", [], dtype=of),
        "ResourceGather": add("ResourceGather", [rows], dtype=of, Tindices=ids),
        "ResourceGatherNd": add("ResourceGatherNd", [rows[:, None]], dtype=of, Tindices=ids),
        "ResourceCountUpTo": add("ResourceCountUpTo", [], T=ids, limit=3),
        "StatefulUniform": add(
            "StatefulUniform", [np.array(1), np.array([2])], dtype=of, shape_dtype=dtypes.int64
        ),
    }  # fmt: skip


@pytest.mark.parametrize("segments", ["on", "off"])
@pytest.mark.parametrize("op", sorted(_updates()))
def test_resource_variables(op: str, segments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    graph = Graph()
    handle, assign = _handle(graph, "v", "uint8")
    node = _updates()[op](graph, handle)
    with pytest.raises(InvalidArgumentError, match="type"):
        _run(graph, [assign.name], "update:0" if node.output_types else "update")


@pytest.mark.parametrize("segments", ["on", "off"])
@pytest.mark.parametrize("shape", [[4], [4000]], ids=["same shape", "another shape"])
@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_two_variables_of_one_name(kind: str, shape: list[int], segments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow fails such a step as well: of another type when the variable is used, of another shape in the sum."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    graph = Graph()
    made: list[Node] = []
    for name, dtype, dims in (("first", kind, [4]), ("second", "float32", shape)):
        attrs = {"dtype": dtypes.from_name(dtype), "shape": Shape(dims), "shared_name": b"v"}
        made.append(graph.add("VariableV2", name, attrs=attrs))
    first, second = made
    zeros = _const(graph, "zeros", np.zeros(4, kind))
    graph.add("Assign", "assign", [first, zeros], attrs={"T": dtypes.from_name(kind)})
    graph.add(
        "AssignAdd", "add", [second, _const(graph, "ones", np.ones(shape, np.float32))], attrs={"T": dtypes.float32}
    )
    if kind == "float32" and shape == [4]:
        _run(graph, ["assign"], "add")
        return
    with pytest.raises(OpError) as caught:
        _run(graph, ["assign"], "add")
    assert caught.value.status == "INVALID_ARGUMENT"
    with Session(graph) as session, pytest.raises(InvalidArgumentError):
        session.run(["assign", "add"])
        session.run(["add"])
