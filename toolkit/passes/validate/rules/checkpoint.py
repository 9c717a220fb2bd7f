"""The graph against the checkpoint it is restored from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import GraphmillError, NotFoundError
from toolkit.formats.inspection.detect import Encoding, ModelKind
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model

_SAVED_VARIABLES = "variables/variables"


@family(
    "checkpoint",
    Rule("unreadable", Severity.ERROR, "the checkpoint cannot be read", "give a prefix that exists, or save again"),
    Rule("missing", Severity.ERROR, "the checkpoint lacks a tensor that the graph reads", "save it again, or rename"),
    Rule("dtype", Severity.ERROR, "a tensor of another type than the variable", "convert the checkpoint"),
    Rule("shape", Severity.ERROR, "a tensor of another shape than the variable", "take the checkpoint of this graph"),
    Rule("extra", Severity.NOTE, "a tensor that the graph does not read", "nothing, if it belongs to training"),
)
def checkpoint(subject: Subject) -> Iterator[Problem]:
    prefix = subject.options.checkpoint or _own(subject)
    if not prefix and (subject.kind is not ModelKind.SAVED_MODEL or subject.folder is None):
        return
    from toolkit.formats.bundle import open_checkpoint
    from toolkit.formats.models.checkpoint_graph import compare_with_graph, expected_tensors
    from toolkit.formats.models.model import Model

    model = Model(subject.kind, Encoding.BINARY, subject.file, [subject.meta])
    if not prefix:
        yield from _without_variables(model)
        return
    try:
        source = open_checkpoint(prefix)
        source.check_files()
    except (GraphmillError, OSError) as error:
        message = error.message if isinstance(error, GraphmillError) else str(error.strerror)
        yield Problem("checkpoint/unreadable", f"{prefix}: {message}")
        return
    try:
        nodes = {item.name: item.node for item in expected_tensors(model)}
        for finding in compare_with_graph(source, model):
            name = finding.tensor
            yield Problem(f"checkpoint/{finding.kind}", f"tensor '{name}': {finding.message}", nodes.get(name))
    except NotFoundError:
        if subject.options.checkpoint:
            yield Problem("checkpoint/extra", f"{prefix} was given, but the graph has no variables")
    except (GraphmillError, IndexError) as error:
        message = error.message if isinstance(error, GraphmillError) else "the restore nodes lack inputs"
        yield Problem("checkpoint/unreadable", f"{prefix} cannot be compared with the graph: {message}")


def _without_variables(model: Model) -> Iterator[Problem]:
    """A SavedModel's folder that lost the variables which its graph restores."""
    from toolkit.formats.models.checkpoint_graph import restores

    with suppress(GraphmillError, IndexError):  # a graph that other rules find broken
        if restores(model):
            message = f"the graph restores variables, but '{_SAVED_VARIABLES}.index' is missing in the folder"
            yield Problem("checkpoint/unreadable", message, fix="copy or export the whole folder again")


def _own(subject: Subject) -> str:
    """The checkpoint inside a SavedModel folder; "" when there is none, or the graph restores nothing from it."""
    if subject.kind is not ModelKind.SAVED_MODEL or subject.folder is None:
        return ""
    prefix = subject.folder / _SAVED_VARIABLES
    return str(prefix) if Path(f"{prefix}.index").exists() else ""
