"""graphmill help: topics that are no command, everything about a command, and manual pages."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from commands.options import command_app

app = command_app()


@app.command()
def help(
    topic: Annotated[
        list[str] | None, typer.Argument(metavar="[TOPIC]", help="A topic, a command, or a rule.", show_default=False)
    ] = None,
    man: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write manual pages into DIR/man1 and DIR/man7 instead.")
    ] = None,
) -> None:
    """Explain a topic or a command; without one, list the topics.

    graphmill help queries

    graphmill help rules security

    graphmill help inspect    (its options, and the JSON it prints)
    """
    from commands import manual, messages

    if man is not None:
        count = manual.write_pages(man)
        messages.say("help", f"{count} manual pages in {man}")
        return
    sys.stdout.write(manual.text(topic or []))
