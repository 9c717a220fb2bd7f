"""Files of records in Riegeli's format: what TensorFlow keeps messages of more than 2 GB in.

A file is a sequence of chunks, each with a hashed header and hashed data. A hashed header interrupts it every 64 KiB. A
record has a position: where its chunk begins, plus its number in there.

Read are simple chunks, as they are or compressed where a package for that is installed; written are simple chunks of
one record each, not compressed.

Specification: https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md
"""

from __future__ import annotations

import bisect
import importlib
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

from toolkit.errors import FormatError
from toolkit.formats import bounds
from toolkit.formats.models import protoscan
from toolkit.formats.records.highway import Key, hash64, hashes

#: how every file begins, behind the first block header's hash
SIGNATURE = bytes.fromhex("83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a9")
_KEY: Key = (0x2F696C6567656952, 0x0A7364726F636572, 0x2F696C6567656952, 0x0A7364726F636572)
_BLOCK, _BLOCK_HEADER, _HEADER = 1 << 16, 24, 40
_USABLE = _BLOCK - _BLOCK_HEADER
_FILE, _SIMPLE, _TRANSPOSED = ord("s"), ord("r"), ord("t")
_WITHOUT_RECORDS = {_FILE: "a signature", ord("m"): "metadata", ord("p"): "padding"}
#: bytes of chunks that wait to be hashed together
_TOGETHER = 1 << 26
#: compression to packages that undo it, with the function
_COMPRESSIONS = {
    ord("b"): ("Brotli", (("brotli", "decompress"), ("brotlicffi", "decompress"))),
    ord("z"): ("Zstandard", (("compression.zstd", "decompress"), ("zstandard", "decompress"))),
    ord("s"): ("Snappy", ()),
}


def _with_headers(position: int, size: int) -> int:
    """Where `size` bytes end that begin at a position, block headers included."""
    crossed = (size + (position + _USABLE - 1) % _BLOCK) // _USABLE
    return position + size + crossed * _BLOCK_HEADER


def _chunk_end(begin: int, data_size: int, records: int) -> int:
    least = begin + records
    in_block = _BLOCK - 1 - (least + _BLOCK - 1) % _BLOCK
    return max(_with_headers(begin, _HEADER + data_size), least + max(0, in_block - (_USABLE - 1)))


class RecordReader:
    """The records of a file by position.

    Args:
        read_at: the bytes at (offset, size) of the file; fewer at its end.
        size: of the file.
        name: for errors.

    Raises:
        FormatError: the file is not in this format, or a chunk is damaged or of a kind that is not read.
    """

    def __init__(self, read_at: Callable[[int, int], bytes], size: int, name: str):
        self._read_at = read_at
        self._size = size
        self._name = name
        self._begins: list[int] = []
        self._headers: list[tuple[int, int, int, int, int]] = []  # data size, data hash, kind, records, decoded size
        self._records: tuple[int, list[memoryview]] | None = None  # the chunk decoded last
        self._index()

    def record(self, position: int) -> memoryview:
        """The record at a position.

        Raises:
            FormatError: there is none, or its chunk is damaged.
        """
        at = bisect.bisect_right(self._begins, position) - 1
        if at < 0:
            raise self._error(f"there is no record at {position:,}")
        if self._records is None or self._records[0] != at:
            self._records = None  # one chunk in memory at a time
            self._records = at, self._decode(at)
        records = self._records[1]
        number = position - self._begins[at]
        if not 0 <= number < len(records):
            raise self._error(f"there is no record at {position:,}")
        return records[number]

    def last(self) -> memoryview:
        """The last record.

        Raises:
            FormatError: there is none, or its chunk is damaged.
        """
        if not self._begins:
            raise self._error("there is no record in it")
        return self.record(self._begins[-1] + self._headers[-1][3] - 1)

    def _index(self) -> None:
        begin = 0
        if self._read_at(0, len(SIGNATURE)) != SIGNATURE:
            raise self._error("it does not begin as a file of records in Riegeli's format does")
        while begin < self._size:
            header = self._bytes(begin, _HEADER)
            expected, data_size, data_hash, word, decoded = struct.unpack("<5Q", header)
            if hash64(header[8:], _KEY) != expected:
                raise self._error(f"the header of the chunk at byte {begin:,} is damaged")
            kind, records = word & 0xFF, word >> 8
            end = _chunk_end(begin, data_size, records)
            if end > self._size or records > data_size:
                raise self._error(f"the chunk at byte {begin:,} is not all there")
            if kind not in _WITHOUT_RECORDS and records:
                self._begins.append(begin)
                self._headers.append((data_size, data_hash, kind, records, decoded))
            begin = end

    def _bytes(self, position: int, size: int) -> memoryview:
        """Bytes of a chunk from a position on, without block headers."""
        end = _with_headers(position, size)
        raw = self._read_at(position, end - position)
        if len(raw) < end - position:
            raise self._error(f"it ends within the chunk at byte {position:,}")
        view = memoryview(raw)
        first = -position % _BLOCK
        if first >= len(raw):
            return view
        pieces = [view[:first]]
        for start in range(first, len(raw), _BLOCK):
            pieces.append(view[start + _BLOCK_HEADER : start + _BLOCK])
        return memoryview(b"".join(pieces))

    def _decode(self, at: int) -> list[memoryview]:
        begin = self._begins[at]
        data_size, data_hash, kind, count, decoded = self._headers[at]
        data = self._bytes(begin, _HEADER + data_size)[_HEADER:]
        where = f"the chunk at byte {begin:,}"
        if hash64(data, _KEY) != data_hash:
            raise self._error(f"{where} is damaged: its hash is another")
        if kind != _SIMPLE:
            what = "transposed, which is not read" if kind == _TRANSPOSED else "of a kind that is not known"
            raise self._error(f"{where} is {what}; write the model again without that option")
        try:
            compression = data[0]
            length, start = protoscan.varint(data, 1, len(data), len(data))  # type: ignore[arg-type]
            sizes = self._inflated(compression, data[start : start + length], 10 * count, where)
            values = self._inflated(compression, data[start + length :], decoded, where, exact=True)
            ends: list[int] = []
            place = total = 0
            for _ in range(count):
                size, place = protoscan.varint(sizes, place, len(sizes), len(sizes))  # type: ignore[arg-type]
                total += size
                ends.append(total)
        except (IndexError, protoscan.WireError):
            raise self._error(f"{where} does not say how long its records are") from None
        if total != len(values):
            raise self._error(f"{where} has {len(values):,} bytes, and records of {total:,}")
        return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    def _inflated(
        self, compression: int, data: memoryview, most: int, where: str, *, exact: bool = False
    ) -> memoryview:
        if compression == 0:
            return data
        if compression not in _COMPRESSIONS:
            raise self._error(f"{where} is compressed in a way that is not known ({compression})")
        name, packages = _COMPRESSIONS[compression]
        size, start = protoscan.varint(data, 0, len(data), len(data))  # type: ignore[arg-type]
        if size > bounds.inflated(len(data)) or size > most or (exact and size != most):
            raise self._error(f"{where} says that it is {size:,} bytes, packed in {len(data):,}")
        for module, function in packages:
            try:
                undo: Any = getattr(importlib.import_module(module), function)
            except ImportError:
                continue
            try:
                found = undo(bytes(data[start:]))
            except Exception as error:
                raise self._error(f"{where} cannot be decompressed: {error}") from None
            if len(found) != size:
                raise self._error(f"{where} is {len(found):,} bytes, and says {size:,}")
            return memoryview(found)
        wanted = f", for which the Python package '{packages[0][0]}' has to be installed" if packages else ""
        raise self._error(f"{where} is compressed with {name}{wanted}; or write the model again, uncompressed")

    def _error(self, what: str) -> FormatError:
        return FormatError(what, file=self._name)


class RecordWriter:
    """Writes records, each a chunk of its own.

    Args:
        file: an empty binary file.
    """

    def __init__(self, file: BinaryIO):
        self._file = file
        self._end = 0  # of all chunks that were added
        self._waiting: list[tuple[int, bytes]] = []  # where a chunk begins, and its data
        self._amount = 0
        self._write_chunk(0, b"", _FILE, hash64(b"", _KEY), 0)
        self._end = _chunk_end(0, 0, 0)

    def add(self, record: Any) -> int:
        """Add a record (bytes or a memoryview); returns its position."""
        begin = self._end
        size = len(record)
        sizes = protoscan.varint_bytes(size)
        data = b"".join((b"\0", protoscan.varint_bytes(len(sizes)), sizes, record))
        self._end = _chunk_end(begin, len(data), 1)
        self._waiting.append((begin, data))
        self._amount += len(data)
        if self._amount >= _TOGETHER:
            self.flush()
        return begin

    def flush(self) -> None:
        """Write what waits."""
        waiting, self._waiting, self._amount = self._waiting, [], 0
        for (begin, data), hashed in zip(waiting, hashes([data for _, data in waiting], _KEY), strict=True):
            self._write_chunk(begin, data, _SIMPLE, hashed, 1)

    def _write_chunk(self, begin: int, data: bytes, kind: int, hashed: int, records: int) -> None:
        decoded = _decoded_size(data) if records else 0
        rest = struct.pack("<4Q", len(data), hashed, kind | records << 8, decoded)
        header = struct.pack("<Q", hash64(rest, _KEY)) + rest
        end = _chunk_end(begin, len(data), records)
        starts = range(begin + -begin % _BLOCK, end, _BLOCK)
        bodies = [struct.pack("<2Q", start - begin, end - start) for start in starts]
        marks = [
            struct.pack("<Q", h) + body for h, body in zip(hashes(bodies, _KEY) if bodies else [], bodies, strict=True)
        ]
        self._write_blocks(begin, [memoryview(header), memoryview(data)], marks)
        written = _with_headers(begin, len(header) + len(data))
        self._file.write(bytes(end - written))

    def _write_blocks(self, position: int, parts: list[memoryview], marks: list[bytes]) -> None:
        """Write bytes with the headers of the blocks that they reach into."""
        number = 0
        for part in parts:
            place = 0
            while place < len(part):
                if position % _BLOCK == 0:
                    self._file.write(marks[number])
                    number += 1
                    position += _BLOCK_HEADER
                size = min(len(part) - place, _BLOCK - position % _BLOCK)
                self._file.write(part[place : place + size])
                place += size
                position += size


def _decoded_size(data: bytes) -> int:
    """The size of the only record of a chunk."""
    length, start = protoscan.varint(data, 1, len(data), len(data))
    return len(data) - start - length
