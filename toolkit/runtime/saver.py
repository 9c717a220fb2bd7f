"""Saving and restoring a session's variables (tf.compat.v1.train.Saver as seen from outside the graph)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from schemas import variable_pb2
from toolkit.errors import UsageError
from toolkit.formats import bundle
from toolkit.formats.bundle.saver_policy import Policy
from toolkit.formats.model import from_meta_graph, write_model
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.tensorref import parse_tensor
from toolkit.runtime.session import Session

#: hours after which TensorFlow's Saver would put a checkpoint aside for good: never, in effect
_FOREVER = 10000.0


class Saver:
    """Runs the save and restore operations that a graph carries (SaverDef), and keeps the `checkpoint` file.

    A graph without a saver is saved all the same when its collections list its variables: their values are
    fetched and written under their names.

    Args:
        meta: the graph with its saver and collections.
        max_to_keep: how many checkpoints to keep in a folder; 0 keeps all; default: what the SaverDef says.
        keep_every_n_hours: keep one for every so many hours for good; default: what the SaverDef says.
    """

    def __init__(self, meta: MetaGraph, max_to_keep: int | None = None, keep_every_n_hours: float | None = None):
        self._meta = meta
        self._saver = meta.saver if meta.saver is not None and meta.saver.save_tensor_name else None
        if self._saver is not None:
            max_to_keep = self._saver.max_to_keep if max_to_keep is None else max_to_keep
            keep_every_n_hours = keep_every_n_hours or self._saver.keep_checkpoint_every_n_hours or None
        self._policy = Policy(5 if max_to_keep is None else max_to_keep, keep_every_n_hours or _FOREVER)

    @property
    def variables(self) -> list[variable_pb2.VariableDef]:
        """What the collections say must be saved: global variables and saveable objects."""
        return saveable_variables(self._meta)

    def save(self, session: Session, prefix: str, step: int | None = None, *, write_meta_graph: bool = True) -> str:
        """Write a checkpoint and make it the latest of its folder.

        Args:
            prefix: where to; `-step` is appended when a step is given.
            write_meta_graph: write the graph beside it, as `PREFIX.meta`.

        Returns:
            the prefix of the checkpoint written.

        Raises:
            GraphmillError: the graph says nothing about its variables, or the folder cannot be written.
        """
        target = prefix if step is None else f"{prefix}-{step}"
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._saver is not None:
            feed = {self._saver.filename_tensor_name: target}
            session.run(_tensor_name(self._saver.save_tensor_name), feed)
        else:
            self._save_by_name(session, target)
        if write_meta_graph:
            write_model(from_meta_graph(self._meta), target + ".meta")
        self._policy.saved(target)
        return target

    def restore(self, session: Session, prefix: str) -> None:
        """Read a checkpoint into the session's variables.

        Raises:
            OpError: the checkpoint does not have what the graph needs, or is damaged.
        """
        if not Path(prefix + ".index").exists():
            folder = Path(prefix).parent
            latest = bundle.latest_checkpoint(str(folder)) if folder.is_dir() else None
            hint = f"; the latest in '{folder}' is '{latest}'" if latest else ""
            raise UsageError(f"there is no checkpoint '{prefix}' (no file '{prefix}.index'){hint}")
        if self._saver is not None and self._saver.restore_op_name:
            graph = self._meta.graph
            session.run(
                graph.node(self._saver.restore_op_name.removeprefix("^").partition(":")[0]),
                {self._saver.filename_tensor_name: prefix},
            )
        else:
            self._restore_by_name(session, prefix)

    def _save_by_name(self, session: Session, target: str) -> None:
        variables = self.variables
        if not variables:
            raise UsageError("the graph has no saver and lists no variables; there is nothing to save")
        values = session.run([_snapshot(self._meta, v) for v in variables])
        writer = bundle.BundleWriter(target)
        named = {_plain_name(v): value for v, value in zip(variables, values, strict=True)}
        for name in sorted(named):
            dtype = self._meta.graph.output(parse_tensor(_snapshot_name(self._meta, variables, name))).dtype.base
            writer.add(name, np.asarray(named[name]), dtype)
        writer.finish()

    def _restore_by_name(self, session: Session, prefix: str) -> None:
        variables = self.variables
        if not variables:
            raise UsageError("the graph has no saver and lists no variables; there is nothing to restore")
        reader = bundle.BundleReader(prefix)
        for variable in variables:
            value = reader.read(_plain_name(variable))
            assign_initial_value(session, self._meta, variable, value)

    def recover(self, folder: str) -> None:
        """Take over the checkpoints that the folder's state file lists, so that they are rotated out too."""
        state = bundle.read_state(folder)
        if state is not None:
            self._policy.recover(state.all_paths)


def saveable_variables(meta: MetaGraph) -> list[variable_pb2.VariableDef]:
    """The global variables that the collections list, each once, by name."""
    found: dict[str, variable_pb2.VariableDef] = {}
    for item in meta.collections.get(GraphKeys.GLOBAL_VARIABLES, []):
        if isinstance(item, bytes):
            variable = variable_pb2.VariableDef.FromString(item)
            found[variable.variable_name] = variable
    return [found[name] for name in sorted(found)]


def assign_initial_value(session: Session, meta: MetaGraph, variable: variable_pb2.VariableDef, value: Any) -> None:
    """Set a variable by running its initializer with `value` fed in place of the initial value."""
    initializer = meta.graph.node(variable.initializer_name)
    session.run(initializer, {initializer.inputs[1]: value})


def _plain_name(variable: variable_pb2.VariableDef) -> str:
    return variable.variable_name.removesuffix(":0")


def _snapshot(meta: MetaGraph, variable: variable_pb2.VariableDef) -> Any:
    name = variable.snapshot_name or variable.variable_name
    return meta.graph.output(parse_tensor(name))


def _snapshot_name(meta: MetaGraph, variables: list[variable_pb2.VariableDef], name: str) -> str:
    variable = next(v for v in variables if _plain_name(v) == name)
    return variable.snapshot_name or variable.variable_name


def _tensor_name(name: str) -> str:
    return name if ":" in name else name + ":0"
