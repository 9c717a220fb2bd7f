"""What all optimizers share: gradients of the trainable variables, slots, and one update operation.

Names are TensorFlow's: `Adam/update_w/ApplyAdam`, slots `w/Adam`, `w/Adam_1`, and the operation `Adam` (or the
name given) that waits for all and counts the global step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import colocate_with, control_dependencies, init_scope, name_scope
from toolkit.client.construction.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.flow.control_flow import tuple_
from toolkit.client.gradients import gradients
from toolkit.client.math import math_ops
from toolkit.client.trackables import Trackable
from toolkit.client.train.slots import create_slot, zeros_slot
from toolkit.client.variables import by_collection
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.creation import Variable
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
_TYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)

GradientAndVariable = tuple[Tensor | IndexedSlices | None, Any]


class Optimizer(Trackable):
    """Base of the optimizers. A subclass makes its slots, its hyper-parameters, and one update per variable."""

    def __init__(self, use_locking: bool, name: str):
        if not name:
            raise UsageError("an optimizer needs a name")
        self.name = name
        self.use_locking = use_locking
        self._slots: dict[str, dict[Any, BaseVariable]] = {}
        self._shared: dict[tuple[str, Any], BaseVariable] = {}

    # -- the two halves of a training step -------------------------------------------------------------------

    def minimize(
        self,
        loss: Tensor,
        global_step: Any = None,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = GATE_OP,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Tensor | None = None,
    ) -> Operation:
        """The operation of one training step: `compute_gradients`, then `apply_gradients`.

        Raises:
            GraphError: no variable has a gradient.
        """
        pairs = self.compute_gradients(loss, var_list, gate_gradients, colocate_gradients_with_ops, grad_loss)
        if all(grad is None for grad, _ in pairs):
            names = ", ".join(str(v.name) for _, v in pairs) or "none"
            raise GraphError(f"no variable has a gradient: the loss '{loss.name}' depends on none of: {names}")
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Tensor,
        var_list: Sequence[Any] | None = None,
        gate_gradients: int = GATE_OP,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[GradientAndVariable]:
        """Pairs (gradient, variable) for `var_list`, by default all trainable variables.

        Raises:
            GraphError: there are no variables, the loss is of no floating point type.
        """
        if loss.dtype.base not in _TYPES:
            raise GraphError(f"the loss '{loss.name}' has type {loss.dtype}; a floating point type is needed")
        chosen = by_collection.trainable_variables() if var_list is None else list(var_list)
        chosen = [part for v in chosen for part in (getattr(v, "parts", None) or [v])]
        if not chosen:
            raise GraphError("there are no variables to optimize")
        for v in chosen:
            if not isinstance(v, BaseVariable):
                raise UsageError(f"{v!r} is not a variable and cannot be optimized")
        found = gradients(
            loss, chosen, grad_loss, colocate_gradients_with_ops=colocate_gradients_with_ops,
            gate_gradients=gate_gradients == GATE_OP,
        )  # fmt: skip
        if gate_gradients == GATE_GRAPH:
            found = tuple_(found)
        return list(zip(found, chosen, strict=True))

    def apply_gradients(
        self, grads_and_vars: Sequence[GradientAndVariable], global_step: Any = None, name: str | None = None
    ) -> Operation:
        """The operation that changes the variables; pairs without a gradient are left out.

        Raises:
            GraphError: no pair has a gradient.
        """
        present = [(grad, v) for grad, v in grads_and_vars if grad is not None]
        if not present:
            raise GraphError("none of the variables has a gradient")
        graph = present[0][1].graph
        with graph.as_default():
            with init_scope():
                self.create_slots([v for _, v in present])
            with name_scope(name, self.name) as scope:
                self.prepare()
                updates: list[Any] = []
                for grad, v in present:
                    with graph.name_scope("update_" + v.op.name), graph.colocate_with(v):
                        updates.append(self._update(grad, v))
                if global_step is None:
                    train = self.finish(updates, scope)
                else:
                    with control_dependencies([self.finish(updates, "update")]), colocate_with(global_step):
                        train = _count(global_step, scope)
            collection = graph.get_collection_ref(GraphKeys.TRAIN_OP)
            if train not in collection:
                collection.append(train)
        return train

    def _update(self, grad: Tensor | IndexedSlices, v: BaseVariable) -> Operation:
        if isinstance(grad, IndexedSlices):
            op = self.apply_sparse_duplicates(grad, v)
        else:
            op = self.apply_dense(grad, v)
        if v.constraint is None:
            return op
        with control_dependencies([op]):
            assigned = v.assign(v.constraint(v.read_value()))
        return assigned if isinstance(assigned, Operation) else assigned.op

    # -- for subclasses ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make tensors of the hyper-parameters, inside the optimizer's scope."""

    def create_slots(self, var_list: Sequence[BaseVariable]) -> None:
        """Make what is kept for each variable."""

    def apply_dense(self, grad: Tensor, v: BaseVariable) -> Operation:
        raise NotImplementedError

    def apply_sparse(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """The update for rows; every row occurs once."""
        raise UsageError(f"{self.name} has no update for sparse gradients (of '{v.name}')")

    def apply_sparse_duplicates(self, grad: IndexedSlices, v: BaseVariable) -> Operation:
        """The update for rows, some of which may occur several times."""
        return self.apply_sparse(deduplicated(grad), v)

    def finish(self, updates: Sequence[Any], name: str) -> Operation:
        """Join the updates into one operation called `name`."""
        return group(updates, name=name)

    def tensor(self, value: TensorLike | Callable[[], TensorLike], name: str) -> Tensor:
        """A hyper-parameter as a tensor; functions are called first."""
        return convert_to_tensor(value() if callable(value) else value, name=name)

    def run_update(self, op: str, v: BaseVariable, inputs: Sequence[Any], **attrs: Any) -> Operation:
        """Add `ApplyX` or, for a resource variable, `ResourceApplyX`. Slots among the inputs go by reference."""
        attrs.setdefault("use_locking", self.use_locking)
        handles = [i.handle if isinstance(i, BaseVariable) else i for i in inputs]
        if not v.is_resource:
            return ops.function(op)(v.handle, *handles, **attrs).op
        return ops.function("Resource" + op)(v.handle, *handles, **attrs)

    def hyper(self, value: Tensor, v: BaseVariable) -> Tensor:
        """A hyper-parameter in the variable's type."""
        return math_ops.cast(value, v.dtype.base)

    def slot_zeros(self, v: BaseVariable, slot: str, label: str | None = None) -> BaseVariable:
        return self._slot(v, slot, lambda: zeros_slot(v, label or self.name))

    def slot_filled(
        self, v: BaseVariable, initializer: Any, slot: str, label: str | None = None,
        shape: Shape | None = None, dtype: DType | None = None,
    ) -> BaseVariable:  # fmt: skip
        return self._slot(v, slot, lambda: create_slot(v, initializer, label or self.name, shape=shape, dtype=dtype))

    def slot_constant(self, v: BaseVariable, value: float, slot: str) -> BaseVariable:
        """A slot that starts as a constant of the variable's shape, which stands where the variable is."""

        if v not in self._slots.get(slot, {}):
            with colocate_with(v):
                start = constant(value, v.dtype.base, v.static_shape)
            self.slot_started(v, start, slot)
        return self._slots[slot][v]

    def slot_started(self, v: BaseVariable, start: Tensor, slot: str) -> BaseVariable:
        """A slot whose first value is a tensor."""
        return self._slot(v, slot, lambda: create_slot(v, start, self.name))

    def _slot(self, v: BaseVariable, slot: str, make: Callable[[], BaseVariable]) -> BaseVariable:
        members = self._slots.setdefault(slot, {})
        if v not in members:
            members[v] = make()
        return members[v]

    def shared_variable(self, value: Any, name: str, with_variable: BaseVariable) -> BaseVariable:
        """One variable per optimizer and graph, such as Adam's `beta1_power`, placed with a variable."""
        key = (name, with_variable.graph)
        if key not in self._shared:
            with with_variable.graph.colocate_with(with_variable):
                self._shared[key] = Variable(value, False, name=name, use_resource=with_variable.is_resource)
        return self._shared[key]

    def tracked_parts(self) -> dict[str, Any]:
        """Its variables in the default graph that belong to no other variable."""
        graph = get_default_graph()
        return {
            name: v for (name, home), v in sorted(self._shared.items(), key=lambda item: item[0][0]) if home is graph
        }

    def tracked_slots(self) -> Iterator[tuple[BaseVariable, str, BaseVariable]]:
        for name in self.get_slot_names():
            for v, slot in self._slots[name].items():
                yield v, name, slot

    # -- looking -------------------------------------------------------------------------------------------

    def get_slot(self, v: Any, name: str) -> BaseVariable | None:
        """The slot of a variable, or None."""
        return self._slots.get(name, {}).get(v)

    def get_slot_names(self) -> list[str]:
        return sorted(self._slots)

    def variables(self) -> list[BaseVariable]:
        """Everything the optimizer keeps in the default graph."""
        graph = get_default_graph()
        kept = [v for (_, home), v in self._shared.items() if home is graph]
        kept += [slot for members in self._slots.values() for v, slot in members.items() if v.graph is graph]
        return sorted(kept, key=lambda v: v.name)


def _count(global_step: Any, scope: str) -> Operation:
    if isinstance(global_step, BaseVariable) and global_step.is_resource:
        one = convert_to_tensor(1, global_step.dtype.base)
        return ops.assign_add_variable_op(global_step.handle, one, name=scope)
    handle = getattr(global_step, "handle", global_step)
    return ops.assign_add(handle, 1, name=scope).op


def deduplicated(grad: IndexedSlices) -> IndexedSlices:
    """Rows that occur several times added up, as updates that are not linear need it."""
    unique, positions = ops.unique(grad.indices)
    count = array_ops.shape(unique)[0]
    return IndexedSlices(ops.unsorted_segment_sum(grad.values, positions, count), unique, grad.dense_shape)
