"""Checkpoints: TensorFlow's TensorBundle (V2) and V1 formats, object-based checkpoints, the state file.

    reader = BundleReader("model/ckpt-7")          # the index only
    kernel = reader.read("dense/kernel")           # a view of the memory-mapped file
    with BundleWriter("model/ckpt-8") as writer:
        writer.add("dense/kernel", kernel)

The names below load their modules on first use.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.formats.bundle.access import merge, restore, save
    from toolkit.formats.bundle.entry import Entry
    from toolkit.formats.bundle.reader import BundleReader
    from toolkit.formats.bundle.slices import TensorSlice
    from toolkit.formats.bundle.source import TensorSource
    from toolkit.formats.bundle.state import CheckpointState, latest_checkpoint, read_state, write_state
    from toolkit.formats.bundle.writer import BundleWriter

_HOMES = {
    "BundleReader": "reader",
    "BundleWriter": "writer",
    "CheckpointState": "state",
    "Entry": "entry",
    "TensorSlice": "slices",
    "TensorSource": "source",
    "latest_checkpoint": "state",
    "merge": "access",
    "read_state": "state",
    "restore": "access",
    "save": "access",
    "write_state": "state",
}

__all__ = [
    "BundleReader", "BundleWriter", "CheckpointState", "Entry", "TensorSlice", "TensorSource", "latest_checkpoint",
    "merge", "open_checkpoint", "read_state", "restore", "save", "write_state",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'toolkit.formats.bundle' has no attribute '{name}'")
    return getattr(importlib.import_module(f"toolkit.formats.bundle.{home}"), name)


def open_checkpoint(prefix: str | Path) -> TensorSource:
    """Open a checkpoint of any format by its exact prefix.

    Raises:
        NotFoundError: there is none.
        DataLossError, FormatError: it is damaged or not supported.
    """
    from toolkit.formats.bundle import paths
    from toolkit.formats.bundle.entry import index_path
    from toolkit.formats.bundle.state import is_pattern, is_v1, matching

    name = str(prefix)
    if (is_pattern(name) and matching(name)) or (not paths.exists(index_path(name)) and paths.is_file(name)):
        if not is_v1(name):
            from toolkit.errors import FormatError

            raise FormatError(_other_than_checkpoint(name), file=name)
        from toolkit.formats.bundle.v1 import V1Reader

        return V1Reader(name)
    from toolkit.formats.bundle.reader import BundleReader

    return BundleReader(name)


def _other_than_checkpoint(name: str) -> str:
    """What to say of a file that is given where a checkpoint is expected."""
    from toolkit.errors import GraphmillError
    from toolkit.formats.bundle import paths
    from toolkit.formats.inspection.detect import MESSAGES, sniff

    with paths.open_file(name) as file:
        head = file.read_at(0, min(file.size, 4096))
        tail = file.read_at(max(0, file.size - 8), min(file.size, 8))
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return (
            "an HDF5 file (Keras weights), which is not read; in Python, "
            "tf.train.Checkpoint(model=model).write(PREFIX) makes a checkpoint of a model"
        )
    message = "neither a checkpoint's prefix nor a checkpoint of the V1 format"
    try:
        found = sniff(head, file.size, tail, name)
    except GraphmillError as error:
        return f"{message}: {error.message}"
    what = found.looks_like or (f"a {MESSAGES[found.kind.model].DESCRIPTOR.name}" if found.kind.model else "")
    return f"{message}: it looks like {what}" if what else message
