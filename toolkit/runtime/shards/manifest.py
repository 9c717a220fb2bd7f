"""What a folder of results holds: manifest.json says for which run, and lists the shards in their order.

    {"run": {"model": "model.pb", "fetches": ["y"], "batch": 64, ...},
     "shards": [{"name": "part-0", "output": "part-0.npz", "sources": {"shards/part-0.npz": [SIZE, MTIME]},
                 "rows": 1000}, {..., "error": "..."}, ...]}

It is written before the first shard is run and again at the end. A shard's file of results appears with its last byte
(it is written under another name), so that a run which was ended goes on with those that have none.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from toolkit.errors import UsageError
from toolkit.formats.io import write_atomic
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.shards.files import Shard

NAME = "manifest.json"


@dataclass(slots=True)
class Entry:
    """A shard and what became of it.

    Attributes:
        sources: the size of each of its files, and when it was changed, in nanoseconds.
        is_complete: its results are there.
        rows: examples that it has; None where nobody has counted.
        error: why there will be no results.
    """

    shard: Shard
    sources: dict[str, list[int]]
    is_complete: bool = False
    rows: int | None = None
    error: str | None = None

    @property
    def output(self) -> str:
        """The file of its results, in the folder."""
        return f"{self.shard.name}.npz"


class Manifest:
    """The results of one run.

    Args:
        folder: where they are written; made if it is not there.
        run: what the results depend on besides the shards.

    Raises:
        UsageError: the folder is a file, or holds results of another run.
    """

    def __init__(self, folder: str, run: Mapping[str, Any], shards: Sequence[Shard]):
        self.folder = Path(folder)
        self._run: dict[str, Any] = json.loads(json.dumps(run))
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError("is a file; results of many shards are written to a folder", file=folder)
        before = self._read()
        self.entries = [Entry(shard, {file: _stamp(file) for file in shard.files}) for shard in shards]
        for entry in self.entries:
            old = before.get(entry.shard.name, {})
            path = self.path(entry)
            if not path.exists():
                continue
            if old.get("sources") == entry.sources:
                entry.is_complete, entry.rows = True, old.get("rows")
            elif old:
                path.unlink()  # of a file that has changed since
            else:
                raise UsageError(
                    f"'{path.name}' is there and is no result of this run; choose another folder", file=folder
                )
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write()

    def _read(self) -> dict[str, dict[str, Any]]:
        """The shards of the run before, by name."""
        path = self.folder / NAME
        if not path.is_file():
            return {}
        try:
            found: Any = json.loads(path.read_bytes())
            run, shards = found["run"], {str(each["name"]): each for each in found["shards"]}
        except (ValueError, KeyError, TypeError, RecursionError, OSError):
            raise UsageError("is no manifest of results; choose another folder", file=str(path)) from None
        if run != self._run:
            differing = [key for key in {**run, **self._run} if run.get(key) != self._run.get(key)]
            raise UsageError(
                f"the folder holds results of another run ({', '.join(differing)} differ); choose another folder, or "
                "remove this one",
                file=str(path),
            )
        return cast("dict[str, dict[str, Any]]", shards)

    def path(self, entry: Entry) -> Path:
        """Where the results of a shard are."""
        return self.folder / entry.output

    def missing(self) -> list[Entry]:
        """The shards that have no results yet, in their order."""
        return [entry for entry in self.entries if not entry.is_complete]

    def sweep(self) -> None:
        """Remove what processes have left that were ended while they wrote; nothing may write any more."""
        for path in [*(self.path(entry) for entry in self.entries), self.folder / NAME]:
            for left in path.parent.glob(f".{glob.escape(path.name[:64])}.*.tmp"):  # as `formats.io` names them
                left.unlink(missing_ok=True)

    def write(self) -> None:
        """Write it as it is now, in one piece."""
        shards: list[dict[str, Any]] = []
        for entry in self.entries:
            row: dict[str, Any] = {"name": entry.shard.name, "output": entry.output, "sources": entry.sources}
            if entry.rows is not None:
                row["rows"] = entry.rows
            if entry.error is not None:
                row["error"] = entry.error
            shards.append(row)
        write_atomic(self.folder / NAME, json.dumps({"run": self._run, "shards": shards}, indent=1).encode())


def _stamp(file: str) -> list[int]:
    status = Path(file).stat()
    return [status.st_size, status.st_mtime_ns]


def described(
    source: str, tags: Sequence[str] | None, options: RunOptions, others: Mapping[str, str]
) -> dict[str, Any]:
    """What the results of a run depend on besides its shards.

    Args:
        source: the model's file or folder.
        others: the sources that are fed with every shard, by name.
    """
    found: dict[str, Any] = {
        "model": source, "changed": _changed(source), "fetches": list(options.fetches), "batch": options.batch,
        "precision": options.precision, "feeds": dict(others),
    }  # fmt: skip
    for name in ("signature", "checkpoint"):
        if getattr(options, name) is not None:
            found[name] = getattr(options, name)
    return found | ({"tags": list(tags)} if tags else {})


def _changed(path: str) -> list[int]:
    """What changes when a model does: the size of its file, or of all in its folder, and the latest change."""
    here = Path(path)
    files = [each for each in here.rglob("*") if each.is_file()] if here.is_dir() else [here]
    stamps = [_stamp(str(each)) for each in files]
    return [sum(size for size, _ in stamps), max((time for _, time in stamps), default=0)]
