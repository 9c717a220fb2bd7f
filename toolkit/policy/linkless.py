"""Opening and replacing files by paths that hold no links: what was put there since a path was judged is not followed.

Folders are opened one in another, so that none of them can be swapped for a link on the way.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

from toolkit.formats.io import open_regular, write_in

#: whether the system opens names inside of an open folder; elsewhere only the last name is looked at
_INSIDE = {os.open, os.mkdir, os.rename, os.unlink} <= os.supports_dir_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_PASSING = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK


def open_file(path: str, flags: int, *, make: bool = False) -> int:
    """Open a regular file; see `open_regular`.

    Args:
        make: make its folders first.

    Raises:
        OSError: it cannot be opened; ENOTDIR or ELOOP where there is a link.
    """
    with _located(path):
        if not _INSIDE:
            if make:
                os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 -- a text with any name
            return open_regular(path, flags | _NO_LINK)
        with _folder(path, make=make) as (folder, name):
            return open_regular(name, flags | _NO_LINK, dir_fd=folder)


def replace_file(path: str, data: bytes) -> None:
    """Write a file, all or nothing, making its folders first; see `write_in`.

    Raises:
        OSError: it cannot be written; ENOTDIR or ELOOP where there is a link.
    """
    with _located(path):
        if not _INSIDE:
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 -- a text with any name
            write_in(None, path, data)
            return
        with _folder(path, make=True) as (folder, name):
            write_in(folder, name, data)


@contextlib.contextmanager
def _located(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


@contextlib.contextmanager
def _folder(path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
    """The folder of a path, open, and the name in it."""
    *folders, name = path.strip("/").split("/")
    folder = os.open("/", _PASSING)
    try:
        for each in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(each, dir_fd=folder)
            inner = os.open(each, _PASSING, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, name or "."
    finally:
        os.close(folder)
