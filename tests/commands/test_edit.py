"""graphmill edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.main import run
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

F = dtypes.float32


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([1, 2])})
    h = graph.add("Tanh", "tower/h", [x], attrs={"T": F}, device="/device:GPU:0")
    w = graph.add("Const", "tower/w", attrs={"dtype": F, "value": tensor.from_array([1.0, 2.0], F)})
    graph.add("Mul", "y", [h, w], attrs={"T": F})
    write_model(from_graph(graph), tmp_path / "m.pb")
    return "m.pb"


def test_options_are_edits_in_their_order(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    args = [
        "--rename", "tower/*=t/*", "--rename", "t/h=t/k", "--add-prefix", "net", "--rename-scope=net/t=u",
        "--clear-devices", "--batch-size", "any", "--set-constant", "u/w=[3, 4]", "--insert-after", "u/k=Identity:p",
        "--set-attr", "net/y:_note=hello", "--add-signature", "s=image:net/x->net/y,p:1",
    ]  # fmt: skip
    assert run(["edit", model, *args[:-2], "-o", "o.pb"]) == 0
    graph = read_model("o.pb").graph
    assert [(node.name, node.op, node.input_refs()) for node in graph] == [
        ("net/x", "Placeholder", []),
        ("u/k", "Tanh", ["net/x"]),
        ("u/w", "Const", []),
        ("net/y", "Mul", ["p", "u/w"]),
        ("p", "Identity", ["u/k"]),
    ]
    assert graph.node("net/x").attr("shape") == Shape([None, 2]) and not graph.node("u/k").device
    assert graph.node("net/y").attrs["_note"] == b"hello"
    assert capfd.readouterr().err.splitlines()[:3] == [
        "graphmill: edit: renamed 2 nodes",
        "graphmill: edit: renamed 1 node",
        "graphmill: edit: renamed 4 nodes",
    ]
    assert run(["edit", model, *args, "-o", "p.pb"]) == 2
    assert "--add-signature: there is no tensor 'p:1': Identity 'p' has 1 output(s)" in capfd.readouterr().err
    assert not Path("p.pb").exists()


def test_a_list_of_edits_and_a_report(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("e.yaml").write_text("- rename_nodes: {nodes: h2, to: h}\n- remove_nodes: {nodes: tower/w, cascade: true}\n")
    args = ["edit", model, "--rename", "tower/h=h2", "--edits", "e.yaml", "--report", "r.json", "-o", "o.pbtxt", "-q"]
    assert run(args) == 0
    assert [node.name for node in read_model("o.pbtxt").graph] == ["x", "h"]
    facts = json.loads(Path("r.json").read_text())
    assert [done["at"] for done in facts["edits"]] == ["--rename", "e.yaml:1:3", "e.yaml:2:3"]
    assert facts["edits"][2] == {
        "edit": "remove_nodes", "at": "e.yaml:2:3", "did": "removed 1 node, and 1 that needed them",
    }  # fmt: skip
    assert capfd.readouterr().err == ""


def test_dry_run_prints_the_difference(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["edit", model, "--rename", "y=z", "--clear-devices", "--dry-run", "-o", "o.pb"]) == 0
    out = capfd.readouterr().out
    assert "> y -> z (Mul)" in out and "~ tower/h (Tanh) device: /device:GPU:0 -> " in out
    assert not Path("o.pb").exists()


def test_merge_and_connect(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["edit", model, "--merge", "m.pb=b", "--connect", "y=b/x", "-o", "o.pb"]) == 0
    graph = read_model("o.pb").graph
    assert graph.node("b/tower/h").input_refs() == ["y"] and "b/x" not in graph
    assert run(["edit", model, "--connect", "y=b/x", "-o", "p.pb"]) == 2
    assert "--connect: there is no node 'b/x' in the graph" in capfd.readouterr().err


def test_schema_and_kinds(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["edit", "--schema"]) == 0
    assert json.loads(capfd.readouterr().out)["type"] == "array"
    assert run(["edit", "--kinds"]) == 0
    assert "rename_nodes\n    Rename nodes" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("args", "messages"),
    [
        ([], ["there is nothing to do: give --edits FILE.yaml, or options such as --rename OLD=NEW"]),
        (["--rename", "y"], ["--rename: expected OLD=NEW, found 'y'"]),
        (["--rename", "yy=z"], ["--rename: no node matches 'yy'"]),
        (["--rename", "yy=z", "--remove", "q"], ["--rename: no node matches 'yy'", "--remove: no node matches 'q'"]),
        (["--batch-size", "many"], ["--batch-size: expected a size, or any; found 'many'"]),
        (["--batch-size", "0"], ["--batch-size: expected at least 1, found 0"]),
        (["--set-attr", "y"], ["--set-attr: expected NODES:ATTR=VALUE, found 'y'"]),
        (["--set-device", "/jub:a"], ["--set-device: "]),
        (["--edits", "gone.yaml"], ["--edits: gone.yaml"]),
        (["--rename", "y=z", "-o", "o.png"], ["--output: o.png: the name is that of a picture"]),
    ],
)
def test_refused(model: str, args: list[str], messages: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["edit", model, *args, *([] if "-o" in args else ["-o", "never.pb"])]) == 2
    lines = capfd.readouterr().err.splitlines()
    lines = [line for line in lines if "error" in line]
    assert [line.startswith(f"graphmill: error: {m}") for line, m in zip(lines, messages, strict=True)] == [
        True for _ in messages
    ], lines
    assert not Path("never.pb").exists()


@pytest.mark.parametrize(
    ("option", "start", "offers"), [("--rename", "to", ["tower/h", "tower/w"]), ("--remove", "x,y", ["x,y"])]
)
def test_completion(model: str, option: str, start: str, offers: list[str]) -> None:
    from typer.main import get_command

    from commands.complete import completer
    from commands.main import app

    command = get_command(app).get_command(None, "edit")  # type: ignore[attr-defined]
    parameter = next(each for each in command.params if option in each.opts)
    complete = completer(parameter)
    assert complete is not None

    class Context:
        args: tuple[str, ...] = ()
        params = {"source": model}  # noqa: RUF012 -- stands for a context

    assert complete(Context(), parameter, start) == offers


def test_shapes_that_were_noted_follow_what_was_reconnected(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    graph = read_model(model).graph
    wide = graph.add("Placeholder", "wide", attrs={"dtype": F, "shape": Shape([7, 2])})
    graph.add("Neg", "z", [graph.node("y")], attrs={"T": F, "_output_shapes": [Shape([1, 2])]})
    write_model(from_graph(graph), "noted.pb")
    assert wide.name == "wide"
    assert run(["edit", "noted.pb", "--reconnect", "z=wide", "-o", "o.pb"]) == 0
    assert read_model("o.pb").graph.node("z").attr("_output_shapes") == [Shape([7, 2])]


def test_what_a_graphdef_cannot_hold_is_not_made_for_one(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    added = ["edit", model, "--add-signature", "s=x->y"]
    assert run([*added, "-o", "o.meta"]) == 2
    assert "left out: signatures (s); write what the edits made with --as metagraph" in capfd.readouterr().err
    assert not Path("o.meta").exists()
    assert run([*added, "-o", "o.meta", "--as", "metagraph"]) == 0
    assert list(read_model("o.meta").meta.signatures) == ["s"]
    assert run(["edit", "o.meta", "--rename", "y=out", "-o", "o.pb", "--as", "graphdef"]) == 0
    assert "warning: a GraphDef holds a graph alone; left out: signatures (s)" in capfd.readouterr().err
