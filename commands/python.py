"""graphmill python: run a TensorFlow 1 program without TensorFlow."""

from __future__ import annotations

from typing import Annotated

import typer

from commands import messages
from commands.options import command_app

app = command_app()


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def python(
    script: Annotated[str | None, typer.Argument(metavar="SCRIPT.py", help="The program; or use -m.")] = None,
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", help="The program's arguments.")] = None,
    module: Annotated[
        str | None, typer.Option("-m", "--module", metavar="MODULE", help="Run a module as the program.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option("--graph", metavar="OUT", help="Write the graph of the program's first session as a MetaGraph."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(
            "--trace", metavar="FILE", help="Write a timeline of all steps: Chrome's JSON, or RunMetadata for .pb."
        ),
    ] = None,
    profile: Annotated[bool, typer.Option("--profile", help="Print where time and memory went, at the end.")] = False,
    check_numerics: Annotated[
        bool, typer.Option("--check-numerics", help="Fail at the first node that makes a NaN or an infinity.")
    ] = False,
) -> None:
    """Run a program that imports tensorflow (any spelling of 1.x) with graphmill in its place.

    sys.argv, __main__, sys.path and the exit code are what python's would be; an installed TensorFlow is neither
    loaded nor touched. --graph writes the graph of the first session that the program opened, or, where it opened
    none, the default graph, as it is when the program ends. --trace and --profile show what runs, fused nodes under the
    name of the last one; together with --check-numerics steps run node by node. Running a program is running code: see
    `graphmill help trust`.

    Example: graphmill python train.py --steps 100
    """
    from toolkit.tensorflow import programs, watching

    given = list(arguments or ())
    if module is not None and script is not None:
        given.insert(0, script)
    looked_at = watching.Watching(trace, profile, check_numerics)
    try:
        code = programs.run(programs.Program(script, module, given), graph, looked_at)
    finally:  # of a program that is stopped, too
        messages.show(*looked_at.profile_lines())
    if code:
        raise typer.Exit(code)
