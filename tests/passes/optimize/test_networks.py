"""Frozen networks: the preset for serving beside TensorFlow's own optimizer and the Graph Transform Tool."""

from __future__ import annotations

from typing import Any

import pytest

from tests import models, perturbation
from tests.passes.graphs import run_in_tensorflow, to_tensorflow
from tests.passes.optimize.oracle import transformed
from tests.tolerance import assert_within
from toolkit.formats.model import read_model
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.optimize import table
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.session import Session

#: the tool's list for deployment, and what else of it takes nodes away
_LIST = """strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) fold_constants(ignore_errors=true)
    fold_batch_norms fold_old_batch_norms merge_duplicate_nodes"""


def grappler(tf: Any, graph: Graph, fetch: str) -> int:
    """How many nodes TensorFlow's optimizer leaves."""
    from tensorflow.python.grappler import tf_optimizer

    optimizer: Any = tf_optimizer
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        meta = tf.compat.v1.train.export_meta_graph(graph=imported)
    meta.collection_def["train_op"].node_list.value.append(fetch)
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    return len(optimizer.OptimizeGraph(config, meta).node)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name", ["mobilenet_v2", *(pytest.param(n, marks=pytest.mark.long) for n in ("resnet50", "efficientnet_b0"))]
)
def test_fewer_nodes_and_the_same_numbers(tf: Any, name: str) -> None:
    model = getattr(models, name)()
    graph, x = read_model(str(model.path)).graph, model.arrays()["input"][:1]
    feeds, fetch = {model.input: x}, model.output
    done = optimize(graph, table.preset("inference"), kept_by(MetaGraph(graph), [model.input], [fetch]))
    assert done.settled
    theirs = transformed(graph, model.input.partition(":")[0], fetch.partition(":")[0], _LIST.replace("\n", " "))
    assert len(done.graph) <= min(len(theirs), grappler(tf, graph, fetch))
    want = run_in_tensorflow(tf, graph, [fetch], feeds)[0]
    with Session(done.graph.copy()) as session:
        ours = session.run(fetch, feeds)
    far = perturbation.of_network(done.graph, lambda s: [s.run(fetch, feeds)])[0]
    for got in (run_in_tensorflow(tf, done.graph, [fetch], feeds)[0], ours):
        assert_within(got, want, 2 * far, name)  # what is folded rounds less often, so each is off so far at most
