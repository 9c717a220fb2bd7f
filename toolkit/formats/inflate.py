"""Decompressing gzip and zlib a piece at a time, with a bound to what comes out."""

from __future__ import annotations

import io
import zlib
from typing import BinaryIO, cast

from toolkit.errors import FormatError
from toolkit.formats import bounds

GZIP, ZLIB = 31, 15
_CHUNK = 1 << 18


class Inflated(io.RawIOBase):
    """A compressed file, decompressed as it is read; it may consist of several gzip members.

    Args:
        form: GZIP or ZLIB.

    Raises:
        zlib.error: on reading, the data are damaged.
        EOFError: on reading, the file ends early.
    """

    def __init__(self, raw: BinaryIO, form: int):
        self._raw = raw
        self._form = form
        self._inflater = zlib.decompressobj(form)
        self._pending = b""
        self._between = False  # a member has ended, and nothing of another has been read
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        while len(view):
            if self._inflater.eof:
                if self._form == ZLIB:
                    return 0
                self._pending = self._inflater.unused_data
                self._inflater, self._between = zlib.decompressobj(self._form), True
            if not self._pending:
                self._pending = self._raw.read(_CHUNK)
                if not self._pending and self._between:
                    return 0
                if not self._pending:
                    self._ended = True
            if self._between:
                self._pending = self._pending.lstrip(b"\0")  # members may be padded
                if not self._pending:
                    continue
                self._between = False
            piece = self._inflater.decompress(self._pending, len(view))
            self._pending = self._inflater.unconsumed_tail
            if piece:
                view[: len(piece)] = piece
                return len(piece)
            if self._ended and not self._inflater.eof:
                raise EOFError("they end early")
        return 0


def open_inflated(raw: BinaryIO, form: int) -> BinaryIO:
    """A stream of the decompressed bytes of an open file; see `Inflated`."""
    return cast(BinaryIO, io.BufferedReader(Inflated(raw, form), _CHUNK))


def inflate(data: bytes, form: int, most: int | None = None) -> bytes:
    """Decompressed data.

    Args:
        form: GZIP or ZLIB.
        most: bytes that may come out; by default what `bounds.inflated` allows.

    Raises:
        FormatError: the data are damaged, end early, or become too large.
    """
    limit = bounds.inflated(len(data)) if most is None else most
    pieces: list[bytes] = []
    size = 0
    try:
        with Inflated(io.BytesIO(data), form) as stream:
            while piece := stream.read(_CHUNK):
                size += len(piece)
                if size > limit:
                    raise FormatError(
                        f"its {len(data):,} compressed bytes become more than {limit:,}; if they should, decompress "
                        "them first"
                    )
                pieces.append(piece)
    except (zlib.error, EOFError) as error:
        raise FormatError(f"the compressed data are damaged: {error}") from None
    return b"".join(pieces)
