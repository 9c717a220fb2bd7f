"""What a graph holds while nobody has asked for its nodes.

A graph of a million nodes that is read to be cut, judged or summarised as a whole needs no object for each of them. It
then has a table of its nodes, which makes them all when somebody asks for one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolkit.graph.graph import Graph
    from toolkit.graph.node import Node
    from toolkit.graph.shapes.calls import Calls


class UnmadeNodes(Protocol):
    """The nodes of a graph, in order, none of which has been made (`toolkit.formats.node_tables.table`).

    Attributes:
        numbers: the place of each node by its name.
    """

    @property
    def numbers(self) -> Mapping[str, int]: ...

    def __len__(self) -> int: ...

    def make(self, graph: Graph) -> tuple[list[Node], dict[str, Node]]:
        """All nodes of a graph, linked, and the same by their names."""
        ...

    def glance(self, graph: Graph, name: str) -> Node | None:
        """The node of that name, to be looked at and not to be changed, without the others; None where there is none.
        It is the same each time, and when all are made."""
        ...

    def has_output(self, graph: Graph, name: str, index: int) -> bool:
        """Whether there is such a node with such an output, as far as its types can be worked out."""
        ...

    def examples(self, graph: Graph) -> Sequence[Node]:
        """Nodes that are in no graph's list: one of each op and attributes there are, but for the names in `_class`;
        without inputs."""
        ...

    def nodes_of(self, graph: Graph, ops: Collection[str]) -> Sequence[Node]:
        """Nodes that are in no graph's list: all of some ops, in order, without inputs."""
        ...

    def nodes_on(self, graph: Graph, devices: Collection[str]) -> Sequence[Node]:
        """Nodes that are in no graph's list: all that ask for some devices, in order, without inputs."""
        ...

    def device_names(self) -> set[str]:
        """The devices that nodes have, "" where there are nodes that have none."""
        ...

    def is_sound(self, graph: Graph) -> bool:
        """Whether nothing is wrong with the nodes and the edges between them, nor any edge leads back but those of
        loops; False where nodes have to be looked at one by one (`toolkit.graph.check`)."""
        ...

    def shapes_fit(self, graph: Graph, calls: Calls) -> bool:
        """Whether static shapes contradict each other nowhere; False where nodes have to be looked at one by one
        (`toolkit.graph.infer`). To be asked of sound nodes."""
        ...

    def parts(self) -> list[bytes]:
        """The bytes of all nodes as a GraphDef's field, in order, in pieces; maps in key order."""
        ...
