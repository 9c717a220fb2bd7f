"""Conditionals, loops and grouping."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.create import graph_of
from toolkit.client.construction.grouping import group, with_dependencies
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.flow import flow_ops
from toolkit.client.flow.contexts import CondContext, WhileContext, is_constant_enter
from toolkit.client.flow.tensor_array import TensorArray, make_arrays_as
from toolkit.client.flow.tensor_list_array import TensorListArray
from toolkit.client.math import math_ops
from toolkit.client.structures import nest
from toolkit.client.structures.leaves import flat_tensors, is_looser, packed_like, tensors_of
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

__all__ = ["Assert", "case", "cond", "group", "tuple_", "while_loop", "with_dependencies"]

#: nested lists, tuples and mappings of tensors
Structure = nest.Structure


_as_functions = [False]


def use_functions(use: bool) -> None:
    """Make conditionals and loops of operations that call functions from now on, or of Switch, Merge and Enter.

    With functions, TensorArrays are lists.
    """
    _as_functions[0] = use
    make_arrays_as(TensorListArray if use else None)


def uses_functions() -> bool:
    return _as_functions[0]


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


# -- conditionals ------------------------------------------------------------------------------------------------


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Structure] | None = None,
    false_fn: Callable[[], Structure] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Structure] | None = None,
    fn2: Callable[[], Structure] | None = None,
) -> Any:
    """The result of `true_fn` if `pred` holds when the step runs, else of `false_fn`.

    Both functions are called once, now; only the nodes of one branch run (Switch and Merge nodes). Values that the
    functions use from outside are evaluated in any case.

    Args:
        pred: a boolean scalar.
        strict: a list or tuple of one stays one.
        fn1, fn2: older names of `true_fn` and `false_fn`.

    Returns:
        Tensors in the structure that the functions return; both must return the same one with the same types.
        A single-element list is unwrapped, as TensorFlow does.

    Raises:
        GraphError: a function returns None, or the two do not fit together.
        UsageError: a function is missing or no function.
    """
    if_holds, otherwise = _either(true_fn, fn1, "true_fn", "fn1"), _either(false_fn, fn2, "false_fn", "fn2")
    if _as_functions[0]:
        from toolkit.client.flow import functional_flow

        return functional_flow.cond(pred, if_holds, otherwise, strict, name)
    with name_scope(name, "cond", [pred]):
        graph = get_default_graph()
        pred = convert_to_tensor(pred, dtypes.bool_, name="pred")
        if_false, if_true = flow_ops.switch(pred, pred)
        pivot_true = array_ops.identity(if_true, name="switch_t")
        pivot_false = array_ops.identity(if_false, name="switch_f")
        pred = array_ops.identity(pred, name="pred_id")
        true_context = CondContext(pred, pivot_true, 1)
        true_result, true_flat = _build_branch(true_context, if_holds, "true_fn")
        false_context = CondContext(pred, pivot_false, 0)
        false_result, false_flat = _build_branch(false_context, otherwise, "false_fn")
        _check_branches(true_result, false_result, true_flat, false_flat)
        merged = [flow_ops.merge([f, t]) for f, t in zip(false_flat, true_flat, strict=True)]
        if true_context.outer is None:
            graph.add_to_collection(GraphKeys.COND_CONTEXT, true_context)
            graph.add_to_collection(GraphKeys.COND_CONTEXT, false_context)
        packed: Any = packed_like(true_result, [*merged])
        if not strict and isinstance(packed, list | tuple) and len(cast("Any", packed)) == 1:
            return cast("Any", packed)[0]
        return cast("Any", packed)


def _either(function: Any, older: Any, name: str, older_name: str) -> Any:
    if function is not None and older is not None:
        raise UsageError(f"give {name} or {older_name}, not both: they are the same argument")
    chosen = older if function is None else function
    if not callable(chosen):
        raise UsageError(f"{name} of a conditional must be a function, not {chosen!r}")
    return chosen


def _build_branch(context: CondContext, function: Callable[[], Structure], what: str) -> tuple[Structure, list[Tensor]]:
    context.enter()
    try:
        result = function()
        if result is None:
            raise GraphError(f"{what} of the conditional returns None; return a tensor or an operation")
        flat: list[Tensor] = []
        for leaf in flat_tensors(result):
            if isinstance(leaf, Operation):
                leaf = with_dependencies([leaf], context.pivot)  # stands for an operation that has no value
            flat.append(context.branch_output(convert_to_tensor(leaf)))
        context.exit_result(flat)
    finally:
        context.exit()
    return result, flat


def _check_branches(true_result: Structure, false_result: Structure, true_flat: list[Tensor], false_flat: list[Tensor]):
    try:
        nest.assert_same_structure(true_result, false_result)
        alike = len(true_flat) == len(false_flat)
    except UsageError:
        alike = False
    if not alike:
        raise GraphError(
            f"the branches of the conditional return {len(true_flat)} and {len(false_flat)} values; "
            "both must return the same structure"
        )
    for position, (a, b) in enumerate(zip(true_flat, false_flat, strict=True)):
        if a.dtype.base is not b.dtype.base:
            raise GraphError(
                f"result {position} of the conditional has type {a.dtype.base} if true and {b.dtype.base} if false"
            )


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Structure] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default` (or the last function).

    Args:
        pred_fn_pairs: pairs of a boolean scalar and a function, or a mapping of them.
        exclusive: more than one predicate that holds is an error of the step.
        strict: a list or tuple of one stays one.

    Raises:
        GraphError: there are no functions.
        UsageError: a pair is none.
    """
    pairs = _pairs(pred_fn_pairs)
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        predicates = [pred for pred, _ in pairs]
        otherwise = default
        if otherwise is None:
            otherwise = _last_of(predicates, pairs[-1][1])
            pairs, predicates = pairs[:-1], predicates[:-1]
        result: Callable[[], Structure] = otherwise
        for pred, function in reversed(pairs):
            result = _nested(pred, function, result, strict)
        if not exclusive:
            return result()
        with get_default_graph().control_dependencies([_at_most(predicates, 1, "Input error: exclusive=True")]):
            return result()


def _pairs(given: Any) -> list[tuple[Tensor, Callable[[], Structure]]]:
    """Pairs of predicates and functions; those of a mapping by the predicates' names."""
    if isinstance(given, OrderedDict):
        pairs: list[Any] = list(cast("Any", given).items())
    elif isinstance(given, Mapping):
        pairs = sorted(cast("Any", given).items(), key=lambda pair: pair[0].name)
    else:
        pairs = list(given)
    if not pairs:
        raise GraphError("case needs at least one pair of predicate and function")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[1]):  # type: ignore[arg-type]
            raise UsageError(f"case takes pairs of a predicate and a function, not {pair!r}")
    return [(convert_to_tensor(pred, dtypes.bool_), function) for pred, function in pairs]


def _at_most(predicates: list[Tensor], count: int, what: str) -> Operation:
    """An Assert that no more than `count` predicates hold. What it says is part of TensorFlow's graph."""
    held = array_ops.stack(predicates, name="preds_c")
    total = math_ops.reduce_sum(math_ops.cast(held, dtypes.int32), name="num_true_conds")
    fine = ops.less_equal(total, array_ops.constant(count, name="n_true_conds"))
    names = ", ".join(pred.name for pred in predicates)
    message = f"{what}: more than {count} conditions ({names}) evaluated as True:"
    return Assert(fine, [message, held], summarize=len(predicates))


def _last_of(predicates: list[Tensor], function: Callable[[], Structure]) -> Callable[[], Structure]:
    """The last function of a case without default: its predicate, and no other, must hold when it is reached."""
    last = len(predicates) - 1
    others = (
        f"Implementation error: selected default action #{last} was called, but some of other predicates are True: "
    )

    def checked() -> Structure:
        held = array_ops.stack(predicates, name="preds_c")
        guards = [
            _at_most(predicates[:last], 0, others),
            Assert(predicates[last], ["Input error: None of conditions evaluated as True:", held]),
        ]
        with get_default_graph().control_dependencies(guards):
            return function()

    return checked


def Assert(  # noqa: N802 - TensorFlow's name
    condition: TensorLike, data: Sequence[TensorLike], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails when `condition` is false, and prints `data` then.

    Data other than strings and int32 are only handed over when it fails (a conditional around the Assert).

    Args:
        condition: a boolean scalar.
        data: what to print.
        summarize: how many elements of each; default: 3.
    """
    with name_scope(name, "Assert", [condition, data]):
        tensors = [convert_to_tensor(value) for value in data]
        if all(tensor.dtype.base in (dtypes.string, dtypes.int32) for tensor in tensors):
            return ops.function("Assert")(condition, data, summarize=summarize, name="Assert")
        condition = convert_to_tensor(condition, name="Condition")

        def fails() -> Operation:
            return ops.function("Assert")(condition, data, summarize=summarize, name="Assert")

        return cond(condition, ops.no_op, fails, name="AssertGuard").op


def _nested(pred: TensorLike, function: Callable[[], Structure], otherwise: Callable[[], Structure], strict: bool):
    return lambda: cond(pred, function, otherwise, strict)


# -- loops -------------------------------------------------------------------------------------------------------


def while_loop(
    cond: Any,
    body: Any,
    loop_vars: Structure,
    shape_invariants: Structure = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike | None = None,
    return_same_structure: bool = False,
) -> Any:
    """`while cond(*loop_vars): loop_vars = body(*loop_vars)`, as nodes of the graph.

    Both functions are called once, now. The loop variables keep their types; their shapes too, unless
    `shape_invariants` gives looser ones (in the structure of loop_vars). They may be structures, with TensorArrays
    and IndexedSlices in them.

    Args:
        parallel_iterations: how many iterations may run at the same time.
        back_prop: whether gradients through the loop are wanted.
        swap_memory: what gradients need may be kept in the host's memory.
        maximum_iterations: stop after that many at the latest; an integer scalar.
        return_same_structure: a single value comes in the structure of loop_vars too.

    Returns:
        The final values in the structure that the body returns; a single one without its list.

    Raises:
        GraphError: no loop variables, the body returns another number, type or shape of values.
        UsageError: cond or body are no functions.
    """
    for what, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise UsageError(f"{what} of a loop must be a function, not {function!r}")
    if not loop_vars:
        raise GraphError("a loop needs at least one loop variable")
    if parallel_iterations < 1:
        raise GraphError(f"parallel_iterations must be at least 1, not {parallel_iterations}")
    if _as_functions[0]:
        from toolkit.client.flow import functional_flow

        return functional_flow.while_loop(
            cond, body, loop_vars, shape_invariants, parallel_iterations, name, maximum_iterations,
            return_same_structure,
        )  # fmt: skip
    with name_scope(name, "while", flat_tensors(loop_vars)):
        limit: Tensor | None = None
        alone = len(loop_vars) == 1 and not return_same_structure
        if maximum_iterations is not None:
            limit = convert_to_tensor(maximum_iterations, name="maximum_iterations")
            if limit.static_shape.rank not in (0, None):
                raise GraphError(f"maximum_iterations must be a scalar; '{limit.name}' has shape {limit.static_shape}")
            counter = array_ops.constant(0, limit.dtype.base, name="iteration_counter")
            cond, body = _counted(cond, body, limit, alone)
            loop_vars = (counter, loop_vars[0] if alone else loop_vars)
            if shape_invariants is not None:
                shape_invariants = (Shape([]), shape_invariants[0] if alone else shape_invariants)
        context = WhileContext(parallel_iterations, back_prop, swap_memory, maximum_iterations=limit)
        if context.outer is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        exits, result = _LoopBuilder(context, shape_invariants).build(cond, body, loop_vars)
        if limit is not None:
            return result[1]
        return result[0] if len(exits) == 1 and not return_same_structure else result


def _counted(
    condition: Callable[..., TensorLike], body: Callable[..., Structure], limit: Tensor, alone: bool
) -> tuple[Callable[..., TensorLike], Callable[..., Structure]]:
    """A loop's functions with a counter before their variables; `alone`: there is one variable, without a list."""

    def counted_condition(i: Tensor, values: Any) -> Tensor:
        more = ops.less(i, limit)
        return ops.logical_and(more, condition(values) if alone else condition(*values))

    def counted_body(i: Tensor, values: Any) -> Structure:
        following = i + 1
        return following, body(values) if alone else body(*values)

    return counted_condition, counted_body


class _LoopBuilder:
    def __init__(self, context: WhileContext, invariants: Structure):
        self.context = context
        self.graph = context.graph
        self.invariants = invariants

    def build(
        self, condition: Callable[..., TensorLike], body: Callable[..., Structure], loop_vars: Structure
    ) -> tuple[list[Tensor], Any]:
        """The Exits, and the same in the structure that the body returns."""
        leaves = [
            leaf if isinstance(leaf, TensorArray | IndexedSlices) else convert_to_tensor(leaf)
            for leaf in nest.flatten(loop_vars)
        ]
        loop_vars = nest.pack_sequence_as(loop_vars, leaves)
        flat: list[Tensor] = flat_tensors(loop_vars)
        shapes = [tensor.static_shape for tensor in flat]
        if self.invariants is not None:
            shapes = self._flat_invariants(leaves)
            for tensor, shape in zip(flat, shapes, strict=True):
                if not is_looser(shape, tensor.static_shape):
                    raise GraphError(
                        f"'{tensor.name}' has shape {tensor.static_shape}, which is no case of invariant {shape}"
                    )
        context = self.context
        context.enter()
        try:
            exits, like = self._build(condition, body, loop_vars, flat, shapes)
        finally:
            context.exit()
        return exits, packed_like(like, list(exits))

    def _flat_invariants(self, leaves: list[Any]) -> list[Shape]:
        """One shape for each tensor of the loop variables.

        Raises:
            GraphError: there are more or fewer.
        """
        given: list[Any] = []

        def walk(value: Any) -> None:
            # a list of sizes is one invariant, a list of invariants is a structure
            if isinstance(value, list | tuple) and not all(v is None or isinstance(v, int) for v in value):  # type: ignore[misc]
                for item in value:  # type: ignore[misc]
                    walk(item)
            elif isinstance(value, Mapping):
                for key in sorted(value):  # type: ignore[misc]
                    walk(value[key])
            else:
                given.append(value)

        walk(self.invariants)
        if len(given) != len(leaves):
            raise GraphError(f"{len(leaves)} loop variables need as many shape invariants, not {len(given)}")
        shapes: list[Shape] = []
        for invariant, leaf in zip(given, leaves, strict=True):
            shape = as_shape(invariant)
            if isinstance(leaf, TensorArray):
                shapes.append(Shape([]))
            elif isinstance(leaf, IndexedSlices):
                rows = Shape([None]) if shape.rank is None else shape.slice(0, 1)
                parts = [shape, rows, Shape([shape.rank])]
                shapes += parts[: len(tensors_of(leaf))]
            else:
                shapes.append(shape)
        return shapes

    def _build(
        self,
        condition: Callable[..., TensorLike],
        body: Callable[..., Structure],
        loop_vars: Structure,
        flat: list[Tensor],
        shapes: list[Shape],
    ) -> tuple[list[Tensor], Structure]:
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
        verdict = convert_to_tensor(condition(*_values(packed_like(loop_vars, list(merges)))))
        context.pivot = flow_ops.loop_cond(verdict, name="LoopCond")
        switches = [flow_ops.switch_value(tensor, context.pivot) for tensor in merges]
        inside = [array_ops.identity(true) for _, true in switches]
        context.pivot_for_body = inside[0]
        result = body(*_values(packed_like(loop_vars, list(inside))))
        if not nest.is_nested(result):
            result = [result]
        self._close(merges, flat_tensors(result), shapes)
        exits = [flow_ops.exit(false) for false, _ in switches]
        context.exits = exits
        context.exit_result(exits)
        return exits, result

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
            if not is_looser(shape, tensor.static_shape):
                raise GraphError(
                    f"loop variable {position} has shape {shape}, but after one iteration {tensor.static_shape}; "
                    "give shape_invariants with the sizes that change unknown"
                )
            add_back_edge(merge, tensor)


def _values(structure: Structure) -> list[Any]:
    """The arguments for a loop's functions."""
    return list(cast("Any", structure).values()) if isinstance(structure, Mapping) else list(structure)


def add_back_edge(merge: Tensor, value: Tensor) -> Tensor:
    """Make `value` the second input of a loop's Merge, through NextIteration."""
    following = flow_ops.next_iteration(value)
    merge.op.update_input(1, following)
    return following
