"""Choosing tensors by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

from toolkit.errors import NotFoundError, UsageError, did_you_mean
from toolkit.formats.expressions import MalformedError, Pattern, compile_expression

REGEX = "re:"


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """A test whether a name matches any of the patterns.

    A pattern is a name, a glob over the whole name, in which `*` matches slashes too ("dense/*", "*/Adam*"), or a
    regular expression in RE2's syntax that is searched for, after "re:" ("re:/Adam(_1)?$").

    Raises:
        UsageError: a regular expression is wrong.
    """
    tests: list[Callable[[str], object]] = []
    for pattern in patterns:
        if pattern.startswith(REGEX):
            tests.append(_compile(pattern[len(REGEX) :]).search)
        else:
            tests.append(re.compile(translate(pattern)).match)  # which never goes back to a star
    names = frozenset(patterns)  # a name may have brackets in it: "x[0]"
    if len(tests) == 1:  # as of most rules, asked of a million nodes
        (only,) = tests
        return lambda name: name in names or only(name) is not None
    return lambda name: name in names or any(test(name) for test in tests)


def _compile(expression: str) -> Pattern:
    try:
        return compile_expression(expression)
    except MalformedError as error:
        raise UsageError(f"'{expression}' is not a regular expression: {error}") from None


def require_matches(patterns: Sequence[str], names: Iterable[str], file: str) -> None:
    """Refuse patterns that match nothing, which are mostly typing errors.

    Raises:
        NotFoundError: one does; close names are suggested.
    """
    known = list(names)
    for pattern in patterns:
        test = matcher([pattern])
        if not any(test(name) for name in known):
            raise NotFoundError(f"no tensor matches '{pattern}'{did_you_mean(pattern, known)}", file=file)
