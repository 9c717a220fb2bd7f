"""Ops that reach out of the model, function bodies included: running a model runs them with your rights.

Which ops those are says `toolkit.policy.outside`, the table that `run` decides by. What a model may do by default, read
the files of its own folder, is a note; everything else is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.errors import GraphmillError, source_name
from toolkit.formats.inspection.detect import STDIN_NAME
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.origins import Origins, is_inside
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject
from toolkit.policy import outside
from toolkit.policy.access import Access, Wish
from toolkit.policy.check import wish
from toolkit.policy.model_files import check_files
from toolkit.policy.outside import MEANING, Reach, Row
from toolkit.policy.rules import Policy

_RULES = {
    Reach.READ: "file-read", Reach.LIST: "file-read", Reach.WRITE: "file-write", Reach.DELETE: "file-write",
    Reach.NETWORK: "network", Reach.PYTHON: "python", Reach.NATIVE: "native-code", Reach.PROCESS: "process",
    Reach.EXIT: "process",
}  # fmt: skip
_SPECIAL = {"output-file": "prints into a file", "debug-url": "sends its input away"}
_GRAVEST = [
    "native-code", "python", "process", "network", "debug-url", "file-write", "output-file", "checkpoint-io",
    "file-read", "own-files",
]  # fmt: skip
#: what a saver is made of: where it says nothing of the path, whoever runs it does
_CHECKPOINTS = frozenset({
    "Save", "SaveV2", "SaveSlices", "Restore", "RestoreV2", "RestoreSlice", "MergeV2Checkpoints",
    "LoadAndRemapMatrix", "DTensorRestoreV2",
})  # fmt: skip
_SANDBOX = "remove the op; run allows it only where it is told to (graphmill help trust)"


@family(
    "security",
    Rule("file-read", Severity.ERROR, "an op that reads files or lists directories", _SANDBOX),
    Rule("file-write", Severity.ERROR, "an op that writes or deletes files", _SANDBOX),
    Rule("python", Severity.ERROR, "an op that calls Python code", "replace it with ops"),
    Rule("network", Severity.ERROR, "an op that opens network connections", _SANDBOX),
    Rule("native-code", Severity.ERROR, "an op that runs code outside the graph", "find out what it calls"),
    Rule("process", Severity.ERROR, "an op that ends the process or acts on others", "remove the op"),
    Rule("checkpoint-io", Severity.ERROR, "an op that reads or writes checkpoint files outside of the model's folder",
         "make the path relative, or an input"),
    Rule("output-file", Severity.ERROR, "an op that prints into a file", "let it print to stderr"),
    Rule("debug-url", Severity.ERROR, "a debugging op that sends tensors away", "remove the debugging ops"),
    Rule("asset", Severity.ERROR, "an asset, or a file of variables, that is not among the model's own files",
         "put the file itself there"),
    Rule("own-files", Severity.NOTE, "an op that touches files of the model's own folder, or that its user names",
         "nothing; run allows it"),
)  # fmt: skip
def security(subject: Subject) -> Iterator[Problem]:
    yield from _assets(subject)
    yield from _unbuilt(subject)
    origins = Origins(subject)
    access = _access(subject)
    for body, node, rows in _reaching(subject):
        told: dict[tuple[str, str], list[str]] = {}  # (rule, paths): what it does there
        for row in rows:
            paths = origins.paths(body, node, row)
            if paths is not None:
                paths = list(dict.fromkeys(path for path in paths if row.applies(path)))
            counts = paths is None or paths or not (row.attr or row.input is not None)
            if row.through or row.reach is Reach.OUTPUT or not counts:
                continue
            named = node.op in _CHECKPOINTS and (
                origins.is_given(body, node, row) if paths is None else all(map(is_inside, paths))
            )
            if named and subject.meta.saver is not None:
                continue  # the saver's own
            rule = _RULES[row.reach]
            if node.op == "PrintV2":
                rule = "output-file"
            elif row.attr == "debug_urls":
                rule = "debug-url"
            elif named or (
                row.reach.on_paths and paths and _allowed(access, [wish(row, path) for path in paths], node.op)
            ):
                rule = "own-files"
            elif node.op in _CHECKPOINTS:
                rule = "checkpoint-io"
            shown = ", ".join(repr(source_name(path)) for path in (paths or [])[:3])
            told.setdefault((rule, shown), []).append(_SPECIAL.get(rule) or MEANING[row.reach])
        if told:  # one finding a node, under its gravest rule
            parts = [
                f"{' and '.join(dict.fromkeys(doing))}{shown and ': '}{shown}" for (_, shown), doing in told.items()
            ]
            rule = min((rule for rule, _ in told), key=_GRAVEST.index)
            yield Problem(f"security/{rule}", f"{node.op} {'; '.join(parts)}", node.name, body.function)


def _reaching(subject: Subject) -> Iterator[tuple[Body, Node, Sequence[Row]]]:
    """The nodes that may reach out of the model, and in which ways."""
    library = subject.graph.library

    def rows(node: Node) -> Sequence[Row]:
        return () if node.op in library else outside.rows(node.op)

    for body in subject.bodies:
        for node in body.candidates(rows):
            if found := rows(node):
                yield body, node, found


def _assets(subject: Subject) -> Iterator[Problem]:
    access = _access(subject)
    if subject.folder is not None:
        try:
            check_files(access, subject.folder, ())
        except GraphmillError as error:
            yield Problem("security/asset", error.message)
    for asset in subject.assets:
        tensor = asset.tensor_info.name.partition(":")[0]
        if subject.folder is None:
            if not is_inside(asset.filename):
                told = f"the asset '{asset.filename}' is outside of the model's assets"
                yield Problem("security/asset", told, tensor)
            continue
        try:
            check_files(access, subject.folder, [asset.filename], variables=False)
        except GraphmillError as error:
            yield Problem("security/asset", error.message, tensor)


def _access(subject: Subject) -> Access:
    """What `run` would let the model do if it were told nothing."""
    return Access(Policy.of_model(subject.folder or ("-" if subject.file == STDIN_NAME else subject.file)))


def _allowed(access: Access, wishes: list[Wish], op: str) -> bool:
    try:
        access.judge(wishes, None, op)
    except GraphmillError:
        return False
    return True


def _unbuilt(subject: Subject) -> Iterator[Problem]:
    """Ops in functions whose bodies could not be built, because they are broken or nothing says their types."""
    library = subject.graph.library
    built = {body.function for body in subject.bodies}
    for name in library:
        for node in library.function(name).node_def if name not in built else ():
            for rule in dict.fromkeys(_RULES[row.reach] for row in outside.rows(node.op) if row.reach in _RULES):
                yield Problem(f"security/{rule}", f"{node.op} reaches out of the process", node.name, name)
