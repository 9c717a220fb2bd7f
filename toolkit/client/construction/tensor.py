"""Tensor and IndexedSlices: what op constructors take and return.

What Python's operators on tensors make is registered by modules above this one, which are loaded on first use, as
kernels and gradients are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, ParamSpec

from toolkit.client.construction import session_stack
from toolkit.client.construction.internals import TensorInternals
from toolkit.client.construction.tensor_shape import plain_shape
from toolkit.errors import GraphError, NoValueError
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph
    from toolkit.client.construction.operation import Operation

#: Anything that `convert_to_tensor` takes: Tensor, variable, IndexedSlices, numpy array, number, string, list.
TensorLike = Any
P = ParamSpec("P")

#: where the functions are that `operator` registers
_FAMILIES = "toolkit.client.math.math_ops"
_operators: dict[str, Callable[..., Tensor]] = {}


def operator(name: str) -> Callable[[Callable[P, Tensor]], Callable[P, Tensor]]:
    """Register what tensors use from above: "binary", "negative", "abs", "invert", "getitem", "sum_rows", "pack"."""

    def register(function: Callable[P, Tensor]) -> Callable[P, Tensor]:
        _operators[name] = function
        return function

    return register


def apply(name: str, *arguments: Any) -> Tensor:
    """Call what is registered under a name."""
    if name not in _operators:
        importlib.import_module(_FAMILIES)
    return _operators[name](*arguments)


class Tensor(TensorInternals):
    """One output of an operation: a handle, not a value.

    Compares and hashes by identity, as in TensorFlow 1.

    Attributes:
        op: the operation that makes it.
        index: which of the operation's outputs it is.
    """

    __slots__ = ("__dict__", "__weakref__", "_dtype", "index", "op")  # libraries hang their own notes on tensors
    __array_priority__ = 100  # numpy_array + tensor calls Tensor.__radd__
    #: what libraries give their own kinds of tensors, too
    OVERLOADABLE_OPERATORS: ClassVar[frozenset[str]] = frozenset(
        {
            "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__",
            "__rtruediv__", "__floordiv__", "__rfloordiv__", "__mod__", "__rmod__", "__pow__",
            "__rpow__", "__matmul__", "__rmatmul__", "__and__", "__rand__", "__or__", "__ror__",
            "__xor__", "__rxor__", "__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__abs__",
            "__invert__", "__getitem__",
        }
    )  # fmt: skip

    def __init__(self, op: Operation, index: int, dtype: DType):
        self.op = op
        self.index = index
        self._dtype = dtype

    @property
    def static_shape(self) -> Shape:
        """The static shape; unknown sizes are None in it. What the client itself asks for."""
        return self.op.graph.shapes[self.output]

    @property
    def shape(self) -> Any:
        """The static shape as the graph's programs see it: a `Shape`, or TensorFlow's TensorShape."""
        return self.op.graph.present_shape(self.static_shape)

    @property
    def dtype(self) -> DType:
        """The type, a reference type included."""
        return self._dtype

    @property
    def name(self) -> str:
        """`operation:index`."""
        return f"{self.op.name}:{self.index}"

    @property
    def value_index(self) -> int:
        """TensorFlow's name for `index`."""
        return self.index

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def ndim(self) -> int | None:
        """The rank, where it is known."""
        return self.static_shape.rank

    def ref(self) -> Tensor:
        """What sets and dicts may have as a key; a tensor is one itself, as it compares by identity."""
        return self

    experimental_ref = ref

    def deref(self) -> Tensor:
        """The tensor of a `ref`."""
        return self

    @property
    def output(self) -> Output:
        """The endpoint in the core graph."""
        return Output(self.op.node, self.index)

    def endpoint(self) -> Output:
        return self.output

    def get_shape(self) -> Any:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Refine the static shape; the graph does not change.

        Raises:
            GraphError: it contradicts what is known.
        """
        wanted = plain_shape(shape)
        if not self.static_shape.is_compatible_with(wanted):
            raise GraphError(f"'{self.name}' has shape {self.static_shape}, which cannot be set to {wanted}")
        self.graph.shapes.refine(self.output, wanted)

    def consumers(self) -> list[Operation]:
        """The operations that take it as a data input, in graph order, once for each input that it is."""
        endpoint = self.output
        return [op for op in self.graph.get_operations() for end in op.node.inputs if end == endpoint]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Its value, computed by the default session (or `session`).

        Raises:
            UsageError: there is no session for its graph.
        """
        return session_stack.session_for(session, self.graph, f"eval of '{self.name}'").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype}>"

    def __str__(self) -> str:
        shape = "" if self.static_shape.rank is None else f", shape={self.shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype}{device})'

    # -- what TensorFlow 1 forbids, because a handle has no value ------------------------------------------

    def __bool__(self) -> NoReturn:
        raise NoValueError(f"'{self.name}' has no value while the graph is built; use cond(), not a Python 'if'")

    def __iter__(self) -> Iterator[Tensor]:
        raise NoValueError(
            f"'{self.name}' of shape {self.static_shape} cannot be iterated over while the graph is built; use "
            "unstack(), map_fn() or while_loop()"
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"'{self.name}' has no value while the graph is built, so it cannot become an array")

    # -- operators ---------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        return apply("getitem", self, key)

    def __add__(self, other: TensorLike) -> Tensor:
        return _binary("add", self, other)

    def __radd__(self, other: TensorLike) -> Tensor:
        return _binary("add", other, self)

    def __sub__(self, other: TensorLike) -> Tensor:
        return _binary("sub", self, other)

    def __rsub__(self, other: TensorLike) -> Tensor:
        return _binary("sub", other, self)

    def __mul__(self, other: TensorLike) -> Tensor:
        return _binary("mul", self, other)

    def __rmul__(self, other: TensorLike) -> Tensor:
        return _binary("mul", other, self)

    def __truediv__(self, other: TensorLike) -> Tensor:
        return _binary("truediv", self, other)

    def __rtruediv__(self, other: TensorLike) -> Tensor:
        return _binary("truediv", other, self)

    def __floordiv__(self, other: TensorLike) -> Tensor:
        return _binary("floordiv", self, other)

    def __rfloordiv__(self, other: TensorLike) -> Tensor:
        return _binary("floordiv", other, self)

    def __mod__(self, other: TensorLike) -> Tensor:
        return _binary("mod", self, other)

    def __rmod__(self, other: TensorLike) -> Tensor:
        return _binary("mod", other, self)

    def __pow__(self, other: TensorLike) -> Tensor:
        return _binary("pow", self, other)

    def __rpow__(self, other: TensorLike) -> Tensor:
        return _binary("pow", other, self)

    def __matmul__(self, other: TensorLike) -> Tensor:
        return _binary("matmul", self, other)

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return _binary("matmul", other, self)

    def __lt__(self, other: TensorLike) -> Tensor:
        return _binary("Less", self, other)

    def __le__(self, other: TensorLike) -> Tensor:
        return _binary("LessEqual", self, other)

    def __gt__(self, other: TensorLike) -> Tensor:
        return _binary("Greater", self, other)

    def __ge__(self, other: TensorLike) -> Tensor:
        return _binary("GreaterEqual", self, other)

    def __and__(self, other: TensorLike) -> Tensor:
        return _binary("and", self, other)

    def __rand__(self, other: TensorLike) -> Tensor:
        return _binary("and", other, self)

    def __or__(self, other: TensorLike) -> Tensor:
        return _binary("or", self, other)

    def __ror__(self, other: TensorLike) -> Tensor:
        return _binary("or", other, self)

    def __xor__(self, other: TensorLike) -> Tensor:
        return _binary("xor", self, other)

    def __rxor__(self, other: TensorLike) -> Tensor:
        return _binary("xor", other, self)

    def __neg__(self) -> Tensor:
        return apply("negative", self)

    def __abs__(self) -> Tensor:
        return apply("abs", self)

    def __invert__(self) -> Tensor:
        return apply("invert", self)


def _binary(operator: str, left: TensorLike, right: TensorLike) -> Tensor:
    return apply("binary", operator, left, right)


class IndexedSlices:
    """The sparse gradient of a gather: rows `values[i]` belong at `indices[i]` of a dense tensor.

    Args:
        values: shape [n, ...].
        indices: shape [n], int32 or int64; may repeat, repeated rows add up.
        dense_shape: the shape of the whole, when known.
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None):
        self.values = values
        self.indices = indices
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def op(self) -> Operation:
        return self.values.op

    @property
    def name(self) -> str:
        return self.values.name

    @property
    def graph(self) -> Graph:
        return self.values.graph

    @property
    def device(self) -> str:
        return self.values.device

    @property
    def shape(self) -> Any:
        """The static shape of the whole; nothing is known of it without a constant dense shape."""
        known: Any = None
        if self.dense_shape is not None and self.dense_shape.op.type == "Const":
            known = [int(size) for size in self.dense_shape.op.get_attr("value")]
        return self.graph.present_shape(Shape(known))

    def consumers(self) -> list[Operation]:
        return self.values.consumers()

    def to_tensor(self, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Tensor:
        """The dense tensor, by UnsortedSegmentSum.

        Raises:
            GraphError: the dense shape is not known, or another type is asked for.
        """
        if self.dense_shape is None:
            raise GraphError(f"'{self.name}': the slices have no dense shape, so they cannot become a tensor")
        if dtype is not None and dtype.base is not self.dtype.base:
            raise GraphError(f"'{self.name}' has type {self.dtype}; {dtype} is wanted")
        return apply("sum_rows", self.values, self.indices, self.dense_shape[0], name)

    def __repr__(self) -> str:
        return f"<IndexedSlices values={self.values.name} indices={self.indices.name}>"
