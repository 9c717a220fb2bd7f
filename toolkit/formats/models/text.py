"""The protobuf text format (.pbtxt)."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from google.protobuf.message import Message

from toolkit.errors import FormatError
from toolkit.formats.settings.documents import brief
from toolkit.printable import proto_printable

M = TypeVar("M", bound=Message)
#: how the text of a message within a field of any type begins, when TensorFlow wrote it
_ANY = "type.googleapis.com/tensorflow."


class TextFormatError(FormatError):
    """A text that is not the message that it should be.

    Attributes:
        what: what is wrong with the text, without what it should be.
    """

    def __init__(self, expected: str, what: str, file: str):
        super().__init__(f"{expected}{what}", file=file or None)
        self.what = what


def parse(text: str | bytes, message: M, source: str = "") -> M:
    """Read a message in text format into `message` and return it.

    Args:
        source: the file, for errors.

    Raises:
        TextFormatError: not UTF-8, or not this message; with FILE:LINE:COLUMN.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise TextFormatError("", f"text that is not UTF-8 in line {line}", source) from None
    expected = f"not a {message.DESCRIPTOR.name} in text format: "
    try:
        text_format.Parse(text, message, descriptor_pool=_tensorflow_types() if _ANY in text else None)
    except RecursionError:
        raise TextFormatError("not a graph: ", "the text is nested too deeply", source) from None
    except ValueError as error:  # a number that its field cannot hold
        raise TextFormatError(expected, brief(str(error)), source) from None
    except text_format.ParseError as error:
        line, column = error.GetLine(), error.GetColumn()
        what = str(error)
        if line is not None:
            what = what.removeprefix(f"{line}:{column} : ")
            source = f"{source}:{line}:{column}" if source else f"line {line}, column {column}"
        raise TextFormatError(expected, brief(what), source) from None
    return message


def render(message: Message) -> str:
    """The text format of a message, maps in key order. Fields unknown to the schemas have no text form."""
    return proto_printable(text_format.MessageToString(message))


@functools.cache
def _tensorflow_types() -> descriptor_pool.DescriptorPool:
    """The messages that fields of any type hold, under the names that they have in TensorFlow's package."""
    from schemas import meta_graph_pb2

    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(file: Any) -> None:
        if file.name in added:
            return
        added.add(file.name)
        for needed in file.dependencies:
            add(needed)
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        if proto.package == _OURS:
            proto.package = _THEIRS
            for each in proto.message_type:
                _rename(each)
        pool.Add(proto)

    add(meta_graph_pb2.DESCRIPTOR)
    return pool


_OURS, _THEIRS = "graphmill", "tensorflow"


def _rename(message: descriptor_pb2.DescriptorProto) -> None:
    for field in message.field:
        if field.type_name.startswith(f".{_OURS}."):
            field.type_name = f".{_THEIRS}." + field.type_name.removeprefix(f".{_OURS}.")
    for nested in message.nested_type:
        _rename(nested)
