"""The protobuf text format (.pbtxt)."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from toolkit.errors import FormatError
from toolkit.formats.documents import brief
from toolkit.printable import proto_printable

M = TypeVar("M", bound=Message)


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
        text_format.Parse(text, message)
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
