"""Completion in the shell: what the scripts of bash, zsh and fish get to offer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands.complete import by_scope, query
from tests.passes import validate_graphs as graphs
from toolkit.formats.models import names as names_module
from toolkit.formats.models.names import Names, names_in

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = [sys.executable, "-m", "commands.main"]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.pb"
    path.write_bytes(graphs.net().SerializeToString())
    return path


def ask(**variables: str) -> list[str]:
    code = "import sys; from commands.main import main; sys.argv[0] = 'graphmill'; main([])"
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


def bash(*words: str) -> list[str]:
    return ask(_GRAPHMILL_COMPLETE="complete_bash", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1))


def test_commands_and_options() -> None:
    assert bash("graphmill", "p") == ["python", "prune", "place", "partition"]
    assert "--fetch" in bash("graphmill", "prune", "--fe")
    assert bash("graphmill", "checkpoint", "ren") == ["rename"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["prune", "NET", "--fetch", "re"], ["relu"]),
        (["prune", "NET", "--fetch", "relu,conv/b"], ["relu,conv/bias", "relu,conv/biased"]),
        (["run", "NET", "--feed", ""], ["x"]),
        (["run", "NET", "--feed", "x="], []),
        (["run", "NET", "--feed", "fla"], ["flat", "flat/shape"]),
        (["visualize", "NET", "--focus", "con"], ["conv", "conv/bias", "conv/biased", "conv/kernel", "conv/out"]),
        (["inspect", "NET", "--path", "x", "pro"], ["prob"]),
        (["inspect", "NET", "--where", "'op = Con"], ["op = Const", "op = Conv2D"]),
        (["validate", "NET", "--rule", "security/file-r"], ["security/file-read="]),
        (["validate", "NET", "--rule", "size=o"], ["size=off"]),
        (["validate", "NET", "--format", "s"], ["sarif"]),
        (["prune", "gone.pb", "--fetch", "re"], []),
        (["prune", "--fetch", "re"], []),
    ],
)
def test_names_of_the_file(words: list[str], offered: list[str], net: Path) -> None:
    assert bash("graphmill", *(str(net) if word == "NET" else word for word in words)) == offered


def test_zsh_and_fish(net: Path) -> None:
    line = f"graphmill prune {net} --fetch conv/b"
    zsh = ask(_GRAPHMILL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)
    assert "\n".join(zsh) == """_arguments '*: :(("conv/bias"\n"conv/biased"))'"""
    fish = {"_GRAPHMILL_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}
    assert ask(**fish, _TYPER_COMPLETE_FISH_ACTION="get-args") == ["conv/bias", "conv/biased"]


def test_signatures_and_tags(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(graphs.saved().SerializeToString())
    assert bash("graphmill", "run", str(tmp_path), "--signature", "") == ["serving_default"]
    assert bash("graphmill", "run", str(tmp_path), "--tags", "") == ["serve"]
    prefix = graphs.write_checkpoint(tmp_path / "ckpt")
    assert bash("graphmill", "checkpoint", "inspect", str(prefix), "--values", "") == ["b", "w"]


def test_damaged_files_offer_nothing(tmp_path: Path, net: Path) -> None:
    for name, data in (("cut.pb", net.read_bytes()[:-100]), ("noise.pb", b"\x0a\xff\xff\xff"), ("empty.pb", b"")):
        (tmp_path / name).write_bytes(data)
        assert bash("graphmill", "prune", str(tmp_path / name), "--fetch", "") == []


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "net.pb")
    assert names_in(str(tmp_path / "net.pb")) == Names()


@pytest.mark.parametrize("make", [graphs.net, graphs.calls, graphs.meta, graphs.saved])
def test_large_files_are_walked_to_the_same_names(
    make: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.pb"
    path.write_bytes(make().SerializeToString())  # type: ignore[operator]
    parsed = names_in(str(path))
    assert parsed.nodes
    monkeypatch.setattr(names_module, "_LARGE", 1)
    assert names_in(str(path)) == parsed


def test_text_and_json(tmp_path: Path, net: Path) -> None:
    for kind in ("text", "json"):
        command = [
            *PROGRAM,
            "prune",
            str(net),
            "--fetch",
            "prob",
            "--as",
            f"graphdef.{kind}",
            "-o",
            f"{tmp_path}/{kind}",
        ]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        assert names_in(f"{tmp_path}/{kind}").nodes == names_in(str(net)).nodes


def test_many_names_come_by_scope() -> None:
    many = [f"net/block{b}/unit{u}/op{o}" for b in range(3) for u in range(4) for o in range(20)]
    assert by_scope(many, "") == ["net/block0/", "net/block1/", "net/block2/"]
    assert by_scope(many, "net/block1/u") == [f"net/block1/unit{u}/" for u in range(4)]
    assert by_scope(many, "net/block1/unit2/op1") == sorted(n for n in many if n.startswith("net/block1/unit2/op1"))
    assert by_scope([f"n{i}" for i in range(100)], "n") == sorted(f"n{i}" for i in range(100))


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", "op"),
        ("op", "op"),
        ("op ", "op !="),
        ("op = R", "op = Relu"),
        ("op != R", "op != Relu"),
        ("op in (Conv2D, R", "op in (Conv2D, Relu"),
        ("op = Relu a", "op = Relu and"),
        ("op = Relu and not und", "op = Relu and not under"),
        ("under a", "under a"),
        ("(before a/", "(before a/b"),
        ("attr.padding ", "attr.padding ~"),
    ],
)
def test_queries(text: str, offered: str) -> None:
    names = Names({"a/b": "Relu", "a/c": "Conv2D"})
    found = query(names, text)
    assert offered in found
    assert all(option.startswith(text) for option in found)


def test_the_prompt_does_not_wait_for_arrays(net: Path) -> None:
    code = (
        "import os, sys; from commands.main import main\n"
        "sys.argv[0] = 'graphmill'\n"
        "try:\n main([])\nfinally:\n assert not {'numpy', 'grpc', 'yaml', 'rich'} & set(sys.modules)\n"
    )
    words = ["graphmill", "prune", str(net), "--fetch", "re"]
    variables = {"_GRAPHMILL_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(words), "COMP_CWORD": "4"}
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("relu\n", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_in_a_bash(net: Path, tmp_path: Path) -> None:
    """The installed script itself, with the program as a function of its name."""
    script = tmp_path / "complete.sh"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "_GRAPHMILL_COMPLETE": "source_bash"}
    source = subprocess.run(
        [sys.executable, "-c", "from commands.main import main; main([])"],
        env=environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    script.write_text(source)
    program = tmp_path / "graphmill"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m commands.main "$@"\n')
    program.chmod(0o755)
    line = (
        f'PATH="{tmp_path}:$PATH"; source "{script}"; COMP_WORDS=(graphmill prune "{net}" --fetch re); COMP_CWORD=4; '
        "_graphmill_completion graphmill; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("relu\n", "")
