# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Arrays, data frames and iterators as inputs of a model: placeholders, and a function that feeds batches."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_dtype
from toolkit.client.construction.tensor import Tensor

#: the seed by which examples are shuffled
_SEED = 42


def input_fn_of(
    x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: Any, shuffle: bool = False, epochs: Any = 1
) -> tuple[Any, Any]:
    """A function that makes inputs, and one that feeds them or None.

    Raises:
        ValueError: neither data nor a function are given, or both.
    """
    check_inputs(x, y, input_fn, feed_fn, batch_size)
    if input_fn is not None:
        return input_fn, feed_fn
    feeder = Feeder(
        extract_pandas_data(x), None if y is None else extract_pandas_labels(y), batch_size, shuffle, epochs
    )
    return feeder.input_fn, feeder.feed


def check_inputs(x: Any, y: Any, input_fn: Any, feed_fn: Any, batch_size: Any) -> None:
    """Raises ValueError: neither data nor a function are given, or both, or the data are tensors."""
    if input_fn is not None:
        if x is not None or y is not None or batch_size is not None:
            raise ValueError("give input_fn, or x, y and batch_size, not both")
        return
    if x is None:
        raise ValueError("give x or input_fn; both are missing")
    if isinstance(x, Tensor) or isinstance(y, Tensor):
        raise ValueError("x and y are arrays; tensors come from an input_fn")
    if feed_fn is not None:
        raise ValueError("give feed_fn, or x and y, not both")


class Feeder:
    """Feeds examples in batches.

    Args:
        x: an array or iterator of examples, or a dict of arrays, or an iterator of dicts.
        y: the same of labels, or None.
        batch_size: None: all examples at once, or one of an iterator.
        epochs: None: for ever.
    """

    def __init__(self, x: Any, y: Any, batch_size: Any, shuffle: bool, epochs: Any):
        if batch_size is not None and batch_size <= 0:
            raise ValueError(f"batch_size must be above 0; got {batch_size}")
        self._is_stream = hasattr(x, "__next__")
        if self._is_stream:
            if y is not None and not hasattr(y, "__next__"):
                raise ValueError("x is an iterator, so y must be one")
            self._batches = _streamed(x, y, batch_size or 1)
            first = next(self._batches, None)
            if first is None:
                raise ValueError("x is an iterator, and it is empty")
            self._batches = itertools.chain([first], self._batches)
        else:
            columns = _arrays(x), None if y is None else _arrays(y)
            first = columns
            self._batches = _sliced(*columns, batch_size, shuffle, epochs)
        self._like = _mapped(_as_fed, first[0]), None if first[1] is None else _mapped(_as_label, first[1])
        self._inputs: Any = None
        self._outputs: Any = None

    def input_fn(self) -> tuple[Any, Any]:
        """Placeholders of examples and labels."""
        self._inputs = _placeholders(self._like[0], "input")
        self._outputs = None if self._like[1] is None else _placeholders(self._like[1], "output")
        return self._inputs, self._outputs

    def feed(self) -> dict[Any, Any]:
        """The next batch.

        Raises:
            StopIteration: there is none.
        """
        x, y = next(self._batches)
        found = _paired(self._inputs, _mapped(_as_fed, x))
        if self._outputs is not None:
            found |= _paired(self._outputs, _mapped(_as_label, y))
        return found


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    return {key: function(each) for key, each in value.items()} if isinstance(value, dict) else function(value)


def _paired(placeholders: Any, values: Any) -> dict[Any, Any]:
    if isinstance(placeholders, dict):
        return {placeholder: values[key] for key, placeholder in placeholders.items()}
    return {placeholders: values}


def _arrays(value: Any) -> Any:
    return _mapped(np.asarray, value)


def _as_fed(array: Any) -> Any:
    """Examples [batch, ...] with at least one number in a row of its own."""
    return array.reshape(-1, 1) if array.ndim == 1 else array


def _as_label(array: Any) -> Any:
    """Labels [batch] where there is one for each example."""
    return array.reshape(len(array), *array.shape[2:]) if array.ndim > 1 and array.shape[1] == 1 else array


def _placeholders(like: Any, name: str) -> Any:
    def made(array: Any, of: str) -> Any:
        return array_ops.placeholder(as_dtype(array.dtype), [None, *array.shape[1:]], name=of)

    if isinstance(like, dict):
        return {key: made(array, f"{name}_{key}") for key, array in like.items()}
    return made(like, name)


def _sliced(x: Any, y: Any, batch_size: Any, shuffle: bool, epochs: Any) -> Iterator[tuple[Any, Any]]:
    """Batches of arrays; the last one of an epoch may be smaller."""
    count = len(next(iter(x.values())) if isinstance(x, dict) else x)
    random = np.random.RandomState(_SEED)
    size = batch_size or count
    for _ in itertools.count() if epochs is None else range(epochs):
        order = random.permutation(count) if shuffle else np.arange(count)
        for at in range(0, count, size):
            chosen = operator.itemgetter(order[at : at + size])
            yield _mapped(chosen, x), None if y is None else _mapped(chosen, y)


def _streamed(x: Iterator[Any], y: Iterator[Any] | None, batch_size: int) -> Iterator[tuple[Any, Any]]:
    """Batches of what iterators give, one example at a time."""
    while examples := list(itertools.islice(x, batch_size)):
        labels = None if y is None else [_label(each) for each in itertools.islice(y, len(examples))]
        yield _stacked(examples), None if labels is None else _stacked(labels)


def _label(value: Any) -> Any:
    return np.asarray(value[0]) if isinstance(value, list) and len(value) == 1 else value


def _stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], dict):
        return {key: np.stack([np.asarray(row[key]) for row in rows]) for key in rows[0]}
    return np.stack([np.asarray(row) for row in rows])


def _is_frame(data: Any, kind: str = "DataFrame") -> bool:
    return type(data).__name__ == kind and type(data).__module__.partition(".")[0] == "pandas"


def extract_pandas_data(data: Any) -> Any:
    """A data frame of numbers as an array of floats; anything else as it is.

    Raises:
        ValueError: a column holds no numbers.
    """
    if not _is_frame(data):
        return data
    _check_frame(data)
    return data.to_numpy().astype("float")


def extract_pandas_matrix(data: Any) -> Any:
    """A data frame as an array; anything else as it is."""
    return data.to_numpy() if _is_frame(data) else data


def extract_pandas_labels(labels: Any) -> Any:
    """The one column of a data frame, or a series, as an array; anything else as it is.

    Raises:
        ValueError: there are several columns, or they hold no numbers.
    """
    if _is_frame(labels, "Series"):
        return labels.to_numpy()
    if not _is_frame(labels):
        return labels
    if len(labels.columns) > 1:
        raise ValueError(f"labels are one column; the data frame has {len(labels.columns)}")
    _check_frame(labels)
    return labels.to_numpy()


def _check_frame(data: Any) -> None:
    wrong = [f"'{name}' ({data[name].dtype.name})" for name in data if data[name].dtype.kind not in "biuf"]
    if wrong:
        raise ValueError(f"the columns of the data frame must be of numbers; these are not: {', '.join(wrong)}")


def extract_dask_data(data: Any) -> Any:
    """What is no Dask data frame as it is.

    Raises:
        NotImplementedError: it is one.
    """
    if type(data).__module__.partition(".")[0] == "dask":
        raise NotImplementedError("Dask's data frames are not read; give data.compute()")
    return data


def extract_dask_labels(labels: Any) -> Any:
    """As `extract_dask_data`."""
    return extract_dask_data(labels)
