"""A Python function, called once with stand-ins for its arguments, becomes a function of the graph's library."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.functions.definition import function_def, name_ends
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.ordering import put_in_order
from toolkit.client.structures import nest
from toolkit.errors import UsageError
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: an argument of a function: its name, type and shape
Argument = tuple[str, DType, Shape]

_numbers = itertools.count()
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass
class TracedFunction:
    """A function of a graph's library that was made by calling a Python function.

    Attributes:
        name: in the library of the graph around.
        graph: what the Python function made.
        results: the tensors it returned, flat.
        structure: what it returned, with tensors in place of values.
        captured: tensors of the graph around that a call gives after the arguments.
        is_stateful: an operation in it has a state.
    """

    name: str
    graph: FunctionGraph
    results: list[Tensor]
    structure: Any
    captured: list[Tensor]
    is_stateful: bool

    @property
    def ref(self) -> FuncRef:
        return FuncRef(self.name)

    @property
    def result_types(self) -> list[DType]:
        return [tensor.dtype.base for tensor in self.results]

    @property
    def result_shapes(self) -> list[Shape]:
        return [tensor.static_shape for tensor in self.results]


def function_name(python_function: Any, prefix: str = "") -> str:
    """A name for the function that a Python function becomes, which no other has in this process."""
    own = getattr(python_function, "__name__", type(python_function).__name__)
    return f"__inference_{prefix}{_NO_NAME.sub('', own)}_{next(_numbers)}"


def trace(
    python_function: Callable[..., Any],
    arguments: Sequence[Argument],
    *,
    name: str | None = None,
    call: Callable[[FunctionGraph, list[Tensor]], Any] | None = None,
    convert: Callable[[Any], list[Tensor]] | None = None,
    graph: FunctionGraph | None = None,
    in_order: bool = True,
    hand_on: bool = True,
    attrs: Mapping[str, Any] | None = None,
) -> TracedFunction:
    """Add a Python function to the default graph's library.

    Args:
        name: of the function; default: made of the Python function's.
        call: calls the Python function with the arguments' tensors in the structure that it expects; default: one
            after another.
        convert: what it returned as a list of tensors; default: the leaves of lists, tuples and mappings.
        graph: where to make it; default: a graph that captures what is used of the graph around.
        in_order: operations with effects run one after the other, and run whether or not a result needs them.
        hand_on: results go through Identity operations, which name them.
        attrs: attributes of the function.

    Raises:
        UsageError: `python_function` is no function.
        GraphError: what it returned cannot become tensors.
    """
    if not callable(python_function):
        raise UsageError(f"{python_function!r} is no function; give one that takes and returns tensors")
    outer = get_default_graph()
    inner = FunctionGraph(name or function_name(python_function), outer) if graph is None else graph
    with inner.as_default():
        tensors = [inner.argument(*argument) for argument in arguments]
        returned = call(inner, tensors) if call is not None else python_function(*tensors)
        results = (convert or _flat_tensors)(returned)
        results = [inner.capture(tensor) for tensor in results]
        if hand_on:
            results = [array_ops.identity(tensor) for tensor in results]
        controls = _ordered(inner, results) if in_order else []
    return define(inner, results, returned, controls, attrs or {})


def _flat_tensors(returned: Any) -> list[Tensor]:
    if returned is None or isinstance(returned, Operation):
        return []
    return [
        convert_to_tensor(leaf)
        for leaf in nest.flatten(returned)
        if leaf is not None and not isinstance(leaf, IndexedSlices | Operation)
    ]


def _ordered(graph: FunctionGraph, results: list[Tensor]) -> list[Operation]:
    """Effects in order; results wait for them."""
    controls = put_in_order(graph.get_operations())
    if controls:
        with graph.control_dependencies(controls):
            done = ops.no_op()
        for tensor in results:
            tensor.op.add_control_inputs([done])
    return controls


def define(
    graph: FunctionGraph, results: list[Tensor], returned: Any, controls: list[Operation], attrs: Mapping[str, Any]
) -> TracedFunction:
    """Add what a graph has made to the library: the function from its arguments and captures to `results`."""
    given = [*graph.args, *(tensor for tensor in graph.captured.values() if tensor.op.type == "Placeholder")]
    sources = [
        *(tensor.op.name for tensor in graph.args),
        *(outer.op.name for outer, inner in graph.captured.items() if inner.op.type == "Placeholder"),
    ]
    captured = [outer for outer, inner in graph.captured.items() if inner.op.type == "Placeholder"]
    skipped = {tensor.op for tensor in given}
    operations = [op for op in graph.get_operations() if op not in skipped]
    args, named = name_ends(given, results)
    definition = function_def(graph.name, operations, args, named, controls=controls)
    for key, value in attrs.items():
        definition.attr[key].CopyFrom(encode(value))
    for i, (tensor, source) in enumerate(zip(given, sources, strict=True)):
        described = definition.arg_attr[i].attr
        encode(source.encode(), described["_user_specified_name"])
        if tensor.dtype.base.name not in ("resource", "variant"):
            encode([tensor.static_shape], described["_output_shapes"])
    graph.core.library.add(definition)
    return TracedFunction(graph.name, graph, results, returned, captured, definition.signature.is_stateful)
