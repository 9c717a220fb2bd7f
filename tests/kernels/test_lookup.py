"""Lookup tables against TensorFlow, in small graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.graph_suite import check_graph

pytestmark = pytest.mark.tensorflow

Build = Callable[[Any], Any]
I64 = np.int64


def fixed(tf: Any, keys: Any, values: Any, **names: str) -> Any:
    """A HashTable and its initializer."""
    keys, values = tf.constant(keys), tf.constant(values)
    handle = tf.raw_ops.HashTableV2(key_dtype=keys.dtype, value_dtype=values.dtype, **names)
    return handle, tf.raw_ops.InitializeTableV2(table_handle=handle, keys=keys, values=values)


def find(tf: Any, handle: Any, keys: Any, default: Any, after: Any = ()) -> Any:
    with tf.control_dependencies([*after]):
        return tf.raw_ops.LookupTableFindV2(
            table_handle=handle, keys=tf.constant(keys), default_value=tf.constant(default)
        )


def after(tf: Any, done: Any, make: Callable[[], Any]) -> Any:
    with tf.control_dependencies([done]):
        return make()


def _fixed_all(tf: Any) -> Any:
    handle, init = fixed(tf, ["a", "b", "ü"], I64([1, 2, 3]))
    size = after(tf, init, lambda: tf.raw_ops.LookupTableSizeV2(table_handle=handle))
    keys, values = after(
        tf, init, lambda: tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=tf.string, Tvalues=tf.int64)
    )
    return [find(tf, handle, [["b", "x"], ["", "ü"]], I64(-1), [init]), size, tf.sort(values), tf.shape(keys)]


def _same_again(tf: Any) -> Any:
    handle, init = fixed(tf, I64([5, 6]), np.float32([0.5, 0.25]))
    with tf.control_dependencies([init]):
        again = tf.raw_ops.InitializeTableV2(table_handle=handle, keys=I64([5, 6]), values=np.float32([0.5, 0.25]))
    return find(tf, handle, I64([6, 7]), np.float32(9), [again])


def _same_size_again(tf: Any) -> Any:
    """Initialised by an import; other contents of the same size are taken for the same, and dropped."""
    handle = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.float32)
    first = tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=I64([5, 6]), values=np.float32([0.5, 0.25]))
    with tf.control_dependencies([first]):
        again = tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=I64([6, 7]), values=np.float32([3, 4]))
    return find(tf, handle, I64([5, 6, 7]), np.float32(9), [again])


def _other_again(tf: Any) -> Any:
    handle, init = fixed(tf, I64([5, 6]), np.float32([0.5, 0.25]))
    with tf.control_dependencies([init]):
        again = tf.raw_ops.InitializeTableV2(table_handle=handle, keys=I64([5]), values=np.float32([0.5]))
    return find(tf, handle, I64([6]), np.float32(9), [again])


def _mutable(tf: Any) -> Any:
    r = tf.raw_ops
    handle = r.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
    one = r.LookupTableInsertV2(table_handle=handle, keys=["a", "b", "a"], values=I64([1, 2, 3]))
    first = find(tf, handle, ["a", "c"], I64(-1), [one])
    per_key = find(tf, handle, ["a", "c"], I64([-7, -8]), [one])
    with tf.control_dependencies([first, per_key]):
        two = r.LookupTableRemoveV2(table_handle=handle, keys=["a", "zz"])
    with tf.control_dependencies([two]):
        second = find(tf, handle, ["a", "b"], I64(0))
    with tf.control_dependencies([second]):
        three = r.LookupTableImportV2(table_handle=handle, keys=["x"], values=I64([9]))
    with tf.control_dependencies([three]):
        keys, values = r.LookupTableExportV2(table_handle=handle, Tkeys=tf.string, Tvalues=tf.int64)
    return [first, per_key, second, keys, values]


def _of_tensors(tf: Any) -> Any:
    r = tf.raw_ops
    handle = r.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2])
    put = r.LookupTableInsertV2(table_handle=handle, keys=I64([1, 2]), values=np.float32([[1, 2], [3, 4]]))
    return find(tf, handle, I64([[2], [5]]), np.float32([0, -1]), [put])


def _of_shape(shape: Any, tf: Any) -> Any:
    r = tf.raw_ops
    return r.LookupTableSizeV2(
        table_handle=r.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=shape)
    )


def dense(tf: Any, empty: Any = -1, deleted: Any = -2, shape: Any = ()) -> Any:
    return tf.raw_ops.MutableDenseHashTableV2(
        empty_key=I64(empty), deleted_key=I64(deleted), value_dtype=tf.int64, value_shape=shape
    )


def _dense(tf: Any) -> Any:
    handle = dense(tf)
    put = tf.raw_ops.LookupTableInsertV2(table_handle=handle, keys=I64([1, 2]), values=I64([5, 6]))
    size = after(tf, put, lambda: tf.raw_ops.LookupTableSizeV2(table_handle=handle))
    return [find(tf, handle, I64([2, 3]), I64(-1), [put]), size]


def _dense_vectors(tf: Any) -> Any:
    handle = dense(tf, [-1, -1], [-2, -2])
    put = tf.raw_ops.LookupTableInsertV2(table_handle=handle, keys=I64([[1, 2], [3, 4]]), values=I64([5, 6]))
    return find(tf, handle, I64([[3, 4], [4, 3]]), I64(-1), [put])


def _insert(tf: Any, handle: Any, keys: Any, values: Any) -> Any:
    put = tf.raw_ops.LookupTableInsertV2(table_handle=handle, keys=tf.constant(keys), values=tf.constant(values))
    return after(tf, put, lambda: tf.constant(1))


GOOD: dict[str, Build] = {
    "fixed": _fixed_all,
    "numbers": lambda tf: find(tf, *_ready(fixed(tf, I64([5, 6]), ["five", "six"]), [6, 7], "none")),
    "same-again": _same_again,
    "same-size-again": _same_size_again,
    "mutable": _mutable,
    "of-tensors": _of_tensors,
    "dense": _dense,
    "dense-vectors": _dense_vectors,
    "empty": lambda tf: find(
        tf, tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64), I64([]), I64(0)
    ),
}  # fmt: skip
BAD: dict[str, tuple[str, Build]] = {
    "uninitialised": ("FAILED_PRECONDITION", lambda tf: find(tf, fixed(tf, ["a"], I64([1]))[0], ["a"], I64(0))),
    "other-again": ("FAILED_PRECONDITION", _other_again),
    "two-values": ("FAILED_PRECONDITION", lambda tf: find(
        tf, *_ready(fixed(tf, ["a", "a"], I64([1, 2])), ["a"], I64(0)))),
    "dense-empty-key": ("INVALID_ARGUMENT", lambda tf: _insert(tf, dense(tf), I64([-1]), I64([1]))),
    "dense-deleted-key": ("INVALID_ARGUMENT", lambda tf: _insert(tf, dense(tf), I64([-2]), I64([1]))),
    "dense-equal-keys": ("INVALID_ARGUMENT", lambda tf: _insert(tf, dense(tf, -1, -1), I64([1]), I64([1]))),
    "value-shape": ("INVALID_ARGUMENT", lambda tf: _insert(
        tf, tf.raw_ops.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2]),
        I64([1]), np.float32([1]))),
    **{f"value-shape-{shape}": ("INVALID_ARGUMENT", partial(_of_shape, shape)) for shape in ((), (2, 2), None)},
}  # fmt: skip


def _ready(made: Any, keys: Any, default: Any) -> tuple[Any, ...]:
    handle, init = made
    return handle, np.asarray(keys), default, [init]


@pytest.mark.parametrize("name", GOOD)
def test_table(name: str, tf: ModuleType) -> None:
    check_graph(lambda: GOOD[name](tf))


@pytest.mark.parametrize("name", BAD)
def test_table_refuses(name: str, tf: ModuleType) -> None:
    status, build = BAD[name]
    check_graph(lambda: build(tf), error=status)


FILES = [
    ("string", "int64", -2, -1, {}, None),
    ("int64", "string", -1, -2, {"vocab_size": 2}, None),
    ("string", "int64", 0, 1, {"delimiter": ","}, None),
    ("string", "float32", 0, 2, {"delimiter": ","}, None),
    ("string", "int64", -2, -1, {"offset": 1}, None),
    ("string", "int64", -2, -1, {"vocab_size": 9}, "INVALID_ARGUMENT"),
    ("string", "int64", 0, 7, {"delimiter": ","}, "INVALID_ARGUMENT"),
    ("string", "int64", 1, 0, {"delimiter": ","}, "INVALID_ARGUMENT"),
]


@pytest.mark.parametrize(("key", "value", "key_index", "value_index", "options", "error"), FILES)
def test_table_from_file(
    key: str, value: str, key_index: int, value_index: int, options: Any, error: str | None, tmp_path: Path, tf: Any
) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("one,1,1.5\ntwo,2,2.5\nthree,3,x3\n".replace("x3", "3").encode())

    def build() -> Any:
        handle = tf.raw_ops.HashTableV2(key_dtype=key, value_dtype=value)
        init = tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=handle, filename=str(path), key_index=key_index, value_index=value_index, **options
        )
        keys = ["one", "two,2,2.5", "three,3,3", "nine"] if key == "string" else I64([0, 1, 2])
        default = {"int64": I64(-1), "float32": np.float32(-1), "string": "none"}[value]
        size = after(tf, init, lambda: tf.raw_ops.LookupTableSizeV2(table_handle=handle))
        return [find(tf, handle, keys, default, [init]), size]

    check_graph(build, error=error)


def test_missing_file(tf: ModuleType, tmp_path: Path) -> None:
    def build() -> Any:
        handle = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        init = tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=handle, filename=str(tmp_path / "no"), key_index=-2, value_index=-1
        )
        return find(tf, handle, ["a"], I64(0), [init])

    check_graph(build, error="NOT_FOUND")
