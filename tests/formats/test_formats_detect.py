"""What files are, and what is said about those that are no graphs."""

from __future__ import annotations

import gzip
import io as stdio
import json
import pickle
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import graph_pb2, meta_graph_pb2, saved_model_pb2
from tests import models
from toolkit.errors import FormatError, GraphmillError, UsageError
from toolkit.formats.inspection import report, summary
from toolkit.formats.inspection.detect import Encoding, FileKind, detect
from toolkit.formats.models.model import ModelKind, read_model, write_model
from toolkit.formats.records import crc


def graph_def() -> graph_pb2.GraphDef:
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="Identity", input=["x"])
    graph.versions.producer = 2474
    return graph


def meta_graph() -> meta_graph_pb2.MetaGraphDef:
    meta = meta_graph_pb2.MetaGraphDef(graph_def=graph_def())
    meta.meta_info_def.tags.append("serve")
    return meta


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", crc.masked(length)) + data + struct.pack("<I", crc.masked(data))


def archive(**members: bytes) -> bytes:
    buffer = stdio.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return buffer.getvalue()


def npy() -> bytes:
    buffer = stdio.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


ONNX = b"\x08\x08\x12\x07pytorch\x1a\x052.1.0:\x10\n\x05graph\x12\x07torch_jB\x04\n\x00\x10\x11"

#: name, content, the end of the error that read_model gives; the corpus of things that are no graphs
NOT_GRAPHS: list[tuple[str, bytes, str]] = [
    ("empty", b"", "the file is empty"),
    ("blank", b" \n\t\n", "the file holds nothing but white space"),
    ("page.html", b"<!DOCTYPE html>\n<html><body>404</body></html>", "an HTML or XML page; the download prob"),
    ("page.xml", b'<?xml version="1.0"?>\n<html/>', "an HTML or XML page"),
    ("model.h5", b"\x89HDF\r\n\x1a\n" + bytes(100), "an HDF5 file"),
    ("model.keras", archive(**{"config.json": b"{}"}), "a zip archive"),
    ("model.onnx", ONNX, "an ONNX model"),
    ("model.tflite", b"\x1c\0\0\0TFL3" + bytes(50), "a TensorFlow Lite model"),
    ("model.pkl", pickle.dumps({"weights": [1.5, 2.5], "name": "model" * 30}), "a Python pickle"),
    ("model.pb.gz", gzip.compress(graph_def().SerializeToString(), mtime=0), r"gzip-compressed data; decompress it"),
    ("array.npy", npy(), "a NumPy array"),
    ("image.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG image"),
    ("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"),
    ("spec.yaml", b"name: digits\nlayers:\n  - conv: 3\n", "a text file that begins with 'name:'; a YAML spec"),
    ("versions.yaml", b"versions:\n  producer: 3\n", "a text file that begins with 'versions:'"),
    ("script.py", b"import tensorflow as tf\n", "Python source"),
    ("notes.txt", b"Dear diary, nothing today.\n", "text that begins with 'Dear diary, nothing today.'"),
    ("nodes.pbtxt", b'nodes {\n  name: "x"\n}\n', "text that begins with .*did you mean 'node'"),
    ("list.json", b"[1, 2, 3]", "looks like JSON; a graph's JSON begins with"),
    ("config.json", b'{"learning_rate": 0.1}', "JSON that begins with the key 'learning_rate'"),
    ("random.bin", bytes(range(256)) * 8, "binary data of a kind that is not known"),
    ("zeros.bin", bytes(1000), "binary data of a kind that is not known"),
    ("model.ckpt.data-00000-of-00001", bytes(range(200, 256)) * 9, "a data file of a checkpoint; give the c"),
    ("records", record(b"one") + record(b"two"), "this is a TFRecord file, not a graph; try: graphmill inspect"),
    ("events.out.tfevents.1", record(b"\x09" + bytes(8) + b"\x1a\rbrain.Event:2"), "this is an event file, not"),
    ("checkpoint", b'model_checkpoint_path: "model.ckpt-1"\n', "this is the list of checkpoints in a folder"),
    ("model.index", bytes(40) + struct.pack("<Q", 0xDB4775248B80FB57), "a checkpoint, not a graph; try: graphm"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), NOT_GRAPHS, ids=[row[0] for row in NOT_GRAPHS])
def test_files_that_are_no_graphs(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as caught:
        read_model(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


GRAPHS: list[tuple[str, Callable[[], bytes], FileKind, Encoding]] = [
    ("graphdef", lambda: graph_def().SerializeToString(), FileKind.GRAPH_DEF, Encoding.BINARY),
    ("only versions", lambda: b'"\x03\x08\xaa\x13', FileKind.GRAPH_DEF, Encoding.BINARY),
    ("old version field", lambda: b"\n\x06\n\x01a\x12\x01B\x18\x14", FileKind.GRAPH_DEF, Encoding.BINARY),
    ("metagraph", lambda: meta_graph().SerializeToString(), FileKind.META_GRAPH, Encoding.BINARY),
    ("metagraph without info", lambda: meta_graph_pb2.MetaGraphDef(graph_def=graph_def()).SerializeToString(),
     FileKind.META_GRAPH, Encoding.BINARY),
    ("savedmodel", lambda: saved_model_pb2.SavedModel(
        saved_model_schema_version=1, meta_graphs=[meta_graph()]).SerializeToString(),
     FileKind.SAVED_MODEL, Encoding.BINARY),
    ("text", lambda: b'# a comment\n\nnode {\n  name: "x"\n  op: "NoOp"\n}\n', FileKind.GRAPH_DEF, Encoding.TEXT),
    ("text with a mark", lambda: b'\xef\xbb\xbfnode { name: "x" }', FileKind.GRAPH_DEF, Encoding.TEXT),
    ("text with angles", lambda: b"node <name: 'x'>", FileKind.GRAPH_DEF, Encoding.TEXT),
    ("text, versions first", lambda: b"versions { producer: 3 }", FileKind.GRAPH_DEF, Encoding.TEXT),
    ("text metagraph", lambda: b'meta_info_def { tags: "a" }', FileKind.META_GRAPH, Encoding.TEXT),
    ("text savedmodel", lambda: b"saved_model_schema_version: 1 meta_graphs { }", FileKind.SAVED_MODEL, Encoding.TEXT),
    ("json", lambda: b' {"node": [{"name": "x", "op": "NoOp"}]}', FileKind.GRAPH_DEF, Encoding.JSON),
    ("json in camel case", lambda: b'{"metaInfoDef": {"tags": ["a"]}}', FileKind.META_GRAPH, Encoding.JSON),
    ("json savedmodel", lambda: b'{"saved_model_schema_version": "1", "meta_graphs": [{}]}', FileKind.SAVED_MODEL,
     Encoding.JSON),
]  # fmt: skip


@pytest.mark.parametrize(("content", "kind", "encoding"), [row[1:] for row in GRAPHS], ids=[row[0] for row in GRAPHS])
@pytest.mark.parametrize("name", ["misleading.json", "misleading.pbtxt", "misleading"])
def test_content_decides(
    name: str, content: Callable[[], bytes], kind: FileKind, encoding: Encoding, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content())
    found = detect(path)
    assert (found.kind, found.encoding) == (kind, encoding)
    read_model(path)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", models.own())
def test_kinds_of_what_tensorflow_writes(name: str) -> None:
    path = getattr(models, name)().path
    expected = {".pb": FileKind.GRAPH_DEF, ".meta": FileKind.META_GRAPH, "": FileKind.SAVED_MODEL}[path.suffix]
    assert detect(path).kind is expected
    if path.is_dir():
        assert detect(path / "saved_model.pb").kind is FileKind.SAVED_MODEL
        found = detect(path / "variables/variables")
        assert (found.kind, found.path) == (FileKind.CHECKPOINT, str(path / "variables/variables"))
        assert detect(path / "variables").kind is FileKind.CHECKPOINT
        assert detect(path / "variables/variables.index").path == str(path / "variables/variables")


@pytest.mark.tensorflow
def test_checkpoints_beside_a_metagraph() -> None:
    folder = models.lenet_ref().folder
    assert detect(folder).kind is FileKind.CHECKPOINT_STATE
    with pytest.raises(
        FormatError, match=r"not a graph; its graph is .*-1\.meta; try: graphmill checkpoint inspect .*-1$"
    ):
        read_model(folder / "model.ckpt-1")


def test_the_graph_beside_a_checkpoint_is_named(tmp_path: Path) -> None:
    for name in ("model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001"):
        (tmp_path / name).touch()
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\n')
    (tmp_path / "model.ckpt-1.meta").write_bytes(b"")
    graph = tmp_path / "model.ckpt-1.meta"
    for source in (tmp_path / "model.ckpt-1", tmp_path):
        with pytest.raises(FormatError, match=f"; its graph is {re.escape(str(graph))}; try: graphmill check"):
            read_model(source)
    graph.unlink()
    with pytest.raises(FormatError, match="not a graph; try: graphmill check"):
        read_model(tmp_path)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is an empty folder"):
        detect(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(FormatError, match=r"a folder without saved_model\.pb, .*nothing in it is called like a model"):
        read_model(tmp_path)
    (tmp_path / "partitions.yaml").write_text("partitions: []\n")
    assert detect(tmp_path).kind is FileKind.PARTITIONS
    with pytest.raises(FormatError, match=r"partitions\.yaml: version None is not supported; expected 1"):
        read_model(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(graph_def().SerializeToString())
    assert detect(tmp_path).kind is FileKind.GRAPH_DEF


def test_names_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "model.pb").write_bytes(b"x")
    with pytest.raises(GraphmillError, match=r"there is no such file; did you mean 'model\.pb'\?"):
        read_model(tmp_path / "modl.pb")
    with pytest.raises(GraphmillError, match="there is no folder"):
        read_model(tmp_path / "no/model.pb")
    for name in ("", "a\0b"):
        with pytest.raises(GraphmillError):
            read_model(name)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    data = graph_def().SerializeToString(deterministic=True)
    stream = SimpleNamespace(buffer=stdio.BytesIO(data), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stream)
    model = read_model("-")
    assert model.kind is ModelKind.GRAPH_DEF
    write_model(model, "-")
    assert capsysbinary.readouterr().out == data
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdio.BytesIO(b"what?"), isatty=lambda: False))
    with pytest.raises(FormatError, match=r"^standard input: not a GraphDef"):
        read_model("-")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdio.BytesIO(), isatty=lambda: True))
    with pytest.raises(UsageError, match="nothing is piped into standard input"):
        read_model("-")


# -- damage ----------------------------------------------------------------------------------------------


def check_robust(data: bytes, path: Path) -> str:
    """Reading and inspecting damaged bytes either works or gives a GraphmillError of one line."""
    path.write_bytes(data)
    message = ""
    for work in (read_model, lambda p: report.render(json.loads(json.dumps(summary.inspect(p))))):
        try:
            work(path)
        except GraphmillError as error:
            message = str(error)
            assert "\n" not in message
            assert message.startswith(str(path))
    return message


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["lenet_ref", "saved_model_tf2", "saved_model_tf1", "control_flow_v1"])
def test_truncation_at_many_lengths(name: str, tmp_path: Path) -> None:
    source = getattr(models, name)().path
    data = (source / "saved_model.pb" if source.is_dir() else source).read_bytes()
    said = [check_robust(data[:size], tmp_path / "cut.pb") for size in [*range(40), *range(40, len(data), 997)]]
    assert "the file is empty" in said[0]
    assert sum("is truncated or damaged" in text for text in said) > len(said) * 0.6


@pytest.mark.parametrize("suffix", [".pbtxt", ".json"])
def test_truncation_of_text(suffix: str, tmp_path: Path) -> None:
    (tmp_path / "a.pb").write_bytes(meta_graph().SerializeToString())
    write_model(read_model(tmp_path / "a.pb"), tmp_path / f"a{suffix}")
    data = (tmp_path / f"a{suffix}").read_bytes()
    said = [check_robust(data[:size], tmp_path / "cut") for size in range(len(data) - 2)]
    assert sum("cut:" in text for text in said) > len(said) * 0.5


@pytest.mark.tensorflow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_bytes(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    name = data.draw(st.sampled_from(["lenet_ref", "saved_model_tf2", "control_flow_v1"]))
    source = getattr(models, name)().path
    content = bytearray((source / "saved_model.pb" if source.is_dir() else source).read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1) | st.integers(0, 200))
        content[at] = data.draw(st.integers(0, 255))
    check_robust(bytes(content), tmp_path_factory.getbasetemp() / "damaged.pb")


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_any_bytes(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    check_robust(content, tmp_path_factory.getbasetemp() / "any")


def test_damage_is_located(tmp_path: Path) -> None:
    data = graph_def().SerializeToString(deterministic=True)
    (tmp_path / "a.pb").write_bytes(data.replace(b"Identity", b"Ident\xff\xffy"))
    with pytest.raises(FormatError, match=r"a\.pb: the GraphDef is damaged: 'node' number 1, at byte 18, does not p"):
        read_model(tmp_path / "a.pb")
    (tmp_path / "b.pb").write_bytes(data[:30])
    with pytest.raises(FormatError, match=r"a field of 16 bytes of which 10 are there at byte 18 of 30"):
        read_model(tmp_path / "b.pb")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'node {\n  name: "x"\n  opp: "y"\n}\n', r"g:3:3: not a GraphDef in text format: .*\"opp\""),
        (b'node {\n  name: "x\n}\n', r"g:2:\d+: not a GraphDef in text format"),
        (b"node {\n  name: 5\n}\n", r"g:2:9: not a GraphDef in text format"),
        (b'node {\n  name: "x"\n', "not a GraphDef in text format"),
        (b'node { attr { key: "a" value { type: DT_FLAOT } } }', "DT_FLAOT"),
        (b'{"node": [{"name": "x", "opp": 1}]}', r"g: not a GraphDef in JSON: .*opp"),
        (b'{"node": [{"name": "x",]}', r"g:1:24: not JSON"),
        (b'{"node": 5}', "not a GraphDef in JSON"),
        (b'{"node": ' + b"[" * 100000, "g: the JSON is nested too deeply|not JSON"),
        (b"node {" * 5000, "nested too deeply|not a GraphDef in text format"),
    ],
)
def test_errors_in_text_say_where(text: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes(text)
    with pytest.raises(FormatError, match=message):
        read_model(tmp_path / "g")
