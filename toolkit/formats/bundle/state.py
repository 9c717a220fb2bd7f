"""The `checkpoint` file of a folder: which checkpoints it has and which is the latest (CheckpointState)."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.bundle import paths, storage
from toolkit.formats.bundle.entry import index_path
from toolkit.formats.bundle.remote import is_remote

DEFAULT_NAME = "checkpoint"
#: the last bytes of a table
_TABLE_MAGIC = 0xDB4775248B80FB57
_PATTERN = re.compile(r"-\?{5}-of-\d{5}$")


@dataclass(slots=True)
class CheckpointState:
    """What the state file says; paths are joined with the folder, so they can be opened from where the caller is.

    Attributes:
        latest: prefix of the latest checkpoint.
        all_paths: prefixes of all that are kept, oldest first, the latest last.
        timestamps: when each was saved, seconds since the epoch; written by TensorFlow 2, else empty.
        last_preserved: when one was last put aside for good by keep_every_n_hours; None if never.
    """

    latest: str
    all_paths: list[str] = field(default_factory=list[str])
    timestamps: list[float] = field(default_factory=list[float])
    last_preserved: float | None = None


def read_message(directory: str | Path, latest_filename: str | None = None) -> Any:
    """The CheckpointState message of a folder with the paths as they are written, or None where there is no file.

    Raises:
        FormatError: the file is not in protobuf's text format or has other fields.
    """
    path = paths.join(str(directory), latest_filename or DEFAULT_NAME)
    try:
        text = paths.read_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage.failure(error, path, "reading it") from None
    from schemas.checkpoint_state_pb2 import CheckpointState as Message
    from toolkit.formats.models.text import TextFormatError, parse

    try:
        message = parse(text, Message(), path)
    except TextFormatError as error:
        raise FormatError(f"not a checkpoint state file: {error.what}", file=error.file) from None
    for named in (message.model_checkpoint_path, *message.all_model_checkpoint_paths):
        if "\0" in named:
            raise FormatError(f"not a checkpoint state file: the path {named!r} has a NUL byte in it", file=path)
    return message


def read_state(directory: str | Path, latest_filename: str | None = None) -> CheckpointState | None:
    """The state of a folder, or None where it has no state file or one that names no checkpoint.

    Relative paths in it are relative to the folder.

    Raises:
        FormatError: the file is damaged.
    """
    message = read_message(directory, latest_filename)
    if message is None or not message.model_checkpoint_path:
        return None

    def absolute(path: str) -> str:
        return paths.join(str(directory), path)

    return CheckpointState(
        absolute(message.model_checkpoint_path),
        [absolute(path) for path in message.all_model_checkpoint_paths],
        list(message.all_model_checkpoint_timestamps),
        message.last_preserved_timestamp or None,
    )


def write_state(
    directory: str | Path,
    latest: str,
    all_paths: Sequence[str] = (),
    timestamps: Sequence[float] = (),
    last_preserved: float | None = None,
    latest_filename: str | None = None,
    relative: bool = False,
) -> None:
    """Replace a folder's state file, as tf.train.update_checkpoint_state does.

    Paths that are not absolute are taken from the working directory, and written relative to the folder; URLs in the
    folder are too, as TensorFlow does.

    Args:
        directory: the folder.
        latest: prefix of the latest checkpoint; added to `all_paths` where it is not the last one.
        timestamps: one for each path, or none.
        relative: write absolute paths relative to the folder too.

    Raises:
        GraphmillError: the timestamps do not fit the paths, or the state's name is that of the checkpoint.
        OpError: the file cannot be written.
    """
    listed = list(all_paths)
    if not listed or listed[-1] != latest:
        listed.append(latest)
    if timestamps and len(timestamps) != len(listed):
        raise GraphmillError(f"there are {len(timestamps)} timestamps for {len(listed)} checkpoints")
    folder = str(directory)
    target = paths.join(folder, latest_filename or DEFAULT_NAME)

    def shown(path: str) -> str:
        if is_remote(path):
            # TensorFlow takes no URL for an absolute path: it would look for one below the folder
            return path.removeprefix(folder.rstrip("/") + "/")
        return path if Path(path).is_absolute() and not relative else os.path.relpath(path, folder or ".")

    if shown(latest) == (latest_filename or DEFAULT_NAME):
        raise GraphmillError(f"the checkpoint '{latest}' has the name of the state file; choose another", file=target)
    from schemas.checkpoint_state_pb2 import CheckpointState as Message
    from toolkit.formats.models.text import render

    message = Message(
        model_checkpoint_path=shown(latest),
        all_model_checkpoint_paths=[shown(path) for path in listed],
        all_model_checkpoint_timestamps=list(timestamps),
    )
    if last_preserved is not None:
        message.last_preserved_timestamp = last_preserved
    storage.write_file(target, render(message).encode())


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint of that name, in the V2 or the V1 format."""
    if is_pattern(prefix):
        return bool(matching(prefix))
    return paths.exists(index_path(prefix)) or paths.is_file(prefix)


def is_pattern(prefix: str) -> bool:
    """Whether this is the name of a V1 checkpoint in several files: "model-7-?????-of-00003"."""
    return _PATTERN.search(prefix) is not None


def matching(pattern: str) -> list[str]:
    """The files of a V1 checkpoint in several files that are there, in order."""
    folder, stem = paths.split(pattern)
    wanted = re.compile(re.escape(stem).replace(re.escape("?????"), r"\d{5}"))
    return [paths.join(folder, name) for name in sorted(paths.names_in(folder)) if wanted.fullmatch(name)]


def is_v1(path: str | Path) -> bool:
    """Whether a file is a table, which is what a V1 checkpoint is; of one in several files, whether all are."""
    if is_pattern(str(path)):
        files = matching(str(path))
        return bool(files) and all(is_v1(file) for file in files)
    if not is_remote(str(path)) and not Path(path).is_file():
        return False  # opening a pipe would wait for who writes into it
    try:
        with paths.open_file(str(path)) as file:
            return int.from_bytes(file.read_at(max(0, file.size - 8), 8), "little") == _TABLE_MAGIC
    except OSError:
        return False


def latest_checkpoint(directory: str | Path, latest_filename: str | None = None) -> str | None:
    """The prefix of the latest checkpoint of a folder, or None where the state file or the checkpoint is missing.

    Raises:
        FormatError: the state file is damaged.
    """
    state = read_state(directory, latest_filename)
    return state.latest if state is not None and exists(state.latest) else None
