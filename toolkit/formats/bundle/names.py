"""The names of the tensors in a file and nothing else: for completing them at a prompt, where it has to be quick."""

from __future__ import annotations

from pathlib import Path

from toolkit.formats.arrays.npy import SUFFIX, Archive
from toolkit.formats.bundle.locate import NPZ, open_tensors


def tensor_names(path: str | Path) -> list[str]:
    """The names of the tensors in a checkpoint, .npz or .safetensors file, in the file's order.

    Raises:
        GraphmillError, OSError, ValueError: there is no such file, or it is damaged.
    """
    if Path(path).suffix.lower() == NPZ:  # its reader needs numpy for the arrays' headers
        with Archive(str(path), str(path)) as archive:
            return [name.removesuffix(SUFFIX) for name in archive.members if name.endswith(SUFFIX)]
    with open_tensors(path) as reader:
        return list(reader)
