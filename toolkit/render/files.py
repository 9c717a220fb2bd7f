"""From files to graphs to draw, and from the name of a picture to its format."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from toolkit.errors import FormatError, UsageError, did_you_mean
from toolkit.formats.detect import PARTITIONS_FILE
from toolkit.formats.model import read_model
from toolkit.graph.graph import Graph
from toolkit.render.picture import FORMATS


def picture_format(out: str) -> str:
    """The format that a file's suffix names; standard output gets DOT text.

    Raises:
        UsageError: there is no output, or its suffix is no format.
    """
    if not out:
        raise UsageError(f"say where to draw: -o FILE, with one of the suffixes .{', .'.join(FORMATS)}")
    if out == "-":
        return "dot"
    suffix = os.path.splitext(out)[1].lower().removeprefix(".")
    suffix = {"gv": "dot"}.get(suffix, suffix)
    if suffix not in FORMATS:
        hint = did_you_mean(suffix, FORMATS)
        raise UsageError(
            f"'{out}': no picture format has the suffix '.{suffix}'; expected .{', .'.join(FORMATS)}{hint}"
        )
    return suffix


def read_graphs(source: str, tags: Sequence[str] | None = None) -> tuple[str, Graph | Mapping[str, Graph]]:
    """A title and the graph of a model file, or the graphs of a partition folder by name.

    Raises:
        GraphmillError: the file cannot be read, or it holds no graph.
    """
    manifest = os.path.join(source, PARTITIONS_FILE)
    if os.path.isfile(manifest):
        return os.path.basename(os.path.abspath(source)), read_partitions(source, manifest)
    title = "graph" if source == "-" else os.path.basename(os.path.abspath(source))
    return title, read_model(source, tags=tags).graph


def read_partitions(folder: str, manifest: str) -> dict[str, Graph]:
    """The graphs of a partition folder, by device or task.

    Raises:
        FormatError: the manifest is not the one that `graphmill partition` writes.
    """
    import yaml

    try:
        with open(manifest, encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FormatError(f"is not YAML: {' '.join(str(error).split())}", file=manifest) from None
    entries = content.get("partitions") if isinstance(content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(entries, list) or not entries:
        raise FormatError("has no list 'partitions'; expected a folder that graphmill partition wrote", file=manifest)
    graphs: dict[str, Graph] = {}
    for entry in entries:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):  # pyright: ignore[reportUnknownMemberType]
            raise FormatError("an entry of 'partitions' has no 'file'", file=manifest)
        file_name: str = entry["file"]
        name = str(entry.get("device") or entry.get("task") or os.path.splitext(file_name)[0])  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        graphs[name] = read_model(os.path.join(folder, file_name)).graph
    return graphs
