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

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from schemas import variable_pb2
from toolkit.client import array_ops, control_flow, ops, session_stack
from toolkit.client.context import get_default_graph
from toolkit.client.convert import DTypeLike, as_dtype, as_shape, convert_to_tensor
from toolkit.client.creators import created
from toolkit.client.grouping import group
from toolkit.client.internals import Also, VariableInternals
from toolkit.client.operation import Operation
from toolkit.client.scopes import init_scope, name_scope
from toolkit.client.tensor import IndexedSlices, Tensor, TensorLike
from toolkit.client.variable_updates import PartialUpdates
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.metagraph import GraphKeys
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.client.graph import Graph

InitialValue = Any  # a tensor, a value that becomes one, or a function without arguments that returns one
_INITIALIZED_CHECK_OPS = frozenset({"IsVariableInitialized", "VarIsInitializedOp", "If"})
_PLAIN_FORMS = {"RefSwitch": "Switch", "RefMerge": "Merge", "RefIdentity": "Identity"}
VARIABLE_OPS = frozenset({"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable"})


@dataclass(frozen=True)
class SliceInfo:
    """Which part of a larger, partitioned variable a variable holds (SaveSliceInfoDef)."""

    full_name: str
    full_shape: tuple[int, ...]
    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def spec(self) -> str:
        """As SaveV2 wants it: "10 4 0,5:0,4", the full shape and start,length of each dimension."""
        sizes = " ".join(map(str, self.full_shape))
        return f"{sizes} " + ":".join(f"{o},{s}" for o, s in zip(self.offset, self.shape, strict=True))

    def to_proto(self) -> variable_pb2.SaveSliceInfoDef:
        return variable_pb2.SaveSliceInfoDef(
            full_name=self.full_name, full_shape=self.full_shape, var_offset=self.offset, var_shape=self.shape
        )


class BaseVariable(VariableInternals, PartialUpdates):
    """What reference and resource variables share. Use `Variable` or `get_variable` to make one.

    Attributes:
        handle: the variable's own tensor: the reference, or the resource.
        initial_value: its first value.
        initializer: the operation that assigns it; None when the graph that was imported has none.
        snapshot: the tensor that reads it.
    """

    is_resource: ClassVar[bool] = False
    __array_priority__ = 100
    SaveSliceInfo = SliceInfo
    initial_value: Tensor | None
    initializer: Operation | None
    trainable: bool
    constraint: Callable[[Tensor], Tensor] | None

    def __init__(
        self,
        handle: Tensor,
        dtype: DType,
        shape: Shape,
        initial_value: Tensor | None,
        initializer: Operation | None,
        snapshot: Tensor,
        trainable: bool,
        constraint: Callable[[Tensor], Tensor] | None = None,
        slice_info: SliceInfo | None = None,
    ):
        self.handle = handle
        self.dtype = dtype  # a reference type for reference variables, as TensorFlow has it
        self.static_shape = shape
        self.initial_value = initial_value
        self.initializer = initializer
        self.snapshot = snapshot
        self.trainable = trainable
        self.constraint = constraint
        self.slice_info = slice_info
        #: the initial value made from other variables' initial values where they have no value yet
        self.safe_initial_value = initial_value

    @property
    def name(self) -> str:
        """`operation:0`."""
        return self.handle.name

    @property
    def op(self) -> Operation:
        return self.handle.op

    @property
    def graph(self) -> Graph:
        return self.handle.graph

    @property
    def device(self) -> str:
        return self.handle.device

    @property
    def shape(self) -> Any:
        """The shape as the graph's programs see it."""
        return self.graph.present_shape(self.static_shape)

    def get_shape(self) -> Any:
        return self.shape

    def graph_element(self) -> Tensor:
        """What fetching the variable fetches."""
        return self.snapshot

    def endpoint(self) -> Output:
        return self.snapshot.output

    def value(self) -> Tensor:
        """Its value when the reader runs."""
        raise NotImplementedError

    def read_value(self) -> Tensor:
        """A fresh read, ordered after what the current control dependencies name."""
        raise NotImplementedError

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        raise NotImplementedError

    def is_initialized(self, name: str | None = None) -> Tensor:
        raise NotImplementedError

    def assign(self, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Any:
        raise NotImplementedError

    def assign_add(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Any:
        raise NotImplementedError

    def assign_sub(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Any:
        raise NotImplementedError

    def initialized_value(self) -> Tensor:
        """Its value once it is initialized, else its initial value."""
        if self.initial_value is None:
            raise GraphError(f"the initial value of '{self.name}' is not known")
        first = self.safe_initial_value
        with init_scope():
            value: Tensor = control_flow.cond(self.is_initialized(), self.read_value, lambda: first)
        _safe_ops(self.graph).add(value.op)
        return value

    def to_proto(self) -> variable_pb2.VariableDef:
        """The VariableDef that collections hold."""
        proto = variable_pb2.VariableDef(
            variable_name=self.name,
            initializer_name=self.initializer.name if self.initializer is not None else "",
            snapshot_name=self.snapshot.name,
            is_resource=self.is_resource,
            trainable=self.trainable,
        )
        if self.initial_value is not None:
            proto.initial_value_name = self.initial_value.name
        if self.slice_info is not None:
            proto.save_slice_info_def.CopyFrom(self.slice_info.to_proto())
        return proto

    def load(self, value: Any, session: Any = None) -> None:
        """Give it a value in a session (default: the default session), by its initializer.

        Raises:
            GraphError: the graph that was imported has no initializer for it.
            UsageError: there is no session.
        """
        if self.initializer is None:
            raise GraphError(f"variable '{self.name}' has no initializer, so no value can be given to it")
        running = session_stack.session_for(session, self.graph, f"load of '{self.name}'")
        running.run(self.initializer, {self.initializer.inputs[1]: value})

    def ref(self) -> BaseVariable:
        """What sets and dicts may have as a key; a variable is one itself, as it compares by identity."""
        return self

    experimental_ref = ref

    def deref(self) -> BaseVariable:
        """The variable of a `ref`."""
        return self

    def count_up_to(self, limit: int) -> Tensor:
        """Its value, and 1 is added until it is `limit`."""
        raise NotImplementedError

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Rows of it."""
        raise NotImplementedError

    def set_shape(self, shape: Any) -> None:
        """Say more about the shape of its value."""
        self.value().set_shape(shape)

    def eval(self, session: Any = None) -> Any:
        """Its value in the default session (or `session`)."""
        return session_stack.session_for(session, self.graph, f"eval of '{self.name}'").run(self.snapshot)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} '{self.name}' shape={self.static_shape} dtype={self.dtype.base}>"

    def __iter__(self) -> Any:
        raise GraphError(f"'{self.name}' cannot be iterated over; use unstack()")

    def __getitem__(self, key: Any) -> Tensor:
        return self.to_tensor()[key]

    def __neg__(self) -> Tensor:
        return -self.to_tensor()

    def __abs__(self) -> Tensor:
        return abs(self.to_tensor())


def _delegate(name: str) -> Callable[[BaseVariable, TensorLike], Any]:
    def operator(self: BaseVariable, other: TensorLike) -> Any:
        return getattr(self.to_tensor(), name)(other)

    operator.__name__ = name
    return operator


# Operators on a variable are operators on its value.
for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow",
    "rpow", "matmul", "rmatmul", "lt", "le", "gt", "ge", "and", "or", "xor",
):  # fmt: skip
    setattr(BaseVariable, f"__{_name}__", _delegate(f"__{_name}__"))


class RefVariable(BaseVariable):
    """A VariableV2 node; its tensor carries the reference."""

    _variable: Any = Also("handle")

    def _ref(self) -> Tensor:
        return self.handle

    def _as_graph_element(self) -> Tensor:
        return self.handle

    def value(self) -> Tensor:
        return self.snapshot

    def read_value(self) -> Tensor:
        return array_ops.identity(self.handle, name="read")

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        _check_type(self, dtype)
        return self.handle if as_ref else self.snapshot

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.is_variable_initialized(self.handle, name=name)

    def assign(self, value: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        """Set it; returns the reference, which passes the new value on."""
        return ops.assign(self.handle, value, use_locking=use_locking, name=name)

    def assign_add(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        return ops.assign_add(self.handle, delta, use_locking=use_locking, name=name)

    def assign_sub(self, delta: TensorLike, use_locking: bool = False, name: str | None = None) -> Tensor:
        return ops.assign_sub(self.handle, delta, use_locking=use_locking, name=name)

    def scatter(self, kind: str, delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Tensor:
        """`kind` is the op: ScatterAdd, ScatterSub, ScatterUpdate, ScatterMul, ScatterDiv, ScatterMin, ScatterMax."""
        return ops.function(kind)(self.handle, delta.indices, delta.values, use_locking=use_locking, name=name)

    def count_up_to(self, limit: int) -> Tensor:
        return ops.count_up_to(self.handle, limit=limit)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        return array_ops.gather(self.snapshot, indices, name=name)

    def set_shape(self, shape: Any) -> None:
        self.handle.set_shape(shape)
        self.snapshot.set_shape(shape)


class ResourceVariable(BaseVariable):
    """A VarHandleOp node; ops take its resource handle."""

    _handle: Any = Also("handle")

    def _as_graph_element(self) -> Tensor:
        return self.snapshot

    is_resource = True

    def value(self) -> Tensor:
        with self.graph.colocate_with(None, ignore_existing=True):
            return self._read()

    def _read(self) -> Tensor:
        tensor: Tensor = ops.read_variable_op(self.handle, dtype=self.dtype)
        if self.static_shape.rank is not None and tensor.static_shape.rank is None:
            tensor.set_shape(self.static_shape)
        return tensor

    def read_value(self) -> Tensor:
        with name_scope("Read", None, [self.handle]):
            value = self._read()
        return array_ops.identity(value)

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        _check_type(self, dtype)
        if as_ref:
            raise GraphError(f"'{self.name}' is a resource variable and has no reference")
        return self.value()

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Rows, by ResourceGather."""
        with name_scope("Gather" if name is None else name, None, [self.handle]) as scope:
            value: Tensor = ops.resource_gather(self.handle, indices, dtype=self.dtype, name=scope)
            return array_ops.identity(value)

    def is_initialized(self, name: str | None = None) -> Tensor:
        return ops.var_is_initialized_op(self.handle, name=name)

    def _after(self, op: Operation) -> Any:
        return self._updated(op, True)

    def _updated(self, op: Operation, read: bool) -> Any:
        if not read:
            return op
        with self.graph.control_dependencies([op]):
            return self._read()

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Set it; returns a read of the new value, or the operation without `read_value`."""
        value = convert_to_tensor(value, self.dtype)
        if not self.static_shape.is_compatible_with(value.static_shape):
            raise GraphError(
                f"cannot assign a value of shape {value.static_shape} to '{self.name}' of shape {self.static_shape}"
            )
        return self._updated(ops.assign_variable_op(self.handle, value, name=name), read_value)

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        op = ops.assign_add_variable_op(self.handle, convert_to_tensor(delta, self.dtype), name=name)
        return self._updated(op, read_value)

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        op = ops.assign_sub_variable_op(self.handle, convert_to_tensor(delta, self.dtype), name=name)
        return self._updated(op, read_value)

    def scatter(self, kind: str, delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Operation:
        """`kind` as for reference variables; runs the op's resource form."""
        return ops.function("Resource" + kind)(self.handle, delta.indices, delta.values, name=name)

    def count_up_to(self, limit: int) -> Tensor:
        return ops.resource_count_up_to(self.handle, limit=limit, T=self.dtype)


def _check_type(variable: BaseVariable, dtype: DType | None) -> None:
    if dtype is not None and dtype.base is not variable.dtype.base:
        raise GraphError(f"variable '{variable.name}' has type {variable.dtype.base}, where {dtype} is wanted")


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


def _make_variable(
    initial_value: InitialValue, trainable: bool, collections: Iterable[str] | None, validate_shape: bool,
    caching_device: Any, name: str | None, dtype: DTypeLike, constraint: Callable[[Tensor], Tensor] | None,
    use_resource: bool, shape: Any,
) -> BaseVariable:  # fmt: skip
    wanted = list(collections) if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in wanted:
        wanted.append(GraphKeys.TRAINABLE_VARIABLES)
    dtype = None if dtype is None else as_dtype(dtype).base
    known = None if shape is None else as_shape(shape)
    make = _make_resource if use_resource else _make_ref
    owner = get_default_graph().variables_graph
    if isinstance(initial_value, Tensor) and initial_value.graph is not owner:
        raise GraphError(
            f"the initial value of variable '{name or 'Variable'}' is made in a function, which it outlives; "
            "pass a function or an array"
        )
    with owner.as_default() if owner is not get_default_graph() else nullcontext():
        # of 2015, `Variable(value, float32)`, gives a type where `trainable` is by now
        variable = make(initial_value, bool(trainable), validate_shape, caching_device, name, dtype, constraint, known)
    variable.graph.add_to_collections(wanted, variable)
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


def _make_ref(
    initial_value: InitialValue,
    trainable: bool,
    validate_shape: bool,
    caching_device: Any,
    name: str | None,
    dtype: DType | None,
    constraint: Callable[[Tensor], Tensor] | None,
    shape: Shape | None,
) -> RefVariable:
    from_function = callable(initial_value)
    with init_scope(), name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
        graph = get_default_graph()
        own_name = scope[:-1]
        # A function's nodes belong with a variable that does not exist yet: say so by attribute.
        here = graph.attr_scope({"_class": [f"loc:@{own_name}"]}) if from_function else nullcontext()
        with here:
            if from_function:
                with graph.name_scope("Initializer"), graph.device(None):
                    first = _first_value(graph, initial_value, dtype)
            else:
                first = _first_value(graph, initial_value, dtype)
            _check_initial(first, own_name, validate_shape, from_function)
            size = shape or (first.static_shape if validate_shape else Shape(None))
            handle: Tensor = ops.variable_v2(shape=size, dtype=first.dtype.base, name=scope)
        if validate_shape:
            handle.set_shape(size)
        safe = guard_uninitialized(own_name, first)
        assign: Tensor = ops.assign(handle, safe, use_locking=True, validate_shape=validate_shape)
        place = graph.device(caching_device) if caching_device is not None else graph.colocate_with(handle.op)
        with place:
            snapshot = array_ops.identity(handle, name="read")
        variable = RefVariable(handle, handle.dtype, size, first, assign.op, snapshot, trainable, constraint)
        variable.safe_initial_value = safe
        return variable


def _make_resource(
    initial_value: InitialValue,
    trainable: bool,
    validate_shape: bool,
    caching_device: Any,
    name: str | None,
    dtype: DType | None,
    constraint: Callable[[Tensor], Tensor] | None,
    shape: Shape | None,
) -> ResourceVariable:
    from_function = callable(initial_value)
    with init_scope(), name_scope(name, "Variable", [] if from_function else [initial_value]) as scope:
        graph = get_default_graph()
        own_name = scope[:-1]
        with graph.attr_scope({"_class": [f"loc:@{own_name}"]}):
            with graph.name_scope("Initializer"), graph.device(None):
                first = _first_value(graph, initial_value, dtype)
            _check_initial(first, own_name, validate_shape, from_function)
            size = shape or first.static_shape
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
        variable = ResourceVariable(handle, first.dtype.base, size, first, assign, snapshot, trainable, constraint)
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


def _safe_ops(graph: Graph) -> set[Operation]:
    """The results of `initialized_value`, which need no guard of their own."""
    return graph.extras.setdefault(__name__, set())


def _safe(name: str, tensor: Tensor, done: dict[Operation, list[Tensor]]) -> Tensor:
    op = tensor.op
    if op not in done:
        done[op] = _safe_outputs(name, op, done)
    return done[op][tensor.index]


def _safe_outputs(name: str, op: Operation, done: dict[Operation, list[Tensor]]) -> list[Tensor]:
    if op.type in _INITIALIZED_CHECK_OPS or op in _safe_ops(op.graph):
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


# -- collections and init ops -----------------------------------------------------------------------------------


def global_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[BaseVariable]:
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def variables_initializer(variables: Sequence[BaseVariable], name: str = "init") -> Operation:
    """An operation that initializes these variables."""
    return group([v.initializer for v in variables if v.initializer is not None], name=name)


def global_variables_initializer() -> Operation:
    """Initializes all global variables; `init`."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Initializes all local variables; `init`, `init_1`, ..."""
    return variables_initializer(local_variables())


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Initializes all lookup tables."""
    return group(get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


def report_uninitialized_variables(
    variables: Sequence[BaseVariable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of variables that have no value yet, as a string vector."""
    checked = list(variables) if variables is not None else [*global_variables(), *local_variables()]
    with name_scope(name), get_default_graph().device("/cpu:0"):
        if not checked:
            return array_ops.constant([], dtypes.string)
        missing = ops.logical_not(array_ops.stack([v.is_initialized() for v in checked]))
        names = array_ops.constant([v.op.name for v in checked])
        return array_ops.boolean_mask(names, missing)
