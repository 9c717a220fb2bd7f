"""Gradients of ops that call functions: PartitionedCall, If, Case and While.

The op's functions are replaced by ones that give out the values their gradients need (`function_body`), the op gets
more outputs, and an op of the same kind runs the backward functions. A loop pushes such values on lists, one for each,
and the backward loop pops them (Yu et al., arXiv 1805.01772, section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas import function_pb2
from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.functions import CALLED
from toolkit.client.functions.defined import DefinedFunction
from toolkit.client.gradients.function_body import Derivative, OpenFunction, differentiate, write_function
from toolkit.client.gradients.registry import CALL_BY_NAME, Gradient, gradient
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import UNKNOWN


def _is_trainable(tensor: Tensor) -> bool:
    return tensor.dtype.base.kind in "fcrv"


def _seeded(op: Operation, grads: Sequence[Gradient]) -> list[int]:
    """The outputs with a gradient."""
    return [i for i, grad in enumerate(grads) if grad is not None and op.outputs[i].dtype.base.kind in "fcv"]


def _library(op: Operation) -> Any:
    return op.graph.core.library


def _extend(op: Operation, attr: str, dtypes_: Sequence[DType]) -> None:
    """More outputs for an op that calls functions; `attr` lists the types of its outputs."""
    node = op.node
    shapes = [output.static_shape for output in op.outputs]
    node.attrs[attr] = [*node.attr(attr), *dtypes_]
    if node.attr("output_shapes", None):
        node.attrs["output_shapes"] = [*node.attr("output_shapes"), *[UNKNOWN] * len(dtypes_)]
    if "_output_shapes" in node.attrs:
        node.attrs["_output_shapes"] = [*shapes, *[UNKNOWN] * len(dtypes_)]
    for dtype in dtypes_:
        op.outputs.append(Tensor(op, len(op.outputs), dtype.base))
    op.graph.core.version += 1
    op.graph.shapes.forget(node)


def _as_list(made: Any) -> list[Tensor]:
    if isinstance(made, Operation):
        return []
    return list(made) if isinstance(made, list | tuple) else [made]  # type: ignore[arg-type]


# -- calls ------------------------------------------------------------------------------------------------


@gradient("PartitionedCall", "StatefulPartitionedCall", accepts_none=True)
def call(op: Operation, *grads: Gradient) -> list[Gradient]:
    inputs, count = op.inputs, len(op.outputs)
    ys = _seeded(op, grads)
    xs = [j for j, x in enumerate(inputs) if _is_trainable(x)]
    derivative = differentiate(_library(op), op.get_attr("f"), ys, xs)
    function = derivative.function
    wanted = [j for j in xs if derivative.grads[j] is not None]
    if not wanted:
        return [None] * len(inputs)
    results = [g for j in wanted if (g := derivative.grads[j]) is not None]
    backward = derivative.backward(results)
    values = backward.intermediates
    if values:
        forward = write_function(
            function, "forward", derivative.forward_ops(), function.args, [*function.results, *values],
            controls=function.controls,
        )  # fmt: skip
        op.node.attrs["f"] = forward
        _extend(op, "Tout", [v.dtype for v in values])
    made = write_function(
        function, "backward", backward.ops, [*derivative.seeds, *backward.from_args, *values], results
    )
    args = [*(convert_to_tensor(grads[i]) for i in ys), *(inputs[j] for j in backward.from_args.values())]
    found = ops.function(op.type)([*args, *op.outputs[count:]], Tout=[r.dtype.base for r in results], f=made)
    answer: list[Gradient] = [None] * len(inputs)
    for j, grad in zip(wanted, _as_list(found), strict=True):
        answer[j] = grad
    return answer


@gradient(CALL_BY_NAME)
def call_by_name(op: Operation, *grads: Gradient) -> list[Gradient]:
    """Of an operation whose type is a function's name: as the program says, or SymbolicGradient computes it anew."""
    called: dict[str, DefinedFunction] = op.graph.extras.get(CALLED, {})
    if op.type in called and (own := called[op.type].python_gradient) is not None:
        made: Any = own(op, *grads)
        return list(made) if isinstance(made, list | tuple) else [made]  # type: ignore[arg-type]
    seeds = [
        ops.zeros_like(y) if grad is None else convert_to_tensor(grad)
        for y, grad in zip(op.outputs, grads, strict=True)
    ]
    ref = FuncRef(op.type, dict(op.node.attrs))
    types = [dtypes.float32 if x.dtype.base is dtypes.resource else x.dtype.base for x in op.inputs]
    found = _as_list(ops.symbolic_gradient([*op.inputs, *seeds], Tout=types, f=ref))
    return [grad if x.dtype.base.kind in "fcr" else None for x, grad in zip(op.inputs, found, strict=True)]


# -- branches ---------------------------------------------------------------------------------------------


@gradient("If", "StatelessIf", "Case", "StatelessCase", accepts_none=True)
def branches(op: Operation, *grads: Gradient) -> list[Gradient]:
    """Values of the branches that were not taken are empty tensors that nobody reads."""
    is_if = op.type.endswith("If")
    choice, *inputs = op.inputs
    count = len(op.outputs)
    ys = _seeded(op, grads)
    xs = [j for j, x in enumerate(inputs) if _is_trainable(x)]
    refs: list[FuncRef] = [op.get_attr(a) for a in ("then_branch", "else_branch")] if is_if else op.get_attr("branches")
    derivatives = [differentiate(_library(op), ref, ys, xs) for ref in refs]
    types = {j: g.dtype.base for d in derivatives for j in xs if (g := d.grads[j]) is not None}
    wanted = [j for j in xs if j in types]
    if not wanted:
        return [None] * (1 + len(inputs))
    results = [[g if (g := d.grads[j]) is not None else d.zeros(j, types[j]) for j in wanted] for d in derivatives]
    backwards = [d.backward(r) for d, r in zip(derivatives, results, strict=True)]
    kept = [backward.intermediates for backward in backwards]
    value_types = [v.dtype.base for values in kept for v in values]
    forward_refs: list[FuncRef] = []
    backward_refs: list[FuncRef] = []
    for own, (derivative, backward) in enumerate(zip(derivatives, backwards, strict=True)):
        function = derivative.function
        outputs, places = _with_blanks(derivative, kept, own)
        blanks = [t.op for t in outputs if t not in kept[own]]
        more = [*blanks, *(t.op for blank in blanks for t in blank.inputs)]
        forward_refs.append(
            write_function(
                function, "forward", derivative.forward_ops(more), function.args, [*function.results, *outputs],
                controls=function.controls,
            )
        )  # fmt: skip
        args = [*derivative.seeds, *function.args, *places]
        backward_refs.append(write_function(function, "backward", backward.ops, args, results[own]))
    if value_types:
        _replace_branches(op, is_if, forward_refs)
        _extend(op, "Tout", value_types)
    given = [*(convert_to_tensor(grads[i]) for i in ys), *inputs, *op.outputs[count:]]
    named = (
        {"then_branch": backward_refs[0], "else_branch": backward_refs[-1]} if is_if else {"branches": backward_refs}
    )
    found = ops.function(op.type)(choice, given, Tout=[types[j] for j in wanted], **named)
    answer: list[Gradient] = [None] * (1 + len(inputs))
    for j, grad in zip(wanted, _as_list(found), strict=True):
        answer[1 + j] = grad
    return answer


def _replace_branches(op: Operation, is_if: bool, refs: list[FuncRef]) -> None:
    if is_if:
        op.node.attrs["then_branch"], op.node.attrs["else_branch"] = refs
    else:
        op.node.attrs["branches"] = refs


def _with_blanks(
    derivative: Derivative, kept: Sequence[Sequence[Tensor]], own: int
) -> tuple[list[Tensor], list[Tensor | DType]]:
    """A branch's outputs for the values of all branches, and the same as arguments of its backward function."""
    outputs: list[Tensor] = []
    places: list[Tensor | DType] = []
    with derivative.function.graph.as_default():
        for branch, values in enumerate(kept):
            for value in values:
                if branch == own:
                    outputs.append(value)
                    places.append(value)
                else:
                    outputs.append(_blank(value.dtype.base))
                    places.append(value.dtype.base)
    return outputs, places


def _blank(dtype: DType) -> Tensor:
    if dtype is dtypes.variant:
        return ops.empty_tensor_list(constant(-1), constant(-1), element_dtype=dtypes.float32)
    if dtype is dtypes.resource:
        raise GraphError("a branch makes a resource that its gradient needs; make it outside and pass it in")
    return array_ops.zeros([0], dtype)


# -- loops ------------------------------------------------------------------------------------------------


@gradient("While", "StatelessWhile", accepts_none=True)
def loop(op: Operation, *grads: Gradient) -> list[Gradient]:
    return _Loop(op, grads).build()


class _Loop:
    """The gradient of one While.

    Its loop variables, beside the gradients of the loop's own: how many iterations are left, sums for variables that
    the body reads (their handles never change), what the body does not change, and the lists of values.
    """

    def __init__(self, op: Operation, grads: Sequence[Gradient]):
        self.op = op
        self.inputs = op.inputs
        self.grads = list(grads)
        self.count = len(self.inputs)
        self.carried = [j for j, x in enumerate(self.inputs) if x.dtype.base.kind in "fcv"]
        self.handles = [j for j, x in enumerate(self.inputs) if x.dtype.base is dtypes.resource]
        self.derivative = differentiate(_library(op), op.get_attr("body"), self.carried, [*self.carried, *self.handles])
        self.body: OpenFunction = self.derivative.function

    def build(self) -> list[Gradient]:
        d = self.derivative
        self.handles = [j for j in self.handles if d.grads[j] is not None]
        steps = [g if (g := d.grads[j]) is not None else d.zeros(j, self.inputs[j].dtype.base) for j in self.carried]
        sums = [g for j in self.handles if (g := d.grads[j]) is not None]
        backward = d.backward([*steps, *sums])
        fixed = {t: j for t, j in backward.from_args.items() if self.body.results[j] is t}
        kept = [*backward.intermediates, *(t for t in backward.from_args if t not in fixed)]
        for tensor in kept:
            if tensor.dtype.base is dtypes.resource:
                raise GraphError("a loop changes a resource handle that its gradient needs", node=self.op.name)
        counter, lists = self._record(kept)
        refs = self._backward_functions(backward.ops, steps, sums, fixed, kept)
        start = [self._start(j) for j in self.carried]
        zeros = [
            array_ops.zeros(ops.variable_shape(self.inputs[j]), total.dtype.base)
            for j, total in zip(self.handles, sums, strict=True)
        ]
        given = [counter, *start, *zeros, *(self.inputs[j] for j in fixed.values()), *lists]
        found = _as_list(ops.function(self.op.type)(given, cond=refs[0], body=refs[1]))
        answer: list[Gradient] = [None] * len(self.op.inputs)
        for position, j in enumerate([*self.carried, *self.handles]):
            answer[j] = found[1 + position]
        return answer

    def _start(self, j: int) -> Tensor:
        grad = self.grads[j]
        return ops.zeros_like(self.op.outputs[j]) if grad is None else convert_to_tensor(grad)

    # -- the forward loop ----------------------------------------------------------------------------------

    def _record(self, kept: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """Let the loop count its iterations and push values; returns the count and the lists."""
        graph = self.body.graph
        with graph.as_default():
            counter = array_ops.placeholder(dtypes.int32, [], name="counter")
            following = ops.add_v2(counter, constant(1))
            handles = [array_ops.placeholder(dtypes.variant, [], name="list") for _ in kept]
            pushed: list[Tensor] = [
                ops.tensor_list_push_back(handle, value) for handle, value in zip(handles, kept, strict=True)
            ]
        more = [following.op, following.op.inputs[1].op, *(p.op for p in pushed)]
        args = [*self.body.args, counter, *handles]
        results = [*self.body.results, following, *pushed]
        operations = self.derivative.forward_ops(more)
        body = write_function(self.body, "forward", operations, args, results, controls=self.body.controls)
        extra = [dtypes.int32, *[dtypes.variant] * len(kept)]
        self.op.node.attrs["cond"] = self._widened_condition(extra)
        self.op.node.attrs["body"] = body
        outer = get_default_graph()
        with outer.control_dependencies(None):
            starts = [constant(0, name="loop_counter")]
            for value in kept:
                starts.append(
                    ops.empty_tensor_list(constant(-1), constant(-1), element_dtype=value.dtype.base, name="history")
                )
        for tensor in starts:
            self.op.append_input(tensor)
        before = len(self.op.outputs)
        _extend(self.op, "T", extra)
        return self.op.outputs[before], self.op.outputs[before + 1 :]

    def _widened_condition(self, extra: Sequence[DType]) -> FuncRef:
        """The condition with arguments that it does not look at."""
        library = _library(self.op)
        ref: FuncRef = self.op.get_attr("cond")
        wide = function_pb2.FunctionDef()
        wide.CopyFrom(library.function(ref.name))
        number = 1
        while f"{ref.name}_forward_{number}" in library:
            number += 1
        wide.signature.name = f"{ref.name}_forward_{number}"
        for dtype in extra:
            wide.signature.input_arg.add(name=f"unused_{len(wide.signature.input_arg)}", type=dtype.enum)
        library.add(wide)
        return FuncRef(wide.signature.name, ref.attrs)

    # -- the backward loop ---------------------------------------------------------------------------------

    def _backward_functions(
        self,
        operations: Sequence[Operation],
        steps: Sequence[Tensor],
        sums: Sequence[Tensor],
        fixed: dict[Tensor, int],
        kept: Sequence[Tensor],
    ) -> tuple[FuncRef, FuncRef]:
        with self.body.graph.as_default():
            left = array_ops.placeholder(dtypes.int32, [], name="left")
            goes_on = ops.greater(left, constant(0))
            following = ops.sub(left, constant(1))
            totals = [array_ops.placeholder(s.dtype.base, None, name="total") for s in sums]
            added = [math_ops.add(total, s) for total, s in zip(totals, sums, strict=True)]
            lists = [array_ops.placeholder(dtypes.variant, [], name="list") for _ in kept]
            popped = [
                ops.tensor_list_pop_back(handle, constant(-1), element_dtype=value.dtype.base)
                for handle, value in zip(lists, kept, strict=True)
            ]
        args = [left, *self.derivative.seeds, *totals, *fixed, *lists]
        new = [goes_on, following, *added, *(item for pair in popped for item in pair)]
        more = dict.fromkeys(t.op for t in new) | dict.fromkeys(i.op for t in new for i in t.op.inputs)
        wanted = dict.fromkeys(operations)
        wanted |= {op: None for op in more if op.type != "Placeholder" and op not in self.body.forward}
        ordered = [op for op in self.body.graph.get_operations() if op in wanted]
        stand_ins = {value: pair[1] for value, pair in zip(kept, popped, strict=True)}
        rest = [*fixed, *(pair[0] for pair in popped)]
        body = write_function(
            self.body, "backward", ordered, args, [following, *steps, *added, *rest], stand_ins=stand_ins
        )
        test = [goes_on.op, goes_on.op.inputs[1].op]
        return write_function(self.body, "backward_cond", test, args, [goes_on]), body
