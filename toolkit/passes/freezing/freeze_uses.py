"""What may be done with a variable that has become a constant: handed on, or read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.attrs import AttrValue
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import Shape


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that was a variable's handle or reference, and is its value now.

    Attributes:
        variable: the node of the variable, for errors.
    """

    variable: str
    dtype: DType
    shape: Shape


#: ops that hand a handle or a reference on: the op that does that with a value, and the attribute with its type
PASSED_ON: dict[str, tuple[str, str]] = {
    "Identity": ("Identity", "T"),
    "RefIdentity": ("Identity", "T"),
    "IdentityN": ("IdentityN", "T"),
    "Switch": ("Switch", "T"),
    "RefSwitch": ("Switch", "T"),
    "_SwitchN": ("_SwitchN", "T"),
    "Merge": ("Merge", "T"),
    "RefMerge": ("Merge", "T"),
    "Enter": ("Enter", "T"),
    "RefEnter": ("Enter", "T"),
    "Exit": ("Exit", "T"),
    "RefExit": ("Exit", "T"),
    "NextIteration": ("NextIteration", "T"),
    "RefNextIteration": ("NextIteration", "T"),
}


def become(node: Node, op: str, attrs: Mapping[str, Any], inputs: Sequence[Output]) -> None:
    """Make a node one of another op, with its name, device, control inputs and colocation."""
    kept = {key: node.attrs.proto(key) for key in node.attrs if key == "_class"}
    node.op = op
    node.attrs.clear()
    node.attrs.update({**kept, **attrs})
    node.inputs = list(inputs)
    node.invalidate_types()


def _constant(node: Node, proto: AttrValue, dtype: DType, is_in_loop: bool) -> None:
    """Make a node that took a handle a constant, which in a loop runs when the handle is there."""
    if is_in_loop:
        source = node.inputs[0].node
        node.control_inputs = list(dict.fromkeys([source, *node.control_inputs]))
    become(node, "Const", {"dtype": dtype, "value": proto}, [])


def _read(node: Node, held: Held, is_in_loop: bool) -> None:
    become(node, "Identity", {"T": held.dtype}, node.inputs)


def _gather(node: Node, held: Held, is_in_loop: bool) -> None:
    """`axis` is the number of batch dimensions, as ResourceGather has it."""
    batch_dims = node.attr("batch_dims")
    value = AttrValue()
    value.tensor.dtype = dtypes.int32.enum  # type: ignore[assignment]
    value.tensor.tensor_shape.SetInParent()
    value.tensor.int_val.append(batch_dims)
    axis = node.graph.add(
        "Const",
        node.graph.unique_name(f"{node.name}/axis"),
        control_inputs=[node.inputs[1].node] if is_in_loop else [],
        attrs={"dtype": dtypes.int32, "value": value},
        device=node.device,
    )
    attrs = {
        "Tparams": held.dtype,
        "Tindices": node.attr("Tindices"),
        "Taxis": dtypes.int32,
        "batch_dims": batch_dims,
    }
    become(node, "GatherV2", attrs, [*node.inputs, axis.output()])


def _gather_nd(node: Node, held: Held, is_in_loop: bool) -> None:
    become(node, "GatherNd", {"Tparams": held.dtype, "Tindices": node.attr("Tindices")}, node.inputs)


def _shape(node: Node, held: Held, is_in_loop: bool) -> None:
    become(node, "Shape", {"T": held.dtype, "out_type": node.attr("out_type")}, node.inputs)


def _is_initialized(node: Node, held: Held, is_in_loop: bool) -> None:
    value = AttrValue()
    value.tensor.dtype = dtypes.bool_.enum  # type: ignore[assignment]
    value.tensor.tensor_shape.SetInParent()
    value.tensor.bool_val.append(True)
    _constant(node, value, dtypes.bool_, is_in_loop)


def _nothing(node: Node, held: Held, is_in_loop: bool) -> None:
    if is_in_loop:
        node.control_inputs = list(dict.fromkeys([node.inputs[0].node, *node.control_inputs]))
    become(node, "NoOp", {}, [])


#: ops that only look at a variable, their first input; what makes each one of a constant
READS: dict[str, Callable[[Node, Held, bool], None]] = {
    "ReadVariableOp": _read,
    "ResourceGather": _gather,
    "ResourceGatherNd": _gather_nd,
    "VariableShape": _shape,
    "VarIsInitializedOp": _is_initialized,
    "IsVariableInitialized": _is_initialized,
    "DisableCopyOnRead": _nothing,
}
