"""The parts a training session is made of: found in the graph's collections, or made (Scaffold)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas import variable_pb2
from toolkit.errors import FailedPreconditionError, GraphError, GraphmillError
from toolkit.formats.models.collections import variable_def
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.tensorref import parse_tensor
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session


@dataclass(slots=True)
class Scaffold:
    """How to bring a graph to life and what to watch in it.

    Attributes:
        meta: the graph with its collections.
        init_ops: make every global variable; found in "init_op", else the variables' initialisers.
        local_init_ops: local variables and tables.
        ready: a tensor that lists the names of variables that are not initialised (the collection "ready_op"); None:
            the global variables are asked one by one.
        ready_for_local_init: the same, of what must be there before the local initialisation: by default the global
            variables, whose values it may need.
        summaries: tensors that give serialized Summary messages.
        saver: saves and restores.
        global_step: the tensor that counts training steps, or None.
    """

    meta: MetaGraph
    saver: Saver
    init_ops: list[Node] = field(default_factory=list[Node])
    local_init_ops: list[Node] = field(default_factory=list[Node])
    summaries: list[Output] = field(default_factory=list[Output])
    global_step: Output | None = None
    ready: Output | None = None
    ready_for_local_init: Output | None = None

    @staticmethod
    def of(meta: MetaGraph, saver: Saver | None = None) -> Scaffold:
        """Collect the parts of a graph."""
        init_ops = nodes_in(meta, GraphKeys.INIT_OP)
        if not init_ops:
            init_ops = initializers(meta, GraphKeys.GLOBAL_VARIABLES)
        if not init_ops and (found := meta.graph.glance("init")) is not None:
            init_ops = [found]
        local = nodes_in(meta, GraphKeys.LOCAL_INIT_OP)
        if not local:
            local = initializers(meta, GraphKeys.LOCAL_VARIABLES) + nodes_in(meta, GraphKeys.TABLE_INITIALIZERS)
        merged = tensors_in(meta, GraphKeys.SUMMARY_OP)
        return Scaffold(
            meta,
            saver or Saver(meta),
            init_ops,
            local,
            merged or tensors_in(meta, GraphKeys.SUMMARIES),
            find_global_step(meta),
            next(iter(tensors_in(meta, GraphKeys.READY_OP)), None),
            next(iter(tensors_in(meta, GraphKeys.READY_FOR_LOCAL_INIT_OP)), None),
        )

    def read_global_step(self, session: Session) -> int:
        """The global step's value; 0 where the graph has none, or nobody has initialised it.

        Raises:
            GraphError: it is not one integer.
        """
        if self.global_step is None:
            return 0
        try:
            step = session.run(self.global_step)
        except FailedPreconditionError:
            return 0
        if getattr(step, "shape", None) != () or step.dtype.kind not in "iu":
            raise GraphError(
                f"the global step must be one integer; this is a tensor {step.dtype}{list(step.shape)}",
                node=self.global_step.node.name,
            )
        return int(step)

    def uninitialized(self, session: Session) -> list[str]:
        """What keeps the graph from being ready: names of variables without a value."""
        if self.ready is not None:
            return _reported(session, self.ready)
        return self._without_values(session)

    def _without_values(self, session: Session) -> list[str]:
        """Asks the global variables: all at once, and one by one when something is missing."""
        found = variables_in(self.meta, GraphKeys.GLOBAL_VARIABLES)
        tensors = [self.meta.graph.output(parse_tensor(v.snapshot_name or v.variable_name)) for v in found]
        missing: list[str] = []
        try:
            session.run(tensors)
        except FailedPreconditionError:
            for variable, tensor in zip(found, tensors, strict=True):
                try:
                    session.run(tensor)
                except FailedPreconditionError:
                    missing.append(variable.variable_name.removesuffix(":0"))
        return missing

    def uninitialized_for_local_init(self, session: Session) -> list[str]:
        """What keeps the local initialisation from running."""
        if self.ready_for_local_init is not None:
            return _reported(session, self.ready_for_local_init)
        return self._without_values(session)


def _reported(session: Session, names: Output) -> list[str]:
    """The names that an operation such as ReportUninitializedVariables lists; its own failure means "not ready"."""
    try:
        return [name.decode() for name in np.ravel(session.run(names)).tolist()]
    except FailedPreconditionError as error:
        return [error.message]


def variables_in(meta: MetaGraph, key: str) -> list[variable_pb2.VariableDef]:
    """The variables that a collection lists."""
    return [variable_def(v) for v in meta.collections.get(key, []) if isinstance(v, bytes)]


def initializers(meta: MetaGraph, key: str) -> list[Node]:
    """The initialisers of the variables that a collection lists."""
    return [_node(meta, variable.initializer_name) for variable in variables_in(meta, key)]


def nodes_in(meta: MetaGraph, key: str) -> list[Node]:
    """The operations that a collection names."""
    return [_node(meta, name) for name in meta.collections.get(key, []) if isinstance(name, str)]


def tensors_in(meta: MetaGraph, key: str) -> list[Output]:
    """The tensors that a collection names."""
    return [meta.graph.output(name) for name in meta.collections.get(key, []) if isinstance(name, str)]


def find_global_step(meta: MetaGraph) -> Output | None:
    """The tensor to read the global step from: the collection's, else the variable named `global_step`."""
    for item in meta.collections.get(GraphKeys.GLOBAL_STEP, []):
        return _readable(meta, item)
    for variable in variables_in(meta, GraphKeys.GLOBAL_VARIABLES):
        if variable.variable_name == "global_step:0":
            return meta.graph.output(variable.snapshot_name or variable.variable_name)
    return None


def _readable(meta: MetaGraph, item: Any) -> Output | None:
    if isinstance(item, bytes):
        variable = variable_def(item)
        return meta.graph.output(variable.snapshot_name or variable.variable_name)
    if isinstance(item, str):
        return meta.graph.output(parse_tensor(item))
    return None


def _node(meta: MetaGraph, name: str) -> Node:
    return meta.graph.node(name.removeprefix("^").partition(":")[0])


def run_in_dependency_order(session: Session, nodes: list[Node]) -> None:
    """Run initialisers all at once; where initial values read other variables, in rounds until all are done.

    Raises:
        FailedPreconditionError: some need a variable that nothing initialises.
    """
    if not nodes:
        return
    try:
        session.run(nodes)
        return
    except FailedPreconditionError:
        pass  # an initial value reads another variable: go round by round
    pending = nodes
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
