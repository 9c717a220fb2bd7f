"""Files that TensorFlow wrote, read and written back; files that we write, read by TensorFlow."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from schemas import graph_pb2, meta_graph_pb2, saved_model_pb2
from tests import models, perturbation
from tests.runtime.networks.network_case import check_outputs, far_of_run, far_of_signature
from toolkit.errors import FormatError, GraphError, GraphmillError, UsageError
from toolkit.formats import io
from toolkit.formats.inspection.detect import MESSAGES
from toolkit.formats.models.model import (
    Encoding,
    Model,
    ModelKind,
    from_graph,
    read_graph,
    read_model,
    to_message,
    variables_prefix,
    write_model,
)
from toolkit.formats.records import riegeli
from toolkit.graph.graph import Graph
from toolkit.runtime.saving.saved_model import load_saved_model
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session

ALL = models.own()
SMALL = [name for name in ALL if name not in ("resnet50", "mobilenet_v2", "efficientnet_b0")]


def built(name: str) -> models.Built:
    return getattr(models, name)()


def main_file(path: Path) -> Path:
    return path / "saved_model.pb" if path.is_dir() else path


def file_for(model: Model, folder: Path, suffix: str = ".pb") -> Path:
    return folder / f"out{suffix}"


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ALL)
def test_bytes_survive(name: str, tmp_path: Path) -> None:
    source = built(name).path
    model = read_model(source)
    assert model.encoding is Encoding.BINARY
    out = tmp_path / "out.pb"
    write_model(model, out)
    # TensorFlow wrote them with its maps in key order, so the bytes are the same, not only the message
    assert out.read_bytes() == main_file(source).read_bytes()


@pytest.mark.tensorflow
@pytest.mark.parametrize("suffix", [".pbtxt", ".json"])
@pytest.mark.parametrize("name", SMALL)
def test_messages_survive_text_and_json(name: str, suffix: str, tmp_path: Path) -> None:
    source = built(name).path
    model = read_model(source)
    middle = tmp_path / f"middle{suffix}"
    write_model(model, middle)
    again = read_model(middle)
    assert again.kind is model.kind
    assert again.encoding is {".pbtxt": Encoding.TEXT, ".json": Encoding.JSON}[suffix]
    write_model(again, tmp_path / "out.pb", as_kind=f"{model.kind.value}.binary")
    assert (tmp_path / "out.pb").read_bytes() == main_file(source).read_bytes()


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SMALL)
def test_tensorflow_reads_our_text(tf: ModuleType, name: str, tmp_path: Path) -> None:
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2 as tf_saved_model_pb2

    classes: dict[ModelKind, Any] = {
        ModelKind.GRAPH_DEF: tf.compat.v1.GraphDef,
        ModelKind.META_GRAPH: tf.compat.v1.MetaGraphDef,
        ModelKind.SAVED_MODEL: tf_saved_model_pb2.SavedModel,
    }
    source = built(name).path
    model = read_model(source)
    write_model(model, tmp_path / "out.pbtxt")
    theirs = text_format.Parse((tmp_path / "out.pbtxt").read_text(), classes[model.kind]())
    assert theirs == classes[model.kind].FromString(main_file(source).read_bytes())


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", SMALL)
def test_untouched_graph_equals_a_copied_one(name: str) -> None:
    model = read_model(built(name).path)
    before = to_message(model, model.kind)
    copied = model.with_graph(model.graph.copy())
    assert to_message(copied, model.kind) == before


def test_writing_is_deterministic(tmp_path: Path) -> None:
    graph = Graph()
    graph.add("Placeholder", "x", attrs={name: number for number, name in enumerate("hgfedcba")})
    write_model(from_graph(graph), tmp_path / "a.pb")
    graph = Graph()
    graph.add("Placeholder", "x", attrs={name: 7 - number for number, name in enumerate("abcdefgh")})
    write_model(from_graph(graph), tmp_path / "b.pb")
    assert (tmp_path / "a.pb").read_bytes() == (tmp_path / "b.pb").read_bytes()


# -- unknown fields --------------------------------------------------------------------------------------


def _field(number: int, text: bytes) -> bytes:
    """A length-delimited field on the wire."""
    tag = number << 3 | 2
    out = b""
    while tag >= 0x80:
        out += bytes([tag & 0x7F | 0x80])
        tag >>= 7
    return out + bytes([tag, len(text)]) + text


def with_unknown_fields(message: Any, depth: int = 0) -> int:
    """Give every singular and repeated message in `message` an unknown field; returns how many."""
    count = 0
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None or descriptor.message_type.file.package == "google.protobuf":
            continue
        if descriptor.message_type.GetOptions().map_entry:
            entry = descriptor.message_type.fields_by_name["value"]
            if entry.message_type is not None:
                count += sum(with_unknown_fields(value[key], depth + 1) for key in value)
        elif descriptor.is_repeated:
            count += sum(with_unknown_fields(item, depth + 1) for item in value)
        else:
            count += with_unknown_fields(value, depth + 1)
    message.MergeFromString(_field(1000, f"unknown at depth {depth}".encode()))
    return count + 1


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["lenet_ref", "saved_model_tf2", "saved_model_tf1", "control_flow_v2"])
def test_unknown_fields_survive_at_every_level(name: str, tmp_path: Path) -> None:
    kind = read_model(built(name).path).kind
    message = MESSAGES[kind].FromString(main_file(built(name).path).read_bytes())
    assert with_unknown_fields(message) > 100
    data = message.SerializeToString(deterministic=True)
    (tmp_path / "in.pb").write_bytes(data)
    model = read_model(tmp_path / "in.pb")
    write_model(model, tmp_path / "out.pb")
    assert (tmp_path / "out.pb").read_bytes() == data


def test_unknown_fields_of_a_changed_node_and_signature_survive(tmp_path: Path) -> None:
    meta = meta_graph_pb2.MetaGraphDef()
    node = meta.graph_def.node.add(name="x", op="Placeholder")
    signature = meta.signature_def["serve"]
    signature.inputs["x"].name = "x:0"
    for message in (node, signature, signature.inputs["x"]):
        message.MergeFromString(_field(1000, b"kept"))
    (tmp_path / "in.pb").write_bytes(meta.SerializeToString())
    model = read_model(tmp_path / "in.pb")
    model.graph.rename(model.graph.node("x"), "y")
    model.meta.signatures["serve"].inputs["x"].name = "y:0"
    write_model(model, tmp_path / "out.pb")
    out = meta_graph_pb2.MetaGraphDef.FromString((tmp_path / "out.pb").read_bytes())
    assert out.graph_def.node[0].name == "y"
    assert out.signature_def["serve"].inputs["x"].name == "y:0"
    for message in (out.graph_def.node[0], out.signature_def["serve"], out.signature_def["serve"].inputs["x"]):
        assert b"kept" in message.SerializeToString()


# -- what TensorFlow makes of our files ------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["mobilenet_v2", "control_flow_v1", "control_flow_v2"])
def test_tensorflow_runs_a_graph_we_wrote(tf: ModuleType, name: str, tmp_path: Path) -> None:
    source = built(name)
    write_model(read_model(source.path), tmp_path / "out.pb")
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(v1.GraphDef.FromString((tmp_path / "out.pb").read_bytes()), name="")
        with v1.Session(graph=graph) as session:
            arrays = source.arrays()
            if name == "mobilenet_v2":
                result = session.run(source.output, {source.input: arrays["input"]})
                feeds = {source.input: arrays["input"]}
                far = far_of_run(read_model(source.path), {"": source.output}, feeds)
                check_outputs([{"": result}], {"": arrays["output"]}, far)
            else:
                for x, loop in zip(arrays["x"], arrays["loop"], strict=True):
                    feeds = {"x:0": x, "n:0": arrays["n"]}
                    results = [session.run(["loop:0"], feeds), [loop]]
                    perturbation.assert_close(read_model(source.path), ["loop:0"], feeds, results)


@pytest.mark.tensorflow
def test_tensorflow_imports_a_graph_written_as_metagraph(tf: ModuleType, tmp_path: Path) -> None:
    write_model(read_model(models.control_flow_v2().path), tmp_path / "out.meta", as_kind="metagraph")
    v1 = tf.compat.v1
    theirs = v1.MetaGraphDef.FromString((tmp_path / "out.meta").read_bytes())
    listed = [op.name for op in theirs.meta_info_def.stripped_op_list.op]
    assert listed == sorted(listed)
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(theirs.graph_def, name="")
        own = v1.train.export_meta_graph(graph=graph)
    assert theirs.meta_info_def.stripped_op_list == own.meta_info_def.stripped_op_list
    with v1.Graph().as_default() as graph:
        v1.train.import_meta_graph(str(tmp_path / "out.meta"))
        assert graph.get_operation_by_name("gradient") is not None


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["lenet_ref", "lenet_resource"])
def test_tensorflow_trains_from_a_metagraph_we_wrote(tf: ModuleType, name: str, tmp_path: Path) -> None:
    source = built(name)
    model = read_model(source.path)
    logits = model.graph.output(source.output)
    model.graph.add("Identity", "added", [logits], attrs={"T": logits.dtype})
    write_model(model, tmp_path / "out.meta")
    v1 = tf.compat.v1
    arrays = source.arrays()
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        saver = v1.train.import_meta_graph(str(tmp_path / "out.meta"))
        saver.restore(session, str(source.folder / source.info["prefix"]))
        losses = [
            session.run(["loss:0", "train"], {"images:0": x, "labels:0": y})[0]
            for x, y in zip(arrays["images"], arrays["labels"], strict=True)
        ]
        result = session.run("added:0", {"images:0": arrays["images"][0]})

    def work(running: Session) -> list[Any]:
        Saver(model.meta).restore(running, str(source.folder / source.info["prefix"]))
        made = [
            running.run(["loss:0", "train"], {"images:0": x, "labels:0": y})[0]
            for x, y in zip(arrays["images"], arrays["labels"], strict=True)
        ]
        return [*made, running.run("added:0", {"images:0": arrays["images"][0]})]

    results = [[*losses, result], [*arrays["losses"], arrays["logits_after"]]]
    perturbation.assert_agree(results, lambda: perturbation.of_work(model, work))


@pytest.mark.tensorflow
def test_tensorflow_loads_saved_models_we_wrote(tf: ModuleType, tmp_path: Path) -> None:
    keras_model = models.saved_model_keras()
    write_model(read_model(keras_model.path), tmp_path / "keras")
    loaded = tf.saved_model.load(str(tmp_path / "keras"))
    arrays = keras_model.arrays()
    result = loaded.signatures["serving_default"](image=tf.constant(arrays["input"]))["output_0"]
    far = far_of_signature(read_model(keras_model.path), {"image": arrays["input"]}, small=True)
    check_outputs([{"output_0": result.numpy()}], {"output_0": arrays["output"]}, far)

    module = models.saved_model_tf2()
    write_model(read_model(module.path / "saved_model.pb"), tmp_path / "module")
    loaded = tf.saved_model.load(str(tmp_path / "module"))
    arrays = module.arrays()
    result = loaded.signatures["serving_default"](x=tf.constant(arrays["x"]))
    far = far_of_signature(read_model(module.path), {"x": arrays["x"]}, small=True)
    check_outputs([{"scores": result["scores"].numpy()}], {"scores": arrays["scores"]}, far)
    assert loaded.signatures["vocabulary"]()["text"].numpy() == b"one\ntwo\n"


def _of_saved(folder: Path, fetch: str, feeds: dict[str, Any], tags: list[str] | None = None) -> list[Any]:
    """How far two runs of a SavedModel may be apart."""
    model = read_model(folder, tags=tags)

    def work(running: Session) -> list[Any]:
        load_saved_model(running, model)
        return running.run([fetch], feeds)

    return perturbation.of_work(model, work)


@pytest.mark.tensorflow
def test_tensorflow_loads_one_of_several_graphs(tf: ModuleType, tmp_path: Path) -> None:
    source = models.saved_model_tf1()
    model = read_model(source.path, tags=["train", "serve"])
    model.graph.add("NoOp", "mark")
    write_model(model, tmp_path / "out")
    arrays = source.arrays()
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.saved_model.load(session, ["serve"], str(tmp_path / "out"))
        feeds = {"x:0": arrays["x"]}
        got = session.run(["y:0"], feeds)
        perturbation.assert_agree([got, [arrays["y"]]], lambda: _of_saved(tmp_path / "out", "y:0", feeds, ["serve"]))
        assert "mark" not in [op.name for op in graph.get_operations()]
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.saved_model.load(session, ["serve", "train"], str(tmp_path / "out"))
        assert "mark" in [op.name for op in graph.get_operations()]


@pytest.mark.tensorflow
def test_metagraph_with_its_checkpoint_becomes_a_saved_model(tf: ModuleType, tmp_path: Path) -> None:
    source = models.lenet_ref()
    write_model(read_model(source.path), tmp_path / "out", as_kind="savedmodel")
    v1 = tf.compat.v1
    arrays = source.arrays()
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.saved_model.load(session, ["serve"], str(tmp_path / "out"))
        feeds = {"images:0": arrays["images"][0], "labels:0": arrays["labels"][0]}
        loss = session.run(["loss:0"], feeds)
    wanted = [arrays["losses"][0]]
    perturbation.assert_agree([loss, wanted], lambda: _of_saved(tmp_path / "out", "loss:0", feeds))


@pytest.mark.tensorflow
def test_graph_becomes_a_saved_model_and_back(tf: ModuleType, tmp_path: Path) -> None:
    source = models.control_flow_v1()
    write_model(read_model(source.path), tmp_path / "saved", as_kind="savedmodel")
    assert sorted(p.name for p in (tmp_path / "saved").iterdir()) == ["saved_model.pb"]
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.saved_model.load(session, ["serve"], str(tmp_path / "saved"))
    write_model(read_model(tmp_path / "saved"), tmp_path / "back.pb", as_kind="graphdef")
    assert (tmp_path / "back.pb").read_bytes() == source.path.read_bytes()


# -- SavedModel folders ----------------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_what_goes_along_with_a_saved_model(tmp_path: Path) -> None:
    source = models.saved_model_tf2().path
    model = read_model(source)
    write_model(model, tmp_path / "same")
    names = {p.relative_to(source).as_posix() for p in source.rglob("*")}
    assert {p.relative_to(tmp_path / "same").as_posix() for p in (tmp_path / "same").rglob("*")} == names
    assert "assets/words.txt" in names
    assert variables_prefix(read_model(tmp_path / "same")) == str(tmp_path / "same/variables/variables")

    model.graph.add("NoOp", "more")
    write_model(model, tmp_path / "changed")
    left = {p.relative_to(tmp_path / "changed").as_posix() for p in (tmp_path / "changed").rglob("*")}
    # the fingerprint is a digest of the old graph: it would be wrong
    assert names - left == {"fingerprint.pb"}


@pytest.mark.tensorflow
def test_writing_over_the_folder_that_was_read(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(models.saved_model_keras().path, folder)
    model = read_model(folder)
    model.graph.add("NoOp", "more")
    write_model(model, folder)
    assert "more" in read_graph(folder)
    assert (folder / "variables/variables.index").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.tensorflow
def test_a_folder_with_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter.txt").write_text("dear")
    with pytest.raises(GraphmillError, match=r"other things in it \('letter\.txt'\)"):
        write_model(read_model(models.saved_model_keras().path), tmp_path / "home")
    assert (tmp_path / "home/letter.txt").read_text() == "dear"
    with pytest.raises(GraphmillError, match="there is no folder"):
        write_model(read_model(models.saved_model_keras().path), tmp_path / "no/such")
    (tmp_path / "file").write_text("")
    with pytest.raises(GraphmillError, match="is a file"):
        write_model(read_model(models.saved_model_keras().path), tmp_path / "file")


@pytest.mark.tensorflow
def test_saved_model_in_text(tf: ModuleType, tmp_path: Path) -> None:
    source = models.saved_model_keras().path
    write_model(read_model(source), tmp_path / "out", as_kind="savedmodel.text")
    assert (tmp_path / "out/saved_model.pbtxt").exists()
    tf.saved_model.load(str(tmp_path / "out"))
    assert len(read_graph(tmp_path / "out")) == len(read_graph(source))
    with pytest.raises(UsageError, match="has no JSON form"):
        write_model(read_model(source), tmp_path / "json", as_kind="savedmodel.json")
    write_model(read_model(source), tmp_path / "saved.json")
    assert len(read_graph(tmp_path / "saved.json")) == len(read_graph(source))


def saved_model(*tags: list[str]) -> saved_model_pb2.SavedModel:
    message = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    for entry in tags:
        meta = message.meta_graphs.add()
        meta.meta_info_def.tags.extend(entry)
        meta.graph_def.node.add(name="-".join(entry) or "none", op="NoOp")
    return message


def test_tags_choose_a_graph(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(saved_model(["serve"], ["serve", "gpu"], ["train"]).SerializeToString())
    assert read_graph(path, tags=["gpu", "serve"]).nodes[0].name == "serve-gpu"
    assert read_graph(path).nodes[0].name == "serve"
    with pytest.raises(UsageError, match=r"no graph has the tags gpu; there are: serve; gpu,serve; train"):
        read_model(path, tags=["gpu"])


def test_tags_are_asked_for_when_needed(tmp_path: Path) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(saved_model(["a"], ["b"]).SerializeToString())
    model = read_model(path)  # showing all of them needs no choice
    assert len(model.meta_graphs) == 2
    with pytest.raises(UsageError, match="it has 2 graphs; choose one by its tags: a; b"):
        _ = model.graph
    write_model(model, tmp_path / "out.pb")
    assert (tmp_path / "out.pb").read_bytes() == path.read_bytes()


def test_a_saved_model_without_graphs(tmp_path: Path) -> None:
    (tmp_path / "model.pb").write_bytes(saved_model().SerializeToString())
    with pytest.raises(FormatError, match="holds no graph"):
        read_model(tmp_path / "model.pb")


# -- kinds and encodings ---------------------------------------------------------------------------------


def small() -> Model:
    graph = Graph()
    graph.add("NoOp", "a")
    return from_graph(graph, "small")


@pytest.mark.parametrize(
    ("name", "as_kind", "kind", "encoding"),
    [
        ("a.pb", None, ModelKind.GRAPH_DEF, Encoding.BINARY),
        ("a.anything", None, ModelKind.GRAPH_DEF, Encoding.BINARY),
        ("a.pbtxt", None, ModelKind.GRAPH_DEF, Encoding.TEXT),
        ("a.TXT", None, ModelKind.GRAPH_DEF, Encoding.TEXT),
        ("a.json", None, ModelKind.GRAPH_DEF, Encoding.JSON),
        ("a.meta", "metagraph", ModelKind.META_GRAPH, Encoding.BINARY),
        ("a.pb", "metagraph.text", ModelKind.META_GRAPH, Encoding.TEXT),
        ("a.json", "graphdef.binary", ModelKind.GRAPH_DEF, Encoding.BINARY),
        ("a.pb", "savedmodel", ModelKind.SAVED_MODEL, Encoding.BINARY),
        ("folder", "savedmodel", ModelKind.SAVED_MODEL, Encoding.BINARY),
        ("folder.v2", "savedmodel.text", ModelKind.SAVED_MODEL, Encoding.TEXT),
    ],
)
def test_suffix_and_as_decide(
    name: str, as_kind: str | None, kind: ModelKind, encoding: Encoding, tmp_path: Path
) -> None:
    write_model(small(), tmp_path / name, as_kind)
    again = read_model(tmp_path / name)
    assert (again.kind, again.encoding) == (kind, encoding)
    assert "a" in again.graph


@pytest.mark.parametrize("as_kind", ["graphdf", "graphdef.xml", "", "text", "metagraph.text.json"])
def test_unknown_as(as_kind: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a kind to write.*[Ee]xpected graphdef, metagraph, savedmodel"):
        write_model(small(), tmp_path / "a.pb", as_kind)
    assert not list(tmp_path.iterdir())


def test_malformed_graphs_name_the_file_and_the_node(tmp_path: Path) -> None:
    graph = graph_pb2.GraphDef()
    graph.node.add(name="weights", op="Const")
    graph.node.add(name="y", op="Identity", input=["weigths"])
    path = tmp_path / "broken.pb"
    path.write_bytes(graph.SerializeToString())
    with pytest.raises(GraphError, match=r"broken\.pb: node 'y': .*'weigths' does not exist.*did you mean 'weights'"):
        read_model(path)


def test_the_protobuf_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_model(small(), tmp_path / "a.pb")
    size = (tmp_path / "a.pb").stat().st_size
    monkeypatch.setattr(io, "PROTO_LIMIT", size)
    read_model(tmp_path / "a.pb")
    write_model(small(), tmp_path / "b.pb")
    monkeypatch.setattr(io, "PROTO_LIMIT", size - 1)
    with pytest.raises(FormatError, match=r"a\.pb: .* over the protobuf limit of 2 GiB.*a name that ends in .cpb"):
        read_model(tmp_path / "a.pb")
    with pytest.raises(FormatError, match=r"c\.pb: .* over the protobuf limit of 2 GiB"):
        write_model(small(), tmp_path / "c.pb")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pb", "b.pb"]


def test_split_saved_model_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "saved_model.cpb").write_bytes(b"x")
    with pytest.raises(FormatError, match=r"saved_model\.cpb: not a GraphDef, MetaGraphDef or SavedModel"):
        read_model(tmp_path)
    (tmp_path / "saved_model.cpb").write_bytes(riegeli.SIGNATURE)
    with pytest.raises(FormatError, match=r"saved_model\.cpb: it ends within the chunk at byte 0"):
        read_model(tmp_path)


def test_json_has_no_any_of_unknown_types(tmp_path: Path) -> None:
    meta = meta_graph_pb2.MetaGraphDef()
    meta.meta_info_def.any_info.type_url = "type.googleapis.com/no.such.Type"
    meta.meta_info_def.any_info.value = b"\x08\x01"
    (tmp_path / "a.meta").write_bytes(meta.SerializeToString())
    model = read_model(tmp_path / "a.meta")
    with pytest.raises(GraphmillError, match="has no JSON form"):
        write_model(model, tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()
    write_model(model, tmp_path / "a.pbtxt")
    assert (
        to_message(read_model(tmp_path / "a.pbtxt"), ModelKind.META_GRAPH).meta_info_def.any_info.value == b"\x08\x01"
    )


@pytest.mark.parametrize("suffix", [".pb", ".pbtxt", ".json"])
def test_floats_that_are_not_finite(suffix: str, tmp_path: Path) -> None:
    graph = Graph()
    values = [float("nan"), float("inf"), float("-inf"), 0.1, 1e-45]
    graph.add("NoOp", "a", attrs={"values": values, "bytes": b"\x00\xff", "big": -(2**63)})
    write_model(from_graph(graph), tmp_path / f"a{suffix}")
    node = read_graph(tmp_path / f"a{suffix}").node("a")
    np.testing.assert_array_equal(np.float32(node.attr("values")), np.float32(values))
    assert node.attr("bytes") == b"\x00\xff"
    assert node.attr("big") == -(2**63)


# -- collections and signatures --------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_collections_of_a_training_graph() -> None:
    meta = read_model(models.lenet_ref().path).meta
    assert meta.collections["train_op"] == ["train"] or "train" in meta.collections["train_op"]
    assert len(meta.collections["trainable_variables"]) == 8
    assert all(isinstance(value, bytes) for value in meta.collections["variables"])
    assert meta.saver is not None
    assert meta.saver.restore_op_name == "save/restore_all"


def test_collections_of_every_kind(tmp_path: Path) -> None:
    from google.protobuf.any_pb2 import Any as AnyMessage

    given: dict[str, list[Any]] = {
        "names": ["a", "b"], "bytes": [b"\xff"], "ints": [1, -2], "floats": [0.5],
        "any": [AnyMessage(type_url="x/y", value=b"1")], "empty": [],
    }  # fmt: skip
    model = small()
    model.meta.collections.update(given)
    write_model(model, tmp_path / "a.meta", as_kind="metagraph")
    assert read_model(tmp_path / "a.meta").meta.collections == given
    model.meta.collections["mixed"] = ["a", 1]
    with pytest.raises(GraphError, match="collection 'mixed' holds int and str"):
        write_model(model, tmp_path / "b.meta", as_kind="metagraph")
    assert not (tmp_path / "b.meta").exists()


def test_a_collection_keeps_its_kind_when_it_is_empty(tmp_path: Path) -> None:
    meta = meta_graph_pb2.MetaGraphDef()
    meta.collection_def["empty"].int64_list.SetInParent()
    meta.collection_def["nothing"].SetInParent()
    meta.meta_info_def.stripped_op_list.SetInParent()
    meta.meta_info_def.tensorflow_version = "1.0"
    (tmp_path / "a.meta").write_bytes(meta.SerializeToString(deterministic=True))
    write_model(read_model(tmp_path / "a.meta"), tmp_path / "b.meta")
    out = meta_graph_pb2.MetaGraphDef.FromString((tmp_path / "b.meta").read_bytes())
    assert out.collection_def["empty"].WhichOneof("kind") == "int64_list"
    assert out.collection_def["nothing"].WhichOneof("kind") is None
    assert out.meta_info_def.tensorflow_version == "1.0"


@pytest.mark.tensorflow
def test_signatures(tmp_path: Path) -> None:
    model = read_model(models.saved_model_tf2().path)
    signature = model.meta.signatures["power"]
    assert signature.method_name == "tensorflow/serving/predict"
    assert {key: (info.name, info.dtype.name, str(info.shape)) for key, info in signature.inputs.items()} == {
        "n": ("power_n:0", "int32", "[]"),
        "x": ("power_x:0", "float32", "[2]"),
    }
    assert str(model.meta.signatures["serving_default"].outputs["scores"].shape) == "[?,3]"
