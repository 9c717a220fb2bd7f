"""Option groups that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from toolkit.printable import json_printable

In = Annotated[str, typer.Argument(metavar="[IN]", help="File to read; '-' is standard input.", show_default=False)]
Out = Annotated[
    str,
    typer.Option("-o", "--output", metavar="FILE", help="File to write; '-' is standard output.", show_default=False),
]


def _check_kind(kind: str | None) -> str | None:
    if kind:
        from toolkit.formats.models.model import parse_kind

        parse_kind(kind)
    return kind


def _check_allowed(allow: list[str] | None) -> list[str] | None:
    if allow:
        from toolkit.policy.rules import Policy

        Policy().allowing(*allow)
    return allow


#: of commands that copy the files of a SavedModel
Allow = Annotated[
    list[str] | None,
    typer.Option(
        metavar="read=DIR",
        callback=_check_allowed,
        help="Copy what links in a SavedModel lead to there. Repeatable.",
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="KIND",
        callback=_check_kind,
        help="What to write: graphdef, metagraph or savedmodel, with .text or .json for those formats "
        "(default: what was read, or what the suffix says).",
    ),
]
Tags = Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")]
Fetches = Annotated[
    list[str] | None,
    typer.Option(metavar="T", help="Tensor to keep: NODE or NODE:INDEX. Repeatable, or a comma-separated list."),
]
Feeds = Annotated[
    list[str] | None,
    typer.Option(metavar="T", help="Tensor that becomes an input. Repeatable, or a comma-separated list."),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(metavar="OP", help="Operation to keep. Repeatable, or a comma-separated list."),
]
Report = Annotated[str | None, typer.Option(metavar="FILE.json", help="Write what was done as JSON.")]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


def plugin_option() -> Any:
    """--plugin, which `commands.groups` adds to every command that reads or makes graphs."""
    from typer.core import TyperOption

    return TyperOption(
        param_decls=["--plugin"],
        metavar="FILE.py",
        multiple=True,
        expose_value=False,
        callback=_load_plugins,
        help="Python file (or installed plugin's name) with custom ops: OpDefs, kernels, gradients; a folder: those "
        "of its files that a model asks for. Repeatable.",
    )


def _load_plugins(context: Any, parameter: Any, names: tuple[str, ...]) -> None:
    if names and not context.resilient_parsing:
        load_plugins(names)


def load_plugins(names: Sequence[str]) -> None:
    """Load files and installed plugins, and allow folders."""
    from toolkit.graph import plugins

    for name in names:
        if Path(name).is_dir() and not plugins.is_installed(name):
            plugins.allow(name)
        else:
            plugins.load(name)


def command_app(**settings: Any) -> typer.Typer:
    """The Typer application of one command module, with the project's help conventions."""
    return typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def print_json(report: Any) -> None:
    """Print a report as JSON on standard output."""
    print(json_printable(json.dumps(report, indent=2, ensure_ascii=False)))
