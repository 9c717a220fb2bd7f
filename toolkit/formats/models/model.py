"""Models: graphs in whatever file they come, and back into files.

    model = read_model("model.pb")
    write_model(model.with_graph(graph), "out.pbtxt")

A file is a GraphDef, a MetaGraphDef or a SavedModel, each in binary, text format or JSON.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schemas.saved_model_pb2 import SavedModel
from toolkit.errors import GraphmillError, UsageError, about_option, did_you_mean, source_name
from toolkit.formats import io
from toolkit.formats.folders import archive
from toolkit.formats.inspection.detect import (
    BINARY_NAME,
    SPLIT_NAME,
    STREAM_KEY,
    TEXT_NAME,
    Detected,
    Encoding,
    FileKind,
    ModelKind,
    detect,
)
from toolkit.formats.models import graphdef, metagraph, savedmodel
from toolkit.formats.models.message import read_message, serialize
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph

#: names that people give to other things than graphs
_FOREIGN_SUFFIXES = {
    **dict.fromkeys(
        (".svg", ".png", ".pdf", ".dot", ".html", ".htm", ".jpg", ".jpeg"),
        "a picture; draw one with: graphmill visualize",
    ),
    **dict.fromkeys((".npz", ".npy", ".csv"), "arrays, and this is a graph"),
    **dict.fromkeys((".yaml", ".yml", ".py"), "a source, and this is a graph"),
    **dict.fromkeys((".onnx", ".tflite", ".h5", ".keras"), "another format, which graphmill does not write"),
}
#: bytes of a node without a tensor, and of what else there is, where only the large is counted
_SMALL, _ROOM = 256, 64 << 20
_SUFFIXES = {
    ".pbtxt": Encoding.TEXT, ".txt": Encoding.TEXT, ".textproto": Encoding.TEXT, ".json": Encoding.JSON,
    ".cpb": Encoding.SPLIT,
}  # fmt: skip


@dataclass
class Model:
    """One or more graphs with their surroundings, and where they came from.

    Attributes:
        kind, encoding: of the file.
        source: the file as it was given; "" for a model that was made, not read.
        meta_graphs: the graphs; a GraphDef is one MetaGraph without surroundings.
        selected: the position of the one that `meta` is, or None when a SavedModel has several and the tags
            that were asked for do not choose.
        folder: the SavedModel folder it was read from.
        shell: the SavedModel message without its graphs.
        checkpoint: the prefix of the checkpoint with its variables, where that is not the one that lies beside what was
            read; "" where it needs none.
        without_assets: files of the folder's assets that the model no longer needs.
        split_by: "task" or "device" where it came as partitions, which were joined; else "".
    """

    kind: ModelKind
    encoding: Encoding
    source: str
    meta_graphs: list[MetaGraph]
    selected: int | None = 0
    folder: Path | None = None
    shell: SavedModel = field(default_factory=SavedModel)
    checkpoint: str | None = None
    without_assets: frozenset[str] = frozenset()
    split_by: str = ""

    @property
    def meta(self) -> MetaGraph:
        """The only MetaGraph, the one chosen by tags, or the one tagged "serve".

        Raises:
            UsageError: a SavedModel has several, and none is chosen; the tag sets are listed.
        """
        if self.selected is None:
            self.selected = savedmodel.select(self.meta_graphs, None, self.source)
        return self.meta_graphs[self.selected]

    @property
    def graph(self) -> Graph:
        """The graph of `meta`."""
        return self.meta.graph

    def with_graph(self, graph: Graph) -> Model:
        """This model with another graph in the place of `graph`; the rest is shared."""
        return self.with_meta(replace(self.meta, graph=graph))

    def with_meta(self, meta: MetaGraph) -> Model:
        """This model with another MetaGraph in the place of `meta`; the rest is shared."""
        chosen = self.meta
        metas = [meta if entry is chosen else entry for entry in self.meta_graphs]
        return replace(self, meta_graphs=metas)


def from_graph(graph: Graph, source: str = "") -> Model:
    """A model around a bare graph."""
    return Model(ModelKind.GRAPH_DEF, Encoding.BINARY, source, [MetaGraph(graph)])


def from_meta_graph(meta: MetaGraph, source: str = "") -> Model:
    """A model around a MetaGraph."""
    return Model(ModelKind.META_GRAPH, Encoding.BINARY, source, [meta])


# -- reading ---------------------------------------------------------------------------------------------


def read_model(source: str | Path, *, tags: Sequence[str] | None = None, data: bytes | None = None) -> Model:
    """Read a GraphDef, MetaGraphDef or SavedModel, in binary, text or JSON, whatever its name.

    Args:
        source: a file, a SavedModel folder, a partition folder (whose graphs are joined), a tar archive of either, or
            "-" for standard input.
        tags: which graph of a SavedModel; see `Model.meta` for the default.
        data: the content of `source`, where it has been read already.

    Raises:
        GraphmillError: it cannot be read.
        FormatError: it is something else (the message says what), truncated, or over 2 GiB.
        GraphError: the graph is malformed: a dangling input, a duplicate name.
        UsageError: no graph has these tags.
    """
    name = os.fspath(source)
    found = detect(name, data)
    shown = source_name(name)
    if found.kind is FileKind.PARTITIONS and tags is None:
        return model_of_partitions(found, name)
    if found.kind is FileKind.GRAPH_DEF and found.encoding is Encoding.BINARY and tags is None:
        graph, found = _bare_graph(found, shown)
        if graph is not None:
            return Model(ModelKind.GRAPH_DEF, Encoding.BINARY, name, [MetaGraph(graph)])
    kind, proto = read_message(found, shown)
    encoding = found.encoding
    assert encoding is not None
    try:
        if kind is ModelKind.SAVED_MODEL:
            metas, shell = savedmodel.from_proto(proto)
            # which of several graphs is meant may not matter (inspect shows all): `Model.meta` asks when it does
            is_open = tags is None and len(metas) > 1
            with about_option("--tags") if tags is not None else contextlib.nullcontext():
                selected = None if is_open else savedmodel.select(metas, tags, shown)
            return Model(kind, encoding, name, metas, selected, _model_folder(found), shell)
        if tags is not None:
            with about_option("--tags"):
                raise UsageError(
                    f"'{','.join(tags)}' would choose among the graphs of a SavedModel, "
                    f"and this is a {proto.DESCRIPTOR.name}",
                    file=shown,
                )
        if kind is ModelKind.META_GRAPH:
            meta = metagraph.from_proto(proto)
            if STREAM_KEY not in meta.collections:
                return Model(kind, encoding, name, [meta])
            from toolkit.formats.folders.partition_reading import from_stream

            meta, by, was = from_stream(meta)
            kind = was if was is ModelKind.GRAPH_DEF else kind
            return Model(kind, encoding, name, [meta], split_by=by)
        return Model(kind, encoding, name, [MetaGraph(graphdef.from_proto(proto))])
    except GraphmillError as error:
        raise error.at(file=shown) from None


def _bare_graph(found: Detected, shown: str) -> tuple[Graph | None, Detected]:
    """The graph of a binary GraphDef, where its bytes are as they should be, and the file as it is known then."""
    data = found.data if found.data is not None else io.read_owned(found.path, is_message=True)
    io.check_size(len(data), shown)
    try:
        graph = graphdef.from_bytes(data)
        if graph is not None:
            return graph, found
        return None, replace(found, data=data if isinstance(data, bytes) else data[:])
    except GraphmillError as error:
        raise error.at(file=shown) from None


def model_of_partitions(found: Detected, name: str) -> Model:
    """The model that a partition folder was made of; a SavedModel's variables and assets lie in the folder.

    Args:
        name: of the folder, or of the archive that it came in.

    Raises:
        GraphmillError: something of the folder is damaged or missing, or the partitions do not fit together.
    """
    from toolkit.formats.folders.partition_reading import read_partitions

    folder = Path(found.path)
    try:
        parts = read_partitions(str(folder))
        meta = parts.joined()
    except GraphmillError as error:
        raise error.at(file=name) from None
    kind, own = parts.kind, None
    if kind is ModelKind.SAVED_MODEL:
        own = folder if any((folder / name).exists() for name in savedmodel.COMPANIONS) else None
        kind = ModelKind.META_GRAPH if own is None else kind
    return Model(kind, Encoding.BINARY, name, [meta], folder=own, split_by=parts.by)


def _model_folder(found: Detected) -> Path | None:
    """The folder of a SavedModel, also when the file inside it was given."""
    if found.folder is not None:
        return found.folder
    path = Path(found.path)
    return path.parent if path.name in (BINARY_NAME, TEXT_NAME, SPLIT_NAME) else None


def read_graph(source: str | Path, *, tags: Sequence[str] | None = None) -> Graph:
    """The graph of a file; see `read_model`."""
    return read_model(source, tags=tags).graph


# -- writing ---------------------------------------------------------------------------------------------


def write_model(
    model: Model,
    dest: str | Path,
    as_kind: str | None = None,
    *,
    check_links: Callable[[list[Path]], None] | None = None,
) -> None:
    """Write a model.

    Args:
        dest: a file, "-" for standard output (binary unless `as_kind` says otherwise), or for a SavedModel a
            folder: a name without suffix or an existing folder. What was there is replaced atomically. A SavedModel
            with variables or assets, and one whose name ends in .tar, is a tar archive of its folder.
        as_kind: "graphdef", "metagraph" or "savedmodel", alone or followed by ".text", ".json", ".binary" or
            ".split". By default the kind is what was read, and the suffix decides the encoding: .pbtxt, .txt and
            .textproto are text, .json is JSON, .cpb is split, everything else binary; a SavedModel's folder of more
            than a message can hold is split.
        check_links: see `savedmodel.write_folder`.

    Raises:
        UsageError: an unknown `as_kind`; binary data for a terminal.
        GraphmillError: it cannot be written, is over 2 GiB, or has no JSON form.
    """
    name = os.fspath(dest)
    kind, encoding = target_kind(model, name, as_kind)
    is_folder = writes_folder(kind, name)
    if kind is ModelKind.SAVED_MODEL and not is_folder and writes_archive(model, name, encoding):
        _write_archive(model, name, encoding, check_links)
        return
    if is_folder and encoding is Encoding.JSON:
        raise UsageError("a SavedModel folder has no JSON form; give a file name ending in .json", file=name)
    shown = "standard output" if name == io.STDIO else name
    data: bytes | io.Writer
    if encoding is Encoding.BINARY and is_folder and _needs_split(model.meta_graphs):
        encoding = Encoding.SPLIT
    if encoding is Encoding.SPLIT:
        from toolkit.formats.models import split

        metas = model.meta_graphs if kind is ModelKind.SAVED_MODEL else [model.meta]
        data = split.split_writer(kind, metas, model.shell, shown)
        if not is_folder:
            io.write_pieces(name, data)
            return
    elif kind is ModelKind.GRAPH_DEF and encoding is Encoding.BINARY:
        parts = graphdef.to_parts(model.graph)
        io.check_size(sum(map(len, parts)), shown)
        if name != io.STDIO:
            io.write_atomic(name, lambda file: file.writelines(parts))
            return
        data = b"".join(parts)
    else:
        data = serialize(to_message(model, kind), encoding, shown)
    if is_folder:
        prefix = variables_prefix(model)
        savedmodel.write_folder(
            name,
            data,
            encoding=encoding,
            source_folder=model.folder,
            prefix=None if prefix is None else Path(prefix),
            takes_variables=model.checkpoint is None,
            without_assets=model.without_assets,
            check_links=check_links,
        )
        return
    assert isinstance(data, bytes)
    io.write_output(name, data, binary=encoding is Encoding.BINARY)


def _write_archive(
    model: Model, name: str, encoding: Encoding, check_links: Callable[[list[Path]], None] | None
) -> None:
    """A SavedModel with all that belongs to it as one stream."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="graphmill-") as scratch:
        folder = Path(scratch) / "model"
        as_kind = f"{ModelKind.SAVED_MODEL.value}.{encoding.value}"
        write_model(model, folder, as_kind, check_links=check_links)
        message = next(file for each in savedmodel.FILE_NAMES if (file := folder / each).is_file())
        io.write_streamed(name, lambda file: archive.write_archive(folder, file, message.name))


def writes_archive(model: Model, dest: str, encoding: Encoding) -> bool:
    """Whether `write_model` writes a SavedModel there as a tar archive of its folder: for a name that ends in .tar, and
    to standard output where variables or assets belong to it. As text and JSON it is the message alone, to be read.

    Raises:
        UsageError: there is no archive in this encoding.
    """
    return takes_files(dest, encoding) and (dest != io.STDIO or bool(companions(model)))


def takes_files(dest: str, encoding: Encoding) -> bool:
    """Whether what belongs to a SavedModel could be written there beside it in a tar archive.

    Raises:
        UsageError: there is no archive in this encoding.
    """
    is_named = Path(dest).suffix.lower() == archive.SUFFIX
    if encoding in (Encoding.TEXT, Encoding.JSON):
        if is_named:
            raise UsageError(f"a .tar holds a SavedModel in binary, not in {encoding.value}", file=dest)
        return False
    return is_named or dest == io.STDIO


def companions(model: Model) -> list[str]:
    """What belongs to a SavedModel's graph and lies beside it in files: "the variables", "the assets"."""
    found: list[str] = []
    if variables_prefix(model) is not None and any(map(_has_variables, model.meta_graphs)):
        found.append("the variables")
    for folder, what in (("assets", "the assets"), ("assets.extra", "the extra assets")):
        path = None if model.folder is None else model.folder / folder
        if path is not None and path.is_dir() and {each.name for each in path.iterdir()} - model.without_assets:
            found.append(what)
    return found


def _has_variables(meta: MetaGraph) -> bool:
    from toolkit.graph.summary import VARIABLES

    if meta.shell.HasField("object_graph_def"):  # objects are not loaded without a checkpoint
        return True
    library = meta.graph.library
    inside = (node for name in library for node in library.function(name).node_def)
    return any(node.op in VARIABLES for node in (*meta.graph, *inside))


def _needs_split(metas: Sequence[MetaGraph]) -> bool:
    """Whether graphs come near what one message can hold."""
    total = 0
    for meta in metas:
        library = meta.graph.library
        total += sum(library.function(name).ByteSize() for name in library)
        for node in meta.graph:
            value = node.attr_proto("value") if node.op == "Const" else None
            total += _SMALL if value is None else value.ByteSize()
    return total > io.PROTO_LIMIT - _ROOM


def parse_kind(text: str) -> tuple[ModelKind, Encoding | None]:
    """Read "metagraph", "graphdef.text": what to write, and in which encoding where that is said.

    Raises:
        UsageError: there is no such kind.
    """
    head, _, tail = text.partition(".")
    kinds = {k.value: k for k in ModelKind}
    encodings = {"": None, **{e.value: e for e in Encoding}}
    if head not in kinds or tail not in encodings:
        raise UsageError(
            f"'{text}' is not a kind to write"
            + did_you_mean(
                head, kinds, then=f"expected {', '.join(kinds)}, with .text, .json or .split for those formats"
            )
        )
    return kinds[head], encodings[tail]


def target_kind(model: Model, dest: str, as_kind: str | None) -> tuple[ModelKind, Encoding]:
    """The kind and encoding that `write_model` writes.

    Raises:
        UsageError: `as_kind` is not one of the choices, or the name's suffix is that of something else.
    """
    kind, encoding = model.kind, None
    foreign = _FOREIGN_SUFFIXES.get(Path(dest).suffix.lower())
    if foreign is not None and not Path(dest).is_dir():
        raise UsageError(
            f"the name is that of {foreign}; a graph's name ends in .pb, .pbtxt, .json or .meta", file=dest
        )
    if as_kind is not None:
        kind, encoding = parse_kind(as_kind)
    if kind is not ModelKind.SAVED_MODEL and Path(dest).suffix.lower() == archive.SUFFIX:
        raise UsageError(f"a .tar holds a SavedModel, and this is a {kind.value}; add --as savedmodel", file=dest)
    if encoding is None:
        encoding = _SUFFIXES.get(Path(dest).suffix.lower(), Encoding.BINARY)
    return kind, encoding


def writes_folder(kind: ModelKind, dest: str) -> bool:
    """Whether `write_model` writes a folder there, for a SavedModel whose name has no suffix or is a folder."""
    return kind is ModelKind.SAVED_MODEL and _is_folder_name(dest)


def _is_folder_name(name: str) -> bool:
    if name == io.STDIO or (Path(name).suffix.lower() == archive.SUFFIX and not Path(name).is_dir()):
        return False
    if name.endswith(os.sep) or Path(name).is_dir():
        return True
    return Path(name).suffix.lower() not in {".pb", ".meta", *_SUFFIXES}


def to_message(model: Model, kind: ModelKind) -> Any:
    """The message of a model as a GraphDef, MetaGraphDef or SavedModel.

    A GraphDef is the graph of `model.meta`; so is a MetaGraphDef, with its surroundings. A SavedModel holds all
    graphs of a model that was one, else the one there is.
    """
    if kind is ModelKind.GRAPH_DEF:
        return graphdef.to_proto(model.graph)
    if kind is ModelKind.META_GRAPH:
        return metagraph.to_proto(model.meta)
    return savedmodel.to_proto(model.meta_graphs, model.shell)


def variables_prefix(model: Model) -> str | None:
    """The checkpoint that belongs to a model: variables/variables of a SavedModel, or the checkpoint beside a
    MetaGraph file (PREFIX.meta beside PREFIX.index). None when there is none."""
    if model.checkpoint is not None:
        return model.checkpoint or None
    if model.kind is ModelKind.SAVED_MODEL and model.folder is not None:
        prefix = str(model.folder / savedmodel.VARIABLES)
    elif model.kind is ModelKind.META_GRAPH and model.source.endswith(".meta"):
        prefix = model.source.removesuffix(".meta")
    else:
        return None
    return prefix if Path(prefix + ".index").is_file() else None


__all__ = [
    "Encoding",
    "Model",
    "ModelKind",
    "companions",
    "from_graph",
    "from_meta_graph",
    "model_of_partitions",
    "read_graph",
    "read_message",
    "read_model",
    "serialize",
    "takes_files",
    "target_kind",
    "to_message",
    "variables_prefix",
    "write_model",
    "writes_archive",
    "writes_folder",
]  # fmt: skip
