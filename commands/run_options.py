"""The options of `graphmill run` for Typer, made of what `toolkit.runtime.jobs.options` declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated

import typer

from toolkit.runtime.jobs.options import on_command_line


def with_run_options(after: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `run`, behind its parameter `after`: it takes their values as keywords."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        own = [each for each in own if each.kind is not inspect.Parameter.VAR_KEYWORD]
        place = [each.name for each in own].index(after) + 1
        parameters = [*own[:place], *_parameters(), *own[place:]]
        # Typer reads both
        vars(command)["__signature__"] = inspect.Signature(parameters)
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return add


def _parameters() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=default,
            annotation=Annotated[
                kind, typer.Option(option.flag, metavar=option.metavar, help=option.help, min=option.least)
            ],
        )
        for name, option, kind, default in on_command_line()
    ]
