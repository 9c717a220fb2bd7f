"""All kinds of edits, and lists of edits in YAML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from toolkit.errors import FormatError, GraphmillError, did_you_mean, source_name
from toolkit.formats import io
from toolkit.formats.settings import tree
from toolkit.passes.edit import (
    collections,
    edges,
    functions,
    layout,
    merge,
    names,
    nodes,
    properties,
    shapes,
    signatures,
)
from toolkit.passes.edit import values as constants
from toolkit.passes.edit.base import TEXT, Edit, arguments

#: in the order in which they are listed
_ALL: tuple[type[Edit], ...] = (
    names.RenameNodes, names.RenameScope,
    properties.RenameOp, properties.SetAttr, properties.RemoveAttr, properties.RenameAttr,
    properties.SetDevice, properties.ClearDevices,
    shapes.SetShape, shapes.SetBatchSize, layout.SetInputLayout, constants.SetConstant,
    nodes.AddNode, nodes.InsertAfter, nodes.InsertBefore, nodes.ReplaceNode, nodes.RemoveNodes,
    edges.Reconnect, edges.Redirect, edges.AddControl, edges.RemoveControl,
    merge.Merge, merge.Connect,
    signatures.AddSignature, signatures.RenameSignature, signatures.RemoveSignature, signatures.RenameSignatureKey,
    signatures.SetSignatureMethod, signatures.SetDefaultSignature,
    collections.AddToCollection, collections.RemoveFromCollection,
    functions.RenameFunction, functions.RemoveFunction,
)  # fmt: skip


@cache
def kinds() -> dict[str, type[Edit]]:
    """Name to kind of edit."""
    found: dict[str, type[Edit]] = {}
    for kind in _ALL:
        if found.setdefault(kind.name, kind) is not kind:
            raise ValueError(f"two kinds of edits are called '{kind.name}'")
    return found


@dataclass(frozen=True, slots=True)
class Step:
    """One edit of a list.

    Attributes:
        place: where it stands in a file, "edits.yaml:3:3"; "" for one of the command line.
        option: the option of the command line that it is, "--rename"; "".
    """

    edit: Edit
    place: str = ""
    option: str = ""

    def blame(self, error: GraphmillError) -> GraphmillError:
        """The error with where its edit stands."""
        if self.option:
            error.option = error.option or self.option
        elif self.place:
            # the file is the list of edits, whatever was read for it
            error.message = f"{error.file}: {error.message}" if error.file else error.message
            error.file = self.place
        return error


class EditsError(GraphmillError):
    """Mistakes in edits.

    Attributes:
        errors: all of them, in order; the message is the first one's.
    """

    def __init__(self, errors: Sequence[GraphmillError]):
        first = errors[0]
        super().__init__(first.message, file=first.file, node=first.node)
        self.option = first.option
        self.errors = list(errors)


def read_edits(source: str) -> list[Step]:
    """The edits of a YAML file, or of standard input ("-").

    Raises:
        EditsError: mistakes, each with line and column.
        GraphmillError: the file cannot be read.
    """
    try:
        text = io.read_bytes(source).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("not a list of edits: it is not UTF-8 text; edit takes a YAML file", file=source) from None
    return parse_edits(text, source_name(source))


def parse_edits(text: str, file: str) -> list[Step]:
    """The edits of a YAML text; see `read_edits`."""
    try:
        root = tree.parse(text, file, columns=True)
        items = root.items()
    except tree.SpecError as error:
        if error.message == "the spec is empty":
            error.message = "the list of edits is empty"
        raise EditsError([error]) from None
    steps: list[Step] = []
    errors: list[GraphmillError] = []
    for item in items:
        try:
            edit = _edit(item, errors)
        except tree.SpecError as error:
            errors.append(error)
            continue
        if edit is not None:
            steps.append(Step(edit, item.place))
    if errors:
        raise EditsError(errors)
    if not steps:
        raise EditsError([root.error("the list of edits is empty")])
    return steps


def _edit(item: tree.YamlItem, errors: list[GraphmillError]) -> Edit | None:
    """One edit of the list; its mistakes are added to `errors`."""
    if isinstance(item.value, str) and item.value in kinds():  # `- clear_devices`
        return make(item.value, item, None, errors)
    if not isinstance(item.value, dict):
        raise tree.SpecError(_no_kind(item.describe().strip("'")), file=item.place)
    section = item.section()
    if len(section) != 1:
        found = ", ".join(f"'{key}'" for key, _ in section) or "none"
        raise item.error(f"expected one key, the kind of edit (rename_nodes: {{nodes: a, to: b}}); found {found}")
    [(name, value)] = list(section)
    if name not in kinds():
        raise tree.SpecError(_no_kind(name), file=value.place)
    return make(name, value, value, errors)


def _no_kind(name: str) -> str:
    from toolkit.passes.edit.options import OPTIONS  # the command line's, whose names some take for kinds

    option = "--" + name.replace("_", "-")
    if option in OPTIONS:
        return f"there is no kind of edit '{name}'; what {option} makes is '{OPTIONS[option].kind}'"
    return f"there is no kind of edit '{name}'{did_you_mean(name, kinds())} (graphmill edit --kinds lists them)"


def make(name: str, item: tree.YamlItem, value: tree.YamlItem | None, errors: list[GraphmillError]) -> Edit | None:
    """The edit of a kind, from its arguments; None after a mistake, which is added to `errors`."""
    kind = kinds()[name]
    known = arguments(kind)
    given: dict[str, Any] = {}
    before = len(errors)
    if value is not None and value.value is not None:
        for key, found in value.section():
            if key not in known:
                errors.append(
                    tree.SpecError(
                        f"{item.where}: unknown key '{key}'{did_you_mean(key, known)} (expected: {', '.join(known)})",
                        file=found.place,
                    )
                )
                continue
            try:
                given[key] = known[key][0].read(found)
            except tree.SpecError as error:
                errors.append(error)
            except GraphmillError as error:
                errors.append(found.error(error.message))
    missing = [key for key, (_, _, required) in known.items() if required and key not in (_keys(value))]
    if missing:
        listed = " and ".join(f"'{key}'" for key in missing)
        errors.append(item.error(f"{name} lacks {listed} ({'; '.join(known[key][1] for key in missing)})"))
    return None if len(errors) > before else kind(**given)


def _keys(value: tree.YamlItem | None) -> set[str]:
    return set(value.value) if value is not None and isinstance(value.value, dict) else set()  # type: ignore[arg-type]


def schema() -> dict[str, Any]:
    """The JSON Schema of a list of edits."""
    choices: list[dict[str, Any]] = []
    for name, kind in kinds().items():
        known = arguments(kind)
        properties_ = {key: {**how.schema, "description": text} for key, (how, text, _) in known.items()}
        required = [key for key, (_, _, needed) in known.items() if needed]
        body: dict[str, Any] = {"type": "object", "properties": properties_, "additionalProperties": False}
        if required:
            body["required"] = required
        choices.append({
            "type": "object",
            "description": summary(kind),
            "properties": {name: body},
            "required": [name],
            "additionalProperties": False,
        })  # fmt: skip
    bare = [name for name, kind in kinds().items() if not any(needed for _, _, needed in arguments(kind).values())]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Edits of graphmill edit",
        "type": "array",
        "minItems": 1,
        "items": {"oneOf": [*choices, {"enum": bare}]},
    }


def summary(kind: type[Edit]) -> str:
    """What a kind of edit does, in one line."""
    return (kind.__doc__ or "").strip().splitlines()[0]


def describe() -> str:
    """All kinds with their arguments, for people."""
    lines: list[str] = []
    for name, kind in kinds().items():
        lines += [name, f"    {summary(kind)}"]
        for key, (how, text, required) in arguments(kind).items():
            written = "" if how is TEXT else f"; {how.shown}"
            line = f"    {key}{'' if required else ' (may be left out)'}: {text}{written}"
            lines.append(textwrap.fill(line, 110, subsequent_indent=" " * 8))
        lines.append("")
    return "\n".join(lines)
