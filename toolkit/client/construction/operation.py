"""Operation: what op constructors make, in front of the core graph's Node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas import node_def_pb2
from toolkit.client.construction import session_stack
from toolkit.client.construction.internals import OperationInternals
from toolkit.client.construction.tensor import Tensor
from toolkit.graph.node import Node, Output
from toolkit.graph.nodedefs import node_to_proto
from toolkit.graph.opdefs import OpDef

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph
    from toolkit.client.flow.contexts import ControlFlowContext

COLOCATION_PREFIX = b"loc:@"


class Operation(OperationInternals):
    """One node while the graph is being made.

    Attributes:
        graph: the graph it is in.
        node: the node of the core graph.
        outputs: one Tensor per output.
        context: the control-flow context it was made in, or None.
    """

    __slots__ = ("__dict__", "__weakref__", "context", "graph", "node", "outputs")

    def __init__(self, graph: Graph, node: Node, context: ControlFlowContext | None = None):
        self.graph = graph
        self.node = node
        self.outputs: list[Tensor] = []
        self.context: ControlFlowContext | None = context

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def type(self) -> str:
        """The op: "Conv2D"."""
        return self.node.op

    @property
    def op_def(self) -> OpDef:
        return self.node.op_def

    @property
    def node_def(self) -> node_def_pb2.NodeDef:
        """The node as the graph's file has it."""
        return node_to_proto(self.node)

    def values(self) -> tuple[Tensor, ...]:
        """Its outputs."""
        return tuple(self.outputs)

    @property
    def device(self) -> str:
        return self.node.device

    @property
    def inputs(self) -> list[Tensor]:
        """The data inputs."""
        return [self.graph.tensor(endpoint) for endpoint in self.node.inputs]

    @property
    def control_inputs(self) -> list[Operation]:
        return [self.graph.operation(node) for node in self.node.control_inputs]

    def get_attr(self, name: str) -> Any:
        """An attribute's Python value (see `toolkit.graph.attrs`), or the op's default.

        Raises:
            GraphError: the op has no such attribute.
        """
        return self.node.attr(name)

    def set_attr(self, name: str, value: Any) -> None:
        """Set an attribute that decides no types."""
        self.node.attrs[name] = value

    def has_attr(self, name: str) -> bool:
        return name in self.node.attrs

    def update_input(self, index: int, tensor: Tensor) -> None:
        """Replace one data input; control-flow contexts and loops do."""
        self.node.inputs[index] = tensor.output
        self.graph.core.version += 1

    def append_input(self, tensor: Tensor) -> None:
        self.node.inputs.append(tensor.output)
        self.graph.core.version += 1

    def add_control_inputs(self, ops: Sequence[Operation]) -> None:
        """Wait for more operations. Control inputs stay sorted by name, as TensorFlow writes them."""
        nodes = {op.node: None for op in self.control_inputs} | {op.node: None for op in ops}
        self.node.control_inputs = sorted(nodes, key=lambda node: node.name)
        self.graph.core.version += 1

    def remove_all_control_inputs(self) -> None:
        self.node.control_inputs = []
        self.graph.core.version += 1

    def colocation_groups(self) -> list[bytes]:
        """What another operation must write in `_class` to be placed with this one."""
        if "_class" in self.node.attrs:
            groups = [entry for entry in self.node.attr("_class") if entry.startswith(COLOCATION_PREFIX)]
            if groups:
                return groups
        return [COLOCATION_PREFIX + self.name.encode()]

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in the default session (or `session`).

        Raises:
            UsageError: there is no session for its graph.
        """
        session_stack.session_for(session, self.graph, f"run of '{self.name}'").run(self, feed_dict)

    def endpoint(self) -> Node:
        return self.node

    def output(self, index: int = 0) -> Output:
        return Output(self.node, index)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)
