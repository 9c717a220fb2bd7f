"""Python functions that nodes call while a step runs, by the token that their attribute `token` holds.

A graph keeps the functions that its nodes call; here they are only known as long as some graph does. A file has the
token alone, so whoever reads it finds nothing.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

from toolkit.client.construction.graph import Graph
from toolkit.forks import held_over_forks

_KEPT = "toolkit.client.functions.python_functions"
_numbers = itertools.count()
_lock = held_over_forks()
_known: weakref.WeakValueDictionary[str, PythonFunction] = weakref.WeakValueDictionary()


class PythonFunction:
    """A function as a node calls it.

    Attributes:
        call: takes an array for each input (a number or bytes for a scalar), returns what there is an output for.
        backward: takes the gradients of the outputs, returns those of the inputs; None: it has none.
    """

    def __init__(self, call: Callable[..., Any], backward: Callable[..., Any] | None = None):
        self.call = call
        self.backward = backward


def register(function: PythonFunction, graph: Graph) -> str:
    """A new token; the graph, or the one around it where it is a function's, keeps the function."""
    while (outer := getattr(graph, "outer", None)) is not None:
        graph = outer
    graph.extras.setdefault(_KEPT, []).append(function)
    with _lock:
        token = f"pyfunc_{next(_numbers)}"
        _known[token] = function
    return token


def find(token: str) -> PythonFunction | None:
    """The function of a token, while a graph of this process has it."""
    return _known.get(token)
