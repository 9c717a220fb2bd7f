"""partitions.yaml, which lists the graphs of a partition folder (`toolkit.formats.folders.partitions` describes it)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, cast

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.inspection.detect import PARTITIONS_META_FILE, ModelKind
from toolkit.formats.models.savedmodel import COMPANIONS
from toolkit.formats.settings.documents import load_yaml

VERSION = 1


def read_listing(file: Path) -> dict[str, Any]:
    """The content of partitions.yaml: `by` and `kind` are known, `partitions` is a list of mappings with a `name` and
    the `file` of the folder, `signatures` a mapping; all of the files are regular, or missing, and `companions` are
    there.

    Raises:
        FormatError: it is no such list.
    """
    listing = load_yaml(io.read_bytes(file), str(file))
    try:
        return _checked(listing, file.parent)
    except FormatError as error:
        raise error.at(file=str(file)) from None


def _checked(listing: Any, folder: Path) -> dict[str, Any]:
    if not isinstance(listing, dict):
        raise FormatError("not a list of partitions; graphmill partition writes one")
    found = cast("dict[str, Any]", listing)
    rows = found.get("partitions")
    if not isinstance(rows, list) or not all(map(_is_row, cast("list[Any]", rows))):
        raise FormatError("not a list of partitions: 'partitions' must be a list of entries with 'name' and 'file'")
    if found.get("version") != VERSION:
        raise FormatError(f"version {found.get('version')!r} is not supported; expected {VERSION}")
    if found.get("by") not in ("device", "task") or found.get("kind") not in [kind.value for kind in ModelKind]:
        raise FormatError("'by' must be device or task, and 'kind' the kind of a model file")
    if not isinstance(found.get("signatures") or {}, dict):
        raise FormatError("'signatures' must be a mapping")
    entries = cast("list[dict[str, str]]", rows)
    for key in ("name", "file"):
        twice = [value for value, count in Counter(entry[key] for entry in entries).items() if count > 1]
        if twice:
            raise FormatError(f"the {key} {twice[0]!r} is listed twice")
    for entry in entries:
        if not _is_plain(entry["file"]):
            raise FormatError(f"{entry['file']!r} is not a plain file name")
    for name in (*(entry["file"] for entry in entries), PARTITIONS_META_FILE):
        io.check_member(folder / name)
    _check_companions(found.get("companions") or [], folder)
    return found


def _check_companions(named: Any, folder: Path) -> None:
    """Refuse a list of what lies beside the graphs that names other things, or things that are gone."""
    names = cast("list[Any]", named) if isinstance(named, list) else [named]
    for name in names:
        if name not in COMPANIONS:
            raise FormatError(f"'companions' must be a list of {', '.join(COMPANIONS)}; {name!r} is none of them")
        if not (folder / name).exists():
            raise FormatError(f"'{name}' belongs to these partitions and is missing; copy the whole folder")


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    entry = cast("dict[str, Any]", row)
    return isinstance(entry.get("name"), str) and isinstance(entry.get("file"), str)


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and "\0" not in name and Path(name).name == name
