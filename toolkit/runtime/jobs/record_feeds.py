"""Feeding from TFRecord files: one feature of every tf.train.Example as one array.

| text after `--feed NAME=` | what is fed |
|---|---|
| `data.tfrecord:image` | the feature `image` of every record |
| `data.tfrecord` | the records themselves, as strings |
| `train-*.tfrecord:image` | the same of all files that match, in the order of their names |

Files may be compressed with gzip. Type and shape of the values are those of the tensor that is fed: its first
dimension counts the examples, the others are the shape of one. A feature of bytes for a tensor of numbers holds their
raw little-endian bytes (tf.io.decode_raw).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas import example_pb2
from toolkit.errors import FormatError, GraphmillError, UsageError, did_you_mean
from toolkit.formats.records import tfrecord
from toolkit.graph.dtypes import DType
from toolkit.graph.node import Output
from toolkit.kernels.types import Array
from toolkit.runtime.sessions.feeds import placeholder_shape

_SUFFIX = r"\.(?:tfrecords?|tfr)(?:-\d+-of-\d+)?(?:\.gz)?"
_FILE = re.compile(
    rf"(?P<path>.*?(?:{_SUFFIX}|\.(?:tfrecords?|tfr)[^:/]*\*[^:/]*))(?::(?P<feature>.+))?", re.IGNORECASE
)
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordFeed:
    """A feature of the examples in some files; the records themselves where `feature` is None."""

    files: tuple[str, ...]
    feature: str | None


def record_feed(text: str) -> RecordFeed | None:
    """What a text on the command line names, or None when it does not name a TFRecord file.

    Raises:
        UsageError: it does, but there is no such file.
    """
    found = _FILE.fullmatch(text)
    if found is None:
        return None
    path, feature = found["path"], found["feature"]
    if Path(path).is_file():
        return RecordFeed((path,), feature)
    if Path(path).is_dir():
        raise UsageError("is a folder; name the files in it, such as '*.tfrecord'", file=path)
    matching = tuple(sorted(glob.glob(path)))  # noqa: PTH207 -- the pattern may be absolute
    if not matching:
        raise UsageError("there is no such file", file=path)
    return RecordFeed(matching, feature)


def load_record_feeds(feeds: Mapping[Output, Any]) -> dict[Output, Any]:
    """The feeds with arrays in place of `RecordFeed`s; each file is read once, whatever number of features.

    Raises:
        GraphmillError: a file cannot be read or is damaged, a record is no Example, lacks the feature, or holds
            values that do not fit the tensor; the record's number, from 0, is named.
    """
    wanted: dict[tuple[str, ...], list[tuple[Output, RecordFeed]]] = {}
    for output, value in feeds.items():
        if isinstance(value, RecordFeed):
            wanted.setdefault(value.files, []).append((output, value))
    loaded = dict(feeds)
    for files, group in wanted.items():
        columns = [_Column(output, feed.feature) for output, feed in group]
        for file in files:
            _read(file, columns)
        for column in columns:
            loaded[column.output] = column.array(files)
    return loaded


def _read(file: str, columns: list[_Column]) -> None:
    raw = tfrecord.open_records(file)
    compression = tfrecord.GZIP if raw.read(2) == _GZIP_MAGIC else tfrecord.NONE
    raw.seek(0)
    needs_examples = any(column.feature is not None for column in columns)
    number = -1
    for number, record in enumerate(tfrecord.records_of(raw, file, compression)):
        features: Mapping[str, Any] = {}
        if needs_examples:
            features = _features(record, file, number)
        for column in columns:
            try:
                column.add(record, features)
            except GraphmillError as error:
                error.message = f"record {number}: {error.message}"
                raise error.at(file=file) from None
    if number < 0:
        raise FormatError("holds no records", file=file)


def _features(record: bytes, file: str, number: int) -> Mapping[str, Any]:
    try:
        return example_pb2.Example.FromString(record).features.feature
    except Exception:  # protobuf's DecodeError, in each of its implementations
        raise FormatError(
            f"record {number} is no tf.train.Example; without :FEATURE records are fed whole", file=file
        ) from None


class _Column:
    """The values of one feature, example by example."""

    def __init__(self, output: Output, feature: str | None):
        self.output = output
        self.feature = feature
        self._dtype: DType = output.dtype.base
        shape = placeholder_shape(output)
        self._one = shape.dims[1:] if shape.dims else None  # the shape of one example; None: nobody says
        if shape.dims is not None and not shape.dims:
            raise UsageError(f"'{output.name}' is a scalar; it cannot hold one value for each record")
        self._rows: list[Any] = []

    def add(self, record: bytes, features: Mapping[str, Any]) -> None:
        if self.feature is None:
            if self._dtype.kind != "s":
                raise UsageError(
                    f"'{self.output.name}' is {self._dtype}, and a record is a string; choose one of its features "
                    "with FILE:FEATURE"
                )
            self._rows.append(record)
            return
        if self.feature not in features:
            known = sorted(features)
            listed = ", ".join(known[:12]) or "nothing"
            raise UsageError(
                f"there is no feature '{self.feature}'" + did_you_mean(self.feature, known, then=f"it holds: {listed}")
            )
        feature = features[self.feature]
        kind = feature.WhichOneof("kind")
        if kind is None:
            raise UsageError(f"the feature '{self.feature}' holds no values")
        self._rows.append(self._shaped(self._values(kind, getattr(feature, kind).value)))

    def _values(self, kind: str, values: Any) -> Array:
        if kind == "bytes_list":
            if self._dtype.kind == "s":
                out = np.empty(len(values), object)
                out[:] = list(values)
                return out
            return self._raw(list(values))
        if self._dtype.kind == "s":
            raise UsageError(f"the feature '{self.feature}' holds numbers, and '{self.output.name}' is strings")
        given = np.array(values, np.float32 if kind == "float_list" else np.int64)
        if kind == "float_list" and not (self._dtype.is_floating or self._dtype.is_complex):
            raise UsageError(f"the feature '{self.feature}' holds floats, and '{self.output.name}' is {self._dtype}")
        with np.errstate(all="ignore"):  # what does not fit a narrower float becomes infinite
            found = given.astype(self._dtype.numpy)
        if kind == "int64_list" and self._dtype.is_integer and not np.array_equal(found, given):
            raise UsageError(f"the feature '{self.feature}' holds values that {self._dtype} cannot hold")
        return found

    def _raw(self, values: list[bytes]) -> Array:
        data = b"".join(values)
        dtype = np.dtype(self._dtype.numpy)
        if len(values) != 1 or len(data) % dtype.itemsize:
            raise UsageError(
                f"the feature '{self.feature}' holds {len(values)} string(s) of {len(data)} bytes, and "
                f"'{self.output.name}' is {self._dtype}; raw values are one string of a multiple of {dtype.itemsize}"
            )
        return np.frombuffer(data, dtype.newbyteorder("<") if dtype.isbuiltin else dtype).astype(dtype)

    def _shaped(self, values: Array) -> Array:
        if self._one is None:
            return values if len(values) != 1 or (self._rows and np.ndim(self._rows[0])) else values[0]
        known = [d for d in self._one if d is not None]
        size = int(np.prod(known))
        unknown = len(self._one) - len(known)
        fits = len(values) == size if not unknown else unknown == 1 and size and len(values) % size == 0
        if not fits:
            wanted = "x".join("?" if d is None else str(d) for d in self._one) or "one value"
            more = "" if unknown < 2 else "; the shape of an example cannot be told from the number of its values"
            raise UsageError(
                f"the feature '{self.feature}' has {len(values)} value(s), and an example of '{self.output.name}' is "
                f"{wanted}{more}"
            )
        return values.reshape([-1 if d is None else d for d in self._one])

    def array(self, files: tuple[str, ...]) -> Array:
        where = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        if self.feature is None or (self._rows and self._dtype.kind == "s" and not np.ndim(self._rows[0])):
            out = np.empty(len(self._rows), object)
            out[:] = [row.item() if isinstance(row, np.ndarray) else row for row in self._rows]
            return out
        shapes = [np.shape(row) for row in self._rows]
        odd = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is not None:
            raise UsageError(
                f"the feature '{self.feature}' has {list(shapes[0])} values in record 0 and "
                f"{list(shapes[odd])} in record {odd}; examples of one tensor must be alike",
                file=where,
            )
        return np.stack(self._rows)
