"""A finished checkpoint takes its name: the old one of that name goes, the new one comes, the index last."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path

from toolkit.errors import OpError
from toolkit.formats.bundle import paths, remote, storage
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.storage import TemporaryFile


def replace_checkpoint(prefix: str, data: Sequence[TemporaryFile], index: TemporaryFile) -> None:
    """Rename synced data files and then their index into place; see `BundleWriter.finish`."""
    if is_remote(prefix):
        _replace_remote(prefix, data, index)
        return
    path = Path(prefix)
    with locked(str(path.parent)):
        pattern = re.compile(re.escape(path.name) + r"\.data-\d{5}-of-\d{5}")
        old = sorted(str(path.parent / file.name) for file in path.parent.iterdir() if pattern.fullmatch(file.name))
        replaced = [index.path, *old] if Path(index.path).exists() else []
        backup = Backup(replaced)
        try:
            if replaced:
                storage.remove(index.path)
                storage.sync_folder(str(path.parent))
            storage.commit_all(data)
            storage.commit_all([index])
        except Exception:
            for file in (index, *data):
                file.undo()
            backup.restore()
            raise
        new = {Path(file.path).name for file in data}
        for leftover in old:
            if Path(leftover).name not in new:
                with contextlib.suppress(OpError):  # the new checkpoint is complete all the same
                    storage.remove(leftover)
        backup.drop()


def _replace_remote(prefix: str, data: Sequence[TemporaryFile], index: TemporaryFile) -> None:
    """The same in an object store, which has no locks and no renames: the old index goes first, the new comes last."""
    folder, stem = paths.split(prefix)
    pattern = re.compile(re.escape(stem) + r"\.data-\d{5}-of-\d{5}")
    old = [name for name in paths.names_in(folder) if pattern.fullmatch(name)]
    remote.remove(index.path)
    try:
        for file in (*data, index):
            file.commit()
    except Exception:
        for file in (index, *data):
            file.undo()
        raise
    new = {paths.split(file.path)[1] for file in data}
    for name in old:
        if name not in new:
            with contextlib.suppress(OpError):
                remote.remove(paths.join(folder, name))


@contextlib.contextmanager
def locked(folder: str) -> Generator[None]:
    """Keep other graphmill writers out of a folder while several files are renamed into it.

    The lock is on the folder itself, so no lock file is left behind. Where the file system has no locks (some
    network ones), there is none.
    """
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class Backup:
    """Second names of files that are about to be replaced, to put them back when replacing fails half-way.

    Where the file system has no hard links, nothing is kept.

    Args:
        paths: the files.
    """

    def __init__(self, paths: Iterable[str]):
        self._kept: list[tuple[str, str]] = []
        for path in paths:
            name = f"{path}{storage.TEMPORARY}{os.getpid()}-{os.urandom(6).hex()}"
            try:
                os.link(path, name)
            except OSError:
                self.drop()
                return
            self._kept.append((name, path))

    def restore(self) -> None:
        """Put the files back, the ones given first last."""
        for name, path in reversed(self._kept):
            with contextlib.suppress(OSError):
                storage.sys_replace(name, path)
        self._kept.clear()

    def drop(self) -> None:
        """Forget the second names."""
        for name, _ in self._kept:
            with contextlib.suppress(OSError):
                storage.sys_unlink(name)
        self._kept.clear()
