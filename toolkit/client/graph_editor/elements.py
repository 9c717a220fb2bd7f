# The arguments of TensorFlow's functions may be nested in any way, so `_listed` says what they are, not types.
# pyright: basic
"""Operations and tensors out of what programs hand over: one, a list of them, a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from toolkit.client.construction import context
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.errors import ArgumentTypeError, ArgumentValueError, UsageError


def make_list_of_op(ops: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ts: bool = False) -> list[Any]:
    """The operations of a graph, of one or of a list.

    Args:
        check_graph: all are of one graph.
        allow_graph: a graph stands for its operations.
        ignore_ts: tensors are left out; else they are refused.

    Raises:
        ArgumentTypeError: something else is there.
        ArgumentValueError: they are of several graphs.
    """
    if isinstance(ops, Graph) and allow_graph:
        return ops.get_operations()
    return _listed(ops, Operation, Tensor if ignore_ts else None, check_graph)


def make_list_of_t(ts: Any, check_graph: bool = True, allow_graph: bool = True, ignore_ops: bool = False) -> list[Any]:
    """The tensors of a graph, of one or of a list; see `make_list_of_op`."""
    if isinstance(ts, Graph) and allow_graph:
        return get_tensors(ts)
    return _listed(ts, Tensor, Operation if ignore_ops else None, check_graph)


def plain(given: Any) -> Any:
    """The tensor or operation that something stands for, as variables do; anything else as it is."""
    return given.graph_element() if hasattr(given, "graph_element") else given


def _listed(given: Any, kind: type, ignored: type | None, check_graph: bool) -> list[Any]:
    several = isinstance(given, Iterable) and not isinstance(given, Tensor | str)
    found: list[Any] = []
    for each in given if several else [given]:
        element = plain(each)
        if isinstance(element, kind):
            found.append(element)
        elif ignored is None or not isinstance(element, ignored):
            raise ArgumentTypeError(f"expected {kind.__name__}, or a list of such, not {element!r}")
    if check_graph:
        check_one_graph(found)
    return found


def check_one_graph(elements: Iterable[Any]) -> Any:
    """The graph that all elements are in, None of none.

    Raises:
        ArgumentValueError: there are several.
    """
    graphs = {id(each.graph): each.graph for each in elements}
    if len(graphs) > 1:
        raise ArgumentValueError("the operations and tensors are of several graphs; an edit is of one")
    return next(iter(graphs.values()), None)


def unique(elements: Iterable[Any]) -> list[Any]:
    """Elements once each, in the order in which they come first."""
    return list({id(each): each for each in elements}.values())


def get_tensors(graph: Any) -> list[Tensor]:
    """All tensors of a graph, in the order of its operations.

    Raises:
        ArgumentTypeError: this is no graph.
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"expected a graph, not {graph!r}")
    return [tensor for op in graph.get_operations() for tensor in op.outputs]


_TAKERS = __name__ + ".takers"


def takers(tensor: Tensor) -> list[Operation]:
    """The operations that take a tensor, in graph order: `Tensor.consumers`, which goes over the whole graph, from a
    table that is made again when the graph has changed."""
    graph = tensor.graph
    version, table = graph.extras.get(_TAKERS, (None, {}))
    if version != graph.core.version:
        table = {}
        for op in graph.get_operations():
            for end in op.node.inputs:
                table.setdefault((end.node.id, end.index), []).append(op)
        graph.extras[_TAKERS] = (graph.core.version, table)
    return table.get((tensor.op.node.id, tensor.value_index), [])


def get_generating_ops(ts: Any) -> list[Operation]:
    """What makes tensors."""
    return [tensor.op for tensor in make_list_of_t(ts, allow_graph=False)]


def get_consuming_ops(ts: Any) -> list[Operation]:
    """What takes tensors, once each."""
    return unique(op for tensor in make_list_of_t(ts, allow_graph=False) for op in takers(tensor))


class ControlOutputs:
    """Which operations wait for which, of one graph at one time; `update` looks again."""

    def __init__(self, graph: Any):
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(f"expected a graph, not {graph!r}")
        self._graph = graph
        self._waiting: dict[Operation, list[Operation]] = {}
        self._version = -1
        self.update()

    def update(self) -> ControlOutputs:
        """Look again, where the graph has changed."""
        if self._graph.core.version != self._version:
            self._version = self._graph.core.version
            self._waiting = {}
            for op in self._graph.get_operations():
                for waited in op.control_inputs:
                    self._waiting.setdefault(waited, []).append(op)
        return self

    def get_all(self) -> dict[Operation, list[Operation]]:
        return self._waiting

    def get(self, op: Operation) -> list[Operation]:
        """The operations that wait for one."""
        return self._waiting.get(op, [])

    @property
    def graph(self) -> Graph:
        return self._graph


def can_be_regex(obj: Any) -> bool:
    """Whether this is a pattern, or a text that is one."""
    return isinstance(obj, str | re.Pattern)


def make_regex(obj: Any) -> re.Pattern[str]:
    """The pattern.

    Raises:
        ArgumentValueError: it is none.
    """
    if not can_be_regex(obj):
        raise ArgumentValueError(f"expected a pattern, not {obj!r}")
    return re.compile(obj)


def filter_ops(ops: Any, positive_filter: Callable[[Any], Any] | bool) -> list[Operation]:
    """The operations that a function says yes to; all with True."""
    found = make_list_of_op(ops)
    return found if positive_filter is True else [op for op in found if positive_filter(op)]  # type: ignore[operator]


def filter_ops_from_regex(ops: Any, regex: Any) -> list[Operation]:
    """The operations in whose names a pattern is found."""
    search = make_regex(regex).search
    return filter_ops(ops, lambda op: search(op.name))


def filter_ts(ops: Any, positive_filter: Callable[[Any], Any] | bool) -> list[Tensor]:
    """What operations take, then what they give, once each, if a function says yes to it; all with True."""
    listed = make_list_of_op(ops)
    found = unique([t for op in listed for t in op.inputs] + [t for op in listed for t in op.outputs])
    return found if positive_filter is True else [t for t in found if positive_filter(t)]  # type: ignore[operator]


def filter_ts_from_regex(ops: Any, regex: Any) -> list[Tensor]:
    """What operations take and give, if a pattern is found in its name."""
    search = make_regex(regex).search
    return filter_ts(ops, lambda tensor: search(tensor.name))


def get_name_scope_ops(ops: Any, scope: str) -> list[Operation]:
    """The operations inside of a name scope."""
    start = scope if not scope or scope.endswith("/") else scope + "/"
    return [op for op in make_list_of_op(ops) if op.name.startswith(start)]


def placeholder_name(t: Any = None, scope: str | None = None, prefix: str = "geph") -> str:
    """What a placeholder for a tensor is called: in the tensor's scope, if none is given.

    Raises:
        UsageError: the scope is no text.
    """
    if scope is not None and not isinstance(scope, str):
        raise UsageError(f"scope is a text, not {scope!r}")
    folder = "" if scope is None else scope.rstrip("/")
    if t is None:
        return f"{folder}/{prefix}" if folder else prefix
    tensor = make_list_of_t(t)[0]
    own, _, short = tensor.op.name.rpartition("/")
    folder = own if scope is None else folder
    name = f"{prefix}__{short}_{tensor.value_index}"
    return f"{folder}/{name}" if folder else name


def make_placeholder_from_tensor(t: Any, scope: str | None = None, prefix: str = "geph") -> Tensor:
    """A placeholder of the type and shape of a tensor, in the default graph."""
    return ph(t.dtype, t.get_shape(), scope=placeholder_name(t, scope=scope, prefix=prefix), prefix="")


def ph(dtype: Any, shape: Any = None, scope: str | None = None, prefix: str = "geph") -> Tensor:
    """A placeholder, whose name begins at the root."""
    from toolkit.client.arrays.array_ops import placeholder

    name = placeholder_name(scope=scope, prefix=prefix).rstrip("/")
    with context.get_default_graph().name_scope(None):
        return placeholder(dtype, shape, name=name)
