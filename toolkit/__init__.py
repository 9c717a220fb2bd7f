"""graphmill's library: TensorFlow's graph lifecycle without TensorFlow.

The names below load their modules on first use, so `import toolkit` is free.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.errors import GraphmillError, OpError
    from toolkit.formats.models.model import Model, read_graph, read_model, write_model
    from toolkit.graph.graph import Graph
    from toolkit.runtime.session import InteractiveSession, Session

_HOMES = {
    "Graph": "toolkit.graph.graph",
    "GraphmillError": "toolkit.errors",
    "InteractiveSession": "toolkit.runtime.session",
    "Model": "toolkit.formats.models.model",
    "OpError": "toolkit.errors",
    "Session": "toolkit.runtime.session",
    "read_graph": "toolkit.formats.models.model",
    "read_model": "toolkit.formats.models.model",
    "write_model": "toolkit.formats.models.model",
}

__all__ = [
    "Graph", "GraphmillError", "InteractiveSession", "Model", "OpError", "Session",
    "read_graph", "read_model", "write_model",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolkit' has no attribute '{name}'")
    return getattr(importlib.import_module(home), name)
