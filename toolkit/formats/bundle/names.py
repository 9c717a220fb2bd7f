"""The names of the tensors in a file and nothing else: for completing them at a prompt, where it has to be quick."""

from __future__ import annotations

import zipfile
from pathlib import Path

from toolkit.formats.bundle.locate import NPZ, open_tensors

_ARRAY = ".npy"


def tensor_names(path: str | Path) -> list[str]:
    """The names of the tensors in a checkpoint, .npz or .safetensors file, in the file's order.

    Raises:
        GraphmillError, OSError, ValueError: there is no such file, or it is damaged.
    """
    if Path(path).suffix.lower() == NPZ:  # its reader needs numpy for the arrays' headers
        try:
            with zipfile.ZipFile(path) as archive:
                return [name.removesuffix(_ARRAY) for name in archive.namelist() if name.endswith(_ARRAY)]
        except zipfile.BadZipFile as error:
            raise ValueError(str(error)) from None
    with open_tensors(path) as reader:
        return list(reader)
