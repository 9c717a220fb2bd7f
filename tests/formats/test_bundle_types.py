"""Every type that TensorFlow can save, whole, in parts and in shards: byte for byte, and back on both sides."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import SUFFIXES, equal
from toolkit.errors import FormatError
from toolkit.formats.bundle import BundleReader, BundleWriter, merge, restore, save, wire
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.storage import TemporaryFile, commit_all
from toolkit.formats.bundle.transfer import convert
from toolkit.formats.bundle.writer import write_index
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

PLAIN = [dtype for dtype in dtypes.ALL if dtype.kind not in "rvs"]
#: types that TensorFlow writes in parts and cannot read so; we can
NO_SLICES = {
    "qint16", "quint16", "uint16", "float16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int2", "uint2", "float4_e2m1fn",
}  # fmt: skip
SPECS = ["6 4 0,3:-", "6 4 3,3:0,1", "6 4 3,3:1,3"]
PARTS = (np.s_[:3], np.s_[3:, :1], np.s_[3:, 1:])


def random_bits(dtype: DType, shape: tuple[int, ...], seed: int) -> Any:
    """Values with any bit pattern of the type, NaNs with payloads included."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    raw = rng.integers(0, 256, count * dtype.size, np.uint8)
    if dtype.kind == "b":
        raw &= 1
    elif dtype.name in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        values = rng.integers(0, 2, count)  # the unused bits of a byte are zero or the sign's
        return values.astype(dtype.numpy).reshape(shape)
    return raw.view(dtype.numpy).reshape(shape)


def as_tensor(tf: ModuleType, array: Any, dtype: DType) -> Any:
    if dtype.is_quantized:
        return tf.bitcast(tf.constant(array), tf.dtypes.as_dtype(dtype.enum))
    return tf.constant(array)


def tf_save(tf: ModuleType, prefix: Path, items: list[tuple[str, str, Any, DType]]) -> None:
    tf.raw_ops.SaveV2(
        prefix=str(prefix), tensor_names=[item[0] for item in items], shape_and_slices=[item[1] for item in items],
        tensors=[as_tensor(tf, array, dtype) for _, _, array, dtype in items],
    )  # fmt: skip


def tf_restore(tf: ModuleType, prefix: Path, name: str, spec: str, dtype: DType) -> Any:
    found = tf.raw_ops.RestoreV2(
        prefix=str(prefix), tensor_names=[name], shape_and_slices=[spec], dtypes=[tf.dtypes.as_dtype(dtype.enum)]
    )[0]
    if dtype.is_quantized:
        found = tf.bitcast(found, tf.dtypes.as_dtype(dtype.numpy))
    return np.asarray(found.numpy(), dtype.numpy)


def assert_same_files(folder: Path, count: int = 1) -> None:
    suffixes = SUFFIXES if count == 1 else (".index", *(f".data-{i:05d}-of-{count:05d}" for i in range(count)))
    for suffix in suffixes:
        assert (folder / f"us{suffix}").read_bytes() == (folder / f"tf{suffix}").read_bytes(), suffix


@pytest.mark.tensorflow
def test_we_know_every_type_of_tensorflow(tf: ModuleType) -> None:
    from tensorflow.core.framework import types_pb2

    theirs = {value for value in types_pb2.DataType.values() if 0 < value < 100}
    assert theirs == {dtype.enum for dtype in dtypes.ALL}


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", PLAIN, ids=lambda dtype: dtype.name)
def test_a_type_whole_and_in_parts(tf: ModuleType, tmp_path: Path, dtype: DType) -> None:
    full = random_bits(dtype, (6, 4), 1)
    items = [
        ("empty", "", random_bits(dtype, (0, 3), 2), dtype),
        *(("part", spec, full[at], dtype) for spec, at in zip(SPECS, PARTS, strict=True)),
        ("scalar", "", random_bits(dtype, (), 3), dtype),
        ("whole", "", full, dtype),
    ]
    tf_save(tf, tmp_path / "tf", items)
    save(
        tmp_path / "us", [(name, array) for name, _, array, _ in items], [dtype] * len(items),
        [spec for _, spec, _, _ in items],
    )  # fmt: skip
    assert_same_files(tmp_path)
    assert check(str(tmp_path / "us")).findings == []
    convert(tmp_path / "tf", tmp_path / "copy")
    for suffix in SUFFIXES:
        assert (tmp_path / f"copy{suffix}").read_bytes() == (tmp_path / f"tf{suffix}").read_bytes()
    with BundleReader(tmp_path / "tf") as reader:
        assert reader.entry("part").dtype is dtype
        assert equal(reader.read("part"), full)
        assert b"".join(reader.chunks(reader.entry("part"), 5)) == full.tobytes()
    for spec, at in (("", np.s_[:]), ("6 4 2,3:1,2", np.s_[2:5, 1:3])):
        for name in ("part", "whole"):
            assert equal(np.ascontiguousarray(restore(tmp_path / "tf", [name], [spec])[0]), full[at].copy())
            if (name == "part" or spec) and dtype.name in NO_SLICES:
                with pytest.raises(tf.errors.InvalidArgumentError, match="not supported"):
                    tf_restore(tf, tmp_path / "tf", name, spec, dtype)
                continue
            assert tf_restore(tf, tmp_path / "us", name, spec, dtype).tobytes() == full[at].tobytes()


@pytest.mark.tensorflow
def test_all_types_in_shards(tf: ModuleType, tmp_path: Path) -> None:
    """A share for each third of the types, and parts of one tensor in all shares."""
    full = random_bits(dtypes.float32, (6, 4), 5)
    for kind in ("tf", "us"):
        for share in range(3):
            items = [
                (f"{dtype.name}/{size}", "", random_bits(dtype, (size, 3), size), dtype)
                for dtype in PLAIN[share::3] for size in (0, 7)
            ]  # fmt: skip
            items.append(("part", SPECS[share], full[PARTS[share]], dtypes.float32))
            items.append((f"text{share}", "", np.array([b"", b"x" * 200], object), dtypes.string))
            items.sort(key=lambda item: item[0])
            tf_save(tf, tmp_path / f"{kind}_temp" / f"part-{share}", items)
    shares = [f"part-{share}" for share in range(3)]
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "tf_temp" / share) for share in shares],
        destination_prefix=str(tmp_path / "tf"),
    )
    merge([tmp_path / "us_temp" / share for share in shares], tmp_path / "us")
    assert_same_files(tmp_path, 3)
    # And written by us into three data files at once, in the order of the files.
    with BundleReader(tmp_path / "tf") as reader, BundleWriter(tmp_path / "again", 3) as writer:
        for entry in sorted(reader.stored(), key=lambda entry: (entry.shard, entry.offset)):
            name, _, text = entry.name.partition("[")
            part = next((p for p, own in reader.parts(name) if own is entry), None) if text else None
            whole = reader.entry(name)
            writer.add_raw(name, whole.dtype, whole.dims, reader.chunks(entry), entry.crc, entry.shard, part)
    for path in tmp_path.glob("again.*"):
        assert path.read_bytes() == (tmp_path / path.name.replace("again", "tf", 1)).read_bytes(), path.name
    assert equal(restore(tmp_path / "again", ["part"])[0], full)


def variant_tensors(tf: ModuleType) -> dict[str, Any]:
    def listed(values: Any, shape: list[int]) -> Any:
        return tf.raw_ops.TensorListFromTensor(tensor=values, element_shape=np.array(shape, np.int32))

    strings = listed(tf.constant([b"a", b"bcd"]), [])
    nested = tf.raw_ops.TensorListReserve(element_shape=-1, num_elements=2, element_dtype=tf.variant)
    nested = tf.raw_ops.TensorListSetItem(input_handle=nested, index=0, item=strings)
    nested = tf.raw_ops.TensorListSetItem(input_handle=nested, index=1, item=listed(np.eye(2), [2]))
    empty = tf.raw_ops.EmptyTensorList(element_shape=[3], max_num_elements=-1, element_dtype=tf.int64)
    return {
        "empty": empty,
        "floats": listed(np.eye(3, dtype="f4"), [3]),
        "nested": nested,
        "several": tf.stack([listed(np.arange(4), []), strings, nested]),
        "strings": strings,
    }


@pytest.mark.tensorflow
def test_variants_of_many_kinds(tf: ModuleType, tmp_path: Path) -> None:
    tensors = variant_tensors(tf)
    names = sorted(tensors)
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "tf"), tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tensors[name] for name in names],
    )  # fmt: skip
    with BundleReader(tmp_path / "tf") as reader:
        read = {name: reader.read(name) for name in names}
        assert read["several"].shape == (3,) and all(isinstance(item, bytes) for item in read["several"])
    save(tmp_path / "us", read, [dtypes.variant] * len(names))
    assert_same_files(tmp_path)
    convert(tmp_path / "tf", tmp_path / "copy.npz")
    convert(tmp_path / "copy.npz", tmp_path / "copy")
    for suffix in SUFFIXES:
        assert (tmp_path / f"copy{suffix}").read_bytes() == (tmp_path / f"tf{suffix}").read_bytes()
    back = tf.raw_ops.RestoreV2(
        prefix=str(tmp_path / "us"), tensor_names=["floats"], shape_and_slices=[""], dtypes=[tf.variant]
    )[0]
    stacked = tf.raw_ops.TensorListStack(input_handle=back, element_shape=[3], element_dtype=tf.float32)
    assert equal(stacked.numpy(), np.eye(3, dtype="f4"))


def test_a_big_endian_header_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "c", {"a": np.arange(3.0)})
    with BundleReader(tmp_path / "c") as reader:
        items = list(reader.table.entries())
    header = bytearray()
    header += b"\x08\x01\x10\x01\x1a\x02\x08\x01"  # num_shards 1, endianness BIG, producer 1
    from toolkit.formats.bundle.table import TableWriter

    index = TemporaryFile(str(tmp_path / "c.index"))
    table = TableWriter(index.write)
    table.add(b"", bytes(header))
    for key, value in items[1:]:
        table.add(key, value)
    table.finish()
    index.sync()
    commit_all([index])
    with pytest.raises(FormatError, match=r"c\.index: .*big-endian machine, which is not supported; save it again"):
        BundleReader(tmp_path / "c")
    findings = check(str(tmp_path / "c")).findings
    assert [finding.kind for finding in findings] == ["index"] and "big-endian" in findings[0].message


def test_headers_of_other_versions(tmp_path: Path) -> None:
    index = TemporaryFile(str(tmp_path / "c.index"))
    write_index(index, {b"a": wire.RawEntry(1, (1,), 0, 0, 4, 0)}, 1)
    index.sync()
    commit_all([index])
    assert BundleReader(tmp_path / "c").header.producer == wire.BUNDLE_VERSION
