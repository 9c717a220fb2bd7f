"""Gradients that a program gives itself: by name for `gradient_override_map`, or for one function."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.structures import nest
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.by_collection import global_variables, local_variables
from toolkit.errors import GraphError, UsageError

F = TypeVar("F", bound=Callable[..., Any])
_numbers = itertools.count()


class RegisterGradient:
    """`@RegisterGradient("Name")` registers a gradient function for an op type, or for a name that
    `Graph.gradient_override_map` uses.

    Raises:
        UsageError: the name is no string.
        GraphError: there is a gradient of this name already.
    """

    def __init__(self, op_type: str):
        if not isinstance(cast("Any", op_type), str):
            raise UsageError(f"RegisterGradient takes the name of an op, not {op_type!r}")
        self._op_type = op_type

    def __call__(self, f: F) -> F:
        gradient(self._op_type)(f)
        return f


def NotDifferentiable(op_type: str) -> None:  # noqa: N802 - TensorFlow's name
    """Say that nothing flows back through an op type.

    Raises:
        UsageError: the name is no string.
        GraphError: it has a gradient.
    """
    if not isinstance(cast("Any", op_type), str):
        raise UsageError(f"NotDifferentiable takes the name of an op, not {op_type!r}")
    no_gradient(op_type)


NoGradient = NotDifferentiable


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """A function whose gradient is the one it returns beside its result.

    `f(*tensors)` returns a result (a tensor or a structure) and `grad_fn`, which gets the gradients of the result's
    tensors and returns one for each argument. When `f` uses resource variables, `grad_fn` takes `variables=` and
    returns a second list, one gradient for each of them. In the graph, an IdentityN stands behind results, arguments
    and variables, as TensorFlow makes it.

    Raises:
        UsageError: keywords are given, or `grad_fn` does not take the variables.
        GraphError: a reference variable is made inside; the numbers of gradients are wrong.
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return _call(f, args, kwargs)

    return decorated


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the gradient of the identity: what comes in goes back unchanged."""

    @custom_gradient
    def passing(*args: Any) -> Any:
        def grad_fn(*grads: Any, variables: Sequence[Any] | None = None) -> Any:
            unused = [None] * len(variables) if variables is not None else None
            back = grads[0] if len(grads) == 1 else list(grads)
            return back if unused is None else (back, unused)

        return f(*args), grad_fn

    return passing


def _call(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    name_of = getattr(f, "__name__", "the function")
    if kwargs:
        raise UsageError(f"{name_of} with a custom gradient takes no keyword arguments; give {sorted(kwargs)} in order")
    graph = get_default_graph()
    # what a function takes of the graph around is an argument of it, and differentiated as one
    given = nest.map_structure(convert_to_tensor, args)
    if graph.building_function:
        given = nest.map_structure(graph.capture, given)
    flat_args: list[Tensor] = nest.flatten(given)
    before = {*global_variables(), *local_variables()}
    made: Any = f(*given)
    if not isinstance(made, tuple) or len(cast("Any", made)) != 2 or not callable(cast("Any", made)[1]):
        raise UsageError(f"{name_of} must return its result and a function of gradients")
    result, grad_fn = cast("tuple[Any, Any]", made)
    flat_result = [convert_to_tensor(leaf) for leaf in nest.flatten(result)]
    for variable in {*global_variables(), *local_variables()} - before:
        if not variable.is_resource:
            raise GraphError(
                f"'{variable.name}' is made inside {name_of}, whose gradient is custom; "
                "such variables must be resource variables (use_resource=True)"
            )
    variables = _variables_between(flat_args, flat_result)
    if variables and not _takes_variables(grad_fn):
        raise UsageError(
            f"{name_of} uses the variables {[v.name for v in variables]}; its gradient function must take 'variables'"
        )
    name = f"CustomGradient-{next(_numbers)}"
    count = len(flat_result)

    @RegisterGradient(name)
    def gradient_of_call(op: Operation, *grads: Gradient) -> list[Gradient]:
        back = grads[:count]
        backward = grad_fn
        if op.graph is not graph and not variables:
            # the body of a function, made again for its gradient: grad_fn knows tensors of the first one
            copies = nest.pack_sequence_as(given, list(op.inputs[count : count + len(flat_args)]))
            backward = f(*copies)[1]
        by_variables: list[Any] = []
        if variables:
            by_args, by_variables = grad_fn(*back, variables=variables)
            if len(by_variables) != len(variables):
                raise GraphError(f"{name_of} returned {len(by_variables)} gradients for {len(variables)} variables")
        else:
            by_args = backward(*back)
        flat = _as_list(by_args)
        if len(flat) != len(flat_args):
            raise GraphError(f"{name_of} returned {len(flat)} gradients for {len(flat_args)} arguments")
        nothing: list[Gradient] = [None] * count
        return [*nothing, *flat, *by_variables]

    with graph.gradient_override_map({"IdentityN": name}):
        everything: list[Tensor] = ops.identity_n([*flat_result, *flat_args, *(v.handle for v in variables)])
    return nest.pack_sequence_as(result, list(everything[:count]))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]  # type: ignore[arg-type]


def _takes_variables(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return True
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _variables_between(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[BaseVariable]:
    """Resource variables that the outputs depend on without going through the inputs, by name."""
    known = {v.handle: v for v in (*global_variables(), *local_variables()) if v.is_resource}
    stops = {tensor.op for tensor in inputs}
    found: dict[BaseVariable, None] = {}
    seen: set[Operation] = set()
    stack = [tensor.op for tensor in outputs]
    while stack:
        op = stack.pop()
        if op in seen or op in stops:
            continue
        seen.add(op)
        for tensor in op.outputs:
            if tensor in known:
                found[known[tensor]] = None
        stack.extend(tensor.op for tensor in op.inputs)
    return sorted(found, key=lambda v: v.name)
