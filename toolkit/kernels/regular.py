"""RE2 regular expressions on Python's `re`.

TensorFlow's regex ops use RE2 on UTF-8 text. Patterns are translated: POSIX classes, \\p{..} categories, \\Q..\\E,
\\z, `$` as the very end of the text, inline flags in the middle. What RE2 refuses (look-around, back-references)
is refused. Text is decoded with undecodable bytes kept as surrogates.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable

from toolkit.errors import InvalidArgumentError

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_CATEGORY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_NAMED_GROUP = re.compile(r"\(\?P?<\w+>")
_INLINE_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")


def decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


@functools.cache
def _category_ranges(name: str, negated: bool) -> str:
    """The inside of a character class with all characters of a general category."""
    known = {"L", "M", "N", "P", "S", "Z", "C"}
    if name != "Any" and (not name or name[0] not in known or len(name) > 2):
        raise InvalidArgumentError(f"Invalid pattern: the character class \\p{{{name}}} is not supported")
    parts: list[str] = []
    start: int | None = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and (
            (name == "Any" or unicodedata.category(chr(code)).startswith(name)) != negated
        )
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            parts.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(parts)


class _Translator:
    def __init__(self, pattern: str):
        self.pattern = pattern
        self.at = 0
        self.out: list[str] = []

    def fail(self, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"Invalid pattern: {self.pattern}, error: {why}")

    def translate(self) -> str:
        closers: list[int] = []  # how many groups each open parenthesis stands for
        while self.at < len(self.pattern):
            char = self.pattern[self.at]
            if char == "\\":
                self._escape(in_class=False)
            elif char == "[":
                self._character_class()
            elif char == "(":
                self._open(closers)
            elif char == ")":
                if not closers:
                    raise self.fail("unexpected ): " + self.pattern)
                self.out.append(")" * closers.pop())
                self.at += 1
            elif char == "$":
                self.out.append("$" if self._multiline else r"\Z")
                self.at += 1
            else:
                self.out.append(char)
                self.at += 1
        if len(closers) != self._implicit:
            raise self.fail("missing ): " + self.pattern)
        self.out.append(")" * sum(closers))
        return "".join(self.out)

    _multiline = False
    _implicit = 0

    def _open(self, closers: list[int]) -> None:
        rest = self.pattern[self.at :]
        flags = _INLINE_FLAGS.match(rest)
        if not rest.startswith("(?"):
            closers.append(1)
            self.out.append("(")
            self.at += 1
        elif flags:
            on, off, end = flags.groups()
            if "U" in on or (off and "U" in off):
                raise self.fail("the flag U is not supported")
            self._multiline = ("m" in on) or (self._multiline and not (off and "m" in off))
            group = f"(?{on}{'-' + off if off else ''}:" if on or off else "(?:"
            self.out.append(group)
            if end == ":":
                closers.append(1)
            elif closers:  # the flags hold to the end of the group around them
                closers[-1] += 1
            else:
                closers.append(1)
                self._implicit += 1
            self.at += flags.end()
        elif named := _NAMED_GROUP.match(rest):  # names are never asked for, and RE2's may be numbers
            closers.append(1)
            self.out.append("(")
            self.at += named.end()
        else:
            raise self.fail(f"invalid perl operator: {rest[:3]}")

    def _escape(self, in_class: bool) -> None:
        rest = self.pattern[self.at :]
        category = _CATEGORY.match(rest)
        if category:
            which, caret, long, short = category.groups()
            inside = _category_ranges(long or short, (which == "P") != bool(caret))
            self.out.append(inside if in_class else f"[{inside}]")
            self.at += category.end()
            return
        if rest.startswith("\\Q"):
            end = rest.find("\\E", 2)
            self.out.append(re.escape(rest[2:] if end < 0 else rest[2:end]))
            self.at += len(rest) if end < 0 else end + 2
            return
        if len(rest) < 2:
            raise self.fail("trailing \\")
        follower = rest[1]
        if follower.isdigit() and follower != "0" and not re.match(r"\\[0-7]{3}", rest):
            raise self.fail(f"invalid escape sequence: {rest[:2]}")
        if follower == "x" and rest[2:3] == "{":
            end = rest.index("}")
            self.out.append(f"\\U{int(rest[3:end], 16):08x}")
            self.at += end + 1
            return
        if follower == "z":
            self.out.append(r"\Z")
        elif follower in "CZ":
            raise self.fail(f"invalid escape sequence: {rest[:2]}")
        elif not follower.isalnum() and not follower.isspace():
            self.out.append(re.escape(follower))
        else:
            self.out.append(rest[:2])
        self.at += 2

    def _character_class(self) -> None:
        self.at += 1
        self.out.append("[")
        if self.pattern[self.at : self.at + 1] == "^":
            self.out.append("^")
            self.at += 1
        first = True
        while True:
            if self.at >= len(self.pattern):
                raise self.fail("missing ]: " + self.pattern)
            char = self.pattern[self.at]
            posix = _POSIX_CLASS.match(self.pattern, self.at)
            if char == "]" and not first:
                break
            first = False
            if posix:
                negated, name = posix.groups()
                if name not in _POSIX:
                    raise self.fail(f"invalid character class range: [:{name}:]")
                self.out.append(_outside(_POSIX[name]) if negated else _POSIX[name])
                self.at = posix.end()
            elif char == "\\":
                self._escape(in_class=True)
            else:
                # escaped, because Python warns of what may become set operations
                self.out.append("\\" + char if char in "[]&|~" else char)
                self.at += 1
        self.out.append("]")
        self.at += 1


def _outside(ranges: str) -> str:
    inside = re.compile(f"[{ranges}]")
    return "".join(f"\\x{c:02x}" for c in range(128) if not inside.match(chr(c))) + "\\x80-\\U0010ffff"


@functools.lru_cache(maxsize=256)
def compile_pattern(pattern: bytes) -> re.Pattern[str]:
    """The Python pattern of an RE2 pattern.

    Raises:
        InvalidArgumentError: the pattern is malformed, or uses what RE2 does not have.
    """
    text = decode(pattern)
    try:
        return re.compile(_Translator(text).translate(), re.ASCII)
    except re.error as error:
        raise InvalidArgumentError(f"Invalid pattern: {text}, error: {error}") from None


Rewrite = Callable[[re.Match[str]], str]


@functools.lru_cache(maxsize=256)
def compile_rewrite(rewrite: bytes, groups: int, everywhere: bool) -> Rewrite | None:
    """A function from a match to what replaces it, or None when RE2 would leave the text alone.

    `\\1` stands for the first group and `\\\\` for a backslash. A group that the pattern does not have makes RE2
    leave the text alone. Another escape does so for a single replacement; a global one uses what comes before it.
    """
    text = decode(rewrite)
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char != "\\":
            parts.append(char)
            at += 1
            continue
        follower = text[at + 1 : at + 2]
        if follower.isdigit() and follower.isascii():
            parts.append(int(follower))
        elif follower == "\\":
            parts.append("\\")
        elif everywhere:
            break
        else:
            return None
        at += 2
    if any(isinstance(part, int) and part > groups for part in parts):
        return None
    if all(isinstance(part, str) for part in parts):
        fixed = "".join(map(str, parts))
        return lambda match: fixed
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)


def replace(pattern: re.Pattern[str], text: str, rewrite: Rewrite, *, everywhere: bool) -> str:
    """RE2's GlobalReplace or Replace: no empty match right after another match."""
    if not everywhere:
        return pattern.sub(rewrite, text, count=1)
    out: list[str] = []
    at, last = 0, -1
    while at <= len(text):
        match = pattern.search(text, at)
        if match is None:
            break
        out.append(text[at : match.start()])
        if match.start() == match.end() == last:
            out.append(text[match.end() : match.end() + 1])
            at = match.end() + 1
            continue
        out.append(rewrite(match))
        at = last = match.end()
    out.append(text[at:])
    return "".join(out)
