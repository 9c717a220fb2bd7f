"""graphmill diff: renamed, added, removed and changed nodes, signatures, functions, weights; text and JSON."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from schemas import graph_pb2
from tests import models
from tests.passes import validate_graphs as graphs
from toolkit.graph.attrs import FuncRef, encode
from toolkit.graph.shape import Shape

ROOT = Path(__file__).resolve().parent.parent.parent
Make = Callable[[], Any]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(old: Any, new: Any) -> None:
    Path("old.pb").write_bytes(old.SerializeToString())
    Path("new.pb").write_bytes(new.SerializeToString())


def text(capsys: pytest.CaptureFixture[str], *options: str, code: int = 1) -> str:
    assert run(["diff", "old.pb", "new.pb", *options]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def report(capsys: pytest.CaptureFixture[str], *options: str, code: int = 1) -> Any:
    return json.loads(text(capsys, *options, "--json", code=code))


def changed(make: Make, *defects: Callable[[Any], object]) -> None:
    """Write a model and its copy with changes."""
    new = make()
    for defect in defects:
        defect(new)
    write(make(), new)


def rename(graph: Any, old: str, new: str) -> None:
    """Rename a node together with its consumers' inputs."""
    for node in graph.node:
        if node.name == old:
            node.name = new
        for i, name in enumerate(node.input):
            caret = "^" if name.startswith("^") else ""
            base, colon, index = name.lstrip("^").partition(":")
            if base == old:
                node.input[i] = caret + new + colon + index
        for key in node.attr:
            for i, value in enumerate(node.attr[key].list.s):
                if value == b"loc:@" + old.encode():
                    node.attr[key].list.s[i] = b"loc:@" + new.encode()


# -- nodes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [graphs.net, graphs.loop, graphs.calls, graphs.meta, graphs.saved])
def test_equal_models(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    write(make(), make())
    assert text(capsys, code=0) == ""
    assert report(capsys, code=0)["equal"] is True


def test_attributes(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        node = graphs.node(g, "conv/out")
        node.attr["padding"].s = b"VALID"
        node.attr["dilations"].list.i.extend([1, 1, 1, 1])  # the default, spelled out
        node.device = "/device:GPU:0"

    changed(graphs.net, change)
    assert text(capsys).splitlines() == [
        "--- old.pb",
        "+++ new.pb",
        "",
        "nodes: 0 removed, 0 added, 0 renamed, 1 changed, 10 the same",
        "  ~ conv/out (Conv2D) device: none -> /device:GPU:0",
        "  ~ conv/out (Conv2D) attr.padding: SAME -> VALID",
    ]
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert nodes["changed"] == [
        {
            "name": "conv/out",
            "new_name": "conv/out",
            "op": "Conv2D",
            "changes": [
                {"what": "device", "old": "none", "new": "/device:GPU:0"},
                {"what": "attr.padding", "old": "SAME", "new": "VALID"},
            ],
        }
    ]
    assert len(report(capsys, "--ignore", "devices")["graphs"][0]["nodes"]["changed"][0]["changes"]) == 1


def test_added_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        g.node.remove(graphs.node(g, "relu"))
        graphs.node(g, "flat").input[0] = "conv/biased"
        graphs.add(g, "ArgMax", "class", ["prob", "axis"], T=graphs.F)
        graphs.const(g, "axis", [1], [], graphs.I)

    changed(graphs.net, change)
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert nodes["removed"] == [{"name": "relu", "op": "Relu"}]
    assert nodes["added"] == [{"name": "class", "op": "ArgMax"}, {"name": "axis", "op": "Const"}]
    assert [(c["name"], c["changes"]) for c in nodes["changed"]] == [
        ("flat", [{"what": "input 0", "old": "relu:0", "new": "conv/biased:0"}])
    ]
    assert nodes["renamed"] == []


@pytest.mark.parametrize("name", ["x", "conv/kernel", "conv/out", "relu", "flat/shape", "logits", "prob"])
def test_one_renamed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    changed(graphs.net, lambda g: rename(g, name, "another/name"))
    found = report(capsys)["graphs"][0]
    assert [(r["name"], r["new_name"]) for r in found["nodes"]["renamed"]] == [(name, "another/name")]
    assert not found["nodes"]["changed"] and not found["nodes"]["added"] and not found["nodes"]["removed"]
    assert report(capsys, "--ignore", "names", code=0)["equal"]


@pytest.mark.parametrize("make", [graphs.net, graphs.loop])
def test_all_renamed(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    new = make()
    for number, node in enumerate(list(new.node)):
        rename(new, node.name, f"n{number}")
    write(make(), new)
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert [int(r["new_name"][1:]) for r in nodes["renamed"]] == list(range(len(new.node)))
    assert not nodes["changed"] and not nodes["added"] and not nodes["removed"]


def test_renamed_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        graphs.node(g, "conv/out").attr["padding"].s = b"VALID"
        rename(g, "conv/out", "conv/convolution")

    changed(graphs.net, change)
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert nodes["renamed"] == [{"name": "conv/out", "new_name": "conv/convolution", "op": "Conv2D"}]
    assert [c["new_name"] for c in nodes["changed"]] == ["conv/convolution"]


def test_layers_that_look_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten equal blocks under another scope: which is which follows from their order."""

    def blocks(scope: str) -> graph_pb2.GraphDef:
        g = graphs.versions(graph_pb2.GraphDef())
        last = graphs.add(g, "Placeholder", "x", dtype=graphs.F, shape=Shape([4, 4])).name
        for number in range(10):
            graphs.const(g, f"{scope}_{number}/w", [1.0], [4, 4])
            graphs.add(g, "MatMul", f"{scope}_{number}/mm", [last, f"{scope}_{number}/w"], T=graphs.F)
            last = graphs.add(g, "Relu", f"{scope}_{number}/relu", [f"{scope}_{number}/mm"], T=graphs.F).name
        return g

    write(blocks("block"), blocks("layer"))
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert {(r["name"], r["new_name"]) for r in nodes["renamed"]} == {
        (f"block_{n}/{part}", f"layer_{n}/{part}") for n in range(10) for part in ("w", "mm", "relu")
    }
    assert not nodes["changed"] and not nodes["added"] and not nodes["removed"]


def test_another_op_of_the_same_name(capsys: pytest.CaptureFixture[str]) -> None:
    changed(graphs.net, lambda g: setattr(graphs.node(g, "relu"), "op", "Elu"))
    nodes = report(capsys)["graphs"][0]["nodes"]
    assert nodes["changed"][0]["changes"][0] == {"what": "op", "old": "Relu", "new": "Elu"}
    assert not nodes["added"]


def test_control_inputs_and_order(capsys: pytest.CaptureFixture[str]) -> None:
    def shuffle(g: Any) -> None:
        nodes = list(reversed(g.node))
        copies = [type(n).FromString(n.SerializeToString()) for n in nodes]
        del g.node[:]
        g.node.extend(copies)

    changed(graphs.net, shuffle)
    assert text(capsys, code=0) == ""
    changed(graphs.net, lambda g: graphs.node(g, "prob").input.append("^x"))
    assert "~ prob (Softmax) control inputs: none -> x" in text(capsys)
    assert text(capsys, "--ignore", "control", code=0) == ""


# -- values ----------------------------------------------------------------------------------------------


def test_constants_with_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        value = graphs.node(g, "dense/kernel").attr["value"].tensor
        array = np.frombuffer(value.tensor_content, np.float32).copy()
        array[7] += 0.25
        array[9] += 1e-5
        value.tensor_content = array.tobytes()

    changed(graphs.net, change)
    assert "dense/kernel (Const) attr.value: 2,560 values -> 2 of them differ, by at most 0.25" in text(capsys)
    assert "1 of them differ" in text(capsys, "--atol", "1e-4")
    assert text(capsys, "--atol", "0.3", code=0) == ""


def test_values_written_in_another_way(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        value = graphs.node(g, "conv/bias").attr["value"].tensor
        del value.float_val[:]
        value.tensor_content = struct.pack("<4f", 0.5, 0.5, 0.5, 0.5)

    changed(graphs.net, change)
    assert text(capsys, code=0) == ""


def checkpointed(folder: str, **changes: Any) -> str:
    path = Path(folder)
    (path / "variables").mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(graphs.saved().SerializeToString())
    graphs.write_checkpoint(path / "variables" / "variables", **changes)
    return folder


def test_weights(capsys: pytest.CaptureFixture[str]) -> None:
    names = [checkpointed("a"), checkpointed("b", w=np.full((4, 2), 0.5, np.float32), z=np.zeros(1, np.float32))]
    assert run(["diff", *names]) == 1
    out = capsys.readouterr().out
    assert "  ~ w: float32 [4, 2] -> 8 elements differ, by at most 0.5" in out.replace("[4,2]", "[4, 2]")
    assert "  ~ z: absent -> float32" in out
    assert run(["diff", *names, "--ignore", "weights"]) == 0
    capsys.readouterr()
    assert run(["diff", *names, "--json"]) == 1
    assert [change["what"] for change in json.loads(capsys.readouterr().out)["weights"]] == ["w", "z"]
    checkpointed("c", w=np.full((4, 2), 1e-7, np.float32))
    assert run(["diff", "a", "c", "--atol", "1e-6"]) == 0


# -- functions, signatures, surroundings -----------------------------------------------------------------


def test_function_bodies(capsys: pytest.CaptureFixture[str]) -> None:
    changed(graphs.calls, lambda g: setattr(graphs.node(g.library.function[2], "neg"), "op", "Abs"))
    found = report(capsys)["graphs"][0]["nodes"]
    assert list(found["functions"]["changed"]) == ["negative"]
    assert "function negative" in text(capsys)
    assert text(capsys, "--ignore", "functions", code=0) == ""


def test_functions_with_new_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """An exporter numbers its functions anew; callers follow, and nothing but the names differs."""

    def numbered(number: int) -> Any:
        g = graphs.calls()
        for function in g.library.function:
            function.signature.name += f"_{number}"
        for nodes in (g.node, *(f.node_def for f in g.library.function)):
            for node in nodes:
                for key in node.attr:
                    if node.attr[key].HasField("func"):
                        node.attr[key].func.name += f"_{number}"
        return g

    write(numbered(7), numbered(12))
    found = report(capsys)["graphs"][0]["nodes"]
    assert len(found["functions"]["renamed"]) == 4
    assert not found["functions"]["changed"] and not found["changed"]
    assert text(capsys, "--ignore", "names", code=0) == ""


def test_another_function(capsys: pytest.CaptureFixture[str]) -> None:
    def change(g: Any) -> None:
        graphs.node(g, "if").attr["else_branch"].CopyFrom(encode(FuncRef("double")))
        g.library.function.remove(g.library.function[2])

    changed(graphs.calls, change)
    found = report(capsys)["graphs"][0]["nodes"]
    assert found["functions"]["removed"] == ["negative"]
    assert found["changed"][0]["changes"] == [{"what": "attr.else_branch", "old": "negative", "new": "double"}]


def test_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    def change(m: Any) -> None:
        signature = m.signature_def["serving_default"]
        graphs.info(signature.inputs, "x", "x:0", graphs.F, Shape([1, 4]))
        graphs.info(signature.outputs, "z", "y:0", graphs.F, Shape([None, 2]))
        m.signature_def["predict"].CopyFrom(signature)

    changed(graphs.meta, change)
    found = report(capsys)["graphs"][0]["signatures"]
    assert found["added"] == ["predict"]
    assert [c["what"] for c in found["changed"]["serving_default"]] == ["inputs.x", "outputs.z"]
    assert len(found["breaking"]) == 1 and "input 'x'" in found["breaking"][0]
    assert "! breaks callers: input 'x' of signature 'serving_default' had shape" in text(capsys)


def test_a_signature_follows_its_node(capsys: pytest.CaptureFixture[str]) -> None:
    def change(m: Any) -> None:
        rename(m.graph_def, "y", "result")
        m.signature_def["serving_default"].outputs["y"].name = "result:0"

    changed(graphs.meta, change)
    found = report(capsys)["graphs"][0]
    assert [r["name"] for r in found["nodes"]["renamed"]] == ["y"]
    assert found["signatures"] == {"added": [], "removed": [], "changed": {}, "breaking": []}


def test_surroundings_and_versions(capsys: pytest.CaptureFixture[str]) -> None:
    def change(m: Any) -> None:
        m.collection_def["losses"].node_list.value.append("y")
        m.ClearField("saver_def")
        m.graph_def.versions.producer = 2000

    changed(graphs.meta, change)
    found = report(capsys)["graphs"][0]
    assert [c["what"] for c in found["surroundings"]] == ["collection losses", "saver"]
    assert found["nodes"]["versions"] == [{"what": "producer", "old": "2474", "new": "2000"}]


def test_graphs_by_tags(capsys: pytest.CaptureFixture[str]) -> None:
    def change(m: Any) -> None:
        other = m.meta_graphs.add()
        other.CopyFrom(graphs.meta())
        other.meta_info_def.tags.append("train")

    changed(graphs.saved, change)
    found = report(capsys)["graphs"]
    assert [(g["tags"], g["side"]) for g in found] == [("serve", "both"), ("serve,train", "new")]
    assert "only in the new model" in text(capsys)


# -- usage, whole models, time ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["old.pb", "gone.pb"], "gone.pb"),
        (["-", "-"], "standard input holds one model"),
        (["old.pb", "new.pb", "--ignore", "name"], "there is no 'name' to ignore; did you mean 'names'"),
        (["old.pb", "new.pb", "--rtol", "-1"], "--rtol must not be negative"),
        (["old.pb", "bad.pb"], "bad.pb"),
    ],
)
def test_bad_usage(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(graphs.net(), graphs.net())
    Path("bad.pb").write_bytes(b"\x00\x01")
    assert run(["diff", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1


def test_a_graph_and_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    from google.protobuf import text_format

    write(graphs.net(), graphs.net())
    Path("new.pb").write_text(text_format.MessageToString(graphs.net()))
    assert text(capsys, code=0) == ""


@pytest.mark.tensorflow
def test_two_exports_of_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(models.saved_model_keras().path)
    assert run(["diff", path, path]) == 0
    frozen = str(models.mobilenet_v2().path)
    assert run(["diff", frozen, frozen]) == 0
    assert run(["diff", str(models.lenet_ref().path), str(models.lenet_resource().path)]) == 1
    out = capsys.readouterr().out
    assert "  - conv1/kernel/read (Identity)" in out
    assert "~ conv1/kernel (VarHandleOp) op: VariableV2 -> VarHandleOp" in out


def test_a_hundred_thousand_nodes(tmp_path: Path) -> None:
    def big(scope: str) -> bytes:
        graph = graph_pb2.GraphDef()
        graphs.add(graph, "Placeholder", "x", dtype=graphs.F)
        last = "x"
        for number in range(1, 100_000):
            node = graph.node.add(name=f"{scope}/n{number}", op="AddV2" if number % 2 else "Mul", input=[last, "x"])
            node.attr["T"].type = 1  # type: ignore[assignment]
            last = node.name
        return graph.SerializeToString()

    Path("a.pb").write_bytes(big("net"))
    Path("b.pb").write_bytes(big("model"))
    paths = [str(tmp_path / name) for name in ("a.pb", "b.pb")]
    command = [sys.executable, "-m", "commands.main", "diff", *paths]
    assert subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 1
    done = subprocess.run(
        [sys.executable, "-m", "commands.main", "diff", paths[0], paths[0]], capture_output=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
def test_numbers_that_are_not_finite(dtype: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Their differences overflow and are NaN; NumPy's warnings, which would be errors here, reach nobody."""
    from toolkit.formats.arrays.tensor import from_array

    most = np.finfo(dtype).max
    values = np.array([np.nan, np.inf, -np.inf, most, -most, 0, 1], dtype)
    for name, array in (("old", values), ("new", values[::-1].copy())):
        graph = graph_pb2.GraphDef()
        node = graph.node.add(name="c", op="Const")
        proto = from_array(array)
        node.attr["dtype"].type = proto.dtype
        node.attr["value"].tensor.CopyFrom(proto)
        Path(f"{name}.pb").write_bytes(graph.SerializeToString())
        np.savez(f"{name}.npz", x=array)
    assert "7 values" in text(capsys)
    assert run(["checkpoint", "diff", "old.npz", "new.npz"]) == 1
    assert capsys.readouterr().err == ""


def test_checkpoints_are_compared_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones(3, np.float32))
    old, new = str(tmp_path / "a.npz"), str(tmp_path / "b")
    assert run(["checkpoint", "convert", old, new]) == 0
    for first, second in ((old, new), (new, new), (new, f"{new}.index")):
        capsys.readouterr()
        assert run(["diff", first, second]) == 2
        told = capsys.readouterr().err
        assert told.endswith(f"these are checkpoints, not models; try: graphmill checkpoint diff {first} {second}\n")
        assert run(["checkpoint", "diff", first, second]) == 0
