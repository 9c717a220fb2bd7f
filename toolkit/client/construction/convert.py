"""Python and numpy values as tensors: `constant` and `convert_to_tensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from schemas.tensor_pb2 import TensorProto
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor, TensorLike, apply
from toolkit.client.construction.tensor_shape import Dimension, TensorShape, plain_shape
from toolkit.errors import GraphError, GraphmillError
from toolkit.formats.arrays import tensor as tensor_format
from toolkit.graph import dtypes, opdefs
from toolkit.graph.attrs import encode
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

#: What names a type: a DType, its name, a numpy type, or Python's bool, int, float, complex, str, bytes.
DTypeLike = Any

_INT32_MAX = 2**31 - 1
_PYTHON_TYPES: dict[type, DType] = {
    bool: dtypes.bool_, int: dtypes.int32, float: dtypes.float32, complex: dtypes.complex128,
    str: dtypes.string, bytes: dtypes.string,
}  # fmt: skip


#: types of values that are looked at often and stand for no tensor themselves
_PLAIN: frozenset[type] = frozenset({int, float, bool, complex, str, bytes, list, tuple, np.ndarray})


def stands_for_tensor(value: Any) -> bool:
    """Whether an object has `to_tensor(dtype, name, as_ref)`: variables, IndexedSlices."""
    return type(value) not in _PLAIN and hasattr(value, "to_tensor")


def as_dtype(value: DTypeLike) -> DType:
    """The DType that a value names.

    Raises:
        GraphmillError: it names none.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return dtypes.from_name(value)
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    try:
        if value is None:
            raise TypeError  # numpy takes it for float64
        return dtypes.from_numpy(value)
    except TypeError:
        raise GraphError(f"{value!r} is not a data type; give one such as float32") from None


def as_shape(value: Any) -> Shape:
    """A Shape from a Shape, a list of sizes (None: unknown), one size, or None (unknown rank)."""
    if isinstance(value, list | tuple) and any(isinstance(size, Dimension) for size in cast("list[Any]", value)):
        return plain_shape(value)
    if value is None or isinstance(value, list | tuple):
        return Shape(value)  # type: ignore[arg-type]
    if isinstance(value, Shape):
        return value
    if isinstance(value, TensorShape):
        return value.plain
    if isinstance(value, np.ndarray):
        return Shape(value.tolist())
    if hasattr(value, "__index__"):
        return Shape([int(value)])
    raise GraphError(f"{value!r} is not a shape; give a list of sizes, with None for unknown ones")


def constant(
    value: Any,
    dtype: DTypeLike = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """A Const node.

    Args:
        value: a number, string, bool, numpy array or nested lists of them. Python floats become float32 and
            ints int32 (int64 when they do not fit) unless `dtype` says otherwise; numpy arrays keep their type.
        shape: may be larger than the value's: its last element fills the rest.
        verify_shape: refuse a `shape` other than the value's.

    Raises:
        GraphError: ragged lists, values that do not fit the type or the shape.
    """
    proto = tensor_proto(value, None if dtype is None else as_dtype(dtype), shape, verify_shape)
    attrs = {"value": encode(proto), "dtype": encode(dtypes.from_enum(proto.dtype))}
    return get_default_graph().create_node(opdefs.get("Const"), [], attrs, name).outputs[0]


def tensor_proto(value: Any, dtype: DType | None = None, shape: Any = None, verify_shape: bool = False) -> TensorProto:
    """The TensorProto of a Python or numpy value; as `constant` takes it."""
    if isinstance(value, TensorProto):
        return value
    if isinstance(value, TensorShape):
        value = value.plain
    if isinstance(value, Shape):
        value = _shape_values(value)
    if isinstance(value, Dimension):
        value = value.value
    if dtype is not None and not isinstance(value, np.ndarray | np.generic):
        _check_python(value, dtype)
    if isinstance(value, list | tuple) and not isinstance(value, np.ndarray):
        value = _plain(value)
    array = tensor_format.as_array(value, dtype)
    wanted = None if shape is None else as_shape(shape)
    if verify_shape and wanted is not None and tuple(wanted.as_list()) != array.shape:
        raise GraphError(f"the constant has shape {list(array.shape)}, but {wanted} is asked for")
    if dtype is None and isinstance(value, list | tuple) and array.size == 0:
        array = array.astype(np.float32)  # an empty list says nothing; TensorFlow takes float32
    return tensor_format.from_array(array, dtype, wanted)


def _plain(value: Any) -> Any:
    """Lists with Shape dimensions or numpy scalars inside, ready for numpy."""
    return [
        _plain(item) if isinstance(item, list | tuple) else item.value if isinstance(item, Dimension) else item
        for item in value
    ]


def _shape_values(shape: Shape) -> np.ndarray[Any, Any]:
    sizes = shape.as_list()
    return np.array(sizes, np.int64 if any(size > _INT32_MAX for size in sizes) else np.int32)


def _check_python(value: Any, dtype: DType) -> None:
    """Python values must be of the kind the type holds: no float for an int, no number for a string.

    Raises:
        GraphError: one is not.
    """
    if isinstance(value, list | tuple):
        for item in value:  # type: ignore[misc]
            _check_python(item, dtype)
        return
    match dtype.base.kind:
        case "f":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "c":
            fits = isinstance(value, int | float | complex) and not isinstance(value, bool)
        case "i" | "u":
            fits = isinstance(value, int | Dimension) and not isinstance(value, bool)
        case "b":
            fits = isinstance(value, bool)
        case "s":
            fits = isinstance(value, str | bytes)
        case _:
            return
    if not (fits or isinstance(value, np.ndarray | np.generic)):
        raise GraphError(f"expected {dtype.base}, but got {value!r} of type '{type(value).__name__}'")


def convert_to_tensor(
    value: TensorLike,
    dtype: DTypeLike = None,
    name: str | None = None,
    preferred_dtype: DTypeLike = None,
    as_ref: bool = False,
) -> Tensor:
    """A tensor for `value`: itself, a variable's value, or a new Const (or Pack, for lists that hold tensors).

    Args:
        preferred_dtype: tried first, and given up when the value does not fit it.
        as_ref: a reference variable gives its reference, not its snapshot.

    Raises:
        GraphError: it cannot become a tensor, or not of `dtype`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        if wanted is not None and wanted.base is not value.dtype.base:
            raise GraphError(f"'{value.name}' has type {value.dtype}, where {wanted} is wanted; cast it")
        return value
    if stands_for_tensor(value):
        return value.to_tensor(wanted, name, as_ref)
    if wanted is None and preferred_dtype is not None:
        try:
            return convert_to_tensor(value, preferred_dtype, name)
        except GraphmillError:
            pass
    if isinstance(value, list | tuple) and holds_tensor(value):
        return apply("pack", cast("list[Any]", value), wanted, name or "packed")
    if isinstance(value, TensorShape):
        value = value.plain
    if isinstance(value, Shape):
        if not value.is_fully_defined:
            raise GraphError(f"the shape {value} is not fully known, so it cannot become a tensor; use shape()")
        return constant(value, wanted, name=name or "shape_as_tensor")
    kind = cast("type[Any]", type(cast("Any", value)))
    if kind in (DType, dict, set) or callable(cast("Any", value)):
        raise GraphError(f"{value!r} of type '{kind.__name__}' cannot become a tensor")
    return constant(value, wanted, name=name or "Const")


def convert_n_to_tensor(
    values: Sequence[TensorLike],
    dtype: DTypeLike = None,
    name: str | None = None,
    preferred_dtype: DTypeLike = None,
    as_ref: bool = False,
) -> list[Tensor]:
    """Tensors for several values; constants among them are named `name_0`, `name_1`, ..."""
    return [
        convert_to_tensor(value, dtype, None if name is None else f"{name}_{i}", preferred_dtype, as_ref)
        for i, value in enumerate(values)
    ]


def holds_tensor(value: Any) -> bool:
    """Whether a value, or a nested list, contains a tensor or something that stands for one."""
    if isinstance(value, list | tuple):
        return any(holds_tensor(item) for item in value)  # type: ignore[misc]
    return isinstance(value, Tensor) or stands_for_tensor(value)
