"""Checkpoints: TensorFlow's TensorBundle (V2) and V1 formats, object-based checkpoints, the state file.

reader = BundleReader("model/ckpt-7")          # the index only
kernel = reader.read("dense/kernel")           # a view of the memory-mapped file
with BundleWriter("model/ckpt-8") as writer:
    writer.add("dense/kernel", kernel)
"""

from __future__ import annotations

from pathlib import Path

from toolkit.formats.bundle.access import merge, restore, save
from toolkit.formats.bundle.entry import Entry
from toolkit.formats.bundle.reader import BundleReader
from toolkit.formats.bundle.slices import TensorSlice
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.state import CheckpointState, latest_checkpoint, read_state, write_state
from toolkit.formats.bundle.writer import BundleWriter

__all__ = [
    "BundleReader", "BundleWriter", "CheckpointState", "Entry", "TensorSlice", "TensorSource", "latest_checkpoint",
    "merge", "open_checkpoint", "read_state", "restore", "save", "write_state",
]  # fmt: skip


def open_checkpoint(prefix: str | Path) -> TensorSource:
    """Open a checkpoint of any format by its exact prefix.

    Raises:
        NotFoundError: there is none.
        DataLossError, FormatError: it is damaged or not supported.
    """
    name = str(prefix)
    if not Path(f"{name}.index").exists() and Path(name).is_file():
        from toolkit.errors import FormatError
        from toolkit.formats.bundle.v1 import V1Reader, is_v1

        if not is_v1(name):
            raise FormatError("neither a checkpoint's prefix nor a checkpoint of the V1 format", file=name)
        return V1Reader(name)
    return BundleReader(name)
