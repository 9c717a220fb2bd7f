"""What ops that make resources and datasets ask of their settings: kept and broken, here and in TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.fuzz import single_ops
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import SCALAR, Shape

F, I32, I64 = dtypes.float32, dtypes.int32, dtypes.int64
QUEUE = {"component_types": [F]}
TABLE = {"key_dtype": I64, "value_dtype": F}
ELEMENTS = {"output_types": [I64], "output_shapes": [SCALAR]}
SAME = {**ELEMENTS, "f": FuncRef("same", {}), "Targuments": []}
MAP = {**SAME, "deterministic": b"default"}


def outcomes(graph: Graph) -> tuple[str, str]:
    """(our status, TensorFlow's) of a run of the node "node"."""
    case = single_ops.Case("node", graph.to_proto().SerializeToString(), ("node",))
    return single_ops.run(case)[0], single_ops.run_tensorflow(case)[0]


def constant(graph: Graph, name: str, value: Any) -> Node:
    array = np.asarray(value)
    dtype = dtypes.from_numpy(array.dtype)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(array, dtype)})


def numbers(graph: Graph) -> Node:
    bounds = [constant(graph, f"bound{i}", np.int64(n)) for i, n in enumerate((0, 3, 1))]
    return graph.add("RangeDataset", "numbers", bounds, attrs=ELEMENTS)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("op", "attrs"),
    [("FIFOQueueV2", QUEUE), ("FIFOQueue", QUEUE), ("HashTableV2", TABLE), ("MutableHashTable", TABLE),
     ("WholeFileReaderV2", {}), ("IteratorV2", {**ELEMENTS, "shared_name": b""}),
     ("Barrier", {"component_types": [F], "shapes": [SCALAR]}),
     ("MapIncompleteSize", {"dtypes": [F]}), ("VarHandleOp", {"dtype": F, "shape": Shape([2])})],
)  # fmt: skip
@pytest.mark.parametrize("name", [b"a/b-c.1", b"a_b", b"%s", b"/a"])
def test_containers_have_names(op: str, attrs: dict[str, Any], name: bytes, tf: ModuleType) -> None:
    graph = Graph()
    graph.add(op, "node", attrs={**attrs, "container": name})
    mine, theirs = outcomes(graph)
    assert mine == theirs
    assert (mine == "OK") == (op == "VarHandleOp" or name == b"a/b-c.1")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("op", "attrs", "settings", "is_good"),
    [
        ("MapDataset", {**SAME, "metadata": b""}, [], True),
        ("MapDataset", {**SAME, "metadata": b"%s"}, [], False),
        ("MapDataset", {**SAME, "f": FuncRef("missing", {})}, [], False),
        ("ParallelMapDatasetV2", MAP, [np.int64(2)], True),
        ("ParallelMapDatasetV2", MAP, [np.int64(-1)], True),
        ("ParallelMapDatasetV2", MAP, [np.int64(0)], False),
        ("ParallelMapDatasetV2", MAP, [np.int64([2])], False),
        ("ParallelMapDatasetV2", {**MAP, "deterministic": b"perhaps"}, [np.int64(2)], False),
        ("PrivateThreadPoolDataset", ELEMENTS, [np.int64(2)], True),
        ("PrivateThreadPoolDataset", ELEMENTS, [np.int64(-2)], False),
        ("MaxIntraOpParallelismDataset", ELEMENTS, [np.int64([2])], False),
        ("OptionsDataset", {**ELEMENTS, "serialized_options": b""}, [], True),
        ("OptionsDataset", {**ELEMENTS, "serialized_options": b"%s"}, [], False),
        ("ModelDataset", {**ELEMENTS, "ram_budget": -1}, [], False),
        ("UnwrapDatasetVariant", {}, [], False),
        ("WrapDatasetVariant", {}, [], True),
    ],
)
def test_datasets_have_settings(
    op: str, attrs: dict[str, Any], settings: list[Any], is_good: bool, tf: ModuleType
) -> None:
    from tests.fuzz import single_op_values

    graph = Graph()
    single_op_values.add_functions(graph)
    inputs = [numbers(graph), *(constant(graph, f"in{i}", value) for i, value in enumerate(settings))]
    graph.add(op, "node", inputs, attrs=attrs)
    mine, theirs = outcomes(graph)
    assert (mine == "OK") == (theirs == "OK") == is_good, (mine, theirs)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dataset", ["TensorDataset", "TensorSliceDataset"])
@pytest.mark.parametrize("shapes", [[[2]], [[2, 2]], [[None]], [[2], [2]], [[2, 2], [2, 2]], [None]])
def test_components_have_a_shape_each(dataset: str, shapes: list[Any], tf: ModuleType) -> None:
    graph = Graph()
    attrs = {"Toutput_types": [F], "output_shapes": [Shape(shape) for shape in shapes]}
    graph.add(dataset, "node", [constant(graph, "x", np.zeros((2, 2), np.float32))], attrs=attrs)
    mine, theirs = outcomes(graph)
    assert mine == theirs
    good = ([[2, 2]], [None]) if dataset == "TensorDataset" else ([[2]], [[None]], [None])
    assert (mine == "OK") == (shapes in good)


@pytest.mark.tensorflow
def test_a_barrier_has_a_shape_for_each_component(tf: ModuleType) -> None:
    graph = Graph()
    graph.add("Barrier", "node", attrs={"component_types": [F], "shapes": []})
    assert outcomes(graph) == ("INVALID_ARGUMENT",) * 2


@pytest.mark.tensorflow
def test_the_flow_of_a_gradient_array_is_a_number(tf: ModuleType) -> None:
    graph = Graph()
    array = graph.add("TensorArrayV3", "array", [constant(graph, "size", np.int32(2))], attrs={"dtype": F})
    flow = constant(graph, "flow", np.float32([1, 2, 3]))
    graph.add("TensorArrayGradV3", "node", [array.output(0), flow], attrs={"source": b"\xff"})
    case = single_ops.Case("node", graph.to_proto().SerializeToString(), ("node:1",))
    assert single_ops.run(case) == single_ops.run_tensorflow(case) == ("OK", "()")


@pytest.mark.tensorflow
def test_a_variable_of_nothing_is_initialized(tf: ModuleType) -> None:
    for op in ("Variable", "VariableV2"):
        for shape in (Shape([0, 2]), Shape([1, 2])):
            graph = Graph()
            ref = graph.add(op, "variable", attrs={"dtype": F, "shape": shape})
            graph.add("Identity", "node", [ref], attrs={"T": F})
            mine, theirs = outcomes(graph)
            assert mine == theirs == ("OK" if shape == Shape([0, 2]) else "FAILED_PRECONDITION")
