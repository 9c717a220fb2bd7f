"""What came from a file, made fit to be looked at: one function for every output that people read.

Names in a graph, tags, metadata and messages may hold any character. A terminal acts upon some (ESC begins a command,
CR goes back and overwrites, BEL rings), others turn the text around them (bidirectional controls), end a line or are
not seen at all. Each of these is written as its escape in Python's notation: \\x1b, \\u202e, \\n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: what ends a string's being plain text; inside JSON and protobuf's text format these can only stand in strings
_UNSEEN = re.compile("[\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]")


def printable(text: str, keep: str = "") -> str:
    """A text in which every character is seen and none is acted upon.

    Args:
        keep: characters that stay as they are, such as a newline.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def text_of(lines: Iterable[str]) -> str:
    """Lines as one text with a newline at its end; a newline inside of one is escaped, so that it stays one line."""
    return "".join(f"{printable(line)}\n" for line in lines)


def json_printable(text: str) -> str:
    """JSON in which what is not seen, or acted upon, is written as \\uXXXX; it means the same."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def proto_printable(text: str) -> str:
    """Protobuf's text format in which what is not seen, or acted upon, is written as octal bytes; it means the same."""
    return _UNSEEN.sub(lambda match: "".join(f"\\{byte:03o}" for byte in match[0].encode()), text)
