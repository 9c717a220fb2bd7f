"""Module objects for TensorFlow's modules: `tf`, `tf.nn`, `tf.contrib.rnn`, `tensorflow.python.framework.ops`.

Attributes are looked up when they are first asked for, and kept. The objects are the same whether one comes from
`toolkit.tensorflow` or from `import tensorflow` (see `importer`).
"""

from __future__ import annotations

import functools
import types
from typing import Any

from toolkit.tensorflow import keras_library
from toolkit.tensorflow.tables import spellings

#: what `tf.__version__` says: the last release of TensorFlow 1, whose programs these are
VERSION = "1.15.5"


class LazyModule(types.ModuleType):
    """One module of TensorFlow's.

    Attributes:
        dotted: its name without "tensorflow."; "" is the root.
    """

    def __init__(self, dotted: str):
        super().__init__(f"tensorflow.{dotted}" if dotted else "tensorflow", "TensorFlow 1's names, by graphmill.")
        self.dotted = dotted
        self.__path__ = []  # it may have modules inside

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            if name == "__version__" and not self.dotted:
                return VERSION
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        value = attribute(self.dotted, name)
        _own(self)[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """As for any module; but Python's binding of an imported module does not replace a function of its name."""
        if not (isinstance(value, LazyModule) and value.dotted in spellings.HIDDEN_MODULES):
            super().__setattr__(name, value)

    @property
    def __dict__(self) -> dict[str, Any]:
        """All its names with their values, a copy, for programs that go over a module and for `import *`.

        Who asks for all has chosen none: the deprecated ones are loaded without a warning.
        """
        from toolkit.tensorflow import names

        own = _own(self)
        for name in names.below(self.dotted):
            if name not in own:
                own[name] = attribute(self.dotted, name, warn=False)
        return {name: value for name, value in own.items() if name != "dotted"}

    def __dir__(self) -> list[str]:
        from toolkit.tensorflow import names

        return sorted({*_own(self), *names.below(self.dotted)})

    def __repr__(self) -> str:
        return f"<module '{self.__name__}' of graphmill>"


def _own(found: types.ModuleType) -> dict[str, Any]:
    """The dictionary in which a module keeps what it has been asked for."""
    slot: Any = vars(types.ModuleType)["__dict__"]  # the property of LazyModule hides it
    return slot.__get__(found)


#: modules that are others by another name
_SAME = {"compat.v1": "", "_api.v1": "", "app.flags": "flags"}


@functools.cache
def module(dotted: str) -> LazyModule:
    """The module of a dotted name; there is one object for each."""
    return LazyModule(dotted)


def actual(dotted: str) -> str:
    """The module that a dotted name is really about: compat.v1.nn is nn."""
    for prefix, other in _SAME.items():
        if dotted == prefix:
            return other
        if dotted.startswith(prefix + "."):
            rest = dotted[len(prefix) + 1 :]
            return f"{other}.{rest}" if other else rest
    return dotted


def is_module(dotted: str) -> bool:
    """Whether TensorFlow has a module of that name, here."""
    from toolkit.tensorflow import names

    found = actual(dotted)
    return not found or dotted == "compat" or names.is_module(found)


def attribute(dotted: str, name: str, *, warn: bool = True) -> Any:
    """What a module has under a name: another module, or what the tables say.

    Args:
        warn: say, once, where the name is deprecated.

    Raises:
        AttributeError: nothing; see `names.resolve`.
    """
    from toolkit.tensorflow import names

    full = actual(f"{dotted}.{name}" if dotted else name)
    if not full:
        return module("")
    if name == "keras" and (found := keras_library.module(full)) is not None:
        return found
    if full in spellings.HIDDEN_MODULES:
        return names.resolve(spellings.HIDDEN_MODULES[full], warn=warn)
    if full == "compat" or names.is_module(full):
        return module(full)
    return names.resolve(full, warn=warn)
