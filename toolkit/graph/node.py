"""Nodes, their outputs, and edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import GraphError, GraphmillError
from toolkit.graph import opdefs, typed
from toolkit.graph.attrs import Attrs, AttrValue, decode
from toolkit.graph.dtypes import DType
from toolkit.graph.kinds import PLAIN, NodeKind, NodeTypes
from toolkit.graph.packed import VALUE, PackedTensor
from toolkit.graph.tensorref import CONTROL_INDEX, TensorRef

if TYPE_CHECKING:
    from schemas.node_def_pb2 import NodeDef
    from toolkit.graph.graph import Graph
    from toolkit.graph.opdefs import OpDef


class Output(NamedTuple):
    """One output of a node, as an endpoint."""

    node: Node
    index: int  # pyright: ignore[reportIncompatibleMethodOverride] -- nobody searches an endpoint as a tuple

    @property
    def ref(self) -> TensorRef:
        return TensorRef(self.node.name, self.index)

    @property
    def name(self) -> str:
        """`node:index`, always with the index."""
        return f"{self.node.name}:{self.index}"

    @property
    def dtype(self) -> DType:
        return self.node.output_types[self.index]

    def __repr__(self) -> str:
        return f"<Output {self.name}>"


class Edge(NamedTuple):
    """A data edge, or a control edge with both indices -1 (white paper, section 2; Edge in graph.h)."""

    src: Node
    src_output: int
    dst: Node
    dst_input: int

    @property
    def is_control(self) -> bool:
        return self.src_output == CONTROL_INDEX


class Node:
    """One node of a graph.

    Attributes:
        graph: the graph it belongs to.
        id: its position in `graph.nodes`; dense unless nodes were removed.
        name, op, device: as in NodeDef.
        inputs: the endpoints of its data inputs, in order.
        control_inputs: the nodes it waits for.
        source: where its attributes were read: what it has in common with others of the file, a NodeDef, or None.
        changed_attrs: attributes set since; None in it marks a removed one.
    """

    __slots__ = (
        "_types", "changed_attrs", "control_inputs", "device", "graph", "id", "inputs", "name", "op", "source",
    )  # fmt: skip

    def __init__(
        self, graph: Graph, id: int, name: str, op: str, device: str = "", source: NodeDef | NodeKind | None = None
    ):
        self.graph = graph
        self.id = id
        self.name = name
        self.op = op
        self.device = device
        self.inputs: list[Output] = []
        self.control_inputs: list[Node] = []
        self.source = source
        self.changed_attrs: dict[str, AttrValue | None] | None = None
        self._types: NodeTypes | None = None

    @property
    def base(self) -> NodeDef | None:
        """The NodeDef with its attributes as they were read (shared, never changed), or None; it need not have name,
        op, inputs and device."""
        source = self.source
        return source.message if isinstance(source, NodeKind) else source

    @property
    def head(self) -> NodeDef | None:
        """As `base`, but a large tensor that is `packed` has no content: for what looks at anything else."""
        source = self.source
        return source.head if isinstance(source, NodeKind) else source

    @property
    def packed(self) -> PackedTensor | None:
        """The attribute `value`, where it is a large tensor that is still among the bytes of a file."""
        source = self.source
        if not isinstance(source, NodeKind) or source.packed is None:
            return None
        return None if self.changed_attrs is not None and VALUE in self.changed_attrs else source.packed

    @property
    def kind(self) -> NodeKind | None:
        """What it has in common with other nodes of its file; None where it was not read, or changed since."""
        source = self.source
        return source if isinstance(source, NodeKind) and self._types is source else None

    @property
    def attrs(self) -> Attrs:
        """The attributes as a mapping of Python values; defaults of the OpDef are not filled in."""
        return Attrs(self)

    def attr(self, name: str, default: Any = ...) -> Any:
        """One attribute, of the kind that the OpDef declares: as given, else `default`, else the OpDef's default.

        Raises:
            GraphError: it is missing and there is no default; it is of another kind than declared, below its minimum
                or a text that is not allowed.
        """
        kind = self.kind
        if kind is not None and name in kind.values:
            return kind.values[name]
        value = self.attr_proto(name)
        if value is not None:
            found = self._typed(name, value)
            if kind is not None and found.__class__ in PLAIN:
                kind.values[name] = found
            return found
        if default is not ...:
            return default
        return self.op_def.attr_value({}, name, self.name)

    def attr_proto(self, name: str) -> AttrValue | None:
        """The message of one attribute, or None where the node has none; do not change it."""
        changed = self.changed_attrs
        if changed is not None and name in changed:
            return changed[name]
        base = self.base if name == VALUE else self.head
        return None if base is None else base.attr.get(name)

    def attr_head(self, name: str) -> AttrValue | None:
        """As `attr_proto`, but a large tensor that is `packed` has no content."""
        changed = self.changed_attrs
        if changed is not None and name in changed:
            return changed[name]
        base = self.head
        return None if base is None else base.attr.get(name)

    def attr_or(self, name: str, default: Any) -> Any:
        """One attribute as `attr` gives it, but `default` where the file has something else in its place.

        For what looks at broken graphs: pictures, comparisons, rules; `toolkit.graph.check` says what is wrong.
        """
        try:
            return self.attr(name, default)
        except GraphmillError:
            return default

    def text(self, name: str, default: Any = ...) -> str:
        """A string attribute as `str`.

        Raises:
            GraphError: as `attr`, or its bytes are not UTF-8.
        """
        value = self.attr(name, default)
        try:
            return value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            shown = value[:40].decode(errors="backslashreplace")
            raise GraphError(f"attribute '{name}' of {self.op} is not UTF-8 text: {shown}", node=self.name) from None

    def _typed(self, name: str, value: AttrValue) -> Any:
        types = self._types
        op_def = (types and types.op_def) or self.graph.find_op_def(self.op)
        definition = op_def.attrs.get(name) if op_def is not None else None
        if definition is None:
            definition = typed.common(name)
        try:
            return decode(value) if definition is None else typed.read(value, definition)
        except GraphmillError as error:
            what = f"attribute '{name}' of {self.op} {error.message}"
            raise GraphError(what, node=self.name) from None

    @property
    def op_def(self) -> OpDef:
        """The signature of its op, or of the function it calls.

        Raises:
            GraphError: the op is unknown.
        """
        types = self._types
        if types is not None and types.op_def is not None:
            return types.op_def
        function = self.graph.library.op_def(self.op)
        if function is not None:  # not kept: functions are added and replaced
            return function
        try:
            found = opdefs.get(self.op)
        except GraphError as error:
            raise error.at(node=self.name) from None
        self._own_types().op_def = found
        return found

    @property
    def input_types(self) -> list[DType]:
        """What the OpDef wants for each input, reference types included; do not change the list."""
        types = self._types
        if types is not None and types.inputs is not None:
            return types.inputs
        op_def = self.op_def
        found = op_def.expand(op_def.inputs, self.attrs, self.name)
        self._own_types().inputs = found
        return found

    @property
    def output_types(self) -> list[DType]:
        """The type of each output, reference types included; do not change the list."""
        types = self._types
        if types is not None and types.outputs is not None:
            return types.outputs
        op_def = self.op_def
        found = op_def.expand(op_def.outputs, self.attrs, self.name)
        self._own_types().outputs = found
        return found

    def _own_types(self) -> NodeTypes:
        if self._types is None:
            self._types = NodeTypes()
        return self._types

    def take_kind(self, kind: NodeKind) -> None:
        """Be of a kind, with its types: of a node that has just been read, whose op is no function."""
        self.source = self._types = kind

    def take_types(self, other: Node) -> None:
        """Have the types of a node of the same op and attributes, as far as they have been worked out."""
        types = other._types
        if types is None or types is other.source or types.op_def is not None or isinstance(types, NodeKind):
            self._types = types
        else:  # of a function, whose signature may come to be another one
            self._types = mine = NodeTypes()
            mine.inputs, mine.outputs = types.inputs, types.outputs

    def invalidate_types(self) -> None:
        """Work them out anew: its op is another one, or the signature of the function it calls; attributes do this."""
        self._types = None

    @property
    def num_outputs(self) -> int:
        return len(self.output_types)

    def output(self, index: int = 0) -> Output:
        return Output(self, index)

    @property
    def is_control_flow(self) -> bool:
        return self.op in CONTROL_FLOW_OPS

    def input_refs(self) -> list[str]:
        """NodeDef.input: data inputs, then control inputs."""
        refs = [src.name if index == 0 else f"{src.name}:{index}" for src, index in self.inputs]
        refs += ["^" + node.name for node in self.control_inputs]
        return refs

    def __repr__(self) -> str:
        return f"<Node {self.name} = {self.op}>"


def node_of_kind(
    graph: Graph, id: int, name: str, op: str, device: str, inputs: list[Output], kind: NodeKind
) -> Node:  # fmt: skip
    """A node that has just been read, with the types of its kind; its op is no function.

    What `Node` and `take_kind` do, for the reader of a million nodes, without calls.
    """
    node = _new(Node)
    node.graph = graph
    node.id = id
    node.name = name
    node.op = op
    node.device = device
    node.inputs = inputs
    node.control_inputs = []
    node.source = node._types = kind  # pyright: ignore[reportPrivateUsage]
    node.changed_attrs = None
    return node


_new = object.__new__


class LoneNode(Node):
    """A node of a graph whose nodes have not been made: to be looked at, not to be changed.

    Name, op, device, types and attributes are there. Who asks for its inputs has all nodes made, of which it is one
    then.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name: str) -> Any:
            if name in _EDGES:
                _ = self.graph.nodes  # which brings the edges, and makes a plain node of this one
            return object.__getattribute__(self, name)


_EDGES = frozenset({"inputs", "control_inputs"})


def lone_node(graph: Graph, id: int, name: str, device: str, kind: NodeKind) -> Node:
    """A node of a kind that stands for one of a graph's that has not been made."""
    node: Node = _new(LoneNode)
    node.graph, node.id, node.name, node.op, node.device = graph, id, name, kind.op, device
    node.source = node._types = kind  # pyright: ignore[reportPrivateUsage]
    node.changed_attrs = None
    return node


SWITCH_OPS = frozenset({"Switch", "RefSwitch", "_SwitchN"})
MERGE_OPS = frozenset({"Merge", "RefMerge"})
ENTER_OPS = frozenset({"Enter", "RefEnter"})
EXIT_OPS = frozenset({"Exit", "RefExit"})
NEXT_ITERATION_OPS = frozenset({"NextIteration", "RefNextIteration"})
CONTROL_FLOW_OPS = SWITCH_OPS | MERGE_OPS | ENTER_OPS | EXIT_OPS | NEXT_ITERATION_OPS | {"LoopCond"}


def check_output(node: Node, index: int, wanted_by: str) -> None:
    """Raise unless `node` has an output `index`.

    Raises:
        GraphError: it has fewer outputs.
    """
    count = node.num_outputs
    if not 0 <= index < count:
        raise GraphError(
            f"input '{node.name}:{index}' does not exist: {node.op} '{node.name}' has {count} output(s)",
            node=wanted_by,
        )


def in_edges(node: Node) -> Iterator[Edge]:
    """The edges into one node, data edges first."""
    for position, (src, index) in enumerate(node.inputs):
        yield Edge(src, index, node, position)
    for src in node.control_inputs:
        yield Edge(src, -1, node, -1)
