"""Whole files: ReadFile, WriteFile, MatchingFiles."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from toolkit.errors import (
    FailedPreconditionError,
    GraphmillError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)
from toolkit.formats.io import write_atomic
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array

_STATUS: dict[int, type[OpError]] = {
    errno.ENOENT: NotFoundError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EEXIST: FailedPreconditionError,  # a file where a folder has to be
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENAMETOOLONG: InvalidArgumentError,
    errno.EINVAL: InvalidArgumentError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
}


def file_error(error: OSError, name: str) -> OpError:
    """What the system said, with the canonical status of its errno."""
    kind = _STATUS.get(error.errno or 0, UnknownError)
    return kind(f"{name}: {error.strerror or error}")


def path_of(name: Array, what: str = "filename") -> str:
    """A scalar string tensor as a path; a leading file:// is dropped.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    require(np.ndim(name) == 0, f"{what} must be a scalar, got shape {shape_text(name)}")
    return os.fsdecode(np.asarray(name).item()).removeprefix("file://")


@simple("ReadFile")
def read_file(filename: Array) -> Array:
    """The bytes of a file.

    Raises:
        OpError: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION for a folder, as the system says.
    """
    name = path_of(filename)
    try:
        return np.array(Path(name).read_bytes(), object)
    except ValueError:  # a NUL character inside
        raise InvalidArgumentError(f"'{name!r}' is not the name of a file") from None
    except OSError as error:
        raise file_error(error, name) from None


@simple("WriteFile")
def write_file(filename: Array, contents: Array) -> None:
    """Writes a file, all or nothing, making its folders first."""
    name = path_of(filename)
    require(np.ndim(contents) == 0, f"contents must be a scalar, got shape {shape_text(contents)}")
    target = Path(name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        write_atomic(target, np.asarray(contents).item())
    except OSError as error:
        raise file_error(error, name) from None
    except GraphmillError as error:
        cause = error.__context__
        raise (file_error(cause, name) if isinstance(cause, OSError) else UnknownError(str(error))) from None


_SPECIAL = re.compile(r"[*?\[\\]")


def _expression(pattern: str) -> re.Pattern[str] | None:
    """One component of a pattern as a regular expression, by fnmatch's rules: * ? [a-z] [!a] [^a] and \\x.

    None when a bracket or a backslash is not finished: nothing matches it.
    """
    out: list[str] = []
    stars: list[int] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            stars.append(len(out))
            out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "\\":
            if at == len(pattern):
                return None
            out.append(re.escape(pattern[at]))
            at += 1
        elif char == "[":
            end = pattern.find("]", at + (2 if pattern[at : at + 1] in ("!", "^") else 1))
            if end < 0:
                out.append(r"\[")
                continue
            body = pattern[at:end]
            negated = body[:1] in ("!", "^")
            body = re.sub(r"([\\\[\]^&~|])", r"\\\1", body[1:] if negated else body)
            out.append(f"[{'^' if negated else ''}{body}]")
            at = end + 1
        else:
            out.append(re.escape(char))
    # what comes between two stars may be taken where it is found first: going back for another place, star by star,
    # takes time without end
    for star, following in zip(stars, stars[1:], strict=False):
        out[star] = "(?>.*?"
        out[following - 1] += ")"
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        return None


def _children(folder: str) -> Iterable[str]:
    try:
        return os.listdir(folder or ".")  # noqa: PTH208 -- names as they are, not Path objects
    except OSError:
        return ()


def matching(pattern: str) -> list[str]:
    """The paths that a pattern names; a `*` does not cross folders, and matches names with a leading dot too."""
    first = _SPECIAL.search(pattern)
    if first is None:
        return [pattern] if Path(pattern).exists() else []
    fixed = pattern[: pattern.rfind("/", 0, first.start()) + 1]
    found = [fixed or "./"]
    parts = [part for part in pattern[len(fixed) :].split("/") if part]
    for depth, part in enumerate(parts):
        if not _SPECIAL.search(part):
            found = [os.path.join(folder, part) for folder in found]  # noqa: PTH118 -- keeps ./ and the like
            continue
        expression = _expression(part)
        if expression is None:
            return []
        found = [
            os.path.join(folder, name)  # noqa: PTH118
            for folder in found
            for name in _children(folder)
            if expression.fullmatch(name) and (depth == len(parts) - 1 or Path(folder, name).is_dir())
        ]
    return [path for path in found if os.path.lexists(path)]


@simple("MatchingFiles")
def matching_files(pattern: Array) -> Array:
    """The files that match any of the patterns (a scalar or a vector), sorted; a file can occur once a pattern.

    Raises:
        InvalidArgumentError: the patterns are a matrix or more.
    """
    require(np.ndim(pattern) <= 1, f"pattern must be a scalar or a vector, got shape {shape_text(pattern)}")
    patterns: list[bytes] = np.ravel(pattern).tolist()
    paths = [os.fsencode(path) for each in patterns for path in matching(os.fsdecode(each).removeprefix("file://"))]
    out = np.empty(len(paths), object)
    out[:] = sorted(paths)
    return out
