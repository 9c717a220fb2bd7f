"""Checking graphs: what TensorFlow's importer refuses is found, what it takes passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf import text_format

from schemas.graph_pb2 import GraphDef
from toolkit.errors import GraphError, GraphmillError
from toolkit.graph.check import ERROR, RUNTIME, check, require_valid
from toolkit.graph.graph import Graph

X = (
    'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } '
    'attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }\n'
)
I = X.replace('"x"', '"i"').replace("DT_FLOAT", "DT_INT32")
C = (
    'node { name: "c" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value '
    "{ tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }\n"
)
V = (
    'node { name: "v" op: "VariableV2" attr { key: "dtype" value { type: DT_FLOAT } } '
    'attr { key: "shape" value { shape { } } } }\n'
)


def node(name: str, op: str, *inputs: str, device: str = "", **attrs: str) -> str:
    text = f'node {{ name: "{name}" op: "{op}" device: "{device}" '
    text += "".join(f'input: "{i}" ' for i in inputs)
    text += "".join(f'attr {{ key: "{k}" value {{ {v} }} }} ' for k, v in attrs.items())
    return text + "}\n"


T = "type: DT_FLOAT"
VERSION = "versions { producer: 2474 }"
#: code of the finding, text of the graph, part of the message
REFUSED = [
    ("unknown-op", X + node("n", "Reluu", "x", T=T), "did you mean 'Relu"),
    ("unknown-op", X + node("n", "", "x", T=T), "op is empty"),
    ("missing-attr", node("n", "Placeholder", shape="shape {}"), "needs the attribute 'dtype'"),
    ("missing-attr", node("n", "Const", dtype=T), "'value'"),
    ("attr", X + node("n", "Relu", "x", T="i: 1"), "must be a type; it is a int"),
    ("attr", X + node("n", "Softmax", "x", T='s: "f"'), "must be a type"),
    ("attr", X + node("n", "Relu", "x", T="type: DT_STRING"), "must be one of"),
    ("attr", X + node("n", "Relu", "x", T="type: DT_FLOAT_REF"), "reference type"),
    ("attr", X + node("n", "Squeeze", "x", T=T, squeeze_dims="list { f: 1 }"), "must be a list(int)"),
    ("attr", X + node("n", "Squeeze", "x", T=T, squeeze_dims="i: 1"), "must be a list(int); it is a int"),
    ("attr", X + I + node("n", "Split", "i", "x", T=T, num_split="i: 0"), "at least 1; it is 0"),
    ("attr", X + node("n", "AddN", T=T, N="i: 0"), "at least 1"),
    ("attr", node("n", "FIFOQueueV2", component_types="list {}"), "at least 1 element"),
    ("attr", X + node("n", "BiasAdd", "x", "x", T=T, data_format='s: "ABCD"'), "NCHW, NHWC; it is ABCD"),
    ("arity", X + node("n", "Add", "x", T=T), "takes 2 input(s) (x, y); it has 1"),
    ("arity", X + node("n", "Relu", "x", "x", T=T), "takes 1 input(s)"),
    ("arity", X + node("n", "AddN", "x", T=T, N="i: 2"), "takes 2"),
    ("dtype", X + I + node("n", "Add", "x", "i", T=T), "input 1, 'i:0', is int32; Add expects float32"),
    ("dtype", X + node("n", "Assign", "x", "x", T=T), "expects float32_ref"),
    ("output-index", X + node("n", "Relu", "x:1", T=T), "has 1 output(s)"),
    ("name", X + node("a b", "Relu", "x", T=T), "not a node name"),
    ("name", X + node("", "Relu", "x", T=T), "not a node name"),
    ("name", X + node("/a", "Relu", "x", T=T), "not a node name"),
    ("name", X + node("-a", "Relu", "x", T=T), "not a node name"),
    ("name", X + node("a:0", "Relu", "x", T=T), "not a node name"),
    ("cycle", X + node("a", "Add", "x", "b", T=T) + node("b", "Relu", "a", T=T), "cycle outside a loop"),
    ("cycle", X + node("a", "Relu", "x", "^b", T=T) + node("b", "Relu", "a", T=T), "cycle outside a loop"),
    ("device", X + node("n", "Relu", "x", device="bad device", T=T), "not a device name"),
    ("device", X + node("n", "Relu", "x", device="/job:w/task:x", T=T), "not a device name"),
    ("colocation", X + node("n", "Relu", "x", T=T, _class='list { s: "loc:@y" }'), "which does not exist"),
    ("shape", X + C + node("n", "MatMul", "x", "x", T=T), "inner sizes"),
    ("shape", X + C + node("n", "MatMul", "x", "c", T=T), "rank 2"),
    ("deprecated", X + node("n", "BatchMatrixInverse", "x", T=T), "not allowed in graphs of version"),
]
ACCEPTED = [
    X + node("n", "MatMul", "x", "x", T=T, transpose_b="b: true"),
    X + node("n", "MatMul", "x", "x", T=T, transpose_b="b: true", unheard_of="i: 5"),
    X + node("n", "Squeeze", "x", T=T),
    X + node("n", "Relu", "x", T=T, _class='list { s: "loc:@x" }'),
    X + node("n", "Relu", "x", T=T, _class='list { s: "other" }'),
    X + node("n", "Relu", "x", "^x", T=T),
    X + node("n", "Relu", "x", "^x", "^x", T=T),
    X + node("n", "Squeeze", "x", T=T, squeeze_dims="list {}"),
    X + node("n", "Relu", "x", device="/gpu:0", T=T),
    X + node("n", "Relu", "x", device="/job:w/replica:0/task:1/device:GPU:*", T=T),
    X + node("n", "Relu", "x", device="/device:CPU:0", T=T),
    X + node("n.1-a/b", "Relu", "x", T=T),
    X + node(".n", "Relu", "x", T=T),
    V + node("n", "Relu", "v", T=T),
    V + C + node("n", "Assign", "v", "c", T=T),
    X + node("n", "Identity", "x", T=T, _output_shapes="list { shape { unknown_rank: true } }"),
    X + node("n", "StatefulPartitionedCall", "x", Tin="list { type: DT_FLOAT }", Tout="list {}", f='func { name: "f"}'),
]  # fmt: skip
RUNTIME_ONLY = [
    ("const-dtype", C.replace("tensor { dtype: DT_FLOAT", "tensor { dtype: DT_INT32"), "its dtype says float32"),
    ("const-content", C.replace("float_val: 1", 'tensor_content: "ab"'), "2 bytes"),
    (
        "missing-function",
        X + node("n", "PartitionedCall", "x", Tin="list { type: DT_FLOAT }", Tout="list {}", f='func { name: "f" }'),
        "'f', which is not there",
    ),
]


def graph(text: str) -> Graph:
    return Graph.from_proto(text_format.Parse(text + VERSION, GraphDef()))


def tensorflow_takes(tf: Any, text: str) -> bool:
    proto = text_format.Parse(text + VERSION, tf.compat.v1.GraphDef())
    with tf.Graph().as_default():
        try:
            tf.import_graph_def(proto, name="")
        except (ValueError, tf.errors.OpError):
            return False
        return True


@pytest.mark.parametrize(("code", "text", "message"), REFUSED, ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)])
def test_refused(code: str, text: str, message: str) -> None:
    findings = list(check(graph(text)))
    assert [f.code for f in findings if f.level == ERROR] == [code]
    assert message in findings[0].message
    with pytest.raises(GraphError) as caught:
        require_valid(graph(text), shapes=True)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert [f for f in check(graph(text)) if f.level == ERROR] == []
    require_valid(graph(text), shapes=True)


@pytest.mark.parametrize(("code", "text", "message"), RUNTIME_ONLY)
def test_runtime_only(code: str, text: str, message: str) -> None:
    (finding,) = check(graph(text))
    assert (finding.code, finding.level) == (code, RUNTIME)
    assert message in finding.message
    require_valid(graph(text))
    with pytest.raises(GraphError):
        require_valid(graph(text), runtime=True)


@pytest.mark.tensorflow
@pytest.mark.parametrize("text", [r[1] for r in REFUSED], ids=[f"{i}-{r[0]}" for i, r in enumerate(REFUSED)])
def test_tensorflow_refuses_the_same(tf: Any, text: str) -> None:
    assert not tensorflow_takes(tf, text)


@pytest.mark.tensorflow
@pytest.mark.parametrize("text", ACCEPTED + [r[1] for r in RUNTIME_ONLY])
def test_tensorflow_takes_the_same(tf: Any, text: str) -> None:
    assert tensorflow_takes(tf, text)


@pytest.mark.parametrize(
    ("versions", "code"),
    [
        (lambda v: setattr(v, "min_consumer", 99999), "min-consumer"),
        (lambda v: v.bad_consumers.append(2474), "bad-consumer"),
    ],
)
def test_versions(versions: Callable[[Any], None], code: str) -> None:
    made = graph(X)
    versions(made.versions)
    assert [f.code for f in check(made)] == [code]


def test_old_graphs_may_use_deprecated_ops() -> None:
    made = graph(X + node("n", "BatchMatrixInverse", "x", T=T))
    made.versions.producer = 8
    assert [f.code for f in check(made, shapes=False)] == []


@pytest.mark.tensorflow
def test_device_names_like_tensorflow(tf: Any) -> None:
    """Odd device strings are judged alike."""
    for device in (
        "/job:w", "/task:1", "/job:w/task:1/cpu:0", "/cpu:*", "/device:GPU:0", "/device:XLA_CPU:0", "/device:gpu:1",
        "/job:a-b", "/job:", "gpu:0", "CPU:0", "/job:w//task:0", "/replica:0", "/device:", "/device:CPU", "/job:*",
        "/device:CPU:0/device:CPU:1", "/device:CPU:-1", "/job:W_1", "/job:1a",
    ):  # fmt: skip
        text = X + node("n", "Relu", "x", device=device, T=T)
        ours = not [f for f in check(graph(text)) if f.level == ERROR]
        assert ours == tensorflow_takes(tf, text), device


def test_contradicting_noted_shape() -> None:
    text = X + node("n", "Identity", "x", T=T, _output_shapes="list { shape { dim { size: 5 } } }")
    with pytest.raises(GraphmillError, match="_output_shapes"):
        require_valid(graph(text), shapes=True)
