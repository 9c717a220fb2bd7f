"""Frozen networks: no more nodes are left than by grappler, and TensorFlow computes the same from our file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from schemas.graph_pb2 import GraphDef
from tests import models
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.run import optimize
from toolkit.passes.optimize.table import preset

#: the last digits of what folding batch norms into weights changes, over up to 50 layers
_RTOL = 1e-3


def grappler_nodes(tf: Any, model: models.Built) -> int:
    """How many nodes grappler leaves of a frozen graph, with everything on that it does of itself."""
    from tensorflow.core.protobuf import config_pb2, meta_graph_pb2
    from tensorflow.python.grappler import tf_optimizer

    definition = tf.compat.v1.GraphDef.FromString(model.path.read_bytes())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        meta = tf.compat.v1.train.export_meta_graph(graph=graph)
    meta.collection_def["train_op"].node_list.value.append(model.output)
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    config.graph_options.rewrite_options.meta_optimizer_iterations = 2
    made = tf_optimizer.OptimizeGraph(config, meta_graph_pb2.MetaGraphDef.FromString(meta.SerializeToString()))
    return len(made.node)


def optimized(model: models.Built) -> Graph:
    graph = Graph.from_proto(GraphDef.FromString(model.path.read_bytes()))
    kept = kept_by(MetaGraph(graph), [model.input], [model.output])
    return optimize(graph, preset("inference"), kept).graph


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_b0", "resnet50"])
def test_fewer_nodes_than_grappler_and_the_same_numbers(tf: Any, name: str) -> None:
    model = getattr(models, name)()
    made = optimized(model)
    theirs = grappler_nodes(tf, model)
    print(f"{name}: {len(made)} nodes, grappler {theirs}")
    assert len(made) <= theirs
    arrays = model.arrays()
    definition = tf.compat.v1.GraphDef.FromString(made.to_proto().SerializeToString())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=graph) as session:
            found = session.run(model.output, {model.input: arrays["input"]})
    np.testing.assert_allclose(found, arrays["output"], rtol=_RTOL, atol=1e-5)  # probabilities
