"""Names in files may hold anything: no terminal acts upon them, and no shell runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from commands import shell
from commands.main import run
from schemas import graph_pb2, meta_graph_pb2, types_pb2
from tests.commands.test_complete import ROOT, ask, bash
from toolkit.formats.models.text import parse, render
from toolkit.printable import json_printable, printable

#: colours and the window's title, a bell, an overwritten line, C1's CSI, a text turned around, lines forged, an
#: unseen character; short strings with control characters are told from names when a file's kind is found
HOSTILE = "a\x1b[2J\x1b]0;t\x07b\rc\x9b31md\u202ee\nerror: f\u2028g\u200bh\x7f" + "-" * 256


def hostile_model(name: str) -> meta_graph_pb2.MetaGraphDef:
    """A model in which all that can be named has a name made of `name`."""
    meta = meta_graph_pb2.MetaGraphDef()
    meta.meta_info_def.tags.append(name)
    meta.meta_info_def.tensorflow_version = name
    graph = meta.graph_def
    x = graph.node.add(name=f"{name}/x", op="Placeholder")
    x.attr["dtype"].type = types_pb2.DT_FLOAT
    constant = graph.node.add(name=f"{name}/text", op="Const")
    constant.attr["dtype"].type = types_pb2.DT_STRING
    constant.attr["value"].tensor.dtype = types_pb2.DT_STRING
    constant.attr["value"].tensor.string_val.append(name.encode())
    for n in range(2):
        y = graph.node.add(name=f"{name}/y{n}", op="Relu", input=[f"{name}/x"])
        y.attr["T"].type = types_pb2.DT_FLOAT
        y.attr[f"_{name}"].s = name.encode()
    unknown = graph.node.add(name=f"{name}/z", op=f"Op{name}", input=[f"{name}/y0", f"^{name}/gone"])
    unknown.attr[name].s = name.encode()
    function = graph.library.function.add()
    function.signature.name = f"f{name}"
    function.node_def.add(name=name, op="NoOp")
    meta.collection_def[name].node_list.value.append(name)
    signature = meta.signature_def[name]
    signature.method_name = name
    signature.inputs[name].name = f"{name}/x:0"
    signature.outputs[name].name = f"{name}/y0:0"
    meta.asset_file_def.add(filename=name).tensor_info.name = f"{name}/x:0"
    return meta


def runnable(name: str) -> graph_pb2.GraphDef:
    """A graph that runs, one of whose constants is text."""
    graph = graph_pb2.GraphDef()
    graph.node.extend(hostile_model(name).graph_def.node[:4])
    return graph


COMMANDS = [
    ["inspect", "M"], ["inspect", "M", "--json"], ["inspect", "M", "--where", "op = Relu"], ["inspect", "M", "--costs"],
    ["inspect", "M", "--tree"], ["validate", "M"], ["validate", "M", "--format", "json"],
    ["validate", "M", "--format", "sarif"], ["validate", "M", "--format", "junit"],
    ["validate", "M", "--format", "github"], ["diff", "M", "T"], ["diff", "M", "T", "--json"],
    ["visualize", "M", "--format", "txt"], ["visualize", "M", "--format", "dot"], ["prune", "G", "--fetch", "no"],
    ["prune", "G", "--fetch", "NAME/y1", "--why", "NAME/x"], ["run", "G", "--fetch", "NAME/text"],
    ["run", "G", "--fetch", "NAME/y1"], ["run", "G", "--feed", "NAME/x=[1,2]", "--fetch", "NAME/y1", "--explain"],
    ["run", "G", "--feed", "NAME/x=[1,2]", "--fetch", "NAME/y1", "--profile"],
    ["optimize", "M", "--passes", "fold_constants", "-o", "PARTS"],
    ["place", "M", "--json"], ["partition", "M", "-o", "PARTS"], ["ops", "NAME"], ["inspect", "NAME"],
    ["run", "G", "--device", "NAME"], ["checkpoint", "inspect", "NAME"],
]  # fmt: skip


def written(args: list[str], name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    files = {
        "M": folder / "model.meta",
        "T": folder / "tame.meta",
        "G": folder / "graph.pb",
        "PARTS": folder / "parts",
    }
    files["M"].write_bytes(hostile_model(name).SerializeToString())
    files["T"].write_bytes(hostile_model("tame").SerializeToString())
    files["G"].write_bytes(runnable(name).SerializeToString())
    code = run([str(files[arg]) if arg in files else arg.replace("NAME", name) for arg in args])
    out, err = capfd.readouterr()
    return code, out, err


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_nothing_reaches_the_terminal(args: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = written(args, HOSTILE, tmp_path, capfd)
    assert code in (0, 1, 2, 3)
    for line in (*out.split("\n"), *err.split("\n")):
        assert printable(line) == line
        assert not line.startswith("error: f")  # a name began a line of its own
    assert err.count("\n") <= 1
    if args[-1] in ("--json", "sarif", "json") and code < 2:
        assert any(HOSTILE in text for text in _strings(json.loads(out)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return [*entries, *(text for inner in entries.values() for text in _strings(inner))]
    if isinstance(value, list):
        return [text for inner in cast("list[Any]", value) for text in _strings(inner)]
    return [value] if isinstance(value, str) else []


def test_json_means_the_same() -> None:
    text = json.dumps({HOSTILE: "\ud800 \U0001f600 é\x85"}, ensure_ascii=False)
    assert json.loads(json_printable(text)) == json.loads(text)
    assert "é" in json_printable(text)


def test_models_in_text_mean_the_same() -> None:
    model = hostile_model(HOSTILE + "\\\u202e \U0001f600 é")
    text = render(model)
    assert printable(text, keep="\n") == text and "é" in text
    assert parse(text, meta_graph_pb2.MetaGraphDef()) == model


# -- completion ------------------------------------------------------------------------------------------

INJECTIONS = [
    "\\$(touch FILE)", "$(touch FILE)", "`touch FILE`", "\\`touch FILE\\`", "a';touch FILE;'", 'a";touch FILE;"',
    "x;touch FILE", "x|touch FILE", "x&touch FILE&", "(touch FILE)", "x)touch FILE", "<(touch FILE)", "\ntouch FILE\n",
    "$'\\n'touch FILE", "${x:=$(touch FILE)}", "*(e:touch FILE:)", "~", "a b", "=ls", "!!", "%1", "\x1b[A",
]  # fmt: skip


@pytest.fixture
def injected(tmp_path: Path) -> Path:
    graph = graph_pb2.GraphDef()
    for injection in INJECTIONS:
        graph.node.add(name=injection.replace("FILE", str(tmp_path / "made")), op="NoOp")
        graph.node.add(name="pre" + injection.replace("FILE", str(tmp_path / "made")), op="NoOp")
    for name in ("prefix", "preview/a.b-c_d"):
        graph.node.add(name=name, op="NoOp")
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def test_only_plain_names_are_offered(injected: Path) -> None:
    assert bash("graphmill", "prune", str(injected), "--fetch", "") == ["prefix", "preview/a.b-c_d"]
    assert bash("graphmill", "prune", str(injected), "--fetch", "pre") == ["prefix", "preview/a.b-c_d"]
    assert not any(shell.is_plain(injection) for injection in INJECTIONS)
    assert bash("graphmill", "prune", str(injected), "--fetch", "\\$(touch x),pre") == []


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_runs_nothing(injected: Path) -> None:
    """What zsh evaluates when Tab is pressed, evaluated by zsh."""
    for typed in ("", "pre", "\\$", "p\\$(touch y)"):
        line = f"graphmill prune {injected} --fetch {typed}"
        offered = "\n".join(ask(_GRAPHMILL_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line))
        script = '_arguments() { eval "ws=( ${1#*: :} )" }; _files() { }; '
        script += f"eval $(cat <<'OFFERED'\n{offered}\nOFFERED\n)"
        subprocess.run(
            ["zsh", "-f", "-c", script], capture_output=True, stdin=subprocess.DEVNULL, check=False, cwd=injected.parent
        )
    assert sorted(path.name for path in injected.parent.iterdir()) == ["graph.pb"]


def test_long_names_do_not_hide_what_an_error_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "n" * 100_000]) == 2
    error = capsys.readouterr().err
    assert error.startswith("graphmill: error: nnn") and error.count("\n") == 1
    assert len(error) < 2100 and "characters) ..." in error


def test_an_error_line_in_a_terminal_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", "inspect", str(tmp_path / f"no{HOSTILE}")],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and printable(done.stderr, keep="\n") == done.stderr
