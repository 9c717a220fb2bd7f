"""Graphs for tests of passes: by hand, random, and made by TensorFlow."""

from __future__ import annotations

import random
from typing import Any

from schemas.graph_pb2 import GraphDef
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape

F = dtypes.float32


def random_dag(rng: random.Random, count: int = 30, devices: list[str] | None = None) -> Graph:
    """Float arithmetic over two placeholders with ops of one, two and several outputs, and control edges.

    Nothing ever fails or depends on chance when it runs: every tensor has shape [2].
    """
    graph = Graph()
    outputs: list[Output] = []
    for name in ("x", "y"):
        outputs.append(graph.add("Placeholder", name, attrs={"dtype": F, "shape": Shape([2])}).output())
    for index in range(count):
        kind = rng.choice(["AddV2", "Mul", "Sub", "Tanh", "Neg", "IdentityN", "NoOp", "Identity"])
        controls = rng.sample(graph.nodes, rng.choice([0, 0, 0, 1, 2])) if len(graph) > 3 else []
        name = rng.choice(["", "a/", "a/b/"]) + f"n{index}"
        if kind == "NoOp":
            graph.add("NoOp", name, control_inputs=controls)
        elif kind == "IdentityN":
            chosen = [rng.choice(outputs) for _ in range(rng.randint(1, 3))]
            node = graph.add(kind, name, chosen, control_inputs=controls, attrs={"T": [F] * len(chosen)})
            outputs += [Output(node, i) for i in range(len(chosen))]
        else:
            inputs = [rng.choice(outputs) for _ in range(1 if kind in ("Tanh", "Neg", "Identity") else 2)]
            outputs.append(graph.add(kind, name, inputs, control_inputs=controls, attrs={"T": F}).output())
    for node in graph:
        if devices:
            node.device = rng.choice(devices)
    return graph


def structure(graph: Graph) -> dict[str, Any]:
    """What must be equal when order does not matter."""
    return {
        node.name: (
            node.op,
            [o.name for o in node.inputs],
            sorted({c.name for c in node.control_inputs}),
            sorted((key, node.attrs.proto(key).SerializeToString(deterministic=True)) for key in node.attrs),
        )
        for node in graph
    }


def from_tensorflow(graph: Any) -> Graph:
    return Graph.from_proto(GraphDef.FromString(graph.as_graph_def().SerializeToString()))


def to_tensorflow(tf: Any, graph: Graph) -> Any:
    return tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())


def plain_config(tf: Any, **more: Any) -> Any:
    """A session without graph optimisation (which ignores feeds of some inner tensors)."""
    config = tf.compat.v1.ConfigProto(**more)
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def run_in_tensorflow(tf: Any, graph: Graph, fetches: list[str], feeds: dict[str, Any], **config: Any) -> list[Any]:
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        with tf.compat.v1.Session(graph=imported, config=plain_config(tf, **config)) as session:
            return session.run(fetches, feeds)


def variable(graph: Graph, name: str, **more: Any) -> tuple[Node, Node, Node]:
    """A reference variable with its initial value and Assign."""
    var = graph.add("VariableV2", name, attrs={"dtype": F, "shape": Shape([2])}, **more)
    value = graph.add("Placeholder", f"{name}/value", attrs={"dtype": F, "shape": Shape([2])})
    assign = graph.add("Assign", f"{name}/Assign", [var, value], attrs={"T": F, "_class": [f"loc:@{name}"]})
    return var, value, assign


def random_state_graph(rng: random.Random, count: int = 20, names: tuple[str, ...] = ("x", "y")) -> Graph:
    """As `random_dag`, with reference and resource variables that are assigned to, added to and read, in any order.

    Every variable is initialised by an Assign that all its readers wait for, so a step depends on nothing before it.
    """
    graph = Graph()
    outputs = [graph.add("Placeholder", n, attrs={"dtype": F, "shape": Shape([2])}).output() for n in names]
    references: list[tuple[Node, Node]] = []
    handles: list[tuple[Node, Node]] = []
    for index in range(count):
        kind = rng.choice(["AddV2", "Mul", "Tanh", "Neg", "ref", "resource", "read", "read", "add", "add"])
        name = f"n{index}"
        value = rng.choice(outputs)
        if kind == "ref":
            made = graph.add("VariableV2", name, attrs={"dtype": F, "shape": Shape([2]), "shared_name": name})
            init = graph.add("Assign", f"{name}/Assign", [made, value], attrs={"T": F})
            if rng.random() < 0.5:
                init.attrs["_class"] = [f"loc:@{name}"]
            references.append((made, init))
        elif kind == "resource":
            made = graph.add("VarHandleOp", name, attrs={"dtype": F, "shape": Shape([2]), "shared_name": name})
            handles.append((made, graph.add("AssignVariableOp", f"{name}/Assign", [made, value], attrs={"dtype": F})))
        elif kind == "read" and references and rng.random() < 0.5:
            made, last = references.pop(rng.randrange(len(references)))
            attrs = {"T": F, "_class": [f"loc:@{made.name}"]}  # what has no value yet cannot be sent
            # an op that computes: what Identity makes of a reference is read when its consumers run
            node = graph.add("Neg", name, [made], control_inputs=[last], attrs=attrs)
            references.append((made, node))  # what writes it next waits for the reader
            outputs.append(node.output())
        elif kind == "read" and handles:
            made, last = handles.pop(rng.randrange(len(handles)))
            node = graph.add("ReadVariableOp", name, [made], control_inputs=[last], attrs={"dtype": F})
            handles.append((made, node))
            outputs.append(node.output())
        elif kind == "add" and references and rng.random() < 0.5:
            made, last = references.pop(rng.randrange(len(references)))
            node = graph.add("AssignAdd", name, [made, value], control_inputs=[last], attrs={"T": F})
            references.append((made, node))
        elif kind == "add" and handles:
            made, last = handles.pop(rng.randrange(len(handles)))
            node = graph.add("AssignAddVariableOp", name, [made, value], control_inputs=[last], attrs={"dtype": F})
            handles.append((made, node))
        else:
            binary = kind in ("AddV2", "Mul")
            inputs = [rng.choice(outputs) for _ in range(2 if binary else 1)]
            op = kind if kind in ("AddV2", "Mul", "Tanh", "Neg") else "Tanh"
            outputs.append(graph.add(op, name, inputs, attrs={"T": F}).output())
    return graph
