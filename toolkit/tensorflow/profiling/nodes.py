# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What a profile knows of each node: its types, its shape, its parameters, its floating point operations."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Any

from schemas import tensor_shape_pb2, tfprof_log_pb2, tfprof_output_pb2
from toolkit.graph.shape import Shape
from toolkit.tensorflow.profiling.float_operations import UnknownSizeError, counted
from toolkit.tensorflow.profiling.option_builder import TRAINABLE


@dataclass
class Profiled:
    """One node.

    Attributes:
        shape: what its attribute of that name says; a scalar's is [1].
        runs: how often it ran in the steps that were measured.
    """

    name: str
    kind: str
    types: set[str]
    shape: list[int]
    input_shapes: dict[int, list[int]]
    device: str = ""
    float_ops: int = 0
    runs: int = 0
    parameters: int = field(init=False)

    def __post_init__(self) -> None:
        known = bool(self.shape) and all(size >= 0 for size in self.shape)
        self.parameters = math.prod(self.shape) if known else 0


def graph_node(node: Profiled) -> tfprof_output_pb2.GraphNodeProto:
    """The message about a node by itself."""
    found = tfprof_output_pb2.GraphNodeProto(
        name=node.name, parameters=node.parameters, float_ops=node.float_ops, total_parameters=node.parameters,
        total_float_ops=node.float_ops, run_count=node.runs, total_run_count=node.runs, total_definition_count=1,
    )  # fmt: skip
    if node.device:
        found.devices.append(node.device)
    for index, shape in node.input_shapes.items():
        found.input_shapes[index].CopyFrom(_shape(shape))
    return found


def _shape(sizes: list[int]) -> tensor_shape_pb2.TensorShapeProto:
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in sizes]
    return tensor_shape_pb2.TensorShapeProto(dim=dims)


class Ran:
    """What is known of a step that ran: the shapes of its tensors, and the counts of its nodes."""

    def __init__(self, run_meta: Any = None):
        self._shapes: dict[str, Shape] = {}
        self.counts: dict[str, int] = {}
        for device in run_meta.step_stats.dev_stats if run_meta else ():
            for stats in device.node_stats:
                name = stats.node_name.partition(":")[0]
                self.counts[name] = self.counts.get(name, 0) + 1
                for output in stats.output:
                    sizes = [dim.size for dim in output.tensor_description.shape.dim]
                    self._shapes[f"{name}:{output.slot}"] = Shape(sizes)

    def shape_of(self, tensor: Any) -> Shape:
        static: Shape = tensor.static_shape
        return static if static.is_fully_defined else self._shapes.get(tensor.name, static)


def entries(graph: Any, op_log: Any, run_meta: Any) -> list[tfprof_log_pb2.OpLogEntry]:
    """What is to be logged of nodes: floating point operations, which variables are trainable, what a caller says."""
    ran, found, unknown = Ran(run_meta), {}, 0
    for op in graph.get_operations():
        try:
            count = counted(op, ran.shape_of)
        except UnknownSizeError:
            unknown += 1
            continue
        if count:
            found[op.name] = tfprof_log_pb2.OpLogEntry(name=op.name, float_ops=count)
    for variable in graph.get_collection("trainable_variables"):
        name = variable.op.name
        found.setdefault(name, tfprof_log_pb2.OpLogEntry(name=name)).types.append(TRAINABLE)
    if unknown and not run_meta:
        print(f"{unknown} ops no flops stats due to incomplete shapes.", file=sys.stderr)
    told = {entry.name: entry for entry in (op_log.log_entries if op_log else ())}
    merged: dict[str, tfprof_log_pb2.OpLogEntry] = {}
    for name in [*told, *(name for name in found if name not in told)]:
        merged[name] = entry = tfprof_log_pb2.OpLogEntry(name=name)
        if name in told:
            entry.CopyFrom(told[name])
        if name in found:
            entry.types.extend(found[name].types)
            entry.float_ops = entry.float_ops or found[name].float_ops
    return list(merged.values())


def profiled(graph: Any, op_log: Any, run_meta: Any) -> list[Profiled]:
    """All nodes of a graph."""
    ran = Ran(run_meta)
    logged = {entry.name: entry for entry in entries(graph, op_log, run_meta)}
    found: list[Profiled] = []
    for op in graph.get_operations():
        entry = logged.get(op.name, tfprof_log_pb2.OpLogEntry())
        # To TensorFlow's profiles a control input is one more input: the first output of what has to run before.
        taken = [*op.inputs, *(before.outputs[0] for before in op.control_inputs if before.outputs)]
        inputs = {i: sizes for i, tensor in enumerate(taken) if (sizes := _sizes(ran.shape_of(tensor)))}
        types = {op.type, *entry.types, *([op.device] if op.device else [])}
        said = op.node.attrs.get("shape")
        shape = _sizes(said) if isinstance(said, Shape) else []
        found.append(
            Profiled(op.name, op.type, types, shape, inputs, op.device, entry.float_ops, ran.counts.get(op.name, 0))
        )
    return found


def _sizes(shape: Shape) -> list[int]:
    """Sizes, -1 where one is unknown; none where the rank is; a scalar's are [1]."""
    if shape.dims is None:
        return []
    return [-1 if size is None else size for size in shape.dims] or [1]
