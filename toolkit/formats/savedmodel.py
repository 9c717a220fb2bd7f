"""SavedModels: a folder with saved_model.pb (or .pbtxt), variables/ and assets/, or that file alone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from schemas.saved_model_pb2 import SavedModel
from toolkit.errors import FormatError, GraphmillError, UsageError
from toolkit.formats import io, metagraph
from toolkit.graph.metagraph import MetaGraph

BINARY_NAME = "saved_model.pb"
TEXT_NAME = "saved_model.pbtxt"
SPLIT_NAME = "saved_model.cpb"
VARIABLES = os.path.join("variables", "variables")
SERVE = "serve"
SCHEMA_VERSION = 1

#: what goes along with the graphs, unchanged
COMPANIONS = ("variables", "assets", "assets.extra", "debug", "keras_metadata.pb")
#: of the bytes of saved_model.pb, so it goes along only with the same bytes
FINGERPRINT = "fingerprint.pb"
_KNOWN = {BINARY_NAME, TEXT_NAME, FINGERPRINT, *COMPANIONS}


def find_file(folder: str) -> str | None:
    """The path of the SavedModel message in a folder, or None.

    Raises:
        FormatError: it is split over several files (.cpb).
    """
    for name in (BINARY_NAME, TEXT_NAME):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    if os.path.isfile(os.path.join(folder, SPLIT_NAME)):
        raise FormatError("split SavedModels (.cpb) are not supported yet", file=os.path.join(folder, SPLIT_NAME))
    return None


def from_proto(proto: SavedModel) -> tuple[list[MetaGraph], SavedModel]:
    """Take over a SavedModel message: its MetaGraphs, and what is left of it.

    Raises:
        GraphError: a graph in it is malformed.
    """
    metas = [metagraph.from_proto(meta) for meta in proto.meta_graphs]
    del proto.meta_graphs[:]
    return metas, proto


def to_proto(metas: Sequence[MetaGraph], shell: SavedModel | None = None) -> SavedModel:
    """The SavedModel of MetaGraphs; a graph without tags gets the tag "serve"."""
    out = SavedModel()
    if shell is not None:
        out.CopyFrom(shell)
    out.saved_model_schema_version = out.saved_model_schema_version or SCHEMA_VERSION
    for meta in metas:
        proto = metagraph.to_proto(meta)
        if not proto.meta_info_def.tags:
            proto.meta_info_def.tags.append(SERVE)
        out.meta_graphs.append(proto)
    return out


def select(metas: Sequence[MetaGraph], tags: Sequence[str] | None, source: str = "") -> int:
    """The position of the MetaGraph with exactly these tags.

    Without tags: the only one, or else the one tagged "serve".

    Raises:
        UsageError: there is none; the tag sets there are are listed.
        FormatError: the SavedModel has no graph at all.
    """
    if not metas:
        raise FormatError("the SavedModel holds no graph", file=source or None)
    available = [frozenset(meta.tags) for meta in metas]
    if tags is None and len(metas) == 1:
        return 0
    wanted = frozenset([SERVE] if tags is None else tags)
    if wanted in available:
        return available.index(wanted)
    listed = "; ".join(",".join(sorted(entry)) or "(no tags)" for entry in available)
    if tags is None:
        raise UsageError(f"it has {len(metas)} graphs; choose one by its tags: {listed}", file=source or None)
    raise UsageError(
        f"no graph has the tags {','.join(sorted(wanted)) or '(none)'}; it has: {listed}", file=source or None
    )


def shards(prefix: str) -> list[str]:
    """The files of a checkpoint: the index and its data shards."""
    folder, base = os.path.split(prefix)
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return []
    wanted = [n for n in names if n == f"{base}.index" or n.startswith(f"{base}.data-")]
    return [os.path.join(folder, n) for n in wanted]


def write_folder(dest: str | Path, data: bytes, *, text: bool, source_folder: str | None, prefix: str | None) -> None:
    """Write a SavedModel folder; what was there is replaced at the end, in one rename.

    Args:
        data: the serialized message.
        text: whether it is in text format.
        source_folder: a SavedModel folder to take variables, assets and the like from.
        prefix: a checkpoint that becomes variables/variables, when the source folder has none.

    Raises:
        GraphmillError: `dest` exists and is not a SavedModel folder, or cannot be written.
    """
    name = os.fspath(dest)
    target = os.path.realpath(name)
    _check_replaceable(target, name)
    try:
        with io.temporary_name(target) as scratch:
            os.mkdir(scratch)
            if source_folder is not None:
                _take_along(source_folder, scratch, data, text=text)
            if prefix is not None and not os.path.isdir(os.path.join(scratch, "variables")):
                _take_checkpoint(prefix, os.path.join(scratch, VARIABLES))
            io.write_atomic(os.path.join(scratch, TEXT_NAME if text else BINARY_NAME), data)
            if os.path.isdir(target):
                with io.temporary_name(target) as old:
                    os.rename(target, old)
                    os.rename(scratch, target)
            else:
                os.rename(scratch, target)
        io.sync_folder(os.path.dirname(target))
    except OSError as error:
        raise GraphmillError(f"cannot be written: {error.strerror or error}", file=name) from None


def _check_replaceable(target: str, name: str) -> None:
    if not os.path.lexists(target):
        parent = os.path.dirname(target)
        if not os.path.isdir(parent):
            raise GraphmillError(f"there is no folder '{parent}'", file=name)
        return
    if not os.path.isdir(target):
        raise GraphmillError("is a file; a SavedModel is written as a folder", file=name)
    strange = sorted(set(os.listdir(target)) - _KNOWN)
    if strange:
        raise GraphmillError(f"is a folder with other things in it ('{strange[0]}'); give a new name", file=name)


def _take_along(source: str, scratch: str, data: bytes, *, text: bool) -> None:
    for entry in COMPANIONS:
        path = os.path.join(source, entry)
        if os.path.isdir(path):
            shutil.copytree(path, os.path.join(scratch, entry))
        elif os.path.isfile(path):
            shutil.copyfile(path, os.path.join(scratch, entry))
    fingerprint = os.path.join(source, FINGERPRINT)
    original = os.path.join(source, BINARY_NAME)
    if not text and os.path.isfile(fingerprint) and os.path.isfile(original) and Path(original).read_bytes() == data:
        shutil.copyfile(fingerprint, os.path.join(scratch, FINGERPRINT))


def _take_checkpoint(prefix: str, wanted: str) -> None:
    files = shards(prefix)
    if files:
        os.makedirs(os.path.dirname(wanted))
    for file in files:
        shutil.copyfile(file, wanted + file[len(prefix) :])
