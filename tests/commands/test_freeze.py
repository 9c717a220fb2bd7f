"""graphmill freeze."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands.main import run
from tests import models, perturbation
from toolkit import client as gm
from toolkit.formats.models.model import ModelKind, from_meta_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(["freeze", *args]) == code
    return capsys.readouterr().err


def test_graph_def_by_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = models.saved_model_tf2()
    out, report = str(tmp_path / "f.pb"), tmp_path / "r.json"
    text = said(capsys, str(built.path), "--signature", "serving_default", "-o", out, "--report", str(report))
    assert "2 variables became constants" in text and "warning" not in text
    assert set(json.loads(report.read_text())["variables"]) == {"weight", "bias"}
    model = read_model(out)
    assert model.kind is ModelKind.GRAPH_DEF and not [n for n in model.graph if n.op == "VarHandleOp"]
    scores = str(tmp_path / "y.npz")
    feed = f"serving_default_x={built.file('arrays.npz')}:x"
    assert run(["run", out, "--feed", feed, "--fetch", "StatefulPartitionedCall:1", "--out", scores]) == 0
    with np.load(scores) as found:
        results = [[found["StatefulPartitionedCall:1"]], [built.arrays()["scores"]]]
    feeds = {"serving_default_x:0": built.arrays()["x"]}
    perturbation.assert_close(model.graph, ["StatefulPartitionedCall:1"], feeds, results)


def test_kinds_and_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(models.saved_model_tf1().path)
    folder = tmp_path / "frozen"
    said(capsys, source, "--tags", "serve", "--as", "savedmodel", "-o", str(folder))
    assert sorted(path.name for path in folder.iterdir()) == ["saved_model.pb"]
    assert list(read_model(folder).meta.signatures) == ["serving_default"]
    meta = str(tmp_path / "m.meta")
    assert run(["prune", source, "--tags", "serve", "--fetch", "y", "--as", "metagraph", "-o", meta]) == 0
    capsys.readouterr()
    assert "no checkpoint beside the graph; give one with --checkpoint PREFIX" in said(capsys, meta, code=2)
    assert "2 variables" in said(capsys, meta, "--checkpoint", f"{source}/variables/variables", "-o", f"{folder}.pbtxt")


def test_a_pipe_is_given_the_signatures(tmp_path: Path) -> None:
    """A file that is no pipe, and one that is named so, is a GraphDef; it is said what it lacks."""
    built = models.saved_model_tf2()
    line = [sys.executable, "-m", "commands.main", "freeze", str(built.path), "--signature", "serving_default"]
    piped = subprocess.run(line, capture_output=True, check=True)
    (tmp_path / "piped").write_bytes(piped.stdout)
    assert list(read_model(tmp_path / "piped").meta.signatures) == ["serving_default"]
    assert b"the pipe is given a SavedModel with its signatures; --as graphdef gives it the graph" in piped.stderr
    with (tmp_path / "redirected").open("wb") as file:
        told = subprocess.run(line, stdout=file, stderr=subprocess.PIPE, check=True, text=True).stderr
    assert read_model(tmp_path / "redirected").kind is ModelKind.GRAPH_DEF
    assert "a GraphDef has no signatures; --as savedmodel keeps serving_default\n" in told
    assert (
        "what serving_default computes: --feed serving_default_x:0=... --fetch StatefulPartitionedCall:0 "
        "--fetch StatefulPartitionedCall:1\n"
    ) in told
    for name, kind in (("m.meta", ModelKind.META_GRAPH), ("m.tar", ModelKind.SAVED_MODEL)):
        assert run([*line[3:], "-o", str(tmp_path / name)]) == 0
        model = read_model(tmp_path / name)
        assert model.kind is kind and list(model.meta.signatures) == ["serving_default"]
    frozen = str(tmp_path / "redirected")
    again = subprocess.run([*line[:4], frozen, "--fetch", "StatefulPartitionedCall"], capture_output=True, check=True)
    assert again.stdout and b"signatures" not in again.stderr


def test_tables_whose_values_are_computed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What follows from constants goes along; where nobody has filled a table, it is said what does."""
    graph = gm.Graph()
    with graph.as_default():
        table = gm.ops.hash_table_v2(key_dtype=dtypes.string, value_dtype=dtypes.int64)
        ids = gm.cast(gm.range(3) * 10, dtypes.int64)
        fill = gm.ops.function("LookupTableImportV2")(table, gm.constant(["a", "b", "c"]), ids)
        words = gm.placeholder(dtypes.string, [None], name="words")
        gm.ops.lookup_table_find_v2(table, words, gm.constant(-1, dtypes.int64), name="found")
    meta = MetaGraph(Graph.from_proto(graph.as_graph_def()), collections={"table_initializer": [fill.name]})
    source, out = str(tmp_path / "m.meta"), str(tmp_path / "f.pb")
    write_model(from_meta_graph(meta, source), source)
    text = said(capsys, source, "--fetch", "found", "-o", out)
    assert "1 table cannot be constants: run the operation 'init_all_tables'" in text and "warning" not in text
    asked = ["run", out, "--feed", 'words=["c", "x"]', "--fetch", "found"]
    assert run(asked) == 3
    assert "Table not initialized; run it first with --init-op init_all_tables" in capsys.readouterr().err
    assert run([*asked, "--init-op", "init_all_tables"]) == 0
    assert "[20, -1]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--signature", "serving"], "--signature: there is no signature 'serving'; did you mean 'serving_default'"),
        (["--fetch", "z"], "--fetch: there is no node 'z' in the graph"),
        (["--only", "weigth"], "--only: no variable matches 'weigth'; did you mean 'weight'"),
        (["--checkpoint", "gone"], "gone"),
    ],
)
def test_mistakes(args: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(models.saved_model_tf1().path)
    text = said(capsys, source, "--tags", "serve", "-o", str(tmp_path / "f.pb"), *args, code=2)
    assert message in text
    assert text.count("\n") == 1 and not (tmp_path / "f.pb").exists()
