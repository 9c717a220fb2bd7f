"""graphmill help: topics, commands, rules, manual pages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from commands.main import COMMANDS, run
from commands.manual import GROUPS, TOPICS
from toolkit.passes.validate import registry

ROOT = Path(__file__).resolve().parent.parent.parent


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(["help", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_overview_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    for name in (*TOPICS, *COMMANDS):
        assert f"  {name} " in text


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_topics(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, topic)
    assert len(text.splitlines()) > 8
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        ("queries", ["under SCOPE", "fan-out", "attr.NAME"]),
        ("specs", ["optimizer", "depthwise_conv2d", "colocate_with"]),
        ("feeds", ["FILE.npz:KEY", "data.tfrecord:image"]),
        ("clusters", ["jobs:", "local: {CPU: 2}"]),
        ("configuration", ["fail-on: warning", "baseline"]),
        ("formats", ["SavedModel", "TFRecord"]),
        ("shell", ["NO_COLOR", "--install-completion", "--quiet"]),
        ("exit-codes", ["130"]),
    ],
)
def test_what_topics_explain(topic: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, topic)
    assert [word for word in words if word not in text] == []


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "rules")
    for identifier, rule in registry.all_rules().items():
        assert f"{identifier} ({rule.severity.label})\n    {rule.summary}\n    fix: {rule.fix}\n" in text
    assert shown(capsys, "rules", "security").startswith("security/file-read (error)\n")
    assert shown(capsys, "structure/cycle").count("\n") == 3


def test_the_examples_of_the_configuration_are_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "configuration")
    example = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    assert "validate" in yaml.safe_load(example)
    (tmp_path / "graphmill.yaml").write_text(example)
    model = ROOT / "tests" / "commands" / "goldens" / "inspect_metagraph.pbtxt"
    code = run(["validate", str(model), "--config", str(tmp_path / "graphmill.yaml")])
    # only what it names is missing: the earlier version of the model
    missing = "graphmill: error: --compatible-with: released/model: there is no folder 'released'\n"
    assert (code, capsys.readouterr().err) == (2, missing)


@pytest.mark.parametrize(
    "words", [*([name] for name in COMMANDS), *([group, name] for group in GROUPS for name in GROUPS[group])]
)
def test_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *words)
    assert text.startswith(f"Usage: graphmill {' '.join(words)} ")
    assert run([*words, "--help"]) == 0
    assert text.startswith(capsys.readouterr().out)
    if words[0] in ("inspect", "validate", "diff"):
        assert "prints" in text.partition("Show this message and exit.")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["queris"], "there is no topic or command 'queris'; did you mean 'queries'"),
        (["checkpoint", "prun"], "there is no topic or command 'checkpoint prun'"),
        (["rules", "structur"], "there is no rule 'structur'; did you mean 'structure'"),
        (["structure/cicle"], "did you mean 'structure/cycle'"),
        (["--man", "/dev/null/x"], "cannot be made"),
    ],
)
def test_mistakes(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err and captured.err.count("\n") == 1


def test_manual_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "--man", str(tmp_path)]) == 0
    names = sorted(path.name for path in tmp_path.rglob("*.?"))
    expected = [
        "graphmill.1",
        *(f"graphmill-{name}.1" for name in COMMANDS),
        *(f"graphmill-{group}-{name}.1" for group in GROUPS for name in GROUPS[group]),
        *(f"graphmill-{name}.7" for name in TOPICS),
    ]
    assert names == sorted(expected)
    assert capsys.readouterr().err == f"graphmill: help: {len(expected)} manual pages in {tmp_path}\n"
    page = (tmp_path / "man1" / "graphmill-inspect.1").read_text()
    assert page.startswith('.TH "GRAPHMILL-INSPECT" "1"')
    assert "graphmill\\-inspect \\- Say what is in" in page
    assert not [line for line in page.splitlines() if line.startswith("'")]


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here to read them")
def test_manual_pages_as_groff_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "--man", str(tmp_path), "-q"]) == 0
    for page in sorted(tmp_path.rglob("*.?")):
        command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=200n", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), page.name
    text = done.stdout
    assert capsys.readouterr().err == "" and "--quiet" not in text.partition("NAME")[0]
    queries = subprocess.run(
        ["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=200n", str(tmp_path / "man7" / "graphmill-queries.7")],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "OPERATOR  := = | != | ~ | !~ | < | <= | > | >=" in queries  # signs survive


def test_the_list_of_topics_needs_nothing_heavy() -> None:
    code = (
        "import sys; from commands.main import run; code = run(['help'])\n"
        "assert not {'numpy', 'grpc', 'yaml', 'google.protobuf'} & set(sys.modules), sys.modules\n"
        "sys.exit(code)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)


def test_every_topic_that_is_written_or_named_is_there() -> None:
    written = {path.stem for path in (ROOT / "commands/topics").glob("*.txt")}
    documents = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "commands/topics").glob("*.txt")]
    named = {word for path in documents for word in re.findall(r"graphmill help ([a-z][a-z-]*)", path.read_text())}
    assert written | named <= {*TOPICS, *COMMANDS}
