# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The graph of one mode, put into a SavedModel."""

from __future__ import annotations

from typing import Any

from toolkit.errors import NotFoundError
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.estimators.spec import EstimatorSpec
from toolkit.tensorflow.families.framework.session import Session
from toolkit.tensorflow.families.train import saver as savers
from toolkit.tensorflow.families.train.scaffold import Scaffold

#: the tags of an exported graph, and the call of its signatures
TAGS = {ModeKeys.PREDICT: ["serve"], ModeKeys.TRAIN: ["train"], ModeKeys.EVAL: ["eval"]}
_METHODS = {ModeKeys.TRAIN: "tensorflow/supervised/training", ModeKeys.EVAL: "tensorflow/supervised/eval"}


def add_graph(
    builder: Any, graph: Any, receiver: Any, spec: EstimatorSpec, checkpoint: str, mode: str, *, is_first: bool,
    strip_default_attrs: bool, session_config: Any,
) -> None:  # fmt: skip
    """Add the default graph with its signatures, and with the checkpoint's values where it is the first.

    Args:
        receiver: what the graph is fed with.

    Raises:
        ValueError: the checkpoint lacks variables of the graph.
    """
    outputs: dict[str, exports.ExportOutput]
    if mode == ModeKeys.PREDICT:
        outputs = spec.export_outputs
    else:
        metrics = spec.eval_metric_ops
        supervised = exports.SupervisedOutput(_METHODS[mode], spec.loss, spec.predictions, metrics)
        outputs = {{ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval"}[mode]: supervised}
    defs = exports.signature_defs(receiver, outputs, mode == ModeKeys.PREDICT)
    with Session(config=session_config) as session:
        local_init = spec.scaffold.local_init_op
        if local_init is None:
            local_init = Scaffold.default_local_init_op()
        saver = spec.scaffold.saver or savers.Saver(sharded=True)
        try:
            saver.restore(session, checkpoint)
        except NotFoundError as error:
            raise ValueError(
                f"{checkpoint}: the graph for '{mode}' has variables that the checkpoint lacks: {error}"
            ) from None
        if spec.train_op is not None:
            graph.add_to_collection(GraphKeys.TRAIN_OP, spec.train_op)
        settings: dict[str, Any] = {
            "signature_def_map": defs, "assets_collection": graph.get_collection(GraphKeys.ASSET_FILEPATHS),
            "main_op": local_init, "saver": saver, "strip_default_attrs": strip_default_attrs,
        }  # fmt: skip
        if is_first:
            builder.add_meta_graph_and_variables(session, TAGS[mode], **settings)
        else:
            builder.add_meta_graph(TAGS[mode], **settings)
