"""Small subgraphs found and rewritten: what the passes over convolutions, products and their surroundings share.

A pass finds a few nodes that compute something together and has the last of them compute it alone: that one keeps its
name and its readers, the inner ones vanish. An inner node may only vanish when nothing else reads it, nobody asks for
it by name and no control edge leaves it (`is_inner`). What the vanished ones waited for, the last one waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import AttrValue
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Node, Output
from toolkit.passes.optimize.rewriting import Rewriting

FLOATS = frozenset({dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16})
#: ops that hand on their input as it is
_HAND_ON = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})
#: how many nodes that hand on are looked through: files have one or two, and passes stay linear
_MOST_HANDED_ON = 16


class Subgraphs(Rewriting):
    """A copy of a graph in which small subgraphs are found and rewritten."""

    # -- looking -----------------------------------------------------------------------------------------

    def each(self, *ops: str) -> Iterator[Node]:
        """The nodes of some ops, inputs first, as far as they are still in use when their turn comes.

        Raises:
            GraphError: there is a cycle outside a loop.
        """
        wanted = frozenset(ops)
        for node in self.graph.topological_order():
            if node.op in wanted and (node.inputs or node.control_inputs or self.users(node) or self.is_kept(node)):
                yield node

    def is_inner(self, node: Node) -> bool:
        """Whether a node has one reader alone, which reads its output 0 once, so that it may vanish into it."""
        users = self.users(node)
        if len(users) != 1 or self.is_kept(node) or node in users[0].control_inputs:
            return False
        return [index for source, index in users[0].inputs if source is node] == [0]

    def reader(self, node: Node) -> Node | None:
        """The only reader of a node that `is_inner`, else None."""
        return self.users(node)[0] if self.is_inner(node) else None

    def reads_only_first(self, node: Node) -> bool:
        """Whether nobody reads another output of a node than the first."""
        return all(index == 0 for user in self.users(node) for source, index in user.inputs if source is node)

    def constant(self, output: Output) -> Node | None:
        """The Const that an output is the value of, behind nodes that hand it on; None where it may be fed."""
        node, index = output
        for _ in range(_MOST_HANDED_ON):
            if index != 0 or self.is_fed(node):
                return None
            if node.op == "Const":
                return node
            if node.op not in _HAND_ON or len(node.inputs) != 1:
                return None
            node, index = node.inputs[0]
        return None

    def own_constant(self, output: Output) -> Node | None:
        """The Const as `constant` gives it, when nobody else sees its value: it may be changed in its place."""
        const, node = self.constant(output), output.node
        while const is not None:
            # Who waits for a constant, or is placed with it, does not read it.
            reads = [source for user in self.users(node) for source in user.inputs if source.node is node]
            if node.name in self.kept.names or len(reads) != 1:
                return None
            if node is const:
                return const
            node = node.inputs[0].node
        return None

    def array(self, output: Output) -> Any:
        """The array of an output that is constant; None where it is not, or the file has no tensor there."""
        const = self.constant(output)
        return None if const is None else value_of(const)

    # -- changing ----------------------------------------------------------------------------------------

    def add_constant(self, name: str, array: Any, like: Iterable[Node] = (), dtype: DType | None = None) -> Node:
        """A new Const, on the device of the first of `like` and after what these wait for: in their branch or loop."""
        from toolkit.formats.arrays import tensor

        proto = tensor.from_array(array) if dtype is None else tensor.from_array(array, dtype)
        models = list(like)
        waits = dict.fromkeys(source for model in models for source in model.control_inputs)
        if not waits:  # what a model in a loop takes is in the loop, and nothing else says that it is
            waits = dict.fromkeys(m.inputs[0].node for m in models if m.inputs and not self.is_plain(m))
        return self.add(
            "Const",
            name,
            attrs={"dtype": dtypes.from_enum(proto.dtype), "value": proto},
            device=models[0].device if models else "",
            control_inputs=waits,
        )

    def set_value(self, const: Node, array: Any) -> None:
        """Change the value of a Const in its place."""
        from toolkit.formats.arrays import tensor

        proto = tensor.from_array(array)
        const.attrs["value"] = proto
        const.attrs["dtype"] = dtypes.from_enum(proto.dtype)
        const.attrs.pop("_output_shapes", None)
        self.changes += 1

    def make(
        self,
        node: Node,
        op: str,
        inputs: Iterable[Output],
        attrs: Mapping[str, Any],
        inner: Iterable[Node] = (),
        device: str | None = None,
    ) -> None:
        """Have a node compute what it and some inner nodes compute together; these vanish."""
        vanishing = list(dict.fromkeys(inner))
        waits = [*node.control_inputs, *(c for other in vanishing for c in other.control_inputs)]
        shapes = node.attr_proto("_output_shapes")
        self.turn(node, op, inputs, attrs, [c for c in waits if c not in vanishing])
        if shapes is not None and op != "Const":
            node.attrs["_output_shapes"] = shapes
        if device is not None:
            node.device = device
        self.let_go(vanishing)

    def become(self, node: Node, other: Node) -> None:
        """Have a node compute what an inner node, which vanishes into it, computes; under its own name."""
        self.make(node, other.op, other.inputs, plain_attrs(other), [other], other.device)

    def let_go(self, nodes: Iterable[Node]) -> None:
        """Cut nodes off that have lost their users, so that what they used is free at once; the sweep takes them."""
        for node in nodes:
            if not self.users(node) and not self.is_kept(node):
                self.set_inputs(node, ())
                self.set_controls(node, ())


def value_of(const: Node) -> Any:
    """The array of a Const; None where the file has no tensor there."""
    from toolkit.formats.arrays import tensor

    try:
        return tensor.to_array(const.attr("value"))
    except GraphmillError:  # told where the graph is checked
        return None


def plain_attrs(node: Node) -> dict[str, AttrValue]:
    """A node's attributes as messages, without those about its place in the graph."""
    return {key: node.attrs.proto(key) for key in node.attrs if not key.startswith("_")}


def same_device(*nodes: Node) -> bool:
    """Whether nodes ask for one device, or for none."""
    return len({node.device for node in nodes if node.device}) <= 1
