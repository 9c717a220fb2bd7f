"""Files and folders in, findings out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schemas.graph_pb2 import GraphDef
from schemas.meta_graph_pb2 import MetaGraphDef
from toolkit.errors import FormatError, GraphmillError, source_name
from toolkit.formats import io
from toolkit.formats.inspection.detect import (
    PARTITIONS_FILE,
    STREAM_KEY,
    Detected,
    Encoding,
    FileKind,
    ModelKind,
    detect,
    explain,
    saved_model_file,
)
from toolkit.formats.models import graphdef, metagraph
from toolkit.formats.models.message import read_message
from toolkit.formats.models.model import model_of_partitions, to_message
from toolkit.formats.models.savedmodel import FINGERPRINT, VARIABLES
from toolkit.graph.garbage import no_collection
from toolkit.passes.validate import registry
from toolkit.passes.validate.config import Config
from toolkit.passes.validate.finding import Finding
from toolkit.passes.validate.options import Options
from toolkit.passes.validate.registry import Problem
from toolkit.passes.validate.subject import Subject

#: a message that is not a model is a finding below a folder when its name says that it should be one
_MODEL_SUFFIXES = frozenset({".pb", ".pbtxt", ".meta", ".graphdef"})


@dataclass(slots=True)
class Result:
    """What a validation found.

    Attributes:
        files: every model looked at, in order.
        findings: by file, then in the order of the rules.
    """

    files: list[str] = field(default_factory=list[str])
    findings: list[Finding] = field(default_factory=list[Finding])


def validate_files(
    paths: Sequence[str],
    options: Options | None = None,
    config: Config | None = None,
    on_file: Callable[[int, int, str], None] | None = None,
) -> Result:
    """Validate model files, SavedModel folders, and everything below other folders.

    A file that cannot be read is a finding; one that does not exist is an error.

    Args:
        on_file: called before each file with its number, how many there are, and its name.

    Raises:
        GraphmillError: a path does not exist.
    """
    options, config = options or Options(), config or Config()
    result = Result()
    everything = list(discover(paths, config))
    for position, (path, is_given) in enumerate(everything):
        if on_file is not None:
            on_file(position, len(everything), path)
        shown = source_name(path)
        with no_collection():  # what one file makes lives until it has been looked at
            found = list(_file(path, shown, is_given, options, config))
        if found or is_given or _is_model(path):
            result.files.append(shown)
            result.findings += found
    return result


def discover(paths: Iterable[str], config: Config) -> Iterator[tuple[str, bool]]:
    """The files and SavedModel folders that paths stand for, and whether each was given by its own name.

    Raises:
        GraphmillError: a path does not exist.
    """
    for name in paths:
        path = Path(name)
        if name != io.STDIO and not path.exists():
            raise explain(detect(name), name)  # says what is there instead, or which names are close
        if name == io.STDIO or not path.is_dir() or _is_whole(path) or _lacks_its_model(path):
            yield name, True
            continue
        for below, is_model in _walk(path):
            if not config.is_excluded(below):
                yield below, is_model


def _walk(root: Path) -> Iterator[tuple[str, bool]]:
    """What may be a model, and whether it must be one."""
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        is_remains = _lacks_its_model(here)
        if is_remains or (here != root and _is_whole(here)):
            folders.clear()
            yield str(here), is_remains
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from ((str(here / name), False) for name in sorted(files) if not name.startswith("."))


def _is_whole(folder: Path) -> bool:
    """Whether a folder is one model: a SavedModel, or partitions."""
    return _is_saved_model(folder) or (folder / PARTITIONS_FILE).is_file()


def _is_saved_model(folder: Path) -> bool:
    try:
        return saved_model_file(folder) is not None
    except GraphmillError:
        return True  # a split one, which reading refuses


def _lacks_its_model(folder: Path) -> bool:
    """Whether a folder has what belongs to a SavedModel, and not the model."""
    of_one = (folder / FINGERPRINT).is_file() or (folder / f"{VARIABLES}.index").is_file()
    return of_one and not _is_saved_model(folder) and not (folder / PARTITIONS_FILE).is_file()


def _is_model(path: str) -> bool:
    try:
        io.check_member(path)
        found = detect(path, unpacks=False)
        return found.kind.model is not None or found.kind is FileKind.PARTITIONS
    except GraphmillError:
        return False


def _file(path: str, shown: str, is_given: bool, options: Options, config: Config) -> Iterator[Finding]:
    def finding(problem: Problem, tags: str = "") -> Iterator[Finding]:
        severity = config.severity(problem.rule, shown)
        if severity is not None:
            fix = problem.fix or registry.get(problem.rule).fix
            yield Finding(problem.rule, severity, problem.message, shown, problem.node, problem.function, tags, fix)

    try:
        if not is_given:
            io.check_member(path)
        found = detect(path, unpacks=is_given)
        is_partitions = found.kind is FileKind.PARTITIONS
        if found.kind.model is None and not is_partitions and not is_given and _is_other(found, path):
            return
        length = len(found.data) if found.data is not None else _length(found.path)
        if found.kind.model is not None and length > io.PROTO_LIMIT:
            message = f"the file has {length:,} bytes; a message may have {io.PROTO_LIMIT:,}"
            yield from finding(Problem("size/limit", message))
            return
        if found.kind.model is None and not is_partitions:
            raise explain(found, shown)
        kind, message = _content(found, path, shown)
    except (FormatError, GraphmillError) as error:
        if is_given or Path(path).suffix in _MODEL_SUFFIXES:
            yield from finding(Problem("file/unreadable", error.message))
        return
    metas = _meta_graphs(kind, message)
    if not metas:
        yield from finding(Problem("file/no-graph", "the SavedModel holds no graph"))
    tags = [",".join(sorted(meta.meta_info_def.tags)) for meta in metas]
    for same, count in Counter(tags).items():
        if count > 1:
            yield from finding(Problem("file/same-tags", f"{count} graphs have the tags '{same}'"))
    folder = (
        found.folder
        or (Path(found.path) if is_partitions else None)
        or (Path(path).parent if kind is ModelKind.SAVED_MODEL and path != io.STDIO else None)
    )
    for meta, own_tags in zip(metas, tags, strict=True):
        place = (own_tags or "(no tags)") if len(metas) > 1 else ""
        graph = message if kind is ModelKind.GRAPH_DEF else _take_graph(meta)
        subject = Subject(
            meta, graph, file=shown, kind=kind, options=options, tags=own_tags, folder=folder, length=length
        )
        for problem in _problems(subject, shown, config):
            yield from finding(problem, place)


def _content(found: Detected, path: str, shown: str) -> tuple[ModelKind, Any]:
    """The graph of a GraphDef in which nothing is missing or twice, or the message to judge."""
    if found.kind is FileKind.GRAPH_DEF and found.encoding is Encoding.BINARY:
        data = found.data if found.data is not None else io.read_bytes(found.path, is_message=True)
        io.check_size(len(data), shown)
        with suppress(GraphmillError):  # the message is looked at, then
            graph = graphdef.from_bytes(data)
            if graph is not None:
                return ModelKind.GRAPH_DEF, graph
        found = replace(found, data=data)
    return _message_of(found, path, shown)


def _message_of(found: Detected, path: str, shown: str) -> tuple[ModelKind, Any]:
    """The message to judge; of partitions, that of the graph that they add up to."""
    if found.kind is FileKind.PARTITIONS:
        model = model_of_partitions(found, path)
        return model.kind, to_message(model, model.kind)
    kind, message = read_message(found, shown)
    if kind is not ModelKind.META_GRAPH or STREAM_KEY not in message.collection_def:
        return kind, message
    from toolkit.formats.folders.partition_reading import from_stream

    meta, _, was = from_stream(metagraph.from_proto(message))
    if was is ModelKind.GRAPH_DEF:
        return was, graphdef.to_proto(meta.graph)
    return kind, metagraph.to_proto(meta)


def _problems(subject: Subject, shown: str, config: Config) -> Iterator[Problem]:
    """All problems of one MetaGraph, by family; those met while building graphs stand with their own family."""
    early: dict[str, list[Problem]] = {}
    for problem in subject.problems:
        early.setdefault(problem.rule.partition("/")[0], []).append(problem)
    for name, check in registry.checks():
        yield from early.get(name, ())
        if config.is_on(name, shown):
            yield from check(subject)


def _is_other(found: Detected, path: str) -> bool:
    """Whether a file below a folder is none of ours."""
    return found.kind is not FileKind.OTHER or Path(path).suffix not in _MODEL_SUFFIXES


def _length(path: str) -> int:
    file = Path(path)
    return file.stat().st_size if file.is_file() else 0


def _meta_graphs(kind: ModelKind, message: Any) -> list[MetaGraphDef]:
    if kind is ModelKind.SAVED_MODEL:
        return list(message.meta_graphs)
    if kind is ModelKind.META_GRAPH:
        return [message]
    return [MetaGraphDef()]


def _take_graph(meta: MetaGraphDef) -> GraphDef:
    """The graph out of a MetaGraphDef, without copying it: a message stays alive when its field is cleared."""
    graph = meta.graph_def
    meta.ClearField("graph_def")
    return graph
