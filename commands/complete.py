"""What the Tab key offers: names out of the file on the command line, queries, rules, formats.

One table by option; `commands/groups.py` attaches it to every command. Offers come in the steps of name scopes, as
files do in the steps of folders. Whatever goes wrong here must not disturb the prompt: there is then no offer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from commands import shell

if TYPE_CHECKING:
    from toolkit.formats.models.names import Names

#: parameters of commands that name the file whose names are wanted
_SOURCES = ("source", "file", "paths", "old", "graph", "prefix", "path")
#: more candidates than this are offered scope by scope
_FEW = 30

Offer = Callable[["Names", str], Iterable[str]]


def completer(parameter: Any) -> Callable[[Any, Any, str], list[str]] | None:
    """The function that completes a parameter's values, or None where files or nothing should be offered."""
    known = next((option for option in parameter.opts if option in _OFFERS or option in _CHOICES), None)
    if known is None:
        return None

    def complete(ctx: Any, param: Any, incomplete: str) -> list[str]:
        if not shell.can_go_on(incomplete):
            return []
        try:
            if known in _CHOICES:
                return _starting(_CHOICES[known](), incomplete)
            return list(_OFFERS[known](_names(ctx), incomplete))
        except Exception:  # a traceback would be printed into the line that is being typed
            return []

    return complete


def _starting(values: Iterable[str], start: str) -> list[str]:
    return [value for value in values if value.startswith(start)]


def _names(ctx: Any) -> Names:
    """The names in the file that the command line has so far, those that can be offered."""
    from toolkit.formats.models.names import Names

    found = _all_names(ctx)
    nodes = {name: op for name, op in found.nodes.items() if shell.is_plain(name) and shell.is_plain(op)}
    return Names(nodes, shell.plain(found.signatures), shell.plain(found.tags))


def _all_names(ctx: Any) -> Names:
    from toolkit.formats.models.names import Names, names_in

    # an option that still lacks its value ends the parsing, and leaves the arguments before it in ctx.args
    given: list[Any] = [*ctx.args, *(ctx.params.get(key) for key in _SOURCES)]
    for value in given:
        first = next(iter(value), None) if isinstance(value, (list, tuple)) else value  # type: ignore[arg-type]
        if isinstance(first, str) and first != "-":
            return names_in(first)
    return Names()


# -- node names ------------------------------------------------------------------------------------------


def by_scope(names: Iterable[str], start: str) -> list[str]:
    """Names that begin so; where they are many, only down to the next scope in which they part."""
    found = _starting(names, start)
    prefix = start
    while len(found) > _FEW:
        steps = sorted({_step(name, len(prefix)) for name in found})
        if len(steps) > 1:
            return steps
        prefix = steps[0]  # everything is in this one scope: go into it
    return sorted(found)


def _step(name: str, begin: int) -> str:
    """A name up to its next slash."""
    end = name.find("/", begin)
    return name if end < 0 else name[: end + 1]


def _nodes(names: Names, start: str) -> list[str]:
    return by_scope(names.nodes, start)


def _node_list(names: Names, start: str) -> list[str]:
    """The last one of names with commas between."""
    done, comma, last = start.rpartition(",")
    return [done + comma + name for name in by_scope(names.nodes, last)]


def _inputs(names: Names, start: str) -> list[str]:
    """What is fed most often first: placeholders, then any node."""
    done, comma, last = start.rpartition(",")
    if "=" in last:
        return []  # the shell completes the file
    inputs = [name for name, op in names.nodes.items() if op.startswith("Placeholder")]
    return [done + comma + name for name in by_scope(inputs, last) or by_scope(names.nodes, last)]


def _targets(names: Names, start: str) -> list[str]:
    done, comma, last = start.rpartition(",")
    targets = [name for name, op in names.nodes.items() if op == "NoOp"]
    return [done + comma + name for name in by_scope(targets, last) or by_scope(names.nodes, last)]


def _node_before_equals(names: Names, start: str) -> list[str]:
    return [] if "=" in start else by_scope(names.nodes, start)


def _ops_there(names: Names, start: str) -> list[str]:
    return [] if "=" in start else _starting(sorted(set(names.nodes.values())), start)


def _signatures(names: Names, start: str) -> list[str]:
    return _starting(names.signatures, start)


def _variables(names: Names) -> list[str]:
    from toolkit.graph.summary import VARIABLES

    return [name for name, op in names.nodes.items() if op in VARIABLES]


def _constants(names: Names) -> list[str]:
    return [name for name, op in names.nodes.items() if op == "Const"]


def _scopes_and_nodes(names: Names, start: str) -> list[str]:
    return by_scope([*_scopes(names), *names.nodes], start)


def _scopes(names: Names) -> list[str]:
    found: set[str] = set()
    for name in names.nodes:
        scope = name.rpartition("/")[0]
        while scope and scope not in found:
            found.add(scope)
            scope = scope.rpartition("/")[0]
    return sorted(found)


# -- queries ---------------------------------------------------------------------------------------------

_COMPARISON = re.compile(r"([\w.-]+)\s*(?:=|!=|~|!~|in\s*\((?:[^()]*,)?)\s*$")


def query(names: Names, text: str) -> list[str]:
    """The query with its last word completed."""
    from toolkit.graph.query import FIELDS

    match = re.search(r"[^\s=~<>!(),'\"]*$", text)
    last = match[0] if match else ""
    before = text[: len(text) - len(last)]
    words = before.replace("(", " ( ").split()
    word = words[-1] if words else ""
    comparison = _COMPARISON.search(before)
    if comparison is not None:
        field = comparison[1]
        values = _VALUES[field](names) if field in _VALUES else []
        options = by_scope(values, last)
    elif word in ("before", "after"):
        options = by_scope(names.nodes, last)
    elif word == "under":
        options = by_scope(_scopes(names), last)
    elif word in ("", "and", "or", "not", "("):
        options = _starting([*FIELDS, "attr.", "under", "before", "after", "has", "not"], last)
    elif word in FIELDS or word.startswith("attr."):
        options = _starting(["=", "!=", "~", "!~", "<", "<=", ">", ">=", "in"], last)
    else:
        options = _starting(["and", "or"], last)
    return [before + option for option in options]


_VALUES: dict[str, Callable[[Names], list[str]]] = {
    "op": lambda names: sorted(set(names.nodes.values())),
    "name": lambda names: list(names.nodes),
    "scope": _scopes,
}


# -- rules and other tables ------------------------------------------------------------------------------


def _rules(names: Names, start: str) -> list[str]:
    from toolkit.passes.validate import registry

    rule, equals, level = start.partition("=")
    if equals:
        return [f"{rule}={found}" for found in _starting(("off", "note", "warning", "error"), level)]
    return _starting(
        [*(f"{name}=" for name in registry.FAMILIES), *(f"{name}=" for name in registry.all_rules())], rule
    )


def _formats() -> Iterable[str]:
    from toolkit.passes.validate.reports import FORMATS

    return FORMATS


def _kinds() -> list[str]:
    from toolkit.formats.inspection.detect import ModelKind

    return [kind.value + encoding for kind in ModelKind for encoding in ("", ".text", ".json")]


def _ignorable() -> Iterable[str]:
    from toolkit.passes.differences.attributes import IGNORABLE

    return IGNORABLE


def _dtypes() -> list[str]:
    return ["float16", "bfloat16", "float32", "float64"]


def _topics() -> list[str]:
    from commands.main import COMMANDS
    from commands.manual import TOPICS

    return [*TOPICS, *COMMANDS]


def _ops() -> Iterable[str]:
    from toolkit.graph import opdefs

    return opdefs.names()


def _strategies() -> Iterable[str]:
    from toolkit.passes.placement.strategies import strategy_names

    return strategy_names()


#: option or argument to the values it can have
_CHOICES: dict[str, Callable[[], Iterable[str]]] = {
    "topic": _topics,
    "name": _ops,
    "--format": _formats,
    "--fail-on": lambda: ("error", "warning", "note"),
    "--runs-on": lambda: ("CPU", "GPU"),
    "--device": lambda: ("CPU", "GPU"),
    "--devices": lambda: ("CPU=", "GPU="),
    "--as": _kinds,
    "--ignore": _ignorable,
    "--strategy": _strategies,
    "--balance": lambda: ("round-robin", "bytes"),
    "--by": lambda: ("task", "device"),
    "--color": lambda: ("op", "device", "partition", "dtype", "cost", "structure", "diff"),
    "--theme": lambda: ("light", "dark", "print", "colorblind"),
    "--auxiliary": lambda: ("aside", "inline", "hide"),
    "--direction": lambda: ("TB", "LR"),
    "--stats": lambda: ("json",),
    "--to": _dtypes,
}
#: option to what of the file's names completes it
_OFFERS: dict[str, Offer] = {
    "--fetch": _node_list,
    "--keep-variables": lambda names, start: by_scope(_variables(names), start),
    "--only": lambda names, start: by_scope(_variables(names) or _constants(names), start),
    "--feed": _inputs,
    "--target": _targets,
    "--init-op": _targets,
    "--why": _nodes,
    "--path": _nodes,
    "--focus": _scopes_and_nodes,
    "--highlight": _nodes,
    "--dump": _nodes,
    "--where": query,
    "--rule": _rules,
    "--signature": _signatures,
    **dict.fromkeys(
        (
            "--rename", "--set-attr", "--set-constant", "--set-shape", "--insert-after", "--insert-before", "--replace",
            "--reconnect", "--redirect", "--remove-control", "--add-control",
        ),
        _node_before_equals,
    ),
    **dict.fromkeys(("--remove", "--remove-cascade"), _node_list),
    "--rename-scope": lambda names, start: [] if "=" in start else by_scope(_scopes(names), start),
    "--rename-op": _ops_there,
    **dict.fromkeys(
        ("--rename-signature", "--remove-signature", "--default-signature", "--rename-signature-key"), _signatures
    ),
    "--tags": lambda names, start: _starting(names.tags, start),
}  # fmt: skip
