"""The policy of a session, and the one door through which kernels get at files.

A kernel asks `op.files` (its node's `Files`) before it touches a path, and goes on with the path that it is given
back: that one is resolved, and has been judged.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO, cast

from toolkit.errors import InvalidArgumentError, NotFoundError, OpError, PermissionDeniedError, UnimplementedError
from toolkit.forks import free_in_children
from toolkit.formats.bundle.remote import knows
from toolkit.formats.io import open_regular
from toolkit.policy import linkless
from toolkit.policy.outside import MEANING, Reach
from toolkit.policy.rules import Policy, ResolvedPath, advice, exactly, resolve


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
        free_in_children(self, "_lock")

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

    def judge(
        self,
        wishes: Iterable[Wish],
        node: str | None,
        op: str,
        *,
        classes: Iterable[Reach] = (),
        lack: str = "",
        before: bool = False,
    ) -> list[ResolvedPath]:
        """Where paths lead.

        Args:
            classes: what is wanted at paths that are not known, or at none.
            lack: why nothing of it would run even if it were allowed.
            before: nothing has run yet, which makes what is refused a mistake of the input.

        Raises:
            RefusedError: the policy does not allow all of them; the message says what would.
            InvalidArgumentError: one is no path.
            NotFoundError: one is empty.
            UnimplementedError: it is a URL of a kind that is not known here, or where only local files will do.
        """
        wishes = list(wishes)
        try:
            places = [resolve(wish.path) for wish in wishes]
        except InvalidArgumentError as error:
            raise _located(InvalidArgumentError(f"{op}: {error.message}", node=node), before) from None
        for wish, place in zip(wishes, places, strict=True):
            if not wish.path and not wish.is_prefix:  # which is not the working directory
                raise _located(NotFoundError(f"{op}: '' is the name of no file", node=node), before)
            if place.kind != "file" and not wish.is_prefix:
                raise _located(UnimplementedError(_no_file_system(wish), node=node), before)
        refused = [
            (wish, place)
            for wish, place in zip(wishes, places, strict=True)
            if not self._policy.allows(wish.reach, place, wish.beginning)
        ]
        for wish, place in refused:
            if place.kind != "file" and not knows(place.path):
                raise _located(UnimplementedError(_no_file_system(wish), node=node), before)
        lacking = self._lacking(classes)
        if refused or lacking:
            raise RefusedError(_about(op, refused, lacking, lack), node=node, before=before)
        return places

    def _lacking(self, classes: Iterable[Reach]) -> list[Reach]:
        """Those of which nothing is allowed."""
        return [reach for reach in dict.fromkeys(classes) if not self._policy.allows(reach)]

    def require(self, reaches: Iterable[Reach], node: str | None, op: str) -> None:
        """Refuse classes of which nothing is allowed.

        Raises:
            RefusedError: so.
        """
        self.judge((), node, op, classes=reaches)

    def checkpoint(self, prefix: str) -> str:
        """The prefix of a checkpoint that is read for a model without running an op of it; see `Files.checkpoint`."""
        return Files(self, None, "restoring").checkpoint(Reach.READ, prefix)


@dataclass(frozen=True, slots=True)
class Wish:
    """What an op wants to do with a path.

    Attributes:
        is_prefix: the path is how the names of several files begin, here or on another machine.
        beginning: of a folder, only the names that begin so.
    """

    reach: Reach
    path: str
    is_prefix: bool = False
    beginning: str = ""


_DOING = {Reach.READ: "read", Reach.LIST: "list", Reach.WRITE: "write", Reach.DELETE: "delete"}


def _meaning(classes: list[Reach]) -> str:
    return " and ".join(MEANING[reach] for reach in classes)


def _about(op: str, refused: list[tuple[Wish, ResolvedPath]], classes: list[Reach], lack: str) -> str:
    """What is refused, class by class and path by path, and the one option that allows all of it and no more."""
    doing: dict[tuple[str, str], list[str]] = {}
    items: list[str] = []
    for wish, place in refused:
        shown = repr(wish.path) if place.path == wish.path else f"{wish.path!r} ({place.path})"
        if wish.beginning:
            shown = f"what begins with {wish.beginning!r} in {shown}"
        if place.kind == "far":
            shown += " on another machine"
        verbs = doing.setdefault((shown, place.path), [])
        if _DOING[wish.reach] not in verbs:
            verbs.append(_DOING[wish.reach])
        if place.kind == "far":
            items.append("network")
        else:
            root = f"{place.path}*" if wish.is_prefix else exactly(place.path)
            if wish.beginning:
                root = f"{os.path.join(place.path, wish.beginning)}*"  # noqa: PTH118 -- a text with a star
            items.append(f"{wish.reach.switch}={root}")
    # allowing to read them would not help
    absent = [(place.path, ["read"]) for wish, place in refused if _is_absent(wish, place)]
    items += [f"{reach.switch}=DIR" if reach.on_paths else reach.switch for reach in classes]
    # what may be written may be read
    items = [item for item in items if not (item.startswith("read=") and f"write{item[4:]}" in items)]
    said = [f"{op} {_meaning(classes)}, which this model is not allowed"] if classes else []
    if doing:
        paths = ", ".join(
            f"{' and '.join(verbs)} {shown}{', which does not exist' if (path, verbs) in absent else ''}"
            for (shown, path), verbs in doing.items()
        )
        said.append(f"{'it' if said else op} may not {paths}")
    how = f"no option would make it run: {lack}" if lack else f"allow it with {advice(*items)}"
    return f"{', and '.join(said)}; {how}"


def _is_absent(wish: Wish, place: ResolvedPath) -> bool:
    """Whether a file would not be found even if it could be read."""
    return wish.reach is Reach.READ and not wish.is_prefix and place.kind == "file" and not os.path.lexists(place.path)


def _no_file_system(wish: Wish) -> str:
    kind = wish.path.partition("://")[0]
    hint = (
        "" if find_spec("fsspec") or not wish.is_prefix else "; checkpoints there need: pip install 'graphmill[remote]'"
    )
    local = "" if wish.is_prefix else "; it takes local files only"
    return f"File system scheme '{kind}' not implemented (file: {wish.path!r}){hint or local}"


def _located(error: OpError, before: bool) -> OpError:
    """An error that is found before anything runs is a mistake of the input."""
    if before:
        error.exit_code = 2
    return error


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
            UnimplementedError: it is a URL.
        """
        return self._access.judge([Wish(reach, path)], self._node, self._op)[0].path

    def require(self, reach: Reach) -> None:
        """Refuse what is not about a path.

        Raises:
            RefusedError: the policy does not allow it.
        """
        self._access.require([reach], self._node, self._op)

    def open(self, path: str, mode: str = "rb") -> BinaryIO:
        """Open a local file, which has to be a regular one: "rb", "wb", "ab", or "xb", which makes its folders first.

        Raises:
            RefusedError: the policy does not allow it.
            OSError: it cannot be opened; EISDIR for a folder, EINVAL for a pipe or a device.
        """
        resolved = self.may(Reach.READ if mode == "rb" else Reach.WRITE, path)
        if mode == "xb" and Path(path).is_symlink():  # what it leads to is no new file, even where there is none
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return cast(BinaryIO, os.fdopen(linkless.open_file(resolved, _FLAGS[mode], make=mode == "xb"), mode))

    def read(self, path: str) -> bytes:
        """The bytes of a local file; see `open`."""
        with self.open(path) as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        """Write a local file, all or nothing, making its folders first.

        Raises:
            RefusedError: the policy does not allow it.
            OSError: it cannot be written; EISDIR for a folder, EINVAL for a pipe.
        """
        linkless.replace_file(self.may(Reach.WRITE, path), data)

    def names(self, folder: str, beginning: str = "") -> list[str]:
        """The names in a local folder that begin so; nothing where it cannot be listed.

        Raises:
            RefusedError: the policy does not allow it.
        """
        wish = Wish(Reach.LIST, folder or ".", beginning=beginning)
        listed = self._access.judge([wish], self._node, self._op)[0].path
        try:
            return [name for name in os.listdir(listed) if name.startswith(beginning)]  # noqa: PTH208 -- not Path objects
        except OSError:
            return []

    def checkpoint(self, reach: Reach, prefix: str) -> str:
        """The prefix of a checkpoint, resolved; its files that exist are judged too, for each may be a link.

        Raises:
            RefusedError: the policy does not allow one of them.
        """
        return self.checkpoints(Wish(reach, prefix, is_prefix=True))[0]

    def checkpoints(self, *wishes: Wish) -> list[str]:
        """Likewise of several, in the order given: what is refused of any of them is said at once."""
        places = self._access.judge(wishes, self._node, self._op)
        if not self._access.policy.is_everything:
            links = [
                Wish(wish.reach, link)
                for wish, place in zip(wishes, places, strict=True)
                if place.kind == "file"
                for link in links_of(place.path)
            ]
            self._access.judge(links, self._node, self._op)
        return [place.path for place in places]

    def with_siblings(self, reach: Reach, path: str) -> str:
        """A local file, resolved, whose reader also opens files whose names begin with its name.

        Raises:
            RefusedError: the policy does not allow it, or what one of them is a link to.
            OSError: one of them is a pipe or a device.
        """
        self._access.judge([Wish(reach, path)], self._node, self._op)
        found = self.checkpoint(reach, path)
        for entry in _beginning(found):
            if not entry.is_dir():
                os.close(open_regular(entry.path))
        return found


#: how `Files.open` opens
_FLAGS = {
    "rb": os.O_RDONLY,
    "wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "xb": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
}


def links_of(prefix: str) -> list[str]:
    """The files whose names begin so and that are links."""
    return [entry.path for entry in _beginning(prefix) if entry.is_symlink()]


def _beginning(prefix: str) -> list[os.DirEntry[str]]:
    """What has a name that begins so."""
    folder, stem = os.path.split(prefix)
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    return [entry for entry in entries if entry.name.startswith(stem)]
