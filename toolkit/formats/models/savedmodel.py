"""SavedModels: a folder with saved_model.pb (or .pbtxt), variables/ and assets/, or that file alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from schemas.meta_graph_pb2 import MetaGraphDef
from schemas.saved_model_pb2 import SavedModel
from toolkit.errors import FormatError, GraphmillError, UsageError
from toolkit.formats import io
from toolkit.formats.inspection.detect import BINARY_NAME, SPLIT_NAME, TEXT_NAME, Encoding
from toolkit.formats.models import metagraph
from toolkit.formats.models.own import is_below, own_places
from toolkit.graph.metagraph import MetaGraph

#: the checkpoint prefix within the folder
VARIABLES = "variables/variables"
SERVE = "serve"
SCHEMA_VERSION = 1

#: what goes along with the graphs, unchanged
COMPANIONS = ("variables", "assets", "assets.extra", "debug", "keras_metadata.pb")
#: a digest of the bytes of saved_model.pb, so it goes along only with the same bytes
FINGERPRINT = "fingerprint.pb"
_NAMES = {Encoding.BINARY: BINARY_NAME, Encoding.TEXT: TEXT_NAME, Encoding.SPLIT: SPLIT_NAME}
#: the message in the folder, one of them
FILE_NAMES = tuple(_NAMES.values())
_KNOWN = {*_NAMES.values(), FINGERPRINT, *COMPANIONS}


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
    out = _around(shell)
    for meta in metas:
        _tagged(metagraph.to_proto(meta, out.meta_graphs.add()))
    return out


def around(protos: Iterable[MetaGraphDef], shell: SavedModel | None = None) -> SavedModel:
    """The SavedModel of MetaGraphDefs, as `to_proto` makes it."""
    out = _around(shell)
    for proto in protos:
        out.meta_graphs.append(_tagged(proto))
    return out


def _around(shell: SavedModel | None) -> SavedModel:
    out = SavedModel()
    if shell is not None:
        out.CopyFrom(shell)
    out.saved_model_schema_version = out.saved_model_schema_version or SCHEMA_VERSION
    return out


def _tagged(proto: MetaGraphDef) -> MetaGraphDef:
    if not proto.meta_info_def.tags:
        proto.meta_info_def.tags.append(SERVE)
    return proto


def tag_sets(metas: Sequence[MetaGraph]) -> list[str]:
    """The tags of each MetaGraph, as they are listed to a user."""
    return [",".join(sorted(meta.tags)) or "(no tags)" for meta in metas]


def select(metas: Sequence[MetaGraph], tags: Sequence[str] | None, source: str = "") -> int:
    """The position of the MetaGraph with exactly these tags.

    Without tags: the only one, or else the one tagged "serve" alone.

    Raises:
        UsageError: there is none; the tag sets there are are listed.
        FormatError: the SavedModel has no graph at all.
    """
    if not metas:
        raise FormatError("the SavedModel holds no graph", file=source or None)
    if tags is None and len(metas) == 1:
        return 0
    wanted = frozenset([SERVE] if tags is None else tags)
    for position, meta in enumerate(metas):
        if frozenset(meta.tags) == wanted:
            return position
    listed = "; ".join(tag_sets(metas))
    if tags is None:
        hint = "" if all(meta.tags for meta in metas) else " (--tags '' for the one without)"
        raise UsageError(f"it has {len(metas)} graphs; choose one by its tags: {listed}{hint}", file=source or None)
    raise UsageError(
        f"no graph has the tags {','.join(sorted(wanted)) or '(none)'}; there are: {listed}", file=source or None
    )


def write_folder(
    dest: str | Path,
    data: bytes | io.Writer,
    *,
    encoding: Encoding,
    source_folder: Path | None,
    prefix: Path | None,
    takes_variables: bool = True,
    without_assets: Collection[str] = (),
    check_links: Callable[[list[Path]], None] | None = None,
) -> None:
    """Write a SavedModel folder; what was there is replaced at the end, by renaming.

    Args:
        data: the serialized message, or what writes it into a file.
        encoding: of the message; there is none in JSON.
        source_folder: a SavedModel folder to take variables, assets and the like from; it may be `dest` itself.
        prefix: a checkpoint that becomes variables/variables, when the source folder has none.
        takes_variables: whether the source folder's variables are taken.
        without_assets: names of asset files that are not taken.
        check_links: is given the links that lead out of the source's own files, and raises where they may not be
            followed; by default none may.

    Raises:
        GraphmillError: `dest` exists and is not a SavedModel folder, or cannot be written.
    """
    name = os.fspath(dest)
    try:
        target = Path(os.path.realpath(name))
        _check_replaceable(target, name)
        with io.temporary_name(target) as scratch:
            scratch.mkdir()
            if source_folder is not None:
                taken = [entry for entry in COMPANIONS if entry != "variables" or takes_variables]
                copy_companions(source_folder, scratch, taken, check_links)
                _take_fingerprint(source_folder, scratch, data, encoding)
                for name in without_assets:
                    _drop_asset(scratch, name)
            if prefix is not None and not (scratch / VARIABLES).parent.exists():
                _take_checkpoint(prefix, scratch / VARIABLES, check_links or _refuse)
            io.write_atomic(scratch / _NAMES[encoding], data)
            if target.is_dir():
                with io.temporary_name(target) as old:
                    target.rename(old)
                    scratch.rename(target)
            else:
                scratch.rename(target)
        io.sync_folder(target.parent)
    except OSError as error:
        raise GraphmillError(f"cannot be written: {error.strerror or error}", file=name) from None


def asset_path(folder: Path, filename: str) -> Path:
    """Where an asset of a SavedModel lies; its name may lead anywhere, which `toolkit.policy.model_files` looks at.

    Raises:
        FormatError: it is no name of a file.
    """
    if "\0" in filename or filename.rpartition("/")[2] in ("", ".", ".."):
        raise FormatError(f"the asset {filename!r} has no name that a file can have", file=str(folder))
    return folder / "assets" / filename


def _check_replaceable(target: Path, name: str) -> None:
    if not target.exists():
        if not target.parent.is_dir():
            raise GraphmillError(f"there is no folder '{target.parent}'", file=name)
        return
    if not target.is_dir():
        raise GraphmillError("is a file; a SavedModel is written as a folder", file=name)
    strange = sorted({entry.name for entry in target.iterdir()} - _KNOWN)
    if strange:
        raise GraphmillError(f"is a folder with other things in it ('{strange[0]}'); give a new name", file=name)


def copy_companions(
    source: Path,
    target: Path,
    taken: Sequence[str] = COMPANIONS,
    check_links: Callable[[list[Path]], None] | None = None,
) -> None:
    """Copy what belongs to a SavedModel beside its graphs into another folder.

    Args:
        taken: of what there can be (`COMPANIONS`).
        check_links: as for `write_folder`.

    Raises:
        GraphmillError: a link leads out, or something is neither a file nor a folder.
    """
    links = [link for entry in taken for link in _links_out(source / entry, source)]
    if links:
        (check_links or _refuse)(links)
    for entry in taken:
        _copy(source / entry, target / entry)


def _take_fingerprint(source: Path, scratch: Path, data: bytes | io.Writer, encoding: Encoding) -> None:
    import shutil

    fingerprint, original = source / FINGERPRINT, source / BINARY_NAME
    if encoding is Encoding.BINARY and fingerprint.is_file() and original.is_file() and original.read_bytes() == data:
        shutil.copyfile(fingerprint, scratch / FINGERPRINT)


def _drop_asset(folder: Path, name: str) -> None:
    """Take a copied asset away again, and the folder of assets with the last one."""
    path = asset_path(folder, name)
    if is_below(os.path.realpath(path), os.path.realpath(folder)) and path.is_file():
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()


def _links_out(path: Path, source: Path) -> list[Path]:
    """The links at a path and below it, links to folders followed, that lead out of a model's own files."""
    own = own_places(source)
    found: list[Path] = []
    waiting, seen = [path], set[Path]()
    while waiting:
        path = waiting.pop()
        real = Path(os.path.realpath(path))  # which takes links that lead in a circle
        if path.is_symlink() and path.exists() and not any(is_below(str(real), place) for place in own):
            found.append(path)
        if path.is_dir() and real not in seen:
            seen.add(real)
            waiting += path.iterdir()
    return sorted(found)


def _refuse(links: list[Path]) -> None:
    raise GraphmillError(
        f"is a link to '{os.path.realpath(links[0])}', which is outside of the SavedModel, and is not copied; "
        "put the file itself there",
        file=str(links[0]),
    )


def _copy(path: Path, target: Path, above: tuple[Path, ...] = ()) -> None:
    """Copy a file, or a folder with all that is in it; what does not exist is passed over.

    Raises:
        GraphmillError: something in it is a pipe or a device, or a link to a folder that it is in.
    """
    if path.is_dir():
        real = Path(os.path.realpath(path))
        if real in above:
            raise GraphmillError(f"is a link to '{real}', which it is in, and is not copied", file=str(path))
        target.mkdir()
        for entry in sorted(path.iterdir()):
            _copy(entry, target / entry.name, (*above, real))
    elif path.is_file():
        import shutil

        shutil.copyfile(path, target)
    elif path.exists():
        raise GraphmillError("is neither a file nor a folder, and is not copied", file=str(path))


def _take_checkpoint(prefix: Path, wanted: Path, check_links: Callable[[list[Path]], None]) -> None:
    """Copy the index and the data shards of a checkpoint under another prefix."""
    files: dict[Path, str] = {}
    for file in prefix.parent.iterdir():
        rest = file.name.removeprefix(prefix.name)
        if file.name.startswith(prefix.name) and (rest == ".index" or rest.startswith(".data-")):
            files[file] = rest
    links = [link for file in files for link in _links_out(file, prefix.parent)]
    if links:
        check_links(links)
    wanted.parent.mkdir()
    for file, rest in files.items():
        _copy(file, wanted.with_name(wanted.name + rest))
