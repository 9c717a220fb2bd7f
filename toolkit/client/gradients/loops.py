"""Gradients through loops: for each loop a second one that runs its iterations backwards.

The forward loop gets a counter, and pushes every value that the backward loop needs on a stack, once per
iteration; the backward loop counts down and pops (Yu et al., Dynamic Control Flow in Large-Scale Machine
Learning, arXiv 1805.01772, section 5). Loop invariants need no stack: they enter the backward loop as they are.
"""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow import flow_ops
from toolkit.client.flow.contexts import (
    CondContext,
    ControlFlowContext,
    WhileContext,
    constant_enter_of,
    is_loop_exit,
    is_loop_switch,
    output_context,
)
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.node import SWITCH_OPS

__all__ = ["LoopGradient", "LoopGradients", "is_loop_exit", "is_loop_switch", "state_for", "zeros_like"]


def _dynamic_shape(tensor: Tensor) -> Tensor:
    """The run-time shape as a node of its own, never a Const: it must run where the tensor does."""
    if tensor.dtype.base is dtypes.resource:
        return ops.variable_shape(tensor)
    return ops.shape(tensor)


class LoopGradient:
    """One loop and its gradient loop.

    Attributes:
        forward, backward: the two loop contexts.
        outer: the same of the loop around, or None.
        switch_map: forward Switch to the Merge of the backward loop that carries its gradient.
    """

    def __init__(self, forward: WhileContext, outer: LoopGradient | None):
        self.forward = forward
        self.outer = outer
        self.history: dict[Tensor, Tensor] = {}
        self.switch_map: dict[Operation, Tensor] = {}
        self.unused_exits: list[Tensor] = []
        self.deferred_exits: list[Tensor] = []
        self.forward_exits = list(forward.exits)
        self.pending_exits = len(forward.exits)
        self._forward_sync: Operation | None = None
        self._backward_sync: Operation | None = None
        around = outer.forward if outer is not None else forward.outer
        _enter(around)
        count, self.forward_index = self._count_forward()
        _exit(around)
        if outer is None:
            _enter(around)
            self.backward = self._make_backward()
            self.backward_index = self._count_backward(count)
            _exit(around)
        else:
            # An inner loop runs anew in each outer iteration: its count goes on the outer loop's stack.
            outer.forward.know(count)
            kept = outer.remember(count)
            outer.backward.enter()
            self.backward = self._make_backward()
            self.backward_index = self._count_backward(outer.recall(kept, count))
            outer.backward.exit()

    def _make_backward(self) -> WhileContext:
        forward = self.forward
        return WhileContext(
            forward.parallel_iterations, forward.back_prop, forward.swap_memory, forward.name, gradient=self
        )

    # -- counters ------------------------------------------------------------------------------------------

    def _count_forward(self) -> tuple[Tensor, Tensor]:
        """Let the forward loop count its iterations; returns the total and the next count inside."""
        context = self.forward
        start = constant(0, name="f_count")
        if self.outer is not None:
            start.op.add_control_inputs([self.outer.forward_index.op.inputs[0].op])
        context.enter()
        context.know(start)
        entered = context.make_enter(start, is_constant=False, name="f_count")
        context.enters.append(entered)
        merged = flow_ops.merge([entered, entered])
        assert context.pivot is not None
        done, going = flow_ops.switch(merged, context.pivot)
        following = flow_ops.next_iteration(math_ops.add(going, 1))
        merged.op.update_input(1, following)
        total = flow_ops.exit(done, name="f_count")
        context.exits.append(total)
        context.exit_result([total])
        context.exit()
        return total, following

    def _count_backward(self, count: Tensor) -> Tensor:
        """Let the backward loop run `count` times."""
        context = self.backward
        one = constant(1, name="b_count")
        context.enter()
        context.know(count)
        entered = context.make_enter(count, is_constant=False, name="b_count")
        context.enters.append(entered)
        merged = flow_ops.merge([entered, entered])
        context.pivot_for_pred = merged
        context.pivot = flow_ops.loop_cond(ops.greater_equal(merged, one), name="b_count")
        done, going = flow_ops.switch(merged, context.pivot)
        index = math_ops.subtract(going, one)
        context.pivot_for_body = index
        following = flow_ops.next_iteration(index)
        merged.op.update_input(1, following)
        final = flow_ops.exit(done, name="b_count")
        context.exits.append(final)
        if self.outer is not None:
            self.outer.backward_sync.add_control_inputs([final.op])
        context.exit_result([final])
        context.exit()
        return following

    @property
    def forward_sync(self) -> Operation:
        """What pushes inside conditionals are joined to, so that an iteration ends after them."""
        if self._forward_sync is None:
            with get_default_graph().control_dependencies(None):
                self._forward_sync = flow_ops.control_trigger(name="f_sync")
            self._forward_sync.context = self.forward
            self.forward_index.op.add_control_inputs([self._forward_sync])
        return self._forward_sync

    @property
    def backward_sync(self) -> Operation:
        """What all pops are joined to, so that the pops of one iteration come before those of the next."""
        if self._backward_sync is None:
            with get_default_graph().control_dependencies(None):
                self._backward_sync = flow_ops.control_trigger(name="b_sync")
            self._backward_sync.context = self.backward
            self.backward_index.op.add_control_inputs([self._backward_sync])
        return self._backward_sync

    # -- the history of forward values ---------------------------------------------------------------------------

    def remember(self, value: Tensor, dead_branch: bool = False) -> Tensor:
        """Push `value` on a new stack in every forward iteration; returns the stack's handle."""
        graph = get_default_graph()
        current = graph.control_flow_context
        with graph.control_dependencies(None):
            _enter(current)
            with graph.colocate_with(value):
                stack: Tensor = ops.stack_v2(constant(-1), elem_type=value.dtype.base, name="f_acc")
            _exit(current)
            handle = self.forward.add_value(stack)
            home = output_context(value.op)
            if home is self.forward:
                self.forward.enter()
                push = self._push(handle, value)
                self.forward.exit()
                self.forward_index.op.add_control_inputs([push])
            else:
                if not isinstance(home, CondContext):
                    raise GraphError(f"'{value.name}' is needed for a gradient from outside of its loop")
                inside: ControlFlowContext | None = home.outer if dead_branch else home
                assert inside is not None
                inside.enter()
                push = self._push(handle, value)
                inside.exit()
                if dead_branch:
                    push.context = home
                self.forward_sync.add_control_inputs([push])
            push.add_control_inputs([self.forward_index.op.inputs[0].op])
        return stack

    def _push(self, handle: Tensor, value: Tensor) -> Operation:
        pushed: Tensor = ops.stack_push_v2(handle, value, swap_memory=self.forward.swap_memory)
        return pushed.op

    def recall(self, stack: Tensor, value: Tensor, dead_branch: bool = False) -> Tensor:
        """Pop what `remember` pushed, in the backward loop."""
        history_home = stack.op.context
        branch: CondContext | None = None
        context = value.op.context
        while context is not None and context is not history_home:
            if isinstance(context, CondContext):
                branch = context
                break
            context = context.outer
        with get_default_graph().control_dependencies(None):
            self.backward.enter()
            if branch is not None:
                # Only a branch that was taken pushed something.
                state: LoopGradient | None = self
                pred: Tensor | None = None
                while pred is None and state is not None:
                    pred = state.history.get(branch.pred)
                    state = state.outer
                side = 1 - branch.branch if dead_branch else branch.branch
                stack = flow_ops.switch_value(stack, branch.pred if pred is None else pred)[side]
            popped: Tensor = ops.stack_pop_v2(stack, elem_type=value.dtype.base)
            popped.set_shape(value.static_shape)
            self.backward.exit()
        if self.backward.parallel_iterations > 1:
            self.backward_sync.add_control_inputs([popped.op])
        return popped

    def real_value(self, value: Tensor) -> Tensor:
        """What stands for a forward value in the backward loop: the same iteration's value."""
        found = self.history.get(value)
        if found is not None:
            return found
        current, state = value, self
        result: Tensor | None = None
        stack: Tensor | None = None
        while True:
            enter = constant_enter_of(current)
            if enter is not None:
                current = enter.inputs[0]
                if state.outer is None:
                    result = self.backward.add_value(current)  # an invariant of all loops around
                    break
                state = state.outer
            elif current.op.type == "Const":
                result = constant(current.op.get_attr("value"))  # cheaper to repeat than to keep
                break
            else:
                self.backward.exit()
                stack = state.remember(current)
                self.backward.enter()
                break
        if result is None:
            assert stack is not None
            result = state.recall(stack, current)
            if state is not self:
                result = self.backward.add_value(result)
        self.history[value] = result
        return result

    def real_pred(self, pred: Tensor) -> Tensor:
        """The predicate of a conditional inside the loop, in the backward loop."""
        found = self.history.get(pred)
        if found is None:
            self.backward.exit()
            stack = self.remember(pred)
            self.backward.enter()
            found = self.history[pred] = self.recall(stack, pred)
        return found


def _enter(context: ControlFlowContext | None) -> None:
    if context is not None:
        context.enter()


def _exit(context: ControlFlowContext | None) -> None:
    if context is not None:
        context.exit()


def _loop_around(op: Operation) -> WhileContext | None:
    return None if op.context is None else op.context.while_context()


def _outer_loop(context: ControlFlowContext) -> WhileContext | None:
    return None if context.outer is None else context.outer.while_context()


class LoopGradients:
    """The loops that one call of `gradients` goes through."""

    def __init__(self) -> None:
        self._states: dict[WhileContext, LoopGradient] = {}

    def add(self, exit_op: Operation, between: dict[Operation, None]) -> None:
        """Set up the gradient of the loop of an Exit; all exits of the loop then take part."""
        context = exit_op.context
        if not isinstance(context, WhileContext):
            raise GraphError("the Exit belongs to no loop that was made here", node=exit_op.name)
        if context in self._states:
            return
        outer = _outer_loop(context)
        state = LoopGradient(context, None if outer is None else self._states.get(outer))
        self._states[context] = state
        for tensor in state.forward_exits:
            between.setdefault(tensor.op, None)

    def get_grad_state(self, op: Operation, before: bool) -> LoopGradient | None:
        """The loop an operation is in; before its gradient is made, an Exit counts as outside of its loop."""
        if before and is_loop_exit(op) and op.context is not None:
            context = _outer_loop(op.context)
        else:
            context = _loop_around(op)
        return None if context is None else self._states.get(context)

    def enter_grad_context(self, op: Operation, before: bool) -> None:
        state = self.get_grad_state(op, before)
        if state is not None:
            state.backward.enter()

    def exit_grad_context(self, op: Operation, before: bool) -> None:
        state = self.get_grad_state(op, before)
        if state is not None:
            state.backward.exit()

    def unused_exits(self, pending: dict[Operation, int], ready: set[Operation]) -> list[Tensor]:
        """Exits that no y uses, of loops all of whose exits are accounted for: they start with zeros."""
        out: list[Tensor] = []
        for state in self._states.values():
            for tensor in state.forward_exits:
                if pending.get(tensor.op, 0) == 0:
                    state.pending_exits -= 1
                    if tensor.op not in ready:
                        state.unused_exits.append(tensor)
                    if state.pending_exits == 0:
                        out += state.unused_exits
            for tensor in state.forward.enters:
                if pending.get(tensor.op, 0) == 0:
                    pending[tensor.op] = 1
        return out

    def zeros_like_for_exit(self, tensor: Tensor) -> Tensor:
        """Zeros of the shape of an Exit's output, in the context around the loop."""
        assert tensor.op.context is not None
        outer_context = tensor.op.context.outer
        outer = _outer_loop(tensor.op.context)
        state = None if outer is None else self._states.get(outer)
        dtype = tensor.dtype.base
        if state is None:
            return (
                array_ops.zeros(tensor.static_shape, dtype)
                if tensor.static_shape.is_fully_defined
                else ops.zeros_like(tensor, name="zeros_like")
            )
        if tensor.static_shape.is_fully_defined:
            state.backward.enter()
            result = array_ops.zeros(tensor.static_shape, dtype)
            state.backward.exit()
            return result
        _enter(outer_context)
        shape = _dynamic_shape(tensor)
        _exit(outer_context)
        stack = state.remember(shape)
        state.backward.enter()
        result = array_ops.zeros(state.recall(stack, shape), dtype)
        state.backward.exit()
        return result

    def zeros_like(self, op: Operation, index: int) -> Tensor | None:
        """Zeros for an output without gradient; inside a loop, of the iteration's shape."""
        if is_loop_switch(op):
            return None
        loop = _loop_around(op)
        state = None if loop is None else self._states.get(loop)
        if state is None:
            return _zeros_outside(op, index)
        tensor = op.outputs[index]
        dead_branch = op.type in SWITCH_OPS
        home = op.context
        if tensor.static_shape.is_fully_defined:
            if tensor.dtype.base is dtypes.resource:
                result = array_ops.zeros(ops.variable_shape(tensor), _held_type(tensor))
            else:
                result = constant(0, tensor.dtype.base, tensor.static_shape)
            if dead_branch and isinstance(home, CondContext):
                pred = state.history.get(home.pred, home.pred)
                result = flow_ops.switch_value(result, pred)[1 - home.branch]
            return result
        if dead_branch and isinstance(home, CondContext):
            _enter(home.outer)
            other = flow_ops.switch_value(op.inputs[0], home.pred)[1 - home.branch]
            shape = _dynamic_shape(other)
            _exit(home.outer)
            other.op.context = home
            shape.op.context = home
        else:
            _enter(home)
            shape = _dynamic_shape(tensor)
            _exit(home)
        state.backward.exit()
        stack = state.remember(shape, dead_branch)
        state.backward.enter()
        return array_ops.zeros(state.recall(stack, shape, dead_branch), tensor.dtype.base)

    def finish(self) -> None:
        """Close backward loops whose variable has no gradient from one iteration to the one before: zeros."""
        for state in self._states.values():
            for merge in state.switch_map.values():
                first, second = merge.op.inputs
                if first is not second:
                    continue
                if first.static_shape.is_fully_defined:
                    state.backward.enter()
                    zeros = constant(0, first.dtype.base, first.static_shape)
                    following = flow_ops.next_iteration(zeros)
                    state.backward.exit()
                else:
                    _enter(state.backward.outer)
                    zeros = array_ops.zeros(_dynamic_shape(first.op.inputs[0]), first.dtype.base)
                    _exit(state.backward.outer)
                    state.backward.enter()
                    following = flow_ops.next_iteration(zeros)
                    state.backward.exit()
                merge.op.update_input(1, following)


def state_for(between: dict[Operation, None]) -> LoopGradients | None:
    """The loops among the operations of a walk, outermost first; their exits are added to `between`."""
    state: LoopGradients | None = None
    for op in list(between):
        if is_loop_exit(op):
            state = state or LoopGradients()
            state.add(op, between)
    return state


def zeros_like(state: LoopGradients | None, op: Operation, index: int) -> Tensor | None:
    """Zeros for an output without a gradient."""
    return _zeros_outside(op, index) if state is None else state.zeros_like(op, index)


def _zeros_outside(op: Operation, index: int) -> Tensor:
    tensor = op.outputs[index]
    dtype = tensor.dtype.base
    if op.type in SWITCH_OPS and isinstance(op.context, CondContext):
        # The zeros are needed on the other branch only, where this output is dead: make them there.
        graph = get_default_graph()
        other = flow_ops.switch(op.inputs[0], op.context.pred)[1 - op.context.branch]
        pivot = array_ops.identity(other)
        if dtype is dtypes.resource:
            with graph.control_dependencies([pivot]):
                return array_ops.zeros(ops.variable_shape(other), _held_type(tensor))
        shape = ops.shape(other)
        with graph.control_dependencies([pivot]):
            return array_ops.zeros(shape, dtype)
    if dtype is dtypes.resource:
        return array_ops.zeros(ops.variable_shape(tensor), _held_type(tensor))
    return ops.zeros_like(tensor, name="zeros_like")


def _held_type(handle: Tensor) -> dtypes.DType:
    data = handle.graph.shapes.handle(handle.output)
    return data[0][1].base if data else dtypes.float32


# -- accumulators for loop invariants ----------------------------------------------------------------------------


def accumulate(context: WhileContext, op: Operation, grad: Tensor) -> Tensor:
    """The sum over all backward iterations of the gradient of a loop invariant (an Enter's input)."""
    context.exit()
    outer = context.outer
    if grad.static_shape.is_fully_defined:
        _enter(outer)
        start = array_ops.zeros(grad.static_shape, grad.dtype.base, name="b_acc")
        _exit(outer)
    else:
        start = _dynamic_zeros(context, op.inputs[0], grad)
    context.enter()
    context.know(start)
    entered = context.make_enter(start, is_constant=False, name="b_acc")
    context.enters.append(entered)
    merged = flow_ops.merge([entered, entered], name="b_acc")
    assert context.pivot is not None
    done, going = flow_ops.switch(merged, context.pivot)
    merged.op.update_input(1, flow_ops.next_iteration(math_ops.add(going, grad)))
    total = flow_ops.exit(done, name="b_acc")
    context.exits.append(total)
    context.exit_result([total])
    return total


def _dynamic_zeros(context: WhileContext, value: Tensor, grad: Tensor) -> Tensor:
    shape = _shape_outside(context, value)
    _enter(context.outer)
    start = array_ops.zeros(shape, grad.dtype.base)
    _exit(context.outer)
    return start


def _shape_outside(context: WhileContext, value: Tensor) -> Tensor:
    """The shape of what enters the loop that a backward loop belongs to, where the backward loop is started.

    In a loop around both, it was another one in each iteration.
    """
    outer = context.outer
    state = outer.gradient if isinstance(outer, WhileContext) else None
    if state is None or context.gradient is None:
        _enter(outer)
        shape = _dynamic_shape(value)
        _exit(outer)
        return shape
    around = context.gradient.forward.outer
    _enter(around)
    shape = _dynamic_shape(value)
    _exit(around)
    stack = state.remember(shape)
    _enter(outer)
    recalled = state.recall(stack, shape)
    _exit(outer)
    return recalled


def accumulate_slices(context: WhileContext, op: Operation, grad: IndexedSlices) -> IndexedSlices:
    """The rows of all backward iterations, one after the other (after one row of zeros to start with)."""
    context.exit()
    tail = grad.values.static_shape.slice(1)
    rows_known = grad.values.static_shape.rank is not None and tail.is_fully_defined
    entering = op.inputs[0]
    whole = entering.static_shape
    is_handle = entering.dtype.base is dtypes.resource  # whose own shape is not that of the variable
    shape_known = grad.dense_shape is None or (whole.is_fully_defined and not is_handle)
    shape = None if rows_known and shape_known else _shape_outside(context, entering)
    _enter(context.outer)
    if rows_known:
        values = array_ops.zeros([1, *tail.as_list()], grad.values.dtype.base, name="b_acc")
    else:
        assert shape is not None
        values = array_ops.zeros(array_ops.concat([constant([1]), shape[1:]], 0), grad.values.dtype.base)
    starts = [array_ops.zeros([1], grad.indices.dtype.base), values]
    if grad.dense_shape is not None:
        kind = grad.dense_shape.dtype.base
        starts.append(constant(whole.as_list(), kind) if shape is None else math_ops.cast(shape, kind))
    _exit(context.outer)
    context.enter()
    enters: list[Tensor] = []
    for start in starts:
        context.know(start)
        enters.append(context.make_enter(start, is_constant=False, name="b_acc"))
    shapes = context.graph.shapes
    for entered in enters[:2]:
        if entered.static_shape.dims is not None:
            shapes.override(entered.output, type(entered.static_shape)([None, *entered.static_shape.dims[1:]]))
    context.enters += enters
    merges = [flow_ops.merge([e, e], name="b_acc") for e in enters]
    assert context.pivot is not None
    switches = [flow_ops.switch(m, context.pivot) for m in merges]
    following = [
        array_ops.concat([going, new], 0)
        for (_, going), new in zip(switches, (grad.indices, grad.values), strict=False)
    ]
    if grad.dense_shape is not None:
        following.append(ops.maximum(grad.dense_shape, switches[2][1]))
    for merge, value in zip(merges, following, strict=True):
        merge.op.update_input(1, flow_ops.next_iteration(value))
    totals = [flow_ops.exit(done, name="b_acc") for done, _ in switches]
    context.exits += totals
    context.exit_result(totals)
    return IndexedSlices(totals[1], totals[0], totals[2] if grad.dense_shape is not None else None)
