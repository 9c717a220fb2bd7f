# The arguments of TensorFlow's functions may be nested in any way, so `elements` says what they are, not types.
# pyright: basic
"""Parts of a graph: operations with what they take from outside and give to it, in an order that can be chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.graph_editor.elements import (
    can_be_regex,
    check_one_graph,
    filter_ops_from_regex,
    filter_ts_from_regex,
    get_consuming_ops,
    make_list_of_op,
    make_list_of_t,
    make_regex,
    takers,
    unique,
)  # fmt: skip
from toolkit.client.graph_editor.walks import compute_boundary_ts
from toolkit.errors import ArgumentTypeError, ArgumentValueError

_OF_TENSORS, _OF_OPERATIONS = "(?#ts)", "(?#ops)"


def select_ops(*args: Any, **kwargs: Any) -> list[Operation]:
    """Operations by themselves and by patterns in their names.

    Args:
        args: operations, lists of them, patterns.
        kwargs: graph, where patterns look; positive_filter, a function that says which of what they find;
            restrict_ops_regex, whether only patterns are meant that begin with (?#ops).

    Raises:
        ArgumentTypeError: something else is given.
        ArgumentValueError: a pattern has no graph.
    """
    known = _keywords(kwargs, "restrict_ops_regex")
    found: list[Operation] = []
    for each in args:
        if not can_be_regex(each):
            found += make_list_of_op(each)
            continue
        pattern = make_regex(each).pattern
        if pattern.startswith(_OF_TENSORS) or (known["restrict"] and not pattern.startswith(_OF_OPERATIONS)):
            continue
        accepts = known["filter"]
        found += [op for op in filter_ops_from_regex(_graph(known), each) if accepts is None or accepts(op)]
    return unique(found)


def select_ts(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Tensors by themselves and by patterns in their names; see `select_ops`. `restrict_ts_regex`: (?#ts)."""
    known = _keywords(kwargs, "restrict_ts_regex")
    found: list[Tensor] = []
    for each in args:
        if not can_be_regex(each):
            found += make_list_of_t(each)
            continue
        pattern = make_regex(each).pattern
        if pattern.startswith(_OF_OPERATIONS) or (known["restrict"] and not pattern.startswith(_OF_TENSORS)):
            continue
        accepts = known["filter"]
        of_graph = make_list_of_op(_graph(known))
        found += [t for t in filter_ts_from_regex(of_graph, each) if accepts is None or accepts(t)]
    return unique(found)


def _keywords(given: dict[str, Any], restriction: str) -> dict[str, Any]:
    graph = given.pop("graph", None)
    found = {"graph": graph, "filter": given.pop("positive_filter", None), "restrict": given.pop(restriction, False)}
    if given:
        raise ArgumentTypeError(f"unexpected argument {next(iter(given))!r}")
    if graph is not None and not isinstance(graph, Graph):
        raise ArgumentTypeError(f"graph: expected a graph, not {graph!r}")
    return found


def _graph(known: dict[str, Any]) -> Graph:
    if known["graph"] is None:
        raise ArgumentValueError("a pattern looks in a graph: say which, by graph=")
    return known["graph"]


def select_ops_and_ts(*args: Any, **kwargs: Any) -> tuple[list[Operation], list[Tensor]]:
    """Both: patterns mean operations unless they begin with (?#ts)."""
    graph = {key: kwargs[key] for key in ("graph",) if key in kwargs}
    accepts = {"positive_filter": kwargs["positive_filter"]} if kwargs.get("positive_filter") else {}
    ops = select_ops(*(_only(args, Operation)), **{**graph, **accepts})
    return ops, select_ts(*(_only(args, Tensor)), restrict_ts_regex=True, **{**graph, **accepts})


def _only(args: Iterable[Any], kind: type) -> list[Any]:
    other = make_list_of_op if kind is Operation else make_list_of_t
    ignored = {"ignore_ts": True} if kind is Operation else {"ignore_ops": True}
    found: list[Any] = []
    for each in args:
        if isinstance(each, Graph) and kind is Tensor:
            continue
        if isinstance(each, SubGraphView):
            found.append(each.ops if kind is Operation else each.passthroughs)
        else:
            found.append(each if can_be_regex(each) else other(each, **ignored))
    return found


class SubGraphView:
    """Operations of one graph, with inputs and outputs in an order.

    Attributes:
        inputs: what they take from other operations; then the tensors that are handed through.
        outputs: what they give to other operations, or to none; then those.
    """

    def __init__(self, inside_ops: Any = (), passthrough_ts: Any = ()):
        self._ops: list[Operation] = unique(make_list_of_op(inside_ops))
        through = make_list_of_t(passthrough_ts)
        self._graph = check_one_graph([*self._ops, *through])
        taken, given, kept = compute_boundary_ts(self._ops)
        ends = {*taken, *given, *kept}
        self._passthrough = unique(tensor for tensor in through if tensor not in ends)
        self._inputs = [*taken, *self._passthrough]
        self._outputs = [*given, *self._passthrough]

    def __bool__(self) -> bool:
        return self._graph is not None

    def __copy__(self) -> SubGraphView:
        return self.copy()

    def __iter__(self) -> Any:
        return iter(self._ops)

    def copy(self) -> SubGraphView:
        found = SubGraphView.__new__(SubGraphView)
        found.__dict__.update({key: list(v) if isinstance(v, list) else v for key, v in self.__dict__.items()})
        return found

    ops = property(lambda self: list(self._ops))
    inputs = property(lambda self: list(self._inputs))
    outputs = property(lambda self: list(self._outputs))
    passthroughs = property(lambda self: list(self._passthrough))
    graph = property(lambda self: self._graph)

    @property
    def connected_inputs(self) -> list[Tensor]:
        """The inputs that operations of it take."""
        return [tensor for tensor in self._inputs if not self.is_passthrough(tensor)]

    @property
    def connected_outputs(self) -> list[Tensor]:
        """The outputs that operations of it make."""
        return [tensor for tensor in self._outputs if not self.is_passthrough(tensor)]

    def is_passthrough(self, t: Tensor) -> bool:
        return t in self._passthrough

    def op(self, op_id: int) -> Operation:
        return self._ops[op_id]

    def find_op_by_name(self, op_name: str) -> Operation:
        """The operation of a name.

        Raises:
            ArgumentValueError: none of it is called so.
        """
        found = next((op for op in self._ops if op.name == op_name), None)
        if found is None:
            raise ArgumentValueError(f"there is no operation '{op_name}' in this part of the graph")
        return found

    def input_index(self, t: Tensor) -> int:
        """Which input a tensor is.

        Raises:
            ArgumentValueError: it is none.
        """
        return _index(self._inputs, t, "input")

    def output_index(self, t: Tensor) -> int:
        """Which output a tensor is; see `input_index`."""
        return _index(self._outputs, t, "output")

    def consumers(self) -> list[Operation]:
        """The operations outside that take an output."""
        return [op for op in get_consuming_ops(self._outputs) if op not in set(self._ops)]

    def remap_inputs(self, new_input_indices: Any) -> SubGraphView:
        """The same with its inputs in another order, without some; indices or tensors."""
        return self.remap(new_input_indices=new_input_indices)

    def remap_outputs(self, new_output_indices: Any) -> SubGraphView:
        """The same with its outputs in another order, without some, or some twice."""
        return self.remap(new_output_indices=new_output_indices)

    def remap(self, new_input_indices: Any = None, new_output_indices: Any = None) -> SubGraphView:
        found = self.copy()
        if new_input_indices is not None:
            found._inputs = _chosen(self._inputs, new_input_indices)
        if new_output_indices is not None:
            found._outputs = _chosen(self._outputs, new_output_indices)
        return found

    def remap_default(self, remove_input_map: bool = True, remove_output_map: bool = True) -> SubGraphView:
        """The same with the inputs and outputs that it has by itself."""
        found, fresh = self.copy(), SubGraphView(self._ops, self._passthrough)
        if remove_input_map:
            found._inputs = fresh._inputs
        if remove_output_map:
            found._outputs = fresh._outputs
        return found

    def remap_outputs_make_unique(self) -> SubGraphView:
        found = self.copy()
        found._outputs = unique(self._outputs)
        return found

    def remap_outputs_to_consumers(self) -> SubGraphView:
        """The same with each output as often as something outside takes it."""
        found, inside = self.remap_outputs_make_unique(), set(self._ops)
        found._outputs = [t for t in found._outputs for op in takers(t) if op not in inside]
        return found

    def remove_unused_ops(self, control_inputs: bool = True) -> SubGraphView:
        """The same without operations that no output needs."""
        from toolkit.client.graph_editor.walks import get_backward_walk_ops

        needed = set(get_backward_walk_ops(self.connected_outputs, within_ops=self._ops, control_inputs=control_inputs))
        found = self.copy()
        found._ops = [op for op in self._ops if op in needed]
        return found


def _index(tensors: list[Tensor], tensor: Tensor, what: str) -> int:
    for index, each in enumerate(tensors):
        if each is tensor:
            return index
    raise ArgumentValueError(f"'{tensor.name}' is no {what} of this part of the graph")


def _chosen(tensors: list[Tensor], wanted: Any) -> list[Tensor]:
    return [
        tensors[index] if isinstance(index, int) else tensors[_index(tensors, index, "end")]
        for index in (wanted if isinstance(wanted, Iterable) and not isinstance(wanted, Tensor) else [wanted])
    ]


def sgv(*args: Any, **kwargs: Any) -> SubGraphView:
    """A view of operations, tensors that are handed through, and what patterns find; see `select_ops`."""
    if len(args) == 1 and isinstance(args[0], SubGraphView):
        return args[0]
    return SubGraphView(*select_ops_and_ts(*args, **kwargs))


def sgv_scope(scope: str, graph: Graph) -> SubGraphView:
    """A view of what is inside of a name scope."""
    start = scope if not scope or scope.endswith("/") else scope + "/"
    return SubGraphView([op for op in graph.get_operations() if op.name.startswith(start)])
