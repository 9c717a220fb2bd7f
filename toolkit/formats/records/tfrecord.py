"""TFRecord files: records of bytes, each with its length and masked CRC-32Cs.

    length      8 bytes, little-endian
    CRC         4 bytes, of the length
    data
    CRC         4 bytes, of the data

The whole file may be compressed with zlib or gzip (tensorflow/core/lib/io/record_writer.h).
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Self, cast

from toolkit.errors import DataLossError, GraphmillError, InvalidArgumentError, NotFoundError
from toolkit.formats import bounds, inflate
from toolkit.formats.io import open_regular
from toolkit.formats.records import crc

NONE, ZLIB, GZIP = "", "ZLIB", "GZIP"
_LENGTH_SIZE = 8
_CRC_SIZE = 4
_HEADER_SIZE = _LENGTH_SIZE + _CRC_SIZE
_CHUNK = 1 << 18
_FORMS = {ZLIB: inflate.ZLIB, GZIP: inflate.GZIP}


def encode(data: bytes) -> bytes:
    """One record as it is stored."""
    length = len(data).to_bytes(_LENGTH_SIZE, "little")
    sums = (crc.masked(length).to_bytes(_CRC_SIZE, "little"), crc.masked(data).to_bytes(_CRC_SIZE, "little"))
    return b"".join((length, sums[0], data, sums[1]))


class TFRecordWriter:
    """Writes records to a file.

    Args:
        path: the file; it is replaced. Or one that is open.
        compression: NONE, ZLIB or GZIP.

    Raises:
        InvalidArgumentError: there is no such compression.
        GraphmillError: the file cannot be created.
    """

    def __init__(self, path: str | Path | BinaryIO, compression: str = NONE):
        check_compression(compression)
        try:
            self._raw = Path(path).open("wb") if isinstance(path, str | Path) else path  # noqa: SIM115 -- close() does
        except OSError as error:
            raise GraphmillError(f"cannot be written: {error.strerror}", file=str(path)) from None
        self._zlib = zlib.compressobj() if compression == ZLIB else None
        self._gzip = gzip.GzipFile(fileobj=self._raw, mode="wb", mtime=0) if compression == GZIP else None

    def write(self, data: bytes) -> None:
        """Append a record."""
        record = encode(data)
        if self._gzip is not None:
            self._gzip.write(record)
        else:
            self._raw.write(record if self._zlib is None else self._zlib.compress(record))

    def flush(self) -> None:
        """Hand everything to the operating system, so that readers see it."""
        if self._gzip is not None:
            self._gzip.flush()
        elif self._zlib is not None:
            self._raw.write(self._zlib.flush(zlib.Z_SYNC_FLUSH))
        self._raw.flush()

    def close(self) -> None:
        if self._raw.closed:
            return
        if self._gzip is not None:
            self._gzip.close()
        elif self._zlib is not None:
            self._raw.write(self._zlib.flush())
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def write_records(path: str | Path, records: Iterable[bytes], compression: str = NONE) -> int:
    """Write a file of records; returns how many.

    Raises:
        GraphmillError: see `TFRecordWriter`.
    """
    count = 0
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
            count += 1
    return count


def read_records(path: str | Path, compression: str = NONE, tolerate_tail: bool = False) -> Iterator[bytes]:
    """The records of a file; see `records_of`.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: there is no such compression.
        DataLossError: a record is damaged or truncated; its position (after decompression) is named.
    """
    check_compression(compression)
    yield from records_of(open_records(path), str(path), compression, tolerate_tail)


def open_records(path: str | Path) -> BinaryIO:
    """Open a file of records for `records_of`.

    Raises:
        NotFoundError: there is no such file.
        GraphmillError: it cannot be opened, or is no regular file.
    """
    try:
        return cast(BinaryIO, os.fdopen(open_regular(path), "rb"))
    except FileNotFoundError:
        raise NotFoundError("there is no such file", file=str(path)) from None
    except OSError as error:
        raise GraphmillError(f"cannot be read: {error.strerror}", file=str(path)) from None


def records_of(raw: BinaryIO, name: str, compression: str = NONE, tolerate_tail: bool = False) -> Iterator[bytes]:
    """The records of an open file, in order, their CRCs checked; it is closed at the end.

    Args:
        name: of the file, for errors.
        compression: NONE, ZLIB or GZIP.
        tolerate_tail: a record that the file ends within is left out without an error: somebody is writing it.

    Raises:
        InvalidArgumentError: there is no such compression.
        DataLossError: a record is damaged or truncated; its position (after decompression) is named.
    """
    check_compression(compression)
    with raw:
        stream = inflate.open_inflated(raw, _FORMS[compression]) if compression else raw
        most = bounds.inflated(os.fstat(raw.fileno()).st_size) if compression else None
        offset = number = 0
        while True:
            try:
                record = _read_record(stream, offset, most)
            except _TruncatedError as error:
                if tolerate_tail:
                    return
                raise DataLossError(f"record {number} at offset {offset} is truncated: {error}", file=name) from None
            except (zlib.error, EOFError) as error:
                if tolerate_tail and isinstance(error, EOFError):
                    return
                raise DataLossError(
                    f"the compressed data is damaged after record {number}: {error}", file=name
                ) from None
            except DataLossError as error:
                error.message = f"record {number} {error.message}"
                raise error.at(file=name) from None
            if record is None:
                return
            yield record
            offset += _HEADER_SIZE + len(record) + _CRC_SIZE
            number += 1


def check_compression(compression: str) -> None:
    """Raise InvalidArgumentError unless it is NONE, ZLIB or GZIP."""
    if compression not in (NONE, ZLIB, GZIP):
        raise InvalidArgumentError(f"'{compression}' is not a compression of records; '', 'ZLIB' and 'GZIP' are")


class _TruncatedError(Exception):
    """The file ends within a record."""


def _read_record(stream: BinaryIO, offset: int, most: int | None) -> bytes | None:
    """The next record; it may have `most` bytes where it was compressed."""
    header = stream.read(_HEADER_SIZE)
    if not header:
        return None
    if len(header) < _HEADER_SIZE:
        raise _TruncatedError("the file ends within its length")
    length, stored = header[:_LENGTH_SIZE], int.from_bytes(header[_LENGTH_SIZE:], "little")
    if crc.masked(length) != stored:
        raise DataLossError(f"at offset {offset} has a damaged length: not a TFRecord file, or compressed, or damaged")
    size = int.from_bytes(length, "little")
    if most is not None and size > most:
        raise DataLossError(
            f"at offset {offset} has {size:,} bytes; from a compressed file of this size come {most:,} at most: "
            "damaged, or to be decompressed first"
        )
    data = _read_exactly(stream, size + _CRC_SIZE)
    if len(data) < size + _CRC_SIZE:
        raise _TruncatedError(f"it has {size} bytes, the file {max(0, len(data) - _CRC_SIZE)} of them")
    body = data[:size]
    if crc.masked(body) != int.from_bytes(data[size:], "little"):
        raise DataLossError(f"at offset {offset} has a wrong CRC over its {size} bytes: damaged")
    return body


def _read_exactly(stream: BinaryIO, size: int) -> bytes:
    """Up to `size` bytes; a huge size asks for no more memory than the file has bytes."""
    if size <= _CHUNK:
        return stream.read(size)
    pieces: list[bytes] = []
    while size > 0:
        piece = stream.read(min(size, _CHUNK))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
