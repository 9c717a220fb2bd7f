"""Gradients of Switch, Merge and the loop ops."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.flow import flow_ops
from toolkit.client.flow.contexts import CondContext, WhileContext, output_context
from toolkit.client.flow.control_flow import add_back_edge
from toolkit.client.gradients import loops
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.errors import GraphError
from toolkit.graph import dtypes

no_gradient("LoopCond", "ControlTrigger", "NoOp", "Assert")


def _backward() -> WhileContext | None:
    context = get_default_graph().control_flow_context
    return None if context is None else context.while_context()


@gradient("Switch", "RefSwitch")
def switch(op: Operation, *grads: Tensor | None) -> list[Gradient]:
    context = op.context
    if isinstance(context, WhileContext):
        return [_loop_switch(op, grads[0], grads[1]), None]
    if isinstance(context, CondContext):
        if grads[1 - context.branch] is None:
            if op.inputs[0].dtype.base is dtypes.resource:
                taken = grads[context.branch]
                return [None if taken is None else flow_ops.merge([taken, taken], name="cond_grad"), None]
            return [None, None]
        return [flow_ops.merge([convert_to_tensor(g) for g in grads], name="cond_grad"), None]
    pred = op.inputs[1]
    parts = [flow_ops.switch(convert_to_tensor(g), pred)[side] for side, g in enumerate(grads)]
    return [flow_ops.merge(parts), None]


def _loop_switch(op: Operation, final: Tensor | None, inside: Tensor | None) -> Tensor | None:
    """First comes the gradient of the loop's result, which opens the backward loop; then that of the body, which
    closes it."""
    backward = _backward()
    if backward is None or backward.gradient is None:
        raise GraphError("the gradient of a loop's Switch is needed outside of the gradient loop", node=op.name)
    opened = backward.gradient.switch_map.get(op)
    if opened is not None:
        if inside is not None:
            add_back_edge(opened, convert_to_tensor(inside))
        return None
    if final is None:
        return None
    merged = flow_ops.merge([final, final], name="b_switch")
    backward.gradient.switch_map[op] = merged
    return merged


@gradient("Merge", "RefMerge")
def merge(op: Operation, grad: Tensor, _: Gradient) -> list[Gradient]:
    source = op.inputs[0].op
    context = output_context(source)
    backward = _backward()
    if isinstance(context, WhileContext):
        assert backward is not None and backward.pivot is not None
        return list(flow_ops.switch_value(grad, backward.pivot))
    if isinstance(context, CondContext):
        pred = context.pred
        if backward is not None and backward.gradient is not None:
            pred = backward.gradient.real_pred(pred)
        return list(flow_ops.switch_value(grad, pred, name="cond_grad"))
    index = op.outputs[1]
    taken: list[Tensor] = [ops.equal(index, i) for i in range(len(op.inputs))]
    return [flow_ops.switch_value(grad, each)[1] for each in taken]


@gradient("Exit", "RefExit")
def exit_(op: Operation, grad: Gradient) -> Gradient:
    """The gradient of a loop's result enters the backward loop."""
    backward = _backward()
    if backward is None or not backward.back_prop:
        return None
    if isinstance(op.context, WhileContext) and op.context.gradient is not None:
        raise GraphError("second derivatives through a loop are not supported", node=op.name)
    if isinstance(grad, IndexedSlices):
        grad = grad.to_tensor()
    assert grad is not None
    backward.know(grad)
    # the walk is inside the backward loop by now, but the Enter takes its input from outside
    backward.enter()
    result = backward.make_enter(grad, is_constant=False, name="b_exit")
    backward.enters.append(result)
    backward.exit()
    return result


@gradient("NextIteration", "RefNextIteration")
def next_iteration(op: Operation, grad: Gradient) -> Gradient:
    return grad


@gradient("Enter", "RefEnter")
def enter(op: Operation, grad: Gradient) -> Gradient:
    """A start value's gradient leaves the backward loop; an invariant's is summed over all iterations first."""
    backward = _backward()
    if backward is None or backward.gradient is None or not backward.back_prop:
        return grad
    if op.get_attr("is_constant"):
        if isinstance(grad, IndexedSlices):
            return loops.accumulate_slices(backward, op, grad)
        assert grad is not None
        return loops.accumulate(backward, op, grad)
    result = flow_ops.exit(convert_to_tensor(grad))
    backward.exits.append(result)
    backward.exit_result([result])
    return result
