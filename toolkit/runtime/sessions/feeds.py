"""Turning what callers feed into arrays of the right type and shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from toolkit.client.construction.elements import Composite, GraphElement
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.structures import nest
from toolkit.errors import ArgumentTypeError, ArgumentValueError, GraphError, UsageError
from toolkit.graph.dtypes import DType, from_numpy
from toolkit.graph.node import Output
from toolkit.graph.shape import UNKNOWN, Shape
from toolkit.kernels.types import Array, is_array
from toolkit.runtime.sessions import conversions


def taken_apart(feed_dict: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Feeds of single tensors: what stands for several gets a value for each of them.

    Raises:
        UsageError: a value has not as many parts as there are tensors, or another structure than its key.
    """
    if not any(
        isinstance(key, Composite | IndexedSlices) or _is_structure(key) or conversions.of(key) for key in feed_dict
    ):
        return feed_dict
    single: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        if _is_structure(key):
            single.update(taken_apart(dict(zip(nest.flatten(key), nest.flatten_up_to(key, value), strict=True))))
        elif isinstance(key, Composite | IndexedSlices):
            single.update(zip(_parts(key), _values(key, value), strict=True))
        elif (conversion := conversions.of(key)) is not None:
            if conversion.fed is None:
                raise UsageError(
                    f"{key!r} cannot be fed: for {conversion.kind.__name__} no feed_function is registered"
                )
            single.update(conversion.fed(key, value))
        else:
            single[key] = value
    return single


def _is_structure(key: Any) -> bool:
    """Whether a key holds several; the core graph's own endpoints are tuples as well."""
    return isinstance(key, tuple) and not isinstance(key, Output)


def _parts(key: Composite | IndexedSlices) -> list[Any]:
    if isinstance(key, Composite):
        return list(key.parts()[1])
    return [part for part in (key.values, key.indices, key.dense_shape) if part is not None]


def _values(key: Composite | IndexedSlices, value: Any) -> list[Any]:
    """A value for each part.

    Raises:
        UsageError: there are more or fewer.
    """
    wanted = len(_parts(key))
    if hasattr(value, "nested_row_splits"):  # the value of a ragged tensor
        value = [*value.nested_row_splits, value.flat_values]
    if not isinstance(value, list | tuple) or len(cast("list[Any]", value)) != wanted:
        raise UsageError(f"{key!r} is fed a tuple of {wanted} values, not {_brief(value)}")
    return list(cast("list[Any]", value))


def feed_array(output: Output, value: Any, shape: Shape | None = None, *, casts: bool = False) -> Array:
    """The array for one fed tensor.

    Arrays of the right type are taken as they are, not copied.

    Args:
        shape: what the tensor's shape must fit; default: the `shape` attribute of a placeholder.
        casts: numbers of another type are cast, as TensorFlow 1's sessions do, whatever is lost.

    Raises:
        UsageError: the value cannot be an array of that type, would lose information, or has another shape.
    """
    dtype = output.dtype.base
    if dtype.kind in "rv":
        return value
    if isinstance(value, GraphElement | IndexedSlices):
        raise ArgumentTypeError(f"the value fed for '{output.name}' is a graph element; feed an array")
    array = _cast(value, dtype, output.name) if casts else _convert(value, dtype, output.name)
    wanted = placeholder_shape(output) if shape is None else shape
    if not wanted.is_compatible_with(Shape(array.shape)):
        raise ArgumentValueError(
            f"cannot feed a value of shape {Shape(array.shape)} for '{output.name}', which has shape {wanted}"
        )
    return array


def placeholder_shape(output: Output) -> Shape:
    """The declared shape of a placeholder's output; unknown for everything else."""
    node = output.node
    if node.op not in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg"):
        return UNKNOWN
    shape = node.attr("shape", None)
    if shape is not None and not isinstance(shape, Shape):
        raise GraphError("the attribute 'shape' is no shape", node=node.name)
    # Graphs older than version 24 wrote [] where they meant "unknown".
    if shape is None or (node.op == "Placeholder" and not shape.dims and node.graph.versions.producer < 24):
        return UNKNOWN
    return shape


def _convert(value: Any, dtype: DType, name: str) -> Array:
    target = dtype.numpy
    if is_array(value) and value.dtype == target and dtype.kind != "s":
        return value
    try:
        if dtype.kind == "s":
            return _strings(value)
        given = cast("Array", np.asarray(value))
        if given.dtype == target:
            return given
        if given.dtype.kind in "OSU":
            where = getattr(value, "odd", "")  # see toolkit.formats.arrays.given.Texts
            raise UsageError(f"cannot feed strings for '{name}', which is {dtype}" + (f": {where}" if where else ""))
        is_python = not is_array(value)
        both_integers = dtype.is_integer and given.dtype.kind in "iu"
        if not is_python and not both_integers and not np.can_cast(given.dtype, target, "same_kind"):
            raise UsageError(f"cannot feed {from_numpy(given.dtype)} for '{name}', which is {dtype}; convert it first")
        if given.dtype.kind == "c" and target.kind != "c":
            raise UsageError(f"cannot feed complex values for '{name}', which is {dtype}")
        with np.errstate(all="ignore"):  # what does not fit a float becomes infinite; integers are compared below
            array = given.astype(target)
        if both_integers and not np.array_equal(array, given):
            raise UsageError(f"cannot feed {_brief(value)} for '{name}': {dtype} cannot hold all of its values")
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"cannot feed {_brief(value)} for '{name}', which is {dtype}: {error}") from None
    if is_python and dtype.is_integer and given.dtype.kind in "fc" and not np.array_equal(array, given):
        raise UsageError(f"cannot feed {_brief(value)} for '{name}', which is {dtype}: the values are not whole")
    return array


def _cast(value: Any, dtype: DType, name: str) -> Array:
    """As NumPy casts arrays; a Python integer must stay what it is, as in TensorFlow 1."""
    given = np.asarray(value) if is_array(value) or not isinstance(value, int) else None
    if given is None or given.dtype.kind not in "biuf" or dtype.kind not in "biuf":
        return _convert(value, dtype, name)
    with np.errstate(all="ignore"):
        return given.astype(dtype.numpy, copy=False)


def _strings(value: Any) -> Array:
    array = np.asarray(value)
    if array.size and array.dtype.kind not in "OSU":
        raise TypeError(f"expected strings, not {array.dtype}")
    given = np.asarray(value, dtype=object)  # keeps trailing zero bytes, which numpy's fixed-width types drop
    out = np.empty(given.shape, dtype=object)
    for index, item in enumerate(given.flat):
        if isinstance(item, str):
            item = item.encode()
        if not isinstance(item, bytes):
            raise TypeError(f"expected strings, not {type(item).__name__}")
        out.flat[index] = item
    return out


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
