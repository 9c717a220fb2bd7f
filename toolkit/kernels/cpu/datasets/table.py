"""Datasets of tables and examples: CSV files, databases, parsed Example messages."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import CancelledError, InvalidArgumentError, UnknownError
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import flag, require, require_scalar, shape_text, text
from toolkit.kernels.cpu.files.decoding import split_record
from toolkit.kernels.cpu.files.file_io import file_error
from toolkit.kernels.cpu.files.parsing import parse_example_v2
from toolkit.kernels.cpu.lists.ragged import RaggedVariant
from toolkit.kernels.datasets.base import Dataset, Element, Next, Run, a_dataset
from toolkit.kernels.datasets.options import kernel
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.resources.records import check_compression, read_bytes
from toolkit.kernels.types import Array
from toolkit.policy.outside import Reach

# -- CSV --------------------------------------------------------------------------------------------------

_QUOTED_END = re.compile(r'"|\r\n|\n|\r')


def _records(text: str, quoted: bool) -> Iterator[str]:
    """The records of a CSV file: lines, where quoted fields may go over several."""
    at = 0
    while at < len(text):
        inside, position = False, at
        while True:
            found = _QUOTED_END.search(text, position)
            if found is None:
                yield text[at:]
                return
            position = found.end()
            if found[0] == '"':
                inside ^= quoted
            elif not inside:
                yield text[at : found.start()]
                at = position
                break


@kernel("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset", kind=Kind.STATEFUL)
def csv_dataset(op: KernelNode) -> Compute:
    """One element per record, one scalar per column."""
    types: list[DType] = op.attr("output_types")
    has_excluded = op.op == "CSVDatasetV2"
    files = op.files

    def compute(
        step: StepContext, filenames: Array, compression_type: Array, buffer_size: Array, header: Array,
        field_delim: Array, use_quote_delim: Array, na_value: Array, select_cols: Array, *rest: Array,
    ) -> Dataset:  # fmt: skip
        defaults = [np.asarray(d) for d in (rest[:-1] if has_excluded else rest)]
        excluded: set[int] = set(np.ravel(rest[-1]).tolist()) if has_excluded else set()
        require(np.ndim(filenames) <= 1, "`filenames` must be a scalar or a vector.")
        for i, default in enumerate(defaults):
            require(default.ndim <= 1, f"Each record default should be at most rank 1, got {shape_text(default)}")
            require(default.size < 2, f"There should only be 1 default per field but field {i} has {default.size}")
        delimiter = text(field_delim, "field_delim")
        require(len(delimiter) == 1, "field_delim should be only 1 char")
        select: list[int] = np.ravel(select_cols).tolist()
        require(not (select and excluded), "Either select_cols or exclude_cols should be empty")
        require(not select or len(select) == len(types), "select_cols should match output size")
        require(
            all(a < b for a, b in pairwise(select)) and (not select or select[0] >= 0),
            "select_cols should be strictly increasing indices",
        )
        compression = text(compression_type, "compression_type")
        check_compression(compression)
        quoted, skip = flag(use_quote_delim, "use_quote_delim"), flag(header, "header")
        missing = text(na_value, "na_value")

        names = [name.decode(errors="surrogateescape") for name in np.atleast_1d(filenames).tolist()]

        def open_file(name: str) -> Iterator[str]:
            content = read_bytes(files, name, compression).decode("utf-8", "surrogateescape")
            return _records(content, quoted)

        def fields_of(row: str) -> list[str]:
            fields = split_record(row, delimiter, quoted)
            if excluded:
                fields = [field for i, field in enumerate(fields) if i not in excluded]
            if select:
                require(
                    select[-1] < len(fields),
                    f"Expect {len(types)} fields but have {sum(c < len(fields) for c in select)} in record",
                )
                fields = [fields[c] for c in select]
            require(len(fields) >= len(types), f"Expect {len(types)} fields but have {len(fields)} in record")
            require(len(fields) <= len(types), f"Expect {len(types)} fields but have more in record")
            return fields

        def start(run: Run) -> Next:
            waiting = list(reversed(names))
            current: Iterator[str] = iter(())

            def following() -> Element | None:
                nonlocal current
                while (row := next(current, None)) is None:
                    if not waiting:
                        return None
                    current = open_file(waiting[-1])  # what cannot be opened stays in the way
                    waiting.pop()
                    if skip and next(current, None) is None:
                        raise InvalidArgumentError("Can't read header of file")
                columns = zip(fields_of(row), types, defaults, strict=True)
                return [_field(field, dtype, default, missing, i) for i, (field, dtype, default) in enumerate(columns)]

            return following

        return Dataset(start)

    return compute


def _field(text: str, dtype: DType, default: Array, missing: str, index: int) -> Array:
    """One value of a record, or the column's default where it is empty.

    Raises:
        InvalidArgumentError: it is empty without a default, or no number.
    """
    if not text or text == missing:
        require(default.size == 1, f"Field {index} is required but missing in record!")
        return np.array(default.reshape(-1)[0], dtype.numpy)
    if dtype.kind == "s":
        return np.array(text.encode("utf-8", "surrogateescape"), object)
    try:
        if "_" in text:
            raise ValueError
        value = int(text) if dtype.is_integer else float(text)
        return np.array(value, dtype.numpy)
    except (ValueError, OverflowError):
        raise InvalidArgumentError(f"Field {index} in record is not a valid {dtype}: {text}") from None


# -- databases --------------------------------------------------------------------------------------------


@kernel("SqlDataset", "ExperimentalSqlDataset", kind=Kind.STATEFUL)
def sql_dataset(op: KernelNode) -> Compute:
    """The rows of a query to a SQLite file, one scalar per column."""
    types: list[DType] = op.attr("output_types")
    files = op.files

    def compute(step: StepContext, driver_name: Array, data_source_name: Array, query: Array) -> Dataset:
        for value, what in ((driver_name, "driver_name"), (data_source_name, "data_source_name"), (query, "query")):
            require_scalar(value, f"`{what}`")
        source = os.fsdecode(np.asarray(data_source_name).item())
        driver, text = np.asarray(driver_name).item().decode(errors="replace"), np.asarray(query).item()
        require(
            driver == "sqlite",
            f"The database type, {driver}, is not supported by SqlDataset. "
            "The set of supported databases is: {'sqlite'}.",
        )

        def start(run: Run) -> Next:
            cursor: sqlite3.Cursor | None = None

            def following() -> Element | None:
                nonlocal cursor
                try:
                    if cursor is None:
                        place = files.with_siblings(Reach.READ, source)
                        cursor = _query(place, text, len(types), lambda: run.step.cancellation.is_cancelled)
                    row = cursor.fetchone()
                except OSError as error:
                    raise file_error(error, source) from None
                except sqlite3.Error as error:
                    if run.step.cancellation.is_cancelled:
                        raise CancelledError("the step was cancelled") from None
                    raise UnknownError(f"SQLite: {error}: {text.decode(errors='replace')}") from None
                return None if row is None else [_column(v, t) for v, t in zip(row, types, strict=True)]

            return following

        return Dataset(start)

    return compute


#: what a query may do: read, also by functions and recursion. Everything else is refused, ATTACH and VACUUM INTO,
#: which write files whatever the connection was opened for, among it.
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


#: instructions of SQLite's machine after which a query looks whether it is still wanted: a millisecond or so
_INSTRUCTIONS = 100_000


def _query(source: str, query: bytes, columns: int, is_cancelled: Callable[[], bool]) -> sqlite3.Cursor:
    """Run a query that only reads; `source` is a path that may be read. Cancelled ones raise sqlite3.Error.

    Raises:
        sqlite3.Error: it is no database, or the query is wrong or does more than read.
        InvalidArgumentError: it is not UTF-8, or has another number of columns.
    """
    try:
        text = query.partition(b"\0")[0].decode()  # SQLite reads as far as a zero byte
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"query must be UTF-8, it has the byte {query[error.start]:#04x}") from None
    # without a log of changes beside it nothing is made there either
    still = "" if Path(source + "-wal").exists() else "&immutable=1"
    connection = sqlite3.connect(f"{Path(source).as_uri()}?mode=ro{still}", uri=True, check_same_thread=False)
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(is_cancelled, _INSTRUCTIONS)
    connection.text_factory = bytes  # a column of text may hold any bytes
    cursor = connection.execute(text)
    found = len(cursor.description or ())
    require(
        found == columns,
        f"The number of columns in query ({found}) must match the number of elements in output_types ({columns}).",
    )
    return cursor


_NUMBER = re.compile(rb"\s*[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
_WHOLE = re.compile(rb"\s*[-+]?\d+")


def _column(value: Any, dtype: DType) -> Array:
    """A value as SQLite itself converts it: numbers by truncation, text by the number it begins with, NULL as 0.

    Args:
        value: None, a number, or the bytes of text or of a blob.
    """
    if dtype.kind == "s":
        text = b"" if value is None else value if isinstance(value, bytes) else str(value).encode()
        return np.array(text, object)
    if isinstance(value, bytes):
        found = (_NUMBER if dtype.kind == "f" else _WHOLE).match(value)
        value = float(found[0]) if found else 0
    number = value or 0
    if dtype.kind == "f":
        return np.array(number, dtype.numpy)
    if dtype.kind == "b":
        return np.array(abs(number) >= 1)
    whole = int(max(-(1 << 63), min(number, (1 << 63) - 1)))  # infinities as well
    return np.array(whole, np.int64).astype(dtype.numpy)


# -- examples ---------------------------------------------------------------------------------------------


@kernel("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")
def parse_example_dataset(op: KernelNode) -> Compute:
    """Batches of serialized Examples parsed; the components stand in the order of their keys."""
    sparse, dense = op.attr("sparse_keys"), op.attr("dense_keys")
    ragged: list[bytes] = op.attr("ragged_keys") if op.op != "ExperimentalParseExampleDataset" else []
    parse = parse_example_v2(op)
    keys = [np.array(group, object) for group in (sparse, dense, ragged)]

    def compute(dataset: Any, num_parallel_calls: Array, *defaults: Array) -> Dataset:
        source = a_dataset(dataset)

        def element(serialized: Array) -> Element:
            outputs = parse(serialized, np.zeros(0, object), *keys, *defaults)
            counts = [len(sparse)] * 3 + [len(dense)] + [len(ragged)] * 2
            groups = [[outputs.pop(0) for _ in range(count)] for count in counts]
            found: dict[bytes, Any] = dict(zip(dense, groups[3], strict=True))
            for key, indices, values, shape in zip(sparse, *groups[:3], strict=True):
                row = np.empty(3, object)
                row[:] = [indices, values, shape]
                found[key] = row
            for key, values, splits in zip(ragged, *groups[4:], strict=True):
                found[key] = RaggedVariant((splits,), values)
            return [found[key] for key in sorted(found)]

        def start(run: Run) -> Next:
            current = source.start(run)

            def following() -> Element | None:
                found = current()
                return None if found is None else element(np.asarray(found[0]))

            return following

        return Dataset(start, source.cardinality)

    return compute
