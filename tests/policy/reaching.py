"""A node of every op that reaches outside: in a graph, in a function, in a branch that is not taken, in a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas import function_pb2
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.models import graphdef
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels import registry
from toolkit.policy import outside
from toolkit.policy.outside import Row

#: a folder that nothing in the tests allows
FOREIGN = "/nowhere/that/is/allowed"
PLACES = ("graph", "function", "branch", "dataset")
#: attributes that the defaults of their types do not do for
_ATTRS: dict[str, dict[str, Any]] = {
    "FixedUnigramCandidateSampler": {"range_max": 3, "num_true": 1, "num_sampled": 1, "unique": False},
}
_DEFAULTS: dict[str, Any] = {
    "type": dtypes.float32, "list(type)": [dtypes.float32], "shape": Shape([]), "list(shape)": [Shape([])], "int": 1,
    "string": b"x", "list(string)": [b"x"], "bool": False, "float": 1.0, "list(int)": [1], "func": FuncRef("other", {}),
    "list(func)": [],
}  # fmt: skip


def judged() -> list[tuple[str, Row]]:
    """Every row of the table that decides something, of ops that have kernels.

    What calls Python functions has them in the program alone that made the functions, so no file's graph can be allowed
    to run it: see tests/tf1/test_python_functions.
    """
    ops = {kernel.op for kernel in registry.all_kernels("CPU")}
    return [
        (op, row)
        for op, rows in outside.table()
        if op in ops
        for row in rows
        if not row.through and row.reach is not outside.Reach.PYTHON
    ]


def attributes(op: str, row: Row, path: str) -> dict[str, Any]:
    """Attributes that an OpDef wants, and the path where the row says that it is one."""
    out = dict(_ATTRS.get(op, {}))
    for name, attr in opdefs.get(op).attrs.items():
        if name not in out and attr.default is None:
            out[name] = _DEFAULTS[attr.type]
    if row.attr:
        text = path if row.applies(path) and op != "PrintV2" else f"file://{path}"
        value = (text if row.applies(text) else "stderr").encode()
        out[row.attr] = [value] if opdefs.get(op).attrs[row.attr].type == "list(string)" else value
    return out


def constant(graph: Graph, name: str, value: Any, dtype: DType) -> Node:
    kind = object if dtype is dtypes.string else dtype.numpy
    return graph.add("Const", name, attrs={"dtype": dtype, "value": from_array(np.array(value, kind), dtype)})


def add(graph: Graph, op: str, row: Row, path: str = f"{FOREIGN}/x", fed: bool = False) -> Node:
    """The node "reaching".

    Args:
        path: a constant for the input or the attribute of the row.
        fed: it is the placeholder "path" instead. The other inputs are placeholders in any case.
    """
    attrs = attributes(op, row, path)
    definition = opdefs.get(op)
    inputs: list[Node] = []
    for position, dtype in enumerate(definition.expand(definition.inputs, attrs, op)):
        if row.input == position and not fed:
            inputs.append(constant(graph, "path", path.encode(), dtypes.string))
        elif dtype.is_ref:
            shape = {"dtype": dtype.base, "shape": Shape([])}
            inputs.append(graph.add("VariableV2", f"in{position}", attrs=shape))
        else:
            name = "path" if row.input == position else f"in{position}"
            inputs.append(graph.add("Placeholder", name, attrs={"dtype": dtype.base}))
    return graph.add(op, "reaching", inputs, attrs=attrs)


def function(name: str, inner: Graph) -> function_pb2.FunctionDef:
    """A function without arguments and results that runs the node "reaching"."""
    out = function_pb2.FunctionDef()
    out.signature.name = name
    out.signature.is_stateful = True
    out.signature.control_output.append("reaching")
    out.control_ret["reaching"] = "reaching"
    for node in graphdef.to_proto(inner).node:
        made = out.node_def.add()
        made.CopyFrom(node)
        del made.input[:]
        for producer, index in inner.node(node.name).inputs:
            made.input.append(f"{producer.name}:{producer.op_def.outputs[0].name}:{index}")
    return out


def calling(inner: Graph, how: str) -> tuple[Graph, Node]:
    """A graph and the node in it that calls what was added to `inner`; see PLACES."""
    if how == "graph":
        return inner, inner.node("reaching")
    graph = Graph()
    graph.library.add(function("body", inner))
    no = constant(graph, "no", False, dtypes.bool_)
    ref = FuncRef("body", {})
    if how == "function":
        return graph, graph.add("StatefulPartitionedCall", "root", [], attrs={"Tin": [], "Tout": [], "f": ref})
    if how == "branch":
        graph.library.add(function_pb2.FunctionDef(signature={"name": "nothing"}))
        attrs: dict[str, Any] = {
            "Tcond": dtypes.bool_, "Tin": [], "Tout": [], "output_shapes": [], "then_branch": ref,
            "else_branch": FuncRef("nothing", {}),
        }  # fmt: skip
        return graph, graph.add("If", "root", [no], attrs=attrs)
    shapes: dict[str, Any] = {"output_shapes": [Shape([])]}
    source = graph.add("TensorDataset", "source", [no], attrs={"Toutput_types": [dtypes.bool_], **shapes})
    attrs = {"f": ref, "Targuments": [], "output_types": [dtypes.bool_], **shapes}
    return graph, graph.add("MapDataset", "root", [source], attrs=attrs)
