# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.predictor: a model as a function of arrays by name, with a session of its own."""

from __future__ import annotations

import os
from typing import Any

from toolkit.tensorflow.families.framework.graph import Graph
from toolkit.tensorflow.families.framework.saved_model import load
from toolkit.tensorflow.families.framework.session import Session
from toolkit.tensorflow.families.train.monitored import ChiefSessionCreator, MonitoredSession

_DEFAULT = "serving_default"


class Predictor:
    """Called with a dict of inputs by name, returns a dict of outputs by name.

    Attributes:
        graph, session: where it runs; feed_tensors, fetch_tensors: what is fed and fetched, by name.
    """

    def __init__(self, graph: Any, session: Any, inputs: dict[str, str], outputs: dict[str, str]):
        self.graph, self.session = graph, session
        self.feed_tensors = {key: graph.get_tensor_by_name(name) for key, name in inputs.items()}
        self.fetch_tensors = {key: graph.get_tensor_by_name(name) for key, name in outputs.items()}

    def __repr__(self) -> str:
        return f"Predictor with feed tensors {self.feed_tensors} and fetch tensors {self.fetch_tensors}"

    def __call__(self, input_dict: Any) -> dict[str, Any]:
        """The outputs.

        Raises:
            ValueError: there is no such input.
        """
        strange = sorted(set(input_dict) - set(self.feed_tensors))
        if strange:
            raise ValueError(
                f"there is no input {', '.join(strange)}; there are: {', '.join(sorted(self.feed_tensors))}"
            )
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items() if value is not None}
        return self.session.run(self.fetch_tensors, feed_dict=feeds)


def from_saved_model(
    export_dir: Any, signature_def_key: Any = None, signature_def: Any = None, input_names: Any = None,
    output_names: Any = None, tags: Any = None, graph: Any = None, config: Any = None,
) -> Predictor:  # fmt: skip
    """A SavedModel's signature as a function.

    Args:
        signature_def_key: "serving_default" without; or give a `signature_def`, or names of tensors:
        input_names, output_names: what tensors are called, by the names of inputs and outputs.
        tags: of the graph, with commas between them; "serve" without.

    Raises:
        ValueError: more than one of these is given, one of the names alone, or there is no such signature.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("give both input_names and output_names, or neither")
    if sum(each is not None for each in (signature_def_key, signature_def, input_names)) > 1:
        raise ValueError("give one of signature_def_key, signature_def, and input_names with output_names")
    graph = graph or Graph()
    with graph.as_default():
        session = Session(config=config)
        meta = load(session, [tag.strip() for tag in (tags or "serve").split(",")], os.fsdecode(export_dir))
    if input_names is None:
        if signature_def is None:
            signature_def = _signature(meta, signature_def_key or _DEFAULT)
        input_names, output_names = _names(signature_def)
    return Predictor(graph, session, input_names, output_names)


def _signature(meta: Any, key: str) -> Any:
    # the second is what tf.contrib.learn's exports called it
    for each in (key, f"default_input_alternative:{key}"):
        if each in meta.signature_def:
            return meta.signature_def[each]
    raise ValueError(f"signature_def_key: there is no '{key}'; signatures are {', '.join(sorted(meta.signature_def))}")


def _names(signature: Any) -> tuple[dict[str, str], dict[str, str]]:
    return (
        {key: info.name for key, info in signature.inputs.items()},
        {key: info.name for key, info in signature.outputs.items()},
    )


def from_estimator(
    estimator: Any, serving_input_receiver_fn: Any, output_key: Any = None, graph: Any = None, config: Any = None
) -> Predictor:
    """An estimator's latest checkpoint as a function of what the receiver's placeholders are fed.

    Args:
        output_key: which of the model's export_outputs; "serving_default" without.

    Raises:
        TypeError: `estimator` is none. KeyError: there is no such output.
    """
    from toolkit.tensorflow.estimators.estimator import Estimator
    from toolkit.tensorflow.estimators.run_config import ModeKeys

    if not isinstance(estimator, Estimator):
        raise TypeError(f"estimator: expected a tf.estimator.Estimator, got {estimator!r}")
    graph = graph or Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        spec = estimator.model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config)
        key = output_key or _DEFAULT
        found = (spec.export_outputs or {}).get(key)
        if found is None:
            raise KeyError(
                f"output_key: there is no '{key}'; outputs are {', '.join(sorted(spec.export_outputs or {}))}"
            )
        inputs, outputs = _names(found.as_signature_def(receiver.receiver_tensors))
        session = MonitoredSession(ChiefSessionCreator(config=config, checkpoint_dir=estimator.model_dir))
    return Predictor(graph, session, inputs, outputs)
