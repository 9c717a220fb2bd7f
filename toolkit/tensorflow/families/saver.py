# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.train.Saver, checkpoints in folders, and MetaGraphs as files."""

from __future__ import annotations

import os
from typing import Any

from schemas import checkpoint_state_pb2, meta_graph_pb2, saver_pb2
from toolkit.client import context, importing, variables
from toolkit.client.export import to_meta_graph
from toolkit.client.train.saver import Saver as ClientSaver
from toolkit.formats import bundle
from toolkit.formats.bundle import state
from toolkit.formats.detect import Encoding, ModelKind
from toolkit.formats.io import write_atomic
from toolkit.formats.message import serialize
from toolkit.formats.metagraph import strip_defaults
from toolkit.formats.model import from_meta_graph, read_model, to_message
from toolkit.graph.metagraph import MetaGraph
from toolkit.runtime import saver as runtime
from toolkit.tensorflow.deprecation import log

#: where a graph keeps the SaverDefs of its savers, in the order in which they were made
SAVERS = "toolkit.tensorflow.savers"


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
        self._graph = context.get_default_graph()
        self._pad = pad_step_number
        self._max = max_to_keep or 0
        self._hours = keep_checkpoint_every_n_hours
        self._empty = False
        self._allows_none = allow_empty
        self._runs: runtime.Saver | None = None
        self._arguments: Any = (var_list, self._max, self._hours, name, sharded, restore_sequentially)
        self._filename = filename or "model"
        self.saver_def: saver_pb2.SaverDef | None = saver_def
        if saver_def is None and not defer_build:
            self.build()

    def build(self) -> None:
        """Add the nodes.

        Raises:
            ValueError: there are no variables, and `allow_empty` was not given.
        """
        if self.saver_def is not None:
            return
        chosen = self._arguments[0]
        if chosen is None:
            chosen = variables.global_variables() + context.get_default_graph().get_collection("saveable_objects")
        if not chosen:
            if not self._allows_none:
                raise ValueError("No variables to save")
            self._empty = True
            return
        self.saver_def = ClientSaver(chosen, *self._arguments[1:], filename=self._filename).saver_def
        self._graph.extras.setdefault(SAVERS, []).append(self.saver_def)

    def _runtime(self) -> runtime.Saver:
        meta = to_meta_graph(self._graph, saver_def=self.saver_def, left_out=log().warning)
        if self._runs is None:
            self._runs = runtime.Saver(meta, self._max, self._hours)
        self._runs.meta = meta  # the graph may have grown
        return self._runs

    def save(
        self, sess: Any, save_path: str, global_step: Any = None, latest_filename: Any = None,
        meta_graph_suffix: str = "meta", write_meta_graph: bool = True, write_state: bool = True,
        strip_default_attrs: bool = False, save_debug_info: bool = False,
    ) -> str | None:  # fmt: skip
        """Write a checkpoint; returns its prefix."""
        if self._empty:
            return None
        folder = os.path.dirname(save_path)
        if folder and not os.path.isdir(folder):
            raise ValueError(f"{save_path}: there is no folder {folder} to save in")
        step = global_step
        if step is not None and not isinstance(step, int):
            step = int(sess.run(step) if hasattr(step, "graph") else step)
        prefix = save_path
        if step is not None and self._pad:
            prefix, step = f"{save_path}-{step:08d}", None
        return self._runtime().save(sess, prefix, step, write_meta_graph=write_meta_graph, write_state=write_state)

    def restore(self, sess: Any, save_path: str) -> None:
        if self._empty:
            return
        if save_path is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError("save_path is None; expected the prefix of a checkpoint")
        if not state.exists(save_path):
            raise ValueError(f"{save_path}: there is no checkpoint of this prefix")
        self._runtime().restore(sess, save_path)

    @property
    def last_checkpoints(self) -> list[str]:
        return [] if self._runs is None else self._runs.last_checkpoints

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        self._runtime().recover_prefixes(last_checkpoints)

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        self._runtime().recover_prefixes([path for path in checkpoint_paths if state.exists(path)])

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[Any]) -> None:
        """As `set_last_checkpoints`, of pairs of a path and when it was written."""
        self._runtime().recover_prefixes([path for path, _ in last_checkpoints_with_time])

    @staticmethod
    def from_proto(saver_def: saver_pb2.SaverDef, import_scope: str | None = None) -> Saver:
        """A saver whose nodes are in the default graph, under a scope's name."""
        scoped = saver_pb2.SaverDef.FromString(saver_def.SerializeToString())
        if import_scope:
            for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                setattr(scoped, field, f"{import_scope}/{getattr(scoped, field)}")
        return Saver(saver_def=scoped, max_to_keep=scoped.max_to_keep, name=import_scope)

    def as_saver_def(self) -> saver_pb2.SaverDef | None:
        return self.saver_def

    def to_proto(self, export_scope: Any = None) -> saver_pb2.SaverDef | None:
        return self.saver_def

    def export_meta_graph(
        self, filename: Any = None, collection_list: Any = None, as_text: bool = False, export_scope: Any = None,
        clear_devices: bool = False, clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:  # fmt: skip
        return export_meta_graph(filename, saver_def=self.saver_def, collection_list=collection_list, as_text=as_text,
                                 graph=self._graph, clear_devices=clear_devices,
                                 strip_default_attrs=strip_default_attrs)  # fmt: skip


def export_meta_graph(
    filename: Any = None, meta_info_def: Any = None, graph_def: Any = None, saver_def: Any = None,
    collection_list: Any = None, as_text: bool = False, graph: Any = None, export_scope: Any = None,
    clear_devices: bool = False, clear_extraneous_savers: bool = False, strip_default_attrs: bool = False,
    save_debug_info: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """The MetaGraphDef of a graph; also written to a file where one is named."""
    meta: MetaGraph = to_meta_graph(graph, saver_def=saver_def, left_out=log().warning)
    if collection_list is not None:
        meta.collections = {key: value for key, value in meta.collections.items() if key in collection_list}
    message = to_message(from_meta_graph(meta), ModelKind.META_GRAPH)
    if clear_devices:
        for node in message.graph_def.node:
            node.device = ""
    if strip_default_attrs:
        strip_defaults(message)
    if filename:
        write_atomic(filename, serialize(message, Encoding.TEXT if as_text else Encoding.BINARY, filename))
    return message


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: Any = None, **kwargs: Any
) -> Saver | None:
    """Add a MetaGraph to the default graph; returns its saver, or None where it has none and no variables."""
    if isinstance(meta_graph_or_file, str):
        meta = read_model(meta_graph_or_file).meta
    else:
        from toolkit.formats.metagraph import from_proto

        message: Any = meta_graph_or_file
        meta = from_proto(meta_graph_pb2.MetaGraphDef.FromString(message.SerializeToString()))
    found = importing.import_meta_graph(meta, import_scope)
    if found is not None:
        return Saver(saver_def=found, name=import_scope)
    return Saver() if variables.global_variables() else None


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
