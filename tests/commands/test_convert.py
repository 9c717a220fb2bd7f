"""graphmill convert."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from commands.main import run
from schemas.graph_pb2 import GraphDef
from tests import models
from toolkit.formats.models.model import read_model, to_message

#: a field that no message has
UNKNOWN = b"\x8a\xbb\x3f\x03new"


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run(["convert", *args]) == code
    return capsys.readouterr().err


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Any encoding after any other, for each kind, ends with the bytes of the beginning."""
    source = str(models.saved_model_tf1().path)
    suffixes = (".pb", ".pbtxt", ".json", ".cpb")
    for kind in ("graphdef", "metagraph", "savedmodel"):
        first = tmp_path / f"{kind}.pb"
        said(capsys, source, "--tags", "serve", "--as", kind, "-o", str(first))
        for number, (one, other) in enumerate(itertools.product(suffixes, suffixes)):
            steps = [first, *(tmp_path / f"{kind}{number}{suffix}" for suffix in (one, other)), tmp_path / "last.pb"]
            for before, after in itertools.pairwise(steps):
                assert said(capsys, str(before), "-o", str(after), "--strict") == ""
            assert steps[-1].read_bytes() == first.read_bytes()


def test_what_is_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = str(models.saved_model_tf2().path), str(tmp_path / "g.pb")
    text = said(capsys, source, "--as", "graphdef", "-o", out)
    for part in ("signatures (", "serving_default", "collections (saved_model_main_op)", "the saver", "words.txt"):
        assert part in text
    refused = said(capsys, source, "--as", "graphdef", "-o", str(tmp_path / "s.pb"), "--strict", code=2)
    assert "a GraphDef holds a graph alone; left out: signatures" in refused and refused.count("\n") == 1
    assert not (tmp_path / "s.pb").exists()
    assert "the variables and the assets stay behind" in said(capsys, source, "-o", out, "--strict", code=2)
    assert said(capsys, source, "-o", str(tmp_path / "folder"), "--strict") == ""
    several = str(models.saved_model_tf1().path)
    assert "left out: those tagged serve,train" in said(
        capsys, several, "--as", "metagraph", "--tags", "serve", "-o", out
    )


def test_unknown_fields_and_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = GraphDef()
    node = graph.node.add(name="a", op="Const")
    node.attr["dtype"].type = 987  # type: ignore[assignment]
    plain = tmp_path / "plain.pb"
    plain.write_bytes(graph.SerializeToString(deterministic=True))
    for suffix in (".pbtxt", ".json", ".cpb"):
        between = tmp_path / f"between{suffix}"
        said(capsys, str(plain), "-o", str(between), "--strict")
        said(capsys, str(between), "-o", str(tmp_path / "back.pb"), "--strict")
        assert (tmp_path / "back.pb").read_bytes() == plain.read_bytes()
    node.MergeFromString(UNKNOWN)
    node.attr["dtype"].MergeFromString(UNKNOWN)
    graph.MergeFromString(UNKNOWN)
    newer = tmp_path / "newer.pb"
    newer.write_bytes(graph.SerializeToString(deterministic=True))
    said(capsys, str(newer), "-o", str(tmp_path / "newer.cpb"), "--strict")
    assert to_message(read_model(tmp_path / "newer.cpb"), read_model(newer).kind) == graph
    message = said(capsys, str(newer), "-o", str(tmp_path / "newer.pbtxt"), "--strict", code=2)
    assert "node[0].attr['dtype']" in message and not (tmp_path / "newer.pbtxt").exists()
    assert "JSON holds no fields" in said(capsys, str(newer), "-o", str(tmp_path / "newer.json"))
