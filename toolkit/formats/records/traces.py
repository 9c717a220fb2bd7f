"""What tells the trace of a run from other files: RunMetadata, StepStats, or trace-event JSON, also gzipped."""

from __future__ import annotations

import re
import zlib

GZIP = b"\x1f\x8b"


def is_trace(head: bytes) -> bool:
    """Whether a file is a trace, by its first bytes (some thousands are enough)."""
    if head.startswith(GZIP):
        try:
            head = zlib.decompressobj(31).decompress(head, 4096)
        except zlib.error:
            return False
    text = head.lstrip()
    if text[:1] == b"[":
        return re.match(rb'\[\s*\{[^{}]*"ph"', text) is not None
    if text[:1] == b"{":
        return b'"traceEvents"' in text
    return _first_string(head).startswith(b"/")


def _first_string(data: bytes) -> bytes:
    """What a RunMetadata or StepStats begins with: field 1 in field 1 (in field 1), the name of a device.

    A GraphDef has a node's name one level higher up, so that the next level is no field 1.
    """
    for _ in range(4):
        if data[:1] == b"/":
            return data
        if data[:1] != b"\n":
            break
        skip = 1
        while skip < len(data) and data[skip] & 0x80:
            skip += 1
        data = data[skip + 1 :]
    return b""
