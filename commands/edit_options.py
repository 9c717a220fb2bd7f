"""Commands whose options are edits of a model."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import typer.core

from commands import messages

#: where the context of a command keeps its edits: option and value, in the order in which they were given
EDITS = "edits"


class EditCommand(typer.core.TyperCommand):
    """A command whose options are edits, made in the order in which they are given.

    Attributes:
        names: of the options it has; None for all.
    """

    names: Sequence[str] | None = None

    def __init__(self, *args: Any, **settings: Any):
        from toolkit.passes.edit.options import OPTIONS

        super().__init__(*args, **settings)
        for option, edit in OPTIONS.items():
            if self.names is not None and option not in self.names:
                continue
            more: dict[str, Any] = {"metavar": edit.metavar, "multiple": True} if edit.metavar else {"is_flag": True}
            self.params.append(typer.core.TyperOption(param_decls=[option], help=edit.help, expose_value=False, **more))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        from toolkit.passes.edit.options import OPTIONS

        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen: dict[str, int] = {}
        given: list[tuple[str, str]] = []
        for parameter in order:
            option = parameter.opts[-1]
            if option in OPTIONS and (self.names is None or option in self.names):
                position = seen[option] = seen.get(option, -1) + 1
                given.append((option, values[str(parameter.name)][position] if OPTIONS[option].metavar else ""))
        ctx.meta[EDITS] = given
        return super().parse_args(ctx, args)


class SignatureEdits(EditCommand):
    """A command that makes a model, whose signatures may be set, renamed and removed before it is written."""

    names = (
        "--connect", "--add-signature", "--rename-signature", "--remove-signature", "--rename-signature-key",
        "--default-signature", "--signature-method",
    )  # fmt: skip


@contextmanager
def telling_all_mistakes() -> Generator[None]:
    """Each mistake of a list of edits is a line; the last one is told when the command ends."""
    from toolkit.passes.edit.table import EditsError

    try:
        yield
    except EditsError as errors:
        for error in errors.errors[:-1]:
            messages.tell(f"graphmill: error: {messages.shortened(' '.join(str(error).split()))}")
        raise errors.errors[-1] from None
