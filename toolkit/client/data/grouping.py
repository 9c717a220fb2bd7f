"""Datasets of elements that are gathered by a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.data.dataset import Dataset, made_of
from toolkit.client.data.leaves import DatasetLeaf, TensorLeaf
from toolkit.client.data.mapping import ElementFunction, element_function
from toolkit.client.data.structure import leaves
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

_KEY = TensorLeaf(dtypes.int64, Shape([]))


def group_by_window(
    source: Dataset, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any,
    window_size_func: Callable[..., Any] | None,
) -> Dataset:  # fmt: skip
    """The elements of what a function makes of windows, each of elements with the same key.

    Raises:
        UsageError: neither or both of `window_size` and `window_size_func` are given.
        TypeError: keys or sizes are no int64 scalars, or windows become no datasets.
    """
    if (window_size is None) == (window_size_func is None):
        raise UsageError("group_by_window takes either window_size or window_size_func")

    def key_func_wrapper(*element: Any) -> Any:
        return math_ops.cast(key_func(*element), dtypes.int64)

    def window_size_func_wrapper(key: Any) -> Any:
        found = window_size if window_size_func is None else window_size_func(key)
        return convert_to_tensor(found, dtypes.int64)

    keys = element_function(key_func_wrapper, source.structure, "Dataset_group_by_window")
    _scalar(keys, "key_func")
    windows = element_function(
        reduce_func, (_KEY, DatasetLeaf(source.structure)), "Dataset_group_by_window", one_by_one=True
    )
    if not isinstance(windows.structure, DatasetLeaf):
        raise TypeError(f"reduce_func must return a Dataset, not {windows.structure!r}")
    sizes = element_function(window_size_func_wrapper, _KEY, "Dataset_group_by_window")
    _scalar(sizes, "window_size_func")
    attrs = {"key_func": keys.ref, "reduce_func": windows.ref, "window_size_func": sizes.ref}
    inputs = [keys.captured, windows.captured, sizes.captured]
    return made_of(source, "GroupByWindowDataset", inputs, attrs, windows.structure.elements)


def _scalar(function: ElementFunction, what: str) -> None:
    leaf = function.structure
    if not isinstance(leaf, TensorLeaf) or leaf.dtype.base is not dtypes.int64 or leaf.shape.rank not in (0, None):
        raise TypeError(f"{what} must return one int64, not {leaf!r}")


def bucket_by_sequence_length(
    source: Dataset, element_length_func: Callable[..., Any], bucket_boundaries: Any, bucket_batch_sizes: Any,
    padded_shapes: Any, padding_values: Any, pad_to_bucket_boundary: bool, no_padding: bool, drop_remainder: bool,
) -> Dataset:  # fmt: skip
    """Batches of elements of similar lengths.

    Raises:
        UsageError: there is not one batch size more than boundaries, or a bucket has no boundary to pad to.
    """
    boundaries, sizes = list(bucket_boundaries), list(bucket_batch_sizes)
    if len(sizes) != len(boundaries) + 1:
        raise UsageError(f"{len(boundaries)} boundaries need {len(boundaries) + 1} batch sizes, not {len(sizes)}")
    batch_sizes = constant(sizes, dtypes.int64)

    def element_to_bucket_id(*element: Any) -> Any:
        length = element_length_func(*element)
        least, most = [-(2**31), *boundaries], [*boundaries, 2**31 - 1]
        inside = ops.logical_and(ops.less_equal(least, length), ops.less(length, most))
        return math_ops.reduce_min(ops.where(inside))

    def window_size_fn(bucket: Any) -> Any:
        return batch_sizes[bucket]

    def batching_fn(bucket: Any, grouped: Dataset) -> Dataset:
        size = window_size_fn(bucket)
        if no_padding:
            return grouped.batch(size, drop_remainder=drop_remainder)
        return grouped.padded_batch(size, padded_shapes, padding_values, drop_remainder)

    if pad_to_bucket_boundary:
        raise UsageError("pad_to_bucket_boundary is not supported; give padded_shapes with the sizes to pad to")
    return group_by_window(source, element_to_bucket_id, batching_fn, None, window_size_fn)


class Reducer:
    """How elements of one key become one.

    Args:
        init_func: of a key, the first state.
        reduce_func: of a state and an element, the next state.
        finalize_func: of the last state, the result.
    """

    def __init__(
        self, init_func: Callable[..., Any], reduce_func: Callable[..., Any], finalize_func: Callable[..., Any]
    ):
        self._init_func, self._reduce_func, self._finalize_func = init_func, reduce_func, finalize_func

    @property
    def init_func(self) -> Callable[..., Any]:
        return self._init_func

    @property
    def reduce_func(self) -> Callable[..., Any]:
        return self._reduce_func

    @property
    def finalize_func(self) -> Callable[..., Any]:
        return self._finalize_func


def group_by_reducer(source: Dataset, key_func: Callable[..., Any], reducer: Reducer) -> Dataset:
    """One element for each key, made of all elements that have it.

    Raises:
        TypeError: keys are no int64 scalars, or states are not alike.
    """
    keys = element_function(key_func, source.structure, "tf_data_experimental_group_by_reducer")
    _scalar(keys, "key_func")
    first = element_function(reducer.init_func, _KEY, "tf_data_experimental_group_by_reducer")
    step = element_function(
        reducer.reduce_func, (first.structure, source.structure), "tf_data_experimental_group_by_reducer",
        one_by_one=True,
    )  # fmt: skip
    if [leaf.dtype for leaf in leaves(step.structure)] != [leaf.dtype for leaf in leaves(first.structure)]:
        raise TypeError(f"reduce_func must return a state like {first.structure!r}, not {step.structure!r}")
    last = element_function(reducer.finalize_func, step.structure, "tf_data_experimental_group_by_reducer")
    functions = {"key_func": keys, "init_func": first, "reduce_func": step, "finalize_func": last}
    attrs = {name: function.ref for name, function in functions.items()}
    inputs = [function.captured for function in functions.values()]
    return made_of(source, "GroupByReducerDataset", inputs, attrs, last.structure)
