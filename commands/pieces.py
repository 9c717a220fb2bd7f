"""What `build` makes of pieces, and how what it has made becomes a SavedModel with values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from commands import messages, models

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model, ModelKind
    from toolkit.passes.edit.table import Step
    from toolkit.passes.models.pieces import Piece

_CONNECT = "--connect"


@dataclass(slots=True)
class Request:
    """What is asked for of a model that is built.

    Attributes:
        edits: options of `edit` with their values, in order.
        out, as_kind: where it goes, and as what.
        tags: of a SavedModel.
        allow: files beside the pieces' own that may be read.
        files: what has to be there until the model is written.
    """

    edits: list[tuple[str, str]]
    out: str
    as_kind: str | None
    tags: str | None
    allow: list[str] | None
    files: ExitStack = field(default_factory=ExitStack)

    def steps(self) -> list[Step]:
        """The edits that are left to be made."""
        from toolkit.passes.edit.options import read_options

        return read_options(self.edits)

    def take_connections(self) -> list[Step]:
        """The edits that connect graphs, which are made before the others."""
        from toolkit.passes.edit.options import read_options

        connections = [each for each in self.edits if each[0] == _CONNECT]
        self.edits = [each for each in self.edits if each[0] != _CONNECT]
        return read_options(connections)

    def folder(self) -> Path:
        """An empty folder that is there until the model is written."""
        from tempfile import TemporaryDirectory

        return Path(self.files.enter_context(TemporaryDirectory(prefix="graphmill-build-")))


def build_pieces(
    request: Request, saved_model: str | None, checkpoint: tuple[str, str] | None, merged: Sequence[str]
) -> Model:
    """The model that pieces make: one of a SavedModel, of a graph with a checkpoint, or of several models.

    Raises:
        GraphmillError: a piece cannot be read; pieces do not go together.
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.bundle.locate import find_prefix
    from toolkit.formats.models.model import ModelKind, variables_prefix
    from toolkit.passes.models.pieces import Piece

    if saved_model is not None:
        model = models.read("build", saved_model, request.tags)
        if model.kind is not ModelKind.SAVED_MODEL:
            with about_option("--from-savedmodel"):
                raise UsageError(
                    f"'{saved_model}' is a {model.kind.value}; a graph and its checkpoint are given with "
                    "--from-checkpoint GRAPH PREFIX"
                )
        return model
    if checkpoint is not None:
        graph, prefix = checkpoint
        with about_option("--from-checkpoint"):
            piece = Piece(models.read("build", graph, request.tags), find_prefix(prefix))
        return _assembled(request, [piece])
    with about_option("--merge"):
        pieces: list[Piece] = []
        for file, scope in map(_scoped, merged):
            if any(scope == piece.scope for piece in pieces):
                raise UsageError(f"two models would be in the scope '{scope}'; name it: FILE=SCOPE")
            model = models.read("build", file, request.tags)
            pieces.append(Piece(model, variables_prefix(model), scope))
        if len(pieces) < 2:
            raise UsageError("give two models or more: --merge A.pb B.pb")
    made = _assembled(request, pieces)
    connections = request.take_connections()
    if connections:
        from toolkit.passes.models.pieces import join_signatures

        made = _edited(made, connections)
        meta, notes = join_signatures(made.meta, [piece.scope for piece in pieces])
        for note in notes:
            messages.say("build", note)
        made = made.with_meta(meta)
    return made if made.checkpoint or made.folder else replace(made, kind=_richest(pieces))


def write_built(request: Request, model: Model, *, is_code: bool) -> None:
    """Write what was built, with its signatures as they are asked for; a SavedModel with the values of its variables.

    Args:
        is_code: whether it was made by a program, which could have read any file itself.

    Raises:
        GraphmillError: a signature cannot be changed; the variables have no values; it cannot be written.
    """
    from toolkit.formats.inspection.report import plural
    from toolkit.formats.models.model import ModelKind, target_kind, writes_archive, writes_folder

    kind, encoding = target_kind(model, request.out, request.as_kind)
    if kind is ModelKind.SAVED_MODEL and model.kind is not ModelKind.SAVED_MODEL:
        model = _with_values(request, model, is_code=is_code)
    model = _edited(model, request.steps())
    if kind is ModelKind.SAVED_MODEL and model.checkpoint is not None:
        from toolkit.passes.models.pieces import require_values, some

        lacking = require_values(model.meta)
        if lacking:
            said = f"{plural(len(lacking), 'variable')} that no signature needs have no value: {some(lacking)}"
            messages.say("build", said)
    signatures = [key for key in model.meta.signatures if not key.startswith("__")]
    if kind is ModelKind.SAVED_MODEL and not signatures:
        messages.say(
            "build",
            "warning: it has no signature, so nobody can serve it; add one: --add-signature KEY=IN,...->OUT,...",
        )
    takes_all = kind is ModelKind.SAVED_MODEL and (
        writes_folder(kind, request.out) or writes_archive(model, request.out, encoding)
    )
    if model.checkpoint and not takes_all:
        messages.say(
            "build",
            "warning: the values of its variables stay behind; as a SavedModel, in a folder, a .tar or a pipe, they "
            "come along",
        )
    if kind is ModelKind.GRAPH_DEF and signatures:
        messages.say("build", "warning: a GraphDef has no signatures; --as metagraph or --as savedmodel keeps them")
    models.write("build", model, request.out, kind.value if request.as_kind is None else request.as_kind, request.allow)


def _assembled(request: Request, pieces: Sequence[Piece], *, is_code: bool = False) -> Model:
    from toolkit.passes.models.pieces import assemble

    model, notes = assemble(pieces, request.folder(), _any_link if is_code else models.link_check(request.allow))
    for note in notes:
        messages.say("build", note)
    return model


def _any_link(links: list[Path]) -> None:
    """What a program names, it could have read itself."""


def _with_values(request: Request, model: Model, *, is_code: bool) -> Model:
    """A SavedModel of a graph that was made, with the first values of its variables."""
    from toolkit.formats.models.model import from_meta_graph
    from toolkit.graph.summary import VARIABLES
    from toolkit.passes.models.pieces import Piece
    from toolkit.runtime.saving.initial_values import write_initial_values

    prefix = None
    if any(node.op in VARIABLES for node in model.graph):
        prefix = str(request.folder() / "first")
        write_initial_values(model.meta, prefix)
        messages.say("build", "the variables have their first values")
    return _assembled(request, [Piece(from_meta_graph(model.meta), prefix)], is_code=is_code)


def _edited(model: Model, steps: Sequence[Step]) -> Model:
    """The model after edits, which are told."""
    from toolkit.passes.edit.apply import apply_edits

    if not steps:
        return model
    result = apply_edits(model.meta, steps)
    for line in (*(done["did"] for done in result.done), *result.notes):
        messages.detail("build", line)
    return model.with_meta(result.meta)


def _scoped(text: str) -> tuple[str, str]:
    """A file, and the scope that its nodes go into: what is said behind '=', else the file's name."""
    file, _, scope = text.partition("=")
    if not scope:
        stem = Path(file.rstrip("/")).name.partition(".")[0]
        scope = re.sub(r"[^A-Za-z0-9_.\-/]", "_", stem) or "model"
    return file, scope


def _richest(pieces: Sequence[Piece]) -> ModelKind:
    """The kind of file that holds what all of them hold."""
    kinds = list(type(pieces[0].model.kind))  # in this order each can hold more than the one before
    return max((piece.model.kind for piece in pieces), key=kinds.index)
