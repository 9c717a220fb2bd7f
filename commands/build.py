"""graphmill build: make a graph from a spec."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import As, Out, command_app

app = command_app()


@app.command()
def build(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="YAML file, Python file (.py), or '-' for YAML on standard input.")
    ],
    out: Out = "-",
    as_kind: As = None,
    shapes: Annotated[
        bool, typer.Option("--shapes", help="Write inferred shapes into the nodes (_output_shapes).")
    ] = False,
) -> None:
    """Make a graph from a YAML spec or a Python file, and write it as a MetaGraphDef.

    graphmill help specs describes the YAML; samples/digits_cnn.yaml is an example. A Python file uses
    toolkit.client and defines build(), or makes its nodes in the default graph.

    Example: graphmill build samples/digits_cnn.yaml -o digits.meta
    """
    from toolkit.client.spec import build_spec
    from toolkit.formats.model import from_meta_graph, write_model

    meta = build_spec(spec)
    if shapes:
        from toolkit.graph.infer import infer

        known = infer(meta.graph, strict=False)
        for node in meta.graph:
            if node.num_outputs:
                node.attrs["_output_shapes"] = known.of(node)
    write_model(from_meta_graph(meta), out, as_kind)
