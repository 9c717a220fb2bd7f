"""Reverse-mode differentiation: walk from the ys back to the xs and add each operation's gradient.

The order, the names and the aggregation are TensorFlow's (gradients_util): an operation is visited when the
gradients of all its outputs that matter have arrived.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.create import graph_of
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.gradients import loops
from toolkit.client.gradients.common import gradients_of
from toolkit.client.gradients.registry import Gradient, GradientEntry, find, is_computed_anew
from toolkit.client.math import math_ops
from toolkit.errors import GraphError, GraphmillError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

#: endpoint (operation, output index) to the gradients that have arrived, one list per loop exit they came by
_Arrived = dict[Operation, list[list[Gradient]]]


class Unconnected(enum.Enum):
    """What the gradient is where no path joins y and x."""

    NONE = "none"
    ZERO = "zero"


class AggregationMethod:
    """How gradients that meet at one tensor are added up.

    ADD_N (the default) adds all by one AddN, which waits for all of them; the two experimental ways add them one by
    one, so that each can be freed as soon as it has been added.
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def is_trainable(dtype: DType) -> bool:
    """Whether values of this type can have gradients."""
    return dtype.base.kind in "fcrv"


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Unconnected | str = Unconnected.NONE,
) -> list[Gradient]:
    """The sum over `ys` of dy/dx for every x.

    Args:
        ys, xs: a tensor or variable, or a list of them.
        grad_ys: the gradients to start from; default: ones.
        colocate_gradients_with_ops: place each gradient with the operation it belongs to.
        gate_gradients: let an operation's gradients be used only when all of them are there.
        aggregation_method: one of `AggregationMethod`; default: ADD_N.
        stop_gradients: tensors to take as constants.
        unconnected_gradients: NONE, or ZERO for zeros where there is no path.

    Raises:
        GraphError: an op on the path has no gradient, a gradient has the wrong type or shape, a y has no
            differentiable type.
        UsageError: `aggregation_method` is none of its class.
    """
    y_list, x_list = _as_list(ys), _as_list(xs)
    stop_list = [convert_to_tensor(s) for s in _as_list(stop_gradients)]
    seeds = _as_list(grad_ys) if grad_ys is not None else [None] * len(y_list)
    if len(seeds) != len(y_list):
        raise GraphError(f"{len(y_list)} ys and {len(seeds)} grad_ys: give one for each y")
    graph = graph_of([*y_list, *x_list])
    with graph.as_default(), graph.name_scope(name or "gradients") as scope, gradients_of(scope):
        y_tensors = [array_ops.convert_to_tensor_or_slices(y, name="y") for y in y_list]
        x_tensors = [_handle(x) for x in x_list]
        one_by_one = _adds_one_by_one(aggregation_method)
        started = [
            _seed(i, y, seed, colocate_gradients_with_ops)
            for i, (y, seed) in enumerate(zip(y_tensors, seeds, strict=True))
        ]
        walk = _Walk(y_tensors, x_tensors, stop_list, colocate_gradients_with_ops, gate_gradients, one_by_one)
        walk.start(started)
        walk.run()
    wanted = Unconnected(unconnected_gradients)
    with graph.as_default():
        if walk.loops is not None:
            walk.loops.finish()
        return [walk.result(x, wanted) for x in x_tensors]


def hessians(
    ys: TensorLike,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """The Hessian of the sum of ys for each x, [*shape of x, *shape of x]: a loop over the elements of the gradient.

    The other arguments are those of `gradients`.

    Raises:
        GraphError: there is no path from ys to an x.
    """
    options: dict[str, Any] = {
        "colocate_gradients_with_ops": colocate_gradients_with_ops,
        "gate_gradients": gate_gradients,
        "aggregation_method": aggregation_method,
    }
    x_list = _as_list(xs)
    out: list[Tensor] = []
    for first, x in zip(gradients(ys, x_list, **options), x_list, strict=True):
        if first is None:
            raise GraphError(f"no path from y to '{x.name}'")
        out.append(_second(convert_to_tensor(first), convert_to_tensor(x), options))
    return out


def _second(first: Tensor, x: Tensor, options: dict[str, Any]) -> Tensor:
    """All second derivatives, by one gradient of a gradient's element in each iteration of a loop."""
    from toolkit.client.flow.control_flow import while_loop
    from toolkit.client.flow.tensor_array import TensorArray

    flat = array_ops.reshape(first, [-1])
    count = array_ops.size(x)

    def body(i: Tensor, rows: TensorArray) -> tuple[Tensor, TensorArray]:
        following = i + 1
        row = gradients(flat[i], x, unconnected_gradients=Unconnected.ZERO, **options)[0]
        return following, rows.write(i, convert_to_tensor(row))

    start = [array_ops.constant(0, dtypes.int32), TensorArray(x.dtype.base, count)]
    _, rows = while_loop(lambda i, _: i < count, body, start)
    sizes = array_ops.shape(x)
    return array_ops.reshape(rows.stack(), array_ops.concat((sizes, sizes), 0))


def _adds_one_by_one(method: int | None) -> bool:
    methods = {name: value for name, value in vars(AggregationMethod).items() if name.isupper()}
    if method is not None and method not in methods.values():
        raise UsageError(f"{method!r} is no aggregation method; there are: {', '.join(methods)} of AggregationMethod")
    return method in (AggregationMethod.EXPERIMENTAL_TREE, AggregationMethod.EXPERIMENTAL_ACCUMULATE_N)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]  # type: ignore[arg-type]


def _handle(x: Any) -> Tensor:
    """Variables are differentiated at their reference or resource, which all reads go through."""
    handle = getattr(x, "handle", None)
    return handle if isinstance(handle, Tensor) else convert_to_tensor(x, name="x", as_ref=True)


def _seed(index: int, y: Tensor | IndexedSlices, seed: Any, colocate: bool) -> Gradient:
    if not is_trainable(y.dtype) or (seed is None and y.dtype.base.kind in "rv"):
        raise GraphError(f"'{y.name}' has type {y.dtype}; gradients are of floating point or complex tensors")
    with _beside(y.op, colocate):
        if seed is None:
            if y.dtype.base.is_complex:
                raise GraphError(f"'{y.name}' is complex; give grad_ys, as there is no natural start")
            tensor = y.values if isinstance(y, IndexedSlices) else y
            sizes = array_ops.shape(tensor)
            with get_default_graph().name_scope(f"grad_ys_{index}") as scope:
                return array_ops.fill(sizes, constant(np.array(1, tensor.dtype.base.numpy)), name=scope)
        given = array_ops.convert_to_tensor_or_slices(seed, name=f"grad_ys_{index}")
        if given.dtype.base is not y.dtype.base:
            raise GraphError(f"the gradient given for '{y.name}' has type {given.dtype}; {y.dtype} is wanted")
        if isinstance(given, Tensor):
            return array_ops.identity(given, name=f"grad_ys_{index}")
        parts = {"indices": given.indices, "values": given.values, "shape": given.dense_shape}
        made = {
            key: None if part is None else array_ops.identity(part, name=f"grad_ys_{index}_{key}")
            for key, part in parts.items()
        }
        assert made["values"] is not None and made["indices"] is not None
        return IndexedSlices(made["values"], made["indices"], made["shape"])


@contextmanager
def _beside(op: Operation, colocate: bool) -> Generator[None]:
    with get_default_graph().colocate_with(op) if colocate else nullcontext():
        yield


class _Walk:
    """One call of `gradients`."""

    def __init__(
        self,
        ys: Sequence[Tensor | IndexedSlices],
        xs: Sequence[Tensor],
        stops: Sequence[Tensor],
        colocate: bool,
        gate: bool,
        one_by_one: bool,
    ):
        self.ys = ys
        self.xs = xs
        self.colocate = colocate
        self.gate = gate
        self.one_by_one = one_by_one
        self.arrived: _Arrived = {}
        self.consumers: dict[Tensor, list[Operation]] = {}
        for op in ys[0].graph.get_operations() if ys else []:
            for tensor in dict.fromkeys(op.inputs):
                self.consumers.setdefault(tensor, []).append(op)
        self.sources = [x.op for x in xs]
        targets = [y.op for y in ys]
        between = self._between(targets)
        self.loops = loops.state_for(between)
        self.pending = dict.fromkeys(between, 0)
        for op in between:
            for tensor in op.inputs:
                if tensor.op in self.pending:
                    self.pending[tensor.op] += 1
        self.stops = self._stop_ops({tensor.op for tensor in stops})

    # -- which operations matter -----------------------------------------------------------------------------

    def _reached(self) -> set[Operation]:
        reached: set[Operation] = set()
        queue = deque(self.sources)
        while queue:
            op = queue.popleft()
            if op in reached:
                continue
            reached.add(op)
            for tensor in op.outputs:
                if is_trainable(tensor.dtype):
                    queue.extend(self.consumers.get(tensor, ()))
        return reached

    def _between(self, targets: Sequence[Operation]) -> dict[Operation, None]:
        """The operations on a path from an x to a y."""
        reached = self._reached()
        between: dict[Operation, None] = {}
        queue = deque(targets)
        while queue:
            op = queue.popleft()
            if op in reached and op not in between:
                between[op] = None
                queue.extend(tensor.op for tensor in op.inputs)
        return between

    def _stop_ops(self, given: set[Operation]) -> set[Operation]:
        """Where to stop: at the xs, unless another x lies behind, and at `stop_gradients`."""
        stops: set[Operation] = set()
        for op in self.sources:
            if not any(self.pending.get(tensor.op, 0) > 0 for tensor in op.inputs):
                stops.add(op)
        return stops | given

    # -- the walk ------------------------------------------------------------------------------------------

    def start(self, seeds: Sequence[Gradient]) -> None:
        for y, seed in zip(self.ys, seeds, strict=True):
            target = y.values if isinstance(y, IndexedSlices) else y
            self.arrive(target, seed)

    def arrive(self, tensor: Tensor, grad: Gradient) -> None:
        slots = self.arrived.setdefault(tensor.op, [[] for _ in tensor.op.outputs])
        if grad is not None and loops.is_loop_switch(tensor.op):
            slots[tensor.index][:] = [grad]  # a Switch of a loop gets its final gradient last
        elif grad is not None:
            slots[tensor.index].append(grad)

    def run(self) -> None:
        queue: deque[Operation] = deque()
        for op in dict.fromkeys(y.op for y in self.ys):
            if self.pending.get(op) == 0:
                queue.append(op)
        if self.loops is not None:
            for exit_tensor in self.loops.unused_exits(self.pending, set(queue)):
                if is_trainable(exit_tensor.dtype):
                    self.arrive(exit_tensor, self.loops.zeros_like_for_exit(exit_tensor))
                    queue.append(exit_tensor.op)
        while queue:
            self._visit(queue.popleft(), queue)

    def _visit(self, op: Operation, queue: deque[Operation]) -> None:
        with _beside(op, self.colocate):
            with self._grad_context(op, before=True):
                slots = self.arrived.setdefault(op, [[] for _ in op.outputs])
                out_grads = [self._aggregate(slot, op) for slot in slots]
                self.arrived[op] = [[] if grad is None else [grad] for grad in out_grads]
            with self._grad_context(op, before=False):
                in_grads = self._in_grads(op, out_grads)
                for tensor, grad in zip(op.inputs, in_grads, strict=True):
                    if grad is not None:
                        self._check_shape(op, tensor, grad)
                        self.arrive(tensor, grad)
        for tensor in op.inputs:
            source = tensor.op
            if source not in self.pending:
                continue
            self.pending[source] -= 1
            ready = self.pending[source] == 0
            if self.loops is not None and not ready:
                ready = self.pending[source] > 0 and loops.is_loop_switch(source)
            if not ready:
                continue
            if loops.is_loop_exit(source) and self.loops is not None:
                queue.extend(self._exits_ready(source))
            else:
                queue.append(source)

    def _exits_ready(self, exit_op: Operation) -> Iterator[Operation]:
        """The exits of a loop are visited together, once all that have gradients are ready."""
        assert self.loops is not None
        state = self.loops.get_grad_state(exit_op, before=False)
        assert state is not None
        state.deferred_exits.append(exit_op.outputs[0])
        state.pending_exits -= 1
        if state.pending_exits:
            return
        has_real = False
        for tensor in state.deferred_exits:
            if any(self.arrived.get(tensor.op, [])):
                has_real = True
                yield tensor.op
            else:
                state.unused_exits.append(tensor)
        if has_real:
            for tensor in state.unused_exits:
                if is_trainable(tensor.dtype):
                    self.arrive(tensor, self.loops.zeros_like_for_exit(tensor))
                yield tensor.op
        else:
            for tensor in state.unused_exits:
                yield tensor.op

    def _in_grads(self, op: Operation, out_grads: list[Gradient]) -> list[Gradient]:
        nothing: list[Gradient] = [None] * len(op.inputs)
        stopped = op in self.stops and not is_computed_anew(op)  # TensorFlow makes those all the same
        if stopped or all(grad is None for grad in out_grads):
            return nothing
        entry = find(op)
        if entry is None:
            raise GraphError(
                f"the op {op.type} has no gradient; register one, or put stop_gradient() before it", node=op.name
            )
        if entry.function is None:
            return nothing
        self._fill_zeros(op, out_grads, entry)
        graph = get_default_graph()
        with graph.name_scope(op.name + "_grad"):
            in_grads: list[Gradient] = _as_list(entry.function(op, *out_grads)) or [None]
            if len(in_grads) != len(op.inputs):
                raise GraphError(
                    f"the gradient of {op.type} returned {len(in_grads)} gradients for {len(op.inputs)} inputs",
                    node=op.name,
                )
            if self.gate and sum(grad is not None for grad in in_grads) > 1:
                from toolkit.client.flow import control_flow

                with graph.device(None), graph.colocate_with(None, ignore_existing=True):
                    in_grads = control_flow.tuple_(in_grads)
        return in_grads

    def _fill_zeros(self, op: Operation, out_grads: list[Gradient], entry: GradientEntry) -> None:
        anew = is_computed_anew(op)
        for i, grad in enumerate(out_grads):
            tensor = op.outputs[i]
            wanted = is_trainable(tensor.dtype) or anew  # a function that is computed anew wants all of them
            if grad is None and wanted and tensor.dtype.base is not dtypes.variant:
                zeros = loops.zeros_like(self.loops, op, i)
                if not entry.accepts_none:  # else TensorFlow makes them as well, and does not use them
                    out_grads[i] = zeros

    def _aggregate(self, grads: list[Gradient], op: Operation) -> Gradient:
        """The sum of what arrived at one output; rows of IndexedSlices are joined, not added up."""
        present = [grad for grad in grads if grad is not None]
        if len(present) <= 1:
            return present[0] if present else None
        graph = get_default_graph()
        if all(isinstance(grad, IndexedSlices) for grad in present):
            return _joined([grad for grad in present if isinstance(grad, IndexedSlices)])
        tensors = [convert_to_tensor(grad) for grad in present]
        if self.one_by_one:
            with graph.name_scope(op.name + "_gradient_sum"):
                total = tensors[0]
                for tensor in tensors[1:]:
                    total = math_ops.add_n([total, tensor])
                return total
        by_device: dict[str, list[Tensor]] = {}
        for tensor in tensors:
            by_device.setdefault(tensor.device, []).append(tensor)
        sums: list[Tensor] = []
        for _, members in sorted(by_device.items()):
            with graph.colocate_with(members[0].op, ignore_existing=True):
                sums.append(math_ops.add_n(members))
        return math_ops.add_n(sums)

    def _check_shape(self, op: Operation, tensor: Tensor, grad: Tensor | IndexedSlices) -> None:
        if isinstance(grad, IndexedSlices) or tensor.dtype.base.kind in "rv":
            return
        if grad.dtype.base is not tensor.dtype.base and tensor.dtype.base.kind in "fc":
            raise GraphError(
                f"the gradient of {op.type} for '{tensor.name}' has type {grad.dtype}, not {tensor.dtype}", node=op.name
            )
        try:
            grad.set_shape(tensor.static_shape)
        except GraphmillError:
            raise GraphError(
                f"the gradient of {op.type} for '{tensor.name}' has shape {grad.static_shape}, "
                f"but the tensor {tensor.static_shape}",
                node=op.name,
            ) from None

    @contextmanager
    def _grad_context(self, op: Operation, before: bool) -> Generator[None]:
        if self.loops is None:
            yield
            return
        self.loops.enter_grad_context(op, before)
        try:
            yield
        finally:
            self.loops.exit_grad_context(op, before)

    def result(self, x: Tensor, unconnected: Unconnected) -> Gradient:
        slots = self.arrived.get(x.op)
        found = self._aggregate(slots[x.index], x.op) if slots else None
        if found is None and unconnected is Unconnected.ZERO:
            return array_ops.zeros_like(x)
        return found


def _joined(slices: list[IndexedSlices]) -> IndexedSlices:
    values = array_ops.concat([s.values for s in slices], 0)
    wide = any(s.indices.dtype.base is dtypes.int64 for s in slices)
    indices = [math_ops.cast(s.indices, dtypes.int64) if wide else s.indices for s in slices]
    return IndexedSlices(values, array_ops.concat(indices, 0), slices[0].dense_shape)
