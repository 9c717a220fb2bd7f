# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""TensorFlow 1 programs, run in this process with graphmill in TensorFlow's place."""

from __future__ import annotations

import builtins
import contextlib
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import GraphError, GraphmillError, UnknownError, UsageError, about_option
from toolkit.formats.io import STDIO, check_place
from toolkit.tensorflow import importer, numpy_names, python_names, scipy_images
from toolkit.tensorflow.watching import Watching

#: what Python 2 had and Python 3 has not: name to what to do
_PYTHON_2_NAMES = {
    "xrange": "write range", "unicode": "write str", "raw_input": "write input", "long": "write int",
    "basestring": "write str", "reduce": "import it from functools", "unichr": "write chr", "execfile": "use exec",
}  # fmt: skip
_PYTHON_2_MODULES = {
    "urllib2": "write urllib.request", "cPickle": "write pickle", "ConfigParser": "write configparser",
    "Queue": "write queue", "StringIO": "write io.StringIO", "urlparse": "write urllib.parse",
    "cStringIO": "write io.StringIO", "commands": "write subprocess", "Tkinter": "write tkinter",
    "HTMLParser": "write html.parser", "httplib": "write http.client", "thread": "write _thread",
    "__builtin__": "write builtins", "exceptions": "leave it out",
}  # fmt: skip
#: the modules here that say which names are not there
_NAMING = ("names.py", "modules.py", "importer.py")
#: a part of what newer NumPy says of an older program, to what to write instead
_NUMPY_CHANGES = {
    "inhomogeneous shape": (
        "NumPy makes arrays of rows of different lengths only when it is told so: write np.array(..., dtype=object)"
    ),
    "only 0-dimensional arrays can be converted": "NumPy makes no number of an array [1] any more: write x.item()",
    "unexpected keyword argument 'newshape'": "np.reshape's newshape is called shape: write np.reshape(x, (...))",
    "'float' object cannot be interpreted as an integer": (
        "sizes are whole numbers; / makes a fraction of them since Python 3: write // or int(...)"
    ),
    "out of bounds for uint": "NumPy wraps numbers into small types no more: write np.array(x).astype(...)",
}
_CONVERT = "the program is written for Python 2; `python -m lib2to3 -w FILE` (Python up to 3.12) converts it"


@dataclass(frozen=True)
class Program:
    """What to run: a file, or a module; and the arguments that it gets."""

    script: str | None
    module: str | None
    arguments: list[str]

    @property
    def name(self) -> str:
        return self.module if self.module is not None else self.script or ""


class Stopped(BaseException):
    """Raised inside a program that is to go no further: a session of it is about to run."""


def run(program: Program, graph_out: str | None = None, watching: Watching | None = None) -> int:
    """Run a program; returns its exit code.

    Args:
        graph_out: where the MetaGraph goes, of the graph of the first session, else of the default graph.
        watching: how its sessions are looked at.

    Raises:
        UsageError: there is no such program.
        GraphmillError: a file cannot be written where it is to go.
    """
    for option, place in (("--graph", graph_out), ("--trace", None if watching is None else watching.trace)):
        if place is not None and place != STDIO:
            with about_option(option):
                check_place(place)
    seen: list[Any] = []
    with _listening(seen.append), (watching or Watching()).looking():
        code = execute(program)
    if graph_out is not None:
        from toolkit.formats.models.model import from_meta_graph, write_model

        made = meta_graph(seen[0] if seen else None)
        if len(made.graph):
            write_model(from_meta_graph(made), graph_out)
        else:
            print(f"graphmill: --graph: the program made no nodes, so {graph_out} is not written", file=sys.stderr)
            code = code or 1
    return code


def build(spec: str, until: str = "session", arguments: list[str] | None = None) -> Any:
    """The MetaGraph that a program makes.

    Args:
        spec: a file, "train.py", or a function without arguments of a file, "train.py:build", which may return a graph.
        until: "session": when the first session is about to run its first step, at which the program is stopped (many
            programs open a session first and make their graph then); "exit": when it has ended.
        arguments: what the program finds in sys.argv.

    Raises:
        UsageError: there is no such file or function.
        OpError: the program failed; its traceback has been shown.
        GraphError: it has made no graph.
    """
    if until not in ("session", "exit"):
        raise UsageError(f"--until {until}: expected session or exit")
    path, _, function = spec.partition(".py:")
    script = path + ".py" if function else spec
    seen: list[Any] = []

    def stop(graph: Any) -> None:
        seen.insert(0, graph)
        raise Stopped

    def call(names: dict[str, Any]) -> None:
        if function:
            if not callable(names.get(function)):
                raise UsageError(f"it has no function '{function}'", file=script)
            made = names[function]()
            if hasattr(made, "get_operations"):
                seen.insert(0, made)

    program = Program(script, None, list(arguments or ()))
    with _listening(seen.append, stop if until == "session" else None), contextlib.suppress(Stopped):
        code = execute(program, call, "__graph__" if function else "__main__")
        if code:
            raise UnknownError(f"the program ended with exit code {code}, so there is no graph", file=script)
    made = meta_graph(seen[0] if seen else None)
    if not len(made.graph):
        when = "ended" if until == "exit" or not seen else "first ran a session (--until exit waits for its end)"
        raise GraphError(f"the program had made no nodes when it {when}", file=script)
    return made


def meta_graph(graph: Any = None) -> Any:
    """The MetaGraph of a graph that a program made, with its collections and its first saver."""
    from toolkit.client.construction import context
    from toolkit.client.metagraphs.export import to_meta_graph

    graph = context.get_default_graph() if graph is None else graph
    savers = graph.extras.get("toolkit.tensorflow.savers", [])
    return to_meta_graph(graph, saver_def=savers[0] if savers else None)


@contextlib.contextmanager
def _listening(opened: Callable[[Any], None], first_step: Callable[[Any], None] | None = None) -> Any:
    """Tell listeners the graph of each session that is opened inside, and of each before its first step."""
    from toolkit.tensorflow.families.framework import session

    session.opened.append(opened)
    if first_step is not None:
        session.first_steps.append(first_step)
    try:
        yield
    finally:
        session.opened.remove(opened)
        if first_step is not None:
            session.first_steps.remove(first_step)


def _has_module(name: str) -> bool:
    """Whether Python would find a module, in the folder where it is started or elsewhere."""
    from importlib.util import find_spec

    sys.path.insert(0, os.getcwd())
    try:
        first, *inside = name.split(".")
        found = find_spec(first) if first else None
        folders = list(found.submodule_search_locations or []) if found is not None else []
        for length in range(len(inside)):
            found, folders = _inside(folders, ".".join([first, *inside[: length + 1]]))
        return found is not None or bool(folders)
    finally:
        sys.path.pop(0)


def _inside(folders: list[str], name: str) -> tuple[Any, list[str]]:
    """A module of a package, and the folders that it is a package of.

    `find_spec` would run the package, before TensorFlow's names are there.
    """
    from pkgutil import get_importer

    portions: list[str] = []  # folders without __init__.py
    for folder in folders:
        finder = get_importer(folder)
        found = finder.find_spec(name) if finder is not None else None
        if found is not None and found.loader is not None:
            return found, list(found.submodule_search_locations or [])
        if found is not None:
            portions += found.submodule_search_locations or []
    return None, portions


def execute(program: Program, then: Callable[[dict[str, Any]], None] | None = None, name: str = "__main__") -> int:
    """Run a program as __main__, with its own sys.argv and sys.path[0]; returns its exit code.

    Args:
        then: called with the program's names when it has ended.
        name: what `__name__` is in a file.
    """
    if program.module is None and program.script is None:
        raise UsageError("give a program: graphmill python SCRIPT.py, or -m MODULE")
    if program.script is not None and program.script.startswith("-") and program.module is None:
        raise UsageError(f"{program.script} is no option of graphmill python; a program's own options come after it")
    if program.script is not None and program.module is None and not os.path.exists(program.script):
        raise UsageError("there is no such program", file=program.script)
    if program.module is not None and not _has_module(program.module):
        raise UsageError(f"--module: there is no module '{program.module}' here")
    argv, path, main = sys.argv, list(sys.path), sys.modules.get("__main__")
    sys.argv = [program.script or program.module or "", *program.arguments]
    first = os.getcwd() if program.module is not None else os.path.dirname(os.path.abspath(program.script or ""))
    sys.path.insert(0, first)
    try:
        with importer.installed(), numpy_names.restored(), python_names.restored(), scipy_images.restored():
            try:
                names = _run_module(program) if program.module is not None else _run_script(program, name)
            except SystemExit as leaving:
                return _exit_code(leaving)
            except Exception as error:
                _show(error)
                return 1
            if then is not None:
                return _called(then, names)
        return 0
    finally:
        sys.argv, sys.path[:] = argv, path
        if main is not None:
            sys.modules["__main__"] = main


def _called(then: Callable[[dict[str, Any]], None], names: dict[str, Any]) -> int:
    """What is done with the names of a program that has ended, which is its code as well; returns the exit code."""
    try:
        then(names)
    except SystemExit as leaving:
        return _exit_code(leaving)
    except UsageError:
        raise
    except Exception as error:
        _show(error)
        return 1
    return 0


def _run_script(program: Program, name: str) -> dict[str, Any]:
    path = program.script or ""
    module = types.ModuleType(name)
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules[name] = module
    code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module.__dict__


def _run_module(program: Program) -> dict[str, Any]:
    return runpy.run_module(program.module or "", run_name="__main__", alter_sys=True)


def _exit_code(leaving: SystemExit) -> int:
    """As Python: None is 0, a number itself, anything else is printed and 1."""
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    print(leaving.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """The traceback of a program, without the frames that ran it, and what to do where it is written for Python 2.

    Frames inside of graphmill tell a program's author nothing about a mistake that is told in so many words; they are
    there with GRAPHMILL_TRACEBACK=1, and for errors of any other kind but names that are not there.
    """
    frames = error.__traceback__
    own = os.path.dirname(os.path.abspath(__file__))
    while frames is not None and _is_runner(frames.tb_frame.f_code.co_filename, own):
        frames = frames.tb_next
    shown = traceback.TracebackException(type(error), error, frames)
    innermost = shown.stack[-1].filename if shown.stack else ""
    is_told = isinstance(error, GraphmillError) or (
        os.path.basename(innermost) in _NAMING and _is_runner(innermost, own)
    )
    if is_told and os.environ.get("GRAPHMILL_TRACEBACK") != "1":
        _cut_short(shown, os.path.dirname(os.path.dirname(own)))
    sys.stdout.flush()
    print("".join(shown.format()), end="", file=sys.stderr)
    advice = leftover(error)
    if advice:
        print(f"graphmill: {advice}", file=sys.stderr)


def _cut_short(shown: traceback.TracebackException, package: str) -> None:
    """Leave out the frames of the library behind the last of the program, and of what an error came from."""
    library = os.path.join(package, "toolkit") + os.sep
    while shown.stack and shown.stack[-1].filename.startswith(library):
        shown.stack.pop()
    shown.__cause__ = shown.__context__ = None


def _is_runner(file: str, own: str) -> bool:
    return os.path.dirname(os.path.abspath(file)) == own or file.startswith("<frozen ")


def leftover(error: BaseException) -> str:
    """What to do about a mistake that is a leftover of Python 2 or of an older library; "" where it is none.

    Of a name that `from tensorflow.x import y` did not find Python says no more than that, so this says why.
    """
    if isinstance(error, SyntaxError):
        text = (error.text or "").strip()
        message = error.msg or ""
        if "print" in message or text.startswith(("print ", "exec ")) or "inconsistent use of tabs" in message.lower():
            return f"line {error.lineno}: {_CONVERT}"
        if "multiple exception types" in message or (text.startswith("except") and "," in text):
            return f"line {error.lineno}: write `except X as e`; {_CONVERT}"
        return ""
    if isinstance(error, ValueError | TypeError | OverflowError):
        return next((advice for part, advice in _NUMPY_CHANGES.items() if part in str(error)), "")
    if isinstance(error, NameError) and error.name in _PYTHON_2_NAMES:
        return f"{error.name} is Python 2's: {_PYTHON_2_NAMES[error.name]}"
    if isinstance(error, ModuleNotFoundError) and error.name in _PYTHON_2_MODULES:
        return f"{error.name} is Python 2's: {_PYTHON_2_MODULES[error.name]}"
    if isinstance(error, AttributeError) and getattr(error.obj, "__name__", "") == "urllib":
        home = "parse" if error.name in ("quote", "unquote", "urlencode", "quote_plus") else "request"
        return f"urllib.{error.name} is Python 2's: import urllib.{home} and write urllib.{home}.{error.name}"
    if isinstance(error, ImportError) and importer.is_ours(error.name or ""):
        return importer.why_not(str(error), error.name or "")
    if isinstance(error, AttributeError) and error.name in ("iteritems", "itervalues", "iterkeys", "has_key"):
        new = {"iteritems": "items()", "itervalues": "values()", "iterkeys": "keys()", "has_key": "`key in`"}
        return f"{error.name} is Python 2's: write {new[error.name]}"
    return ""
