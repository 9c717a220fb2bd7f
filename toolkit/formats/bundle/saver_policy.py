"""Which checkpoints of a folder stay and which go, as TensorFlow's Saver decides it.

`Policy` keeps the state that tf.compat.v1.train.Saver keeps in memory; `plan_cleanup` applies the same rules to a
folder after the fact.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import GraphmillError
from toolkit.formats.bundle import state as states
from toolkit.formats.bundle import storage
from toolkit.formats.bundle.entry import index_path
from toolkit.formats.bundle.locate import in_folder

_SECONDS_PER_HOUR = 3600.0


def files_of(prefix: str) -> list[Path]:
    """The files of a checkpoint: index, data files, MetaGraph; or the one file of a V1 checkpoint."""
    path = Path(prefix)
    pattern = re.compile(re.escape(path.name) + r"(\.index|\.meta|\.data-\d{5}-of-\d{5})?")
    try:
        return sorted(file for file in path.parent.iterdir() if pattern.fullmatch(file.name) and file.is_file())
    except OSError:
        return []


def remove_checkpoint(prefix: str, keep_meta_graph: bool = False) -> int:
    """Remove the files of a checkpoint, the index first, so that it is never half there; returns the bytes freed."""
    freed = 0
    for file in sorted(files_of(prefix), key=lambda file: file.name != Path(index_path(prefix)).name):
        if keep_meta_graph and file.suffix == ".meta":
            continue
        freed += file.stat().st_size
        storage.remove(str(file))
    return freed


@dataclass
class Policy:
    """A Saver's bookkeeping.

    Attributes:
        max_to_keep: how many recent checkpoints stay; 0 or None keeps all, and lists only the latest.
        keep_every_n_hours: of those that would go, one for every so many hours stays for good.
        latest_filename: the name of the state file.
        relative: write paths relative to the folder.
        timestamps: write when each was saved, as TensorFlow 2's CheckpointManager does.
        last: the recent checkpoints, oldest first, with the times they were saved at.
    """

    max_to_keep: int | None = 5
    keep_every_n_hours: float = 10000.0
    latest_filename: str | None = None
    relative: bool = False
    timestamps: bool = False
    clock: Callable[[], float] = time.time
    last: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _next_kept: float = math.nan
    _last_preserved: float | None = None

    def __post_init__(self) -> None:
        self._last_preserved = self.clock()
        self._next_kept = self._last_preserved + self.keep_every_n_hours * _SECONDS_PER_HOUR

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that have not been deleted, oldest first."""
        return [prefix for prefix, _ in self.last]

    def recover(self, prefixes: Sequence[str]) -> None:
        """Take over checkpoints of an earlier run; those that do not exist are left out."""
        self.last = []
        for prefix in prefixes:
            files = files_of(prefix)
            if files:
                self.last.append((prefix, max(file.stat().st_mtime for file in files)))

    def saved(self, prefix: str, keep_meta_graph: bool = False) -> list[str]:
        """Note a checkpoint that was just saved: write the state file, then remove what is too much.

        In this order a crash at any point leaves the new checkpoint or the old one named as latest, and whole.

        Returns:
            The checkpoints that were removed.

        Raises:
            OpError: the state file cannot be written.
        """
        gone: list[tuple[str, float]] = []
        if self.max_to_keep:  # a Saver that keeps everything keeps no list either
            self.last = [item for item in self.last if item[0] != prefix]
            self.last.append((prefix, self.clock()))
            while len(self.last) > self.max_to_keep:
                gone.append(self.last.pop(0))
        removed: list[str] = []
        for old, saved_at in gone:
            if saved_at > self._next_kept:
                # As TensorFlow counts: the next one is due so many hours after this one was due, not saved.
                self._next_kept += self.keep_every_n_hours * _SECONDS_PER_HOUR
                self._last_preserved = saved_at
            else:
                removed.append(old)
        self.write_state(prefix)
        for old in removed:
            remove_checkpoint(old, keep_meta_graph)
        return removed

    def write_state(self, latest: str) -> None:
        """Write the state file of the folder that the latest checkpoint is in."""
        states.write_state(
            Path(latest).parent,
            latest,
            self.last_checkpoints,
            [at for _, at in self.last] if self.timestamps else (),
            self._last_preserved if self.timestamps else None,
            self.latest_filename,
            self.relative,
        )


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
    folder: str | Path,
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
    if not Path(folder).is_dir():
        raise GraphmillError("there is no such folder", file=str(folder))
    test = re.compile(re.escape(name) + r"(-\d+)?") if name else re.compile(".*")
    aged: list[tuple[float, int, str]] = []
    for at, found in enumerate(in_folder(folder)):
        if test.fullmatch(found):
            prefix = str(Path(folder, found))
            aged.append((Path(index_path(prefix)).stat().st_mtime, at, prefix))
    aged.sort()
    current = states.read_state(folder)
    protected = Path(current.latest).resolve() if current is not None else None
    old = aged[:-max_to_keep]
    kept = [prefix for _, _, prefix in aged[-max_to_keep:]]
    removed: list[str] = []
    due = -math.inf
    spared: list[str] = []
    for saved_at, _, prefix in old:
        if Path(prefix).resolve() == protected:
            spared.append(prefix)
        elif keep_every_n_hours is not None and saved_at >= due:
            spared.append(prefix)
            due = saved_at + keep_every_n_hours * _SECONDS_PER_HOUR
        else:
            removed.append(prefix)
    leftovers = [
        path
        for path in sorted(Path(folder).iterdir())
        if storage.TEMPORARY in path.name and path.stat().st_mtime < time.time() - _SECONDS_PER_HOUR
    ]
    freed = sum(file.stat().st_size for prefix in removed for file in files_of(prefix))
    freed += sum(path.stat().st_size for path in leftovers)
    return Cleanup(spared + kept, removed, [str(path) for path in leftovers], freed)


def clean(folder: str | Path, plan: Cleanup) -> None:
    """Remove what a plan says, after the state file has stopped naming it.

    Raises:
        OpError: the state file cannot be written.
    """
    current = states.read_state(folder)
    if current is not None:
        gone = {Path(prefix).resolve() for prefix in plan.removed}
        pairs = [
            (path, current.timestamps[at] if current.timestamps else 0.0)
            for at, path in enumerate(current.all_paths)
            if Path(path).resolve() not in gone
        ]
        if len(pairs) != len(current.all_paths):
            message = states.read_message(folder)
            was_relative = not Path(message.model_checkpoint_path).is_absolute()
            states.write_state(
                folder,
                current.latest,
                [path for path, _ in pairs],
                [at for _, at in pairs] if current.timestamps else (),
                current.last_preserved,
                relative=was_relative,
            )
    for prefix in plan.removed:
        remove_checkpoint(prefix)
    for path in plan.leftovers:
        storage.remove(path)


def relocate(folder: str | Path, relative: bool = True, latest_filename: str | None = None) -> list[tuple[str, str]]:
    """Rewrite a state file that was copied from elsewhere: its checkpoints are those of the same name in the folder.

    Args:
        relative: write names relative to the folder (which may then move again), else absolute paths.

    Returns:
        (old path, new path) as written, for the paths that were found; others are dropped from the list.

    Raises:
        GraphmillError: there is no state file, or the latest checkpoint is not in the folder.
    """
    message = states.read_message(folder, latest_filename)
    if message is None or not message.model_checkpoint_path:
        raise GraphmillError("there is no checkpoint state file in the folder", file=str(folder))

    def new(path: str) -> str | None:
        # The path below the folder is not known to a file from elsewhere: try ever shorter ends of it.
        parts = Path(path).parts
        for start in range(len(parts)):
            tail = Path(*parts[start:])
            if not tail.is_absolute() and states.exists(str(Path(folder, tail))):
                return str(tail) if relative else str(Path(folder, tail).resolve())
        return None

    latest = new(message.model_checkpoint_path)
    if latest is None:
        raise GraphmillError(
            f"the latest checkpoint '{message.model_checkpoint_path}' is not in the folder", file=str(folder)
        )
    moved: list[tuple[str, str]] = [(message.model_checkpoint_path, latest)]
    paths: list[str] = []
    times: list[float] = []
    for at, path in enumerate(message.all_model_checkpoint_paths):
        found = new(path)
        if found is not None:
            paths.append(found)
            if message.all_model_checkpoint_timestamps:
                times.append(message.all_model_checkpoint_timestamps[at])
            if (path, found) not in moved:
                moved.append((path, found))
    message.model_checkpoint_path = latest
    del message.all_model_checkpoint_paths[:]
    del message.all_model_checkpoint_timestamps[:]
    message.all_model_checkpoint_paths.extend(paths)
    message.all_model_checkpoint_timestamps.extend(times)
    from google.protobuf import text_format

    target = Path(folder, latest_filename or states.DEFAULT_NAME)
    storage.write_file(str(target), text_format.MessageToString(message).encode())
    return moved
