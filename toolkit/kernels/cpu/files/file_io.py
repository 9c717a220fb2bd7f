"""Whole files: ReadFile, WriteFile, MatchingFiles."""

from __future__ import annotations

import itertools
import os
import re

import numpy as np

from toolkit.errors import (
    OpError,
    os_status,
)
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array
from toolkit.policy.access import Files
from toolkit.policy.outside import Reach
from toolkit.policy.rules import SPECIAL


def file_error(error: OSError, name: str) -> OpError:
    """What the system said, with the canonical status of its errno."""
    return os_status(error)(f"{name}: {error.strerror or error}")


def path_of(name: Array, what: str = "filename") -> str:
    """A scalar string tensor as a path; a leading file:// is dropped.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    require(np.ndim(name) == 0, f"{what} must be a scalar, got shape {shape_text(name)}")
    return os.fsdecode(np.asarray(name).item()).removeprefix("file://")


@kernel("ReadFile", kind=Kind.STATEFUL)
def read_file(op: KernelNode) -> Compute:
    """The bytes of a file.

    Raises:
        OpError: NOT_FOUND, PERMISSION_DENIED, FAILED_PRECONDITION for a folder, as the system says.
    """
    files = op.files

    def compute(step: StepContext, filename: Array) -> Array:
        name = path_of(filename)
        try:
            return np.array(files.read(name), object)
        except OSError as error:
            raise file_error(error, name) from None

    return compute


@kernel("WriteFile", kind=Kind.STATEFUL)
def write_file(op: KernelNode) -> Compute:
    """Writes a file, all or nothing, making its folders first."""
    files = op.files

    def compute(step: StepContext, filename: Array, contents: Array) -> None:
        name = path_of(filename)
        require(np.ndim(contents) == 0, f"contents must be a scalar, got shape {shape_text(contents)}")
        try:
            files.write(name, np.asarray(contents).item())
        except OSError as error:
            raise file_error(error, name) from None

    return compute


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
    for star, following in itertools.pairwise(stars):
        out[star] = "(?>.*?"
        out[following - 1] += ")"
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        return None


def matching(files: Files, pattern: str) -> list[str]:
    """The paths that a pattern names; a `*` does not cross folders, and matches names with a leading dot too.

    Raises:
        RefusedError: a folder that would have to be listed is not allowed.
    """
    if not pattern:
        return []
    first = SPECIAL.search(pattern)
    if first is None:
        return [pattern] if os.path.exists(files.may(Reach.LIST, pattern)) else []  # noqa: PTH110 -- of any name
    fixed = pattern[: pattern.rfind("/", 0, first.start()) + 1]
    found = [fixed or "./"]
    parts = [part for part in pattern[len(fixed) :].split("/") if part]
    for depth, part in enumerate(parts):
        special = SPECIAL.search(part)
        if special is None:
            found = [os.path.join(folder, part) for folder in found]  # noqa: PTH118 -- keeps ./ and the like
            for path in found:
                files.may(Reach.LIST, path)  # whether it exists is told as well
            continue
        expression = _expression(part)
        if expression is None:
            return []
        found = [
            os.path.join(folder, name)  # noqa: PTH118
            for folder in found
            for name in files.names(folder, part[: special.start()])
            if expression.fullmatch(name) and (depth == len(parts) - 1 or os.path.isdir(os.path.join(folder, name)))  # noqa: PTH112, PTH118
        ]
    return [path for path in found if os.path.lexists(path)]


@kernel("MatchingFiles", kind=Kind.STATEFUL)
def matching_files(op: KernelNode) -> Compute:
    files = op.files

    def compute(step: StepContext, pattern: Array) -> Array:
        return all_matching(files, pattern)

    return compute


def all_matching(files: Files, pattern: Array) -> Array:
    """The files that match any of the patterns (a scalar or a vector), sorted; a file can occur once a pattern.

    Raises:
        InvalidArgumentError: the patterns are a matrix or more.
        RefusedError: a folder that would have to be listed is not allowed.
    """
    require(np.ndim(pattern) <= 1, f"pattern must be a scalar or a vector, got shape {shape_text(pattern)}")
    patterns: list[bytes] = np.ravel(pattern).tolist()
    paths = [
        os.fsencode(path) for each in patterns for path in matching(files, os.fsdecode(each).removeprefix("file://"))
    ]
    out = np.empty(len(paths), object)
    out[:] = sorted(paths)
    return out
