"""The shards of a run: `--feed x=shards/*.npz` is one for each file that fits.

Feeds with patterns go together in the order of the files' names: `--feed x=in/x-*.npy --feed y=in/y-*.npy` feeds the
first of one with the first of the other. Every other feed is the same for all shards.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.formats.arrays import given

_MAGIC = ("*", "?", "[")


@dataclass(frozen=True, slots=True)
class Shard:
    """One piece of the data.

    Attributes:
        name: of its first file, without what all have in common in front and without the suffix.
        feeds: the sources of what is fed, by name (`formats.arrays.read_array`).
        files: those that belong to it, without keys.
    """

    name: str
    feeds: Mapping[str, str]
    files: tuple[str, ...]


def split_feeds(items: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """What `--feed` was given: patterns of files by name, and all others.

    Raises:
        UsageError: one has no name, or a name is fed twice.
    """
    patterns: dict[str, str] = {}
    others: dict[str, str] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise UsageError(f"--feed wants NAME=SOURCE, not '{item}'")
        if name in patterns or name in others:
            raise UsageError(f"--feed: '{name}' is fed twice")
        (patterns if is_pattern(text) else others)[name] = text
    return patterns, others


def is_pattern(text: str) -> bool:
    """Whether a source names many files: a literal ([[1, 2]], "why?") does not, nor does a file with such a name."""
    path = given.split_key(text)[0]
    suffix = Path(path).suffix.lower()
    # with a bracket and no such suffix it may be a literal with a mistake, of which is said what is wrong
    magic = _MAGIC if suffix in given.SUFFIXES else _MAGIC[:2]
    return bool(suffix) and any(each in path for each in magic) and not _exists(path) and not given.is_literal(text)


def names_files(text: str) -> bool:
    """Whether a source is a pattern of files that hold arrays, beyond doubt: it could be read as nothing else."""
    return is_pattern(text) and Path(given.split_key(text)[0]).suffix.lower() in given.SUFFIXES


def _exists(path: str) -> bool:
    return os.path.exists(path)  # noqa: PTH110 -- any text


def find_shards(patterns: Mapping[str, str], others: Mapping[str, str]) -> list[Shard]:
    """The shards, in the order of their files' names.

    Args:
        patterns, others: see `split_feeds`.

    Raises:
        UsageError: nothing fits a pattern, patterns have different numbers of files, or two shards have one name.
    """
    found: dict[str, list[str]] = {}
    for name, text in patterns.items():
        pattern, key = given.split_key(text)
        files = sorted(each for each in glob.glob(pattern, recursive=True) if Path(each).is_file())  # noqa: PTH207 -- a text
        if not files:
            raise UsageError(f"--feed {name}: no file fits '{pattern}'")
        found[name] = files if key is None else [f"{file}:{key}" for file in files]
    counts = {name: len(files) for name, files in found.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise UsageError(f"--feed: shards are files of all patterns together, and these have different numbers: {told}")
    first = next(iter(patterns))
    base = _fixed(given.split_key(patterns[first])[0])
    shards: list[Shard] = []
    called: dict[str, str] = {}
    for number, source in enumerate(found[first]):
        file = given.split_key(source)[0]
        name = str(Path(os.path.relpath(file, base)).with_suffix(""))
        if name in called:
            raise UsageError(f"the results of '{called[name]}' and of '{file}' would both be called '{name}'")
        called[name] = file
        feeds = {each: found[each][number] for each in patterns}
        files = tuple(dict.fromkeys(given.split_key(each)[0] for each in feeds.values()))
        shards.append(Shard(name, {**others, **feeds}, files))
    return shards


def _fixed(pattern: str) -> str:
    """The folder in front of the first part of a pattern that is one."""
    parts: list[str] = []
    for part in Path(pattern).parts[:-1]:
        if any(each in part for each in _MAGIC):
            break
        parts.append(part)
    return str(Path(*parts)) if parts else "."
