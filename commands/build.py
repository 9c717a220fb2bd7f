"""graphmill build: make a graph from a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import As, Out, command_app

app = command_app()


@app.command()
def build(
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC", help="YAML file, Python file (.py, or .py:FUNCTION), or '-' for YAML on standard input."
        ),
    ] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGS]...", help="Arguments of a TensorFlow program.")
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
            help="Take a TensorFlow program's graph when it first opens a session (default), or when it ends.",
        ),
    ] = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Write inferred shapes into the nodes (_output_shapes).")
    ] = False,
) -> None:
    """Make a graph from a YAML spec or a Python file, and write it as a MetaGraphDef.

    graphmill help specs describes the YAML; samples/digits_cnn.yaml is an example. A Python file uses
    toolkit.client and defines build(), or makes its nodes in the default graph. All mistakes are told at once. A
    Python file that imports tensorflow is run (it is code: see graphmill help trust) with graphmill in its place, until
    it opens a session.

    Example: graphmill build samples/digits_cnn.yaml -o digits.meta
    """
    from toolkit.errors import UsageError

    if schema:
        import json

        from commands.messages import show
        from toolkit.client.spec.document import schema as spec_schema

        show(*json.dumps(spec_schema(), indent=2).splitlines())
        return
    if spec is None:
        raise UsageError("name a spec: graphmill build SPEC.yaml (or --schema)")
    from toolkit.client.spec import build_spec
    from toolkit.formats.model import from_meta_graph, write_model

    if _is_program(spec, until):
        from toolkit.tensorflow import programs

        meta = programs.build(spec, until or "session", arguments)
    elif arguments:
        raise UsageError("arguments after the spec are for programs that import tensorflow")
    else:
        meta = build_spec(spec, _pairs(parameters or []), include or [])
    if shapes:
        from toolkit.graph.infer import infer

        known = infer(meta.graph, strict=False)
        for node in meta.graph:
            if node.num_outputs:
                node.attrs["_output_shapes"] = known.of(node)
    write_model(from_meta_graph(meta), out, as_kind)


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
