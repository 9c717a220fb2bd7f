"""`graphmill checkpoint import`: arrays into a checkpoint."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands.checkpoint.complete import complete_tensor
from commands.checkpoint.shared import NewPrefix, Prefix, plural, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command("import")
def import_(
    prefix: Prefix,
    output: NewPrefix,
    arrays: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=SRC ...",
            help="SRC: a .npy, FILE.npz:KEY, or a .npz or .safetensors of the same names.",
            autocompletion=complete_tensor,
        ),
    ],
    new: Annotated[bool, typer.Option("--new", help="Add names that the checkpoint lacks.")] = False,
    json: Json = False,
) -> None:
    """Copy a checkpoint with some tensors replaced by arrays of the same shape.

    graphmill checkpoint import model/ckpt-7 -o patched embedding=vectors.npy dense/kernel=w.npz:kernel
    """
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.surgery import arithmetic

    loaded: dict[str, Any] = {}
    for text in arrays:
        loaded |= _load(text)
    with open_tensors(prefix) as reader, writing():
        arithmetic.import_arrays(reader, output, loaded, new)
    if json:
        print_json({"prefix": prefix, "output": output, "imported": sorted(loaded)})
        return
    show(f"{plural(len(loaded), 'tensor')} imported: {output}")


def _load(text: str) -> dict[str, Any]:
    from toolkit.errors import UsageError
    from toolkit.formats.bundle import paths
    from toolkit.formats.bundle.locate import open_tensors

    name, sign, path = text.partition("=")
    if not sign:
        with open_tensors(text) as reader:
            return {key: reader.read(key) for key in reader}
    if path.lower().endswith(".npy"):
        return {name: _read_npy(path)}
    file, _, key = path.rpartition(":")
    if not file or not (paths.exists(file) or paths.exists(f"{file}.index")):
        raise UsageError(f"'{text}': expected NAME=FILE.npy, NAME=FILE.npz:KEY or NAME=CHECKPOINT:KEY")
    with open_tensors(file) as reader:
        return {name: reader.read(key)}


def _read_npy(path: str) -> Any:
    import numpy as np

    from toolkit.errors import FormatError
    from toolkit.formats.bundle import paths
    from toolkit.formats.bundle.storage import failure

    try:
        with paths.open_stream(path) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        raise failure(error, path, "reading it") from None
    except ValueError as error:
        raise FormatError(f"not a .npy file: {error}", file=path) from None
