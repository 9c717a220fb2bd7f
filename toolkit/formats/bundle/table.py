"""The sorted table in which checkpoints keep their index (LevelDB's SSTable, tensorflow/core/lib/io/table).

A file is data blocks, an (always empty) meta-index block, an index block and a footer. A block holds entries whose
keys share prefixes with the entry before, then the positions where they start afresh ("restarts"), their number,
and after the block a compression byte and a masked CRC-32C of both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from toolkit.errors import DataLossError, FormatError
from toolkit.formats import bounds
from toolkit.formats.bundle import snappy
from toolkit.formats.bundle.wire import get_varint, put_varint
from toolkit.formats.records import crc

MAGIC = 0xDB4775248B80FB57
FOOTER_SIZE = 48
_HANDLES_SIZE = 40
TRAILER_SIZE = 5
BLOCK_SIZE = 262144
RESTART_INTERVAL = 16
_NO_COMPRESSION, _SNAPPY = 0, 1

#: reads `size` bytes at `offset`; fewer come back at the end of the file
ReadAt = Callable[[int, int], bytes]
Handle = tuple[int, int]


class _BlockBuilder:
    """Collects the entries of one block."""

    def __init__(self, interval: int):
        self._interval = interval
        self.reset()

    def reset(self) -> None:
        self._buffer = bytearray()
        self._restarts = [0]
        self._since_restart = 0
        self._last = b""

    @property
    def is_empty(self) -> bool:
        return not self._buffer

    @property
    def size(self) -> int:
        return len(self._buffer) + 4 * len(self._restarts) + 4

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < self._interval:
            shared = _common_prefix(self._last, key)
        else:
            self._restarts.append(len(self._buffer))
            self._since_restart = 0
        out = self._buffer
        put_varint(out, shared)
        put_varint(out, len(key) - shared)
        put_varint(out, len(value))
        out += key[shared:]
        out += value
        self._last = key
        self._since_restart += 1

    def finish(self) -> bytes:
        for restart in (*self._restarts, len(self._restarts)):
            self._buffer += restart.to_bytes(4, "little")
        return bytes(self._buffer)


def _common_prefix(a: bytes, b: bytes) -> int:
    limit = min(len(a), len(b))
    if a[:limit] == b[:limit]:
        return limit
    low, high = 0, limit  # a[:low] is shared, a[:high] is not
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _separator(last: bytes, following: bytes) -> bytes:
    """A short key k with last <= k < following, for the index."""
    at = _common_prefix(last, following)
    if at < min(len(last), len(following)) and last[at] < 0xFF and last[at] + 1 < following[at]:
        return last[:at] + bytes((last[at] + 1,))
    return last


def _successor(last: bytes) -> bytes:
    """A short key that is not below `last`, for the end of the index."""
    for at, byte in enumerate(last):
        if byte != 0xFF:
            return last[:at] + bytes((byte + 1,))
    return last


class TableWriter:
    """Writes a table from entries in key order.

    Args:
        write: takes the bytes in order.
    """

    def __init__(self, write: Callable[[bytes], object]):
        self._write = write
        self._offset = 0
        self._data = _BlockBuilder(RESTART_INTERVAL)
        self._index = _BlockBuilder(1)
        self._last_key: bytes | None = None
        self._pending: Handle | None = None  # a finished block whose separator waits for the next key

    def add(self, key: bytes, value: bytes) -> None:
        """Append an entry.

        Raises:
            ValueError: the key does not come after the last one.
        """
        if self._last_key is not None:
            if key <= self._last_key:
                raise ValueError(f"table keys must grow: {key!r} after {self._last_key!r}")
            if self._pending is not None:
                self._index.add(_separator(self._last_key, key), _encode_handle(self._pending))
                self._pending = None
        self._data.add(key, value)
        self._last_key = key
        if self._data.size >= BLOCK_SIZE:
            self._flush()

    def finish(self) -> int:
        """Write what is left, the index and the footer; returns the size of the file."""
        self._flush()
        meta_index = self._put_block(_BlockBuilder(RESTART_INTERVAL).finish())
        if self._pending is not None and self._last_key is not None:
            self._index.add(_successor(self._last_key), _encode_handle(self._pending))
            self._pending = None
        self._put(encode_footer(meta_index, self._put_block(self._index.finish())))
        return self._offset

    def _flush(self) -> None:
        if not self._data.is_empty:
            self._pending = self._put_block(self._data.finish())
            self._data.reset()

    def _put_block(self, block: bytes) -> Handle:
        handle = (self._offset, len(block))
        trailer = bytes((_NO_COMPRESSION,))
        sum_ = crc.mask(crc.extend(crc.value(block), trailer))
        self._put(block + trailer + sum_.to_bytes(4, "little"))
        return handle

    def _put(self, data: bytes) -> None:
        self._write(data)
        self._offset += len(data)


def _encode_handle(handle: Handle) -> bytes:
    out = bytearray()
    for number in handle:
        put_varint(out, number)
    return bytes(out)


def encode_footer(meta_index: Handle, index: Handle) -> bytes:
    """The last 48 bytes of a table."""
    handles = _encode_handle(meta_index) + _encode_handle(index)
    return handles.ljust(_HANDLES_SIZE, b"\x00") + MAGIC.to_bytes(8, "little")


class TableReader:
    """Reads a table; every block's CRC is checked when it is read.

    Args:
        read_at: reads bytes of the file.
        size: bytes in the file.
        file: its name, for messages.

    Raises:
        FormatError: the file is no table.
        DataLossError: it is one, damaged.
    """

    def __init__(self, read_at: ReadAt, size: int, file: str):
        self._read_at = read_at
        self.size = size
        self._file = file
        if size < FOOTER_SIZE:
            raise DataLossError(f"the file has {size} bytes; a table has at least {FOOTER_SIZE}: truncated?", file=file)
        self.footer = self._read(size - FOOTER_SIZE, FOOTER_SIZE)
        if int.from_bytes(self.footer[_HANDLES_SIZE:], "little") != MAGIC:
            raise DataLossError("the file does not end as a table does: not an index, damaged or truncated", file=file)
        try:
            numbers: list[int] = []
            at = 0
            for _ in range(4):
                number, at = get_varint(self.footer[:_HANDLES_SIZE], at)
                numbers.append(number)
        except FormatError as error:
            raise DataLossError(f"the footer is damaged: {error.message}", file=file) from None
        self.meta_index: Handle = (numbers[0], numbers[1])
        self.index: Handle = (numbers[2], numbers[3])
        self.blocks: list[tuple[bytes, Handle]] = []  # (a key at or after the block's last one, where it is)
        for separator, value in self.block_entries(self.index):
            try:
                offset, at = get_varint(value, 0)
                length, _ = get_varint(value, at)
            except FormatError as error:
                raise DataLossError(f"the index block is damaged: {error.message}", file=file) from None
            self.blocks.append((separator, (offset, length)))
        self._check_disjoint()

    def _check_disjoint(self) -> None:
        """Refuse an index that leads to the same bytes several times: together, blocks are no larger than the file."""
        end = 0
        for offset, length in sorted(handle for _, handle in self.blocks):
            if offset < end:
                raise DataLossError(
                    f"the index has two blocks that share bytes, at offset {offset}: damaged", file=self._file
                )
            end = offset + length + TRAILER_SIZE

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        """All (key, value) in key order."""
        for _, handle in self.blocks:
            yield from self.block_entries(handle)

    def get(self, key: bytes) -> bytes | None:
        """The value at a key; reads one block."""
        at = bisect_left(self.blocks, key, key=lambda block: block[0])
        if at < len(self.blocks):
            for found, value in self.block_entries(self.blocks[at][1]):
                if found == key:
                    return value
        return None

    def block_entries(self, handle: Handle) -> list[tuple[bytes, bytes]]:
        """The (key, value) pairs of the block at a handle.

        Raises:
            DataLossError: it lies outside of the file, its CRC is wrong, or it is malformed.
        """
        block = self.read_block(handle)
        try:
            return _parse_block(block)
        except FormatError as error:
            raise DataLossError(
                f"the block at offset {handle[0]} is malformed: {error.message}", file=self._file
            ) from None

    def read_block(self, handle: Handle) -> bytes:
        """The checked, uncompressed contents of the block at a handle."""
        offset, size = handle
        if offset + size + TRAILER_SIZE > self.size - FOOTER_SIZE:
            raise DataLossError(
                f"a block at offset {offset} of {size} bytes reaches past the end: damaged or truncated",
                file=self._file,
            )
        stored = self._read(offset, size + TRAILER_SIZE)
        expected = int.from_bytes(stored[size + 1 :], "little")
        actual = crc.masked(stored[: size + 1])
        if actual != expected:
            raise DataLossError(
                f"the block at offset {offset} has CRC {actual:08x}, the file says {expected:08x}: damaged",
                file=self._file,
            )
        if stored[size] == _NO_COMPRESSION:
            return stored[:size]
        if stored[size] == _SNAPPY:
            try:
                return snappy.decompress(stored[:size])
            except FormatError as error:
                raise DataLossError(f"the block at offset {offset}: {error.message}", file=self._file) from None
        raise DataLossError(
            f"the block at offset {offset} is compressed in way {stored[size]}; 0 (not) and 1 (Snappy) are known",
            file=self._file,
        )

    def _read(self, offset: int, size: int) -> bytes:
        data = self._read_at(offset, size)
        if len(data) != size:
            raise DataLossError(
                f"the file ends {size - len(data)} bytes early: truncated while it was read", file=self._file
            )
        return data


def _parse_block(block: bytes) -> list[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise FormatError("it is shorter than its restart count")
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise FormatError("it is shorter than its restart positions")
    found: list[tuple[bytes, bytes]] = []
    key = b""
    at = 0
    left = bounds.KEY_RATIO * len(block)  # bytes that the keys may take, written out
    while at < end:
        # Nearly always all three lengths are below 128 and take a byte each.
        shared, unshared, size = block[at], block[at + 1], block[at + 2]
        if shared | unshared | size < 0x80:
            at += 3
        else:
            shared, at = get_varint(block, at)
            unshared, at = get_varint(block, at)
            size, at = get_varint(block, at)
        if shared > len(key) or at + unshared + size > end:
            raise FormatError("an entry reaches past its end")
        left -= shared
        if left < 0:
            raise FormatError(f"its keys share prefixes of more than {bounds.KEY_RATIO} times its size")
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        found.append((key, block[at : at + size]))
        at += size
    return found
