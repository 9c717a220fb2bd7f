"""Policies: what a model may touch, and paths as they really are.

Paths are compared after links, `..` and file:// are resolved, and opened by the result, so that what was judged and
what is opened is one file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import InvalidArgumentError, UsageError, did_you_mean
from toolkit.formats.models.own import is_below, own_places
from toolkit.policy.outside import Reach

#: URLs of what lives in this process alone
_IN_MEMORY = frozenset({"memory", "ram"})
#: URLs that always mean another machine; everything else (zip://, local::, cached files) may mean a file here
_FAR = frozenset({
    "abfs", "abfss", "adl", "az", "ftp", "ftps", "gcs", "gs", "hdfs", "hf", "http", "https", "oss", "s3", "s3a", "s3n",
    "sftp", "smb", "ssh", "webhdfs",
})  # fmt: skip
_COMMA = re.compile(r"(?<!\\),")  # one that does not belong to a path
_SWITCHES = ("network", "process", "python", "native", "output", "exit")


#: what makes a path a pattern
SPECIAL = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path as it really is.

    Attributes:
        path: absolute and without links, or the URL.
        kind: "file", "memory" (this process alone), "far" (another machine) or "other" (a URL that may be anything).
    """

    path: str
    kind: str


def resolve(path: str) -> ResolvedPath:
    """What a path or URL means, from the working directory.

    Raises:
        InvalidArgumentError: it holds a NUL character.
    """
    if "\0" in path:
        raise InvalidArgumentError(f"{path!r} is not the name of a file")
    if path.startswith("file://"):
        path = path.removeprefix("file://")
    scheme, separator, _ = path.partition("://")
    if not separator:
        return ResolvedPath(os.path.realpath(path), "file")
    scheme = scheme.lower()
    if "::" in path:
        return ResolvedPath(path, "other")
    if scheme in _IN_MEMORY:
        return ResolvedPath(path, "memory")
    return ResolvedPath(path, "far" if scheme in _FAR and "/.." not in path else "other")


def listed_folder(pattern: str) -> tuple[str, str]:
    """The folder that a pattern of names starts in, and how the names in it begin that it matches.

    Without special characters, the path itself.
    """
    first = SPECIAL.search(pattern)
    if first is None:
        return pattern, ""
    end = pattern.rfind("/", 0, first.start())
    return pattern[:end] or "/" if end >= 0 else ".", pattern[end + 1 : first.start()]


@dataclass(frozen=True)
class Policy:
    """What a model may touch.

    Attributes:
        read: folders and files that may be read and listed; resolved. One that ends in `*` means all paths that begin
            so (a checkpoint's prefix), one that ends in `\\*` the path with that star in its name (see `exactly`);
            "*" alone is everything.
        write: likewise, what may be written, made and deleted; what may be written may be read.
        network: whether other machines may be reached.
        process: whether other processes may be started or ended.
        python: whether Python code of this process may be called by name.
        native: whether machine code that is not in the graph may be run.
        output: whether something may be printed to standard output and standard error.
        exit: whether it may end its own step for good (Abort).
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    process: bool = False
    python: bool = False
    native: bool = False
    output: bool = True
    exit: bool = False

    @staticmethod
    def everything() -> Policy:
        """The policy of programs that are one's own."""
        return Policy(("*",), ("*",), network=True, process=True, python=True, native=True, exit=True)

    @staticmethod
    def of_model(source: str | Path | None) -> Policy:
        """The default for a model that was read from a file: it may read its own files and print, nothing else.

        Which files are its own says `toolkit.formats.models.own`.

        Args:
            source: the file or folder; None or "-" for one that came from elsewhere.
        """
        if source is None or os.fspath(source) in ("", "-"):
            return Policy()
        return Policy().with_read(*map(exactly, own_places(source)))

    def with_read(self, *paths: str | Path) -> Policy:
        """This policy, and these paths may be read."""
        return replace(self, read=_joined(self.read, paths))

    def with_write(self, *paths: str | Path) -> Policy:
        """This policy, and these paths may be written and read."""
        return replace(self, write=_joined(self.write, paths))

    def allowing(self, *given: str) -> Policy:
        """This policy and what a user allows: `read=DIR`, `write=DIR`, `network`, ..., several separated by commas.

        A comma in a path is written `\\,`.

        Raises:
            UsageError: something else stands there.
        """
        policy = self
        for item in (part for text in given for part in _COMMA.split(text) if part):
            key, equals, value = item.replace("\\,", ",").partition("=")
            if key in ("read", "write"):
                if not value:
                    raise UsageError(f"'{item}' wants a folder or file: {key}=DIR")
                path = value if "://" in value else str(Path(value).expanduser())
                policy = policy.with_read(path) if key == "read" else policy.with_write(path)
            elif key in _SWITCHES and not equals:
                policy = replace(policy, **{key: True})
            else:
                known = ("read=DIR", "write=DIR", *_SWITCHES)
                raise UsageError(
                    f"'{item}' is nothing that can be allowed"
                    + did_you_mean(key, known, then=f"expected {', '.join(known)}")
                )
        return policy

    def allows(self, reach: Reach, place: ResolvedPath | None = None, beginning: str = "") -> bool:
        """Whether something is allowed: at a place, or at all where none is given.

        Args:
            beginning: of a folder, only the names that begin so.
        """
        if not reach.on_paths:
            return bool(getattr(self, reach.value))
        roots = self.write if reach in (Reach.WRITE, Reach.DELETE) else (*self.read, *self.write)
        if place is None:
            return bool(roots) or self.network
        if place.kind == "memory" or any(_contains(root, place.path) for root in roots):
            return True
        if beginning and any(_contains_all(root, os.path.join(place.path, beginning)) for root in roots):  # noqa: PTH118
            return True
        return place.kind == "far" and self.network

    def covers(self, reach: Reach, root: str | Path) -> bool:
        """Whether everything that a root (see `read`) stands for is allowed already."""
        roots = self.write if reach in (Reach.WRITE, Reach.DELETE) else (*self.read, *self.write)
        wanted = _root(os.fspath(root))
        return wanted in roots or any(_contains(each, wanted) for each in roots if not each.endswith("\\*"))

    @property
    def is_everything(self) -> bool:
        return self == Policy.everything()

    def lines(self) -> list[str]:
        """What is allowed, for people."""
        switches = [name for name in _SWITCHES if getattr(self, name)]
        return [
            f"reads: {', '.join(self.read) or 'nothing'}",
            f"writes: {', '.join(self.write) or 'nothing'}",
            f"also: {', '.join(switches) or 'nothing'}",
        ]


def exactly(path: str) -> str:
    """A path as a root that stands for itself and what is below it, even if a star ends its name: `DIR/NAME\\*`."""
    return f"{path[:-1]}\\*" if path.endswith("*") else path


def advice(*items: str) -> str:
    """The option that allows something, to be pasted into a shell: `--allow 'read=/a b,network'`.

    Args:
        items: switches, or `read=ROOT` and `write=ROOT` with the root as a policy keeps it.
    """
    return f"--allow {_quoted(','.join(item.replace(',', chr(92) + ',') for item in dict.fromkeys(items)))}"


def _quoted(text: str) -> str:
    """A text as one word of a shell; what cannot be shown as it is, byte by byte: `$'a\\x1bb'`."""
    import shlex

    if text.isprintable():
        return shlex.quote(text)
    special = {"'": "\\'", "\\": "\\\\"}
    return "".join(
        [
            "$'",
            *(special.get(each) or (each if each.isprintable() else _bytes(each)) for each in text),
            "'",
        ]
    )


def _bytes(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogateescape"))


def _joined(old: tuple[str, ...], paths: Iterable[str | Path]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*old, *(_root(os.fspath(path)) for path in paths)]))


def _root(path: str) -> str:
    """A root as it is compared: resolved, and with its star."""
    if path == "*":
        return path
    if path.endswith("*") and not path.endswith("\\*"):
        return resolve(path[:-1]).path + ("/*" if path.endswith("/*") else "*")
    place = resolve(f"{path[:-2]}*" if path.endswith("\\*") else path)
    return exactly(place.path if place.kind == "file" else place.path.rstrip("/"))


def _contains_all(root: str, beginning: str) -> bool:
    """Whether all paths that begin so are in a root."""
    return root.endswith("*") and not root.endswith("\\*") and beginning.startswith(root[:-1])


def _contains(root: str, path: str) -> bool:
    if root == "*":
        return True
    if root.endswith("\\*"):
        return is_below(path, f"{root[:-2]}*")
    if root.endswith("*"):
        return path.startswith(root[:-1])
    return is_below(path, root)
