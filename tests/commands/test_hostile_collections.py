"""Collections and savers of MetaGraphDefs that say what cannot be: one line, whatever the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import text_format

from commands.main import run
from schemas import meta_graph_pb2, queue_runner_pb2

GRAPH = """
graph_def {
  node { name: "queue" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
  node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 } } } }
  node { name: "put" op: "QueueEnqueueV2" input: "queue" input: "one"
         attr { key: "Tcomponents" value { list { type: DT_FLOAT } } } }
  node { name: "close" op: "QueueCloseV2" input: "queue" }
  node { name: "taken" op: "QueueDequeueV2" input: "queue"
         attr { key: "component_types" value { list { type: DT_FLOAT } } } }
}
"""
KEYS = (
    "variables", "trainable_variables", "local_variables", "queue_runners", "table_initializer", "init_op",
    "local_init_op", "ready_op", "summary_op", "global_step", "cond_context", "while_context", "saved_model_main_op",
    "saved_model_assets", "legacy_init_op", "savers",
)  # fmt: skip
VALUES = ("bytes_list", "node_list", "int64_list", "any_list")


def graph(path: Path, change: Callable[[meta_graph_pb2.MetaGraphDef], None] = lambda meta: None) -> str:
    meta = text_format.Parse(GRAPH, meta_graph_pb2.MetaGraphDef())
    change(meta)
    path.write_bytes(meta.SerializeToString())
    return str(path)


def runner(count: int) -> queue_runner_pb2.QueueRunnerDef:
    return queue_runner_pb2.QueueRunnerDef(
        queue_name="queue", enqueue_op_name=["put"] * count, close_op_name="close", cancel_op_name="close"
    )


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("key", KEYS)
def test_values_of_every_kind(key: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def change(meta: meta_graph_pb2.MetaGraphDef) -> None:
        found = meta.collection_def[key]
        if kind == "any_list":
            found.any_list.value.add(type_url="x", value=b"\xff\xff")
        else:
            value = {
                "bytes_list": [b"\xff\xff\xff", b""],
                "node_list": ["no", "", "one:-1", "^one"],
                "int64_list": [-1],
            }
            getattr(found, kind).value.extend(value[kind])

    file = graph(tmp_path / "a.meta", change)
    for command in (["run", file, "--fetch", "one"], ["run", file, "--fetch", "one", "--init"], ["validate", file],
                    ["inspect", file]):  # fmt: skip
        assert run(command) in (0, 1, 2, 3)
        told = capsys.readouterr().err
        assert "internal error" not in told and told.count("\n") <= 2, told


def test_assets_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = graph(tmp_path / "a.meta", lambda meta: meta.collection_def["saved_model_assets"].int64_list.value.append(3))
    assert run(["validate", file]) == 1
    told = capsys.readouterr().out
    assert "structure/collection: the collection 'saved_model_assets' has an item that is no AssetFileDef" in told


def test_more_threads_than_a_graph_may_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def runners(count: int, threads: int) -> Callable[[meta_graph_pb2.MetaGraphDef], None]:
        data = runner(threads).SerializeToString()
        return lambda meta: meta.collection_def["queue_runners"].bytes_list.value.extend([data] * count)

    take = ["--fetch", "taken", "-q"]
    assert run(["run", graph(tmp_path / "a.meta", runners(2, 3)), *take]) == 0
    for count, threads in ((1, 100_000), (100_000, 1)):
        capsys.readouterr()
        assert run(["run", graph(tmp_path / "b.meta", runners(count, threads)), *take]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and "threads; at most 1,024 are started" in told


def test_a_saver_that_keeps_fewer_than_none(tmp_path: Path) -> None:
    """It keeps all."""
    samples = Path(__file__).resolve().parents[2] / "samples"
    file = tmp_path / "digits.meta"
    assert run(["build", str(samples / "digits_cnn.yaml"), "-o", str(file)]) == 0
    meta = meta_graph_pb2.MetaGraphDef.FromString(file.read_bytes())
    meta.saver_def.max_to_keep = -7
    meta.saver_def.keep_checkpoint_every_n_hours = float("nan")
    file.write_bytes(meta.SerializeToString())
    for name in ("one", "two"):
        prefix = tmp_path / "out" / name
        assert run(["run", str(file), "--init", "--target", "init", "--save", str(prefix), "-q"]) == 0
        assert prefix.with_name(f"{name}.index").is_file()
    assert (tmp_path / "out" / "one.index").is_file()
