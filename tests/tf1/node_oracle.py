"""The nodes that an expression makes, in TensorFlow and here, in one process."""

from __future__ import annotations

import difflib
import functools
import importlib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from schemas import attr_value_pb2, graph_pb2
from tests.client.client_programs import tf1_semantics
from tests.tf1 import call_scope
from toolkit import tensorflow as ours
from toolkit.formats.arrays.tensor import to_array
from toolkit.graph import attrs as attr_codec
from toolkit.graph import opdefs


@functools.cache
def theirs() -> Any:
    """TensorFlow's tensorflow.compat.v1."""
    tensorflow = importlib.import_module("tensorflow")
    return tensorflow.compat.v1


@contextmanager
def semantics() -> Iterator[None]:
    """Graphs, shapes, variables and control flow of TensorFlow 1, in TensorFlow."""
    with tf1_semantics(importlib.import_module("tensorflow")):
        yield


def graph_of(tf: Any, code: str) -> graph_pb2.GraphDef:
    """The graph that an expression, or lines of code, make."""
    return graph_pb2.GraphDef.FromString(call_scope.serialized_graph(tf, code))


#: ops of 1.15 to those that later releases, and this library, make in their place; they compute the same
SUCCESSORS = {"Add": "AddV2"}
#: attributes that TensorFlow writes for its own use
_IGNORED = frozenset({"_output_shapes", "_has_manual_control_dependencies"})


def described(graph: graph_pb2.GraphDef, across_releases: bool = False) -> list[str]:
    """A line for each node: name, op, inputs, device, attributes; tensors by type, shape and values.

    Args:
        across_releases: leaves out attributes that have their default, which some releases write and some do not know,
            and calls ops by their successors' names.
    """
    functions = [_function(each, across_releases) for each in graph.library.function]
    return _nodes(graph.node, across_releases) + [line for lines in sorted(functions) for line in lines]


def _function(function: Any, across_releases: bool) -> list[str]:
    """What a function takes and gives, and its nodes."""
    signature = function.signature
    name = _unnumbered(signature.name)
    takes = ", ".join(f"{arg.name}: {arg.type}" for arg in signature.input_arg)
    gives = ", ".join(f"{arg.name}: {arg.type} = {function.ret[arg.name]}" for arg in signature.output_arg)
    head = f"{name}({takes}) -> {gives} always {', '.join(sorted(signature.control_output))}"
    return [head, *(f"{name}: {line}" for line in _nodes(function.node_def, across_releases))]


def _unnumbered(text: str) -> str:
    """A text without what makes the names of functions unique in a process."""
    text = re.sub(r"(__inference_[A-Za-z0-9_.]*?)_\d+\b", r"\1", text)
    text = re.sub(r"\bhash_table_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "hash_table", text)  # drawn each time
    text = re.sub(r"\bpyfunc_\d+\b", "pyfunc", text)  # tokens of Python functions are counted in a process
    return re.sub(r"\b_make_dataset_[A-Za-z0-9]+", "_make_dataset", text)


def _nodes(nodes: Iterable[Any], across_releases: bool) -> list[str]:
    lines: list[str] = []
    for node in nodes:
        attrs: list[str] = []
        for key in sorted(node.attr):
            if key in _IGNORED:
                continue
            value = node.attr[key]
            if across_releases and _is_default(node.op, key, value):
                continue
            if value.HasField("tensor"):
                array = to_array(value.tensor)
                shown = f"{array.dtype}{list(array.shape)}{array.tolist()}"
            else:
                shown = _unnumbered(" ".join(str(value).split()))
            attrs.append(f"{key}={shown}")
        op = SUCCESSORS.get(node.op, node.op) if across_releases else node.op
        lines.append(f"{node.name} = {op}({', '.join(node.input)}) @{node.device} {' '.join(attrs)}")
    return lines


def _is_default(op: str, key: str, value: attr_value_pb2.AttrValue) -> bool:
    if op not in opdefs.names():
        return False
    found = opdefs.get(op).attrs.get(key)
    return found is not None and found.has_default and found.default == attr_codec.decode(value)


def difference(wanted: list[str], got: list[str]) -> list[str]:
    """Lines of a diff; none where there is no difference."""
    return list(difflib.unified_diff(wanted, got, "TensorFlow", "here", lineterm="", n=0))[2:]


def differences(code: str) -> list[str]:
    """How the graph made here differs from TensorFlow's, as lines of a diff; none where it does not."""
    with semantics():
        wanted = described(graph_of(theirs(), code))
    return difference(wanted, described(graph_of(ours, code)))
