# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.saved_model: models written with their variables, assets and signatures, and loaded into a session."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from google.protobuf import any_pb2

from schemas import meta_graph_pb2, saved_model_pb2, types_pb2
from toolkit.client.construction import context
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.metagraphs import signatures
from toolkit.errors import GraphmillError
from toolkit.formats import io
from toolkit.formats.inspection.detect import BINARY_NAME, TEXT_NAME, Encoding, ModelKind, detect
from toolkit.formats.models import message, metagraph, savedmodel
from toolkit.formats.models.model import Model
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.policy.model_files import check_files
from toolkit.runtime.saving import saved_model as runtime
from toolkit.tensorflow.families.framework import variables
from toolkit.tensorflow.families.train import saver as savers

#: where TensorFlow looks for the message of an asset, in its own package
_ASSET_URL = "type.googleapis.com/tensorflow.AssetFileDef"
#: keys of signatures that name what starts and what trains a model
INIT_OP_KEY, TRAIN_OP_KEY = "__saved_model_init_op", "__saved_model_train_op"

build_tensor_info = signatures.build_tensor_info


def build_signature_def(inputs: Any = None, outputs: Any = None, method_name: Any = None, defaults: Any = None) -> Any:
    return signatures.build_signature_def(inputs, outputs, method_name, defaults)


def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: Any = None) -> Any:
    return signatures.tensor_of(tensor_info, graph, import_scope)


def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    return signatures.classification_signature(examples, classes, scores)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    return signatures.regression_signature(examples, predictions)


def predict_signature_def(inputs: Any, outputs: Any) -> Any:
    return signatures.predict_signature(inputs, outputs)


def is_valid_signature(signature_def: Any) -> bool:
    return signatures.is_valid_signature(signature_def)


def main_op() -> Any:
    """The operation that makes all variables and tables."""
    initializers = (variables.global_variables_initializer(), variables.local_variables_initializer())
    return group([*initializers, variables.tables_initializer()])


def main_op_with_restore(restore_op_name: Any) -> Any:
    """The operation that makes all variables and tables, then runs what restores them."""
    graph = context.get_default_graph()
    with graph.control_dependencies([main_op()]):
        restore = graph.as_graph_element(restore_op_name) if isinstance(restore_op_name, str) else restore_op_name
        return group([restore])


def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a SavedModel."""
    return any(os.path.exists(os.path.join(os.fspath(export_dir), name)) for name in savedmodel.FILE_NAMES)


# -- writing --------------------------------------------------------------------------------------------------------


class SavedModelBuilder:
    """Writes a SavedModel: graphs, each with tags, around one set of variables.

    Args:
        export_dir: a folder that does not exist yet, or is empty.

    Raises:
        AssertionError: there is something in the folder.
    """

    def __init__(self, export_dir: Any):
        self._folder = os.fspath(export_dir)
        if isinstance(self._folder, bytes):
            self._folder = os.fsdecode(self._folder)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AssertionError(f"{self._folder}: the folder to export to is not empty; give another one")
        os.makedirs(self._folder, exist_ok=True)
        self._graphs: list[meta_graph_pb2.MetaGraphDef] = []
        self._assets: dict[str, str] = {}
        self._has_variables = False

    def add_meta_graph(
        self, tags: Any, signature_def_map: Any = None, assets_collection: Any = None, legacy_init_op: Any = None,
        clear_devices: bool = False, main_op: Any = None, strip_default_attrs: bool = False, saver: Any = None,
    ) -> None:  # fmt: skip
        """Add the default graph, whose variables are those that are saved already."""
        if not self._has_variables:
            raise AssertionError("the variables are not saved yet; call add_meta_graph_and_variables() first")
        self._add(tags, signature_def_map, assets_collection, main_op, legacy_init_op, clear_devices,
                  strip_default_attrs, saver)  # fmt: skip

    def add_meta_graph_and_variables(
        self, sess: Any, tags: Any, signature_def_map: Any = None, assets_collection: Any = None,
        legacy_init_op: Any = None, clear_devices: bool = False, main_op: Any = None,
        strip_default_attrs: bool = False, saver: Any = None,
    ) -> None:  # fmt: skip
        """Add the default graph and save the session's variables."""
        if self._has_variables:
            raise AssertionError("the variables are saved already; call add_meta_graph() for further graphs")
        self._add(tags, signature_def_map, assets_collection, main_op, legacy_init_op, clear_devices,
                  strip_default_attrs, saver, sess)  # fmt: skip
        self._has_variables = True

    def save(self, as_text: bool = False) -> bytes:
        """Write the message; returns its path."""
        name = TEXT_NAME if as_text else BINARY_NAME
        path = os.path.join(self._folder, name)
        model = savedmodel.around(self._graphs)
        io.write_atomic(path, message.serialize(model, Encoding.TEXT if as_text else Encoding.BINARY, path))
        return path.encode()

    def _add(
        self, tags: Any, signature_def_map: Any, assets: Any, main_op: Any, legacy_init_op: Any, clear_devices: bool,
        strip: bool, saver: Any, session: Any = None,
    ) -> None:  # fmt: skip
        defs = dict(signature_def_map or {})
        _check_signatures(defs)
        self._take_assets(assets)
        _add_main_op(legacy_init_op if main_op is None else main_op)
        saver = saver or savers.Saver(
            variables.global_variables() + context.get_default_graph().get_collection("saveable_objects"),
            sharded=True, allow_empty=True,
        )  # fmt: skip
        if session is not None:
            os.makedirs(os.path.join(self._folder, "variables"), exist_ok=True)
            prefix = os.path.join(self._folder, savedmodel.VARIABLES)
            saver.save(session, prefix, write_meta_graph=False, write_state=False)
        graph = saver.export_meta_graph(clear_devices=clear_devices, strip_default_attrs=strip)
        graph.meta_info_def.tags.extend(tags)
        for key, signature in defs.items():
            graph.signature_def[key].CopyFrom(signature)
        self._graphs.append(graph)

    def _take_assets(self, assets: Any) -> None:
        """Copy the files that constants name, and list them in the graph's collection."""
        graph = context.get_default_graph()
        for tensor in assets or ():
            path = _asset_path(tensor)
            name = self._asset_name(path)
            if name not in self._assets:
                os.makedirs(os.path.join(self._folder, "assets"), exist_ok=True)
                shutil.copyfile(path, os.path.join(self._folder, "assets", name))
                self._assets[name] = path
            asset = meta_graph_pb2.AssetFileDef(filename=name)
            asset.tensor_info.name = tensor.name
            item = any_pb2.Any(type_url=_ASSET_URL, value=asset.SerializeToString())
            graph.add_to_collection(GraphKeys.SAVED_MODEL_ASSETS, item)

    def _asset_name(self, path: str) -> str:
        """The file's name, or another one where a different file has that name."""
        import filecmp

        name = base = os.path.basename(path)
        if base not in self._assets or filecmp.cmp(self._assets[base], path, shallow=False):
            return base
        count = 0
        while name in self._assets and self._assets[name] != path:
            count += 1
            name = f"{base}_{count}"
        return name


def simple_save(session: Any, export_dir: Any, inputs: Any, outputs: Any, legacy_init_op: Any = None) -> None:
    """Write a SavedModel for serving, with one signature."""
    builder = SavedModelBuilder(export_dir)
    builder.add_meta_graph_and_variables(
        session, [savedmodel.SERVE],
        signature_def_map={"serving_default": signatures.predict_signature(inputs, outputs)},
        assets_collection=context.get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS),
        main_op=legacy_init_op, clear_devices=True,
    )  # fmt: skip
    builder.save()


def _check_signatures(defs: dict[str, Any]) -> None:
    """Raises AssertionError where a tensor of a signature lacks its name or type, KeyError for a reserved key."""
    for key, signature in defs.items():
        if key in (INIT_OP_KEY, TRAIN_OP_KEY):
            raise KeyError(f"the key '{key}' of signatures is reserved; give another one")
        for label, info in (*signature.inputs.items(), *signature.outputs.items()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(f"the signature '{key}' names no tensor for '{label}'")
            if info.WhichOneof("encoding") != "composite_tensor" and info.dtype == types_pb2.DT_INVALID:
                raise AssertionError(f"the signature '{key}' does not say of which type '{label}' is")


def _add_main_op(op: Any) -> None:
    if op is None:
        return
    if not isinstance(op, Operation):
        raise TypeError(f"main_op must be an Operation; got {op!r}")
    graph = context.get_default_graph()
    for key in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP):
        if graph.get_collection(key):
            raise ValueError(f"the graph has a main op already, in the collection '{key}'")
    graph.add_to_collection(GraphKeys.SAVED_MODEL_INIT_OP, op)


def _asset_path(tensor: Any) -> str:
    if not isinstance(tensor, Tensor) or tensor.op.type != "Const" or tensor.dtype is not dtypes.string:
        raise TypeError(f"the path of an asset must be a constant of strings; got {tensor!r}")
    proto = tensor.op.node.attr_proto("value")
    values = () if proto is None else proto.tensor.string_val
    if len(values) != 1:
        raise TypeError(f"the path of an asset must be one string; '{tensor.name}' has {len(values)}")
    return os.fsdecode(values[0])


# -- loading --------------------------------------------------------------------------------------------------------


def load(sess: Any, tags: Any, export_dir: Any, import_scope: Any = None, **saver_kwargs: Any) -> Any:
    """Add the graph with these tags to the session's, restore its variables and run its init op.

    Returns:
        The MetaGraphDef as it was written.

    Raises:
        OSError: there is no SavedModel.
        RuntimeError: no graph in it has exactly these tags.
    """
    folder = os.fsdecode(export_dir)
    found = meta_graph_of(read(folder), tags, folder)
    with sess.graph.as_default():
        saver = savers.import_meta_graph(found, import_scope=import_scope, **saver_kwargs)
        if saver is not None:
            saver.restore(sess, os.path.join(folder, savedmodel.VARIABLES))
        _run_init_op(sess, Path(folder), found, import_scope)
    return found


def read(folder: str) -> saved_model_pb2.SavedModel:
    """The message of a SavedModel folder.

    Raises:
        OSError: there is none, or it is damaged.
    """
    if not contains_saved_model(folder):
        raise OSError(f"{folder}: there is no SavedModel in the folder (no {BINARY_NAME}, no {TEXT_NAME})")
    try:
        return message.read_message(detect(folder), folder)[1]
    except GraphmillError as error:
        raise OSError(str(error)) from None


def meta_graph_of(model: Any, tags: Any, folder: str) -> Any:
    """The graph of a SavedModel with exactly these tags."""
    wanted = {tags} if isinstance(tags, str) else set(tags)
    for graph in model.meta_graphs:
        if set(graph.meta_info_def.tags) == wanted:
            return graph
    there = "; ".join(",".join(sorted(graph.meta_info_def.tags)) for graph in model.meta_graphs)
    raise RuntimeError(f"{folder}: no graph has the tags {','.join(sorted(wanted))}; there are: {there}")


def _run_init_op(session: Any, folder: Path, found: Any, import_scope: Any) -> None:
    graph = session.graph
    prefix = f"{import_scope}/" if import_scope else ""
    meta = metagraph.from_proto(meta_graph_pb2.MetaGraphDef.FromString(found.SerializeToString()))
    op = runtime.init_op(meta)
    if op is None:
        return
    model = Model(ModelKind.SAVED_MODEL, Encoding.BINARY, str(folder), [meta], folder=folder)
    check_files(session.access, folder, runtime.asset_names(model), variables=False)
    assets = runtime.asset_feeds(model)
    feeds = {graph.get_tensor_by_name(prefix + f"{tensor.node.name}:{tensor.index}"): value
             for tensor, value in assets.items()}  # fmt: skip
    session.run(graph.get_operation_by_name(prefix + op.name), feeds)


class MethodNameUpdater:
    """Changes the methods that a SavedModel's signatures are called by.

    Raises:
        OSError: there is no SavedModel in the folder.
    """

    def __init__(self, export_dir: Any):
        self._folder = os.fsdecode(export_dir)
        self._model = read(self._folder)

    def replace_method_name(self, signature_key: Any, method_name: Any, tags: Any = None) -> None:
        """Change the method of a signature, in the graph with these tags or in all.

        Raises:
            ValueError: no graph has the tags, or one has no such signature.
        """
        if not signature_key or not method_name:
            raise ValueError("a signature's key and the name of a method are needed")
        wanted = None if tags is None else set(tags if isinstance(tags, list) else [tags])
        graphs = [each for each in self._model.meta_graphs if wanted in (None, set(each.meta_info_def.tags))]
        if not graphs:
            raise ValueError(f"{self._folder}: no graph has the tags {','.join(sorted(wanted or ()))}")
        for graph in graphs:
            if signature_key not in graph.signature_def:
                there = ", ".join(sorted(graph.signature_def)) or "none"
                raise ValueError(f"{self._folder}: there is no signature '{signature_key}'; there are: {there}")
            graph.signature_def[signature_key].method_name = method_name

    def save(self, new_export_dir: Any = None) -> None:
        """Write the message, into its own folder or another one."""
        folder = self._folder if new_export_dir is None else os.fsdecode(new_export_dir)
        as_text = os.path.exists(os.path.join(self._folder, TEXT_NAME))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, TEXT_NAME if as_text else BINARY_NAME)
        io.write_atomic(path, message.serialize(self._model, Encoding.TEXT if as_text else Encoding.BINARY, path))
