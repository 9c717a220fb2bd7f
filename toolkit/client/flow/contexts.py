"""Conditional and loop bodies while they are made (TensorFlow 1's control-flow contexts).

An operation made inside a context gets only inputs that live there: a value from outside enters a branch through
a Switch and a loop through an Enter, once per context. Contexts nest. They are written into the collections
COND_CONTEXT and WHILE_CONTEXT, so that TensorFlow can take gradients through an imported graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from schemas import control_flow_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import flow_ops
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, SWITCH_OPS

if TYPE_CHECKING:
    from toolkit.client.gradients.loops import LoopGradient

_SHAPE_OPS = frozenset({"Shape", "Size", "Rank"})


class ControlFlowContext:
    """What conditionals and loops share.

    Attributes:
        name: the context's name; a loop's frame.
        outer: the context around it.
        values: the tensors that are known inside.
        external: what stands inside for a tensor from outside.
        nested: the contexts directly inside.
    """

    def __init__(self, name: str):
        graph = get_default_graph()
        self.graph = graph
        self.name = name
        self.outer: ControlFlowContext | None = graph.control_flow_context
        self.values: set[Tensor] = set()
        self.external: dict[Tensor, Tensor] = {}
        self.nested: list[ControlFlowContext] = []
        self._entered: list[ControlFlowContext | None] = []
        if self.outer is not None:
            self.outer.nested.append(self)

    # -- being in it ---------------------------------------------------------------------------------------

    def enter(self) -> None:
        self._entered.append(self.graph.control_flow_context)
        self.graph.control_flow_context = self

    def exit(self) -> None:
        self.graph.control_flow_context = self._entered.pop()

    @property
    def is_while(self) -> bool:
        return isinstance(self, WhileContext)

    def while_context(self) -> WhileContext | None:
        """The innermost loop around, this context included."""
        context: ControlFlowContext | None = self
        while context is not None and not isinstance(context, WhileContext):
            context = context.outer
        return context

    def control_pivot(self) -> Tensor | None:
        """A tensor that is alive when the body runs."""
        raise NotImplementedError

    def know(self, tensor: Tensor) -> None:
        """Take a tensor as one that lives inside."""
        self.values.add(tensor)

    def exit_result(self, results: Sequence[Tensor]) -> None:
        """The results belong to the context around."""
        if self.outer is not None:
            for tensor in results:
                self.outer.know(tensor)

    # -- what comes in -------------------------------------------------------------------------------------

    def add_value(self, value: Tensor) -> Tensor:
        """What stands for `value` inside."""
        raise NotImplementedError

    def add_op(self, op: Operation) -> None:
        """Bring the inputs of a new operation inside."""
        raise NotImplementedError

    def remove_external_control_edges(self, op: Operation) -> tuple[list[Operation], list[Operation]]:
        """Drop control inputs from outside the loop; returns those that stay and those that went."""
        loop = self.while_context()
        if loop is None:
            return op.control_inputs, []
        inside: list[Operation] = []
        outside: list[Operation] = []
        for source in op.control_inputs:
            context = output_context(source)
            same = context is not None and context.while_context() is loop
            (inside if same else outside).append(source)
        if outside:
            op.remove_all_control_inputs()
            op.add_control_inputs(inside)
        return inside, outside

    def is_inside(self, op: Operation) -> bool:
        """Whether an operation was made in this context or one inside it."""
        context = op.context
        while context is not None:
            if context is self:
                return True
            context = context.outer
        return False

    def mark_outputs(self, op: Operation) -> None:
        context: ControlFlowContext | None = self
        while context is not None:
            context.values.update(op.outputs)
            context = context.outer

    # -- protos --------------------------------------------------------------------------------------------

    def values_proto(self) -> control_flow_pb2.ValuesDef:
        proto = control_flow_pb2.ValuesDef(values=sorted(tensor.name for tensor in self.values))
        for outside, inside in self.external.items():
            proto.external_values[outside.name] = inside.name
        return proto

    def to_proto(self) -> Any:
        raise NotImplementedError

    def nested_protos(self) -> list[control_flow_pb2.ControlFlowContextDef]:
        return [
            control_flow_pb2.ControlFlowContextDef(while_ctxt=inner.to_proto())
            if inner.is_while
            else control_flow_pb2.ControlFlowContextDef(cond_ctxt=inner.to_proto())
            for inner in self.nested
        ]


class CondContext(ControlFlowContext):
    """One branch of a conditional.

    Attributes:
        pred: the predicate.
        pivot: alive when the branch is taken.
        branch: 1 for true, 0 for false: the Switch output that leads here.
    """

    def __init__(self, pred: Tensor, pivot: Tensor, branch: int, name: str = "cond_text"):
        super().__init__(get_default_graph().unique_name(name))
        self.pred = pred
        self.pivot = pivot
        self.branch = branch
        self.values.add(pred)
        self.external[pred] = pred
        self.values.add(pivot)
        pivot.op.context = self

    def control_pivot(self) -> Tensor:
        return self.pivot

    def add_value(self, value: Tensor) -> Tensor:
        if value in self.values:
            return self.external.get(value, value)
        self.values.add(value)
        result = self._from_outer(value)
        with self.graph.control_dependencies(None):
            result = flow_ops.switch_value(result, self.pred)[self.branch]
        result.op.context = self
        self.mark_outputs(result.op)
        self.external[value] = result
        return result

    def _from_outer(self, value: Tensor) -> Tensor:
        if self.outer is None:
            return value
        result = self.outer.add_value(value)
        self.values.add(result)
        self.external[result] = result
        return result

    def add_op(self, op: Operation) -> None:
        inputs = op.inputs
        if not inputs:
            self.remove_external_control_edges(op)
            if not any(self.is_inside(source) for source in op.control_inputs):
                op.add_control_inputs([self.pivot.op])
        else:
            for index, tensor in enumerate(inputs):
                # the back edge of a loop inside this branch is no value from outside
                back_edge = op.type == "Merge" and tensor.op.type == "NextIteration"
                real = tensor if back_edge else self.add_value(tensor)
                if real is not tensor:
                    op.update_input(index, real)
            self.remove_external_control_edges(op)
            if is_call_by_name(op):
                op.add_control_inputs([self.pivot.op])
        self.mark_outputs(op)

    def branch_output(self, value: Tensor) -> Tensor:
        """A branch's result; one that comes from outside goes through a Switch."""
        if value in self.values:
            return self.external.get(value, value)
        self.values.add(value)
        result = self._from_outer(value)
        result = flow_ops.switch_value(result, self.pred)[self.branch]
        self.external[value] = result
        return result

    def to_proto(self) -> control_flow_pb2.CondContextDef:
        return control_flow_pb2.CondContextDef(
            context_name=self.name,
            pred_name=self.pred.name,
            pivot_name=self.pivot.name,
            branch=self.branch,
            values_def=self.values_proto(),
            nested_contexts=self.nested_protos(),
        )


class WhileContext(ControlFlowContext):
    """The body of a loop.

    Attributes:
        pivot: the LoopCond output.
        pivot_for_pred, pivot_for_body: alive in the condition, in the body.
        enters, exits: what goes into the loop and comes out, in order.
        gradient: set on the loop that runs backwards: what it knows of the loop it is the gradient of.
    """

    def __init__(
        self,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str = "while_context",
        maximum_iterations: Tensor | None = None,
        gradient: LoopGradient | None = None,
    ):
        super().__init__(get_default_graph().unique_name(name))
        self.parallel_iterations = parallel_iterations
        self.back_prop = back_prop
        self.swap_memory = swap_memory
        self.maximum_iterations = maximum_iterations
        self.gradient = gradient
        self.pivot: Tensor | None = None
        self.pivot_for_pred: Tensor | None = None
        self.pivot_for_body: Tensor | None = None
        self.enters: list[Tensor] = []
        self.exits: list[Tensor] = []

    def control_pivot(self) -> Tensor | None:
        return self.pivot_for_pred if self.pivot_for_body is None else self.pivot_for_body

    def make_enter(self, value: Tensor, is_constant: bool, name: str | None = None) -> Tensor:
        return flow_ops.enter(value, self.name, is_constant, self.parallel_iterations, name)

    def add_value(self, value: Tensor) -> Tensor:
        if value in self.values or value.op.context is self:
            return self.external.get(value, value)
        self.values.add(value)
        recalled = self._recall(value)
        if recalled is not None:
            self.external[value] = recalled
            return recalled
        outside = value if self.outer is None else self.outer.add_value(value)
        with self.graph.control_dependencies(None):
            entered = self.make_enter(outside, is_constant=True)
        self.fix_controls_and_context([entered])
        self.values.add(entered)
        self.external[value] = entered
        return entered

    def _recall(self, value: Tensor) -> Tensor | None:
        """In a gradient loop: the value of an iteration of the forward loop, from its history."""
        current = self.graph.control_flow_context
        loop = None if current is None else current.while_context()
        if loop is None or loop.gradient is None:
            return None
        forward = None if value.op.context is None else value.op.context.while_context()
        if value.op.type in EXIT_OPS and forward is not None:
            forward = None if forward.outer is None else forward.outer.while_context()
        return loop.gradient.real_value(value) if forward is loop.gradient.forward else None

    def fix_controls_and_context(self, enters: Sequence[Tensor]) -> None:
        """Enter nodes belong to the loop, but wait for what the code around the loop waits for."""
        for entered in enters:
            op = entered.op
            source = op.inputs[0].op
            kept = [w for w in self.graph.waits_for([source]) if self._is_ancestor(output_context(w))]
            op.context = self
            op.add_control_inputs(kept)
            self.graph.record_seen(op)

    def _is_ancestor(self, context: ControlFlowContext | None) -> bool:
        outer = self.outer
        loop = None if outer is None else outer.while_context()
        while outer is not context:
            if outer is None or outer is loop:
                return False
            outer = outer.outer
        return True

    def add_op(self, op: Operation) -> None:
        # In a gradient loop, only the shape of a forward value is needed: take it there and keep the shape.
        if op.type in _SHAPE_OPS:
            current = self.graph.control_flow_context
            loop = None if current is None else current.while_context()
            if loop is not None and loop.gradient is not None:
                home = op.inputs[0].op.context
                if home is not None and home.while_context() is loop.gradient.forward:
                    op.context = home
                    home.adopt(op) if isinstance(home, WhileContext) else home.add_op(op)
                    return
        self.adopt(op)

    def adopt(self, op: Operation) -> None:
        """Bring the inputs of an operation inside, and replace outer control inputs by inner ones."""
        inputs = op.inputs
        if not inputs:
            inside, outside = self.remove_external_control_edges(op)
            if not inside:
                op.add_control_inputs([self._pivot_op()])
        else:
            for index, tensor in enumerate(inputs):
                real = self.add_value(tensor)
                if real is not tensor:
                    op.update_input(index, real)
            _, outside = self.remove_external_control_edges(op)
            once = all(is_constant_enter(tensor.op) for tensor in op.inputs)
            if not op.control_inputs and (once or is_call_by_name(op)):
                op.add_control_inputs([self._pivot_op()])  # else it would run once, not in every iteration
        self.values.update(op.outputs)
        carriers = [source.outputs[0] for source in outside if source.outputs]
        if carriers:
            from toolkit.client.arrays import array_ops

            with self.graph.control_dependencies(None):
                self.enter()
                moved = [array_ops.identity(tensor).op for tensor in carriers]
                self.exit()
            op.add_control_inputs(moved)

    def _pivot_op(self) -> Operation:
        pivot = self.control_pivot()
        assert pivot is not None
        return pivot.op

    def to_proto(self) -> control_flow_pb2.WhileContextDef:
        assert self.pivot is not None and self.pivot_for_pred is not None and self.pivot_for_body is not None
        return control_flow_pb2.WhileContextDef(
            context_name=self.name,
            parallel_iterations=self.parallel_iterations,
            back_prop=self.back_prop,
            swap_memory=self.swap_memory,
            pivot_name=self.pivot.name,
            pivot_for_pred_name=self.pivot_for_pred.name,
            pivot_for_body_name=self.pivot_for_body.name,
            loop_exit_names=[tensor.name for tensor in self.exits],
            loop_enter_names=[tensor.name for tensor in self.enters],
            maximum_iterations_name="" if self.maximum_iterations is None else self.maximum_iterations.name,
            values_def=self.values_proto(),
            nested_contexts=self.nested_protos(),
        )


# -- contexts of imported graphs ---------------------------------------------------------------------------------


def from_proto(proto: Any, prefix: str = "") -> ControlFlowContext:
    """The context of a CondContextDef or WhileContextDef whose nodes are in the default graph already.

    Args:
        prefix: what was put before the nodes' names.

    Raises:
        GraphError: a tensor it names does not exist.
    """
    graph = get_default_graph()

    def tensor(name: str) -> Tensor:
        return graph.get_tensor_by_name(prefix + name)

    if isinstance(proto, control_flow_pb2.CondContextDef):
        context: ControlFlowContext = CondContext(tensor(proto.pred_name), tensor(proto.pivot_name), proto.branch)
    else:
        loop = WhileContext(proto.parallel_iterations, proto.back_prop, proto.swap_memory)
        loop.pivot = tensor(proto.pivot_name)
        loop.pivot_for_pred = tensor(proto.pivot_for_pred_name)
        loop.pivot_for_body = tensor(proto.pivot_for_body_name)
        loop.enters = [tensor(name) for name in proto.loop_enter_names]
        loop.exits = [tensor(name) for name in proto.loop_exit_names]
        if proto.maximum_iterations_name:
            loop.maximum_iterations = tensor(proto.maximum_iterations_name)
        context = loop
    context.name = prefix + proto.context_name  # a loop's frame, which its Enter nodes name
    values = proto.values_def
    context.values.update(tensor(name) for name in values.values)
    context.external.update({tensor(a): tensor(b) for a, b in values.external_values.items()})
    for inside in context.values - context.external.keys():
        inside.op.context = context
    # Switch and Enter nodes that bring values in belong to the context too, pivots included.
    for inside in context.external.values():
        if inside not in context.external:
            inside.op.context = context
    context.enter()
    for inner in proto.nested_contexts:
        from_proto(inner.while_ctxt if inner.WhichOneof("ctxt") == "while_ctxt" else inner.cond_ctxt, prefix)
    context.exit()
    return context


# -- questions about operations ---------------------------------------------------------------------------------


def output_context(op: Operation) -> ControlFlowContext | None:
    """The context that an operation's outputs belong to: for an Exit, the one around the loop."""
    if op.context is not None and op.type in EXIT_OPS:
        return op.context.outer
    return op.context


def is_call_by_name(op: Operation) -> bool:
    """Whether it runs a function of its graph, which nothing but a control input keeps from running too often."""
    return op.type == "SymbolicGradient" or op.type in op.graph.core.library


def is_constant_enter(op: Operation) -> bool:
    """Whether it brings a loop invariant in."""
    return op.type in ENTER_OPS and bool(op.get_attr("is_constant"))


def constant_enter_of(tensor: Tensor) -> Operation | None:
    """The Enter of a loop invariant that the tensor is, directly or through Identity; or None."""
    op = tensor.op
    while op.type in ("Identity", "RefIdentity", "Switch", "RefSwitch"):
        op = op.inputs[0].op
    return op if is_constant_enter(op) else None


def is_loop_exit(op: Operation) -> bool:
    return op.type in EXIT_OPS


def is_loop_switch(op: Operation) -> bool:
    """Whether it is a Switch that steers a loop, not a conditional."""
    return op.type in SWITCH_OPS and isinstance(op.context, WhileContext)
