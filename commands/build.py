"""graphmill build: make a graph from a spec, a program or pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from commands.edit_options import EDITS, SignatureEdits, telling_all_mistakes
from commands.options import Allow, As, Out, Tags, command_app

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model

app = command_app()


@app.command(cls=SignatureEdits)
def build(
    context: typer.Context,
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC", help="YAML file, Python file (.py, or .py:FUNCTION), or '-' for YAML on standard input."
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="Arguments of a TensorFlow program.")
    ] = None,
    from_savedmodel: Annotated[
        str | None, typer.Option(metavar="DIR", help="Make the model of this SavedModel instead of a spec.")
    ] = None,
    from_checkpoint: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="GRAPH PREFIX", help="Make it of a graph and the checkpoint with its variables' values."),
    ] = None,
    merge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE[=SCOPE]...",
            help="Make it of several models beside each other, each in a scope named for its file.",
        ),
    ] = None,
    out: Out = "-",
    as_kind: As = None,
    parameters: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="The value of one of the spec's parameters; may be repeated."),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option("--include-dir", metavar="DIR", help="A folder of files that the spec may include; repeatable."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of YAML specs, for editors, and do nothing else.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="session|exit",
            help="Take a TensorFlow program's graph when it first runs a session (default), or when it ends.",
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Write inferred shapes into the nodes (_output_shapes).")
    ] = False,
    tags: Tags = None,
    allow: Allow = None,
) -> None:
    """Make a graph from a YAML spec, a Python file or pieces, and write it: a MetaGraphDef, or a SavedModel of pieces.

    graphmill help specs describes the YAML; samples/digits_cnn.yaml is an example. A Python file uses
    toolkit.client and defines build(), or makes its nodes in the default graph. All mistakes are told at once. A
    Python file that imports tensorflow is run (it is code: see graphmill help trust) with graphmill in its place, until
    it runs a session. As a SavedModel, the variables have the values that their initialisers give them.

    graphmill build samples/digits_cnn.yaml -o digits.meta

    graphmill build --from-checkpoint train.meta ckpt/model-1000 --add-signature 'serving_default=x->y' -o served

    graphmill build --merge encoder.pb decoder.pb --connect encoder/code:0=decoder/input:0 -o both.pb
    """
    from toolkit.errors import UsageError

    if schema:
        import json

        from commands.messages import show
        from toolkit.client.spec.document import schema as spec_schema

        show(*json.dumps(spec_schema(), indent=2).splitlines())
        return
    from commands.pieces import Request, build_pieces, write_built

    request = Request(context.meta[EDITS], out, as_kind, tags, allow)
    with request.files, telling_all_mistakes():
        if from_savedmodel or from_checkpoint or merge:
            more = _no_spec(spec, arguments, parameters, include, until, from_savedmodel, from_checkpoint, merge)
            model = build_pieces(request, from_savedmodel, from_checkpoint, [*(merge or []), *more])
        elif spec is None:
            raise UsageError("name a spec: graphmill build SPEC.yaml (or --schema)")
        else:
            if tags is not None:
                raise UsageError(f"--tags: '{tags}' would choose among the graphs of a SavedModel, and this is a spec")
            model = _made(spec, arguments, parameters, include, until)
        if shapes:
            from toolkit.graph.infer import infer

            known = infer(model.graph, strict=False)
            for node in model.graph:
                if node.num_outputs:
                    node.attrs["_output_shapes"] = known.of(node)
        write_built(request, model, is_code=spec is not None and ".py" in spec)


def _no_spec(
    spec: str | None,
    arguments: list[str] | None,
    parameters: list[str] | None,
    include: list[str] | None,
    until: str | None,
    *pieces: object,
) -> list[str]:
    """The files of --merge that stand where a spec would.

    Raises:
        UsageError: options of a spec, or two kinds of pieces, are given.
    """
    from toolkit.errors import UsageError

    for option, value in (("--set", parameters), ("--include-dir", include), ("--until", until)):
        if value:
            raise UsageError(f"{option} is for specs and programs, and a model is made of pieces here")
    if sum(map(bool, pieces)) > 1:
        raise UsageError("give one of --from-savedmodel, --from-checkpoint and --merge")
    more = [*([] if spec is None else [spec]), *(arguments or [])]
    if more and not pieces[-1]:
        raise UsageError(f"'{more[0]}' is one file too many: a model is made of a spec or of pieces")
    return more


def _made(
    spec: str,
    arguments: list[str] | None,
    parameters: list[str] | None,
    include: list[str] | None,
    until: str | None,
) -> Model:
    """The model that a spec or a program describes."""
    from toolkit.client.spec import build_spec
    from toolkit.errors import UsageError
    from toolkit.formats.models.model import from_meta_graph

    if _is_program(spec, until):
        from toolkit.tensorflow import programs

        return from_meta_graph(programs.build(spec, until or "session", arguments))
    if arguments:
        raise UsageError("arguments after the spec are for programs that import tensorflow")
    return from_meta_graph(build_spec(spec, _pairs(parameters or []), include or []))


def _is_program(spec: str, until: str | None) -> bool:
    """Whether a spec is a program written for TensorFlow."""
    import re
    from pathlib import Path

    if until is not None or ".py:" in spec:
        return True
    path = Path(spec)
    if not spec.endswith(".py") or not path.is_file():
        return False
    return re.search(rb"^\s*(import|from)\s+tensorflow\b", path.read_bytes(), re.MULTILINE) is not None


def _pairs(options: list[str]) -> dict[str, str]:
    from toolkit.errors import UsageError

    found: dict[str, str] = {}
    for option in options:
        name, equals, value = option.partition("=")
        if not equals or not name:
            raise UsageError(f"--set {option}: expected NAME=VALUE")
        if name in found:
            raise UsageError(f"--set {name} is given twice")
        found[name] = value
    return found
