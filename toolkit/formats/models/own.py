"""Which files belong to a model: what it may read, and what is copied with it, without anybody's leave."""

from __future__ import annotations

import os
from pathlib import Path

#: a cache of models keeps each file once, named by its hash, and a folder of links to them for each revision
_REVISIONS, _CONTENTS = "snapshots", "blobs"


def own_places(source: str | Path) -> tuple[str, ...]:
    """The files and folders that are a model's own, absolute and without links.

    They are the folder in which the model was named, or the file alone in the home directory and above it. A folder
    `snapshots/REVISION` beside a folder `blobs` is one revision in a cache of models: the blobs are its own as well.

    Args:
        source: the model's file or folder.
    """
    path = Path(source)
    is_folder = path.is_dir()
    folder = Path(os.path.realpath(path if is_folder else path.parent))
    home = Path(os.path.realpath(Path("~").expanduser()))
    if not is_folder and (folder == home or folder in home.parents):
        return (os.path.realpath(path),)
    contents = folder.parent.parent / _CONTENTS
    if folder.parent.name == _REVISIONS and contents.is_dir() and not contents.is_symlink():
        return str(folder), str(contents)
    return (str(folder),)


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or something in it; both absolute and without links."""
    return path == folder or path.startswith(folder if folder.endswith("/") else folder + "/")
