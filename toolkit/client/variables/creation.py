"""Variables: state that outlives a step, as reference (VariableV2) or resource (VarHandleOp) nodes.

Both kinds add, under the variable's name, the nodes TensorFlow adds and are written into collections as
VariableDef messages, so that TensorFlow's import_meta_graph finds them:

| | reference | resource |
|---|---|---|
| state | `v` (VariableV2) | `v` (VarHandleOp) |
| first value | `v/initial_value` or `v/Initializer/...` | the same |
| initializer | `v/Assign` | `v/Assign` (AssignVariableOp) |
| snapshot | `v/read` (Identity) | `v/Read/ReadVariableOp` |
| other | | `v/IsInitialized/VarIsInitializedOp` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import init_scope, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables.base import BaseVariable, safe_ops
from toolkit.client.variables.creators import created
from toolkit.client.variables.kinds import RefVariable, ResourceVariable
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph


InitialValue = Any  # a tensor, a value that becomes one, or a function without arguments that returns one
_INITIALIZED_CHECK_OPS = frozenset({"IsVariableInitialized", "VarIsInitializedOp", "If"})
_PLAIN_FORMS = {"RefSwitch": "Switch", "RefMerge": "Merge", "RefIdentity": "Identity"}


def Variable(  # noqa: N802 (the field's own name)
    initial_value: InitialValue,
    trainable: bool = True,
    collections: Iterable[str] | None = None,
    validate_shape: bool = True,
    caching_device: Any = None,
    name: str | None = None,
    dtype: DTypeLike = None,
    constraint: Callable[[Tensor], Tensor] | None = None,
    use_resource: bool = False,
    shape: Any = None,
) -> BaseVariable:
    """Add a variable to the default graph.

    Args:
        initial_value: a tensor, a value, or a function that makes one (its nodes then go to `name/Initializer`
            and stay with the variable).
        trainable: also put it into TRAINABLE_VARIABLES, where optimizers look.
        collections: default: GLOBAL_VARIABLES.
        validate_shape: the initial value's shape must be known; without it, the variable may change shape.
        caching_device: where its snapshot is read.
        use_resource: a resource variable instead of a reference.

    Raises:
        GraphError: the shape is not fully known (and must be), or the value was made inside a conditional or loop.
    """
    given = {
        "initial_value": initial_value, "trainable": trainable, "collections": collections,
        "validate_shape": validate_shape, "caching_device": caching_device, "name": name, "dtype": dtype,
        "constraint": constraint, "use_resource": use_resource, "shape": shape,
    }  # fmt: skip
    return created(_make_variable, given)


class _Wanted(NamedTuple):
    """What a variable shall be (`Variable`); dtype and shape are those that were asked for, if any."""

    initial_value: InitialValue
    trainable: bool
    validate_shape: bool
    caching_device: Any
    dtype: DType | None
    constraint: Callable[[Tensor], Tensor] | None
    shape: Shape | None

    @property
    def from_function(self) -> bool:
        """Whether the initial value is made by a function."""
        return callable(self.initial_value)


def _make_variable(
    initial_value: InitialValue, trainable: bool, collections: Iterable[str] | None, validate_shape: bool,
    caching_device: Any, name: str | None, dtype: DTypeLike, constraint: Callable[[Tensor], Tensor] | None,
    use_resource: bool, shape: Any,
) -> BaseVariable:  # fmt: skip
    keys = list(collections) if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
    wanted = _Wanted(
        initial_value,
        bool(trainable),  # of 2015, `Variable(value, float32)`, gives a type where `trainable` is by now
        validate_shape,
        caching_device,
        None if dtype is None else as_dtype(dtype).base,
        constraint,
        None if shape is None else as_shape(shape),
    )
    make = _make_resource if use_resource else _make_ref
    owner = get_default_graph().variables_graph
    if isinstance(initial_value, Tensor) and initial_value.graph is not owner:
        raise GraphError(
            f"the initial value of variable '{name or 'Variable'}' is made in a function, which it outlives; "
            "pass a function or an array"
        )
    with (
        owner.as_default() if owner is not get_default_graph() else nullcontext(),
        init_scope(),
        name_scope(name, "Variable", [] if wanted.from_function else [initial_value]) as scope,
    ):
        variable = make(wanted, scope)
    variable.graph.add_to_collections(keys, variable)
    return variable


def _first_value(graph: Graph, initial_value: InitialValue, dtype: DType | None) -> Tensor:
    value = initial_value() if callable(initial_value) else initial_value
    return convert_to_tensor(value, dtype, name="initial_value")


def _check_initial(value: Tensor, name: str, validate_shape: bool, made_here: bool) -> None:
    if value.op.context is not None and not made_here:
        raise GraphError(f"the initial value of variable '{name}' is made in a loop or conditional; pass a function")
    if validate_shape and not value.static_shape.is_fully_defined:
        raise GraphError(
            f"the initial value of variable '{name}' has shape {value.static_shape}; it must be fully known "
            "(or pass validate_shape=False)"
        )


def _make_ref(wanted: _Wanted, scope: str) -> RefVariable:
    graph, own_name = get_default_graph(), scope[:-1]
    # A function's nodes belong with a variable that does not exist yet: say so by attribute.
    here = graph.attr_scope({"_class": [f"loc:@{own_name}"]}) if wanted.from_function else nullcontext()
    with here:
        if wanted.from_function:
            with graph.name_scope("Initializer"), graph.device(None):
                first = _first_value(graph, wanted.initial_value, wanted.dtype)
        else:
            first = _first_value(graph, wanted.initial_value, wanted.dtype)
        _check_initial(first, own_name, wanted.validate_shape, wanted.from_function)
        size = wanted.shape or (first.static_shape if wanted.validate_shape else Shape(None))
        handle: Tensor = ops.variable_v2(shape=size, dtype=first.dtype.base, name=scope)
    if wanted.validate_shape:
        handle.set_shape(size)
    safe = guard_uninitialized(own_name, first)
    assign: Tensor = ops.assign(handle, safe, use_locking=True, validate_shape=wanted.validate_shape)
    cached_at = wanted.caching_device
    with graph.device(cached_at) if cached_at is not None else graph.colocate_with(handle.op):
        snapshot = array_ops.identity(handle, name="read")
    variable = RefVariable(handle, handle.dtype, size, first, assign.op, snapshot, wanted.trainable, wanted.constraint)
    variable.safe_initial_value = safe
    return variable


def _make_resource(wanted: _Wanted, scope: str) -> ResourceVariable:
    graph, own_name = get_default_graph(), scope[:-1]
    with graph.attr_scope({"_class": [f"loc:@{own_name}"]}):
        with graph.name_scope("Initializer"), graph.device(None):
            first = _first_value(graph, wanted.initial_value, wanted.dtype)
        _check_initial(first, own_name, wanted.validate_shape, wanted.from_function)
        size = wanted.shape or first.static_shape
        handle: Tensor = ops.var_handle_op(
            dtype=first.dtype.base, shape=size, shared_name=own_name, name=own_name + "/"
        )
    with graph.name_scope("IsInitialized"):
        ops.var_is_initialized_op(handle)
    safe = guard_uninitialized(own_name, first)
    with (
        graph.name_scope("Assign") as assign_scope,
        graph.colocate_with(None, ignore_existing=True),
        graph.device(handle.device),
    ):
        assign: Operation = ops.assign_variable_op(handle, safe, name=assign_scope)
    with graph.name_scope("Read"), graph.device(handle.device):
        snapshot: Tensor = ops.read_variable_op(handle, dtype=first.dtype.base)
    if snapshot.static_shape.rank is None:
        snapshot.set_shape(size)
    variable = ResourceVariable(
        handle, first.dtype.base, size, first, assign, snapshot, wanted.trainable, wanted.constraint
    )
    variable.safe_initial_value = safe
    return variable


# -- initial values that depend on other variables ------------------------------------------------------------


def guard_uninitialized(name: str, value: Tensor) -> Tensor:
    """An initial value that reads other variables, made so that it reads their initial values before they have one.

    The nodes between the variables and the value are copied as `node_name`; others are left alone. So all
    initializers can run in any order, in one step.
    """
    if value.op.type == "Const" or _has_cycle(value.op):
        return value
    return _safe(name, value, {})


def _has_cycle(start: Operation) -> bool:
    state: dict[Operation, int] = {}
    stack: list[tuple[Operation, bool]] = [(start, False)]
    while stack:
        op, leaving = stack.pop()
        if leaving:
            state[op] = 2
            continue
        if state.get(op) == 1:
            return True
        if state.get(op) == 2:
            continue
        state[op] = 1
        stack.append((op, True))
        for source in [t.op for t in op.inputs] + op.control_inputs:
            if state.get(source) == 1:
                return True
            if source not in state:
                stack.append((source, False))
    return False


def _safe(name: str, tensor: Tensor, done: dict[Operation, list[Tensor]]) -> Tensor:
    op = tensor.op
    if op not in done:
        done[op] = _safe_outputs(name, op, done)
    return done[op][tensor.index]


def _safe_outputs(name: str, op: Operation, done: dict[Operation, list[Tensor]]) -> list[Tensor]:
    if op.type in _INITIALIZED_CHECK_OPS or op in safe_ops(op.graph):
        return op.outputs
    if op.type in ("VariableV2", "Variable") or op.type == "ReadVariableOp":
        found = _find_variable(op.inputs[0].op if op.type == "ReadVariableOp" else op)
        return op.outputs if found is None else [found.initialized_value()]
    before = op.inputs
    after = [_safe(name, tensor, done) for tensor in before]
    if before == after:
        return op.outputs
    graph = op.graph
    attrs = {key: op.node.attrs.proto(key) for key in op.node.attrs if key != "_class"}
    with graph.name_scope(None):
        # what was a reference to a variable is now a plain value
        op_def = graph.core.op_def(_PLAIN_FORMS.get(op.type, op.type))
        return graph.create_node(op_def, after, attrs, f"{op.name}_{name}").outputs


def _find_variable(op: Operation) -> BaseVariable | None:
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in op.graph.get_collection(key):
            if isinstance(variable, BaseVariable) and variable.op is op:
                return variable
    return None
