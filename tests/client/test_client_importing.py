"""Graphs that TensorFlow (or we) exported, taken into a graph that is being made and carried on."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests import perturbation
from tests.client.client_programs import tf1_semantics
from toolkit import client as gm
from toolkit.client.metagraphs import importing
from toolkit.client.spec import build_spec
from toolkit.client.variables.kinds import RefVariable, ResourceVariable
from toolkit.errors import FormatError, GraphError
from toolkit.formats.models.metagraph import from_proto, to_proto
from toolkit.graph.metagraph import MetaGraph


def _run(tf: ModuleType, graph: gm.Graph, fetches: list[str], feeds: dict[str, object], init: str = "") -> list[object]:
    imported = tf.Graph()
    with imported.as_default():
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with tf.compat.v1.Session() as session:
            if init:
                session.run(init)
            return session.run(fetches, feeds)


@pytest.mark.tensorflow
def test_training_goes_on_from_a_graph_of_tensorflow(tf: ModuleType) -> None:
    """Variables, a conditional and a loop come back, and gradients go through them."""
    v1 = tf.compat.v1
    theirs = tf.Graph()
    with theirs.as_default(), tf1_semantics(tf):
        x = v1.placeholder(tf.float32, [None], name="x")
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(0.7))
        r = v1.get_variable("r", [], initializer=v1.constant_initializer(0.5), use_resource=True)
        y = v1.cond(w > 0.0, lambda: x * w * w, lambda: x)
        _, z = v1.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, tf.sin(a * w) + v1.cond(a[0] > 0.3, lambda: x * r, lambda: a)),
            [tf.constant(0), y],
        )
        loss = v1.reduce_sum(z, name="loss")
        v1.train.Saver()
        expected_grads = v1.gradients(loss, [w, r, x])
        meta_def = v1.train.export_meta_graph()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            expected = session.run([loss, *expected_grads], {x: [0.2, 0.9]})
    graph = gm.Graph()
    with graph.as_default():
        meta = from_proto(type(to_proto(MetaGraph(gm.Graph().core))).FromString(meta_def.SerializeToString()))
        # their gradient nodes would only be in the way
        importing.import_meta_graph(meta)
        variables = gm.global_variables()
        assert [type(v) for v in variables] == [RefVariable, ResourceVariable]
        assert gm.trainable_variables() == variables
        sources = [*variables, graph.get_tensor_by_name("x:0")]
        ours = gm.grad(graph.get_tensor_by_name("loss:0"), sources, name="ours")
        gm.global_variables_initializer()
    names = ["loss:0", *[g.name for g in ours if g is not None]]
    assert len(names) == 4
    feeds = {"x:0": np.float32([0.2, 0.9])}
    results = [_run(tf, graph, names, feeds, "init"), expected]
    perturbation.assert_close(graph, names, feeds, results, ["init"])


@pytest.mark.tensorflow
def test_parts_are_replaced_and_returned(tf: ModuleType) -> None:
    made = gm.Graph()
    with made.as_default():
        x = gm.placeholder(gm.float32, [2], name="x")
        with gm.colocate_with(x):
            gm.identity(x * 2.0, name="y")
    graph = gm.Graph()
    with graph.as_default():
        start = gm.constant([1.0, 2.0], name="start")
        y, op = importing.import_graph_def(made.core, {"x:0": start}, ["y:0", "mul"])
        assert (y.name, op.name) == ("import/y:0", "import/mul")
        assert graph.core.node("import/y").attr("_class") == [b"loc:@import/x"]
        again = importing.import_graph_def(made.as_graph_def(), {"x:0": y}, ["y:0"])[0]  # type: ignore[dict-item]
        assert again.name == "import_1/y:0" and again.shape.as_list() == [2]  # type: ignore[union-attr]
        assert gm.constant(1, name="import/y").op.name == "import/y_1"
    assert _run(tf, graph, [again.name], {})[0].tolist() == [4.0, 8.0]  # type: ignore[attr-defined]


def test_a_meta_graph_in_a_scope() -> None:
    from pathlib import Path

    meta = build_spec(Path(__file__).parents[2] / "samples" / "digits_cnn.yaml")
    graph = gm.Graph()
    with graph.as_default():
        saver = gm.import_meta_graph(meta, import_scope="digits")
        assert saver is not None and saver.restore_op_name == "digits/save/restore_all"
        assert gm.trainable_variables()[0].name == "digits/conv1/kernel:0"
        assert [op.name for op in graph.get_collection("train_op")] == ["digits/train"]
        assert gm.train.get_global_step().op.name == "digits/global_step"


def test_what_cannot_be_imported() -> None:
    made = gm.Graph()
    with made.as_default():
        gm.constant(1.0, name="c")
    with gm.Graph().as_default():
        gm.constant(1.0, name="c")
        with pytest.raises(GraphError, match="the name 'c' of an imported node is taken"):
            gm.import_graph_def(made.core, name="")
        with pytest.raises(GraphError, match="the imported graph has no 'd:0'"):
            gm.import_graph_def(made.core, return_elements=["d:0"])
        with pytest.raises(GraphError, match="there is no node 'd'"):
            gm.import_graph_def(made.core, {"d:0": gm.constant(1.0)})
        with pytest.raises(FormatError, match="'variables' holds bytes that are no VariableDef"):
            gm.import_meta_graph(MetaGraph(gm.Graph().core, collections={"variables": [b"\xff\xff"]}))
        with pytest.raises(GraphError, match="there is no node 'gone'"):
            gm.import_meta_graph(MetaGraph(gm.Graph().core, collections={"things": ["gone"]}))
