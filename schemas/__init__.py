"""Protocol buffer schemas, wire-compatible with TensorFlow 2.21, and the op registry data."""

from __future__ import annotations

import lzma
import pkgutil


def unpacked(table: str) -> bytes:
    """The content of one of the packed tables beside this file: "ops.pb.xz" and so on."""
    packed = pkgutil.get_data(__name__, table)  # importlib.resources takes 4 ms to import
    assert packed is not None
    return lzma.decompress(packed)
