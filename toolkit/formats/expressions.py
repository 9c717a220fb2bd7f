"""Regular expressions that come from outside: RE2, whose time is linear in the text.

An expression of a command line, a table of names or a model is never given to Python's `re`, where `(a+)+$` takes
time without end. RE2 has no backreferences and no lookaround.
"""

# the binding to RE2 has no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

from toolkit.errors import GraphmillError

Pattern = Any  # an expression of the binding


class MalformedError(ValueError):
    """No regular expression, or one that needs more memory than RE2 gives to one; its text says why."""


def compile_expression(expression: str | bytes) -> Pattern:
    """A compiled expression, with `search`, `fullmatch`, `sub` and `groups` as in Python's `re`, for texts or bytes.

    Raises:
        MalformedError: it is none.
        GraphmillError: the installation lacks google-re2.
    """
    try:
        import re2
    except ImportError as error:
        raise GraphmillError(
            f"the installation is broken: google-re2, which graphmill needs for regular expressions, cannot be "
            f"imported ({error}); install graphmill again, or: pip install google-re2"
        ) from None

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        why = error.args[0]
        raise MalformedError(why.decode("utf-8", "backslashreplace") if isinstance(why, bytes) else why) from None


def compile_glob(glob: str) -> Pattern:
    """A glob whose stars are groups and stand for anything; to be used with `fullmatch`."""
    return compile_expression("(?s)" + "(.*)".join(map(escape, glob.split("*"))))


def escape(text: str) -> str:
    """An expression for this text and no other."""
    return "".join(char if char.isalnum() or char == "_" else f"\\x{{{ord(char):x}}}" for char in text)
