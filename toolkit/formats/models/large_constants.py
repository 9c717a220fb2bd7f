"""Large constants of a GraphDef, taken off the wire without a copy of what they hold.

Weights are nearly all of a frozen network. A parser of messages copies them, and whoever asks the message for them
copies them again; most of the time that this takes goes into memory that is touched for the first time. So the bytes
of the file stay, and are looked at where they are.
"""

from __future__ import annotations

import mmap

from google.protobuf.message import DecodeError

from schemas.tensor_pb2 import TensorProto
from toolkit.formats.models import protoscan
from toolkit.graph.kinds import NodeKind
from toolkit.graph.packed import VALUE, PackedTensor

#: bytes of a node from which on its value stays where it is: 16 pages, some 30 us to copy, about what it costs to take
#: the fields apart; more than the elements that shape functions look at take (`toolkit.graph.values.value.LIMIT`)
WORTH = 1 << 16
#: fields of NodeDef, of an entry of its map, of AttrValue and of TensorProto
_ATTR, _KEY, _ENTRY, _TENSOR = 5, 1, 2, 8
_DTYPE, _SHAPE, _CONTENT = 1, 2, 4
#: as arrays of their own begin, for vector instructions
_ALIGNMENT = 16


def constant_kind(op: str, data: bytes | mmap.mmap, start: int, end: int) -> tuple[NodeKind, int] | None:
    """The kind of a node whose attributes are data[start:end], and where the content of its value begins.

    None where they are not those of a large constant as serializers write them.

    Raises:
        WireError: the bytes are not in the wire format.
    """
    if op != "Const" or end - start < WORTH:
        return None
    attributes = _fields(data, start, end)
    large = [field for field in attributes if field.end - field.start >= WORTH]
    if len(large) != 1 or any(field.number != _ATTR for field in attributes):
        return None
    (entry,) = large
    parts = _fields(data, entry.value, entry.end)
    if [part.number for part in parts] != [_KEY, _ENTRY] or data[parts[0].value : parts[0].end] != VALUE.encode():
        return None
    values = _fields(data, parts[1].value, parts[1].end)
    if [value.number for value in values] != [_TENSOR]:
        return None
    fields = _fields(data, values[0].value, values[0].end)
    if [field.number for field in fields] != [_DTYPE, _SHAPE, _CONTENT] or fields[-1].wire_type != protoscan.LENGTH:
        return None
    content = fields[-1]
    view = memoryview(data)[content.value : content.end].toreadonly()
    try:
        value = PackedTensor(TensorProto.FromString(data[values[0].value : content.start]), view)
        return NodeKind.of_constant(op, data[start : entry.start] + data[entry.end : end], value), content.value
    except (DecodeError, ValueError):
        return None


def align(found: list[tuple[NodeKind, int]], data: mmap.mmap) -> None:
    """Move the contents of constants so that arrays may look at them: down to the multiple of 16 bytes before, over
    tags and lengths of their own, of which there are more and which nobody reads again.

    Args:
        found: what `constant_kind` gave, all of it.
        data: the bytes of that file: memory that is nobody else's, and so begins where a page does.
    """
    whole = memoryview(data)
    for kind, at in found:
        assert kind.packed is not None
        size, place = len(kind.packed.content), at - at % _ALIGNMENT
        if place != at:
            whole[place : place + size] = whole[at : at + size]
            kind.packed = kind.packed._replace(content=whole[place : place + size].toreadonly())


def _fields(data: bytes | mmap.mmap, start: int, end: int) -> list[protoscan.Field]:
    # a memory map is indexed and sliced as bytes are
    return list(protoscan.fields(data, start, end))  # type: ignore[arg-type]
