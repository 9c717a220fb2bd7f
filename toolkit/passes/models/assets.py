"""Asset files of models that are put together: copied into one folder, and listed where TensorFlow's loaders look."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from google.protobuf import any_pb2

from schemas.meta_graph_pb2 import AssetFileDef, MetaGraphDef
from toolkit.errors import GraphmillError, UsageError
from toolkit.formats import io
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import Model
from toolkit.formats.models.own import is_below, own_places
from toolkit.formats.models.savedmodel import asset_path
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.tensorref import parse_tensor

CheckLinks = Callable[[list[Path]], None]
_ANY_PREFIX = "type.googleapis.com/"
#: the name of the message in TensorFlow's own package, which its loaders unpack
_MESSAGE = "tensorflow.AssetFileDef"


def add_assets(model: Model, folder: Path, check_links: CheckLinks | None = None) -> MetaGraph:
    """Copy the assets of a model into `folder/assets`; returns its MetaGraph, which lists them.

    Of a SavedModel those are its files. Other graphs name paths in the collection "asset_filepaths", which are taken
    from where the file of the graph lies.

    Args:
        check_links: is given files that lie elsewhere than beside the model, and raises where they may not be read;
            by default none may.

    Raises:
        GraphmillError: a file is missing, or cannot be copied.
        UsageError: a path is not known before the graph runs.
    """
    meta = model.meta
    listed = meta.assets
    home = model.folder
    sources: list[tuple[Path, str]] = []
    if listed and home is None:
        raise UsageError(
            f"the asset '{listed[0].filename}' lies beside its SavedModel's folder, and this file is not in one",
            file=model.source or None,
        )
    if home is not None:
        sources = [(asset_path(home, asset.filename), asset.tensor_info.name) for asset in listed]
    else:
        beside = Path(model.source).parent if model.source not in ("", io.STDIO) else Path()
        sources = [(beside / path, name) for path, name in _paths(meta)]
    if not sources:
        return meta
    places = own_places(home or model.source) if home or model.source not in ("", io.STDIO) else ()
    strange = [path for path, _ in sources if not any(is_below(os.path.realpath(path), place) for place in places)]
    if strange:
        (check_links or _refuse)(strange)
    target = folder / "assets"
    made: list[AssetFileDef] = []
    copied: dict[Path, str] = {}
    for path, name in sources:
        if path not in copied:
            copied[path] = _copy(path, target)
        asset = AssetFileDef(filename=copied[path])
        asset.tensor_info.name = name
        made.append(asset)
    shell = MetaGraphDef()
    shell.CopyFrom(meta.shell)
    del shell.asset_file_def[:]
    shell.asset_file_def.extend(made)
    items = [any_pb2.Any(type_url=_ANY_PREFIX + _MESSAGE, value=asset.SerializeToString()) for asset in made]
    return replace(meta, shell=shell, collections=meta.collections | {GraphKeys.SAVED_MODEL_ASSETS: items})


def _paths(meta: MetaGraph) -> list[tuple[str, str]]:
    """The path and the tensor of each asset that a graph names."""
    found: list[tuple[str, str]] = []
    for item in meta.collections.get(GraphKeys.ASSET_FILEPATHS, []):
        if not isinstance(item, str):
            continue
        node, index = meta.graph.output(parse_tensor(item))
        value = node.attr_proto("value") if node.op == "Const" and node.attr("dtype").base is dtypes.string else None
        if value is None:
            raise UsageError(f"the path of the asset '{item}' is no constant, so nobody knows its file", node=node.name)
        for path in tensor.to_array(value.tensor).reshape(-1).tolist():
            found.append((os.fsdecode(path), f"{node.name}:{index}"))
    return found


def _copy(path: Path, target: Path) -> str:
    """Copy a file into a folder; returns its name there, another one where that is taken."""
    target.mkdir(exist_ok=True)
    name, count = path.name, 0
    while (target / name).exists():
        count += 1
        name = f"{path.stem}_{count}{path.suffix}"
    try:
        shutil.copyfile(path, target / name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise GraphmillError(f"the asset cannot be copied: {reason}", file=str(path)) from None
    return name


def _refuse(paths: list[Path]) -> None:
    raise GraphmillError("is an asset that lies outside of the model's folder, and is not copied", file=str(paths[0]))
