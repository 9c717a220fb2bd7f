"""Arrays written for the user.

.npz and .npy hold numpy's own types. bfloat16, float8 and float4 become float32, which holds them exactly, and int4 and
the like int8 or uint8; strings become fixed-width bytes. .json is an object of nested lists: NaN and the infinities are
"NaN", "Infinity", "-Infinity", a complex number is [real, imaginary], a string that is not UTF-8 is {"base64": "..."}.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit.errors import GraphmillError, UsageError
from toolkit.formats import io
from toolkit.formats.arrays import npy
from toolkit.formats.arrays.given import Array, as_strings, listed

#: every member of an archive gets the same date, so that the same arrays give the same bytes
_DATE = (1980, 1, 1, 0, 0, 0)


def write_arrays(dest: str | Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays under their names, atomically; the suffix decides how (see the module), "-" is JSON.

    Raises:
        UsageError: another suffix, or a .npy for other than one array.
        GraphmillError: values that the format cannot hold, or the file cannot be written.
    """
    name = os.fspath(dest)
    suffix = ".json" if name == io.STDIO else Path(name).suffix.lower()
    if suffix == ".json":
        io.write_output(name, to_json(arrays), binary=False)
    elif suffix == ".npz":
        plain = {key: storable(value, key) for key, value in arrays.items()}
        io.write_atomic(name, lambda file: _write_npz(file, plain))
    elif suffix == ".npy":
        if len(arrays) != 1:
            raise UsageError(
                f"a .npy file holds one array, not {len(arrays)} ({listed(arrays)}); use .npz or .json", file=name
            )
        ((key, value),) = arrays.items()
        array = storable(value, key)
        io.write_atomic(name, lambda file: np.lib.format.write_array(file, array, allow_pickle=False))
    else:
        raise UsageError("arrays are written to .npz, .npy or .json files", file=name)


def check_destination(dest: str | Path) -> None:
    """Refuse what `write_arrays` would, before anything is computed.

    Raises:
        GraphmillError: a suffix that says nothing, a folder, or a place where nothing can be written.
    """
    name = os.fspath(dest)
    if name == io.STDIO:
        return
    if Path(name).is_dir():
        raise UsageError("is a folder; arrays are written to .npz, .npy or .json files", file=name)
    if Path(name).suffix.lower() not in (".json", ".npz", ".npy"):
        raise UsageError("arrays are written to .npz, .npy or .json files", file=name)
    io.check_place(name)


def _write_npz(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for key, array in arrays.items():
            member = zipfile.ZipInfo(f"{key}.npy", _DATE)
            with archive.open(member, "w", force_zip64=True) as out:
                np.lib.format.write_array(out, array, allow_pickle=False)


def storable(value: Any, name: str = "") -> Array:
    """A value as an array that .npy can hold without pickling.

    Raises:
        GraphmillError: it is a resource or a variant, or a string that ends in NUL bytes.
    """
    array: Array = np.asarray(value)
    if array.dtype.kind == "U":
        array = as_strings(array)
    if array.dtype.kind == "O":
        items = list(array.reshape(-1))
        if not all(isinstance(item, bytes | str) for item in items):
            raise GraphmillError(f"'{name}' is a resource or variant, which has no array form")
        encoded = [item.encode() if isinstance(item, str) else item for item in items]
        if any(item.endswith(b"\0") for item in encoded):
            raise GraphmillError(f"'{name}' holds strings that end in NUL bytes, which numpy drops; write .json")
        width = max([1, *map(len, encoded)])
        return np.array(encoded, f"S{width}").reshape(array.shape)
    # the types of ml_dtypes, which numpy can save only as nameless bytes
    if array.dtype.num >= npy.USER_DEFINED:
        kind = array.dtype.name
        small = "uint8" if kind.startswith("uint") else "int8"
        with np.errstate(all="ignore"):  # NaNs of narrow types raise flags on their way
            return array.astype(small if kind.startswith(("int", "uint")) else "float32")
    return array


def to_json(arrays: Mapping[str, Any]) -> str:
    """The JSON object of arrays; one line per array.

    Raises:
        GraphmillError: an array is a resource or a variant.
    """
    lines = (f"  {json.dumps(key)}: {json.dumps(nested(value, key), allow_nan=False)}" for key, value in arrays.items())
    body = ",\n".join(lines)
    return "{\n" + body + "\n}\n" if body else "{}\n"


def nested(value: Any, name: str = "") -> Any:
    """An array as nested lists of what JSON has."""
    array: Array = np.asarray(value)
    if array.dtype.kind in "SU":
        array = as_strings(array)
    if array.dtype.kind == "O":
        flat = [_json_string(item, name) for item in array.reshape(-1)]
    elif array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).reshape(-1).view(f"f{array.dtype.itemsize // 2}").reshape(-1, 2)
        flat = [_finite(list(pair)) for pair in _numbers(parts)]
    else:
        flat = _finite(_numbers(storable(array, name).reshape(-1)))
    return _refold(flat, array.shape)


def _numbers(array: Array) -> list[Any]:
    """The elements as Python numbers; float32 with the digits it has, not those of its double."""
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        shortest = np.array([float(str(x)) for x in array.reshape(-1)], np.float64)
        return shortest.reshape(array.shape).tolist()
    return array.tolist()


def _finite(values: list[Any]) -> list[Any]:
    def spell(value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value

    return [spell(value) for value in values]


def _json_string(item: Any, name: str) -> Any:
    if isinstance(item, str):
        return item
    if not isinstance(item, bytes):
        raise GraphmillError(f"'{name}' is a resource or variant, which has no array form")
    try:
        return item.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(item).decode()}


def _refold(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    size = len(flat) // shape[0] if shape[0] else 0
    if len(shape) == 1:
        return flat
    return [_refold(flat[row * size : (row + 1) * size], shape[1:]) for row in range(shape[0])]
