"""Validation: everything in the corpus of broken files is found, and nothing is held against good files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from commands.main import run
from tests import models
from tests.passes import validate_graphs
from tests.passes.validate_corpus import ROWS, Row
from toolkit.passes.validate import registry


def findings(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    code = run(["validate", *args, "--format", "json", "--config", "/dev/null"])
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert code == (1 if any(f["severity"] == "error" for f in found) else 0)
    return found


@pytest.mark.parametrize("case", ROWS, ids=lambda row: row.name)
def test_corpus(case: Row, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = findings(capsys, *case.make(tmp_path))
    mine = [finding for finding in found if finding["rule"] == case.rule]
    assert mine, sorted({finding["rule"] for finding in found})
    if case.node:
        assert case.node in [finding["node"] for finding in mine]
    assert all(finding["message"] and finding["fix"] and finding["file"] for finding in found)


def test_the_corpus_is_large_and_speaks_of_every_rule() -> None:
    assert len({case.name for case in ROWS}) == len(ROWS) >= 150
    covered = Counter(case.rule for case in ROWS)
    # the first needs a graph of 1.5 GB; all three are tested in test_validate.py
    untested = {"size/near-limit", "security/native-code", "coverage/no-kernel-for-types"}
    assert set(registry.all_rules()) - set(covered) == untested


@pytest.mark.parametrize("base", ["net", "loop", "calls", "meta", "saved"])
def test_good_models_have_no_findings(base: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(getattr(validate_graphs, base)().SerializeToString())
    prefix = validate_graphs.write_checkpoint(tmp_path / "ckpt")
    extra = ["--checkpoint", str(prefix)] if base in ("meta", "saved") else []
    assert findings(capsys, str(path), "--runs-on", "CPU", "--max-params", "3k", *extra) == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", models.own())
def test_no_errors_in_what_tensorflow_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    built = getattr(models, name)()
    extra = ["--checkpoint", str(built.folder / built.info["prefix"])] if "prefix" in built.info else []
    found = findings(capsys, str(built.path), "--runs-on", "CPU", *extra)
    assert [f for f in found if f["severity"] == "error"] == []
    assert [f for f in found if f["severity"] == "warning"] == []


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recurrent", ("functional",)), ("recurrent", ("lowered",)), ("unet", ()), ("text_cnn", ()), ("detector", ()),
        ("fused_batch_norm", ()), ("transformer", ()), ("seq2seq", ()), ("ragged_text", ()),
    ],
)  # fmt: skip
def test_no_errors_in_the_networks_that_tensorflow_ran(
    name: str, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    from tests import network_models  # here, for it adds to the table of builders that others are collected by

    built = getattr(network_models, name)(*arguments)
    for path in sorted({built.path, *built.folder.glob("*.pb"), *built.folder.glob("*.meta")}):
        found = findings(capsys, str(path))
        assert [f for f in found if f["severity"] == "error"] == []


@pytest.mark.tensorflow
def test_no_errors_below_the_folder_of_all_models(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever other tests had TensorFlow write and run; how much that is depends on what ran before."""
    for name in ("lenet_ref", "control_flow_v1"):
        getattr(models, name)()
    paths = [str(path) for path in sorted(models.CACHE.iterdir()) if path.is_dir() and path.suffix != ".tmp"]
    found = findings(capsys, *paths)
    assert [(f["file"], f["rule"], f["message"]) for f in found if f["severity"] == "error"] == []


def test_one_defect_hides_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All findings in one pass: a graph no importer gets through, with something wrong in every family."""
    g = validate_graphs.net()
    node, add = validate_graphs.node, validate_graphs.add
    add(g, "Relu", "relu", ["x"], T=validate_graphs.F)
    node(g, "flat").input[0] = "nowhere"
    node(g, "prob").op = "Sofmax"
    node(g, "x").device = "gpu"
    add(g, "Relu", "a", ["b"], T=validate_graphs.F)
    add(g, "Relu", "b", ["a"], T=validate_graphs.F)
    add(g, "ReadFile", "read", ["logits"])
    add(g, "Exit", "out", ["conv/out"], T=validate_graphs.F)
    validate_graphs.const(g, "bad", [float("nan")], [2])
    (tmp_path / "a.pb").write_bytes(g.SerializeToString())
    rules = {finding["rule"] for finding in findings(capsys, str(tmp_path / "a.pb"))}
    assert rules >= {
        "structure/duplicate-name", "structure/dangling-input", "structure/cycle", "opdef/unknown-op", "opdef/dtype",
        "devices/name", "security/file-read", "control_flow/frame", "numerics/nan",
    }  # fmt: skip


def test_every_rule_says_what_to_do() -> None:
    for identifier, rule in registry.all_rules().items():
        assert identifier.partition("/")[0] in registry.FAMILIES
        assert rule.summary and rule.fix


#: arguments and attributes by which ops name files, folders and addresses
_OUTSIDE = frozenset({
    "filename", "filenames", "file_name", "file_pattern", "path", "snapshot_path", "vocab_filename", "vocab_file",
    "new_vocab_file", "logdir", "db_uri", "address", "server_address", "protocol", "ckpt_path", "prefix",
    "input_checkpoints", "checkpoint_prefixes", "directory", "memory_region_name", "debug_urls", "data_source_name",
})  # fmt: skip
#: ops that have such an argument, and reach nothing outside with it
_HARMLESS = frozenset({
    "ShardedFilename", "ShardedFilespec",
})  # fmt: skip


def test_no_op_that_reaches_out_is_forgotten() -> None:
    from toolkit.graph import opdefs
    from toolkit.policy import outside

    forgotten: dict[str, set[str]] = {}
    for name in opdefs.names():
        definition = opdefs.get(name)
        named = {arg.name for arg in definition.inputs} | set(definition.attrs)
        if (
            named & _OUTSIDE
            and not outside.has_effects(name)
            and name not in _HARMLESS
            and not name.startswith("Debug")
        ):
            forgotten[name] = named & _OUTSIDE
    assert forgotten == {}
