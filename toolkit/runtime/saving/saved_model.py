"""Bringing a SavedModel to life as TensorFlow's loader does: variables, then the init op with its assets."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.errors import GraphmillError
from toolkit.formats import bundle
from toolkit.formats.inspection.detect import ModelKind
from toolkit.formats.models.model import Model, variables_prefix
from toolkit.formats.models.object_variables import variable_keys
from toolkit.formats.models.savedmodel import VARIABLES, asset_path
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.policy.model_files import check_files
from toolkit.runtime.saving.saver import (
    Saver,
    check_shape,
    checkpoint_name,
    put,
    read_variables,
    saveable_variables,
    variable_cells,
    variable_nodes,
)
from toolkit.runtime.session import Session
from toolkit.runtime.training.scaffold import nodes_in

_INIT_SIGNATURE = "__saved_model_init_op"


def load_saved_model(session: Session, model: Model) -> None:
    """Restore a SavedModel's variables and run its initialisation.

    Raises:
        GraphmillError: there are variables, and no checkpoint of them in the folder.
        OpError: a variable is missing in the checkpoint or damaged, or an init op fails.
    """
    meta = model.meta
    init = init_op(meta)
    feeds = asset_feeds(model) if init is not None else {}
    prefix = _own_variables(session, model, asset_names(model) if init is not None else ())
    if prefix is None:
        _check_no_variables(model)
    has_saver = meta.saver is not None and bool(meta.saver.restore_op_name)
    if prefix is not None and (has_saver or saveable_variables(meta)):
        Saver(meta).restore(session, prefix)
    if prefix is not None:
        _complete(session, meta, prefix)
    if init is not None:
        session.run(init, feeds)


def read_saved_model(session: Session, model: Model) -> None:
    """Give a SavedModel's variables their values without running anything of it.

    Raises:
        GraphmillError: the checkpoint is damaged.
    """
    prefix = _own_variables(session, model, ())
    if prefix is not None:
        read_variables(session, model.meta, prefix)
        _complete(session, model.meta, prefix)


def _complete(session: Session, meta: MetaGraph, prefix: str) -> None:
    """Give variables that the graph does not restore itself the values of their objects, and look at all shapes."""
    if session.is_remote:  # the graph has done what can be done
        return
    empty: list[Node] = []
    cells = variable_cells(session, meta.graph)
    for node in variable_nodes(meta.graph):
        value = cells[checkpoint_name(node)].value
        if value is not None:
            check_shape(node.name, node.attr("shape"), value.shape, prefix)
        elif node.op == "VarHandleOp":
            empty.append(node)
    if not empty or not meta.shell.HasField("object_graph_def"):
        return
    with bundle.open_checkpoint(session.access.checkpoint(prefix)) as reader:
        keys = variable_keys(meta, reader)
        for node in empty:
            if node.name in keys:
                value = reader.read(keys[node.name])
                check_shape(node.name, node.attr("shape"), value.shape, prefix)
                put(cells[checkpoint_name(node)], value, prefix)


def _own_variables(session: Session, model: Model, assets: Iterable[str]) -> str | None:
    """The checkpoint of a model's variables, if there is one.

    Raises:
        RefusedError: a variable's file or an asset of a SavedModel lies where the session may not read. The files of a
            MetaGraph lie beside it: they are what the user has named.
    """
    if model.kind is ModelKind.SAVED_MODEL and model.folder is not None:
        check_files(session.access, model.folder, assets)
    return variables_prefix(model)


def _check_no_variables(model: Model) -> None:
    """Raises GraphmillError when a folder lacks the variables that its graph restores."""
    names = [node.name for node in variable_nodes(model.graph)]
    restored = model.meta.saver is not None or model.meta.shell.HasField("object_graph_def")
    if model.folder is None or not names or not restored:
        return
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    raise GraphmillError(
        f"is missing, and the graph has {len(names)} variable(s) ({listed}); copy the whole folder, or restore "
        "them with --checkpoint or initialise them with --init",
        file=f"{model.folder / VARIABLES}.index",
    )


def init_op(meta: MetaGraph) -> Node | None:
    """The operation that completes the loading of a SavedModel, if it has one."""
    signature = meta.signatures.get(_INIT_SIGNATURE)
    if signature is not None:
        for info in signature.outputs.values():
            return meta.graph.node(info.name.partition(":")[0])
    for key in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP):
        nodes = nodes_in(meta, key)
        if nodes:
            return nodes[0]
    return None


def asset_names(model: Model) -> list[str]:
    """The names of the asset files that the graph wants."""
    return [asset.filename for asset in model.meta.assets if asset.tensor_info.name.partition(":")[0] in model.graph]


def asset_feeds(model: Model) -> dict[Output, bytes]:
    """The path of each asset by the tensor that wants it."""
    if model.folder is None:
        return {}
    return {
        model.graph.output(asset.tensor_info.name): str(asset_path(model.folder, asset.filename)).encode()
        for asset in model.meta.assets
        if asset.tensor_info.name.partition(":")[0] in model.graph
    }
