"""Models of more than 2 GB written, split over the records of a file (.cpb), as TensorFlow reads them.

The first record is the model without nodes and functions, then slices of these, large tensors each by itself, and last
how to put them together; `toolkit.formats.models.chunks` does.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO

from google.protobuf.message import Message

from schemas import chunk_pb2
from schemas.function_pb2 import FunctionDefLibrary
from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from schemas.saved_model_pb2 import SavedModel
from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.inspection.detect import ModelKind
from toolkit.formats.models import graphdef, metagraph, protoscan, savedmodel
from toolkit.formats.records.riegeli import RecordWriter
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.nodedefs import node_to_proto

#: of nodes and functions that are one chunk; a tensor of more has one of its own
PIECE = 1 << 20
#: who wrote it, for information
_SPLITTER_VERSION = 1

_Way = list[chunk_pb2.FieldIndex]


def split_writer(kind: ModelKind, metas: Sequence[MetaGraph], shell: SavedModel, name: str) -> io.Writer:
    """What writes a model into a file, in pieces.

    Args:
        metas: the graphs; of a GraphDef and a MetaGraphDef the only one.
        name: of the file, for errors.
    """

    def write(file: BinaryIO) -> None:
        writer = _Splitter(file, name)
        writer.write(kind, metas, shell)

    return write


class _Splitter:
    def __init__(self, file: BinaryIO, name: str):
        self._records = RecordWriter(file)
        self._metadata = chunk_pb2.ChunkMetadata()
        self._metadata.version.splitter_version = _SPLITTER_VERSION
        self._name = name

    def write(self, kind: ModelKind, metas: Sequence[MetaGraph], shell: SavedModel) -> None:
        self._metadata.message.chunk_index = self._chunk(_skeleton(kind, metas, shell), chunk_pb2.ChunkInfo.MESSAGE)
        for position, meta in enumerate(metas):
            way: _Way = []
            if kind is ModelKind.SAVED_MODEL:
                way = [_field(SavedModel.META_GRAPHS_FIELD_NUMBER), chunk_pb2.FieldIndex(index=position)]
            if kind is not ModelKind.GRAPH_DEF:
                way = [*way, _field(MetaGraphDef.GRAPH_DEF_FIELD_NUMBER)]
            self._graph(meta.graph, way)
        self._records.add(self._metadata.SerializeToString())
        self._records.flush()

    def _chunk(self, data: Any, kind: Any) -> int:
        if len(data) > io.PROTO_LIMIT:
            raise FormatError(
                f"a single node or tensor of {len(data):,} bytes is over the limit of 2 GiB", file=self._name
            )
        index = len(self._metadata.chunks)
        self._metadata.chunks.add(type=kind, size=len(data), offset=self._records.add(data))
        return index

    def _place(self, data: Any, kind: Any, way: _Way) -> None:
        field = self._metadata.message.chunked_fields.add(field_tag=way)
        field.message.chunk_index = self._chunk(data, kind)

    def _graph(self, graph: Graph, way: _Way) -> None:
        for piece in self._pieces(self._nodes(graph, way)):
            self._place(piece, chunk_pb2.ChunkInfo.MESSAGE, way)
        library = [*way, _field(GraphDef.LIBRARY_FIELD_NUMBER)]
        number = FunctionDefLibrary.FUNCTION_FIELD_NUMBER
        functions = (graph.library.function(name).SerializeToString(deterministic=True) for name in graph.library)
        for piece in self._pieces(graphdef.field_of(number, data) + data for data in functions):
            self._place(piece, chunk_pb2.ChunkInfo.MESSAGE, library)

    def _nodes(self, graph: Graph, way: _Way) -> Iterator[bytes]:
        """The nodes as a GraphDef has them; large tensors become chunks of their own."""
        for position, node in enumerate(graph.nodes):
            data = _serialized(node, self._name)
            if len(data) > PIECE and node.op == "Const":
                cut = cut_tensor(data)
                if cut is not None:
                    data, content = cut
                    steps = [_field(GraphDef.NODE_FIELD_NUMBER), chunk_pb2.FieldIndex(index=position), *_TO_CONTENT]
                    self._later.append((content, [*way, *steps]))
            yield graphdef.field_of(GraphDef.NODE_FIELD_NUMBER, data) + data

    @functools.cached_property
    def _later(self) -> list[tuple[Any, _Way]]:
        return []

    def _pieces(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Items joined up to the size of a piece; what is left for later comes when the piece before is written."""
        waiting: list[bytes] = []
        size = 0
        for item in items:
            waiting.append(item)
            size += len(item)
            if size > PIECE or self._later:
                yield b"".join(waiting)
                waiting, size = [], 0
                for content, way in self._later:
                    self._place(content, chunk_pb2.ChunkInfo.BYTES, way)
                self._later.clear()
        if waiting:
            yield b"".join(waiting)


def _skeleton(kind: ModelKind, metas: Sequence[MetaGraph], shell: SavedModel) -> bytes:
    """The model without the nodes and the functions of its graphs."""
    empty: list[MetaGraph] = []
    for meta in metas:
        graph = meta.graph.subgraph([])
        for name in list(graph.library):
            gradient = graph.library.gradients.get(name)
            graph.library.remove(name)
            if gradient is not None:
                graph.library.gradients[name] = gradient
        empty.append(replace(meta, graph=graph))
    if kind is ModelKind.GRAPH_DEF:
        message: Message = graphdef.to_proto(empty[0].graph)
    else:
        with_ops = [
            metagraph.to_proto(meta, used=metagraph.used_ops(whole.graph))
            for meta, whole in zip(empty, metas, strict=True)
        ]
        message = with_ops[0] if kind is ModelKind.META_GRAPH else savedmodel.around(with_ops, shell)
    return message.SerializeToString(deterministic=True)


def _serialized(node: Node, name: str) -> bytes:
    try:
        return node_to_proto(node).SerializeToString(deterministic=True)
    except Exception as error:  # protobuf has several for what is too large
        raise FormatError(f"the node '{node.name}' cannot be written: {error}", file=name) from None


def _field(number: int) -> chunk_pb2.FieldIndex:
    return chunk_pb2.FieldIndex(field=number)


#: NodeDef.attr["value"].tensor.tensor_content
_TO_CONTENT = [
    _field(5), chunk_pb2.FieldIndex(map_key=chunk_pb2.FieldIndex.MapKey(s="value")), _field(8), _field(4)
]  # fmt: skip
_ATTR, _VALUE, _TENSOR, _CONTENT = 5, 2, 8, 4


def cut_tensor(data: bytes) -> tuple[bytes, memoryview] | None:
    """A serialized Const without the bytes of its tensor, and those; None where it has none."""
    spans: list[protoscan.Field] = []
    start, end = 0, len(data)
    for number in (_ATTR, _VALUE, _TENSOR, _CONTENT):
        fields = [field for field in protoscan.fields(data, start, end) if field.number == number]
        if number == _ATTR:
            fields = [field for field in fields if data[field.value : field.value + 7] == b"\n\x05value"]
        if len(fields) != 1:
            return None
        spans.append(fields[0])
        start, end = fields[0].value, fields[0].end
    content = spans.pop()
    inner = b""  # what replaces the field inside, from the inside out
    hole = content
    for span in reversed(spans):
        inner = data[span.value : hole.start] + inner + data[hole.end : span.end]
        inner = graphdef.field_of(span.number, inner) + inner
        hole = span
    return data[: hole.start] + inner + data[hole.end :], memoryview(data)[content.value : content.end]
