"""The `graphmill` program: finds the command, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
import typer.core
from typer.main import get_command

# Typer carries Click inside it and re-exports only part; these are its two exception bases.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
TyperError: type[Exception] = UsageError.__bases__[0]

#: command name to (module, one line of help). `--help` prints this table without importing any of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "build": ("commands.build", "Make a graph from a YAML spec or a Python file."),
    "inspect": ("commands.inspect", "Say what is in a graph, model or checkpoint file."),
    "prune": ("commands.prune", "Keep only what the fetches and targets need."),
    "place": ("commands.place", "Assign every node to a device of a cluster."),
    "partition": ("commands.partition", "Split a placed graph into one graph per task or device."),
    "run": ("commands.run", "Run a graph, a model's signature or a training loop."),
    "ops": ("commands.ops", "List ops with their kernels, gradients and shape functions."),
    "checkpoint": ("commands.checkpoint", "Inspect, verify, compare and convert checkpoints."),
    "validate": ("commands.validate", "Find everything that is wrong with models; for CI."),
    "diff": ("commands.diff", "Say how two models differ."),
    "visualize": ("commands.visualize", "Draw a graph."),
}

USAGE_EXIT = 2
INTERRUPTED_EXIT = 130


class LazyGroup(typer.core.TyperGroup):
    """A group whose commands are imported when they are called, not before."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        app: typer.Typer = importlib.import_module(entry[0]).app
        command = get_command(app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from toolkit.errors import did_you_mean

            ctx.fail(f"there is no command '{args[0]}'{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(cls=LazyGroup, add_completion=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print(f"graphmill {version('graphmill')}")
        raise typer.Exit


@app.callback(context_settings={"help_option_names": ["-h", "--help"]})
def graphmill(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """TensorFlow's graph lifecycle as Unix tools, without TensorFlow.

    Every command reads a file, or standard input when it is left out or "-", and writes -o FILE or standard
    output, so stages chain: graphmill build spec.yaml | graphmill prune --fetch loss | graphmill visualize -o g.svg

    Exit codes: 0 fine, 1 findings, 2 bad input or usage, 3 failed while running, 130 interrupted.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the console script; always exits."""
    code = run(sys.argv[1:] if args is None else args)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_pipe()
    except OSError as error:
        code = _fail(f"standard output: {error.strerror}", USAGE_EXIT)
        _leave_pipe()
    sys.exit(code)


def _leave_pipe() -> None:
    """Point standard output at nothing, so that the interpreter's own flush at exit finds no broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(args: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code."""
    # Before numpy is loaded: OpenBLAS threads that wait by spinning slow everything twentyfold as soon as another
    # process wants a core; with this they go to sleep early, which costs nothing on an idle machine.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        result = get_command(app).main(args=list(args), prog_name="graphmill", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except TyperError as error:
        context = getattr(error, "ctx", None)
        hint = f" (see: {context.command_path} --help)" if context else ""
        return _fail(f"{error.format_message()}{hint}", USAGE_EXIT)  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED_EXIT)
    except BrokenPipeError:
        _leave_pipe()  # the reader went away (`| head`), which is not our failure
        return 0
    except SystemExit as leaving:
        if leaving.code == 1:  # how typer ends when the reader of standard output went away
            _leave_pipe()
            return 0
        raise
    except Exception as error:
        from toolkit.errors import GraphmillError

        if isinstance(error, GraphmillError):
            return _fail(str(error), error.exit_code)
        if isinstance(error, OSError):
            return _fail(f"{error.filename or 'standard output'}: {error.strerror}", USAGE_EXIT)
        raise


def _fail(message: str, code: int) -> int:
    print(f"graphmill: error: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
