"""The policy of a session, and the one door through which kernels get at files.

A kernel asks `op.files` (its node's `Files`) before it touches a path, and goes on with the path that it is given
back: that one is resolved, and has been judged.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import BinaryIO, cast

from toolkit.errors import PermissionDeniedError
from toolkit.policy.outside import MEANING, Reach
from toolkit.policy.rules import Place, Policy, resolve


class RefusedError(PermissionDeniedError):
    """A model wanted to touch what the policy does not allow.

    Args:
        before: it was found out before anything ran, which makes it a mistake of the input, not of the step.
    """

    def __init__(self, message: str, *, node: str | None = None, before: bool = False):
        super().__init__(message, node=node)
        if before:
            self.exit_code = 2


class Access:
    """What the programs of one session may touch; it may be widened by the program that owns the session.

    Args:
        policy: at the start.
    """

    def __init__(self, policy: Policy):
        self._policy = policy
        self._lock = threading.Lock()

    @property
    def policy(self) -> Policy:
        return self._policy

    def grant(self, *, read: str | Path | None = None, write: str | Path | None = None) -> None:
        """Also allow a path that the program itself names, a checkpoint to restore for one; see `Policy.read`."""
        with self._lock:
            if read is not None and not self._policy.covers(Reach.READ, read):
                self._policy = self._policy.with_read(read)
            if write is not None and not self._policy.covers(Reach.WRITE, write):
                self._policy = self._policy.with_write(write)

    def place(self, reach: Reach, path: str, node: str | None, op: str, *, before: bool = False) -> Place:
        """Where a path leads.

        Raises:
            RefusedError: the policy does not allow it; the message says what would.
            InvalidArgumentError: it is no path.
        """
        place = resolve(path)
        if not self._policy.allows(reach, place):
            raise RefusedError(_about_path(reach, op, path, place), node=node, before=before)
        return place

    def require(self, reach: Reach, node: str | None, op: str, *, before: bool = False) -> None:
        """Refuse a class of which nothing is allowed.

        Raises:
            RefusedError: so.
        """
        if not self._policy.allows(reach):
            wanted = f"{reach.switch}=DIR" if reach.on_paths else reach.switch
            raise RefusedError(
                f"{op} {MEANING[reach]}, which this model is not allowed; allow it with --allow {wanted}",
                node=node,
                before=before,
            )

    def checkpoint(self, prefix: str) -> str:
        """The prefix of a checkpoint that is read for a model without running an op of it; see `Files.checkpoint`."""
        return Files(self, None, "restoring").checkpoint(Reach.READ, prefix)


def _about_path(reach: Reach, op: str, path: str, place: Place) -> str:
    doing = {Reach.READ: "read", Reach.LIST: "list", Reach.WRITE: "write", Reach.DELETE: "delete"}[reach]
    shown = repr(path) if place.path == path else f"{path!r} ({place.path})"
    if place.kind == "far":
        return f"{op} may not {doing} {shown} on another machine; allow it with --allow network"
    where = place.path if place.kind == "other" or reach is Reach.LIST else os.path.dirname(place.path)  # noqa: PTH120
    return f"{op} may not {doing} {shown}; allow it with --allow {reach.switch}={where}"


class Files:
    """The files of one node: what it wants to touch is judged here.

    Args:
        access: of its session.
        node, op: for messages.
    """

    __slots__ = ("_access", "_node", "_op")

    def __init__(self, access: Access, node: str | None, op: str):
        self._access = access
        self._node = node
        self._op = op

    def may(self, reach: Reach, path: str) -> str:
        """A path resolved, to be opened as it is.

        Raises:
            RefusedError: the policy does not allow it.
        """
        return self._access.place(reach, path, self._node, self._op).path

    def require(self, reach: Reach) -> None:
        """Refuse what is not about a path.

        Raises:
            RefusedError: the policy does not allow it.
        """
        self._access.require(reach, self._node, self._op)

    def open(self, path: str, mode: str = "rb") -> BinaryIO:
        """Open a local file: "rb" or "ab".

        Raises:
            RefusedError: the policy does not allow it.
            OSError: it cannot be opened.
        """
        resolved = self.may(Reach.READ if mode == "rb" else Reach.WRITE, path)
        flags = os.O_RDONLY if mode == "rb" else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        # the path holds no links; one that is put there in between is not followed
        descriptor = os.open(resolved, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return cast(BinaryIO, os.fdopen(descriptor, mode))

    def read(self, path: str) -> bytes:
        """The bytes of a local file; see `open`."""
        with self.open(path) as file:
            return file.read()

    def names(self, folder: str) -> list[str]:
        """The names in a local folder; nothing where it cannot be listed.

        Raises:
            RefusedError: the policy does not allow it.
        """
        try:
            return os.listdir(self.may(Reach.LIST, folder or "."))  # noqa: PTH208 -- names, not Path objects
        except OSError:
            return []

    def checkpoint(self, reach: Reach, prefix: str) -> str:
        """The prefix of a checkpoint, resolved; its files that exist are judged too, for each may be a link.

        Raises:
            RefusedError: the policy does not allow one of them.
        """
        resolved = self.may(reach, prefix)
        if "://" in resolved:
            return resolved
        if self._access.policy.is_everything:
            return resolved
        folder, stem = os.path.split(resolved)
        try:
            entries = list(os.scandir(folder or "."))
        except OSError:
            return resolved
        for entry in entries:
            if entry.name.startswith(stem) and entry.is_symlink():
                self.may(reach, entry.path)
        return resolved
