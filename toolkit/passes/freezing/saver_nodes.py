"""A saver for variables that a graph has: nodes, SaverDef, and the entries of collections.

`toolkit.client.train.saver` adds savers to programs that are being made; this is for graphs that came from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from schemas import saver_pb2, variable_pb2
from toolkit.formats.arrays import tensor
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.graph import dtypes
from toolkit.graph import shape as shapes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import SCALAR

_FOREVER_HOURS = 10000.0


@dataclass(frozen=True, slots=True)
class Saved:
    """A variable, and what of a checkpoint is its value.

    Attributes:
        node: the variable.
        key: the tensor's name in the checkpoint.
        full: the sizes of the tensor that the variable is a part of.
        part: that part; None where the variable is all of it.
    """

    node: Node
    key: str
    full: tuple[int, ...] = ()
    part: TensorSlice | None = None

    @property
    def spec(self) -> str:
        """How SaveV2 and RestoreV2 are told of the part: sizes, then extents."""
        return "" if self.part is None else f"{' '.join(map(str, self.full))} {self.part}"


def add_saver(graph: Graph, variables: Sequence[Saved]) -> saver_pb2.SaverDef:
    """Add the nodes that save and restore variables, under "save/", and describe them."""
    entries = sorted(variables, key=lambda entry: (entry.key, entry.node.name))
    scope = graph.unique_name("save")
    default = _constant(graph, f"{scope}/filename/input", [b"model"], scalar=True)
    attrs = {"dtype": dtypes.string, "shape": SCALAR}
    filename = graph.add("PlaceholderWithDefault", graph.unique_name(f"{scope}/Const"), [default], attrs=attrs)
    names = [entry.key.encode() for entry in entries]
    specs = [entry.spec.encode() for entry in entries]
    types = [entry.node.attr("dtype").base for entry in entries]

    def described(op: str) -> list[Output]:
        lists = (("tensor_names", names), ("shape_and_slices", specs))
        return [_constant(graph, f"{scope}/{op}/{what}", values) for what, values in lists]

    values = [read_of(graph, entry.node) for entry in entries]
    inputs = [filename.output(), *described("SaveV2"), *values]
    save = graph.add("SaveV2", graph.unique_name(f"{scope}/SaveV2"), inputs, attrs={"dtypes": types})
    saved = graph.add(
        "Identity", graph.unique_name(f"{scope}/control_dependency"), [filename], control_inputs=[save],
        attrs={"T": dtypes.string},
    )  # fmt: skip
    inputs = [filename.output(), *described("RestoreV2")]
    restore = graph.add("RestoreV2", graph.unique_name(f"{scope}/RestoreV2"), inputs, attrs={"dtypes": types})
    assigns = [
        assignment(graph, f"{scope}/Assign", entry.node, restore.output(position))
        for position, entry in enumerate(entries)
    ]
    done = graph.add("NoOp", graph.unique_name(f"{scope}/restore_all"), control_inputs=assigns)
    return saver_pb2.SaverDef(
        filename_tensor_name=f"{filename.name}:0",
        save_tensor_name=f"{saved.name}:0",
        restore_op_name=done.name,
        max_to_keep=5,
        keep_checkpoint_every_n_hours=_FOREVER_HOURS,
        version=saver_pb2.SaverDef.V2,
    )


def read_of(graph: Graph, variable: Node, name: str = "") -> Output:
    """The value of a variable: the reference itself, or a new node that reads the handle."""
    if variable.op != "VarHandleOp":
        return variable.output()
    read = graph.add(
        "ReadVariableOp", graph.unique_name(name or f"{variable.name}/Read/ReadVariableOp"), [variable],
        attrs={"dtype": variable.attr("dtype")}, device=variable.device,
    )  # fmt: skip
    return read.output()


def assignment(graph: Graph, name: str, variable: Node, value: Output) -> Node:
    """A node that gives a variable a value."""
    dtype, unique = variable.attr("dtype").base, graph.unique_name(name)
    if variable.op == "VarHandleOp":
        return graph.add(
            "AssignVariableOp", unique, [variable.output(), value], attrs={"dtype": dtype}, device=variable.device
        )
    is_known = variable.attr("shape", shapes.UNKNOWN).is_fully_defined
    attrs = {"T": dtype, "validate_shape": is_known, "use_locking": True, "_class": [f"loc:@{variable.name}"]}
    return graph.add("Assign", unique, [variable.output(), value], attrs=attrs, device=variable.device)


def variable_entry(variable: Node, initializer: Node, initial: Output, snapshot: Output, *, trainable: bool) -> bytes:
    """What collections of variables hold: a VariableDef."""
    return variable_pb2.VariableDef(
        variable_name=f"{variable.name}:0",
        initializer_name=initializer.name,
        initial_value_name=initial.name,
        snapshot_name=snapshot.name,
        is_resource=variable.op == "VarHandleOp",
        trainable=trainable,
    ).SerializeToString(deterministic=True)


def _constant(graph: Graph, name: str, values: list[bytes], *, scalar: bool = False) -> Output:
    value = tensor.from_array(values[0] if scalar else values, dtypes.string)
    attrs = {"dtype": dtypes.string, "value": value}
    return graph.add("Const", graph.unique_name(name), attrs=attrs).output()
