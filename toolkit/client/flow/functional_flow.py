"""Conditionals, choices and loops as operations that call functions: If, Case and While (control flow v2).

What branches and bodies use of the graph around becomes arguments: those of a choice take the union of it, a loop hands
it on unchanged. Their gradients are in `gradients/functional_grad`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.grouping import with_dependencies
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.client.functions.graph import FunctionGraph
from toolkit.client.functions.trace import TracedFunction, define, function_name
from toolkit.client.math import math_ops
from toolkit.client.structures import nest
from toolkit.client.structures.leaves import flat_tensors, is_looser, packed_like
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import SCALAR, Shape

#: a branch: its graph, its results flat, and in the structure in which they were returned
_Branch = tuple[FunctionGraph, list[Tensor], Any]


def cond(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], strict: bool = False, name: str | None = None
) -> Any:
    """As `control_flow.cond`, by an If; StatelessIf where neither branch has a state.

    Raises:
        GraphError: a function returns None, or the two do not fit together.
    """
    with name_scope(name, "cond", [pred]) as scope:
        chosen = convert_to_tensor(pred, dtypes.bool_, name="pred")
        branches = [_branch(function, what) for function, what in ((true_fn, "true_fn"), (false_fn, "false_fn"))]
        made, captured, structure = _alike(branches, ("true", "false"))
        op = "If" if any(each.is_stateful for each in made) else "StatelessIf"
        found = ops.function(op)(
            chosen, captured, Tout=made[0].result_types, then_branch=made[0].ref, else_branch=made[1].ref,
            output_shapes=_common_shapes(made), _lower_using_switch_merge=True, name=scope,
        )  # fmt: skip
        return _results(found, structure, strict)


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """The result of the branch with this index, else of `default` (or the branch with the largest index), by a Case.

    Args:
        branch_index: an int32 scalar.
        branch_fns: functions in order, pairs of an index and a function, or a mapping of them.

    Raises:
        UsageError: there are none, or the indices are not 0, 1, ...
        GraphError: a branch returns None, or the branches do not fit together.
    """
    functions = _indexed(branch_fns)
    if default is not None:
        functions.append(default)
    with name_scope(name, "switch_case", [branch_index]) as scope:
        index = math_ops.cast(branch_index, dtypes.int32)
        branches = [_branch(function, f"branch {i}") for i, function in enumerate(functions)]
        made, captured, structure = _alike(branches, [f"branch{i}" for i in range(len(branches))])
        op = "Case" if any(each.is_stateful for each in made) else "StatelessCase"
        found = ops.function(op)(
            index, captured, Tout=made[0].result_types, branches=[each.ref for each in made],
            output_shapes=_common_shapes(made), _lower_using_switch_merge=True, name=scope,
        )  # fmt: skip
        return _results(found, structure, False)


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """As `control_flow.while_loop`, by a While; StatelessWhile where its functions have no state.

    Raises:
        GraphError: the body returns another number, type or shape of values.
    """
    with name_scope(name, "while", flat_tensors(loop_vars)) as scope:
        leaves = [convert_to_tensor(leaf) if _is_plain(leaf) else leaf for leaf in nest.flatten(loop_vars)]
        loop_vars = nest.pack_sequence_as(loop_vars, leaves)
        flat: list[Tensor] = flat_tensors(loop_vars)
        shapes = [tensor.static_shape for tensor in flat]
        if shape_invariants is not None:
            shapes = _invariants(shape_invariants, flat)
        limit = convert_to_tensor(-1 if maximum_iterations is None else maximum_iterations, dtypes.int32)
        counter = constant(0, name="loop_counter")
        given = [counter, limit, *flat]
        shapes = [SCALAR, SCALAR, *shapes]
        graphs = [
            FunctionGraph(function_name(body, f"while_{part}_"), get_default_graph()) for part in ("cond", "body")
        ]

        def test(i: Tensor, most: Tensor, *state: Tensor) -> list[Any]:
            return [_goes_on(condition, loop_vars, i, None if maximum_iterations is None else most, state)]

        def step(i: Tensor, most: Tensor, *state: Tensor) -> list[Any]:
            return [i + 1, most, *_step(body, loop_vars, state)]

        tested, stepped = _in_graph(graphs[0], given, shapes, test), _in_graph(graphs[1], given, shapes, step)
        _check_step(stepped[2:], flat, shapes[2:])
        captured = _united(graphs)
        outputs = [*stepped, *(graphs[1].captured[tensor] for tensor in captured)]
        made = [_defined(graphs[0], tested), _defined(graphs[1], outputs)]
        op = "While" if any(each.is_stateful for each in made) else "StatelessWhile"
        found = ops.function(op)(
            [*given, *captured], cond=made[0].ref, body=made[1].ref,
            output_shapes=[*shapes, *(tensor.static_shape for tensor in captured)],
            parallel_iterations=parallel_iterations, _lower_using_switch_merge=True, name=scope,
        )  # fmt: skip
        results = [array_ops.identity(tensor) for tensor in _listed(found)[2 : 2 + len(flat)]]
        for result, shape in zip(results, shapes[2:], strict=True):
            result.set_shape(shape)
        packed: Any = packed_like(loop_vars, results)
        alone = len(loop_vars) == 1 and len(results) == 1 and not return_same_structure
        return nest.flatten(packed)[0] if alone else packed


# -- branches ------------------------------------------------------------------------------------------------------


def _branch(function: Callable[[], Any], what: str) -> _Branch:
    graph = FunctionGraph(function_name(function, "cond_"), get_default_graph())
    with graph.as_default():
        returned = function()
        if returned is None:
            raise GraphError(f"{what} of the conditional returns None; return a tensor or an operation")
        flat: list[Tensor] = []
        for leaf in flat_tensors(returned):
            if isinstance(leaf, Operation):
                leaf = with_dependencies([leaf], constant(True))  # stands for an operation that has no value
            flat.append(graph.capture(convert_to_tensor(leaf)))
        results = [array_ops.identity(tensor) for tensor in flat]
    return graph, results, returned


def _alike(branches: Sequence[_Branch], names: Sequence[str]) -> tuple[list[TracedFunction], list[Tensor], Any]:
    """The functions of branches with the same arguments and results.

    Raises:
        GraphError: they return other structures or types.
    """
    _, first, structure = branches[0]
    for name, (_, results, returned) in zip(names, branches, strict=True):
        try:
            nest.assert_same_structure(structure, returned)
            alike = len(results) == len(first)
        except UsageError:
            alike = False
        if not alike:
            raise GraphError(f"the branches '{names[0]}' and '{name}' must return the same structure of tensors")
        for position, (a, b) in enumerate(zip(first, results, strict=True)):
            if a.dtype.base is not b.dtype.base:
                raise GraphError(
                    f"result {position} is {a.dtype.base} in the branch '{names[0]}' and {b.dtype.base} in '{name}'"
                )
    captured = _united([graph for graph, _, _ in branches])
    return [_defined(graph, results) for graph, results, _ in branches], captured, structure


def _united(graphs: Sequence[FunctionGraph]) -> list[Tensor]:
    """Let functions take the same tensors of the graph around, in the same order; returns them."""
    union = list(dict.fromkeys(tensor for graph in graphs for tensor in graph.captured))
    for graph in graphs:
        with graph.as_default():
            inside = {tensor: graph.capture(tensor) for tensor in union}
        graph.captured = inside
    return union


def _defined(graph: FunctionGraph, results: list[Tensor]) -> TracedFunction:
    return define(graph, results, results, [], {})


def _common_shapes(made: Sequence[TracedFunction]) -> list[Shape]:
    shapes = list(made[0].result_shapes)
    for other in made[1:]:
        shapes = [a.most_specific_common(b) for a, b in zip(shapes, other.result_shapes, strict=True)]
    return shapes


def _results(found: Any, structure: Any, strict: bool) -> Any:
    if isinstance(found, Operation):
        return found
    packed: Any = packed_like(structure, [array_ops.identity(tensor) for tensor in _listed(found)])
    return packed[0] if not strict and type(packed) in (list, tuple) and len(packed) == 1 else packed


def _listed(found: Any) -> list[Tensor]:
    return list(found) if isinstance(found, list | tuple) else [found]  # type: ignore[arg-type]


def _indexed(branches: Any) -> list[Callable[[], Any]]:
    listed: list[Any] = list(branches.items() if hasattr(branches, "items") else branches)
    if not listed:
        raise UsageError("switch_case needs at least one branch")
    if all(map(callable, listed)):
        return listed
    pairs: list[Any] = [each for each in listed if isinstance(each, list | tuple) and len(cast("Any", each)) == 2]
    found: dict[int, Callable[[], Any]] = {pair[0]: pair[1] for pair in pairs}
    if len(found) != len(listed) or sorted(found) != list(range(len(found))):
        raise UsageError("branches are functions, or pairs of an index and a function with the indices 0, 1, ...")
    return [found[index] for index in range(len(found))]


# -- loops ---------------------------------------------------------------------------------------------------------


def _is_plain(leaf: Any) -> bool:
    return len(flat_tensors([leaf])) == 1 and flat_tensors([leaf])[0] is leaf


def _in_graph(
    graph: FunctionGraph, given: Sequence[Tensor], shapes: Sequence[Shape], function: Callable[..., list[Any]]
) -> list[Tensor]:
    """What a function of the loop variables returns, made in a graph of its own."""
    with graph.as_default():
        args = [graph.argument(t.op.name, t.dtype.base, s, like=t) for t, s in zip(given, shapes, strict=True)]
        found = [graph.capture(convert_to_tensor(value)) for value in function(*args)]
        return [array_ops.identity(tensor) for tensor in found]


def _goes_on(
    condition: Callable[..., Any], like: Any, i: Tensor, most: Tensor | None, state: Sequence[Tensor]
) -> Tensor:
    more = convert_to_tensor(_called(condition, like, state), dtypes.bool_)
    if more.static_shape.rank not in (0, None):
        raise GraphError(f"the condition of a loop is a scalar; '{more.name}' has shape {more.static_shape}")
    return more if most is None else ops.logical_and(ops.less(i, most), more)


def _step(body: Callable[..., Any], like: Any, state: Sequence[Tensor]) -> list[Any]:
    returned = _called(body, like, state)
    if len(like) == 1 and not _same(like, returned):
        returned = nest.pack_sequence_as(like, [returned])
    if not _same(like, returned):
        raise GraphError(
            f"the body returns {len(nest.flatten(returned))} values for {len(nest.flatten(like))} loop variables; "
            "it must return them in the same structure"
        )
    return flat_tensors(returned)


def _same(like: Any, returned: Any) -> bool:
    try:
        nest.assert_same_structure(like, returned, check_types=False)
    except UsageError:
        return False
    return True


def _called(function: Callable[..., Any], like: Any, state: Sequence[Tensor]) -> Any:
    packed: Any = packed_like(like, list(state))
    return function(**packed) if isinstance(packed, dict) else function(*packed)


def _check_step(following: Sequence[Tensor], start: Sequence[Tensor], shapes: Sequence[Shape]) -> None:
    if len(following) != len(start):
        raise GraphError(f"the body returns {len(following)} tensors for {len(start)} of the loop variables")
    for after, before, shape in zip(following, start, shapes, strict=True):
        if after.dtype.base is not before.dtype.base:
            raise GraphError(
                f"the loop variable '{before.name}' is {before.dtype.base}; the body returns {after.dtype.base}"
            )
        if not is_looser(shape, after.static_shape):
            raise GraphError(
                f"the loop variable '{before.name}' has shape {shape}, the body returns {after.static_shape}; "
                "give shape_invariants"
            )


def _invariants(given: Any, flat: Sequence[Tensor]) -> list[Shape]:
    shapes: list[Shape] = []

    def walk(value: Any) -> None:
        if isinstance(value, list | tuple) and not all(v is None or isinstance(v, int) for v in value):  # type: ignore[misc]
            for item in value:  # type: ignore[misc]
                walk(item)
        elif isinstance(value, dict):
            for key in sorted(value):  # type: ignore[misc]
                walk(value[key])
        else:
            shapes.append(plain_shape(value))

    walk(given)
    if len(shapes) != len(flat):
        raise GraphError(f"{len(shapes)} shape invariants for {len(flat)} loop variables; give one for each")
    for tensor, shape in zip(flat, shapes, strict=True):
        if not is_looser(shape, tensor.static_shape):
            raise GraphError(f"'{tensor.name}' has shape {tensor.static_shape}, which is no case of invariant {shape}")
    return shapes
