"""From files to graphs to draw, and from the name of a picture to its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    suffix = Path(out).suffix.lower().removeprefix(".")
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
    manifest = Path(source, PARTITIONS_FILE)
    if manifest.is_file():
        return Path(source).resolve().name, read_partitions(manifest)
    title = "graph" if source == "-" else Path(source).resolve().name
    return title, read_model(source, tags=tags).graph


def read_partitions(manifest: Path) -> dict[str, Graph]:
    """The graphs of a partition folder, by device or task, from its partitions.yaml.

    Raises:
        FormatError: the manifest is not the one that `graphmill partition` writes.
    """
    import yaml

    try:
        content: Any = yaml.safe_load(manifest.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise FormatError(f"is not YAML: {' '.join(str(error).split())}", file=str(manifest)) from None
    entries: Any = content.get("partitions") if isinstance(content, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(entries, list) or not entries:
        raise FormatError(
            "has no list 'partitions'; expected a folder that graphmill partition wrote", file=str(manifest)
        )
    graphs: dict[str, Graph] = {}
    entry: Any
    for entry in entries:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):  # pyright: ignore[reportUnknownMemberType]
            raise FormatError("an entry of 'partitions' has no 'file'", file=str(manifest))
        fields: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
        file = manifest.parent / fields["file"]
        name = fields.get("device") or fields.get("task") or file.stem
        graphs[str(name)] = read_model(file).graph
    return graphs
