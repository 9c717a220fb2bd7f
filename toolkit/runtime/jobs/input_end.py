"""Whether OUT_OF_RANGE says that the input has ended, or that an index is wrong.

TensorFlow has one status for both: an iterator or a queue without further elements, and CropAndResize whose box names
an image that is not there. The first is how runs end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from toolkit.errors import OutOfRangeError
from toolkit.graph import dtypes, opdefs
from toolkit.graph.graph import Graph

_HANDLES = (dtypes.resource, dtypes.variant)


class _MistakeError(Exception):
    """Carries an OUT_OF_RANGE that is no end past a session that would take it for one."""

    def __init__(self, error: OutOfRangeError):
        super().__init__(error)
        self.error = error


@contextmanager
def mistakes_raised() -> Generator[None]:
    """Around a session that ends without a word at OUT_OF_RANGE: raise those that are no end of the input."""
    try:
        yield
    except _MistakeError as carried:
        raise carried.error from None


@contextmanager
def mistakes_told_apart(graph: Graph) -> Generator[None]:
    """Around a step of such a session."""
    try:
        yield
    except OutOfRangeError as error:
        if is_end_of_input(graph, error):
            raise
        raise _MistakeError(error) from None


def is_end_of_input(graph: Graph, error: OutOfRangeError) -> bool:
    """Whether what failed may have come to the end of an input; so it is where it is not known what failed.

    Args:
        graph: whose step has failed.
    """
    ops = list(_ops_called(graph, error.node or ""))
    return not ops or any(_has_state(graph, op) for op in ops)


def _ops_called(graph: Graph, name: str) -> Iterator[str]:
    """The ops of the nodes of a name, in the graph and in its functions."""
    node = graph.get(name)
    if node is not None:
        yield node.op
    for function in graph.library:
        yield from (each.op for each in graph.library.function(function).node_def if each.name == name)


def _has_state(graph: Graph, op: str) -> bool:
    """Whether an op remembers something, or takes what does: an iterator, a queue, a reader."""
    definition = opdefs.find(op)
    if op in graph.library or definition is None:
        return True
    return definition.is_stateful or definition.takes_refs or any(arg.type in _HANDLES for arg in definition.inputs)
