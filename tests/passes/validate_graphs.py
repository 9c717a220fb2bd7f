"""Good models to break: small ones in which `validate` finds nothing worse than a note."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas.function_pb2 import FunctionDef
from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from schemas.node_def_pb2 import NodeDef
from schemas.saved_model_pb2 import SavedModel
from schemas.tensor_pb2 import TensorProto
from schemas.variable_pb2 import VariableDef
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.shape import Shape

F, I, B, S = dtypes.float32, dtypes.int32, dtypes.from_name("bool"), dtypes.from_name("string")
R = dtypes.resource


def add(graph: Any, op: str, name: str, inputs: Iterable[str] = (), device: str = "", **attrs: Any) -> NodeDef:
    """Append a node to a GraphDef or a FunctionDef."""
    nodes = graph.node_def if isinstance(graph, FunctionDef) else graph.node
    node: NodeDef = nodes.add(op=op, name=name, device=device)
    node.input.extend(inputs)
    for key, value in attrs.items():
        encode(value, node.attr[key])
    return node


def tensor(values: list[float] | list[int] | list[bytes], shape: list[int], dtype: Any = F) -> TensorProto:
    proto = TensorProto(dtype=dtype.enum)
    proto.tensor_shape.SetInParent()
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    field = {F: proto.float_val, I: proto.int_val, S: proto.string_val}[dtype]
    field.extend(values)
    return proto


def const(graph: Any, name: str, values: Any, shape: list[int], dtype: Any = F) -> NodeDef:
    return add(graph, "Const", name, dtype=dtype, value=tensor(values, shape, dtype))


def weights(graph: Any, name: str, shape: list[int], scale: float = 1.0) -> NodeDef:
    """A constant with packed content, every value another."""
    count = 1
    for size in shape:
        count *= size
    proto = tensor([], shape)
    proto.tensor_content = struct.pack(f"<{count}f", *(scale * (i + 1) / count for i in range(count)))
    return add(graph, "Const", name, dtype=F, value=proto)


def node(graph: Any, name: str) -> NodeDef:
    nodes = graph.node_def if isinstance(graph, FunctionDef) else graph.node
    return next(n for n in nodes if n.name == name)


def versions(graph: GraphDef) -> GraphDef:
    graph.versions.producer = 2474
    return graph


def net() -> GraphDef:
    """A small classifier: x [?, 8, 8, 3] to prob [?, 10]."""
    g = versions(GraphDef())
    add(g, "Placeholder", "x", dtype=F, shape=Shape([None, 8, 8, 3]))
    weights(g, "conv/kernel", [3, 3, 3, 4])
    add(g, "Conv2D", "conv/out", ["x", "conv/kernel"], T=F, strides=[1, 1, 1, 1], padding=b"SAME")
    const(g, "conv/bias", [0.5], [4])
    add(g, "BiasAdd", "conv/biased", ["conv/out", "conv/bias"], T=F)
    add(g, "Relu", "relu", ["conv/biased"], T=F)
    const(g, "flat/shape", [-1, 256], [2], I)
    add(g, "Reshape", "flat", ["relu", "flat/shape"], T=F, Tshape=I)
    weights(g, "dense/kernel", [256, 10], 0.5)
    add(g, "MatMul", "logits", ["flat", "dense/kernel"], T=F)
    add(g, "Softmax", "prob", ["logits"], T=F)
    return g


def loop() -> GraphDef:
    """while i < n: i += 1"""
    g = versions(GraphDef())
    add(g, "Placeholder", "n", dtype=I, shape=Shape([]))
    const(g, "zero", [0], [], I)
    add(g, "Enter", "enter_i", ["zero"], T=I, frame_name=b"loop")
    add(g, "Enter", "enter_n", ["n"], T=I, frame_name=b"loop", is_constant=True)
    add(g, "Merge", "merge", ["enter_i", "next"], T=I, N=2)
    add(g, "Less", "less", ["merge", "enter_n"], T=I)
    add(g, "LoopCond", "cond", ["less"])
    add(g, "Switch", "switch", ["merge", "cond"], T=I)
    add(g, "Identity", "body", ["switch:1"], T=I)
    add(g, "Const", "one", ["^body"], dtype=I, value=tensor([1], [], I))
    add(g, "AddV2", "plus", ["body", "one"], T=I)
    add(g, "NextIteration", "next", ["plus"], T=I)
    add(g, "Exit", "exit", ["switch"], T=I)
    add(g, "Identity", "result", ["exit"], T=I)
    return g


def function(graph: GraphDef, name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> FunctionDef:
    f = graph.library.function.add()
    f.signature.name = name
    for key, dtype in inputs.items():
        f.signature.input_arg.add(name=key, type=dtype.enum)
    for key, dtype in outputs.items():
        f.signature.output_arg.add(name=key, type=dtype.enum)
    return f


def calls() -> GraphDef:
    """A call, a branch and a loop, over functions."""
    g = versions(GraphDef())
    double = function(g, "double", {"a": F}, {"y": F})
    add(double, "AddV2", "sum", ["a", "a"], T=F)
    double.ret["y"] = "sum:z:0"
    four = function(g, "four", {"a": F}, {"y": F})
    add(four, "PartitionedCall", "once", ["a"], Tin=[F], Tout=[F], f=FuncRef("double"))
    add(four, "PartitionedCall", "twice", ["once:output:0"], Tin=[F], Tout=[F], f=FuncRef("double"))
    four.ret["y"] = "twice:output:0"
    negative = function(g, "negative", {"a": F}, {"y": F})
    add(negative, "Neg", "neg", ["a"], T=F)
    negative.ret["y"] = "neg:y:0"
    test = function(g, "test", {"a": F}, {"y": B})
    const(test, "limit", [100.0], [])
    add(test, "Less", "less", ["a", "limit:output:0"], T=F)
    test.ret["y"] = "less:z:0"
    add(g, "Placeholder", "x", dtype=F, shape=Shape([]))
    add(g, "Placeholder", "p", dtype=B, shape=Shape([]))
    add(g, "StatefulPartitionedCall", "call", ["x"], Tin=[F], Tout=[F], f=FuncRef("four"))
    add(
        g, "StatelessIf", "if", ["p", "call"], Tcond=B, Tin=[F], Tout=[F],
        then_branch=FuncRef("double"), else_branch=FuncRef("negative"), output_shapes=[Shape([])],
    )  # fmt: skip
    add(
        g, "StatelessWhile", "while", ["if"], T=[F], cond=FuncRef("test"), body=FuncRef("double"),
        output_shapes=[Shape([])],
    )  # fmt: skip
    add(g, "Identity", "y", ["while"], T=F)
    return g


def info(side: Any, key: str, name: str, dtype: Any, shape: Shape) -> None:
    from toolkit.graph.attrs import shape_to_proto

    side[key].name = name
    side[key].dtype = dtype.enum
    shape_to_proto(shape, side[key].tensor_shape)


def meta() -> MetaGraphDef:
    """A linear model with two variables, initialisers, a saver, collections and a signature."""
    m = MetaGraphDef()
    m.meta_info_def.tags.append("serve")
    g = versions(m.graph_def)
    add(g, "Placeholder", "x", dtype=F, shape=Shape([None, 4]))
    for name, shape in (("w", [4, 2]), ("b", [2])):
        add(g, "VariableV2", name, dtype=F, shape=Shape(shape), container=b"", shared_name=b"")
        const(g, f"{name}/init", [0.25], shape)
        add(g, "Assign", f"{name}/assign", [name, f"{name}/init"], T=F, _class=[b"loc:@" + name.encode()])
        add(g, "Identity", f"{name}/read", [name], T=F)
    add(g, "MatMul", "product", ["x", "w/read"], T=F)
    add(g, "AddV2", "y", ["product", "b/read"], T=F)
    add(g, "NoOp", "init", ["^w/assign", "^b/assign"])
    const(g, "save/names", [b"b", b"w"], [2], S)
    const(g, "save/slices", [b"", b""], [2], S)
    add(g, "Placeholder", "save/file", dtype=S, shape=Shape([]))
    add(g, "SaveV2", "save/save", ["save/file", "save/names", "save/slices", "b", "w"], dtypes=[F, F])
    add(g, "Identity", "save/done", ["save/file", "^save/save"], T=S)
    add(g, "RestoreV2", "save/restore", ["save/file", "save/names", "save/slices"], dtypes=[F, F])
    add(g, "Assign", "save/assign_b", ["b", "save/restore"], T=F)
    add(g, "Assign", "save/assign_w", ["w", "save/restore:1"], T=F)
    add(g, "NoOp", "save/restore_all", ["^save/assign_b", "^save/assign_w"])
    m.saver_def.filename_tensor_name = "save/file:0"
    m.saver_def.save_tensor_name = "save/done:0"
    m.saver_def.restore_op_name = "save/restore_all"
    for key in ("variables", "trainable_variables"):
        for name in ("w", "b"):
            entry = VariableDef(
                variable_name=f"{name}:0", initializer_name=f"{name}/assign", snapshot_name=f"{name}/read:0"
            )
            m.collection_def[key].bytes_list.value.append(entry.SerializeToString())
    m.collection_def["train_op"].node_list.value.append("init")
    signature = m.signature_def["serving_default"]
    signature.method_name = "tensorflow/serving/predict"
    info(signature.inputs, "x", "x:0", F, Shape([None, 4]))
    info(signature.outputs, "y", "y:0", F, Shape([None, 2]))
    return m


def saved() -> SavedModel:
    """The MetaGraph as a SavedModel."""
    model = SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().CopyFrom(meta())
    return model


def write_checkpoint(prefix: Path, **changes: Any) -> Path:
    """The checkpoint of `meta`; changes replace an array by name, None leaves it out."""
    import numpy as np

    from toolkit.formats.bundle import BundleWriter

    values: dict[str, Any] = {"b": np.zeros(2, np.float32), "w": np.zeros((4, 2), np.float32)} | changes
    with BundleWriter(prefix) as writer:
        for name in sorted(values):
            if values[name] is not None:
                writer.add(name, values[name])
    return prefix
