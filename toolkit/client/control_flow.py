"""Conditionals, loops and grouping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolkit.client import array_ops, flow_ops, ops
from toolkit.client.context import get_default_graph
from toolkit.client.control_flow_context import CondContext, WhileContext, is_constant_enter
from toolkit.client.convert import as_shape, convert_to_tensor
from toolkit.client.create import graph_of
from toolkit.client.grouping import group
from toolkit.client.operation import Operation
from toolkit.client.scopes import name_scope
from toolkit.client.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

__all__ = ["case", "cond", "group", "tuple_", "while_loop", "with_dependencies"]

#: nested lists, tuples and mappings of tensors
Structure = Any


def with_dependencies(dependencies: Sequence[Any], value: Any, name: str | None = None) -> Any:
    """`value` once the dependencies have run."""
    with name_scope(name, "control_dependency", [*dependencies, value]) as scope:
        graph = get_default_graph()
        with graph.colocate_with(value), graph.control_dependencies(dependencies):
            if isinstance(value, IndexedSlices):
                return IndexedSlices(array_ops.identity(value.values, name=scope), value.indices, value.dense_shape)
            return array_ops.identity(value, name=scope)


def tuple_(tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] = ()) -> list[Any]:
    """The same tensors, each available only when all are; None entries stay None.

    Raises:
        UsageError: all entries are None.
    """
    present = [t for t in tensors if t is not None]
    if not present:
        raise UsageError("tuple_ needs at least one tensor")
    graph = graph_of(present)
    with graph.as_default(), graph.name_scope(name or "tuple"):
        gating: list[Operation] = [t if isinstance(t, Operation) else t.op for t in [*present, *control_inputs]]
        gate = group(sorted(dict.fromkeys(gating), key=lambda op: op.node.id))
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


# -- structures ------------------------------------------------------------------------------------------------


def _flatten(value: Structure) -> list[Any]:
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in _flatten(item)]  # type: ignore[misc]
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value) for leaf in _flatten(value[key])]  # type: ignore[misc]
    return [value]


def _pack(like: Structure, leaves: list[Any]) -> Structure:
    """`like` with its leaves replaced, in order; takes them off the list."""
    if isinstance(like, tuple) and hasattr(like, "_fields"):  # type: ignore[arg-type]
        return type(like)(*[_pack(item, leaves) for item in like])  # type: ignore[misc]
    if isinstance(like, list | tuple):
        return type(like)([_pack(item, leaves) for item in like])  # type: ignore[misc]
    if isinstance(like, Mapping):
        return {key: _pack(like[key], leaves) for key in sorted(like)}  # type: ignore[misc]
    return leaves.pop(0)


# -- conditionals ------------------------------------------------------------------------------------------------


def cond(
    pred: TensorLike, true_fn: Callable[[], Structure], false_fn: Callable[[], Structure], name: str | None = None
) -> Any:
    """The result of `true_fn` if `pred` holds when the step runs, else of `false_fn`.

    Both functions are called once, now; only the nodes of one branch run (Switch and Merge nodes). Values that the
    functions use from outside are evaluated in any case.

    Args:
        pred: a boolean scalar.

    Returns:
        Tensors in the structure that the functions return; both must return the same one with the same types.
        A single-element list is unwrapped, as TensorFlow does.

    Raises:
        GraphError: a function returns None, or the two do not fit together.
    """
    with name_scope(name, "cond", [pred]):
        graph = get_default_graph()
        pred = convert_to_tensor(pred, dtypes.bool_, name="pred")
        if_false, if_true = flow_ops.switch(pred, pred)
        pivot_true = array_ops.identity(if_true, name="switch_t")
        pivot_false = array_ops.identity(if_false, name="switch_f")
        pred = array_ops.identity(pred, name="pred_id")
        true_context = CondContext(pred, pivot_true, 1)
        true_result, true_flat = _build_branch(true_context, true_fn, "true_fn")
        false_context = CondContext(pred, pivot_false, 0)
        false_result, false_flat = _build_branch(false_context, false_fn, "false_fn")
        _check_branches(true_result, false_result, true_flat, false_flat)
        merged = [flow_ops.merge([f, t]) for f, t in zip(false_flat, true_flat, strict=True)]
        if true_context.outer is None:
            graph.add_to_collection(GraphKeys.COND_CONTEXT, true_context)
            graph.add_to_collection(GraphKeys.COND_CONTEXT, false_context)
        packed = _pack(true_result, [*merged])
        return packed[0] if isinstance(packed, list | tuple) and len(packed) == 1 else packed  # type: ignore[arg-type]


def _build_branch(context: CondContext, function: Callable[[], Structure], what: str) -> tuple[Structure, list[Tensor]]:
    context.enter()
    try:
        result = function()
        if result is None:
            raise GraphError(f"{what} of the conditional returns None; return a tensor or an operation")
        flat: list[Tensor] = []
        for leaf in _flatten(result):
            if isinstance(leaf, Operation):
                leaf = with_dependencies([leaf], context.pivot)  # stands for an operation that has no value
            if isinstance(leaf, IndexedSlices):
                leaf = leaf.to_tensor()
            flat.append(context.branch_output(convert_to_tensor(leaf)))
        context.exit_result(flat)
    finally:
        context.exit()
    return result, flat


def _check_branches(true_result: Structure, false_result: Structure, true_flat: list[Tensor], false_flat: list[Tensor]):
    if len(true_flat) != len(false_flat) or _shape_of(true_result) != _shape_of(false_result):
        raise GraphError(
            f"the branches of the conditional return {len(true_flat)} and {len(false_flat)} values; "
            "both must return the same structure"
        )
    for position, (a, b) in enumerate(zip(true_flat, false_flat, strict=True)):
        if a.dtype.base is not b.dtype.base:
            raise GraphError(
                f"result {position} of the conditional has type {a.dtype.base} if true and {b.dtype.base} if false"
            )


def _shape_of(value: Structure) -> Structure:
    if isinstance(value, list | tuple):
        return [_shape_of(item) for item in value]  # type: ignore[misc]
    if isinstance(value, Mapping):
        return {key: _shape_of(item) for key, item in value.items()}  # type: ignore[misc]
    return None


def case(
    pairs: Sequence[tuple[TensorLike, Callable[[], Structure]]],
    default: Callable[[], Structure] | None = None,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default` (or the last function).

    Raises:
        GraphError: there are no functions.
    """
    if not pairs:
        raise GraphError("case needs at least one pair of predicate and function")
    rest = list(pairs)
    last = default
    if last is None:
        last = rest.pop()[1]
    result: Callable[[], Structure] = last
    for pred, function in reversed(rest):
        result = _nested(pred, function, result)
    with name_scope(name):
        return result()


def _nested(pred: TensorLike, function: Callable[[], Structure], otherwise: Callable[[], Structure]):
    return lambda: cond(pred, function, otherwise)


# -- loops -------------------------------------------------------------------------------------------------------


def while_loop(
    condition: Callable[..., TensorLike],
    body: Callable[..., Structure],
    loop_vars: Sequence[Structure],
    shape_invariants: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike | None = None,
) -> Any:
    """`while condition(*loop_vars): loop_vars = body(*loop_vars)`, as nodes of the graph.

    Both functions are called once, now. The loop variables keep their types; their shapes too, unless
    `shape_invariants` gives looser ones (in the structure of loop_vars).

    Args:
        parallel_iterations: how many iterations may run at the same time.
        back_prop: whether gradients through the loop are wanted.
        maximum_iterations: stop after that many at the latest.

    Returns:
        The final values in the structure of loop_vars; a single one without its list.

    Raises:
        GraphError: no loop variables, the body returns another number, type or shape of values.
    """
    if not loop_vars:
        raise GraphError("a loop needs at least one loop variable")
    if parallel_iterations < 1:
        raise GraphError(f"parallel_iterations must be at least 1, not {parallel_iterations}")
    with name_scope(name, "while", _flatten(loop_vars)):
        counted = maximum_iterations is not None
        limit: Tensor | None = None
        if counted:
            limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
            counter = array_ops.constant(0, limit.dtype.base, name="iteration_counter")
            condition, body = _counted(condition, body, limit, len(loop_vars))
            loop_vars = (counter, loop_vars)
            if shape_invariants is not None:
                shape_invariants = (Shape([]), shape_invariants)
        context = WhileContext(parallel_iterations, back_prop, swap_memory, maximum_iterations=limit)
        if context.outer is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = _LoopBuilder(context, shape_invariants).build(condition, body, loop_vars)
        if counted:
            result = result[1]
        return result[0] if isinstance(result, list | tuple) and len(result) == 1 else result  # type: ignore[arg-type]


def _counted(
    condition: Callable[..., TensorLike], body: Callable[..., Structure], limit: Tensor, count: int
) -> tuple[Callable[..., TensorLike], Callable[..., Structure]]:
    def counted_condition(i: Tensor, values: Any) -> Tensor:
        return ops.logical_and(ops.less(i, limit), condition(*values))

    def counted_body(i: Tensor, values: Any) -> Structure:
        result = body(*values)
        if count == 1 and not isinstance(result, list | tuple):
            result = [result]
        return (i + 1, type(values)(result))

    return counted_condition, counted_body


class _LoopBuilder:
    def __init__(self, context: WhileContext, invariants: Structure):
        self.context = context
        self.graph = context.graph
        self.invariants = invariants

    def build(
        self, condition: Callable[..., TensorLike], body: Callable[..., Structure], loop_vars: Sequence[Structure]
    ) -> Any:
        flat = [convert_to_tensor(leaf) for leaf in _flatten(loop_vars)]
        shapes = [tensor.static_shape for tensor in flat]
        if self.invariants is not None:
            shapes = [as_shape(leaf) for leaf in self._flat_invariants(len(flat))]
            for tensor, shape in zip(flat, shapes, strict=True):
                if not _is_looser(shape, tensor.static_shape):
                    raise GraphError(
                        f"'{tensor.name}' has shape {tensor.static_shape}, which is no case of invariant {shape}"
                    )
        context = self.context
        context.enter()
        try:
            exits = self._build(condition, body, loop_vars, flat, shapes)
        finally:
            context.exit()
        return _pack(loop_vars, list(exits))

    def _flat_invariants(self, count: int) -> list[Any]:
        leaves: list[Any] = []

        def walk(value: Any) -> None:
            # a list of sizes is one invariant, a list of invariants is a structure
            if isinstance(value, list | tuple) and not all(v is None or isinstance(v, int) for v in value):  # type: ignore[misc]
                for item in value:  # type: ignore[misc]
                    walk(item)
            else:
                leaves.append(value)

        walk(self.invariants)
        if len(leaves) != count:
            raise GraphError(f"{count} loop variables need as many shape invariants, not {len(leaves)}")
        return leaves

    def _build(
        self,
        condition: Callable[..., TensorLike],
        body: Callable[..., Structure],
        loop_vars: Sequence[Structure],
        flat: list[Tensor],
        shapes: list[Shape],
    ) -> list[Tensor]:
        context = self.context
        context.values = set(flat)
        real = flat if context.outer is None else [context.outer.add_value(tensor) for tensor in flat]
        with self.graph.control_dependencies(None):
            enters = [context.make_enter(tensor, is_constant=False) for tensor in real]
        for tensor, shape in zip(enters, shapes, strict=True):
            self.graph.shapes.override(tensor.output, shape)
        self._hold_constants(enters)
        context.fix_controls_and_context(enters)
        context.values = set(enters)
        context.enters = enters

        merges = [flow_ops.merge([tensor, tensor]) for tensor in enters]
        context.pivot_for_pred = merges[0]
        verdict = convert_to_tensor(condition(*_pack(loop_vars, list(merges))))
        context.pivot = flow_ops.loop_cond(verdict, name="LoopCond")
        switches = [flow_ops.switch_value(tensor, context.pivot) for tensor in merges]
        inside = [array_ops.identity(true) for _, true in switches]
        context.pivot_for_body = inside[0]
        result = body(*_pack(loop_vars, list(inside)))
        self._close(merges, _flatten(result), shapes)
        exits = [flow_ops.exit(false) for false, _ in switches]
        context.exits = exits
        context.exit_result(exits)
        return exits

    def _hold_constants(self, enters: list[Tensor]) -> None:
        """A loop inside a body whose start values are invariants of the outer loop waits for the outer body."""
        outer = self.context.outer
        pivot = None
        while outer is not None and pivot is None:
            pivot = outer.control_pivot()
            outer = outer.outer
        if pivot is None:
            return
        for tensor in enters:
            if is_constant_enter(tensor.op.inputs[0].op):
                tensor.op.add_control_inputs([pivot.op])

    def _close(self, merges: list[Tensor], results: list[Any], shapes: list[Shape]) -> None:
        """Join the body's results to the Merge nodes by back edges."""
        if len(results) != len(merges):
            raise GraphError(f"the body returns {len(results)} values for {len(merges)} loop variables")
        for position, (merge, value, shape) in enumerate(zip(merges, results, shapes, strict=True)):
            tensor = convert_to_tensor(value)
            if tensor.dtype.base is not merge.dtype.base:
                raise GraphError(
                    f"loop variable {position} has type {merge.dtype.base}, but the body returns {tensor.dtype.base}"
                )
            if not _is_looser(shape, tensor.static_shape):
                raise GraphError(
                    f"loop variable {position} has shape {shape}, but after one iteration {tensor.static_shape}; "
                    "give shape_invariants with the sizes that change unknown"
                )
            add_back_edge(merge, tensor)


def add_back_edge(merge: Tensor, value: Tensor) -> Tensor:
    """Make `value` the second input of a loop's Merge, through NextIteration."""
    following = flow_ops.next_iteration(value)
    merge.op.update_input(1, following)
    return following


def _is_looser(loose: Shape, tight: Shape) -> bool:
    """Whether every tensor of shape `tight` also has shape `loose`."""
    if loose.dims is None:
        return True
    if tight.dims is None or len(loose.dims) != len(tight.dims):
        return False
    return all(a is None or a == b for a, b in zip(loose.dims, tight.dims, strict=True))
