"""The script of a character, and fingerprints of rows."""

from __future__ import annotations

import functools

from schemas import unpacked
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.encodings.hashing import fingerprint64, hash_all
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array


@functools.cache
def _scripts() -> tuple[Array, Array]:
    """Where each run of characters of one script starts, in order, and the script's number."""
    text = unpacked("unicode_scripts.txt.xz").decode()
    rows = np.array([line.split() for line in text.splitlines()], np.int64)
    return rows[:, 0], rows[:, 1].astype(np.int32)


@simple("UnicodeScript")
def unicode_script(characters: Array) -> Array:
    """Numbers as ICU's UScriptCode has them; -1 for what is no character."""
    starts, scripts = _scripts()
    return scripts[np.maximum(np.searchsorted(starts, characters, side="right") - 1, 0)]


@simple("Fingerprint")
def fingerprint(data: Array, method: Array) -> Array:
    """uint8 [rows, 8]: farmhash64 of each row's bytes; of a row of strings, of their fingerprints."""
    require(np.ndim(method) == 0, f"`method` should be a scalar string: {shape_text(method)}")
    name = np.asarray(method, object).item()
    require(name == b"farmhash64", f"Unsupported fingerprint method: {name!r}")
    require(data.ndim > 0, f"`data` should have at least one dimension: {shape_text(data)}")
    rows = len(data)
    flat = data.reshape(rows, -1) if data.size else np.zeros((rows, 0), np.uint8)
    if flat.dtype == object:
        hashes = hash_all(flat.ravel().tolist(), fingerprint64)
        if flat.shape[1] == 1:
            return hashes.view(np.uint8).reshape(rows, 8)
        flat = hashes.reshape(rows, -1)
    return hash_all([row.tobytes() for row in flat], fingerprint64).view(np.uint8).reshape(rows, 8)
