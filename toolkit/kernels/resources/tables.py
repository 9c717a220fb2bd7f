"""Lookup tables: the resources behind HashTable and its relatives."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from toolkit.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
    os_status,
)
from toolkit.forks import free_in_children
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import SCALAR, Shape
from toolkit.kernels.types import Array
from toolkit.policy.access import Files

WHOLE_LINE, LINE_NUMBER = -2, -1


def _shape(value: Any) -> list[int]:
    return list(np.shape(value))


def rows_of(values: Array, rank: int, dtype: DType) -> list[Any]:
    """The elements of a tensor whose last `rank` axes are one element, as Python values or arrays."""
    if rank == 0:
        return values.ravel().tolist()
    count = int(np.prod(values.shape[: values.ndim - rank]))
    return list(values.reshape(count, *values.shape[values.ndim - rank :]))


class LookupTable:
    """Keys to values of fixed types.

    Attributes:
        key, value: their types.
        key_shape, value_shape: of one key and one value.
        fixed: initialised once and then read only (HashTable).
        forbidden: keys that stand for empty and deleted buckets (MutableDenseHashTable).
    """

    def __init__(
        self, key: DType, value: DType, *, value_shape: Shape = SCALAR, key_shape: Shape = SCALAR, fixed: bool = False,
        forbidden: Iterable[Any] = (),
    ):  # fmt: skip
        self.key = key
        self.value = value
        self.key_shape = key_shape
        self.value_shape = value_shape
        self.fixed = fixed
        self.lock = threading.RLock()
        free_in_children(self, "lock")
        self.initialized = not fixed
        self._names = ("empty_key", "deleted_key")
        self._forbidden = [self._name(k) for k in forbidden]
        self._items: dict[Any, Any] = {}

    # -- keys --------------------------------------------------------------------------------------------

    @staticmethod
    def _name(key: Any) -> Any:
        """What a key is found by."""
        return key.tobytes() if isinstance(key, np.ndarray) else key

    def _keys(self, keys: Array) -> list[Any]:
        rank = self.key_shape.rank or 0
        if keys.ndim < rank or list(keys.shape[keys.ndim - rank :]) != list(self.key_shape.as_list()):
            raise InvalidArgumentError(f"Expected key shape {self.key_shape} got {_shape(keys)}")
        return [self._name(k) for k in rows_of(keys, rank, self.key)]

    def _check_allowed(self, names: list[Any]) -> None:
        for name, label in zip(self._forbidden, self._names, strict=False):
            if name in names:
                raise InvalidArgumentError(f"Using the {label} as a table key is not allowed")

    def check_types(self, key: DType, value: DType | None = None) -> None:
        """Raises InvalidArgumentError when an op's types are not the table's."""
        if key is not self.key or (value is not None and value is not self.value):
            raise InvalidArgumentError(
                f"Conflicting key/value dtypes {key}->{value or self.value} with {self.key}->{self.value}"
            )

    # -- reading -----------------------------------------------------------------------------------------

    def _check_ready(self) -> None:
        if not self.initialized:
            raise FailedPreconditionError("Table not initialized.")

    @property
    def size(self) -> int:
        return len(self._items)

    def find(self, keys: Array, default: Array) -> Array:
        """The values of the keys; `default` (one value, or one for each key) where there is none."""
        with self.lock:
            self._check_ready()
            listed = self._keys(keys)
            self._check_allowed(listed)
            rank = self.key_shape.rank or 0
            lead = keys.shape[: keys.ndim - rank]
            shape = (*lead, *self.value_shape.as_list())
            one = default.shape == tuple(self.value_shape.as_list())
            if not one and (self.fixed or default.shape != shape):
                raise InvalidArgumentError(
                    f"Expected shape {self.value_shape} or {list(shape)} for default value, got {_shape(default)}"
                )
            items = self._items
            if one and not self.value_shape.rank:
                missing = default.item()
                found = [items.get(k, missing) for k in listed]
                return self._array(found, shape)
            inner = len(self.value_shape.as_list())
            defaults = [default] * len(listed) if one else rows_of(default, inner, self.value)
            return self._array([items.get(k, d) for k, d in zip(listed, defaults, strict=True)], shape)

    def _array(self, values: list[Any], shape: tuple[int, ...]) -> Array:
        if self.value.kind == "s" or self.value.kind in "rv":
            if self.value_shape.rank:
                return np.array(values, object).reshape(shape)
            out = np.empty(len(values), object)
            out[:] = values
            return out.reshape(shape)
        return np.array(values, self.value.numpy).reshape(shape)

    def export(self) -> tuple[Array, Array]:
        """All keys and values."""
        with self.lock:
            self._check_ready()
            count = len(self._items)
            values = self._array(list(self._items.values()), (count, *self.value_shape.as_list()))
            names = list(self._items)
            if self.key.kind == "s":
                keys: Array = np.empty(count, object)
                keys[:] = names
            elif self.key_shape.rank:
                flat = np.frombuffer(b"".join(names), self.key.numpy)
                keys = flat.reshape(count, *self.key_shape.as_list()).copy()
            else:
                keys = np.array(names, self.key.numpy)
            return keys, values

    # -- changing ----------------------------------------------------------------------------------------

    def _pairs(self, keys: Array, values: Array) -> list[tuple[Any, Any]]:
        rank = self.key_shape.rank or 0
        wanted = (*keys.shape[: keys.ndim - rank], *self.value_shape.as_list())
        if values.shape != wanted:
            raise InvalidArgumentError(f"Expected shape {list(wanted)} for value, got {_shape(values)}")
        listed = self._keys(keys)
        return list(zip(listed, rows_of(values, self.value_shape.rank or 0, self.value), strict=True))

    def insert(self, keys: Array, values: Array) -> None:
        if self.fixed:
            raise UnimplementedError("Insert is not supported by initializable tables")
        with self.lock:
            pairs = self._pairs(keys, values)
            self._check_allowed([name for name, _ in pairs])
            self._items.update(pairs)

    def remove(self, keys: Array) -> None:
        if self.fixed:
            raise UnimplementedError("Remove is not supported by initializable tables")
        with self.lock:
            names = self._keys(keys)
            self._check_allowed(names)
            for name in names:
                self._items.pop(name, None)

    def replace(self, keys: Array, values: Array) -> None:
        """Import: the old contents go. A table that is initialised once is initialised by it.

        TensorFlow exports (and saves) a dense table's empty and deleted buckets with it; they are left out.
        """
        pairs = self._pairs(keys, values)
        if self.fixed:
            self.initialize(pairs)
            return
        with self.lock:
            self._items = {name: value for name, value in pairs if name not in self._forbidden}

    def initialize(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Fill a table once.

        Doing it again changes nothing. TensorFlow takes contents of the same size for the same contents.

        Raises:
            FailedPreconditionError: a key has two values, or the table has contents of another size already.
        """
        items: dict[Any, Any] = {}
        given = list(pairs)
        if self.fixed and self.initialized and len(given) == self.size:
            return
        for key, value in given:
            known = items.setdefault(key, value)
            if known != value:
                raise FailedPreconditionError(
                    f"HashTable has different value for same key. Key {_text(key)} has {_text(known)} and trying "
                    f"to add value {_text(value)}"
                )
        with self.lock:
            if not self.fixed:
                self._items.update(items)
            elif not self.initialized:
                self._items, self.initialized = items, True
            elif len(items) != len(self._items):
                raise FailedPreconditionError("Table was already initialized with different data.")


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def pairs_from_file(
    files: Files,
    path: str,
    table: LookupTable,
    key_index: int,
    value_index: int,
    delimiter: str,
    size: int,
    offset: int,
) -> list[tuple[Any, Any]]:
    """Keys and values from the lines of a text file.

    Args:
        key_index, value_index: a column, or WHOLE_LINE or LINE_NUMBER.
        size: how many lines are used; -1 for all.
        offset: added to line numbers.

    Raises:
        OpError: the file cannot be read, NOT_FOUND where there is none.
        RefusedError: the node may not read it.
        InvalidArgumentError: a column is missing or is not of the type, or the file has too few lines.
    """
    try:
        text = files.read(path)
    except OSError as error:
        raise os_status(error)(f"{path}; {error.strerror}") from None
    lines = text.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    if size >= 0:
        if len(lines) < size:
            raise InvalidArgumentError(f"Invalid vocab_size in {path}: expected {size} but got {len(lines)}")
        lines = lines[:size]
    cut = delimiter.encode()
    columns = max(key_index, value_index) + 1

    def pick(number: int, line: bytes, parts: list[bytes], index: int, dtype: DType) -> Any:
        if index == LINE_NUMBER:
            return number + offset
        return _converted(line if index == WHOLE_LINE else parts[index], dtype, path, number)

    out: list[tuple[Any, Any]] = []
    for number, line in enumerate(lines):
        parts = line.split(cut) if columns else []
        if len(parts) < columns:
            raise InvalidArgumentError(
                f"Invalid number of columns in {path} line {number} ({_text(line)}) : expected at least {columns} got "
                f"{len(parts)}"
            )
        key = pick(number, line, parts, key_index, table.key)
        out.append((key, pick(number, line, parts, value_index, table.value)))
    return out


def _converted(text: bytes, dtype: DType, path: str, number: int) -> Any:
    if dtype.kind == "s":
        return text
    try:
        return int(text) if dtype.is_integer else float(text)
    except ValueError:
        raise InvalidArgumentError(f"Field {_text(text)} in line {number} is not a valid {dtype} in {path}.") from None
