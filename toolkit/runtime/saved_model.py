"""Bringing a SavedModel to life as TensorFlow's loader does: variables, then the init op with its assets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolkit.formats.model import Model, variables_prefix
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.runtime.saver import Saver, saveable_variables
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import nodes_in

_INIT_SIGNATURE = "__saved_model_init_op"


def load_saved_model(session: Session, model: Model) -> None:
    """Restore a SavedModel's variables and run its initialisation.

    Raises:
        OpError: a variable is missing in the checkpoint, or an init op fails.
    """
    meta = model.meta
    prefix = variables_prefix(model)
    has_saver = meta.saver is not None and bool(meta.saver.restore_op_name)
    if prefix is not None and (has_saver or saveable_variables(meta)):
        Saver(meta).restore(session, prefix)
    init = _init_op(meta)
    if init is not None:
        session.run(init, _asset_feeds(model))


def _init_op(meta: MetaGraph) -> Node | None:
    signature = meta.signatures.get(_INIT_SIGNATURE)
    if signature is not None:
        for info in signature.outputs.values():
            return meta.graph.node(info.name.partition(":")[0])
    for key in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP):
        nodes = nodes_in(meta, key)
        if nodes:
            return nodes[0]
    return None


def _asset_feeds(model: Model) -> dict[Output, Any]:
    """The file name of each asset for the tensor that wants it."""
    if model.folder is None:
        return {}
    feeds: dict[Output, Any] = {}
    for asset in model.meta.assets:
        name = asset.tensor_info.name
        if name.partition(":")[0] in model.graph:
            feeds[model.graph.output(name)] = str(Path(model.folder, "assets", asset.filename)).encode()
    return feeds
