"""Unfreezing: constants to variables that TensorFlow restores, runs and trains."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import perturbation
from toolkit.errors import UsageError
from toolkit.formats import bundle
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.passes.base import run_pass
from toolkit.passes.freezing.unfreeze import Unfreeze

F = dtypes.float32
X = np.random.default_rng(1).standard_normal((3, 20)).astype(np.float32)


def frozen(path: Path) -> tuple[str, np.ndarray[Any, Any]]:
    """A layer with its weights as constants, one read in a loop of TensorFlow 1, and what it computes of X."""
    rng = np.random.default_rng(2)
    weights, bias = rng.standard_normal((20, 16)).astype(np.float32), rng.standard_normal(16).astype(np.float32)
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 20])})

    def constant(name: str, value: Any, **more: Any) -> Any:
        proto = tensor.from_array(value)
        return graph.add("Const", name, attrs={"dtype": tensor.dtype_of(proto), "value": proto}, **more)

    w, b = constant("net/w", weights), constant("net/b", bias)
    read = graph.add("Identity", "net/w/read", [w], attrs={"T": F, "_class": ["loc:@net/w"]})
    product = graph.add("MatMul", "product", [x, read], attrs={"T": F})
    total = graph.add("BiasAdd", "total", [product, b], attrs={"T": F}, control_inputs=[w])
    shape = constant("shape", np.array([-1, 4, 4], np.int32))
    graph.add("Reshape", "y", [total, shape], attrs={"T": F, "Tshape": dtypes.int32})
    write_model(from_graph(graph), path)
    return str(path), (X @ weights + bias).reshape(-1, 4, 4)


def close(found: Any, wanted: Any, source: str) -> None:
    """What was computed is `wanted` as far as rounding allows in the frozen graph."""
    perturbation.assert_close(read_model(source).graph, ["y:0"], {"x:0": X}, [[found], [wanted]])


@pytest.mark.tensorflow
@pytest.mark.parametrize("ref", [False, True])
def test_tensorflow_restores_and_trains_it(tf: ModuleType, tmp_path: Path, ref: bool) -> None:
    source, wanted = frozen(tmp_path / "f.pb")
    meta = str(tmp_path / "m.meta")
    assert run(["unfreeze", source, "--min-bytes", "16", "-o", meta, *(["--ref"] if ref else [])]) == 0
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph, v1.Session() as session:
        saver = v1.train.import_meta_graph(meta)
        assert sorted(v.op.name for v in v1.trainable_variables()) == ["net/b", "net/w"]
        session.run(v1.global_variables_initializer())
        assert not np.any(session.run("net/b/read:0" if ref else "net/b/Read/ReadVariableOp:0"))
        saver.restore(session, meta.removesuffix(".meta"))
        close(session.run("y:0", {"x:0": X}), wanted, source)
        loss = tf.reduce_sum(graph.get_tensor_by_name("y:0") ** 2)
        step = v1.train.GradientDescentOptimizer(0.01).minimize(loss)
        before = session.run(loss, {"x:0": X})
        session.run(step, {"x:0": X})
        assert session.run(loss, {"x:0": X}) < before
        saver.save(session, str(tmp_path / "trained"))
    again = str(tmp_path / "again.pb")
    assert run(["freeze", meta, "--checkpoint", str(tmp_path / "trained"), "--fetch", "y", "-o", again]) == 0
    assert not [node for node in read_model(again).graph if node.op in ("VariableV2", "VarHandleOp")]


@pytest.mark.tensorflow
@pytest.mark.parametrize("ref", [False, True])
def test_saved_model(tf: ModuleType, tmp_path: Path, ref: bool) -> None:
    source, wanted = frozen(tmp_path / "f.pb")
    folder = str(tmp_path / "model")
    options = ["--min-bytes", "16", "--as", "savedmodel", "--fetch", "y", "-o", folder]
    assert run(["unfreeze", source, *options, *(["--ref"] if ref else [])]) == 0
    loaded = tf.saved_model.load(folder)
    (signature,) = loaded.signatures.values()
    assert len(loaded.variables) == (0 if ref else 2)  # it makes no objects of reference variables
    (found,) = signature(x=tf.constant(X)).values()
    close(found.numpy(), wanted, source)


def test_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is frozen, thawed and frozen again computes the same."""
    source, wanted = frozen(tmp_path / "f.pb")
    meta, again, out = (str(tmp_path / name) for name in ("m.meta", "again.pb", "y.npz"))
    assert run(["unfreeze", source, "-o", meta]) == 0
    assert "1 constant became variables, 1,280 bytes in the checkpoint" in capsys.readouterr().err
    assert run(["freeze", meta, "--fetch", "y", "-o", again]) == 0
    np.savez(tmp_path / "x.npz", x=X)
    assert run(["run", again, "--feed", f"x={tmp_path}/x.npz:x", "--fetch", "y", "--out", out]) == 0
    with np.load(out) as found:
        close(found["y"], wanted, source)


def test_what_is_chosen(tmp_path: Path) -> None:
    graph = read_model(frozen(tmp_path / "f.pb")[0]).graph
    for options, names in (
        ({}, ["net/w"]), ({"min_bytes": 64}, ["net/b", "net/w"]), ({"only": ("shape", "net/b")}, ["net/b", "shape"]),
        ({"min_bytes": 0, "keep": ("net/*",)}, []),
    ):  # fmt: skip
        result = run_pass(Unfreeze(**options), graph)
        assert sorted(result.report["variables"]) == names
        assert {node.name for node in result.graph if node.op == "VarHandleOp"} == set(names)
    with pytest.raises(UsageError, match=r"--only: no constant matches 'net/c'; did you mean"):
        run_pass(Unfreeze(only=("net/c",)), graph)


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = frozen(tmp_path / "f.pb")[0]
    out = str(tmp_path / "m.meta")
    for args, message in (
        (["-o", out, "--min-bytes", "5000"], "no constant of floats has 5,000 bytes or more"),
        (["-o", out, "--as", "graphdef"], "--as: a GraphDef has no place for a saver"),
        ([], "--output: the values need a place too"),
        (["-o", out, "--fetch", "z"], "there is no node 'z' in the graph"),
    ):
        assert run(["unfreeze", source, *args]) == 2
        error = capsys.readouterr().err
        assert message in error and error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.pb"]
    assert not bundle.latest_checkpoint(str(tmp_path))
