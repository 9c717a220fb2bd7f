# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.Saver, checkpoints in folders, and MetaGraphs as files."""

from __future__ import annotations

import math
import os
import re
from typing import Any

import numpy as np

from schemas import checkpoint_state_pb2, meta_graph_pb2, saver_pb2
from toolkit.client.construction import context
from toolkit.client.metagraphs import importing, scoped_graphs
from toolkit.client.metagraphs.messages import prepended
from toolkit.client.train.saveables import SaveableObject, SaveSpec, saveables
from toolkit.client.train.saver import Saver as ClientSaver
from toolkit.client.variables import by_collection
from toolkit.errors import NotFoundError
from toolkit.formats import bundle
from toolkit.formats.bundle import object_graph, state, storage
from toolkit.formats.bundle.remote import is_remote
from toolkit.formats.inspection.detect import Encoding, ModelKind
from toolkit.formats.models.message import serialize
from toolkit.formats.models.metagraph import strip_defaults
from toolkit.formats.models.model import read_model, to_message
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.runtime import session as runtime_session
from toolkit.runtime.saving import saver as runtime
from toolkit.tensorflow.deprecation import log

#: where a graph keeps the SaverDefs of its savers, in the order in which they were made
SAVERS = "toolkit.tensorflow.savers"

_NAMES = ("filename_tensor_name", "save_tensor_name", "restore_op_name")


class Saver:
    """Saves variables to checkpoints and restores them.

    The nodes are added when it is made, the files written when a session is given.
    """

    def __init__(
        self, var_list: Any = None, reshape: bool = False, sharded: bool = False, max_to_keep: Any = 5,
        keep_checkpoint_every_n_hours: float = 10000.0, name: Any = None, restore_sequentially: bool = False,
        saver_def: Any = None, builder: Any = None, defer_build: bool = False, allow_empty: bool = False,
        write_version: int = 2, pad_step_number: bool = False, save_relative_paths: bool = False, filename: Any = None,
    ):  # fmt: skip
        if defer_build and var_list:
            raise ValueError("a saver whose nodes are added later saves what there is then; leave var_list out")
        if builder is not None and type(builder) is not BaseSaverBuilder:
            raise ValueError(f"{builder!r}: savers with nodes of their own are not supported; leave builder out")
        self._graph = context.get_default_graph()
        self._pad_step_number = pad_step_number
        self._is_empty = False
        self._is_built = False
        self._allow_empty = allow_empty
        self._var_list = var_list
        self._name = name
        self._sharded = sharded
        # one RestoreV2 reads everything, so there is no order to ask for: restore_sequentially changes nothing
        self._options: dict[str, Any] = {
            "max_to_keep": max_to_keep or 0, "keep_checkpoint_every_n_hours": keep_checkpoint_every_n_hours,
            "name": name, "sharded": sharded, "filename": filename or "model", "reshape": reshape,
            "version": write_version,
        }  # fmt: skip
        self._runs: runtime.Saver | None = None
        self._save_relative_paths = save_relative_paths
        self.saver_def: saver_pb2.SaverDef | None = saver_def
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Add the nodes, once.

        Raises:
            ValueError: there are no variables, and `allow_empty` was not given; a SaverDef lacks a name.
        """
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def is not None:
            self._take_def(self.saver_def)
            return
        if self._var_list is None:
            self._var_list = all_saveable()
        if not self._var_list:
            if not self._allow_empty:
                raise ValueError("No variables to save")
            self._is_empty = True
            return
        self.saver_def = ClientSaver(self._var_list, **self._options).saver_def
        self._graph.extras.setdefault(SAVERS, []).append(self.saver_def)

    def _take_def(self, given: Any) -> None:
        if not hasattr(given, "save_tensor_name"):
            raise ValueError(f"saver_def is a SaverDef message, not {given!r}")
        if self._name:
            for field in _NAMES:
                setattr(given, field, _in_scope(self._name, getattr(given, field)))
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(given, field):
                raise ValueError(f"the SaverDef has no {field}; give one that as_saver_def() of a saver returned")
        self._sharded = given.sharded

    def _runtime(self) -> runtime.Saver:
        if self._runs is None:
            self._runs = runtime.Saver(MetaGraph(self._graph.core, saver=self.saver_def))
            self._runs.policy.relative = self._save_relative_paths
        return self._runs

    def save(
        self, sess: Any, save_path: str, global_step: Any = None, latest_filename: Any = None,
        meta_graph_suffix: str = "meta", write_meta_graph: bool = True, write_state: bool = True,
        strip_default_attrs: bool = False, save_debug_info: bool = False,
    ) -> str | None:  # fmt: skip
        """Write a checkpoint; returns its prefix, or None where there is nothing to save.

        Raises:
            RuntimeError: the nodes were to be added later, and are not.
            ValueError: the name of the state file is a path, or the checkpoint's.
            TypeError: it is no session.
        """
        if not self._is_built:
            raise RuntimeError("the saver has no nodes yet; call build() before save()")
        if os.path.split(latest_filename or "")[0]:
            raise ValueError(f"latest_filename '{latest_filename}' is a path; it names a file beside the checkpoint")
        save_path = os.fspath(save_path) if not isinstance(save_path, bytes) else save_path.decode()
        is_state = os.path.basename(save_path) == (latest_filename or "checkpoint")
        if global_step is None and is_state and not self._sharded:
            raise ValueError(f"save_path '{save_path}' has the name of the state file; choose another")
        if not isinstance(sess, runtime_session.Session) and not hasattr(sess, "run"):
            raise TypeError(f"sess must be a Session; got {sess!r}")
        prefix = save_path if global_step is None else f"{save_path}-{self._step(sess, global_step)}"
        written = None
        if not self._is_empty:
            saver = self._runtime()
            saver.policy.latest_filename = latest_filename
            saver.policy.meta_graph_suffix = meta_graph_suffix
            written = saver.save(sess, prefix, write_meta_graph=False, write_state=write_state)
        if write_meta_graph:
            stem = re.sub(r"-\?{5}-of-\d{5}$", "", prefix)
            self._graph_of(sess, f"{stem}.{meta_graph_suffix}", strip_default_attrs)
        return written

    def _graph_of(self, sess: Any, path: str, strip_default_attrs: bool) -> None:
        with sess.graph.as_default():
            self.export_meta_graph(path, strip_default_attrs=strip_default_attrs)

    def _step(self, sess: Any, step: Any) -> str:
        number = int(step) if isinstance(step, int | np.integer) else int(sess.run(step))
        return f"{number:08d}" if self._pad_step_number else f"{number:d}"

    def restore(self, sess: Any, save_path: str) -> None:
        """Read a checkpoint into the variables, by their names; an object-based one by the names it was written from.

        Raises:
            ValueError: there is no such checkpoint.
            NotFoundError, InvalidArgumentError: it has not what the graph needs.
        """
        if self._is_empty:
            return
        if save_path is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError("save_path is None; expected the prefix of a checkpoint")
        save_path = os.fspath(save_path) if not isinstance(save_path, bytes) else save_path.decode()
        if not state.exists(save_path):
            raise ValueError(f"{save_path}: there is no checkpoint of this prefix")
        log().info("Restoring parameters from %s", save_path)
        try:
            self._runtime().restore(sess, save_path)
        except NotFoundError:
            if self._var_list is None or not self._by_objects(sess, save_path):
                raise

    def _by_objects(self, sess: Any, save_path: str) -> bool:
        """Restore from an object-based checkpoint; False where it is none."""
        with bundle.open_checkpoint(save_path) as source:
            objects = object_graph.find_object_graph(source)
        if objects is None:
            return False
        keys = {full: key for key, full in objects.keys().items()}
        renamed: dict[str, Any] = {}
        for each in saveables(self._var_list):
            for spec in each.specs:
                if spec.name not in keys:
                    return False
                renamed[keys[spec.name]] = each.op
        log().warning("%s is an object-based checkpoint; its variables are found by the names they had", save_path)
        with self._graph.as_default():
            Saver(renamed).restore(sess, save_path)
        return True

    @property
    def _max_to_keep(self) -> int:
        return self._options["max_to_keep"] if self.saver_def is None else self.saver_def.max_to_keep

    @property
    def _last_checkpoints(self) -> list[tuple[str, float]]:
        """Pairs of a checkpoint and when it was written, oldest first: those that count, to be changed in place."""
        return self._runtime().policy.last if self._is_built else []

    @_last_checkpoints.setter
    def _last_checkpoints(self, pairs: list[tuple[str, float]]) -> None:
        self._runtime().policy.last = pairs

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first."""
        return [] if self._runs is None else self._runs.last_checkpoints

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """Take over checkpoints, which then count, but are never removed: nothing says how old they are."""
        assert isinstance(last_checkpoints, list)
        self._runtime().policy.last = [(path, math.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[Any]) -> None:
        """Take over pairs of a checkpoint and when it was written."""
        assert isinstance(last_checkpoints_with_time, list)
        self._runtime().policy.last = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """Take over those that are there, with the times of their files."""
        self._runtime().recover_prefixes(checkpoint_paths)

    @staticmethod
    def from_proto(saver_def: saver_pb2.SaverDef, import_scope: str | None = None) -> Saver:
        """A saver whose nodes are in the default graph, under a scope's name (which is written into the SaverDef)."""
        return Saver(saver_def=saver_def, name=import_scope)

    def as_saver_def(self) -> saver_pb2.SaverDef | None:
        return self.saver_def

    def to_proto(self, export_scope: Any = None) -> saver_pb2.SaverDef | None:
        """The SaverDef; with a scope, its names without that scope, or None where they are not in it."""
        if export_scope is None or self.saver_def is None:
            return self.saver_def
        return scoped_graphs.saver_in_scope(self.saver_def, export_scope)

    def export_meta_graph(
        self, filename: Any = None, collection_list: Any = None, as_text: bool = False, export_scope: Any = None,
        clear_devices: bool = False, clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:  # fmt: skip
        return export_meta_graph(
            filename, saver_def=self.saver_def, collection_list=collection_list, as_text=as_text,
            export_scope=export_scope, clear_devices=clear_devices, clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs, save_debug_info=save_debug_info,
        )  # fmt: skip


class BaseSaverBuilder:
    """What internal names of TensorFlow's savers are called: the pieces of saveable objects."""

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject

    def __init__(self, write_version: int = 2):
        self._write_version = write_version


def all_saveable(scope: str | None = None) -> list[Any]:
    """What a saver saves that is told nothing: global variables, and what the collection of saveable objects has."""
    return by_collection.global_variables(scope) + context.get_default_graph().get_collection("saveable_objects", scope)


def _in_scope(scope: str, name: str) -> str:
    return prepended(name, scope)


def export_meta_graph(
    filename: Any = None, meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: Any = None, as_text: bool = False, graph: Any = None, export_scope: Any = None,
    clear_devices: bool = False, clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
    save_debug_info: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """The MetaGraphDef of a graph, or of a scope of it; also written to a file where one is named.

    What files of debug information hold, the lines of the program that made each node, is not kept here, so
    `save_debug_info` writes none.
    """
    message = scoped_graphs.export_scoped(
        graph or context.get_default_graph(), export_scope, graph_def, saver_def, collection_list, meta_info_def,
        clear_devices=clear_devices, clear_extraneous_savers=clear_extraneous_savers,
        unbound_inputs=kwargs.get("unbound_inputs_col_name", "unbound_inputs"), left_out=log().warning,
    )  # fmt: skip
    if strip_default_attrs:
        strip_defaults(message)
        message.meta_info_def.stripped_default_attrs = True
    if filename:
        storage.write_file(filename, serialize(message, Encoding.TEXT if as_text else Encoding.BINARY, filename))
    return message


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: Any = None, **kwargs: Any
) -> Saver | None:
    """Add a MetaGraph to the default graph; returns its saver, or None where it has none and no variables.

    Further keywords: `input_map`, `restore_collections_predicate`, `unbound_inputs_col_name`, `graph`.

    Raises:
        OSError: there is no such file.
        ValueError: inputs are unbound that `input_map` does not bind.
    """
    from toolkit.tensorflow.families.data import queues  # its runners may be in a collection

    importing.READERS.setdefault(GraphKeys.QUEUE_RUNNERS, lambda found: queues.QueueRunner(queue_runner_def=found))
    importing.READERS.setdefault(GraphKeys.SAVERS, lambda found: Saver(saver_def=found))
    message = read_meta_graph(meta_graph_or_file)
    graph = kwargs.pop("graph", None) or context.get_default_graph()
    with graph.as_default():
        scope = scoped_graphs.import_scoped(message, import_scope, clear_devices=clear_devices, **kwargs)
        if message.HasField("saver_def"):
            return Saver(saver_def=saver_pb2.SaverDef.FromString(message.saver_def.SerializeToString()), name=scope)
        if all_saveable(import_scope):
            return Saver()
    log().info("there are no variables in the graph, so no saver was made")
    return None


def read_meta_graph(message_or_file: Any) -> meta_graph_pb2.MetaGraphDef:
    """A copy of a MetaGraphDef, or what a file has, binary or text.

    Raises:
        OSError: there is no such file.
    """
    if hasattr(message_or_file, "SerializeToString"):
        return meta_graph_pb2.MetaGraphDef.FromString(message_or_file.SerializeToString())
    path = os.fspath(message_or_file)
    if not is_remote(path) and not os.path.exists(path):
        raise OSError(f"File {path} does not exist.")
    return to_message(read_model(path), ModelKind.META_GRAPH)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    if not os.path.isdir(checkpoint_dir):
        return None
    return bundle.latest_checkpoint(checkpoint_dir, latest_filename)


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: Any = None) -> Any:
    """The CheckpointState of a folder, its paths complete; None where it has none."""
    if not os.path.isdir(checkpoint_dir):
        return None
    found = bundle.read_state(checkpoint_dir, latest_filename)
    if found is None:
        return None
    return checkpoint_state_pb2.CheckpointState(
        model_checkpoint_path=found.latest, all_model_checkpoint_paths=found.all_paths
    )


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    return state.exists(checkpoint_prefix)


class CheckpointReader:
    """What `tf.train.NewCheckpointReader` returns."""

    def __init__(self, prefix: str):
        self._source = bundle.open_checkpoint(prefix)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {name: list(self._source.entry(name).shape.as_list()) for name in self._source}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        return {name: self._source.entry(name).dtype for name in self._source}

    def has_tensor(self, tensor_str: str) -> bool:
        return tensor_str in self._source

    def get_tensor(self, tensor_str: str) -> Any:
        return self._source.read(tensor_str)

    def debug_string(self) -> bytes:
        """A line for each tensor: its name, type and shape. What is kept in slices is one line."""
        from schemas import types_pb2

        lines = [
            f"{name} ({types_pb2.DataType.Name(entry.dtype.enum)}) [{','.join(map(str, entry.shape.as_list()))}]"
            for name in self._source
            if (entry := self._source.entry(name))
        ]
        return "".join(line + "\n" for line in lines).encode()


def NewCheckpointReader(filepattern: str) -> CheckpointReader:  # noqa: N802
    return CheckpointReader(filepattern)


def load_checkpoint(ckpt_dir_or_file: str) -> CheckpointReader:
    found = latest_checkpoint(ckpt_dir_or_file) if os.path.isdir(ckpt_dir_or_file) else ckpt_dir_or_file
    if found is None:
        raise ValueError(f"{ckpt_dir_or_file}: there is no checkpoint in the folder")
    return CheckpointReader(found)


def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
