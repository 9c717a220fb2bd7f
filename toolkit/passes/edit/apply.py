"""Edits made one after the other on a copy, which is handed out only when all went well and it is sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.inspection.report import plural
from toolkit.graph.check import ERROR, check
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.tensorref import parse_input
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.reshape import REMARK, renew_remarks
from toolkit.passes.edit.table import EditsError, Step

#: arguments of edits that are names which the edits give
_NAMING = ("to", "called", "key", "prefix")
#: what a problem says of a shape that is written into a node
_REMARK = f"'{REMARK}' says"


@dataclass(slots=True)
class EditResult:
    """What edits made.

    Attributes:
        meta: the edited model; the one that came in is not changed.
        done: for each edit its kind and what it did.
        notes: what was dropped because what it named is gone.
        remaining: what was wrong with the graph before, and is still.
    """

    meta: MetaGraph
    done: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notes: list[str] = field(default_factory=list[str])
    remaining: list[str] = field(default_factory=list[str])


def apply_edits(meta: MetaGraph, steps: Sequence[Step], *, verify: bool = True) -> EditResult:
    """Make edits, in order.

    Raises:
        EditsError: edits that cannot be made, all of them, each with where it stands; what is wrong with the result
            that was not wrong before.
    """
    draft = Draft(meta)
    result = EditResult(meta)
    errors: list[GraphmillError] = []
    awaited: set[str] = set()  # names that edits would have given, had they been made
    for step in steps:
        try:
            did = step.edit.apply(draft)
        except GraphmillError as error:
            if not _speaks_of(step, awaited):
                errors.append(step.blame(error))
            awaited |= _given_names(step)
        else:
            result.done.append({"edit": step.edit.name, "at": step.place or step.option, "did": did})
    if errors:
        raise EditsError(errors)
    result.meta = draft.meta
    result.notes = draft.notes
    if verify:
        problems = list(_problems(result.meta, draft.bodies))
        if any(_REMARK in problem.message for problem in problems) and renew_remarks(draft.graph):
            problems = list(_problems(result.meta, draft.bodies))
        if problems:
            # by what is wrong, for nodes may have other names now
            old = Counter(problem.message for problem in _problems(meta, ()))
            made: list[GraphError] = []
            for problem in problems:
                if old[problem.message]:
                    old[problem.message] -= 1
                    result.remaining.append(str(problem))
                else:
                    made.append(problem)
            if made:
                more = f" (and {plural(len(made) - 1, 'problem')} more)" if len(made) > 1 else ""
                made[0].message = f"the edited graph is not sound: {made[0].message}{more}"
                raise EditsError(made[:1])
    return result


def _texts(value: Any) -> Iterable[str]:
    """The names in an argument of an edit."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[Any, Any]", value).items():
            yield from _texts(each)
    elif isinstance(value, tuple | list):
        for each in cast("Sequence[Any]", value):
            yield from _texts(each)


def _given_names(step: Step) -> set[str]:
    """The names that an edit gives to something."""
    found = {text for name in _NAMING for text in _texts(getattr(step.edit, name, None)) if text}
    return found | {f"{name}/" for name in found}


def _speaks_of(step: Step, names: set[str]) -> bool:
    """Whether an edit is about something of these names."""
    values = [getattr(step.edit, field.name) for field in fields(cast("Any", step.edit))]
    words = {text.partition(":")[0].lstrip("^") for value in values for text in _texts(value)}
    scopes = tuple(name for name in names if name.endswith("/"))
    return not words.isdisjoint(names) or any(word.startswith(scopes) for word in words if scopes)


def _problems(meta: MetaGraph, bodies: Iterable[str]) -> Iterable[GraphError]:
    graph = meta.graph
    for finding in check(graph):
        if finding.level == ERROR:
            yield finding.as_error()
    yield from _body_problems(graph, bodies)
    yield from _signature_problems(meta)
    for item in meta.shell.object_graph_def.nodes:
        if item.HasField("constant") and item.constant.operation not in graph:
            yield GraphError(f"the object graph needs the constant '{item.constant.operation}', which is gone")


def _body_problems(graph: Graph, bodies: Iterable[str]) -> Iterable[GraphError]:
    from toolkit.passes.validate.loose import function_problems

    for name in bodies:
        if name in graph.library:
            for problem in function_problems(name, graph.library.function(name), graph.library):
                yield GraphError(f"in the function '{name}': {problem.message}", node=problem.node)


def _signature_problems(meta: MetaGraph) -> Iterable[GraphError]:
    for key, signature in meta.signatures.items():
        for label, info in [*signature.inputs.items(), *signature.outputs.items()]:
            if ":" not in info.name:  # an operation, as of __saved_model_init_op, or a composite
                continue
            try:
                dtype = meta.graph.output(parse_input(info.name)).dtype.base
            except (GraphmillError, IndexError) as error:
                text = error.message if isinstance(error, GraphmillError) else f"there is no tensor '{info.name}'"
                yield GraphError(f"'{label}' of the signature '{key}': {text}")
                continue
            if dtype is not info.dtype.base:
                yield GraphError(
                    f"'{label}' of the signature '{key}' is {info.dtype}, and its tensor '{info.name}' is {dtype}"
                )
