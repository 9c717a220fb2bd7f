"""From what people type to the checkpoint they mean."""

from __future__ import annotations

import re
from pathlib import Path

from toolkit.errors import NotFoundError, UsageError, did_you_mean
from toolkit.formats.bundle import paths
from toolkit.formats.bundle.source import TensorSource
from toolkit.formats.bundle.state import DEFAULT_NAME, exists, is_pattern, is_v1, read_state

_DATA_FILE = re.compile(r"(.+)\.data-\d{5}-of-\d{5}")
NPZ, SAFETENSORS = ".npz", ".safetensors"
#: names that no V1 checkpoint has, so that a folder is listed without opening all its files
_NO_V1 = re.compile(r"^\.|^checkpoint$|\.data-\d{5}-of-\d{5}|\.tempstate|tfevents")
#: suffixes of files that people take for something to write tensors to, or that a checkpoint's own files have
_OTHERS = {
    ".h5", ".hdf5", ".keras", ".pt", ".pth", ".bin", ".index", ".meta", ".onnx", ".pb", ".pbtxt", ".tflite",
    ".json", ".yaml", ".yml", ".txt", ".csv", ".npy", ".zip", ".tar", ".gz", ".tgz", ".pkl", ".pickle", ".msgpack",
    ".gguf", ".ggml", ".parquet", ".tfrecord", ".mat", ".joblib", ".orbax", ".zarr",
}  # fmt: skip
_SUFFIXES = _OTHERS | {NPZ, SAFETENSORS}
_V1_PATTERN = re.compile(r"-\?{5}-of-\d{5}$")
_V1_SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})")


def is_arrays(path: str | Path) -> bool:
    """Whether a name is that of an .npz or .safetensors file, and no checkpoint's."""
    return Path(path).suffix.lower() in (NPZ, SAFETENSORS)


def open_tensors(path: str | Path) -> TensorSource:
    """Open anything with named tensors: a checkpoint (see `find_prefix`), an .npz archive or a .safetensors file.

    Raises:
        NotFoundError: there is no such file.
        GraphmillError: it is damaged.
    """
    name = str(path)
    suffix = Path(name).suffix.lower()
    if suffix == NPZ:
        from toolkit.formats.bundle.npz import NpzReader

        return NpzReader(name)
    if suffix == SAFETENSORS:
        from toolkit.formats.bundle.safetensors import SafetensorsReader

        return SafetensorsReader(name)
    from toolkit.formats.bundle import open_checkpoint

    return open_checkpoint(find_prefix(name))


def check_target(path: str | Path) -> str:
    """What kind of file a name to write stands for, by its suffix: ".npz", ".safetensors", or "" for a checkpoint.

    Raises:
        UsageError: it is a folder, one of a checkpoint's files, or has the suffix of a format that is not written.
    """
    name = _not_empty(path)
    suffix = Path(name).suffix.lower()
    if name.endswith("/") or paths.is_folder(name):
        raise UsageError(f"is a folder; give the checkpoint a name in it, e.g. '{name.rstrip('/')}/model'", file=name)
    if suffix in (NPZ, SAFETENSORS):
        return suffix
    if suffix in _OTHERS or _DATA_FILE.fullmatch(name):
        hint = f"; its prefix is '{name.removesuffix('.index')}'" if suffix == ".index" else ""
        raise UsageError(
            f"cannot write '{suffix}' files: a name ending in .npz or .safetensors is such a file, and any other name "
            f"without a format's suffix a checkpoint's prefix{hint}",
            file=name,
        )
    return ""


def find_prefix(text: str | Path) -> str:
    """The prefix of a checkpoint, given the prefix, one of its files, a folder, or a folder's state file.

    A folder stands for its latest checkpoint as its state file says; without one, for the only checkpoint in it; a
    SavedModel's folder stands for its variables.

    Raises:
        NotFoundError: there is no checkpoint.
        UsageError: there are several and nothing says which, the state file names one outside of the folder, or the
            name is empty.
    """
    name = _not_empty(text)
    if paths.is_folder(name) and not paths.exists(f"{name}.index"):
        return _in_folder(name)
    folder, last = paths.split(name)
    if name.endswith("/"):
        require_folder(name)
    if last == DEFAULT_NAME and paths.is_file(name) and not is_v1(name):
        return _in_folder(folder)  # its state file
    match = _DATA_FILE.fullmatch(name)
    bare = match[1] if match else name
    for suffix in (".index", ".meta"):
        bare = bare.removesuffix(suffix)
    if bare != name and (match or name.endswith(".index") or exists(bare)):
        return bare
    return name if exists(name) else _v1_shards(name) or name  # opening it says what is missing


def _not_empty(path: str | Path) -> str:
    """A name; an empty one is what a script's failed command left, and not the working directory."""
    if not str(path):
        raise UsageError("the name of the checkpoint is empty")
    return str(path)


def _v1_shards(prefix: str) -> str | None:
    """The pattern of a V1 checkpoint in several files, by the name that its Saver was given."""
    folder, last = paths.split(prefix)
    found = [name for name in in_folder(folder) if is_pattern(name) and _V1_PATTERN.sub("", name) == last]
    return paths.join(folder, found[0]) if len(found) == 1 else None


def _in_folder(folder: str) -> str:
    state = read_state(folder)
    if state is not None:
        is_here = paths.is_inside(folder, state.latest)
        if is_here and exists(state.latest):
            return state.latest
        # The state file was copied from elsewhere with absolute paths: look for the name beside it.
        name = paths.split(state.latest)[1]
        if exists(paths.join(folder, name)):
            return paths.join(folder, name)
        if not is_here and exists(state.latest):
            raise UsageError(
                f"the state file names '{state.latest}', which is outside of the folder; name that checkpoint itself "
                "if it is meant",
                file=paths.join(folder, "checkpoint"),
            )
        raise NotFoundError(
            f"the state file names '{state.latest}' as the latest checkpoint, which does not exist"
            f"{did_you_mean(name, in_folder(folder))}; `graphmill checkpoint relocate` rewrites it",
            file=paths.join(folder, "checkpoint"),
        )
    variables = paths.join(folder, "variables/variables")
    if exists(variables):
        return variables
    names = in_folder(folder)
    if len(names) == 1:
        return paths.join(folder, names[0])
    if names:
        raise UsageError(
            f"the folder has {len(names)} checkpoints ({', '.join(names[:5])}) and no state file; name one", file=folder
        )
    raise NotFoundError("there is no checkpoint in the folder", file=folder)


def require_folder(folder: str) -> None:
    """Raise NotFoundError where there is no such folder, with names that are close."""
    if paths.is_folder(folder):
        return
    if paths.exists(folder):
        raise UsageError("is a file, not a folder", file=folder)
    above, name = paths.split(folder.rstrip("/"))
    raise NotFoundError(f"there is no such folder{did_you_mean(name, paths.names_in(above))}", file=folder)


def in_folder(folder: str | Path) -> list[str]:
    """The names of the checkpoints in a folder, V2 and V1, by name; numbers in them count as numbers.

    A V1 checkpoint in several files is called as Savers call it: "model-7-?????-of-00003".
    """
    names: set[str] = set()
    for name in paths.names_in(str(folder)):
        if name.endswith(".index"):
            names.add(name.removesuffix(".index"))
        elif (
            not _NO_V1.search(name)
            and Path(name).suffix.lower() not in _SUFFIXES
            and is_v1(paths.join(str(folder), name))
        ):
            names.add(_V1_SHARD.sub(r"\1-?????-of-\2", name))
    return sorted(names, key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", name)]
