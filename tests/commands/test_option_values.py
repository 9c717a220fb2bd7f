"""Every option of every command, given a nonsense value: the error names the option, and never blames the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from commands import main
from commands.groups import MAY_BE_EMPTY

SAMPLES = Path(__file__).parents[2] / "samples"
NONSENSE = "nonsense"
#: options whose value is the name of something new, so that any text will do
WRITES = frozenset({
    "--output", "--report", "--save", "--checkpoint-dir", "--summaries", "--trace", "--measure", "--profile-dir",
    "--dump", "--dump-stages", "--write-baseline", "--man",
})  # fmt: skip
#: (command, option) to what is wrong there instead of the value: the option asks for another, or matches nothing
OTHERWISE = {
    **{("python", name): "give a program: graphmill python SCRIPT.py, or -m MODULE" for name in ("--graph", "--trace")},
    ("build", "--from-savedmodel"): "is one file too many: a model is made of a spec or of pieces",
    ("build", "--from-checkpoint"): "is one file too many: a model is made of a spec or of pieces",
    ("checkpoint slice", "--output"): "give NAME=SLICE, or --partition NAME",
    ("checkpoint prune", "--signature"): "--signature needs --for GRAPH",
    ("checkpoint rename", "--like"): "--like needs --to-objects",
    ("partition", "--join"): "--join DIR names what is joined, and nothing is split",
    ("optimize", "--checkpoint"): "--checkpoint, --rtol and --atol say how to verify",
    ("optimize", "--calibrate"): "--calibrate is data for the pass quantize_static",
    ("run", "--cluster"): "--cluster is without effect here: it says what --engine ray runs on",
    ("run", "--estimate"): "--estimate is compared with steps that are timed",
    ("inspect", "--signature"): "--signature is without effect here",
    ("visualize", "--checkpoint"): "--checkpoint is for the details of the .html page",
}
#: (command, option) where a value that means nothing is no mistake
SILENT = {
    ("checkpoint clean", "--name"),  # a folder may have no checkpoints of that name
    ("edit", "--add-prefix"),  # any text is a scope
    ("inspect", "--tags"),  # said beside --tree and the like; the summary shows all graphs
    ("unfreeze", "--checkpoint"),  # which it writes
    ("validate", "--checkpoint"),  # a finding of the model
}

#: what each command works on
COMMON: dict[str, list[str]] = {
    "build": [str(SAMPLES / "digits_cnn.yaml"), "-o", "built.meta"],
    "inspect": ["net.meta"],
    "edit": ["net.meta", "--clear-devices", "-o", "edited.meta"],
    "prune": ["net.meta", "--fetch", "probabilities", "-o", "pruned.meta"],
    "unfreeze": ["net.meta", "--only", "conv1/kernel/*", "-o", "thawed.meta"],
    "convert": ["net.meta", "-o", "converted.pbtxt"],
    "freeze": ["net.meta", "--checkpoint", "ckpt", "--fetch", "probabilities", "-o", "frozen.pb"],
    "optimize": ["net.meta", "--passes", "remove_identities", "-o", "optimized.meta"],
    "place": ["net.meta", "--cluster", str(SAMPLES / "cluster.yaml"), "-o", "again.meta"],
    "partition": ["placed.meta", "-o", "parts", "--schedule-recvs"],
    "run": ["net.meta", "--init", "--fetch", "conv1/kernel"],
    "python": [],
    "ops": [],
    "devices": [],
    "validate": ["net.meta"],
    "diff": ["net.meta", "net.meta"],
    "visualize": ["net.meta", "-o", "net.dot"],
    "help": [],
    "worker": ["--cluster", str(SAMPLES / "cluster.yaml"), "--task", "0"],
    "cluster up": [str(SAMPLES / "cluster.yaml")],
    "cluster status": [str(SAMPLES / "cluster.yaml")],
    "checkpoint inspect": ["ckpt"],
    "checkpoint verify": ["ckpt"],
    "checkpoint diff": ["ckpt", "ckpt"],
    "checkpoint convert": ["ckpt", "converted"],
    "checkpoint prune": ["ckpt", "-o", "pruned", "--slots"],
    "checkpoint rename": ["ckpt", "conv1/*=first/*", "-o", "renamed"],
    "checkpoint cast": ["ckpt", "-o", "cast", "--to", "float64"],
    "checkpoint average": ["ckpt", "ckpt", "-o", "averaged"],
    "checkpoint slice": ["ckpt", "-o", "sliced"],
    "checkpoint merge": ["ckpt", "-o", "merged"],
    "checkpoint import": ["ckpt", "ckpt", "-o", "imported"],
    "checkpoint clean": ["."],
}


def options() -> Iterator[tuple[str, Any]]:
    """Every option of every command that takes a value, with the command."""
    root: Any = get_command(main.app)
    for name in root.list_commands(typer.Context(root)):
        command = root.get_command(typer.Context(root), name)
        below: dict[str, Any] = {name: command}
        if hasattr(command, "list_commands"):
            context = typer.Context(command)
            below = {f"{name} {each}": command.get_command(context, each) for each in command.list_commands(context)}
        for path, leaf in below.items():
            for parameter in leaf.params:
                if parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False):
                    yield path, parameter


def _name(case: Any) -> str:
    return case.values[1].opts[-1]


OPTIONS = [pytest.param(path, option, id=f"{path} {option.opts[-1]}") for path, option in options()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the model placed, and a checkpoint of it."""
    folder = tmp_path_factory.mktemp("options")
    net, placed = str(folder / "net.meta"), str(folder / "placed.meta")
    assert main.run(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", net]) == 0
    assert main.run(["place", net, "--cluster", str(SAMPLES / "cluster.yaml"), "-o", placed]) == 0
    assert main.run(["run", net, "--init", "--target", "conv1/kernel", "--save", str(folder / "ckpt")]) == 0
    return folder


def test_every_command_is_tried() -> None:
    assert {path for path, _ in options()} - {"checkpoint relocate"} == set(COMMON)


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_nonsense_is_blamed_on_the_option(
    command: str,
    option: Any,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for file in files.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    name = option.opts[-1]
    code = main.run([*command.split(), *COMMON[command], name, *[NONSENSE] * option.nargs])
    told = capsys.readouterr().err.splitlines()
    if name in WRITES and code == 0:
        return
    if (command, name) in SILENT:
        return
    assert code == 2
    assert len(told) == 1
    if (command, name) in OTHERWISE:
        assert OTHERWISE[command, name] in told[0]
        return
    assert told[0].startswith(f"graphmill: error: {name}")
    assert NONSENSE in told[0]
    assert f"{name}: net.meta" not in told[0] or name == "--tags"


@pytest.mark.parametrize(("command", "option"), [case for case in OPTIONS if _name(case) not in MAY_BE_EMPTY])
def test_an_empty_text_is_no_value(
    command: str, option: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read: a variable of a script that is not set."""
    monkeypatch.chdir(tmp_path)
    name = option.opts[-1]
    code = main.run([*command.split(), *COMMON[command], name, *[""] * option.nargs])
    told = capsys.readouterr().err
    assert code == 2
    assert told.startswith(f"graphmill: error: {name}: ")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--precision", "exakt"], "--precision: 'exakt' is not a precision; did you mean 'exact'? Expected f32"),
        (["--allow", "foo"], "--allow: 'foo' is nothing that can be allowed; expected read=DIR, write=DIR, network"),
        (["--allow", "read"], "--allow: 'read' wants a folder or file: read=DIR"),
        (["--limit", "memory=9999999999T"], "--limit: a limit of memory is at most 2^63-1 bytes, which no machine has"),
        (["--limit", "memory=abc"], "--limit: 'memory=abc' is not a limit; write a number and a unit, as in memory=4G"),
        (["--fetch", "logit"], "--fetch: there is no node 'logit' in the graph; did you mean"),
        (["--fetch", "x:3"], "--fetch: "),
        (["--feed", "z=1"], "--feed: there is nothing named 'z' to feed"),
        (["--feed", "x=missing.npy"], "--feed x: missing.npy: there is no such file"),
        (
            ["--coalesce", "8"],
            "--coalesce joins requests, each of a file of its own: name them with --feed NAME=PATTERN",
        ),
        (
            ["--coalesce", "8", "--feed", "x=*.npy"],
            "--coalesce writes the results of each request to a folder: add --o",
        ),
        (["--tags", "serve"], "--tags: net.meta: 'serve' would choose among the graphs of a SavedModel"),
    ],
)
def test_what_is_expected_is_said(
    args: list[str],
    told: str,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(files)
    assert main.run(["run", *COMMON["run"], *args]) == 2
    assert capsys.readouterr().err.startswith(f"graphmill: error: {told}")
