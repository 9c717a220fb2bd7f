# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.data.experimental.make_csv_dataset: columns by name, with types that the first rows show."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np

from toolkit.client.construction.convert import constant
from toolkit.client.data import examples, mapping
from toolkit.client.data.dataset import Dataset
from toolkit.client.data.sources import from_tensor_slices
from toolkit.client.data.tables import CsvDataset, column_default
from toolkit.graph import dtypes
from toolkit.tensorflow.families.platform.services import GFile, Glob

_CHOSEN = -1
#: from the narrowest on; a column has the first that all of its fields have
_ORDER = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def _opened(path: str, compression_type: Any) -> Any:
    if compression_type in (None, ""):
        return GFile(path, "r")._opened()
    if compression_type == "GZIP":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    raise ValueError(
        f"compression_type: columns can be looked up in plain and GZIP files, not {compression_type!r}; give "
        "column_names and column_defaults"
    )


def _files(file_pattern: Any) -> list[str]:
    found = sorted(Glob(file_pattern))
    if not found:
        raise ValueError(f"file_pattern: no file matches {file_pattern!r}")
    return found


def _names(files: list[str], compression: Any, how: dict[str, Any]) -> list[str]:
    """The first row, which all files share."""
    first: list[str] | None = None
    for path in files:
        with _opened(path, compression) as file:
            row = next(csv.reader(file, **how), None)
        if row is None:
            raise ValueError(f"'{path}' is empty; expected a row with the names of the columns")
        if first is not None and row != first:
            raise ValueError(f"'{path}' has other names of columns than '{files[0]}'")
        first = row
    return first or []


def _rows(files: list[str], compression: Any, how: dict[str, Any], header: bool, count: int) -> Iterator[list[str]]:
    for path in files:
        with _opened(path, compression) as file:
            for number, row in enumerate(csv.reader(file, **how), 1):
                if header and number == 1:
                    continue
                if len(row) != count:
                    raise ValueError(f"'{path}', row {number}: expected {count} fields, got {len(row)}")
                yield row


def _kind_of(field: str) -> Any:
    """The narrowest type that a field has."""
    try:
        whole = int(field)
        for kind in _ORDER[:2]:
            info = np.iinfo(kind.numpy)
            if info.min <= whole <= info.max:
                return kind
    except ValueError:
        pass
    try:
        number = float(field)
    except ValueError:
        return dtypes.string
    with np.errstate(over="ignore"):
        return next((kind for kind in _ORDER[2:4] if kind.numpy.type(number) < np.inf), dtypes.string)


def _inferred(rows: Iterator[list[str]], columns: list[int], na_value: str, limit: int | None) -> list[Any]:
    kinds: list[Any] = [None] * len(columns)
    for number, row in enumerate(rows):
        if limit is not None and number >= limit:
            break
        for place, column in enumerate(columns):
            if row[column] not in ("", na_value):
                found = _kind_of(row[column])
                known = kinds[place]
                kinds[place] = found if known is None else max(known, found, key=_ORDER.index)
    return [constant(["" if kind in (None, dtypes.string) else 0], kind or dtypes.string) for kind in kinds]


def _chosen(select_columns: Any, names: list[str]) -> list[int]:
    found: set[int] = set()
    for each in select_columns:
        known = 0 <= each < len(names) if isinstance(each, int) else each in names
        if not known:
            raise ValueError(f"select_columns: there is no column {each!r}; expected some of {names}")
        found.add(each if isinstance(each, int) else names.index(each))
    if len(found) != len(select_columns):
        raise ValueError(f"select_columns: a column is named twice in {select_columns}")
    return sorted(found)


def make_csv_dataset(
    file_pattern: Any, batch_size: Any, column_names: Any = None, column_defaults: Any = None, label_name: Any = None,
    select_columns: Any = None, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    header: bool = True, num_epochs: Any = None, shuffle: bool = True, shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None, prefetch_buffer_size: Any = None, num_parallel_reads: Any = None, sloppy: bool = False,
    num_rows_for_inference: Any = 100, compression_type: Any = None, ignore_errors: bool = False,
) -> Dataset:  # fmt: skip
    files = _files(file_pattern)
    how = {"delimiter": field_delim, "quoting": csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE}
    names_given = from_tensor_slices(files)
    if shuffle:
        names_given = names_given.shuffle(len(files), shuffle_seed)
    if column_names is None and not header:
        raise ValueError("column_names: files without a header need them")
    names = _names(files, compression_type, how) if column_names is None else list(column_names)
    if len(names) != len(set(names)):
        raise ValueError(f"column_names: a name stands twice in {names}")
    columns = None if select_columns is None else _chosen(select_columns, names)
    wanted = list(range(len(names))) if columns is None else columns
    if column_defaults is None:
        rows = _rows(files, compression_type, how, header, len(names))
        defaults = _inferred(rows, wanted, na_value, num_rows_for_inference)
    else:
        defaults = [column_default(each) for each in column_defaults]
    if len(defaults) != len(wanted):
        raise ValueError(f"column_defaults: expected one for each of {len(wanted)} columns, got {len(defaults)}")
    names = [names[column] for column in wanted]
    if label_name is not None and label_name not in names:
        raise ValueError(f"label_name: expected one of the columns {names}, got {label_name!r}")

    def read(path: Any) -> Dataset:
        rows = CsvDataset(
            path, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, columns
        )
        return rows.ignore_errors() if ignore_errors else rows

    def by_name(*values: Any) -> Any:
        features = dict(zip(names, values, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    rows = examples.read_side_by_side(names_given, read, num_parallel_reads, sloppy)
    rows = examples.shuffled_and_repeated(rows, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = rows.batch(batch_size, drop_remainder=num_epochs is None)
    named = mapping.map_elements(batches, by_name, None, None, False, False, inter_op=False)
    return named.prefetch(_CHOSEN if prefetch_buffer_size is None else prefetch_buffer_size)


def contrib_make_csv_dataset(
    file_pattern: Any, batch_size: Any, column_names: Any = None, column_defaults: Any = None, label_name: Any = None,
    select_columns: Any = None, field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
    header: bool = True, num_epochs: Any = None, shuffle: bool = True, shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None, prefetch_buffer_size: Any = None, num_parallel_reads: Any = None, sloppy: bool = False,
    num_rows_for_inference: Any = 100, compression_type: Any = None,
) -> Dataset:  # fmt: skip
    """As tf.data.experimental has it, but for rows with errors, which are never left out."""
    return make_csv_dataset(
        file_pattern, batch_size, column_names, column_defaults, label_name, select_columns, field_delim,
        use_quote_delim, na_value, header, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed,
        prefetch_buffer_size, num_parallel_reads, sloppy, num_rows_for_inference, compression_type,
    )  # fmt: skip
