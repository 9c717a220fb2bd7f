"""`import tensorflow` answered by graphmill, in this process, until it is undone.

The finder stands before all others, so an installed TensorFlow is neither loaded nor touched. Modules of it that were
imported before are put aside and come back with `uninstall`.

Programs import at their top what they need only with a flag: a debugger, a resolver of clusters. So a module of 1.15
that is not here can be imported, and says that it is not here when something of it is used.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from toolkit.tensorflow import keras_library, modules

_ROOT = "tensorflow"


class _Finder:
    """Answers `tensorflow` and what is below it; also the loader of what it finds."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        if name != _ROOT and not name.startswith(_ROOT + "."):
            return None
        dotted = name.removeprefix(_ROOT).lstrip(".")
        if keras_library.module(modules.actual(dotted)) is not None:
            return importlib.machinery.ModuleSpec(name, _instead, is_package=True)  # type: ignore[arg-type]
        if not modules.is_module(dotted) and not _can_wait(dotted):
            return None if _is_value(dotted) else _refuse(name, dotted)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> ModuleType:
        dotted = modules.actual(spec.name.removeprefix(_ROOT).lstrip("."))
        return modules.module(dotted)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Instead:
    """The loader of modules that are Keras's: what is imported is that module itself."""

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put Keras's module in the place of the new one, as Python's import lets a loader."""
        found = keras_library.module(modules.actual(module.__name__.removeprefix(_ROOT).lstrip(".")))
        assert found is not None
        sys.modules[module.__name__] = found


def _is_value(dotted: str) -> bool:
    """Whether a dotted name is there but no module: then Python's own message fits."""
    from toolkit.tensorflow import names

    return names.find(dotted) is not names.ABSENT


def _can_wait(dotted: str) -> bool:
    """Whether 1.15 has a module of this name, which may never be used."""
    from toolkit.tensorflow import internal

    return not _is_value(dotted) and modules.actual(dotted) in internal.all_modules()


def _refuse(name: str, dotted: str) -> None:
    from toolkit.tensorflow import names

    raise ModuleNotFoundError(names.absent(dotted), name=name)


_finder = _Finder()
_instead = _Instead()
_aside: dict[str, ModuleType] = {}


def is_ours(name: str) -> bool:
    return name == _ROOT or name.startswith(_ROOT + ".")


def why_not(told: str, module: str) -> str:
    """Why a name cannot be imported from a module of ours, from what Python said; "" where it said something else."""
    import re

    from toolkit.tensorflow import names

    found = re.match(r"cannot import name '(\w+)'", told)
    if found is None:
        return ""
    return names.absent(modules.actual(f"{module}.{found[1]}".removeprefix(_ROOT).lstrip(".")))


def install() -> None:
    """Answer `import tensorflow` from now on."""
    if _finder in sys.meta_path:
        return
    _aside.update({name: found for name, found in sys.modules.items() if is_ours(name)})
    for name in _aside:
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Leave `import tensorflow` to whatever is installed, with its modules as they were."""
    if _finder not in sys.meta_path:
        return
    sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if is_ours(name)]:
        del sys.modules[name]
    sys.modules.update(_aside)
    _aside.clear()


@contextmanager
def installed() -> Generator[None]:
    """`install` inside the block."""
    install()
    try:
        yield
    finally:
        uninstall()
