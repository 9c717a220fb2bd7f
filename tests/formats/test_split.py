"""Split models (.cpb): HighwayHash, Riegeli's records, and TensorFlow's merger as the judge of reading and writing."""

from __future__ import annotations

import io
import random
import sys
import types
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from schemas import chunk_pb2
from schemas.graph_pb2 import GraphDef
from tests import models, perturbation
from tests.formats.merger import highway_of_tensorflow, merged_by_tensorflow
from toolkit.errors import FormatError, GraphmillError
from toolkit.formats.arrays import tensor
from toolkit.formats.inspection.detect import Encoding, ModelKind
from toolkit.formats.models import split
from toolkit.formats.models.model import from_graph, read_model, to_message, write_model
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.formats.records import highway, highway_native, riegeli
from toolkit.formats.records.riegeli import RecordReader, RecordWriter
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph

KEY = (0x2F696C6567656952, 0x0A7364726F636572) * 2
KINDS = {"GraphDef": "graphdef", "MetaGraphDef": "metagraph", "SavedModel": "savedmodel"}


@pytest.mark.tensorflow
@pytest.mark.parametrize("native", [True, False])
def test_hashes(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(highway_native, "rounds", lambda: None)
    rng = random.Random(1)
    sizes = [*range(100), 1000, 1024, 4097, 1 << 17, (1 << 17) + 5]
    messages = [rng.randbytes(size) for size in sizes]
    assert highway.hashes(messages, KEY) == [highway_of_tensorflow(data, KEY) for data in messages]


def reader_of(data: bytes) -> RecordReader:
    return RecordReader(lambda offset, size: data[offset : offset + size], len(data), "f")


def test_records_come_back() -> None:
    rng = random.Random(2)
    for _ in range(12):
        file = io.BytesIO()
        writer = RecordWriter(file)
        sizes = [rng.choice([0, 1, 65400, 65471, 65472, 65536, 200_000, rng.randrange(140_000)]) for _ in range(6)]
        records = [rng.randbytes(size) for size in sizes]
        places = [writer.add(record) for record in records]
        writer.flush()
        reader = reader_of(file.getvalue())
        order = list(range(len(records)))
        rng.shuffle(order)
        assert all(reader.record(places[at]) == records[at] for at in order) and reader.last() == records[-1]


def chunk(records: list[bytes], pack: Any = None, kind: int = 0) -> bytes:
    """The data of a simple chunk of several records."""
    sizes, values = b"".join(varint_bytes(len(record)) for record in records), b"".join(records)
    if pack is not None:
        sizes, values = (varint_bytes(len(data)) + pack(data) for data in (sizes, values))
    return bytes([kind]) + varint_bytes(len(sizes)) + sizes + values


class Grouping(RecordWriter):
    """Puts several records into a chunk, as Riegeli's own writer does."""

    def add_all(self, records: list[bytes]) -> list[int]:
        data, begin = chunk(records), self._end
        self._end = riegeli._chunk_end(begin, len(data), len(records))
        self._write_chunk(begin, data, ord("r"), highway.hash64(data, KEY), len(records))
        return [begin + number for number in range(len(records))]


# -- what we write --------------------------------------------------------------------------------------------


def with_large_tensors() -> Graph:
    graph = Graph()
    rng = np.random.default_rng(1)
    for position in range(5):
        value = rng.standard_normal((400 + 1000 * (position % 2),)).astype(np.float32)
        attrs = {"dtype": dtypes.float32, "value": tensor.from_array(value)}
        constant = graph.add("Const", f"c{position}", attrs=attrs)
        graph.add("Neg", f"n{position}", [constant], attrs={"T": dtypes.float32})
    return graph


@pytest.mark.tensorflow
@pytest.mark.parametrize("piece", [1, 300, 5000, 1 << 20])
def test_tensorflow_merges_what_we_write(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "PIECE", piece)
    sources = [models.saved_model_tf2().path, models.saved_model_keras().path, models.saved_model_tf1().path]
    made = [*(read_model(path, tags=["serve"]) for path in sources), from_graph(with_large_tensors())]
    for number, model in enumerate(made):
        for message, kind in KINDS.items():
            path = tmp_path / f"{number}-{kind}.cpb"
            write_model(model, path, f"{kind}.split")
            wanted = to_message(model, ModelKind(kind))
            theirs = merged_by_tensorflow(str(path.with_suffix("")), message)
            assert theirs is not None and type(wanted).FromString(theirs) == wanted
            ours = read_model(path, tags=["serve"] if kind == "savedmodel" else None)
            assert (ours.kind, ours.encoding) == (ModelKind(kind), Encoding.SPLIT)
            assert to_message(ours, ours.kind) == wanted


def test_folder_pipe_and_commands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, folder = models.saved_model_tf2(), tmp_path / "split"
    write_model(read_model(source.path), folder, "savedmodel.split")
    assert sorted(path.name for path in folder.iterdir()) == ["assets", "saved_model.cpb", "variables"]
    assert run(["diff", str(source.path), str(folder)]) == 0
    feed = f"x={source.file('arrays.npz')}:x"
    out = str(tmp_path / "o.npz")
    assert run(["run", str(folder), "--signature", "serving_default", "--feed", feed, "--out", out]) == 0
    with np.load(out) as found:
        results = [[found["scores"]], [source.arrays()["scores"]]]
    split_model = read_model(folder)
    signature = split_model.meta.signatures["serving_default"]
    feeds = {signature.input_tensors()["x"]: source.arrays()["x"]}
    perturbation.assert_close(split_model, [signature.output_tensors()["scores"]], feeds, results)
    data = (folder / "saved_model.cpb").read_bytes()
    assert read_model("-", data=data).kind is ModelKind.SAVED_MODEL
    capfd.readouterr()
    write_model(read_model(folder), folder)  # which fits into a message
    assert (folder / "saved_model.pb").exists() and not (folder / "saved_model.cpb").exists()


# -- what others write ----------------------------------------------------------------------------------------


def random_split(rng: random.Random, path: Path) -> GraphDef:
    """A GraphDef taken apart at random in all the ways that a plan has."""
    whole = with_large_tensors().to_proto()
    for name in ("f", "g"):
        function = whole.library.function.add()
        function.signature.name = name
        function.node_def.add(name="a", op="NoOp", device="/cpu:0")
    rest = GraphDef()
    rest.CopyFrom(whole)
    chunks: list[tuple[bytes, int]] = []
    plan = chunk_pb2.ChunkedMessage()

    def step(number: int, index: int | None = None, key: str | None = None) -> list[chunk_pb2.FieldIndex]:
        way = [chunk_pb2.FieldIndex(field=number)]
        if index is not None:
            way.append(chunk_pb2.FieldIndex(index=index))
        if key is not None:
            way.append(chunk_pb2.FieldIndex(map_key=chunk_pb2.FieldIndex.MapKey(s=key)))
        return way

    def place(into: Any, data: bytes, way: list[Any], kind: int = 1) -> chunk_pb2.ChunkedMessage:
        field = into.chunked_fields.add(field_tag=way)
        field.message.chunk_index = len(chunks)
        chunks.append((data, kind))
        return field.message

    chunks.append((b"", 1))
    plan.chunk_index = 0
    cut = rng.randrange(3, len(whole.node))
    for position, node in enumerate(rest.node):
        if node.op == "Const" and rng.random() < 0.5:
            content = node.attr["value"].tensor.tensor_content
            node.attr["value"].tensor.ClearField("tensor_content")
            place(plan, content, [*step(1, position), *step(5, key="value"), *step(8), *step(4)], 2)
        elif rng.random() < 0.3 and position < cut:
            data = node.SerializeToString()
            node.Clear()
            place(plan, data, step(1, position))
        elif node.op == "Neg" and rng.random() < 0.4:
            value = node.attr["T"].SerializeToString()
            node.attr["T"].Clear()
            place(plan, value, [*step(1, position), *step(5, key="T")])
    tail = GraphDef(node=rest.node[cut:])
    del rest.node[cut:]
    place(plan, tail.SerializeToString(), [])
    if rng.random() < 0.7:  # a field with a plan of its own
        data, nested = rest.library.function[1].node_def[0].SerializeToString(), rest.library
        nested.function[1].node_def[0].Clear()
        inner = place(plan, rest.library.SerializeToString(), step(2))
        place(inner, data, [*step(1, 1), *step(3, 0)])
        rest.ClearField("library")
    chunks[0] = (rest.SerializeToString(), 1)
    order = list(range(1, len(chunks)))
    rng.shuffle(order)  # where the records lie says nothing
    places: dict[int, int] = {}
    with path.open("wb") as file:
        writer = Grouping(file)
        waiting = [0, *order]
        while waiting:
            group = waiting[: rng.randrange(1, 4)]
            waiting = waiting[len(group) :]
            places |= dict(zip(group, writer.add_all([chunks[at][0] for at in group]), strict=True))
        infos = [
            chunk_pb2.ChunkInfo(type=kind, size=len(data), offset=places[at]) for at, (data, kind) in enumerate(chunks)
        ]
        writer.add_all([chunk_pb2.ChunkMetadata(chunks=infos, message=plan).SerializeToString()])
    return whole


@pytest.mark.tensorflow
def test_merges_as_tensorflow_does(tmp_path: Path) -> None:
    for seed in range(25):
        path = tmp_path / f"{seed}.cpb"
        whole = random_split(random.Random(seed), path)
        theirs = merged_by_tensorflow(str(path.with_suffix("")), "GraphDef")
        ours = to_message(read_model(path), ModelKind.GRAPH_DEF)
        assert theirs is not None and ours == GraphDef.FromString(theirs) == whole


def test_compressed_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brotli's package stands for itself; any function will do to see that it is called as it has to be."""
    file = io.BytesIO()
    writer = Grouping(file)
    records = [b"one" * 50, b"", b"three"]
    data = chunk(records, zlib.compress, ord("b"))
    decoded = sum(map(len, records))
    monkeypatch.setattr(riegeli, "_decoded_size", lambda data: decoded)
    writer._write_chunk(writer._end, data, ord("r"), highway.hash64(data, KEY), 3)
    with pytest.raises(
        FormatError, match=r"is compressed with Brotli, for which the Python package 'brotli' has to be"
    ):
        monkeypatch.setitem(sys.modules, "brotli", None)
        monkeypatch.setitem(sys.modules, "brotlicffi", None)
        reader_of(file.getvalue()).last()
    package = types.ModuleType("brotli")
    package.decompress = zlib.decompress  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "brotli", package)
    assert [bytes(reader_of(file.getvalue()).record(64 + at)) for at in range(3)] == records


# -- what is no split model -----------------------------------------------------------------------------------


def test_damage_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "PIECE", 300)
    path, rng = tmp_path / "m.cpb", random.Random(5)
    write_model(from_graph(with_large_tensors()), path)
    good = path.read_bytes()
    wanted = to_message(read_model(path), ModelKind.GRAPH_DEF)
    for _ in range(200):
        data = bytearray(good)
        match rng.randrange(3):
            case 0:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 1:
                del data[rng.randrange(len(data)) :]
            case _:
                start = rng.randrange(len(data))
                del data[start : start + rng.randrange(1, 2000)]
        path.write_bytes(data)
        try:
            assert to_message(read_model(path), ModelKind.GRAPH_DEF) == wanted  # padding, or a block header
        except GraphmillError as error:
            assert "\n" not in str(error) and "m.cpb" in str(error)


def goes_to_chunk(index: int) -> Any:
    return lambda m: m.message.chunked_fields[0].message.CopyFrom(chunk_pb2.ChunkedMessage(chunk_index=index))


def to_content(m: Any) -> Any:
    """The way to the bytes of a tensor."""
    return next(field.field_tag for field in m.message.chunked_fields if len(field.field_tag) > 2)


PLANS: list[tuple[Any, str]] = [
    (lambda m: m.message.chunked_fields[0].field_tag.add(field=99), "no GraphDef, MetaGraphDef or SavedModel"),
    (goes_to_chunk(77), "wants chunk 77, of 6"),
    (goes_to_chunk(0), "a place for chunk 0 twice"),
    (lambda m: setattr(to_content(m)[1], "index", 1 << 60), "a field that a GraphDef does not have"),
    (lambda m: setattr(m.chunks[1], "offset", 12345678), "there is no record at 12,345,678"),
    (lambda m: setattr(m.chunks[1], "size", 7), "bytes, and not 7"),
    (lambda m: setattr(m.version, "join_version", 3), "rules of version 3"),
    (lambda m: m.ClearField("message"), "no split model"),
    (lambda m: to_content(m).pop(), "is no TensorProto|does not have there"),
]


@pytest.mark.parametrize(("change", "message"), PLANS)
def test_plans_that_cannot_be(change: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split, "PIECE", 3000)
    path = tmp_path / "m.cpb"
    write_model(from_graph(with_large_tensors()), path)
    data = path.read_bytes()
    metadata = chunk_pb2.ChunkMetadata.FromString(bytes(reader_of(data).last()))
    reader = reader_of(data)
    records = [bytes(reader.record(info.offset)) for info in metadata.chunks]
    change(metadata)
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for record in records:
            writer.add(record)
        writer.add(metadata.SerializeToString())
        writer.flush()
    with pytest.raises(FormatError, match=message) as caught:
        read_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_more_than_two_gigabytes(tmp_path: Path) -> None:
    """Six tensors of 400 MB: written and read again with the memory of about one copy beside it."""
    import resource

    graph = Graph()
    for position in range(6):
        value = np.full(100_000_000, position, np.float32)
        attrs = {"dtype": dtypes.float32, "value": tensor.from_array(value)}
        graph.add("Const", f"c{position}", attrs=attrs)
    path = tmp_path / "large.cpb"
    write_model(from_graph(graph), path)
    assert path.stat().st_size > 2_400_000_000
    del graph
    found = read_model(path).graph
    for position, node in enumerate(found):
        array = tensor.to_array(node.attr("value"))
        assert array.shape == (100_000_000,) and (array[[0, 5, -1]] == position).all()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8_000_000
