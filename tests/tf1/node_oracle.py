"""The nodes that an expression makes, in TensorFlow and here, in one process."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from schemas import graph_pb2
from tests.client.client_programs import tf1_semantics
from toolkit import tensorflow as ours
from toolkit.formats.tensor import to_array


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


def scope(tf: Any) -> dict[str, Any]:
    """What expressions may use."""

    def of(dtype: Any) -> Any:
        return lambda *sizes: tf.placeholder(dtype, list(sizes), name="x")

    return {
        "tf": tf, "np": np, "f": of(tf.float32), "d": of(tf.float64), "i": of(tf.int32), "l": of(tf.int64),
        "b": of(tf.bool), "s": of(tf.string), "c": of(tf.complex64),
    }  # fmt: skip


def graph_of(tf: Any, code: str) -> graph_pb2.GraphDef:
    """The graph that an expression, or lines of code, make."""
    graph = tf.Graph()
    with graph.as_default():
        names = scope(tf)
        exec(compile(code, "<call>", "exec"), names)
    return graph_pb2.GraphDef.FromString(graph.as_graph_def().SerializeToString())


#: attributes that TensorFlow writes for its own use
_IGNORED = frozenset({"_output_shapes", "_has_manual_control_dependencies"})


def described(graph: graph_pb2.GraphDef) -> list[str]:
    """A line for each node: name, op, inputs, device, attributes; tensors by type, shape and values."""
    lines: list[str] = []
    for node in graph.node:
        attrs: list[str] = []
        for key in sorted(node.attr):
            if key in _IGNORED:
                continue
            value = node.attr[key]
            if value.HasField("tensor"):
                array = to_array(value.tensor)
                shown = f"{array.dtype}{list(array.shape)}{array.tolist()}"
            else:
                shown = " ".join(str(value).split())
            attrs.append(f"{key}={shown}")
        lines.append(f"{node.name} = {node.op}({', '.join(node.input)}) @{node.device} {' '.join(attrs)}")
    return lines


def differences(code: str) -> list[str]:
    """How the graph made here differs from TensorFlow's, as lines of a diff; none where it does not."""
    import difflib

    with semantics():
        wanted = described(graph_of(theirs(), code))
    got = described(graph_of(ours, code))
    return list(difflib.unified_diff(wanted, got, "TensorFlow", "here", lineterm="", n=0))[2:]
