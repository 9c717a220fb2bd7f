"""Byte for byte the same checkpoints as TensorFlow, and each side restores the other's."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.formats.bundle_cases import SUFFIXES, equal, plain_tensors, small_checkpoint
from toolkit.errors import DataLossError
from toolkit.formats.bundle import BundleReader, BundleWriter, merge, restore, save
from toolkit.formats.bundle.check import check
from toolkit.formats.bundle.object_graph import KEY, read_object_graph
from toolkit.formats.bundle.transfer import convert
from toolkit.graph import dtypes

pytestmark = pytest.mark.tensorflow


def tf_save(tf: ModuleType, prefix: Path, names: list[str], specs: list[str], tensors: list[Any]) -> None:
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=specs, tensors=tensors)


def assert_same_bytes(a: Path, b: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    for suffix in suffixes:
        assert Path(f"{a}{suffix}").read_bytes() == Path(f"{b}{suffix}").read_bytes(), suffix


def as_tensor(tf: ModuleType, array: Any, dtype: dtypes.DType) -> Any:
    if dtype.is_quantized:
        return tf.bitcast(tf.constant(array), tf.dtypes.as_dtype(dtype.enum))
    return tf.constant(array)


def test_every_type_is_written_as_tensorflow_does(tf: ModuleType, tmp_path: Path) -> None:
    tensors = plain_tensors()
    names = sorted(tensors)
    tf_save(tf, tmp_path / "tf", names, [""] * len(names), [as_tensor(tf, *tensors[name]) for name in names])
    save(tmp_path / "us", {n: tensors[n][0] for n in names}, [tensors[n][1] for n in names])
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")
    with BundleReader(tmp_path / "tf") as reader:
        assert list(reader) == sorted(names, key=str.encode)
        for name, (array, dtype) in tensors.items():
            assert reader.entry(name).dtype is dtype
            assert equal(reader.read(name), array), name
    for name, (array, dtype) in tensors.items():
        back = tf.raw_ops.RestoreV2(
            prefix=str(tmp_path / "us"),
            tensor_names=[name],
            shape_and_slices=[""],
            dtypes=[tf.dtypes.as_dtype(dtype.enum)],
        )[0]
        if dtype.is_quantized:
            back = tf.bitcast(back, tf.dtypes.as_dtype(array.dtype))
        assert equal(np.asarray(back.numpy(), array.dtype), array), name


def test_variants(tf: ModuleType, tmp_path: Path) -> None:
    listed = tf.raw_ops.TensorListFromTensor(tensor=np.eye(3, dtype="f4"), element_shape=[3])
    tf_save(tf, tmp_path / "tf", ["list"], [""], [listed])
    value = BundleReader(tmp_path / "tf").read("list")
    assert value.shape == () and b"tensorflow::TensorList" in value.item()
    save(tmp_path / "us", {"list": value}, [dtypes.variant])
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")


def test_order_of_adding_is_the_order_in_the_file(tf: ModuleType, tmp_path: Path) -> None:
    names = ["z", "a", "m"]
    tensors = [np.float32(1), np.arange(4), np.array([b"s"], object)]
    tf_save(tf, tmp_path / "tf", names, [""] * 3, tensors)
    save(tmp_path / "us", zip(names, tensors, strict=True))
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")


@pytest.mark.parametrize("count", [1, 16, 17, 2000, 20000])
def test_indices_of_many_keys(tf: ModuleType, tmp_path: Path, count: int) -> None:
    """Restart points, several blocks (from about 7,000 keys on) and their separators."""
    tensors = {f"layer{i % 77}/w{i}": np.float32(i) for i in range(count)}
    names = sorted(tensors)
    tf_save(tf, tmp_path / "tf", names, [""] * count, [tensors[name] for name in names])
    save(tmp_path / "us", [(name, tensors[name]) for name in names])
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")
    assert BundleReader(tmp_path / "tf").read(names[-1]) == tensors[names[-1]]


def test_names_of_all_kinds(tf: ModuleType, tmp_path: Path) -> None:
    names = sorted(["a", "a/b", "ä/ö", "\x7f", "x" * 5000, "with space", "\U0001f600", "a\xff"], key=str.encode)
    tf_save(tf, tmp_path / "tf", names, ["", "3 0,2", *[""] * 6], [np.arange(2.0) for _ in names])
    save(tmp_path / "us", [(n, np.arange(2.0)) for n in names], None, ["", "3 0,2", *[""] * 6])
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")


FULL = np.arange(32, dtype=np.float32).reshape(8, 4)
SPECS = ["8 4 0,4:-", "8 4 4,4:0,2", "8 4 4,4:2,2"]
PARTS = [FULL[:4], FULL[4:, :2], FULL[4:, 2:]]


def test_slices(tf: ModuleType, tmp_path: Path) -> None:
    names = ["part", "scalar", "part", "part"]
    specs = [SPECS[0], "", *SPECS[1:]]
    tensors = [PARTS[0], np.float32(3), *PARTS[1:]]
    tf_save(tf, tmp_path / "tf", names, specs, tensors)
    save(tmp_path / "us", zip(names, tensors, strict=True), None, specs)
    assert_same_bytes(tmp_path / "tf", tmp_path / "us")
    for prefix in (tmp_path / "tf", tmp_path / "us"):
        assert equal(restore(prefix, ["part"])[0], FULL)
        for spec, index in (("8 4 2,4:1,2", np.s_[2:6, 1:3]), ("8 4 -:-", np.s_[:]), ("8 4 7,1:3,1", np.s_[7:, 3:])):
            ours = restore(prefix, ["part"], [spec])[0]
            assert equal(ours, FULL[index])
            theirs = tf.raw_ops.RestoreV2(
                prefix=str(prefix), tensor_names=["part"], shape_and_slices=[spec], dtypes=[tf.float32]
            )[0]
            assert equal(np.asarray(theirs), FULL[index])


def test_merging_shards(tf: ModuleType, tmp_path: Path) -> None:
    for kind in ("tf", "us"):
        for i in range(4):
            tf_save(
                tf,
                tmp_path / f"{kind}_temp" / f"part-{i}",
                [f"v{i}", "part" if i else "w"],  # the first share has no part
                ["", SPECS[i - 1] if i else ""],
                [np.float32(i), PARTS[i - 1]],
            )
    shares = [str(tmp_path / "tf_temp" / f"part-{i}") for i in range(4)]
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=shares, destination_prefix=str(tmp_path / "tf"), delete_old_dirs=True
    )
    merge([tmp_path / "us_temp" / f"part-{i}" for i in range(4)], tmp_path / "us")
    suffixes = (".index", *(f".data-{i:05d}-of-00004" for i in range(4)))
    assert_same_bytes(tmp_path / "tf", tmp_path / "us", suffixes)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f"{k}{s}" for k in ("tf", "us") for s in suffixes)
    assert equal(restore(tmp_path / "us", ["part"])[0], FULL)
    assert check(str(tmp_path / "us")).findings == []


def test_a_saver_with_shards(tf: ModuleType, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("/cpu:0"):
            part = v1.get_variable(
                "p",
                [6, 2],
                initializer=v1.ones_initializer(),
                partitioner=v1.fixed_size_partitioner(3),
                use_resource=False,
            )
        v1.get_variable("b", [2], dtype=tf.float64, initializer=v1.zeros_initializer(), use_resource=False)
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver(sharded=True).save(session, str(tmp_path / "model"), global_step=3)
        del part
    with BundleReader(prefix) as reader:
        assert list(reader) == ["b", "p"]
        assert len(reader.entry("p").slices) == 3
        assert equal(reader.read("p"), np.ones((6, 2), "f4"))
        assert reader.num_shards >= 1
        # Written again by us, part for part, in the same files.
        with BundleWriter(tmp_path / "us", reader.num_shards) as writer:
            for entry in sorted(reader.stored(), key=lambda entry: (entry.shard, entry.offset)):
                name, _, part_text = entry.name.partition("[")
                if part_text:
                    array = np.frombuffer(b"".join(reader.chunks(entry)), entry.dtype.numpy).reshape(entry.dims)
                    whole = reader.entry(name)
                    writer.add_slice(name, whole.dims, part_text[:-1], array, shard=entry.shard)
                else:
                    writer.add(name, reader.read(name), shard=entry.shard)
        count = reader.num_shards
    assert_same_bytes(
        Path(prefix), tmp_path / "us", (".index", *(f".data-{i:05d}-of-{count:05d}" for i in range(count)))
    )


def test_tensorflow_restores_our_shards(tf: ModuleType, tmp_path: Path) -> None:
    tensors = small_checkpoint(tmp_path / "c", 3)
    reader = tf.train.load_checkpoint(str(tmp_path / "c"))
    assert set(reader.get_variable_to_shape_map()) == set(tensors)
    for name, array in tensors.items():
        assert equal(np.asarray(reader.get_tensor(name), array.dtype), array), name


def object_checkpoint(tf: ModuleType, folder: Path) -> tuple[Any, Path]:
    net = tf.Module()
    net.w = tf.Variable([[1.0, 2.0]], name="w")
    net.table = [tf.Variable(3, name="a/b.c"), tf.Variable([b"x", b"yz"], name="words")]
    setattr(net, "odd/name.x", tf.Variable(1.5, name="odd"))
    checkpoint = tf.train.Checkpoint(net=net, step=tf.Variable(4, dtype=tf.int64))
    return checkpoint, Path(checkpoint.write(str(folder / "objects")))


def test_object_based_checkpoints(tf: ModuleType, tmp_path: Path) -> None:
    checkpoint, prefix = object_checkpoint(tf, tmp_path)
    with BundleReader(prefix) as reader:
        ordered = sorted(reader.entries.values(), key=lambda entry: entry.offset)
        save(tmp_path / "us", [(entry.name, reader.read(entry.name)) for entry in ordered])
        objects = read_object_graph(reader)
        assert set(objects.keys()) == set(reader) - {KEY}
        assert objects.paths()[0] == "" and "net" in objects.paths()
        # Serializing the graph again gives the same bytes.
        assert objects.serialize() == reader.read(KEY).item()
    assert_same_bytes(prefix, tmp_path / "us")
    convert(prefix, tmp_path / "copy")
    assert_same_bytes(prefix, tmp_path / "copy")
    checkpoint.step.assign(0)
    checkpoint.net.w.assign([[0.0, 0.0]])
    checkpoint.read(str(tmp_path / "us")).assert_consumed()
    assert checkpoint.step.numpy() == 4
    assert checkpoint.net.w.numpy().tolist() == [[1.0, 2.0]]


def test_keys_escape_as_tensorflow_does(tf: ModuleType, tmp_path: Path) -> None:
    _, prefix = object_checkpoint(tf, tmp_path)
    from toolkit.formats.bundle.object_graph import escape

    assert f"net/{escape('odd/name.x')}/.ATTRIBUTES/VARIABLE_VALUE" in BundleReader(prefix)


def test_tensorflow_refuses_what_we_refuse(tf: ModuleType, tmp_path: Path) -> None:
    """A flipped byte in the data: both sides report data loss."""
    save(tmp_path / "c", {"a": np.arange(8.0)})
    data = tmp_path / "c.data-00000-of-00001"
    damaged = bytearray(data.read_bytes())
    damaged[11] ^= 4
    data.write_bytes(damaged)
    with pytest.raises(DataLossError, match="tensor 'a' at offset 0"):
        restore(tmp_path / "c", ["a"])
    with pytest.raises(tf.errors.DataLossError):
        tf.raw_ops.RestoreV2(prefix=str(tmp_path / "c"), tensor_names=["a"], shape_and_slices=[""], dtypes=[tf.float64])
