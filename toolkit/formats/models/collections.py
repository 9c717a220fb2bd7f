"""What the collections of a MetaGraph hold as bytes: messages."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from schemas.variable_pb2 import VariableDef
from toolkit.errors import FormatError


def variable_def(data: bytes) -> VariableDef:
    """The variable that an item of a collection describes.

    Raises:
        FormatError: it is no such message.
    """
    try:
        return VariableDef.FromString(data)
    except DecodeError:
        raise FormatError(
            "a collection of variables has an item that is no VariableDef: the graph is damaged"
        ) from None
