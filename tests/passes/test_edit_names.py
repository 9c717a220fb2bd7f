"""Edits of names, which signatures, collections and contexts of control flow follow; beside TensorFlow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import models
from tests.passes.edits import X, edited, small
from tests.passes.graphs import F, random_dag
from toolkit.formats.models.metagraph import to_proto
from toolkit.formats.models.model import read_model, write_model
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.edit.apply import apply_edits
from toolkit.passes.edit.table import Step, kinds


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_renaming_there_and_back_gives_the_same_bytes(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng)
    for node in rng.sample(graph.nodes, 6):
        node.attrs["_class"] = [f"loc:@{rng.choice(graph.nodes).name}"]
    meta = MetaGraph(graph)
    names = [node.name for node in graph]
    meta.signatures["s"] = Signature({"x": TensorInfo("x:0", F, Shape([2]))}, {})
    meta.collections["losses"] = [f"{rng.choice(names)}:0", rng.choice(names)]
    before = to_proto(meta).SerializeToString(deterministic=True)
    there: list[Step] = []
    back: list[Step] = []
    now = list(names)
    for _ in range(rng.randint(1, 6)):
        kind = kinds()["rename_nodes"]
        if rng.random() < 0.3:
            scope = f"s{rng.randint(0, 9)}"
            there.append(Step(kinds()["rename_scope"](scope="", to=scope)))  # type: ignore[call-arg]
            back.append(Step(kinds()["rename_scope"](scope=scope, to="")))  # type: ignore[call-arg]
            now = [f"{scope}/{name}" for name in now]
        else:
            position = rng.randrange(len(now))
            old, new = now[position], rng.choice(["", "t/"]) + f"m{rng.randint(0, 10**9)}"
            there.append(Step(kind(nodes=old, to=new)))  # type: ignore[call-arg]
            back.append(Step(kind(nodes=new, to=old)))  # type: ignore[call-arg]
            now[position] = new
    middle = apply_edits(meta, there)
    assert [node.name for node in middle.meta.graph] == now
    where = dict(zip(names, now, strict=True))
    assert middle.meta.signatures["s"].inputs["x"].name == f"{where['x']}:0"
    after = apply_edits(middle.meta, back[::-1]).meta
    assert to_proto(after).SerializeToString(deterministic=True) == before
    assert to_proto(apply_edits(meta, there + back[::-1]).meta).SerializeToString(deterministic=True) == before
    assert to_proto(meta).SerializeToString(deterministic=True) == before  # what came in is not changed


def test_two_nodes_exchange_their_names() -> None:
    graph = small()
    made = edited(
        graph, "- rename_nodes: {nodes: 're:^(h)|(y)$', to: '\\1\\2'}\n- rename_nodes: {nodes: h, to: t}"
    ).meta
    assert [node.name for node in made.graph] == ["x", "t", "pair", "y", "unused"]
    text = """
    - rename_nodes: {nodes: h, to: t}
    - rename_nodes: {nodes: y, to: h}
    - rename_nodes: {nodes: t, to: y}
    """
    made = edited(graph, text).meta
    assert [(node.name, node.op) for node in made.graph][1::2] == [("y", "Tanh"), ("h", "AddV2")]
    assert made.graph.node("pair").inputs[0].name == "y:0"


def test_shared_resources_keep_their_name() -> None:
    """A queue without a shared name is found under its node's; another node shares it by that name."""
    graph = Graph()
    attrs = {"component_types": [F], "shapes": [Shape([])], "capacity": 3, "container": "", "shared_name": ""}
    graph.add("FIFOQueueV2", "q", attrs=attrs)
    graph.add("FIFOQueueV2", "same", attrs={**attrs, "shared_name": "q"})
    made = edited(graph, "- rename_nodes: {nodes: q, to: r}").meta.graph
    assert made.node("r").attr("shared_name") == b"q"


@pytest.mark.tensorflow
def test_training_graph_trains_alike_under_other_names(tf: Any, tmp_path: Path) -> None:
    """Variables, savers, trainable variables and the train op are found by TensorFlow, and the checkpoint fits."""
    built = models.lenet_ref()
    model = read_model(built.path)
    result = edited(
        model.meta,
        "- rename_nodes: {nodes: 'conv1/*', to: 'first/*'}\n- rename_scope: {scope: '', to: net}\n- clear_devices",
    )
    write_model(model.with_meta(result.meta), tmp_path / "o.meta")
    rng = np.random.default_rng(1)
    images, labels = rng.normal(size=(4, 14, 14, 1)).astype(np.float32), np.int64([1, 2, 3, 4])
    found: list[Any] = []
    v1 = tf.compat.v1
    for path, prefix in ((built.path, ""), (tmp_path / "o.meta", "net/")):
        with tf.Graph().as_default(), v1.Session() as session:
            saver = v1.train.import_meta_graph(str(path))
            saver.restore(session, str(built.file(built.info["prefix"])))
            assert len(v1.trainable_variables()) == 8
            feeds = {f"{prefix}{built.input}": images, f"{prefix}{built.info['labels']}": labels}
            for _ in range(3):
                session.run(f"{prefix}{built.info['train']}", feeds)
            found.append(session.run(f"{prefix}{built.info['loss']}", feeds))
            kept = saver.save(session, str(tmp_path / "again"))
            saver.restore(session, kept)
    assert found[0] == found[1]


@pytest.mark.tensorflow
def test_control_flow_contexts_follow(tf: Any, tmp_path: Path) -> None:
    """Gradients are made inside of the renamed loop, which needs its context to be there under the new names."""
    v1 = tf.compat.v1
    with v1.Graph().as_default():
        v1.disable_control_flow_v2()
        x = v1.placeholder("float32", [2], name="x")
        n = tf.identity(v1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.tanh(v) * x), [0, x], name="loop")[1])
        tf.identity(v1.cond(tf.reduce_sum(n) > 0, lambda: n * 2.0, lambda: n - 1.0, name="choice"), name="y")
        v1.train.export_meta_graph(str(tmp_path / "a.meta"))
    model = read_model(tmp_path / "a.meta")
    assert {"while_context", "cond_context"} <= set(model.meta.collections)
    result = edited(model.meta, "- rename_scope: {scope: loop, to: a/b}\n- rename_scope: {scope: choice, to: c}")
    write_model(model.with_meta(result.meta), tmp_path / "b.meta")
    found: list[Any] = []
    for name in ("a", "b"):
        with v1.Graph().as_default() as graph, v1.Session() as session:
            v1.train.import_meta_graph(str(tmp_path / f"{name}.meta"))
            y, x = graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0")
            gradient = v1.gradients(y, x)[0]
            found.append(session.run([y, gradient], {x: X}))
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.tensorflow
def test_saved_model_is_loaded_under_other_names(tf: Any, tmp_path: Path) -> None:
    built = models.saved_model_tf2()
    model = read_model(built.path)
    result = edited(
        model.meta,
        """
        - rename_function: {function: '__inference_*', to: 'f_*'}
        - rename_scope: {scope: '', to: net}
        - rename_signature: {key: power, to: pow}
        - rename_signature_key: {signature: serving_default, key: scores, to: probs}
        """,
    )
    assert not result.remaining
    write_model(model.with_meta(result.meta), tmp_path / "o")
    ours = tf.saved_model.load(str(tmp_path / "o"))
    arrays = built.arrays()
    served = ours.signatures["serving_default"](x=arrays["x"])
    np.testing.assert_array_equal(served["probs"], arrays["scores"])
    np.testing.assert_array_equal(ours.signatures["pow"](n=5, x=arrays["base"])["result"], arrays["power"])
    np.testing.assert_array_equal(ours.serve(arrays["x"])["hidden"], arrays["hidden"])
    assert ours.vocabulary()["text"].numpy() == b"one\ntwo\n"
