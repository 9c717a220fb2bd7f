"""GraphDef, MetaGraphDef and SavedModel as JSON.

The form is protobuf's own JSON mapping with the field names of the .proto files:

* messages are objects; a field at its default is left out;
* enums are their names ("DT_FLOAT"), 64-bit integers are strings ("-1");
* bytes (string attributes, tensor_content) are base64;
* NaN and the infinities are the strings "NaN", "Infinity", "-Infinity";
* maps are objects in key order.

On reading, camelCase names, numbers for enums and plain numbers for 64-bit integers are accepted too. Fields
unknown to the schemas, and Any messages of unknown types, have no JSON form: use the binary or text format for
files that hold them.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

from google.protobuf import json_format
from google.protobuf.message import Message

from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.settings.documents import brief, load_json
from toolkit.printable import json_printable

M = TypeVar("M", bound=Message)


def parse(text: str | bytes, message: M, source: str = "") -> M:
    """Read the JSON form into `message` and return it.

    Raises:
        FormatError: not JSON (with line and column), or not this message.
    """
    value: Any = load_json(text, source or None)
    name = message.DESCRIPTOR.name
    if not isinstance(value, dict):
        raise FormatError(f"not a {name} in JSON: expected an object at the top", file=source or None)
    try:
        json_format.ParseDict(cast("dict[str, Any]", value), message)
    except RecursionError:
        raise FormatError(f"not a {name} in JSON: it is nested too deeply", file=source or None) from None
    except json_format.ParseError as error:
        what = brief(error)
        raise FormatError(f"not a {name} in JSON: {what}", file=source or None) from None
    return message


def render(message: Message) -> str:
    """The JSON form of a message, indented by two spaces, with a newline at the end.

    Raises:
        GraphmillError: it holds an Any message of a type the schemas do not have.
    """
    try:
        value = json_format.MessageToDict(message, preserving_proto_field_name=True)
    except (TypeError, json_format.Error) as error:
        raise GraphmillError(f"has no JSON form ({error}); write it as text or binary") from None
    return json_printable(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
