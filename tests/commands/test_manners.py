"""What commands say beside their results: --quiet, --verbose, progress, warnings, colour, metavars."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import messages
from commands.main import COMMANDS, run
from commands.manual import GROUPS
from tests import models
from tests.passes import validate_graphs as graphs

LEAVES = [name for name in COMMANDS if name not in GROUPS]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.pb"
    path.write_bytes(graphs.net().SerializeToString())
    return path


def said(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run(args) == code
    return capsys.readouterr().err


# -- how much --------------------------------------------------------------------------------------------


def test_quiet_and_verbose(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prune = ["prune", str(net), "--fetch", "relu", "-o", "a.pb"]
    usual = said(capsys, *prune)
    assert usual == "graphmill: prune: kept 6 of 11 nodes\n"
    assert said(capsys, *prune, "--quiet") == ""
    assert said(capsys, "prune", "-q", *prune[1:]) == ""
    lines = said(capsys, *prune, "-v").splitlines()
    assert [line.rpartition(",")[0] for line in lines[:1]] == [
        f"graphmill: prune: read {net}: graphdef, binary, 11 nodes"
    ]
    assert re.fullmatch(r"graphmill: prune: wrote a\.pb in \d+\.\d\d s", lines[1])
    assert lines[2:] == usual.splitlines()
    assert said(capsys, *prune) == usual  # one command line says nothing about the next


def test_errors_are_never_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "prune", "-q", "gone.pb", "--fetch", "a", code=2).startswith("graphmill: error: gone.pb")


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert "-q, --quiet" in text and "-v, --verbose" in text


def test_no_option_is_called_by_its_type(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [[group, name] for group, commands in GROUPS.items() for name in commands]
    for words in [*([name] for name in LEAVES), *grouped]:
        assert run([*words, "--help"]) == 0
        text = capsys.readouterr().out
        assert not re.search(r"<(int|float|integer|text|path|boolean)\b", text), words
        assert not re.search(r"\b(INTEGER|FLOAT|TEXT|PATH)\b", text.partition("Options:")[2]), words


# -- progress --------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_and_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(messages.time, "monotonic", lambda: now[0])
    for stream, level, expected in (
        (Terminal(), messages.NORMAL, "\rvalidating [===============               ]  50% b.pb\033[K\r\033[K"),
        (Terminal(), messages.QUIET, ""),
        (io.StringIO(), messages.NORMAL, ""),
    ):
        now[0] = 0.0
        messages.set_level(level)
        monkeypatch.setattr(sys, "stderr", stream)
        with messages.Progress("validating") as progress:
            progress(0, 4, "a.pb")  # too early
            now[0] = 2.0
            progress(2, 4, "b.pb")
            now[0] = 2.01
            progress(3, 4, "c.pb")  # too soon after the last
        assert stream.getvalue() == expected
    messages.set_level(messages.NORMAL)


def test_progress_of_amounts_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(messages.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", Terminal())
    bar = messages.Progress("reading", lambda amount: f"{amount} B")
    now[0] = 2.0
    bar(60, 120)
    assert sys.stderr.getvalue() == "\rreading [===============               ]  50% 60 B of 120 B, 30 B/s\033[K"  # type: ignore[attr-defined]
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys, "stderr", Terminal())
    now[0] = 3.0
    bar(61, 120)
    assert sys.stderr.getvalue() == "\rreading [==========\033[K"  # type: ignore[attr-defined]


# -- what does not fit into a file -----------------------------------------------------------------------


@pytest.mark.tensorflow
def test_what_a_saved_model_leaves_behind(
    net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del net
    source = str(models.saved_model_tf2().path)
    prune = ["prune", source, "--signature", "serving_default"]
    text = said(capsys, *prune, "-o", "a.pb")
    # the signature needs no table, and only a table needs the asset
    assert f"warning: the variables of {source} stay behind, for a.pb holds the graph alone" in text
    text = said(capsys, "convert", source, "-o", "a.pb")
    assert f"warning: the variables and the assets of {source} stay behind, for a.pb holds the graph alone" in text
    assert "warning" not in said(capsys, *prune, "-o", "folder")
    assert "warning" not in said(capsys, *prune, "-o", "a.tar")
    assert sorted(p.name for p in (tmp_path / "folder").iterdir()) == ["saved_model.pb", "variables"]
    # what went into the folder runs
    assert run(["run", "folder", "--feed", "x=[[1,2,3,4]]"]) == 0


@pytest.mark.parametrize("name", ["a.svg", "a.PNG", "a.html", "a.npz", "a.yaml", "a.onnx"])
def test_names_of_other_things(name: str, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "prune", str(net), "--fetch", "relu", "-o", name, code=2)
    assert text.startswith(f"graphmill: error: --output: {name}: the name is that of ")
    assert not Path(name).exists()


@pytest.mark.tensorflow
def test_folders_that_lack_their_model(net: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "model"
    shutil.copytree(models.saved_model_keras().path, copy)
    (copy / "saved_model.pb").unlink()
    for command in (["inspect"], ["prune", "--fetch", "a"], ["diff", str(net)], ["visualize", "-o", "a.svg"]):
        text = said(capsys, *command, str(copy), code=2)
        assert "a SavedModel folder whose saved_model.pb is missing" in text, command
    inner = tmp_path / "models"
    shutil.copytree(models.saved_model_keras().path, inner / "a")
    assert f"give what is in it, such as '{inner}/a'" in said(capsys, "inspect", str(inner), code=2)


# -- pipelines -------------------------------------------------------------------------------------------


def test_a_pipeline_of_stages(net: Path, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("local: {CPU: 2}\n")
    program = f"{sys.executable} -m commands.main"
    line = (
        f"{program} prune {net} --fetch relu -q | {program} place --cluster {tmp_path}/cluster.yaml -q"
        f" | {program} partition --by device -o {tmp_path}/parts -q && {program} inspect {tmp_path}/parts"
    )
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True, text=True, check=False, cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    assert "partition folder, by device" in done.stdout


def test_json_reports_have_nothing_else_on_their_stream(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    for command in (["inspect", str(net), "--json", "-v"], ["diff", str(net), str(net), "--json", "-v"]):
        assert run(command) == 0
        found: Any = json.loads(capsys.readouterr().out)
        assert found


# -- what a first-time user types ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["prune", "net.pb", "--fetch", "rely"], "--fetch: there is no node 'rely' in the graph; did you mean 'relu'?"),
        (["diff", "net.pb"], "Missing argument 'NEW'. (see: graphmill diff --help)"),
        (["inspect", ""], "the name of the file is empty"),
        (["inspect", "net.pb", "--depth", "x"], "--depth: 'x' is not a whole number."),
        (["diff", "net.pb", "net.pb", "--rtol", "x"], "--rtol: 'x' is not a"),
        (["run", "net.pb", "--compare", "net.pb", "--rtol", "nan"], "--rtol: expected X, found nan, which"),
    ],
)
def test_mistakes(args: list[str], message: str, net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del net
    text = said(capsys, *args, code=2)
    assert message in text and text.count("\n") == 1


def test_a_query_for_an_op_that_is_misspelled(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(net), "--where", "op = Conv2d"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "0 nodes\n"
    assert captured.err.startswith("graphmill: inspect: there is no node with the op 'Conv2d'; did you mean 'Conv2D'")
    assert said(capsys, "inspect", str(net), "--where", "op = Tanh") == ""  # an op, and not in this graph


def test_a_command_line_without_a_command_is_a_call_for_help(capsys: pytest.CaptureFixture[str]) -> None:
    for args in ([], *([group] for group in GROUPS)):
        assert run(args) == 0
        text = capsys.readouterr().out
        assert run([*args, "--help"]) == 0
        assert text == capsys.readouterr().out


def test_validating_a_folder_without_models_is_not_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "readme.md").write_text("# nothing\n")
    assert said(capsys, "validate", str(tmp_path)) == (
        f"graphmill: validate: warning: there is no model below {tmp_path}\n"
    )
