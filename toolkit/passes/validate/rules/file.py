"""Whether a file can be read at all. The engine reports what it cannot read; here is what it could."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from toolkit.errors import FormatError
from toolkit.formats.models.savedmodel import asset_path
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject


@family(
    "file",
    Rule("unreadable", Severity.ERROR, "the file is damaged or of another kind", "write or download it again"),
    Rule("no-graph", Severity.ERROR, "a SavedModel without any graph", "export the model again"),
    Rule("same-tags", Severity.ERROR, "two graphs of a SavedModel have the same tags", "give each graph its own tags"),
    Rule("no-asset", Severity.ERROR, "an asset that the folder does not have", "copy or export the whole folder again"),
    Rule("empty", Severity.WARNING, "a graph without nodes", "check what wrote it"),
)
def file(subject: Subject) -> Iterator[Problem]:
    if not len(subject.graph) and not len(subject.graph.library):
        yield Problem("file/empty", "the graph has no nodes and no functions")
    if subject.folder is None:
        return
    for asset in subject.assets:
        with suppress(FormatError):  # no name of a file, which security/asset finds
            if fault := _fault(asset_path(subject.folder, asset.filename)):
                tensor = asset.tensor_info.name.partition(":")[0]
                yield Problem("file/no-asset", f"the asset '{asset.filename}' {fault}", tensor)


def _fault(asset: Path) -> str:
    try:
        regular = stat.S_ISREG(asset.stat().st_mode)
    except FileNotFoundError:
        return "is missing in the folder"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return "" if regular else "is not a regular file"
