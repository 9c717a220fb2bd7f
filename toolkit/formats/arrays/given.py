"""Arrays given on the command line.

What `read_array` takes:

| text | array |
|---|---|
| FILE.npy | that array |
| FILE.npz:KEY | one array of the archive; without :KEY the only one |
| FILE.json, FILE.json:KEY | nested lists, or one of the lists in an object |
| FILE.csv | [rows, columns]; whole numbers int64, others float64, else strings; a header line is skipped |
| `[[1,2]]`, `3.5`, `true`, `"text"`, `nan` | a literal, in JSON or Python spelling |
| - | standard input: what a .npy file holds, or such a literal |

Pickles are never loaded.
"""

from __future__ import annotations

import ast
import base64
import csv
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import numpy as np

from toolkit.errors import STDIN_NAME, FormatError, UsageError, did_you_mean
from toolkit.formats import io
from toolkit.formats.arrays import npy
from toolkit.formats.settings.documents import load_json

#: a numpy array of any type
Array = Any

_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_KEYED = (".npz", ".json")
#: how people write what JSON calls NaN and Infinity
_BARE = re.compile(r"([+-]?)\b(nan|inf|infinity)\b", re.IGNORECASE)
#: dimensions that every numpy's arrays can have
_DEEP = 32


# -- reading ---------------------------------------------------------------------------------------------


def read_array(src: str) -> Array:
    """The array that a text on the command line stands for; see the module's table.

    Strings come as object arrays of `bytes`.

    Raises:
        UsageError: it is neither a file nor a literal, or the file has no such key.
        GraphmillError: the file cannot be read or is damaged.
    """
    if src == io.STDIO:
        return _read_stdin()
    path, key = split_key(src)
    suffix = Path(path).suffix.lower()
    reader = _READERS.get(suffix)
    if reader is not None and (suffix in _KEYED or key is None):
        return reader(path, key)
    found, value = _literal(src)
    if found:
        return from_nested(value, src)
    # where Path raises: what is longer than names may be is none
    if path and os.path.isdir(path):  # noqa: PTH112
        raise UsageError("is a folder; name an array file in it (.npy, FILE.npz:KEY, .json, .csv)", file=path)
    if os.path.isfile(src):  # noqa: PTH113
        if io.read_bytes(src)[:6] == npy.MAGIC:
            return _read_npy(src, None)
        raise FormatError("not an array file; expected .npy, .npz, .json or .csv", file=src)
    raise UsageError(
        f"'{_shown(src)}' is neither an array file (.npy, FILE.npz:KEY, .json, .csv) nor a literal such as "
        '[[1,2]], 3.5, true or "text"; a string keeps its quotes when the shell sees others: \'"text"\''
    )


def _shown(text: str) -> str:
    """A literal as far as people read it."""
    return text if len(text) <= 60 else text[:57] + "..."


def _read_stdin() -> Array:
    data = io.read_bytes(io.STDIO)
    if data[:6] == npy.MAGIC:
        return _values(npy.read_array(BytesIO(data), len(data), STDIN_NAME), STDIN_NAME)
    try:
        found, value = _literal(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        found, value = False, None
    if not found:
        raise FormatError("expected what a .npy file holds, or numbers such as [[1, 2]]", file=STDIN_NAME)
    return from_nested(value, STDIN_NAME)


def split_key(src: str) -> tuple[str, str | None]:
    """`FILE.npz:KEY` as file and key; the key is None when there is none. Keys may hold colons ("y:0")."""
    for suffix in _KEYED:
        at = src.lower().find(suffix + ":")
        if at >= 0:
            end = at + len(suffix)
            return src[:end], src[end + 1 :]
    return src, None


def is_literal(text: str) -> bool:
    """Whether a text on the command line is a value itself, not the name of one."""
    return _literal(text)[0]


def _literal(text: str) -> tuple[bool, Any]:
    for spelling in (text, text if "'" in text or '"' in text else _BARE.sub(_in_json, text)):
        try:
            return True, json.loads(spelling)
        except (ValueError, RecursionError):
            pass
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False, None
    return isinstance(value, int | float | complex | str | bytes | list | tuple), value


def _in_json(found: re.Match[str]) -> str:
    sign = "-" if found[1] == "-" else ""
    return "NaN" if found[2].lower() == "nan" else f"{sign}Infinity"


def _depth(value: Any) -> int:
    depth = 0
    while isinstance(value, list | tuple) and value:
        value = cast("Sequence[Any]", value)[0]
        depth += 1
    return depth


def from_nested(value: Any, where: str = "") -> Array:
    """Nested lists of numbers, booleans or strings as an array; "NaN" among numbers is one.

    Raises:
        UsageError: the lists are ragged or mix numbers with strings.
    """
    shown = _shown(where)
    if isinstance(value, dict) and set(cast("dict[str, Any]", value)) != {"base64"}:
        raise UsageError("expected a number, a string or nested lists of them, not an object", file=shown or None)
    try:
        array: Array = np.array(value)
    except (ValueError, OverflowError):
        if (depth := _depth(value)) > _DEEP:
            raise UsageError(f"the lists are nested {depth} levels deep; no array is", file=shown or None) from None
        raise UsageError("the lists are ragged: every row needs the same length", file=shown or None) from None
    if array.dtype.kind not in "OSUf":
        return array
    leaves = list(_leaves(value))
    if array.dtype.kind == "f":
        # numpy makes floats of whole numbers of which some need int64 and others uint64
        whole = leaves and all(isinstance(leaf, int) and not isinstance(leaf, bool) for leaf in leaves)
        if not whole:
            return array
        if min(leaves) < 0:
            raise UsageError("whole numbers below 0 and above 2**63 fit into no one type", file=shown or None)
        return np.array(leaves, np.uint64).reshape(array.shape)
    texts: list[Any] = [leaf for leaf in leaves if isinstance(leaf, str | bytes | dict)]
    if leaves and all(isinstance(leaf, int) for leaf in leaves):
        raise UsageError("a whole number does not fit into 64 bits", file=shown or None)
    if texts and all(isinstance(leaf, str) and leaf in _SPECIAL for leaf in texts):
        numbers = [_SPECIAL[leaf] if isinstance(leaf, str) else leaf for leaf in leaves]
        return np.array(numbers, np.float64).reshape(array.shape)
    if len(texts) != len(leaves):
        raise UsageError("the values mix strings, numbers or null", file=shown or None)
    out = np.empty(len(leaves), object)
    out[:] = [_string_bytes(leaf, shown) for leaf in leaves]
    return out.reshape(_shape(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            yield from _leaves(item)
    else:
        yield value


def _shape(value: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        shape.append(len(items))
        if not items:
            break
        value = items[0]
    return tuple(shape)


def _string_bytes(leaf: Any, where: str) -> bytes:
    if isinstance(leaf, bytes):
        return leaf
    if isinstance(leaf, str):
        return leaf.encode()
    try:
        return base64.b64decode(leaf["base64"], validate=True)
    except (KeyError, TypeError, ValueError):
        raise UsageError('expected a string or {"base64": "..."}', file=where or None) from None


def _read_npy(path: str, key: str | None) -> Array:
    with io.open_input(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe, which has no size
                data = io.read_stream(file, path)
                return _values(npy.read_array(BytesIO(data), len(data), path), path)
            return _values(npy.read_array(file, size, path), path)
        except OSError as error:
            raise FormatError(f"cannot be read: {error.strerror}", file=path) from None


def _values(array: Array, where: str) -> Array:
    if array.dtype.kind == "V":
        raise FormatError(
            f"holds elements of numpy type '{array.dtype}', which says nothing about their values "
            "(numpy saves bfloat16 so); save it as float32",
            file=where,
        )
    return as_strings(array, where)


def as_strings(array: Array, where: str = "") -> Array:
    if array.dtype.kind == "S":
        return array.astype(object)
    if array.dtype.kind == "U":
        out: Array = np.empty(array.size, object)
        try:
            out[:] = [text.encode() for text in array.reshape(-1).tolist()]
        except (UnicodeEncodeError, SystemError, ValueError):  # numbers that are no characters
            raise FormatError("holds strings that are not Unicode", file=where or None) from None
        return out.reshape(array.shape)
    return array


def _read_npz(path: str, key: str | None) -> Array:
    with _archive(path) as archive:
        keys = _keys(archive)
        if key is None:
            if len(keys) != 1:
                raise UsageError(f"holds {len(keys)} arrays; choose one with {path}:KEY: {listed(keys)}", file=path)
            key = next(iter(keys))
        return _member(archive, keys, key, path)


def npz_keys(path: str) -> list[str]:
    """The keys of a .npz archive; its arrays are not read.

    Raises:
        GraphmillError: it cannot be read or is damaged.
    """
    with _archive(path) as archive:
        return list(_keys(archive))


def read_arrays(npz: str | Path) -> dict[str, Array]:
    """Every array of a .npz archive under its key.

    Raises:
        GraphmillError: it cannot be read or is damaged.
    """
    path = os.fspath(npz)
    with _archive(path) as archive:
        keys = _keys(archive)
        return {key: _member(archive, keys, key, path) for key in keys}


def _archive(path: str) -> npy.Archive:
    with io.open_input(path):  # the clear messages for what cannot be opened
        pass
    try:
        return npy.Archive(path, path)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror}", file=path) from None


def _keys(archive: npy.Archive) -> dict[str, str]:
    """Key to member: np.savez adds .npy to every key."""
    return {name.removesuffix(npy.SUFFIX): name for name in archive.members}


def _member(archive: npy.Archive, keys: dict[str, str], key: str, path: str) -> Array:
    if key not in keys:
        raise UsageError(f"has no array '{key}'" + did_you_mean(key, keys, then=f"it holds: {listed(keys)}"), file=path)
    where = f"{path}:{key}"
    return _values(archive.array(keys[key], where), where)


def listed(keys: Mapping[str, Any], limit: int = 12) -> str:
    names = [f"'{key}'" for key in keys]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more if names else "nothing"


def _read_json(path: str, key: str | None) -> Array:
    value: Any = load_json(io.read_bytes(path), path)
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        if key is None:
            if len(table) != 1:
                raise UsageError(f"is an object; choose one with {path}:KEY: {listed(table)}", file=path)
            key = next(iter(table))
        if key not in table:
            raise UsageError(
                f"has no key '{key}'" + did_you_mean(key, table, then=f"it holds: {listed(table)}"), file=path
            )
        return from_nested(table[key], f"{path}:{key}")
    if key is not None:
        raise UsageError(f"is no object, so it has no key '{key}'", file=path)
    return from_nested(value, path)


def _read_csv(path: str, key: str | None) -> Array:
    try:
        text = io.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("text that is not UTF-8", file=path) from None
    lines = csv.reader(text.splitlines(), skipinitialspace=True)
    try:
        numbered = [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except csv.Error as error:
        raise FormatError(f"not CSV: {error}", file=f"{path}:{lines.line_num}") from None
    if not numbered:
        raise FormatError("holds no rows", file=path)
    width = len(numbered[0][1])
    for number, row in numbered:
        if len(row) != width:
            raise FormatError(f"a row of {len(row)} value(s) after rows of {width}", file=f"{path}:{number}")
    rows = [row for _, row in numbered]
    body = numbered[1:] if len(rows) > 1 and not any(map(_is_number, rows[0])) else numbered
    odd = next(((line, cell) for line, row in body for cell in row if not _is_number(cell)), None)
    if odd is None:
        rows = [row for _, row in body]  # without the header, where there is one
    for kind in ("int64", "float64"):
        try:
            cells: Array = np.array(rows)
            return cells.astype(kind)
        except (ValueError, OverflowError):
            pass
    texts: Any = from_nested(rows, path).view(Texts)
    if odd is not None:
        texts.odd = f"{path}:{odd[0]}: {odd[1]!r} is not a number" if odd[1] else f"{path}:{odd[0]}: a cell is empty"
    return texts


class Texts(np.ndarray[Any, Any]):
    """Strings from a file that could have held numbers; `odd` says where it does not."""

    odd: str = ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_READERS: dict[str, Callable[[str, str | None], Array]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".json": _read_json,
    ".csv": _read_csv,
}
#: of the files that arrays come from
SUFFIXES = frozenset(_READERS)


# -- writing ---------------------------------------------------------------------------------------------
