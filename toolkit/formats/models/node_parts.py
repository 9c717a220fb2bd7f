"""The nodes of a graph as the bytes of a GraphDef's first field, without a message for what is as it was read."""

from __future__ import annotations

from schemas.graph_pb2 import GraphDef
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.nodedefs import node_to_proto

#: so many small nodes are joined to a piece, which is then written at once
_JOINED = 4096
#: bytes of attributes above which a node is a piece of its own
_LARGE = 1 << 16
_NAME, _OP, _INPUT, _DEVICE = b"\x0a", b"\x12", b"\x1a", b"\x22"
_NODE = bytes((GraphDef.NODE_FIELD_NUMBER << 3 | 2,))
#: small numbers, as nearly all lengths are
_LENGTHS = [varint_bytes(number) for number in range(1024)]


def node_parts(graph: Graph) -> list[bytes]:
    """The bytes of all nodes, in order, in pieces; maps in key order."""
    parts: list[bytes] = []
    small: list[bytes] = []
    of_plugins = opdefs.OF_PLUGINS
    names = [_sized(node.name.encode()) for node in graph.nodes]
    ops: dict[str, bytes] = {"": b""}
    devices: dict[str, bytes] = {"": b""}
    for node in graph.nodes:
        source = node.source
        if isinstance(source, NodeKind) and not node.changed_attrs and node.op not in of_plugins:
            op = ops.get(node.op)
            if op is None:
                op = ops[node.op] = _OP + _sized(node.op.encode())
            device = devices.get(node.device)
            if device is None:
                device = devices[node.device] = _DEVICE + _sized(node.device.encode())
            fields = [_NAME, names[node.id], op]
            for src, index in node.inputs:
                fields += (_INPUT, names[src.id] if index == 0 else _sized(b"%s:%d" % (src.name.encode(), index)))
            for src in node.control_inputs:
                fields += (_INPUT, _sized(b"^" + src.name.encode()))
            fields += (device, source.attributes)
            data = b"".join(fields)
        else:
            data = node_to_proto(node).SerializeToString(deterministic=True)
        size = len(data)
        small += (_NODE, _LENGTHS[size] if size < 1024 else varint_bytes(size))
        if size < _LARGE:
            small.append(data)
            if len(small) > _JOINED:
                parts.append(b"".join(small))
                small.clear()
        else:
            parts += (b"".join(small), data)
            small.clear()
    parts.append(b"".join(small))
    return parts


def _sized(data: bytes) -> bytes:
    size = len(data)
    return (_LENGTHS[size] if size < 1024 else varint_bytes(size)) + data
