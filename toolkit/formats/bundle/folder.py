"""The checkpoints of a folder, of both formats: which there are, which may go, what the state file says of them."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from pathlib import PurePath

from toolkit.errors import GraphmillError, NotFoundError
from toolkit.formats.bundle import paths, storage
from toolkit.formats.bundle import state as states
from toolkit.formats.bundle.entry import index_path
from toolkit.formats.bundle.locate import in_folder, require_folder
from toolkit.formats.bundle.remote import is_remote

_SECONDS_PER_HOUR = 3600.0


def files_of(prefix: str, meta_graph_suffix: str = "meta") -> list[str]:
    """The files of a checkpoint: index, data files, MetaGraph; or the one file, or the shards, of a V1 checkpoint."""
    folder, stem = paths.split(prefix)
    escaped = re.escape(stem).replace(re.escape("?????"), r"\d{5}")
    of_shards = re.escape(re.sub(r"-\?{5}-of-\d{5}$", "", stem))  # several V1 files have one MetaGraph
    meta = re.escape(meta_graph_suffix)
    pattern = re.compile(rf"{escaped}(\.index|\.data-\d{{5}}-of-\d{{5}})?|{of_shards}\.{meta}")
    found = (paths.join(folder, name) for name in sorted(paths.names_in(folder)) if pattern.fullmatch(name))
    return [path for path in found if paths.is_file(path)]


def remove_checkpoint(prefix: str, keep_meta_graph: bool = False, meta_graph_suffix: str = "meta") -> int:
    """Remove the files of a checkpoint, the index first, so that it is never half there; returns the bytes freed."""
    freed = 0
    for file in sorted(files_of(prefix, meta_graph_suffix), key=lambda file: file != index_path(prefix)):
        if keep_meta_graph and file.endswith(f".{meta_graph_suffix}"):
            continue
        freed += _size_and_time(file)[0]
        storage.remove(file)
    return freed


def _size_and_time(path: str) -> tuple[int, float]:
    try:
        return paths.size_and_time(path)
    except OSError:  # somebody else removed it
        return 0, 0.0


@dataclass(frozen=True, slots=True)
class Listed:
    """A checkpoint of a folder.

    Attributes:
        prefix: its name with the folder.
        format: "V2" or "V1".
        bytes, files: of all its files.
        time: when the index (or the file) was written, seconds since the epoch.
        is_latest: the state file names it as the latest.
        is_tracked: the state file lists it.
    """

    prefix: str
    format: str
    bytes: int
    files: int
    time: float
    is_latest: bool
    is_tracked: bool


def listing(folder: str, latest_filename: str | None = None) -> list[Listed]:
    """The checkpoints of a folder, by name.

    Raises:
        NotFoundError: there is no such folder.
        FormatError: the state file is damaged.
    """
    require_folder(folder)
    state = states.read_state(folder, latest_filename)
    latest = paths.resolved(state.latest) if state else None
    tracked = {paths.resolved(path) for path in (state.all_paths if state else [])}
    found: list[Listed] = []
    for name in in_folder(folder):
        prefix = paths.join(folder, name)
        files = files_of(prefix)
        here = paths.resolved(prefix)
        is_v2 = index_path(prefix) in files
        own = [index_path(prefix)] if is_v2 else [file for file in files if not file.endswith(".meta")]
        found.append(
            Listed(
                prefix,
                "V2" if is_v2 else "V1",
                sum(_size_and_time(file)[0] for file in files),
                len(files),
                max((_size_and_time(file)[1] for file in own), default=0.0),
                here == latest,
                here in tracked or here == latest,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What cleaning a folder does.

    Attributes:
        kept, removed: checkpoints.
        leftovers: files of writers that were killed.
        freed: bytes.
    """

    kept: list[str]
    removed: list[str]
    leftovers: list[str]
    freed: int


def plan_cleanup(
    folder: str | PurePath,
    max_to_keep: int,
    keep_every_n_hours: float | None = None,
    name: str | None = None,
) -> Cleanup:
    """Decide which checkpoints of a folder a Saver with these settings would have deleted.

    Age is the time of the index file. The latest that the state file names is never removed. Temporary files that
    nobody has written to for an hour go too.

    Args:
        max_to_keep: how many of the newest stay.
        keep_every_n_hours: of the older ones, one for every so many hours stays.
        name: only checkpoints called NAME or NAME-number.

    Raises:
        GraphmillError: `max_to_keep` is below 1, or the folder does not exist.
    """
    if max_to_keep < 1:
        raise GraphmillError(f"at least one checkpoint must stay, not {max_to_keep}")
    where = str(folder)
    test = re.compile(re.escape(name) + r"(-\d+)?(-\?{5}-of-\d{5})?") if name else re.compile(".*")
    everything = [item for item in listing(where) if test.fullmatch(paths.split(item.prefix)[1])]
    aged = sorted(everything, key=lambda item: item.time)  # of equal age: by name, as listed
    kept = [item.prefix for item in aged[-max_to_keep:]]
    removed: list[Listed] = []
    due = -math.inf
    spared: list[str] = []
    for item in aged[:-max_to_keep]:
        if item.is_latest:
            spared.append(item.prefix)
        elif keep_every_n_hours is not None and item.time >= due:
            spared.append(item.prefix)
            due = item.time + keep_every_n_hours * _SECONDS_PER_HOUR
        else:
            removed.append(item)
    leftovers: dict[str, int] = {}
    for found in sorted(paths.names_in(where)):
        path = paths.join(where, found)
        if storage.TEMPORARY in found:
            size, written = _size_and_time(path)
            if written < time.time() - _SECONDS_PER_HOUR:
                leftovers[path] = size
    freed = sum(item.bytes for item in removed) + sum(leftovers.values())
    return Cleanup(spared + kept, [item.prefix for item in removed], list(leftovers), freed)


def clean(folder: str | PurePath, plan: Cleanup) -> None:
    """Remove what a plan says, after the state file has stopped naming it.

    Raises:
        OpError: the state file cannot be written.
    """
    where = str(folder)
    current = states.read_state(where)
    if current is not None:
        gone = {paths.resolved(prefix) for prefix in plan.removed}
        times = current.timestamps if len(current.timestamps) == len(current.all_paths) else []
        stay = [at for at, path in enumerate(current.all_paths) if paths.resolved(path) not in gone]
        if len(stay) != len(current.all_paths):
            message = states.read_message(where)
            states.write_state(
                where,
                current.latest,
                [current.all_paths[at] for at in stay],
                [times[at] for at in stay] if times else (),
                current.last_preserved,
                relative=not _is_absolute(message.model_checkpoint_path),
            )
    for prefix in plan.removed:
        remove_checkpoint(prefix)
    for path in plan.leftovers:
        storage.remove(path)


def _is_absolute(path: str) -> bool:
    return is_remote(path) or PurePath(path).is_absolute()


def relocate(
    folder: str | PurePath, relative: bool = True, latest_filename: str | None = None
) -> list[tuple[str, str]]:
    """Rewrite a state file that was copied from elsewhere: its checkpoints are those of the same name in the folder.

    Args:
        relative: write names relative to the folder (which may then move again), else absolute paths.

    Returns:
        (old path, new path) as written, for the paths that were found; others are dropped from the list.

    Raises:
        GraphmillError: there is no state file, it names no checkpoint, or the latest is not in the folder.
    """
    where = str(folder)
    require_folder(where)
    message = states.read_message(where, latest_filename)
    target = paths.join(where, latest_filename or states.DEFAULT_NAME)
    if message is None:
        raise NotFoundError("there is no checkpoint state file in the folder", file=where)
    if not message.model_checkpoint_path:
        raise GraphmillError("the state file names no latest checkpoint (model_checkpoint_path)", file=target)
    latest = _beside(where, message.model_checkpoint_path, relative)
    if latest is None:
        known = ", ".join(in_folder(where)[:5])
        raise NotFoundError(
            f"the latest checkpoint '{message.model_checkpoint_path}' is not in the folder; it has {known or 'none'}",
            file=where,
        )
    moved: list[tuple[str, str]] = [(message.model_checkpoint_path, latest)]
    listed: list[str] = []
    times: list[float] = []
    # Files written by hand may have another number of times than of paths; then they say nothing.
    known_times = list(message.all_model_checkpoint_timestamps)
    if len(known_times) != len(message.all_model_checkpoint_paths):
        known_times = []
    for at, path in enumerate(message.all_model_checkpoint_paths):
        found = _beside(where, path, relative)
        if found is None or found in listed:
            continue
        listed.append(found)
        times += known_times[at : at + 1]
        if (path, found) not in moved:
            moved.append((path, found))
    if latest not in listed:  # TensorFlow reads the list's last as the latest
        listed.append(latest)
        times = []
    message.model_checkpoint_path = latest
    del message.all_model_checkpoint_paths[:]
    del message.all_model_checkpoint_timestamps[:]
    message.all_model_checkpoint_paths.extend(listed)
    message.all_model_checkpoint_timestamps.extend(times)
    from toolkit.formats.models.text import render

    storage.write_file(target, render(message).encode())
    return moved


def _beside(folder: str, path: str, relative: bool) -> str | None:
    """The checkpoint in the folder that a path from elsewhere means, or None."""
    # The path below the folder is not known to a file from elsewhere: try ever shorter ends of it.
    parts = [part for part in re.split(r"[/\\]+", path) if part not in ("", ".", "..")]
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        if states.exists(paths.join(folder, tail)):
            return tail if relative else paths.resolved(paths.join(folder, tail))
    return None
