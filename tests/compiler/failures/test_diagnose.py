"""What a file claims and what is there: types of outputs and arguments are looked at, broken rules are told as such."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas import function_pb2
from toolkit.errors import GraphmillError, InternalError, InvalidArgumentError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels import registry
from toolkit.runtime.session import Session


def _constant(graph: Graph, name: str, value: Any) -> Node:
    dtype = dtypes.from_numpy(value.dtype)
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(value, dtype)})


@pytest.mark.parametrize("segments", ["on", "off"])
@pytest.mark.parametrize("tokens", [False, True])
def test_constants_are_what_they_say(segments: str, tokens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    graph = Graph()
    attrs = {"dtype": dtypes.float64, "value": from_array(np.zeros(4, np.uint8), dtypes.uint8)}
    graph.add("Const", "c", attrs=attrs)
    graph.add("Neg", "y", [graph.node("c")], attrs={"T": dtypes.float64})
    with pytest.raises(GraphmillError, match="type"), Session(graph, force_tokens=tokens) as session:
        session.run("y:0")


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("op", ["Assign", "RefEnter"])
def test_a_reference_is_not_made_of_a_value(op: str, tokens: bool) -> None:
    graph = Graph()
    value = _constant(graph, "value", np.float32(1))
    if op == "Assign":
        graph.add("Assign", "y", [value, value], attrs={"T": dtypes.float32})
    else:
        graph.add("RefEnter", "y", [value], attrs={"T": dtypes.float32, "frame_name": "f"})
    with pytest.raises(GraphmillError, match="expects float32_ref"), Session(graph, force_tokens=tokens) as session:
        session.run("y")


@pytest.mark.parametrize("segments", ["on", "off"])
@pytest.mark.parametrize("tokens", [False, True])
def test_sizes_that_no_address_reaches(segments: str, tokens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", segments)
    graph = Graph()
    inputs = [_constant(graph, "dims", np.array([2**31 - 1] * 3, np.int32)), _constant(graph, "value", np.float32(1))]
    graph.add("Fill", "y", inputs, attrs={"T": dtypes.float32, "index_type": dtypes.int32})
    with pytest.raises(InvalidArgumentError, match="addresses"), Session(graph, force_tokens=tokens) as session:
        session.run("y:0")


@pytest.mark.parametrize("tokens", [False, True])
def test_a_variant_gives_what_is_declared(tokens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    graph = Graph()
    data, key = _constant(graph, "data", np.ones((2, 2), np.float32)), _constant(graph, "key", np.int32(1))
    types = {"key_dtype": dtypes.int32, "value_dtype": dtypes.float32}
    filled = graph.add("TensorMapInsert", "m", [graph.add("EmptyTensorMap", "empty", []), key, data], attrs=types)
    graph.add("TensorMapLookup", "found", [filled, key], attrs={**types, "value_dtype": dtypes.complex128})
    with (
        pytest.raises(InvalidArgumentError, match="declared as complex128, but what is there is of type float32"),
        Session(graph, force_tokens=tokens) as session,
    ):
        session.run("found:0")


_BODY = """
signature { name: "twice" input_arg { name: "x" type: DT_DOUBLE } output_arg { name: "y" type: DT_DOUBLE } }
node_def { name: "s" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_DOUBLE } } }
ret { key: "y" value: "s:z:0" }
"""


def test_functions_take_what_they_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.protobuf import text_format

    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    graph = Graph()
    graph.library.add(text_format.Parse(_BODY, function_pb2.FunctionDef()))
    x = _constant(graph, "x", np.ones(3, np.uint8))
    attrs = {"Tin": [dtypes.uint8], "Tout": [dtypes.float64], "f": FuncRef("twice", {})}
    graph.add("PartitionedCall", "call", [x], attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="function 'twice'"), Session(graph) as session:
        session.run("call:0")


def test_a_rule_that_is_broken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape that the op's shape function refuses, found where the kernel stumbles."""
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")
    graph = Graph()
    parts = [_constant(graph, f"p{i}", np.ones(size, np.float32)) for i, size in enumerate(((2, 3), (0,)))]
    graph.add("Complex", "z", parts, attrs={"T": dtypes.float32, "Tout": dtypes.complex64})
    with pytest.raises(GraphmillError) as caught, Session(graph) as session:
        session.run("z:0")
    assert not isinstance(caught.value, InternalError)
    assert "ValueError" not in str(caught.value)


def test_a_mistake_of_a_kernel_stays_internal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "off")

    def broken(op: registry.KernelNode) -> registry.Compute:
        def compute(x: Any) -> Any:
            raise KeyError("mistake")

        return compute

    entry = registry.find(_negation(Graph()))
    assert entry is not None
    mine = registry.Kernel("Neg", "CPU", {}, 0, registry.Kind.PURE, broken, "test")

    def get(*args: Any, **options: Any) -> registry.Kernel:
        return mine

    monkeypatch.setattr(registry, "get", get)
    graph = Graph()
    _negation(graph)
    with pytest.raises(InternalError, match="KeyError"), Session(graph) as session:
        session.run("y:0", {"x:0": np.ones(2, np.float32)})


def _negation(graph: Graph) -> Node:
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape(None)})
    return graph.add("Neg", "y", [x], attrs={"T": dtypes.float32})


def test_hostile_inputs_of_all_ops() -> None:
    """Some cases of the fuzzer of single ops; `python -m tests.fuzz.single_ops` runs as many as wanted."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.single_ops", "--count", "300", "--seed", "21"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-2000:]
