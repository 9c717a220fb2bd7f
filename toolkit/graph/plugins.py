"""Loading plugins: Python files or installed entry points that register ops, kernels, shapes and gradients.

A plugin is an ordinary module. What it does when it is imported is what counts: it calls the registration functions
that our own families use, all of which `toolkit.kernels.plugins` gathers. This module only finds and imports
plugins, each once in a process, and says in one line what is wrong with one; it imports nothing by itself.

Installed packages offer plugins as entry points of the group `graphmill.plugins`. These are imported by name
(`--plugin NAME`), or all of them at the first op, kernel or gradient that is asked for and not known.

Files say which plugin an op comes from: whoever writes a node of such an op gives it the attribute `_plugin`, the name
of the plugin's file or of the installed plugin. TensorFlow keeps it, as it does every attribute whose name begins with
an underscore. A later command without that plugin says its name. It imports it by itself only out of folders that the
user named for that, with `--plugin FOLDER` or in the environment variable GRAPHMILL_PLUGINS.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toolkit.errors import GraphmillError, UsageError, did_you_mean
from toolkit.forks import held_over_forks

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "graphmill.plugins"
#: the environment variable with folders, as in PATH, of plugins that files may ask for
FOLDERS = "GRAPHMILL_PLUGINS"
#: where an op comes from that nobody knows; ends the message about it
CUSTOM_OP_HINT = "a custom op needs a plugin that defines it (--plugin FILE.py)"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that was imported: its file or entry point's name, and the module."""

    name: str
    module: ModuleType


_lock = held_over_forks()
_loaded: dict[str, Plugin] = {}
_importing: list[tuple[str, str]] = []
_folders: list[Path] = []
_installed_are_loaded = False


def load(name: str) -> Plugin:
    """Import a plugin, if that did not happen yet: a Python file, or an entry point's name.

    Raises:
        UsageError: there is no such file or entry point, or it is a compiled library.
        GraphmillError: it failed while it was imported; with its file and line.
    """
    if name.endswith((".so", ".dylib", ".dll")):
        raise UsageError(
            "a compiled op library holds TensorFlow's kernels, which need TensorFlow; "
            "write a plugin in Python that defines its ops and kernels",
            file=name,
        )
    path = Path(name)
    if path.suffix == ".py" or path.is_file():
        return _load_file(path)
    known = {entry.name: entry for entry in _entry_points()}
    if name in known:
        return _load_entry_point(known[name])
    if path.is_dir():
        raise UsageError("a plugin is a Python file, and this is a folder of them (allow)", file=name)
    installed = f"; installed plugins: {', '.join(sorted(known))}" if known else ""
    hint = did_you_mean(name, known) or installed
    raise UsageError(f"there is no plugin '{name}': it is neither a Python file nor an installed plugin{hint}")


def is_installed(name: str) -> bool:
    """Whether an installed package offers a plugin of this name."""
    return any(entry.name == name for entry in _entry_points())


def load_installed() -> bool:
    """Import the plugins of all installed packages, once; returns whether that added any.

    Raises:
        GraphmillError: one of them failed.
    """
    global _installed_are_loaded
    with _lock:
        if _installed_are_loaded or _importing:
            return False
        _installed_are_loaded = True
        before = len(_loaded)
        for entry in _entry_points():
            _load_entry_point(entry)
        return len(_loaded) > before


def loaded() -> list[Plugin]:
    """The plugins of this process, in the order they were imported."""
    return list(_loaded.values())


def importing() -> str | None:
    """The plugin that is being imported, whose registrations are made now; else None."""
    return _importing[-1][0] if _importing else None


def importing_name() -> str | None:
    """What files call the plugin that is being imported: its file's name without folders, or the installed name."""
    return _importing[-1][1] if _importing else None


def allow(folder: str) -> None:
    """Have plugins of a folder imported when a file says that an op comes from one of them."""
    path = Path(folder).resolve()
    if path not in _folders:
        _folders.append(path)


def folders() -> list[Path]:
    """The folders whose plugins files may ask for: those of `allow`, then those of the environment."""
    named = [Path(each).resolve() for each in os.environ.get(FOLDERS, "").split(os.pathsep) if each]
    return list(dict.fromkeys([*_folders, *named]))


def bring(name: str) -> bool:
    """Import a plugin that a file asks for, out of the folders that the user named; returns whether there is one.

    Args:
        name: from the file; no other than the bare name of a Python file is looked for.

    Raises:
        GraphmillError: it failed while it was imported.
    """
    if not name.endswith(".py") or Path(name).name != name or not name.isprintable():
        return False
    for folder in folders():
        if (folder / name).is_file():
            _load_file(folder / name)
            return True
    return False


def registers(function: Callable[..., Any]) -> bool:
    """Whether a function that is being registered is a plugin's, not ours that the plugin's imports pulled in."""
    return bool(_importing) and not function.__module__.startswith("toolkit.")


def _load_file(path: Path) -> Plugin:
    if not path.is_file():
        raise UsageError("there is no such plugin file", file=str(path))
    resolved = str(path.resolve())
    with _lock:
        if resolved not in _loaded:
            module = _imported_already(resolved)
            _loaded[resolved] = Plugin(str(path), module or _run(path, resolved))
        return _loaded[resolved]


def _imported_already(resolved: str) -> ModuleType | None:
    """The module of this file when a program imported it by its own name."""
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if isinstance(module, ModuleType) else None  # lazy modules stay lazy
        if isinstance(file, str) and file.endswith(Path(resolved).name) and str(Path(file).resolve()) == resolved:
            return module
    return None


def _run(path: Path, resolved: str) -> ModuleType:
    module_name = f"graphmill_plugin_{path.stem}_{len(_loaded)}"
    # the loader is named, so that a plugin need not end in .py
    loader = importlib.util.spec_from_loader(module_name, _source_loader(module_name, resolved))
    assert loader is not None and loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    module.__file__ = resolved
    sys.modules[module_name] = module
    sys.path.insert(0, str(Path(resolved).parent))  # a plugin may import modules beside it
    try:
        with _guard(str(path), [resolved, str(path)], path.name):
            loader.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    finally:
        sys.path.remove(str(Path(resolved).parent))
    return module


def _source_loader(name: str, path: str) -> Any:
    from importlib.machinery import SourceFileLoader

    return SourceFileLoader(name, path)


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _load_entry_point(entry: EntryPoint) -> Plugin:
    key = f"{GROUP}:{entry.value}"
    with _lock:
        if key not in _loaded:
            package = f" of {entry.dist.name}" if entry.dist is not None else ""
            with _guard(f"plugin '{entry.name}'{package}", [], entry.name):
                found = entry.load()
                # an entry point may name a function that registers, instead of a module that does
                if callable(found):
                    found()
            module = sys.modules[entry.module]
            _loaded[key] = Plugin(entry.name, module)
        return _loaded[key]


@contextmanager
def _guard(where: str, files: list[str], name: str) -> Generator[None]:
    """Turn whatever a plugin raises into one line with the place in its own code."""
    _importing.append((where, name))
    try:
        yield
    except SyntaxError as error:
        place = error.filename if error.filename and error.filename not in files else where
        raise GraphmillError(
            f"the plugin is not valid Python: {error.msg}", file=f"{place}:{error.lineno or 1}"
        ) from None
    except GraphmillError as error:
        raise GraphmillError(str(error), file=_place(where, files, error)) from error
    except Exception as error:
        what = f"the plugin failed: {type(error).__name__}: {error}"
        raise GraphmillError(what, file=_place(where, files, error)) from error
    finally:
        _importing.pop()


def _place(where: str, files: list[str], error: BaseException) -> str:
    """FILE:LINE of the innermost frame in the plugin's own file, else in what is neither ours nor Python's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f.lineno for f in frames if f.filename in files]
    if files:
        return f"{where}:{own[-1]}" if own else where
    ours = str(Path(__file__).resolve().parent.parent)
    foreign = [f for f in frames if not f.filename.startswith((ours, "<frozen")) and "importlib" not in f.filename]
    return f"{where}: {foreign[-1].filename}:{foreign[-1].lineno}" if foreign else where
