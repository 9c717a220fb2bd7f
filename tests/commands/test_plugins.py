"""--plugin: the sample's op through every command, each in a process of its own, as plugins stay for a process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.main import COMMANDS

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
ENVIRONMENT = {"PYTHONPATH": str(SAMPLES.parent), "PATH": ""}
PLUGIN = ["--plugin", str(SAMPLES / "shrink_plugin.py")]


def graphmill(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "commands.main", *args]
    return subprocess.run(program, capture_output=True, text=True, check=False, cwd=cwd, env=ENVIRONMENT)


def ok(*args: str, cwd: Path | None = None) -> str:
    done = graphmill(*args, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    ok("build", str(SAMPLES / "denoise.py"), *PLUGIN, "-o", str(folder / "denoise.meta"))
    return folder / "denoise.meta"


def test_it_trains_through_its_gradient(model: Path) -> None:
    command = ["run", str(model), *PLUGIN, "--init", "--target", "train", "--fetch", "threshold,loss", "--out"]
    values = {}
    for steps in ("1", "60"):
        out = model.parent / f"{steps}.json"
        ok(*command, str(out), "--steps", steps)
        found = json.loads(out.read_text())
        values[steps] = [
            found[key][-1] if isinstance(found[key], list) else found[key] for key in ("threshold", "loss")
        ]
    assert values["60"][1] < 0.7 * values["1"][1]
    assert 0.25 < values["60"][0] < 0.35  # the noise has a standard deviation of 0.3


def test_stages_chain(model: Path) -> None:
    folder = model.parent
    (folder / "cluster.yaml").write_text((SAMPLES / "cluster.yaml").read_text())
    ok("prune", str(model), *PLUGIN, "--fetch", "clean", "-o", "small.meta", cwd=folder)
    ok("place", "small.meta", *PLUGIN, "--cluster", "cluster.yaml", "-o", "placed.meta", cwd=folder)
    ok("partition", "placed.meta", *PLUGIN, "-o", "parts", cwd=folder)
    ok("visualize", "small.meta", *PLUGIN, "-o", "small.dot", cwd=folder)
    ok("diff", "small.meta", "small.meta", *PLUGIN, cwd=folder)
    assert "Shrink" in ok("inspect", "small.meta", *PLUGIN, "--nodes", cwd=folder)
    assert "no findings" in ok("validate", str(model), *PLUGIN, "--runs-on", "cpu")


def test_without_the_plugin_the_op_is_named(model: Path) -> None:
    done = graphmill("validate", str(model))
    assert done.returncode == 1
    said = "unknown op 'Shrink', which comes from the plugin 'shrink_plugin.py', as the file says; add --plugin FOLDER/"
    assert f"node 'Shrink': {said}" in done.stdout
    done = graphmill("run", str(model), "--init", "--fetch", "clean")
    assert done.returncode == 2
    assert f"node 'Shrink': {said}" in done.stderr and done.stderr.count("\n") == 1


def test_files_say_which_plugin_they_need_through_all_stages(model: Path, tmp_path: Path) -> None:
    """Out of a folder that the user names for that it is imported, by the option or the environment."""
    folder = ["--plugin", str(SAMPLES)]
    ok("prune", str(model), *folder, "--fetch", "clean", "-o", "a.pb", cwd=tmp_path)
    (tmp_path / "cluster.yaml").write_text((SAMPLES / "cluster.yaml").read_text())
    ok("place", "a.pb", *folder, "--cluster", "cluster.yaml", "-o", "b.pbtxt", cwd=tmp_path)
    ok("optimize", "b.pbtxt", *folder, "--preset", "canonical", "--fetch", "clean", "-o", "c.json", cwd=tmp_path)
    ok("partition", "c.json", *folder, "-o", "parts", cwd=tmp_path)
    ok("partition", "--join", "parts", "-o", "d.cpb", cwd=tmp_path)
    for name in ("a.pb", "b.pbtxt", "c.json", "d.cpb"):
        assert "plugin 'shrink_plugin.py'" in graphmill("run", name, "--fetch", "clean", cwd=tmp_path).stderr
        ok("run", name, *folder, "--explain", "--fetch", "clean", "--feed", "x=random", cwd=tmp_path)
    environment = {**ENVIRONMENT, "GRAPHMILL_PLUGINS": f"/nowhere:{SAMPLES}"}
    command = [sys.executable, "-m", "commands.main", "validate", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 and "no findings" in done.stdout, done.stdout + done.stderr


def test_functions_say_it_too(tmp_path: Path) -> None:
    text = """
        library { function { signature { name: "f" input_arg { name: "x" type: DT_FLOAT }
            output_arg { name: "y" type: DT_FLOAT } }
          node_def { name: "s" op: "Shrink" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }
            attr { key: "_plugin" value { s: "shrink_plugin.py" } } }
          ret { key: "y" value: "s:y:0" } } }
        node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
            tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
        node { name: "y" op: "f" input: "x" }"""
    (tmp_path / "f.pbtxt").write_text(text)
    done = graphmill("run", "f.pbtxt", "--fetch", "y", cwd=tmp_path)
    assert done.returncode == 2 and "plugin 'shrink_plugin.py'" in done.stderr and done.stderr.count("\n") == 1
    assert "y = 0" in ok("run", "f.pbtxt", "--fetch", "y", "--plugin", str(SAMPLES), cwd=tmp_path)


@pytest.mark.parametrize("name", ["../p.py", "sub/p.py", "p", "", "p.py\n", ".", "q.py"])
def test_nothing_else_is_imported_because_a_file_says_so(name: str, tmp_path: Path) -> None:
    (tmp_path / "allowed" / "sub").mkdir(parents=True)
    for path in ("p.py", "p", "allowed/sub/p.py", "q.py"):
        (tmp_path / path).write_text("raise SystemExit('imported')")
    quoted = json.dumps(name)
    (tmp_path / "g.pbtxt").write_text(
        f'node {{ name: "x" op: "Strange" attr {{ key: "_plugin" value {{ s: {quoted} }} }} }}'
    )
    done = graphmill("validate", "g.pbtxt", "--plugin", "allowed", cwd=tmp_path)
    assert done.returncode == 1 and "unknown op 'Strange'" in done.stdout and "imported" not in done.stderr


@pytest.mark.tensorflow
def test_tensorflow_keeps_what_says_it(tf: Any) -> None:
    graph_def = tf.compat.v1.GraphDef()
    node = graph_def.node.add(name="x", op="NoOp")
    node.attr["_plugin"].s = b"shrink_plugin.py"
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    assert graph.as_graph_def().node[0].attr["_plugin"].s == b"shrink_plugin.py"


def test_the_op_is_listed_with_where_it_comes_from() -> None:
    report = json.loads(ok("ops", "Shrink", "--json", *PLUGIN))
    assert report["plugin"] == PLUGIN[1] and report["gradient"] == "function" and report["shape_function"]
    assert [k["label"] for k in report["kernels"]] == ["plugin"]
    text = ok("ops", "Shrink", *PLUGIN)
    assert "mode: string in {soft, hard} = soft" in text and f"plugin    {PLUGIN[1]}" in text
    assert json.loads(ok("ops", "Relu", "--json"))["plugin"] is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "p.py: there is no such plugin file"),
        ("import nothing_like_that", "p.py:1: the plugin failed: ModuleNotFoundError"),
        ("from toolkit.kernels.plugins import *\ndefine_op('Relu')", "p.py:2: the op 'Relu' exists already"),
        ("from toolkit.kernels.plugins import *\n@simple('Nop')\ndef f(): pass", "p.py:2: a kernel for the unknown op"),
    ],
)
def test_a_bad_plugin_is_one_line(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "p.py").write_text(text)
    done = graphmill("ops", "Relu", "--plugin", "p.py", cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout


@pytest.mark.parametrize(
    "command", [*(name for name in COMMANDS if name not in ("checkpoint", "cluster", "help")), "cluster up"]
)
def test_every_command_that_reads_graphs_takes_plugins(command: str) -> None:
    assert "--plugin FILE.py" in ok(*command.split(), "--help")


def test_nothing_is_imported_without_a_plugin(tmp_path: Path) -> None:
    """Reading a graph of known ops looks for no installed plugins and imports neither numpy nor the registrations."""
    (tmp_path / "g.pbtxt").write_text('node { name: "x" op: "NoOp" }')
    code = (
        "import sys, commands.main as main\n"
        "code = main.run(['inspect', 'g.pbtxt', '--nodes'])\n"
        "print(code, [n for n in ('toolkit.kernels.plugins', 'numpy', 'importlib.metadata') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=ENVIRONMENT
    )
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr
