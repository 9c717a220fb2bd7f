"""TensorFlow 1's Python API, without TensorFlow: names, signatures, defaults, in front of client and runtime.

    from toolkit import tensorflow as tf

or, in a process that `importer.install()` was called in (`graphmill python` does), `import tensorflow as tf` in any of
its spellings. Nothing is loaded before it is asked for. ARCHITECTURE.md, "TensorFlow's names", says how to add one.
"""

from __future__ import annotations

from typing import Any

from toolkit.tensorflow.modules import VERSION, attribute, module

__version__ = VERSION


#: modules of this package that are no names of TensorFlow's
_OWN = frozenset({"api", "deprecation", "families", "generated", "importer", "modules", "names", "tables"})


def __getattr__(name: str) -> Any:
    if name.startswith("__") or name in _OWN:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    value = attribute("", name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return dir(module(""))
