"""The command line: suites and peers, mistakes, JSON, --since, --against. No engine is started."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench import __main__ as command
from tests.bench.measure import NotRun, Row
from tests.bench.settings import Settings
from tests.bench.versions import PACKAGES, Version, version
from tests.models import ROOT

ROW = Row("a step", "tensorflow", "ms", 1.0, 2.0, 0.5, 0.6, "error 1e-07", 0.4, 0.7)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Settings]]:
    """Every suite replaced by one that notes how it was called and gives two rows."""
    calls: list[tuple[str, Settings]] = []

    def fake(suite: str) -> Any:
        def run(settings: Settings) -> Iterator[Any]:
            calls.append((suite, settings))
            yield ROW
            yield NotRun("a step bf16", "graphmill", "it has none")

        return run

    for suite, (_, purpose) in list(command.SUITES.items()):
        monkeypatch.setitem(command.SUITES, suite, (fake(suite), purpose))
    monkeypatch.setattr(command, "installed", lambda name: name != "openvino")
    return calls


def test_all_suites_run_by_default_with_the_installed_peers(asked: list[tuple[str, Settings]]) -> None:
    assert command.main([]) == 0
    assert [suite for suite, _ in asked] == [suite for suite in command.SUITES if suite not in command.BY_NAME]
    assert asked[0][1].peers == ("tensorflow", "onnxruntime")


def test_options_reach_the_suites(asked: list[tuple[str, Settings]]) -> None:
    options = "--peers tensorflow --rounds 3 --threads 1 --only x --only y"
    command.main(["--suite", "rnn,overhead", *options.split()])
    assert asked == [(suite, Settings(3, 1, ("tensorflow",), ("x", "y"))) for suite in ("rnn", "overhead")]


def test_another_version_takes_part_without_peers(asked: list[tuple[str, Settings]], capsys: Any) -> None:
    assert command.main(["--against", str(ROOT)]) == 0
    assert {suite for suite, _ in asked} == set(command.SUITES) - set(command.COMMANDS) - set(command.BY_NAME)
    against = Version(f"graphmill in {ROOT.name}", ROOT)
    assert all((told.peers, told.against, told.sides) == ((), against, (against.name,)) for _, told in asked)
    assert f"against {against.name}: {ROOT}" in capsys.readouterr().out
    command.main(["--against", str(ROOT), "--peers", "tensorflow", "--suite", "rnn"])
    assert asked[-1][1].sides == ("tensorflow", against.name)


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout, so there are no revisions")
def test_a_revision_lies_in_a_folder_of_its_own_for_as_long_as_it_is_needed() -> None:
    with version("HEAD") as found:
        assert found.name.startswith("graphmill ") and found.folder != ROOT
        assert all((found.folder / package / "__init__.py").exists() for package in PACKAGES)
        assert not (found.folder / "tests").exists()
    assert not found.folder.exists()


def test_workloads_are_picked_by_a_part_of_their_names() -> None:
    settings = Settings(only=("MLP", "Add"))
    assert settings.wants("train MLP 784-128-10 SGD") and settings.wants("one scalar Add")
    assert not settings.wants("word2vec")
    assert Settings().wants("anything")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "speed"], "there is no suite 'speed'; there are networks, "),
        (["--peers", "theano"], "there is no peer 'theano'; there are tensorflow, onnxruntime, openvino, torch"),
        (["--peers", "openvino"], "openvino is not installed; `pip install -e .[bench]` brings the peers"),
        (["--rounds", "0"], "wants a whole number above 0, not '0'"),
        (["--rounds", "-3"], "wants a whole number above 0, not '-3'"),
        (["--threads", "two"], "wants a whole number above 0, not 'two'"),
        (["--since", "/no/such/file.json"], "--since /no/such/file.json: not a file that --json wrote"),
        (["--against", "no-such-revision"], "--against no-such-revision: neither a folder nor a revision of this"),
        (["--against", "-n"], "argument --against: expected one argument"),
        (["--against", "/etc"], "--against /etc: a folder without graphmill's packages (toolkit, commands, schemas)"),
        (["--against", "HEAD", "--suite", "process,startup"], "--against: there are no rows of startup, checkpoint,"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    ],
)
def test_mistakes_end_with_one_line(
    arguments: list[str], message: str, asked: list[tuple[str, Settings]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(arguments)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err.splitlines()[-1]
    assert not asked


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": [{"ratio": 1}]}', '{"rows": 3}'])
def test_an_old_file_that_is_none_is_refused(
    text: str, tmp_path: Path, asked: list[tuple[str, Settings]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(SystemExit):
        command.main(["--since", str(path)])
    assert f"--since {path}: not a file that --json wrote" in capsys.readouterr().err
    assert not asked


def test_json_and_what_changed_since(
    tmp_path: Path, asked: list[tuple[str, Settings]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.json"
    assert command.main(["--suite", "rnn", "--json", str(path), "--rounds", "2", "--threads", "1"]) == 0
    assert "was" not in capsys.readouterr().out
    report = json.loads(path.read_text())
    assert report["rows"] == [ROW.as_json()]
    assert report["not_run"][0]["reason"] == "it has none"
    assert (report["rounds"], report["threads"]) == (2, 1)
    report["rows"][0]["ratio"] = 0.625
    path.write_text(json.dumps(report))
    command.main(["--suite", "rnn", "--since", str(path)])
    out = capsys.readouterr().out
    assert "ratio 0.500 [0.400 0.700] (target 0.6: reached)  was 0.625  error 1e-07" in out
    assert "a step bf16" in out and "graphmill: not run: it has none" in out
    assert "1 of 1 targets reached" in out


@pytest.mark.parametrize(
    "bad", [NotRun("w", "graphmill", "died", failed=True), Row("w", "p", "s", 1, 1, 1, wrong="graphmill: not finite")]
)
def test_a_failure_or_a_wrong_output_is_the_exit_code(
    bad: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(command.SUITES, "rnn", (lambda settings: [bad], ""))
    assert command.main(["--suite", "rnn"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: died" in out or "WRONG: graphmill: not finite" in out
