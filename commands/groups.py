"""Groups of commands that are imported when they are called, and what all commands have in common.

A group is a table, so `--help` prints it without importing any command. Every command gets -q and -v, completion of
names (`commands/complete.py`), and metavars that say more than a type.
"""

from __future__ import annotations

import importlib
import math
import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import typer
import typer.core
from typer.main import get_command

from commands import messages
from commands.options import plugin_option

#: command name to (module, one line of help); the module has `app`
Table = Mapping[str, tuple[str, str]]
#: what stands for a value in the help of an option that has no metavar of its own, by the name of its type
_METAVARS = {"int": "N", "int range": "N", "float": "X", "float range": "X", "str": "TEXT"}
#: options that have a use for an empty text: the empty tag set; no place for variables
MAY_BE_EMPTY = frozenset({"--tags", "--variables"})


def lazy_group(table: Table, prefix: str = "", *, knows_ops: bool = True) -> type[typer.core.TyperGroup]:
    """A class of groups over a table of commands, for `typer.Typer(cls=...)`.

    Args:
        prefix: what stands before the command on the command line, for messages: "checkpoint ".
        knows_ops: whether the commands read or make graphs, and so take --plugin.
    """

    class LazyGroup(typer.core.TyperGroup):
        """Imports a command when it is called, not before."""

        def list_commands(self, ctx: Any) -> list[str]:
            return list(table)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            entry = table.get(cmd_name)
            return None if entry is None else _load(cmd_name, entry[0], knows_ops)

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            if args and not args[0].startswith("-") and args[0] not in table:
                from toolkit.errors import did_you_mean

                ctx.fail(f"there is no command '{prefix}{args[0]}'{did_you_mean(args[0], table)}")
            return super().resolve_command(ctx, args)

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as interrupt:
                # Typer would end with 130 and say nothing
                raise typer.Abort from interrupt

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in table.items()])

    return LazyGroup


def _load(name: str, module: str, knows_ops: bool) -> Any:
    command: Any = get_command(importlib.import_module(module).app)
    command.name = name
    if not isinstance(command, typer.core.TyperGroup):
        if knows_ops and name != "help":
            command.params.append(plugin_option())
        _finish(command)
    return command


def _finish(command: Any) -> None:
    """Give a command what all commands have."""
    from commands.complete import completer

    for parameter in command.params:
        is_value = parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False)
        if parameter.metavar is None and is_value:
            parameter.metavar = _METAVARS.get(parameter.type.name)
        if parameter.param_type_name == "option":
            parameter.callback = _named(parameter.opts[-1], parameter.callback, parameter.metavar or "")
        found = completer(parameter)
        if found is not None and parameter._custom_shell_complete is None:
            # Typer takes completions only where an option is declared; here one table serves all commands
            parameter._custom_shell_complete = found
    command.invoke = _blaming_options(command.invoke, command.params)
    taken = {text for parameter in command.params for text in parameter.opts}
    for names, level, text in (
        (["-q", "--quiet"], messages.QUIET, "Print nothing but results and errors."),
        (["-v", "--verbose"], messages.VERBOSE, "Say on standard error what is done and how long it takes."),
    ):
        if not taken & set(names):
            command.params.append(_level_option(names, level, text))


def _named(option: str, callback: Callable[..., Any] | None, expected: str) -> Callable[..., Any]:
    """What looks at the value of an option when it is read: an empty text is a value of few, and errors name it."""

    def look(ctx: Any, param: Any, value: Any) -> Any:
        from toolkit.errors import UsageError, about_option

        with about_option(option):
            if "" in _texts(value) and option not in MAY_BE_EMPTY and _is_given(ctx, param):
                raise UsageError(f"expected {expected}, found an empty text")
            if any(isinstance(each, float) and math.isnan(each) for each in _texts(value)):
                raise UsageError(f"expected {expected}, found nan, which is no number")
            return value if callback is None else callback(ctx, param, value)

    return look


def _is_given(ctx: Any, parameter: Any) -> bool:
    source = ctx.get_parameter_source(parameter.name)
    return source is not None and source.name == "COMMANDLINE" and not ctx.resilient_parsing


def _texts(value: Any) -> tuple[Any, ...]:
    return tuple(cast("Sequence[Any]", value)) if isinstance(value, tuple | list) else (value,)


def _blaming_options(invoke: Callable[[Any], Any], parameters: Sequence[Any]) -> Callable[[Any], Any]:
    """Run a command; an error in a file says which option named that file."""

    def run(ctx: Any) -> Any:
        from toolkit.errors import GraphmillError

        try:
            return invoke(ctx)
        except GraphmillError as error:
            if error.file and not error.option and not _named_by(ctx, parameters, "argument", error.file):
                error.option = next(iter(_named_by(ctx, parameters, "option", error.file)), None)
            raise

    return run


def _named_by(ctx: Any, parameters: Sequence[Any], kind: str, file: str) -> list[str]:
    """The options, or arguments, whose value is this file."""
    return [
        parameter.opts[-1]
        for parameter in parameters
        if parameter.param_type_name == kind
        and any(
            isinstance(text, str) and text and (text == file or os.path.abspath(text) == file)  # noqa: PTH100 -- a text
            for text in _texts(ctx.params.get(parameter.name))
        )
    ]


def _level_option(names: list[str], level: int, text: str) -> Any:
    def choose(ctx: Any, param: Any, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            messages.set_level(level)

    return typer.core.TyperOption(
        param_decls=names, is_flag=True, is_eager=True, expose_value=False, callback=choose, help=text
    )
