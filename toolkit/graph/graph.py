"""The graph: nodes joined by data and control edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from schemas import graph_pb2, versions_pb2
from toolkit.errors import GraphError, did_you_mean
from toolkit.forks import held_over_forks
from toolkit.graph import opdefs
from toolkit.graph.attrs import encode
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.garbage import no_collection
from toolkit.graph.node import Edge, Node, Output, in_edges
from toolkit.graph.nodedefs import link, node_to_proto
from toolkit.graph.opdefs import OpDef
from toolkit.graph.order import is_in_order, topological_order
from toolkit.graph.tensorref import TensorRef, parse_input
from toolkit.graph.unmade import UnmadeNodes

#: what we write into new graphs: the producer version of TensorFlow 2.21, readable since 1.12's minimum
PRODUCER = 2474
#: held while the nodes of a graph are made
_making = held_over_forks()


class Graph:
    """A dataflow graph.

    Inputs are object references, so renaming a node needs no search. `nodes` keeps the file's order. Reading
    decodes no attribute; see `toolkit.graph.attrs`. Of a graph of very many nodes they are made when somebody asks for
    one.

    Attributes:
        nodes: all nodes in order; do not change the list directly.
        versions: the VersionDef message.
        library: the functions the graph can call.
        version: grows with every structural change, for caches.
        unmade: the nodes while none of them has been made, so that none can have been changed; else None.
    """

    __slots__ = ("_by_name", "_shell", "library", "nodes", "unmade", "version", "versions")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._by_name: dict[str, Node] = {}
        self.versions = versions_pb2.VersionDef(producer=PRODUCER)
        self.library = FunctionLibrary()
        self.version = 0
        self._shell: graph_pb2.GraphDef | None = None  # the GraphDef read, without its nodes and functions
        self.unmade: UnmadeNodes | None = None

    if not TYPE_CHECKING:  # which would let every name pass

        def __getattr__(self, name: str) -> Any:
            if name in ("nodes", "_by_name"):
                with _making:
                    unmade = self.unmade
                    if unmade is not None:
                        with no_collection():
                            self.nodes, self._by_name = unmade.make(self)
                        self.unmade = None
            return object.__getattribute__(self, name)

    # -- looking -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        unmade = self.unmade
        return len(self.nodes if unmade is None else unmade)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, name: object) -> bool:
        unmade = self.unmade
        return name in (self._by_name if unmade is None else unmade.numbers)

    def examples(self) -> Sequence[Node]:
        """Nodes of every op and with every attribute that there are, to be looked at for these alone: all nodes, or
        one of each kind where none has been made."""
        unmade = self.unmade
        return self.nodes if unmade is None else unmade.examples(self)

    def nodes_of(self, ops: Collection[str]) -> Sequence[Node]:
        """The nodes of some ops, in order, to be looked at for names and attributes alone: they have no inputs where
        none has been made."""
        unmade = self.unmade
        return [node for node in self.nodes if node.op in ops] if unmade is None else unmade.nodes_of(self, ops)

    def nodes_on(self, devices: Collection[str]) -> Sequence[Node]:
        """The nodes that ask for some devices, likewise."""
        unmade = self.unmade
        if unmade is None:
            return [node for node in self.nodes if node.device in devices]
        return unmade.nodes_on(self, devices)

    def device_names(self) -> set[str]:
        """The devices that nodes have, "" where there are nodes that have none."""
        unmade = self.unmade
        return {node.device for node in self.nodes} if unmade is None else unmade.device_names()

    def get(self, name: str) -> Node | None:
        return self._by_name.get(name)

    def glance(self, name: str) -> Node | None:
        """The node of that name, or None; not to be changed, for no other is made for it where none has been made."""
        with _making:
            unmade = self.unmade
            return self._by_name.get(name) if unmade is None else unmade.glance(self, name)

    def glance_output(self, ref: TensorRef) -> Output:
        """The endpoint that a reference names, of a node that is not to be changed; see `output` and `glance`."""
        unmade = self.unmade
        if unmade is not None and unmade.has_output(self, ref.node, ref.index):
            node = self.glance(ref.node)
            if node is not None:
                return Output(node, ref.index)
        return self.output(ref)

    def node(self, name: str) -> Node:
        """The node of that name.

        Raises:
            GraphError: there is none; close names are suggested.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise GraphError(f"there is no node '{name}' in the graph{did_you_mean(name, self._by_name)}") from None

    def output(self, ref: TensorRef | str) -> Output:
        """The endpoint that a reference or a text such as "logits:0" names.

        Raises:
            GraphError: the node or the output does not exist.
        """
        parsed = parse_input(ref) if isinstance(ref, str) else ref
        node = self.node(parsed.node)
        if self.find_op_def(node.op) is not None and not 0 <= parsed.index < node.num_outputs:
            raise GraphError(
                f"there is no tensor '{parsed.tensor_name}': {node.op} '{node.name}' has {node.num_outputs} output(s)"
            )
        return Output(node, parsed.index)

    def require_output(self, ref: TensorRef) -> None:
        """Raise unless there is such an output, as `output` does, without a node where none has been made."""
        unmade = self.unmade
        if unmade is None or not unmade.has_output(self, ref.node, ref.index):
            self.output(ref)

    def find_op_def(self, op: str) -> OpDef | None:
        """The signature of an op or of a function in the library, or None."""
        return self.library.op_def(op) or opdefs.find(op)

    def op_def(self, op: str) -> OpDef:
        """The signature of an op or of a function in the library.

        Raises:
            GraphError: it is neither.
        """
        return self.library.op_def(op) or opdefs.get(op)

    def edges(self) -> Iterator[Edge]:
        """All edges, by destination in node order, data edges first."""
        for node in self.nodes:
            yield from in_edges(node)

    def consumers(self) -> list[list[Edge]]:
        """The out-edges of every node, by node id. One pass; build it once and keep it for the pass."""
        out: list[list[Edge]] = [[] for _ in self.nodes]
        for edge in self.edges():
            out[edge.src.id].append(edge)
        return out

    def topological_order(self) -> list[Node]:
        """All nodes, each after its inputs; see `toolkit.graph.order`.

        Raises:
            GraphError: there is a cycle outside a loop; it is spelled out.
        """
        return topological_order(self.nodes)

    def is_in_order(self) -> bool:
        """Whether all nodes stand after their inputs, but for the back edges of loops: then there is no cycle."""
        return is_in_order(self.nodes)

    # -- changing ----------------------------------------------------------------------------------------

    def add(
        self,
        op: str,
        name: str,
        inputs: Iterable[Output | Node] = (),
        *,
        control_inputs: Iterable[Node] = (),
        attrs: Mapping[str, Any] | None = None,
        device: str = "",
    ) -> Node:
        """Append a node. Nothing is checked but the name; `toolkit.graph.check` checks the rest.

        Args:
            inputs: endpoints; a Node stands for its output 0.
            attrs: Python values as in `toolkit.graph.attrs`.

        Raises:
            GraphError: the name is taken.
        """
        node = self._append(Node(self, len(self.nodes), name, op, device))
        node.inputs = [Output(i, 0) if isinstance(i, Node) else i for i in inputs]
        node.control_inputs = list(dict.fromkeys(control_inputs))
        if attrs:
            node.changed_attrs = {key: encode(value) for key, value in attrs.items()}
        return node

    def add_copy(self, node: Node, name: str | None = None) -> Node:
        """Append a node like one of another graph, without its inputs; attribute messages are shared.

        Raises:
            GraphError: the name is taken.
        """
        copy = Node(self, len(self.nodes), name or node.name, node.op, node.device, node.source)
        if node.changed_attrs is not None:
            copy.changed_attrs = dict(node.changed_attrs)
        library, theirs = self.library, node.graph.library
        if library is theirs or not (library.op_def(node.op) or theirs.op_def(node.op)):  # the op is the same
            copy.take_types(node)
        return self._append(copy)

    def add_copies(self, nodes: Iterable[Node], count: int) -> list[Node | None]:
        """Append nodes like those of another graph, as `add_copy` does one by one; returns them by the others' ids.

        Args:
            count: how many nodes the other graph has.

        Raises:
            GraphError: a name is taken.
        """
        copies: list[Node | None] = [None] * count
        mine, by_name = self.nodes, self._by_name
        is_plain: dict[str, bool] = {}  # whether an op is none of the functions of either graph
        for node in nodes:
            op, source = node.op, node.source
            copy = Node(self, len(mine), node.name, op, node.device, source)
            if node.changed_attrs is not None:
                copy.changed_attrs = dict(node.changed_attrs)
            plain = is_plain.get(op)
            if plain is None:
                library, theirs = self.library, node.graph.library
                plain = is_plain[op] = library is theirs or not (library.op_def(op) or theirs.op_def(op))
            if plain:
                copy.take_types(node)
            if by_name.setdefault(copy.name, copy) is not copy:
                raise GraphError("the name is used by two nodes; node names are unique", node=copy.name)
            mine.append(copy)
            copies[node.id] = copy
        self.version += 1
        return copies

    def _append(self, node: Node) -> Node:
        if self._by_name.setdefault(node.name, node) is not node:
            raise GraphError("the name is used by two nodes; node names are unique", node=node.name)
        self.nodes.append(node)
        self.version += 1
        return node

    def rename(self, node: Node, name: str) -> None:
        """Give a node another name; its consumers follow by themselves.

        Raises:
            GraphError: the name is taken.
        """
        if name in self._by_name:
            raise GraphError(f"cannot rename to '{name}': the name is taken", node=node.name)
        del self._by_name[node.name]
        node.name = name
        self._by_name[name] = node
        self.version += 1

    def remove(self, nodes: Collection[Node]) -> None:
        """Take nodes out. Nodes that stay must not use them; control inputs on them are dropped.

        Raises:
            GraphError: a node that stays has a removed one as data input.
        """
        gone = {node.id for node in nodes}
        kept = [node for node in self.nodes if node.id not in gone]
        for node in kept:
            for src, index in node.inputs:
                if src.id in gone:
                    raise GraphError(f"its input '{src.name}:{index}' would be removed", node=node.name)
            if any(src.id in gone for src in node.control_inputs):
                node.control_inputs = [src for src in node.control_inputs if src.id not in gone]
        for node in nodes:
            del self._by_name[node.name]
        self.nodes = kept
        for position, node in enumerate(kept):
            node.id = position
        self.version += 1

    def adopt(self, node: Node) -> Node:
        """Append a node of another graph, which is given up for this one; it keeps its inputs, and its id until all are
        there and `settle` is called.

        Raises:
            GraphError: the name is taken.
        """
        return self._append(node)

    def settle(self) -> None:
        """Number the nodes anew, and have them belong to this graph, once all of another's have been adopted."""
        for position, node in enumerate(self.nodes):
            node.id = position
            node.graph = self
        self.version += 1

    def keep(self, nodes: list[Node]) -> None:
        """Take all other nodes out; these, in the graph's order, must not use them."""
        if len(nodes) == len(self.nodes):
            return
        self.nodes = nodes
        self._by_name = {node.name: node for node in nodes}
        for position, node in enumerate(nodes):
            node.id = position
        self.version += 1

    def subgraph(self, keep: Collection[Node] | None = None) -> Graph:
        """A new graph with copies of the nodes in `keep` (default: all) in this graph's order.

        Attribute messages are shared, not copied. Inputs from nodes left out are dropped silently: cut them
        first, or replace them in the result. The function library is shared until changed.
        """
        out = Graph()
        out.versions.CopyFrom(self.versions)
        out.library = self.library.copy()
        out._shell = self._shell
        wanted = None if keep is None else {node.id for node in keep}
        if wanted is not None and not wanted:
            return out
        chosen = self.nodes if wanted is None else [n for n in self.nodes if n.id in wanted]
        copies = out.add_copies(chosen, len(self.nodes))
        # one endpoint for all who read a node's first output
        first = [None if copy is None else Output(copy, 0) for copy in copies]
        for node in chosen:
            copy = copies[node.id]
            assert copy is not None
            inputs = copy.inputs
            for src, index in node.inputs:
                source = first[src.id]
                if source is not None:
                    inputs.append(source if index == 0 else Output(source[0], index))
            if node.control_inputs:
                copy.control_inputs = [c for src in node.control_inputs if (c := copies[src.id]) is not None]
        return out

    def copy(self) -> Graph:
        """A graph equal to this one whose nodes can be changed freely."""
        return self.subgraph()

    def unique_name(self, wanted: str) -> str:
        """`wanted`, or `wanted_1`, `wanted_2`, ... when it is taken."""
        if wanted not in self._by_name:
            return wanted
        count = 1
        while f"{wanted}_{count}" in self._by_name:
            count += 1
        return f"{wanted}_{count}"

    # -- GraphDef ----------------------------------------------------------------------------------------

    @staticmethod
    def from_proto(proto: graph_pb2.GraphDef) -> Graph:
        """Take over a GraphDef message (do not use it afterwards).

        Raises:
            GraphError: a duplicate name, an input that does not exist, a control input before a data input.
        """
        graph = Graph()
        graph.versions.CopyFrom(proto.versions)
        graph.library = FunctionLibrary.from_proto(proto.library)
        append = graph._append
        for definition in proto.node:
            append(Node(graph, len(graph.nodes), definition.name, definition.op, definition.device, definition))
        opdefs.hear({node.op: node.base for node in graph.nodes})
        link(graph.nodes, graph._by_name)
        del proto.node[:]
        graph._take_shell(proto)
        return graph

    def take_over(self, nodes: list[Node], by_name: dict[str, Node], rest: graph_pb2.GraphDef) -> None:
        """Become the graph of nodes that were made for it, and linked, by whoever read them; it has none yet.

        Args:
            nodes: in order, each with its place as id.
            by_name: the same by their names.
            rest: what else the GraphDef holds; do not use it afterwards.

        Raises:
            GraphError: two functions have one name.
        """
        self.versions.CopyFrom(rest.versions)
        self.library = FunctionLibrary.from_proto(rest.library)
        self.nodes, self._by_name = nodes, by_name
        self.version += len(nodes)
        self._take_shell(rest)

    def take_table(self, nodes: UnmadeNodes, rest: graph_pb2.GraphDef) -> None:
        """Become the graph of nodes that none has been made of, of whoever read them; it has none yet.

        Args:
            rest: what else the GraphDef holds; do not use it afterwards.

        Raises:
            GraphError: two functions have one name.
        """
        self.versions.CopyFrom(rest.versions)
        self.library = FunctionLibrary.from_proto(rest.library)
        self.leave_unmade(nodes)
        self._take_shell(rest)

    def leave_unmade(self, nodes: UnmadeNodes) -> None:
        """Have these nodes in the place of those that there are, none of which anybody holds."""
        if self.unmade is None:
            del self.nodes, self._by_name
        self.unmade = nodes
        self.version += 1

    def _take_shell(self, proto: graph_pb2.GraphDef) -> None:
        # Emptied but still present where they were: TensorFlow writes an empty library too.
        for part in ("library", "versions"):
            if proto.HasField(part):
                proto.ClearField(part)
                getattr(proto, part).SetInParent()
        self._shell = proto

    def extend(self, proto: graph_pb2.GraphDef) -> None:
        """Append the nodes of a GraphDef, which may use those that are here, and its functions; all of it or nothing.

        Do not use the message afterwards. Functions that are here already are left out.

        Raises:
            GraphError: a name is taken, or is another function's; an input does not exist; a control input before a
                data input.
        """
        library = self.library.copy()
        for function in proto.library.function:
            library.add(function)
        library.gradients.update({each.function_name: each.gradient_func for each in proto.library.gradient})
        before = len(self.nodes)
        try:
            for definition in proto.node:
                self._append(Node(self, len(self.nodes), definition.name, definition.op, definition.device, definition))
            opdefs.hear({node.op: node.base for node in self.nodes[before:]})
            link(self.nodes[before:], self._by_name)
        except GraphError:
            for node in self.nodes[before:]:
                del self._by_name[node.name]
            del self.nodes[before:]
            raise
        self.library = library

    def to_proto(self) -> graph_pb2.GraphDef:
        """The GraphDef of this graph, unknown fields of what was read included."""
        out = graph_pb2.GraphDef()
        if self._shell is not None:
            out.CopyFrom(self._shell)
        out.node.extend(map(node_to_proto, self.nodes))
        if self._shell is None or self._shell.HasField("versions") or self.versions.ByteSize():
            out.versions.CopyFrom(self.versions)
        if len(self.library) or out.HasField("library"):
            self.library.to_proto(out.library)
        return out
