"""GraphDef messages to graphs and back."""

from __future__ import annotations

import mmap

from schemas.graph_pb2 import GraphDef
from toolkit.formats.models.node_bytes import read_many, read_nodes
from toolkit.formats.models.node_parts import node_parts
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph

#: nodes, of at most so many bytes in the mean, from which on it pays to write a message for the sake of what its nodes
#: have in common; of weights there would be too many copies
_MANY, _SMALL = 2_000, 1_000


def from_proto(proto: GraphDef) -> Graph:
    """Take over a GraphDef (do not use it afterwards).

    Raises:
        GraphError: a duplicate name, an input that does not exist, a control input before a data input.
    """
    with no_collection():
        count = len(proto.node)
        if count > _MANY and proto.ByteSize() < _SMALL * count:
            graph = read_nodes(proto.SerializeToString(deterministic=True))
            if graph is not None:
                return graph
        return Graph.from_proto(proto)


def from_bytes(data: bytes | mmap.mmap) -> Graph | None:
    """The graph of a serialized GraphDef; None where it has to be parsed as a message, and anything may be wrong.

    Large constants stay where they are: a memory map is the graph's from now on, unless there is none.

    Raises:
        GraphmillError: a plugin that the graph names failed; two functions have one name.
    """
    with no_collection():
        return read_nodes(data)


def unmade_from_bytes(data: bytes | mmap.mmap) -> Graph | None:
    """The graph of a serialized GraphDef of very many nodes, none of which has been made; None for any other.

    Raises:
        GraphmillError: as `from_bytes`.
    """
    with no_collection():
        return read_many(data)


def to_proto(graph: Graph) -> GraphDef:
    """The GraphDef of a graph; unknown fields of what was read are kept."""
    with no_collection():
        return graph.to_proto()


def to_parts(graph: Graph) -> list[bytes]:
    """The binary GraphDef of a graph in pieces to be written one after the other; maps in key order.

    The same bytes as those of `to_proto`, in a fraction of the time for graphs that hold weights: serialized as a
    whole, the buffer of a large message is grown and copied again and again.
    """
    with no_collection():
        # node is the first field: the rest follows it
        rest = graph.subgraph([]).to_proto().SerializeToString(deterministic=True)
        unmade = graph.unmade
        return [*(node_parts(graph) if unmade is None else unmade.parts()), rest]


def field_of(number: int, data: bytes) -> bytes:
    """The tag and the length of a length-delimited field."""
    return bytes((number << 3 | 2,)) + varint_bytes(len(data))
