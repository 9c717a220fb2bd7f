# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn.datasets.base: arrays out of CSV files."""

from __future__ import annotations

import csv
import lzma
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toolkit.errors import FormatError, NotFoundError


class LabelledExamples(NamedTuple):
    """Examples and their targets."""

    data: Any
    target: Any


def _rows(filename: Any) -> list[list[str]]:
    path = Path(filename)
    if not path.exists():
        raise NotFoundError(f"there is no file '{path}'")
    with lzma.open(path, "rt", newline="") if path.suffix == ".xz" else path.open(newline="") as file:
        return [row for row in csv.reader(file) if row]


def _dataset(
    filename: Any, rows: list[list[str]], target_dtype: Any, features_dtype: Any, column: int
) -> LabelledExamples:
    try:
        target = np.array([row.pop(column) for row in rows]).astype(target_dtype)
        data = np.array([np.asarray(row, dtype=features_dtype) for row in rows])
    except (ValueError, IndexError) as error:
        raise FormatError(f"its rows are not of numbers, as many in each: {error}", file=filename) from None
    return LabelledExamples(data, target)


def load_csv_with_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: Any = -1
) -> LabelledExamples:  # fmt: skip
    """Examples of a file whose first line begins with how many there are, and how many numbers each has.

    Raises:
        NotFoundError: there is no such file.
        FormatError: it holds something else.
    """
    rows = _rows(filename)
    try:
        count, width = int(rows[0][0]), int(rows[0][1])
    except (IndexError, ValueError):
        raise FormatError("its first line must begin with two counts, of rows and features", file=filename) from None
    found = _dataset(filename, rows[1:], target_dtype, features_dtype, target_column)
    if found.data.shape != (count, width):
        raise FormatError(f"it says that it has {count} rows of {width} features, and has others", file=filename)
    return found


def load_csv_without_header(
    filename: Any, target_dtype: Any, features_dtype: Any, target_column: Any = -1
) -> LabelledExamples:  # fmt: skip
    """Examples of a file, one in each line.

    Raises:
        NotFoundError: there is no such file.
        FormatError: it holds something else.
    """
    return _dataset(filename, _rows(filename), target_dtype, features_dtype, target_column)


def maybe_download(filename: Any, work_directory: Any, source_url: Any) -> str:
    """The path of a file that is there already; nothing is fetched.

    Raises:
        NotFoundError: it is not there.
    """
    path = Path(work_directory) / filename
    if not path.exists():
        raise NotFoundError(f"there is no file '{path}'; put what {source_url} has there (graphmill downloads nothing)")
    return str(path)


#: Fisher's measures of 150 irises (1936), as TensorFlow's own copy has them; in the public domain
_IRIS = Path(__file__).with_name("iris.csv.xz")
#: Harrison and Rubinfeld's 506 districts of Boston (1978), from StatLib; in the public domain
_BOSTON = Path(__file__).with_name("boston.csv.xz")


def load_iris(data_path: Any = None) -> LabelledExamples:
    """Four measures of irises and the number of their kind, from a file or those that everybody has."""
    return load_csv_with_header(data_path or _IRIS, np.int64, np.float64)


def load_boston(data_path: Any = None) -> LabelledExamples:
    """Thirteen numbers of districts and the price of their houses, from a file or those that everybody has."""
    return load_csv_with_header(data_path or _BOSTON, np.float64, np.float64)


def shrink_csv(filename: Any, ratio: Any) -> None:
    """Write every so many-th row, from the first on, beside a file: NAME_small.csv.

    Raises:
        NotFoundError: there is no such file.
    """
    rows = _rows(filename)
    with Path(str(filename).replace(".", "_small.")).open("w", newline="") as file:
        csv.writer(file).writerows(rows[::ratio])


def retry(
    initial_delay: Any, max_delay: Any, factor: Any = 2.0, jitter: Any = 0.25, is_retriable: Any = None
) -> Callable[..., Any]:
    """A decorator that calls a function anew when it fails, after delays that grow.

    Args:
        is_retriable: of an error: whether to wait and try again; others are raised. None: try again at once.

    Raises:
        ValueError: delays that shrink, or jitter of the whole delay.
    """
    if factor < 1:
        raise ValueError(f"factor must be at least 1; got {factor}")
    if jitter >= 1:
        raise ValueError(f"jitter must be below 1; got {jitter}")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            delay = initial_delay
            while delay <= max_delay:
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    if is_retriable is not None:
                        if not is_retriable(error):
                            raise
                        time.sleep(delay * random.uniform(1 - jitter, 1 + jitter))
                delay *= factor
            return function(*args, **kwargs)

        return call

    return decorator


def urlretrieve_with_retry(*args: Any, **kwargs: Any) -> Any:
    """Nothing is fetched.

    Raises:
        NotFoundError: always; says what to do.
    """
    source = args[0] if args else kwargs.get("url")
    raise NotFoundError(f"graphmill downloads nothing; fetch {source} yourself, and give the path of the file")
