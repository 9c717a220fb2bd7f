"""Regular expressions of models: RE2 (`formats/expressions`), the engine that TensorFlow's ops use.

Patterns and texts are bytes that are read as UTF-8.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.formats.expressions import MalformedError, Pattern, compile_expression

Match = Any


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: bytes) -> Pattern:
    """A compiled pattern, with `fullmatch`, `search` and `groups` as in Python's `re`.

    Raises:
        InvalidArgumentError: the pattern is malformed, or needs more memory than RE2 gives to one.
        GraphmillError: the installation lacks google-re2.
    """
    try:
        return compile_expression(pattern)
    except MalformedError as error:
        text = pattern.decode("utf-8", "backslashreplace")
        raise InvalidArgumentError(f"Invalid pattern: {text}, error: {error}") from None


Rewrite = Callable[[Match], bytes]


@functools.lru_cache(maxsize=256)
def compile_rewrite(rewrite: bytes, groups: int, everywhere: bool) -> Rewrite | None:
    """A function from a match to what replaces it, or None when RE2 would leave the text alone.

    `\\1` stands for the first group and `\\\\` for a backslash. A group that the pattern does not have makes RE2
    leave the text alone. Another escape does so for a single replacement; a global one uses what comes before it.
    """
    parts: list[bytes | int] = []
    at = 0
    while at < len(rewrite):
        char = rewrite[at : at + 1]
        if char != b"\\":
            parts.append(char)
            at += 1
            continue
        follower = rewrite[at + 1 : at + 2]
        if follower.isdigit():
            parts.append(int(follower))
        elif follower == b"\\":
            parts.append(b"\\")
        elif everywhere:
            break
        else:
            return None
        at += 2
    if any(isinstance(part, int) and part > groups for part in parts):
        return None
    if all(isinstance(part, bytes) for part in parts):
        fixed = b"".join(part for part in parts if isinstance(part, bytes))
        return lambda match: fixed
    return lambda match: b"".join(part if isinstance(part, bytes) else match.group(part) or b"" for part in parts)


def replace(pattern: Pattern, text: bytes, rewrite: Rewrite, *, everywhere: bool) -> bytes:
    """RE2's GlobalReplace or Replace: no empty match right after another match."""
    if not everywhere:
        match = pattern.search(text)
        return text if match is None else text[: match.start()] + rewrite(match) + text[match.end() :]
    out: list[bytes] = []
    at, last = 0, -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        out.append(text[at : match.start()])
        at = match.start()
        if at == match.end() == last:
            step = _character(text, at)
            out.append(text[at : at + step])
            at += step
            continue
        out.append(rewrite(match))
        at = last = match.end()
    out.append(text[at:])
    return b"".join(out)


def _character(text: bytes, at: int) -> int:
    """How many bytes the character there has; 1 for what is not UTF-8, and at the end."""
    lead = text[at] if at < len(text) else 0
    size = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        return size if len(text[at : at + size].decode("utf-8", "surrogatepass")) == 1 else 1
    except UnicodeDecodeError:
        return 1
