"""What reference and resource variables share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from schemas import variable_pb2
from toolkit.client.construction import session_stack
from toolkit.client.construction.internals import VariableInternals
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import init_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow import control_flow
from toolkit.client.variables.updates import PartialUpdates
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph


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
        safe_ops(self.graph).add(value.op)
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


def check_type(variable: BaseVariable, dtype: DType | None) -> None:
    if dtype is not None and dtype.base is not variable.dtype.base:
        raise GraphError(f"variable '{variable.name}' has type {variable.dtype.base}, where {dtype} is wanted")


def safe_ops(graph: Graph) -> set[Operation]:
    """The results of `initialized_value`, which need no guard of their own."""
    return graph.extras.setdefault(__name__, set())
