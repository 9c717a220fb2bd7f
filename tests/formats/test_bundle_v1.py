"""V1 checkpoints: TensorFlow's are read, ours are the same bytes, and they become V2."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import equal, plain_tensors
from toolkit.errors import DataLossError, FormatError, GraphmillError, InvalidArgumentError, NotFoundError
from toolkit.formats.bundle import BundleReader, open_checkpoint, restore
from toolkit.formats.bundle.check import check_v1
from toolkit.formats.bundle.locate import find_prefix, open_tensors
from toolkit.formats.bundle.transfer import convert
from toolkit.formats.bundle.v1 import FIELDS, V1Reader, write_v1
from toolkit.graph import dtypes

#: types that TensorFlow's SaveSlices accepts
TYPES = (
    "float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "complex128", "int64", "bool", "qint8",
    "quint8", "qint32", "uint16", "float16", "string",
)  # fmt: skip
KERNEL = np.arange(8, dtype=np.float32).reshape(4, 2)


def tensors() -> dict[str, tuple[Any, dtypes.DType]]:
    return {name: (array, dtype) for name, (array, dtype) in plain_tensors().items() if dtype.name in TYPES}


def tf_save_v1(tf: ModuleType, path: Path, names: list[str], specs: list[str], values: list[Any]) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        data = [
            tf.bitcast(tf.constant(array), tf.dtypes.as_dtype(dtype.enum)) if dtype.is_quantized else tf.constant(array)
            for array, dtype in values
        ]
        session.run(tf.raw_ops.SaveSlices(filename=str(path), tensor_names=names, shapes_and_slices=specs, data=data))


@pytest.mark.tensorflow
def test_same_bytes_as_tensorflow(tf: ModuleType, tmp_path: Path) -> None:
    expected = tensors()
    names = sorted(expected)
    tf_save_v1(tf, tmp_path / "tf", names, [""] * len(names), [expected[name] for name in names])
    write_v1(tmp_path / "us", expected)
    assert (tmp_path / "us").read_bytes() == (tmp_path / "tf").read_bytes()
    with open_checkpoint(tmp_path / "tf") as reader:
        assert list(reader) == names
        for name, (array, dtype) in expected.items():
            assert reader.entry(name).dtype is dtype
            assert equal(reader.read(name), array), name
    assert check_v1(str(tmp_path / "tf")).findings == []


@pytest.mark.parametrize("name", ["complex64", "float16", "int16"])
def test_arrays_whose_elements_are_not_beside_each_other(name: str, tmp_path: Path) -> None:
    dtype = dtypes.from_name(name)
    array = np.broadcast_to(np.ones((), dtype.numpy), (3,))
    write_v1(tmp_path / "us", {"v": (array, dtype)})
    with open_checkpoint(tmp_path / "us") as reader:
        assert equal(reader.read("v"), array)


@pytest.mark.tensorflow
def test_slices_and_conversion(tf: ModuleType, tmp_path: Path) -> None:
    values = [(KERNEL[:2], dtypes.float32), (KERNEL[2:], dtypes.float32), (np.array(3), dtypes.int64)]
    tf_save_v1(tf, tmp_path / "old", ["part", "part", "step"], ["4 2 0,2:-", "4 2 2,2:0,2", ""], values)
    assert equal(restore(tmp_path / "old", ["part"])[0], KERNEL)
    assert equal(restore(tmp_path / "old", ["part"], ["4 2 1,2:-"])[0], KERNEL[1:3])
    convert(tmp_path / "old", tmp_path / "new")
    with BundleReader(tmp_path / "new") as reader:
        assert equal(reader.read("part"), KERNEL) and reader.read("step") == 3
    back = tf.train.load_checkpoint(str(tmp_path / "new"))
    assert equal(back.get_tensor("part"), KERNEL)


@pytest.mark.tensorflow
def test_several_files_by_the_name_they_were_saved_under(tf: ModuleType, tmp_path: Path) -> None:
    for at, name in enumerate("ab"):
        tf_save_v1(tf, tmp_path / f"m-1-0000{at}-of-00002", [name], [""], [(KERNEL + at, dtypes.float32)])
    assert find_prefix(tmp_path / "m-1") == str(tmp_path / "m-1-?????-of-00002")
    assert find_prefix(tmp_path / "m") == str(tmp_path / "m")
    with open_tensors(tmp_path / "m-1") as reader:
        assert equal(reader.read("a"), KERNEL) and equal(reader.read("b"), KERNEL + 1)
    convert(tmp_path / "m-1", tmp_path / "new")
    assert equal(tf.train.load_checkpoint(str(tmp_path / "new")).get_tensor("b"), KERNEL + 1)


@pytest.mark.tensorflow
def test_tensorflow_reads_ours(tf: ModuleType, tmp_path: Path) -> None:
    write_v1(tmp_path / "us", {"w": (KERNEL, dtypes.float32), "s": (np.array([b"a", b""], object), dtypes.string)})
    reader = tf.train.load_checkpoint(str(tmp_path / "us"))
    assert equal(reader.get_tensor("w"), KERNEL)
    assert reader.get_tensor("s").tolist() == [b"a", b""]


def test_every_bit_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_v1(path, {"w": (KERNEL, dtypes.float32), "s": (np.array(b"text", object), dtypes.string)})
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert check_v1(str(path)).findings, bit
        with contextlib.suppress(GraphmillError), V1Reader(path) as reader:
            assert equal(reader.read("w"), KERNEL) and reader.read("s") == b"text"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises((DataLossError, FormatError)):
            open_checkpoint(path).read("w")


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="tensor 'x' is float8_e5m2; the V1 format cannot hold that"):
        write_v1(
            tmp_path / "c", {"x": (np.zeros(1, dtypes.from_name("float8_e5m2").numpy), dtypes.from_name("float8_e5m2"))}
        )
    half = dtypes.from_name("bfloat16")  # TensorFlow restores none either
    with pytest.raises(InvalidArgumentError, match="tensor 'x' is bfloat16; the V1 format cannot hold that"):
        write_v1(tmp_path / "c", {"x": (np.zeros(1, half.numpy), half)})
    assert not (tmp_path / "c").exists()
    (tmp_path / "text").write_text("hello")
    with pytest.raises(FormatError, match="neither a checkpoint's prefix nor a checkpoint of the V1 format"):
        open_checkpoint(tmp_path / "text")
    with pytest.raises(NotFoundError):
        V1Reader(tmp_path / "none")
    assert set(TYPES) <= set(FIELDS)
