"""Frozen networks: the preset for serving beside TensorFlow's own optimizer and the Graph Transform Tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests import models, network_models, perturbation
from tests.passes.graphs import run_in_tensorflow, to_tensorflow
from tests.passes.optimize.oracle import transformed
from tests.tolerance import assert_within
from toolkit.formats.bundle.reader import BundleReader
from toolkit.formats.models.model import read_model, variables_prefix
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.freezing.freeze_model import FreezeRequest, freeze_model
from toolkit.passes.optimize import table
from toolkit.passes.optimize.flow.inline_functions import InlineFunctions
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.session import Session

#: the tool's list for deployment, and what else of it takes nodes away
_LIST = """strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) fold_constants(ignore_errors=true)
    fold_batch_norms fold_old_batch_norms merge_duplicate_nodes"""


@dataclass
class Frozen:
    """A network without variables, one image of its batch or the whole, and what it is asked for."""

    graph: Graph
    feeds: dict[str, Any]
    fetches: list[str]


def _classifier(build: Callable[[], models.Built]) -> Frozen:
    model = build()
    return Frozen(read_model(str(model.path)).graph, {model.input: model.arrays()["input"][:1]}, [model.output])


def _network(build: Callable[[], models.Built], examples: int | None = None) -> Frozen:
    model = build()
    given = model.arrays("inputs.npz")
    feeds = {tensor: given[label][:examples] for label, tensor in model.info["inputs"].items()}
    return Frozen(read_model(str(model.path)).graph, feeds, list(model.info["outputs"].values()))


def _exported() -> Frozen:
    """The transformer, whose SavedModel is frozen first."""
    built = network_models.transformer()
    model = read_model(str(built.path))
    prefix, signature = variables_prefix(model), model.meta.signatures["serving_default"]
    assert prefix is not None
    inputs, fetches = signature.input_tensors(), tuple(signature.output_tensors().values())
    with BundleReader(prefix) as source:
        frozen = freeze_model(model, source, FreezeRequest(fetches, tuple(inputs.values())))[0]
    given = built.arrays("inputs.npz")
    return Frozen(frozen.graph, {tensor: given[label] for label, tensor in inputs.items()}, list(fetches))


_NETWORKS: dict[str, Callable[[], Frozen]] = {
    "mobilenet_v2": partial(_classifier, models.mobilenet_v2),
    "resnet50": partial(_classifier, models.resnet50),
    "efficientnet_b0": partial(_classifier, models.efficientnet_b0),
    **{
        name: partial(_network, partial(network_models.application, name, "96"), 1)
        for name in ("InceptionV3", "ResNet50V2", "DenseNet121", "NASNetMobile")
    },
    "recurrent": partial(_network, partial(network_models.recurrent, "lowered")),
    "transformer": _exported,
}


def grappler(tf: Any, graph: Graph, fetches: Sequence[str]) -> int:
    """How many nodes TensorFlow's optimizer leaves."""
    from tensorflow.python.grappler import tf_optimizer

    optimizer: Any = tf_optimizer
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        meta = tf.compat.v1.train.export_meta_graph(graph=imported)
    meta.collection_def["train_op"].node_list.value.extend(fetches)
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    return len(optimizer.OptimizeGraph(config, meta).node)


def _as_usual(tf: Any, graph: Graph, fetches: list[str], feeds: dict[str, Any]) -> list[Any]:
    """In a session that optimizes, as TensorFlow's sessions do unless told otherwise."""
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(to_tensorflow(tf, graph), name="")
        with tf.compat.v1.Session(graph=imported) as session:
            return session.run(fetches, feeds)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name", [name if name == "mobilenet_v2" else pytest.param(name, marks=pytest.mark.long) for name in _NETWORKS]
)
def test_fewer_nodes_and_the_same_numbers(tf: Any, name: str) -> None:
    case = _NETWORKS[name]()
    graph, feeds, fetches = case.graph, case.feeds, case.fetches
    done = optimize(graph, table.preset("inference"), kept_by(MetaGraph(graph), list(feeds), fetches))
    assert done.settled
    inputs, outputs = (",".join(tensor.partition(":")[0] for tensor in tensors) for tensors in (feeds, fetches))
    flat = optimize(graph, [InlineFunctions()], kept_by(MetaGraph(graph), list(feeds), fetches)).graph
    theirs = {
        "the tool": len(transformed(flat, inputs, outputs, _LIST.replace("\n", " "))),
        "grappler": grappler(tf, graph, fetches),
    }
    print(f"{name}: {len(graph)} nodes, {len(done.graph)} are left; {theirs}")
    assert all(len(done.graph) <= count for count in theirs.values())
    wanted = run_in_tensorflow(tf, graph, fetches, feeds)
    with Session(done.graph.copy()) as session:
        ours = session.run(fetches, feeds)
    # what is folded rounds less often, so each is off so far at most
    of_graph = perturbation.of_network(done.graph, lambda s: s.run(fetches, feeds))
    far = [2 * np.asarray(each) for each in of_graph]
    for found in (run_in_tensorflow(tf, done.graph, fetches, feeds), _as_usual(tf, done.graph, fetches, feeds), ours):
        for got, want, reach in zip(found, wanted, far, strict=True):
            assert_within(got, want, reach, name)
