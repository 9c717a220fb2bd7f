"""The `graphmill` program: finds the command, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

try:
    import typer
    from typer.main import get_command

    from commands import messages
    from commands.ending import Ended, end_on_signal, leave
    from commands.groups import lazy_group
except KeyboardInterrupt:  # Ctrl-C right after the start
    print("graphmill: error: interrupted", file=sys.stderr)
    sys.exit(130)

if TYPE_CHECKING:
    from toolkit.errors import GraphmillError

# Typer carries Click inside it and re-exports only part; these are its two exception bases.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]
TyperError: type[Exception] = UsageError.__bases__[0]

#: command name to (module, one line of help). `--help` prints this table without importing any of them.
COMMANDS: dict[str, tuple[str, str]] = {
    "build": ("commands.build", "Make a graph from a YAML spec or a Python file."),
    "python": ("commands.python", "Run a TensorFlow 1 program without TensorFlow."),
    "inspect": ("commands.inspect", "Say what is in a graph, model or checkpoint file."),
    "edit": ("commands.edit", "Change a model: rename, rewire, insert, remove, merge."),
    "prune": ("commands.prune", "Keep only what the fetches and targets need."),
    "optimize": ("commands.optimize", "Make a graph smaller or faster; its results stay."),
    "place": ("commands.place", "Assign every node to a device of a cluster."),
    "partition": ("commands.partition", "Split a placed graph into one graph per task or device."),
    "convert": ("commands.convert", "Write a model in another format, without loss."),
    "freeze": ("commands.freeze", "Make constants of variables, so that a graph needs no checkpoint."),
    "unfreeze": ("commands.unfreeze", "Make variables of constants, with a checkpoint, to train again."),
    "run": ("commands.run", "Run a graph, a model's signature or a training loop."),
    "worker": ("commands.worker", "Serve one task of a cluster."),
    "cluster": ("commands.cluster", "Start and watch the tasks of a cluster."),
    "ops": ("commands.ops", "List ops with their kernels, gradients and shape functions."),
    "devices": ("commands.devices", "List the GPUs of this machine, and what they lack to be used."),
    "checkpoint": ("commands.checkpoint", "Inspect, verify, compare and convert checkpoints."),
    "validate": ("commands.validate", "Find everything that is wrong with models; for CI."),
    "diff": ("commands.diff", "Say how two models differ."),
    "visualize": ("commands.visualize", "Draw a graph."),
    "help": ("commands.help", "Explain a topic or a command; write man pages."),
}

USAGE_EXIT = 2
FAILED_EXIT = 3
INTERRUPTED_EXIT = 130
#: how Click begins a message about the value of an option
_INVALID = re.compile(r"^Invalid value for '(?:-\w' / ')?(--[\w-]+)': ")
#: how Click calls types of numbers, and how people do
_NUMBERS = (("int range", "whole number"), ("float range", "number"), ("integer", "whole number"), ("float", "number"))
#: mistakes of one file that are told one by one
_MOST_ERRORS = 50
#: commands that run steps: there an OpError means that one failed, whatever its status
RUNNING = frozenset({"run"})
#: commands over one graph or two whose objects live until the end: no garbage is looked for among them
BRIEF = frozenset({"inspect", "prune", "place", "partition", "diff", "visualize"})


app = typer.Typer(cls=lazy_group(COMMANDS), add_completion=True, rich_markup_mode=None, pretty_exceptions_enable=False)


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

    Exit codes: 0 fine, 1 findings, 2 bad input or usage, 3 failed while running, 70 a bug, 130 interrupted, 143 ended.

    Formats, queries, specs, feeds, placement, rules and more are explained by: graphmill help
    """


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the console script; always exits."""
    given = sys.argv[1:] if args is None else args
    try:
        # what runs steps has its own way to end: what was trained is saved
        with contextlib.nullcontext() if _command(given) in RUNNING else end_on_signal(), _collector(_command(given)):
            code = run(given)
            code = _flush(code)
    except KeyboardInterrupt:  # once more, while the first was being handled
        code = INTERRUPTED_EXIT
    except Ended as ended:
        code = _fail(str(ended), ended.exit_code)
    leave(code)


@contextlib.contextmanager
def _collector(command: str) -> Generator[None]:
    """Without the collector of garbage where it finds nothing in time; a graph of a million nodes is not taken apart at
    the end of the process either. What runs steps has it again when its modules and its model are there."""
    if command not in BRIEF | RUNNING:
        yield
        return
    from toolkit.graph.garbage import no_collection, postponed

    if command in RUNNING:
        with postponed():
            yield
        return
    with no_collection():
        yield
        gc.freeze()


def _flush(code: int) -> int:
    """Write out what standard output still holds; returns the exit code."""
    if cast("object", sys.stdout) is None:  # it was closed before the start
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave_pipe()
    except OSError as error:
        code = _fail(f"standard output: {error.strerror}", _os_exit_code(error))
        _leave_pipe()
    return code


def _leave_pipe() -> None:
    """Point standard output at nothing, so that no later flush of what it holds fails."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it may be closed, or stand for no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_anything() -> None:
    """Let standard output take every character: what the terminal's encoding lacks, and bytes of file names that are
    no text, are written as escapes instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def run(args: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code; what it unpacked is removed."""
    before = _archives().count_unpacked() if _archives() else 0
    try:
        return _run(args)
    finally:
        if _archives():
            _archives().remove_unpacked(before)


def _archives() -> Any:
    """The module that unpacks archives, where anybody has imported it."""
    return sys.modules.get("toolkit.formats.folders.archive")


def _run(args: Sequence[str]) -> int:
    # Before numpy is loaded: OpenBLAS threads that wait by spinning slow everything twentyfold as soon as another
    # process wants a core; with this they go to sleep early, which costs nothing on an idle machine.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    messages.set_level(messages.NORMAL)
    _write_anything()
    messages.arguments = list(args)
    if list(args) in ([], ["checkpoint"], ["cluster"]):
        args = [*args, "--help"]
    try:
        result = get_command(app).main(args=list(args), prog_name="graphmill", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except TyperError as error:
        context = getattr(error, "ctx", None)
        hint = f" (see: {context.command_path} --help)" if context else ""
        message: str = cast("Any", error).format_message()
        for type_name, words in _NUMBERS:
            message = message.replace(f"valid {type_name}", words)
        message = _INVALID.sub(r"\1: ", message)
        return _fail(message + hint, USAGE_EXIT)
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
    except MemoryError as error:
        wanted = str(error)  # said below, where the frames of whatever wanted it are gone
    except RecursionError as error:
        _show_traceback(error)
        return _fail("the input is nested too deeply", FAILED_EXIT)
    except Exception as error:
        return _failed(error, args)
    return _fail(f"there is not enough memory{f': {wanted}' if wanted else ''}", FAILED_EXIT)


def _failed(error: Exception, args: Sequence[str]) -> int:
    """Say what an exception means, in one line; returns the exit code."""
    from toolkit.errors import BugError, GraphmillError, InternalError, MultipleMistakesError

    if isinstance(error, BugError | InternalError):  # ours, or a plugin's
        _show_traceback(error)
    if isinstance(error, MultipleMistakesError):
        shown = error.errors[:_MOST_ERRORS]
        for each in shown:
            _fail(str(each), _exit_code(each, args))
        if left := len(error.errors) - len(shown):
            _fail(f"{left} more", USAGE_EXIT)
        return max(_exit_code(each, args) for each in error.errors)
    if isinstance(error, GraphmillError):
        return _fail(str(error), _exit_code(error, args))
    if isinstance(error, ImportError | OSError) and _NO_ROOM.search(str(error)):  # the dynamic linker's words
        return _fail(f"there is not enough memory: {error}", FAILED_EXIT)
    if isinstance(error, OSError):
        if not error.filename:
            _leave_pipe()  # what it still holds would fail again
        return _fail(f"{error.filename or 'standard output'}: {error.strerror}", _os_exit_code(error))
    if isinstance(error, UnicodeEncodeError) and any("\ud800" <= char <= "\udfff" for char in error.object):
        # Bytes of the command line that are no text; file names may hold them, names in graphs may not.
        return _fail(f"'{error.object}' is not UTF-8 text", USAGE_EXIT)
    _show_traceback(error)
    return _fail(str(BugError(f"graphmill {next(iter(args), '')}".rstrip(), error)), BugError.exit_code)


#: what a library that finds no room in the address space (`ulimit -v`) fails with
_NO_ROOM = re.compile("failed to map segment from shared object$|cannot create shared object descriptor")


def _show_traceback(error: BaseException) -> None:
    """With GRAPHMILL_TRACEBACK=1 or --verbose, show where an error comes from."""
    from toolkit.errors import TRACEBACK

    if os.environ.get(TRACEBACK) == "1" or messages.level() >= messages.VERBOSE:
        import traceback

        with contextlib.suppress(OSError, RecursionError):
            traceback.print_exception(error)


def _command(args: Sequence[str]) -> str:
    """The command of a command line, or ""."""
    return next((arg for arg in args if not arg.startswith("-")), "")


def _exit_code(error: GraphmillError, args: Sequence[str]) -> int:
    """The one place that says which failures are the input's (2) and which happened on the way (3).

    The library speaks TensorFlow's statuses everywhere. In a command that runs no steps, "not found" or "permission
    denied" is about what the user gave; a full disk, a failing device or store is not.
    """
    from toolkit.errors import ABOUT_INPUT

    is_given = _command(args) not in RUNNING or error.option is not None  # no step runs while an option is looked at
    return USAGE_EXIT if isinstance(error, ABOUT_INPUT) and is_given else error.exit_code


def _os_exit_code(error: OSError) -> int:
    """Likewise for what the operating system says: a name that is wrong is the input's fault, a full disk is not."""
    from toolkit.errors import ABOUT_INPUT, os_status

    status = os_status(error)
    return USAGE_EXIT if issubclass(status, ABOUT_INPUT) else status.exit_code


def _fail(message: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):  # nobody reads standard error, or it is closed
        messages.tell(f"graphmill: error: {messages.shortened(' '.join(message.split()))}")
    return code


if __name__ == "__main__":
    main()
