# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn.datasets.base: arrays out of local CSV files."""

from __future__ import annotations

import csv
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
    with path.open(newline="") as file:
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
