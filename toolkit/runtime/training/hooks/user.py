"""Hooks from a user's file (`graphmill run --hook FILE.py`)."""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from toolkit.errors import UsageError
from toolkit.runtime.training.hooks.base import Hook


def load_hooks(file: str) -> list[Hook]:
    """The hooks a Python file defines.

    It may define `hooks()`, which returns them; else every subclass of `Hook` in it is made without arguments.

        from toolkit.runtime.training.hooks import Hook

        class Beep(Hook):
            def end(self, session, step):
                print("done at", step)

    Raises:
        UsageError: the file cannot be read or run, or defines no hooks.
    """
    path = Path(file)
    if path.is_dir():
        raise UsageError("is a folder; hooks are read from a .py file", file=file)
    if not path.is_file():
        raise UsageError("there is no such file", file=file)
    spec = importlib.util.spec_from_file_location(f"graphmill_hooks_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError("not a Python file; hooks are read from a .py file", file=file)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        made: Any = module.hooks() if hasattr(module, "hooks") else _make_all(module)
        found: list[Any] = list(cast("Iterable[Any]", made)) if isinstance(made, Iterable) else [made]
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(f"line {where.lineno}: {type(error).__name__}: {error}", file=file) from error
    if not found:
        raise UsageError("it defines no hooks; define hooks() or a subclass of Hook", file=file)
    for hook in found:
        if not isinstance(hook, Hook):
            raise UsageError(f"hooks() gave {hook!r}, which is not a Hook", file=file)
    return found


def _make_all(module: Any) -> list[Hook]:
    values: list[Any] = list(module.__dict__.values())
    return [
        value()
        for value in values
        if inspect.isclass(value)
        and issubclass(value, Hook)
        and value is not Hook
        and value.__module__ == module.__name__
    ]
