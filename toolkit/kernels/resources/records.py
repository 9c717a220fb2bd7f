"""Records of files: lines, fixed lengths, TFRecords, each with what its reader calls it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from toolkit.errors import DataLossError, FormatError, InvalidArgumentError
from toolkit.formats import inflate
from toolkit.formats.records import tfrecord
from toolkit.kernels.cpu.files.file_io import file_error
from toolkit.policy.access import Files

#: the record's name inside its file, and its bytes
Record = tuple[int, bytes]
_FORMS = {"GZIP": inflate.GZIP, "ZLIB": inflate.ZLIB}

_TFRECORD_OVERHEAD = 16  # length, and CRCs of length and data


def read_bytes(files: Files, path: str, compression: str = "") -> bytes:
    """A whole file that the node may read, decompressed.

    Raises:
        OpError: the file cannot be read, or its compressed data is damaged.
    """
    try:
        data = files.read(path)
        return inflate.inflate(data, _FORMS[compression]) if compression else data
    except OSError as error:
        raise file_error(error, path) from None
    except FormatError as error:
        raise DataLossError(f"{path}: {error.message}") from None


def check_compression(compression: str) -> None:
    """Raise InvalidArgumentError unless it is "", GZIP or ZLIB."""
    if compression not in ("", "GZIP", "ZLIB"):
        raise InvalidArgumentError(f"Unsupported compression_type '{compression}'; '', 'ZLIB' and 'GZIP' are supported")


def text_lines(files: Files, path: str, skip: int = 0, compression: str = "") -> Iterator[Record]:
    """The lines of a file without their ends, numbered from 1; carriage returns are dropped wherever they are."""
    check_compression(compression)
    try:
        raw = files.open(path)
    except OSError as error:
        raise file_error(error, path) from None
    with raw:
        stream = inflate.open_inflated(raw, _FORMS[compression]) if compression else raw
        try:
            for number, line in enumerate(stream, 1):
                if number > skip:
                    yield number, line.removesuffix(b"\n").replace(b"\r", b"")
        except (zlib.error, EOFError) as error:
            raise DataLossError(f"{path}: the compressed data are damaged: {error}") from None
        except OSError as error:  # a folder opens, but does not read, on some systems
            raise file_error(error, path) from None


def fixed_records(
    files: Files, path: str, record: int, header: int = 0, footer: int = 0, hop: int = 0, compression: str = ""
) -> Iterator[Record]:
    """Records of one length, numbered from 0.

    Args:
        record, header, footer: sizes in bytes; a remainder too short for a record is left out.
        hop: from the start of one record to the start of the next; 0: they are adjacent.
    """
    check_compression(compression)
    data = read_bytes(files, path, compression)
    end = len(data) - footer
    for number, start in enumerate(range(header, end - record + 1, hop or record)):
        yield number, data[start : start + record]


def tf_records(files: Files, path: str, compression: str = "") -> Iterator[Record]:
    """The records of a TFRecord file, named by their offset."""
    check_compression(compression)
    offset = 0
    try:
        for data in tfrecord.records_of(files.open(path), path, compression):
            yield offset, data
            offset += len(data) + _TFRECORD_OVERHEAD
    except OSError as error:
        raise file_error(error, path) from None
