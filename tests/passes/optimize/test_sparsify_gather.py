"""Weights that are mostly 0 in hash tables: TensorFlow looks up what it gathered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.passes.graphs import from_tensorflow, plain_config, to_tensorflow
from tests.passes.optimize.oracle import changed, kept, made, ops, transformed, unchanged
from toolkit.errors import GraphmillError, UsageError
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.quantization.sparsify_gather import SparsifyGather
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import TABLE
from toolkit.runtime.session import Session

KEYS = np.array([[3, 0, 1], [49, 7, 3]])


def weights(rank: int = 2, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.where(rng.random(50) < 0.2, rng.normal(size=50), 0).astype(np.float32)
    return found.reshape(50, 1) if rank == 2 else found


def gathering(v1: Any, values: Any, keys: str, old: bool) -> None:
    x = v1.placeholder(keys, [None, 3], name="x")
    w = v1.identity(v1.constant(values, name="w"))
    if old:
        y = v1.raw_ops.Gather(params=w, indices=x, name="y")
    else:
        y = v1.raw_ops.GatherV2(params=w, indices=x, axis=0, name="y") * v1.raw_ops.GatherV2(
            params=w, indices=x, axis=0
        )
    v1.identity(y, name="out")


def looked_up(tf: Any, graph: Graph, keys: np.ndarray, init: str | None) -> list[Any]:
    """What TensorFlow and this runtime look up."""
    dtype = graph.node("x").attr("dtype").numpy
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        with tf.compat.v1.Session(graph=imported, config=plain_config(tf)) as session, Session(graph.copy()) as ours:
            if init:
                session.run(init)
                ours.run(init)
            return [each.run("out:0", {"x:0": keys.astype(dtype)}) for each in (session, ours)]


@pytest.mark.tensorflow
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("keys", ["int32", "int64"])
@pytest.mark.parametrize("old", [True, False])
def test_what_is_gathered(tf: Any, rank: int, keys: str, old: bool) -> None:
    graph = made(tf, lambda v1: gathering(v1, weights(rank), keys, old))
    result = changed(SparsifyGather(kept=kept("out")), graph)
    assert result.report["initializers"] == ["group_deps"]
    assert result.report["sparsified"]["y"] == [50, int((weights() != 0).sum())]
    found = ops(result.graph)
    assert found.count("HashTableV2") == 1 and not {"Gather", "GatherV2"} & set(found)
    want = looked_up(tf, graph, KEYS, None)[0]
    for value in looked_up(tf, result.graph, KEYS, "group_deps"):
        np.testing.assert_array_equal(value, want)
    unchanged(SparsifyGather(kept=kept("out")), result.graph)


@pytest.mark.tensorflow
def test_as_the_tool_did(tf: Any) -> None:
    """Its own result does not load for keys of 32 bits, and has tables of the first kind."""
    graph = made(tf, lambda v1: gathering(v1, weights(), "int64", True))
    theirs = transformed(graph, "x", "out", "sparsify_gather(group_init_node=fill)")
    result = changed(SparsifyGather(group_init_node="fill", kept=kept("out")), graph)
    assert [op.removesuffix("V2") for op in ops(result.graph)] == ops(theirs)
    assert [n.name for n in result.graph if n.op != "Placeholder"].sort() == [n.name for n in theirs].sort()
    for a, b in zip(looked_up(tf, result.graph, KEYS, "fill"), looked_up(tf, theirs, KEYS, "fill"), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.tensorflow
@pytest.mark.parametrize("resource", [True, False])
def test_variables(tf: Any, tmp_path: Path, resource: bool) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as program:
        x = v1.placeholder("int64", [None, 3], name="x")
        w = v1.get_variable("w", initializer=weights(), use_resource=resource)
        v1.identity(v1.gather(w, x), name="out")
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            prefix = saver.save(session, str(tmp_path / "model"))
            want = session.run("out:0", {"x:0": KEYS})
    graph = from_tensorflow(program)
    result = changed(SparsifyGather(prefix, kept=kept("out")), graph).graph
    small = optimize(result, [TABLE["remove_unused"].load()()], kept("out", "group_deps")).graph
    assert not {"VariableV2", "VarHandleOp"} & set(ops(small))
    for value in looked_up(tf, small, KEYS, "group_deps"):
        np.testing.assert_array_equal(value, want)
    unchanged(SparsifyGather(kept=kept("out")), graph)  # nobody says what the values are
    with pytest.raises(GraphmillError, match="nothing"):
        SparsifyGather(str(tmp_path / "nothing"), kept=kept("out")).apply(graph)


@pytest.mark.tensorflow
def test_what_stays(tf: Any) -> None:
    rows = np.ones((4, 2), np.float32)
    for build in (
        lambda v1, x: v1.gather(v1.constant(rows), x),
        lambda v1, x: v1.gather(v1.constant(rows[:, :1].astype(np.float64)), x),
        lambda v1, x: v1.gather(v1.constant(rows[:1]), v1.zeros_like(x), axis=1),
        lambda v1, x: v1.gather(v1.placeholder_with_default(rows[:, :1], [4, 1]), x),
    ):
        graph = made(
            tf, lambda v1, build=build: v1.identity(build(v1, v1.placeholder("int64", [None], name="x")), name="out")
        )
        unchanged(SparsifyGather(kept=kept("out")), graph)
    with pytest.raises(UsageError, match="group_init_node"):
        SparsifyGather(group_init_node="")


@pytest.mark.tensorflow
def test_nothing_but_zeros(tf: Any) -> None:
    graph = made(tf, lambda v1: gathering(v1, np.zeros((50, 1), np.float32), "int64", True))
    result = changed(SparsifyGather(kept=kept("out")), graph)
    for value in looked_up(tf, result.graph, KEYS, "group_deps"):
        assert not value.any()


@pytest.mark.tensorflow
@pytest.mark.parametrize("initialised", [True, False])
def test_a_saved_model_fills_its_tables(tf: Any, tmp_path: Path, initialised: bool) -> None:
    v1 = tf.compat.v1
    source, dest = str(tmp_path / "model"), str(tmp_path / "sparse")
    with tf.Graph().as_default():
        x = v1.placeholder("int64", [None, 3], name="x")
        y = v1.gather(v1.constant(weights()), x, name="y")
        builder = v1.saved_model.Builder(source)
        with v1.Session() as session:
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            main = v1.no_op(name="begin") if initialised else None
            builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature}, main_op=main)
            want = session.run(y, {x: KEYS})
        builder.save()
    assert run(["optimize", source, "--passes", "sparsify_gather,remove_unused", "-o", dest]) == 0
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, ["serve"], dest)
        np.testing.assert_array_equal(session.run("y:0", {"x:0": KEYS}), want)
    loaded = tf.saved_model.load(dest).signatures["serving_default"]
    np.testing.assert_array_equal(loaded(x=tf.constant(KEYS))["y"].numpy(), want)
    np.save(tmp_path / "x.npy", KEYS)
    out = str(tmp_path / "out.npz")
    assert run(["run", dest, "--feed", f"x={tmp_path / 'x.npy'}", "--fetch", "y", "--out", out]) == 0
    np.testing.assert_array_equal(next(iter(np.load(out).values())), want)
