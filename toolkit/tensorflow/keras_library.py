"""tf.keras: the Keras that is installed, where that is one of releases 2.0 to 2.2.

Keras is a library of its own, and the one in TensorFlow 1 was nearly its release 2.2. That runs on `import tensorflow`
as graphmill answers it, so `tf.keras.layers` is its `keras.layers`. Later releases ask TensorFlow for its Keras.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import re
from types import ModuleType

#: where TensorFlow 1 has Keras, the longer ones first
_ROOTS = (
    "contrib.keras.python.keras", "contrib.keras.python", "contrib.keras.api.keras", "contrib.keras.api",
    "contrib.keras", "python.keras._impl.keras", "python.keras._impl", "python.keras", "keras",
)  # fmt: skip
_RELEASES = re.compile(r"2\.[012](\.|$)")


@functools.cache
def is_installed() -> bool:
    """Whether a Keras is there that can be tf.keras."""
    try:
        return _RELEASES.match(importlib.metadata.version("keras")) is not None
    except importlib.metadata.PackageNotFoundError:
        return False


def name_of(dotted: str) -> str:
    """The module of Keras that a dotted name of TensorFlow's would be; "" where it is none."""
    for root in _ROOTS:
        if dotted == root or dotted.startswith(root + "."):
            return "keras" + dotted[len(root) :]
    return ""


def module(dotted: str) -> ModuleType | None:
    """The module of the installed Keras that a dotted name of TensorFlow's stands for, or None."""
    name = name_of(dotted)
    if not name or not is_installed():
        return None
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise
