"""Saving and restoring a session's variables (tf.compat.v1.train.Saver as seen from outside the graph)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schemas import variable_pb2
from toolkit.errors import DataLossError, FormatError, InvalidArgumentError, UsageError
from toolkit.formats import bundle
from toolkit.formats.bundle import paths, storage
from toolkit.formats.bundle.locate import find_prefix
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.bundle.saver_policy import RetentionPolicy
from toolkit.formats.bundle.state import exists
from toolkit.formats.models.collections import variable_def
from toolkit.formats.models.message import serialize
from toolkit.formats.models.model import Encoding, ModelKind, from_meta_graph, to_message, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.kernels.context import RefVariable
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array
from toolkit.runtime.session import Session

#: hours after which TensorFlow's Saver would put a checkpoint aside for good: never, in effect
_FOREVER = 10000.0


class Saver:
    """Runs the save and restore operations that a graph carries (SaverDef), and keeps the `checkpoint` file.

    A graph without a saver (pruned for inference, say) is saved and restored all the same: each of its variables
    under its own name.

    Args:
        meta: the graph with its saver and collections.
        max_to_keep: how many checkpoints to keep in a folder; 0 keeps all; default: what the SaverDef says.
        keep_every_n_hours: keep one for every so many hours for good; default: what the SaverDef says.

    Attributes:
        meta: as given; may be replaced by what the graph has become.
        restored: the prefix that was restored last.
        policy: which checkpoints stay, and what the state file says of them.
    """

    def __init__(self, meta: MetaGraph, max_to_keep: int | None = None, keep_every_n_hours: float | None = None):
        self.meta = meta
        self.restored: str | None = None
        self._saver = meta.saver if meta.saver is not None and meta.saver.save_tensor_name else None
        if self._saver is not None:
            max_to_keep = self._saver.max_to_keep if max_to_keep is None else max_to_keep
            keep_every_n_hours = keep_every_n_hours or self._saver.keep_checkpoint_every_n_hours or None
        # fewer than none, as a file may say, is no number to keep
        self.policy = RetentionPolicy(5 if max_to_keep is None else max(0, max_to_keep), keep_every_n_hours or _FOREVER)

    def save(
        self,
        session: Session,
        prefix: str,
        step: int | None = None,
        *,
        write_meta_graph: bool = True,
        write_state: bool = True,
    ) -> str:
        """Write a checkpoint and make it the latest of its folder.

        Args:
            prefix: where to; `-step` is appended when a step is given.
            write_meta_graph: write the graph beside it, as `PREFIX.meta`.
            write_state: make it the latest, and remove those that are too many.

        Returns:
            the prefix of the checkpoint written.

        Raises:
            GraphmillError: the graph says nothing about its variables, or the folder cannot be written.
        """
        target = prefix if step is None else f"{prefix}-{step}"
        session.access.grant(write=target + "*")
        storage.make_folder(target)
        if self._saver is not None:
            path = _path_at(session, target)
            said = session.run(_tensor_name(self._saver.save_tensor_name), {self._saver.filename_tensor_name: path})
            if isinstance(said, bytes) and said.decode() != path:
                target = said.decode()  # the pattern of several files, where each device writes a V1 file
        else:
            self._save_by_name(session, target)
        if write_meta_graph:
            self._write_meta_graph(target + ".meta")
        if write_state:
            self.policy.saved(target)
        return target

    def restore(self, session: Session, prefix: str) -> str:
        """Read a checkpoint into the session's variables.

        Args:
            prefix: a checkpoint's prefix, one of its files, or a folder, whose latest checkpoint is taken.

        Returns:
            the prefix that was read.

        Raises:
            GraphmillError: there is no such checkpoint.
            OpError: the checkpoint does not have what the graph needs, or is damaged.
        """
        found = find_prefix(prefix)
        session.access.grant(read=found + "*")
        if not exists(found):
            message = f"there is no such checkpoint (no file '{found}.index'){_latest_beside(found)}"
            raise UsageError(message, file=found)
        if self._saver is not None and self._saver.restore_op_name:
            graph = self.meta.graph
            root = graph.node(self._saver.restore_op_name.removeprefix("^").partition(":")[0])
            try:
                session.run(root, {self._saver.filename_tensor_name: _path_at(session, found)})
            except InvalidArgumentError as error:
                raise _naming_variable(error, graph) from None
        else:
            self._restore_by_name(session, found)
        self.restored = found
        return found

    def restore_given(self, session: Session, prefix: str) -> str:
        """`restore` the checkpoint that `--checkpoint` names: when it is damaged, that is the option's mistake.

        Raises:
            FormatError: the checkpoint is damaged.
            GraphmillError: see `restore`.
        """
        try:
            return self.restore(session, prefix)
        except (DataLossError, FormatError) as error:
            told = FormatError(error.message, file=prefix)
            told.option = "--checkpoint"
            raise told from error

    def _write_meta_graph(self, path: str) -> None:
        model = from_meta_graph(self.meta)
        if is_remote(path):
            storage.write_file(path, serialize(to_message(model, ModelKind.META_GRAPH), Encoding.BINARY, path))
        else:
            write_model(model, path)

    def _save_by_name(self, session: Session, target: str) -> None:
        cells = variable_cells(session, self.meta.graph)
        if not cells:
            raise UsageError("the graph has no saver and no variables; there is nothing to save")
        with bundle.BundleWriter(target) as writer:
            for name in sorted(cells):
                with cells[name].lock:
                    writer.add(name, variables.read(cells[name]), cells[name].dtype)

    def _restore_by_name(self, session: Session, prefix: str) -> None:
        cells = variable_cells(session, self.meta.graph)
        if not cells:
            raise UsageError("the graph has no saver and no variables; there is nothing to restore")
        with bundle.open_checkpoint(session.access.checkpoint(prefix)) as reader:
            for name, cell in cells.items():
                value = reader.read(name)
                check_shape(name, cell.shape, value.shape, prefix)
                put(cell, value, prefix)

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first."""
        return self.policy.last_checkpoints

    def recover_prefixes(self, prefixes: Sequence[str]) -> None:
        """Take over checkpoints by name, so that they are rotated out too."""
        self.policy.recover(prefixes)

    def recover(self, folder: str) -> None:
        """Take over the checkpoints that the folder's state file lists, so that they are rotated out too.

        Those outside of the folder are left alone: a file that came with the folder must not say what is deleted.
        """
        state = bundle.read_state(folder)
        if state is not None:
            self.policy.recover([prefix for prefix in state.all_paths if paths.is_inside(folder, prefix)])


def read_variables(session: Session, meta: MetaGraph, prefix: str) -> None:
    """Give variables the values that a checkpoint has under their names, without running anything of the graph.

    What the checkpoint does not have stays as it is.

    Raises:
        GraphmillError: there is no such checkpoint, it is damaged, or a tensor in it does not fit its variable.
    """
    cells = variable_cells(session, meta.graph)
    with bundle.open_checkpoint(session.access.checkpoint(prefix)) as reader:
        for name, cell in cells.items():
            if name in reader:
                put(cell, reader.read(name), prefix)


def stand_in(session: Session, graph: Graph) -> None:
    """Give variables without a value zeros, for a plan that is only looked at; where that cannot be they stay so."""
    for cell in variable_cells(session, graph).values():
        if cell.value is None and cell.shape.is_fully_defined and cell.dtype.kind != "s":
            with cell.lock, contextlib.suppress(MemoryError, ValueError):
                sizes: Any = cell.shape.dims
                cell.value = np.zeros(sizes, cell.dtype.numpy)


def check_shape(name: str, wanted: Shape, found: Iterable[int], prefix: str) -> None:
    """Raises InvalidArgumentError when a checkpoint's tensor does not fit the variable it is for."""
    if not wanted.is_compatible_with(Shape(found)):
        raise InvalidArgumentError(
            f"variable '{name}' has shape {wanted}, but {Shape(found)} in the checkpoint", file=prefix
        )


def put(cell: variables.Cell, value: Array, prefix: str) -> None:
    """Give a variable the value that a checkpoint has for it.

    Raises:
        InvalidArgumentError: it is of another type.
    """
    if value.dtype != cell.dtype.numpy:
        found = dtypes.from_numpy(value.dtype)
        raise InvalidArgumentError(
            f"variable '{cell.name}' is of type {cell.dtype}, but {found} in the checkpoint", file=prefix
        )
    with cell.lock:
        cell.value = variables.owned(value)


def saveable_variables(meta: MetaGraph) -> list[variable_pb2.VariableDef]:
    """The global variables that the collections list, each once, by name."""
    found: dict[str, variable_pb2.VariableDef] = {}
    for item in meta.collections.get(GraphKeys.GLOBAL_VARIABLES, []):
        if isinstance(item, bytes):
            variable = variable_def(item)
            found[variable.variable_name] = variable
    return [found[name] for name in sorted(found)]


def variable_nodes(graph: Graph) -> list[Node]:
    """The nodes that hold variables."""
    return [node for node in graph if node.op in ("VariableV2", "Variable", "VarHandleOp")]


def checkpoint_name(node: Node) -> str:
    """The name that a variable's node has among the session's resources and in checkpoints by name."""
    return node.attr("shared_name").decode() or node.name


def variable_cells(session: Session, graph: Graph) -> dict[str, variables.Cell]:
    """The cell of every variable in the graph by the name it has in checkpoints; made where it does not exist yet.

    Raises:
        UsageError: the session's variables are at the tasks of a master.
    """
    if session.is_remote:
        raise UsageError(
            "the variables are at the servers, where only operations of the graph save and restore them, and the graph "
            "has no saver; make one before it is written (tf.train.Saver())"
        )
    cells: dict[str, variables.Cell] = {}
    for node in variable_nodes(graph):
        container = node.attr("container").decode()
        name = checkpoint_name(node)
        dtype, shape = node.attr("dtype"), node.attr("shape")
        if node.op == "VarHandleOp":
            make = functools.partial(variables.Variable, name, dtype, shape)
            cells[name] = session.resources.get_or_create(container, name, variables.Variable, make)
        else:
            make_ref = functools.partial(variables.make_ref_variable, node.name, dtype, shape)
            cells[name] = session.resources.get_or_create(container, name, RefVariable, make_ref)
    return cells


def _naming_variable(error: InvalidArgumentError, graph: Graph) -> InvalidArgumentError:
    """The error of an Assign, which names the operation, with the variable it assigns."""
    node = graph.get(error.node or "")
    if node is not None and node.op == "Assign" and node.inputs:
        error.message = f"variable '{node.inputs[0].node.name}': {error.message}"
    return error


def _path_at(session: Session, path: str) -> str:
    """A path as the session's savers see it: servers have another working folder."""
    return str(Path.cwd() / path) if session.is_remote and not is_remote(path) else path


def _latest_beside(prefix: str) -> str:
    folder = paths.split(prefix)[0]
    latest = bundle.latest_checkpoint(folder) if paths.is_folder(folder) else None
    return f"; the latest in '{folder}' is '{latest}'" if latest else ""


def _tensor_name(name: str) -> str:
    return name if ":" in name else name + ":0"
