"""graphmill inspect --nodes, --where, --path, --tree, --costs."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commands.main import run
from tests import models
from tests.passes import validate_graphs as graphs


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    out: dict[str, str] = {}
    for name in ("net", "loop", "calls", "meta", "saved"):
        path = tmp_path / f"{name}.pb"
        path.write_bytes(getattr(graphs, name)().SerializeToString())
        out[name] = str(path)
    return out


def inspect(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["inspect", *args]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def report(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    return json.loads(inspect(capsys, *args, "--json"))


def test_where(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    (node,) = report(capsys, files["net"], "--where", "op = Conv2D and attr.padding = SAME and under conv")
    assert node["name"] == "conv/out"
    assert node["inputs"] == ["x:0", "conv/kernel:0"]
    assert node["outputs"] == [{"dtype": "float32", "shape": [None, 8, 8, 4]}]
    assert (node["fan_in"], node["fan_out"], node["function"]) == (2, 1, None)
    assert node["attrs"]["padding"] == "SAME"
    assert node["attrs"]["strides"] == "[1, 1, 1, 1]"
    assert inspect(capsys, files["net"], "--where", "op = Relu") == "relu  Relu  float32[?,8,8,4]  1 -> 1\n1 node\n"
    assert inspect(capsys, files["net"], "--where", "op = Tanh") == "0 nodes\n"


def test_nodes_of_functions(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, files["calls"], "--nodes")
    inner = [f"{n['function']}:{n['name']}" for n in found if n["function"]]
    assert inner == ["double:sum", "four:once", "four:twice", "negative:neg", "test:limit", "test:less"]
    assert "negative:neg" in inspect(capsys, files["calls"], "--where", "function = negative")
    assert len(report(capsys, files["calls"], "--where", "function = ''")) == 6


def test_path(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, files["net"], "--path", "x", "relu")
    assert [step["name"] for step in found] == ["x", "conv/out", "conv/biased", "relu"]
    text = inspect(capsys, files["loop"], "--path", "body", "one:0")
    assert text == "body  Identity  ^ control\none   Const\n"
    assert run(["inspect", files["net"], "--path", "prob", "x"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "no path leads from 'prob' to 'x'" in captured.err


def test_tree(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    root = report(capsys, files["net"], "--tree")
    assert root["nodes"] == 11
    assert root["parameters"] == 108 + 4 + 2560
    children = {child["name"]: child for child in root["children"]}
    assert set(children) == {"conv", "dense", "flat"}
    # 8 x 8 x 4 outputs of 3 x 3 x 3 products and sums, and the bias
    assert children["conv"]["flops"] == 2 * 8 * 8 * 4 * 27 + 8 * 8 * 4
    assert children["dense"]["parameters"] == 2560
    text = inspect(capsys, files["net"], "--tree")
    assert text.splitlines()[0].split() == ["scope", "nodes", "parameters", "FLOPs", "bytes"]
    assert "  conv" in text
    assert len(inspect(capsys, files["net"], "--tree", "--depth", "0").splitlines()) == 2


def test_costs(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, files["net"], "--costs", "--batch", "7")
    assert found["by_op"]["MatMul"]["flops"] == 2 * 7 * 256 * 10
    assert found["by_op"]["Conv2D"]["flops"] == 7 * 2 * 8 * 8 * 4 * 27
    assert next(iter(found["by_op"])) == "Conv2D"
    # the convolution and its bias, or the bias and its relu, are alive at once
    assert found["peak_bytes"] == 2 * 7 * 8 * 8 * 4 * 4
    assert found["weight_bytes"] == 4 * (108 + 4 + 2560 + 2)
    assert found["largest_constants"][0]["name"] == "dense/kernel"
    text = inspect(capsys, files["net"], "--costs")
    assert "largest constants\n  dense/kernel " in text


def test_costs_follow_calls(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, files["calls"], "--costs")
    # `four` doubles twice, the loop's body once; the sides of the branch cost the same: the first by name counts
    assert (found["by_op"]["AddV2"]["flops"], found["by_op"]["Neg"]["flops"]) == (3, 1)
    assert report(capsys, files["saved"], "--costs")["signatures"]["serving_default"]["flops"] == 2 * 4 * 2 + 2


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0"])
def test_operations_of_networks(name: str, tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Convolutions and matrix products against TensorFlow's own profiler, which uses the same convention."""
    from tensorflow.python.framework import ops

    source = getattr(models, name)()
    graph_def = tf.compat.v1.GraphDef.FromString(source.path.read_bytes())
    for node in graph_def.node:
        if node.op == "Placeholder":
            node.attr["shape"].shape.dim[0].size = 1
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        theirs = 0
        for operation in graph.get_operations():
            if operation.type in ("Conv2D", "DepthwiseConv2dNative", "MatMul"):
                theirs += ops.get_stats_for_node_def(graph, operation.node_def, "flops").value
    found = report(capsys, str(source.path), "--costs")
    ours = sum(found["by_op"].get(op, {"flops": 0})["flops"] for op in ("Conv2D", "DepthwiseConv2dNative", "MatMul"))
    assert ours == theirs > 0


@pytest.mark.tensorflow
def test_views_of_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    names = (
        "lenet_ref",
        "saved_model_keras",
        "saved_model_tf1",
        "saved_model_tf2",
        "control_flow_v1",
        "control_flow_v2",
    )
    for name in names:
        path = str(getattr(models, name)().path)
        for view in (["--nodes"], ["--tree"], ["--costs"], ["--where", "fan-out = 0"]):
            assert inspect(capsys, path, *view)
    path = str(models.saved_model_tf1().path)
    assert report(capsys, path, "--nodes", "--tags", "serve,train") != report(capsys, path, "--nodes")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--where", "op = "], "the query 'op = ' is wrong at column 6: expected a value"),
        (["--where", "after relau"], "the query names 'relau', which is no node of the graph; did you mean 'relu'"),
        (["--path", "x", "porb"], "there is no node 'porb' in the graph; did you mean 'prob'"),
        (["--tree", "--costs"], "--tree and --costs are two views"),
        (["--costs", "--batch", "0"], "--batch"),
    ],
)
def test_bad_usage(args: list[str], message: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", files["net"], *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and message in captured.err and captured.err.count("\n") == 1
