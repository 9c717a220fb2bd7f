"""Bringing the state of a session to life: initialisers, checkpoints, SavedModels (SessionManager's part)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schemas import variable_pb2
from toolkit.errors import FailedPreconditionError, GraphmillError, UsageError
from toolkit.formats import bundle, savedmodel
from toolkit.formats.model import Model
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.runtime.saver import Saver
from toolkit.runtime.session import Session

_SAVED_MODEL_INIT = "__saved_model_init_op"


def initialize(session: Session, meta: MetaGraph) -> None:
    """Run the graph's initialisers: the init op its collections name, else every variable's own, in the order
    their initial values need, then local variables and tables.

    Raises:
        UsageError: the graph lists neither an init op nor variables.
    """
    init_ops = _collection_nodes(meta, GraphKeys.INIT_OP)
    if init_ops:
        session.run(init_ops)
    else:
        variables = _variables(meta, GraphKeys.GLOBAL_VARIABLES)
        if variables:
            _run_initializers(session, meta, variables)
        elif "init" in meta.graph:
            session.run(meta.graph.node("init"))
        else:
            raise UsageError(
                "the graph lists no init op and no variables to initialise; name its init operation with --target"
            )
    initialize_local(session, meta)


def initialize_local(session: Session, meta: MetaGraph) -> None:
    """Run the local init op, or the initialisers of local variables and tables."""
    local = _collection_nodes(meta, GraphKeys.LOCAL_INIT_OP)
    if local:
        session.run(local)
        return
    variables = _variables(meta, GraphKeys.LOCAL_VARIABLES)
    if variables:
        _run_initializers(session, meta, variables)
    tables = _collection_nodes(meta, GraphKeys.TABLE_INITIALIZERS)
    if tables:
        session.run(tables)


def _run_initializers(session: Session, meta: MetaGraph, variables: Sequence[variable_pb2.VariableDef]) -> None:
    """Initialise all at once; where initial values read other variables, in rounds until none is left."""
    pending = [meta.graph.node(v.initializer_name.removeprefix("^")) for v in variables]
    try:
        session.run(pending)
        return
    except FailedPreconditionError:
        pass  # some initial value reads another variable: go one by one
    while pending:
        failed: list[Node] = []
        last: GraphmillError | None = None
        for node in pending:
            try:
                session.run(node)
            except FailedPreconditionError as error:
                failed.append(node)
                last = error
        if len(failed) == len(pending) and last is not None:
            raise last
        pending = failed


def load_saved_model(session: Session, model: Model) -> None:
    """Restore a SavedModel's variables, then run its init op with its assets, as TensorFlow's loader does.

    Raises:
        OpError: a variable is missing in the checkpoint, or an init op fails.
    """
    meta = model.meta
    prefix = savedmodel.variables_prefix(model)
    has_saver = meta.saver is not None and bool(meta.saver.restore_op_name)
    if prefix is not None and (has_saver or saveable(meta)):
        Saver(meta).restore(session, prefix)
    feeds = _asset_feeds(model)
    init = _init_op(meta)
    if init is not None:
        session.run(init, feeds)


def saveable(meta: MetaGraph) -> bool:
    """Whether the collections list variables."""
    return bool(_variables(meta, GraphKeys.GLOBAL_VARIABLES))


def _init_op(meta: MetaGraph) -> Node | None:
    signature = meta.signatures.get(_SAVED_MODEL_INIT)
    if signature is not None:
        for info in signature.outputs.values():
            return meta.graph.node(info.name.partition(":")[0])
    for key in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP):
        nodes = _collection_nodes(meta, key)
        if nodes:
            return nodes[0]
    return None


def _asset_feeds(model: Model) -> dict[Output, Any]:
    """The file name of each asset for the tensor that wants it."""
    meta = model.meta
    if model.folder is None:
        return {}
    feeds: dict[Output, Any] = {}
    for asset in meta.shell.asset_file_def:
        name = asset.tensor_info.name
        if name:
            feeds[meta.graph.output(name)] = str(Path(model.folder, "assets", asset.filename)).encode()
    return feeds


def restore_or_initialize(session: Session, model: Model, folder: str, saver: Saver) -> str | None:
    """Continue from the newest usable checkpoint of a folder, or start anew.

    A damaged checkpoint is passed over for the one before it.

    Returns:
        the prefix restored, or None when the state was initialised.
    """
    state = bundle.read_state(folder) if Path(folder).is_dir() else None
    candidates = list(reversed(state.all_paths)) if state is not None else []
    first_error: GraphmillError | None = None
    for prefix in candidates:
        try:
            saver.restore(session, prefix)
        except GraphmillError as error:
            first_error = first_error or error
            continue
        initialize_local(session, model.meta)
        saver.recover(folder)
        return prefix
    if first_error is not None:
        raise first_error
    initialize(session, model.meta)
    return None


def _variables(meta: MetaGraph, key: str) -> list[variable_pb2.VariableDef]:
    return [variable_pb2.VariableDef.FromString(v) for v in meta.collections.get(key, []) if isinstance(v, bytes)]


def _collection_nodes(meta: MetaGraph, key: str) -> list[Node]:
    names = [item for item in meta.collections.get(key, []) if isinstance(item, str)]
    return [meta.graph.node(name.removeprefix("^").partition(":")[0]) for name in names]
