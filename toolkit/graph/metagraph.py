"""A graph with what belongs to it: signatures, collections, saver (MetaGraphDef)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from schemas import meta_graph_pb2, saver_pb2, struct_pb2
from toolkit.errors import GraphError
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

#: the key of the signature at which TensorFlow Serving looks first
DEFAULT_KEY = "serving_default"


class GraphKeys:
    """The standard names of collections."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    METRIC_VARIABLES = "metric_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    BIASES = "biases"
    WEIGHTS = "weights"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    TRAIN_OP = "train_op"
    SAVERS = "savers"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    SAVED_MODEL_INIT_OP = "saved_model_main_op"
    LEGACY_INIT_OP = "legacy_init_op"
    SAVED_MODEL_ASSETS = "saved_model_assets"


@dataclass(slots=True)
class TensorInfo:
    """One input or output of a signature.

    Attributes:
        name: the tensor, "x:0"; "" for a composite or a default-value-only entry.
        proto: the TensorInfo message it was read from, for composite and sparse encodings; or None.
    """

    name: str
    dtype: DType
    shape: Shape
    proto: meta_graph_pb2.TensorInfo | None = None

    def parts(self) -> dict[str, str]:
        """The tensors it stands for, by what is put behind its label; see `tensor_parts`."""
        if self.name or self.proto is None:
            return {"": self.name} if self.name else {}
        return tensor_parts(self.proto)


def tensor_parts(info: meta_graph_pb2.TensorInfo) -> dict[str, str]:
    """The tensors of an entry of a signature: one under "", or the parts of a composite.

    Those of a sparse tensor are ".indices", ".values" and ".dense_shape"; of a ragged one ".values" (the flat ones),
    ".row_splits" (the outermost), ".row_splits_1" and so on; of anything else ".0", ".1", ....
    """
    match info.WhichOneof("encoding"):
        case "name":
            return {"": info.name}
        case "coo_sparse":
            coo = info.coo_sparse
            names = (coo.indices_tensor_name, coo.values_tensor_name, coo.dense_shape_tensor_name)
            return dict(zip(_SPARSE_PARTS, names, strict=True))
        case "composite_tensor":
            components = info.composite_tensor.components
            labels = _part_labels(info.composite_tensor.type_spec.type_spec_class, len(components))
            return {
                label + inner: name
                for label, part in zip(labels, components, strict=True)
                for inner, name in tensor_parts(part).items()
            }
        case _:
            return {}


_SPARSE_PARTS = (".indices", ".values", ".dense_shape")


def _part_labels(kind: int, count: int) -> list[str]:
    if kind == struct_pb2.TypeSpecProto.SPARSE_TENSOR_SPEC and count == len(_SPARSE_PARTS):
        return list(_SPARSE_PARTS)
    if kind == struct_pb2.TypeSpecProto.RAGGED_TENSOR_SPEC and count > 1:
        return [".values", ".row_splits", *(f".row_splits_{level}" for level in range(1, count - 1))]
    return [f".{position}" for position in range(count)]


@dataclass(slots=True)
class Signature:
    """A named way to call the graph (SignatureDef)."""

    inputs: dict[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])
    outputs: dict[str, TensorInfo] = field(default_factory=dict[str, TensorInfo])
    method_name: str = ""
    proto: meta_graph_pb2.SignatureDef | None = None

    def input_tensors(self) -> dict[str, str]:
        """Label to tensor name of what it takes, composites in their parts: "x.indices", "x.values", ..."""
        return _tensors(self.inputs)

    def output_tensors(self) -> dict[str, str]:
        """Label to tensor name of what it gives, composites in their parts."""
        return _tensors(self.outputs)


def _tensors(infos: dict[str, TensorInfo]) -> dict[str, str]:
    return {label + part: name for label, info in infos.items() for part, name in info.parts().items()}


@dataclass(slots=True)
class MetaGraph:
    """A graph and its surroundings.

    Attributes:
        collections: name to list of str (node_list), bytes (bytes_list), int, float, or Any messages.
        shell: the MetaGraphDef read, without graph_def, signature_def, collection_def and saver_def: the rest
            of it (meta_info_def, assets, object graph, unknown fields) passes through.
    """

    graph: Graph
    signatures: dict[str, Signature] = field(default_factory=dict[str, Signature])
    collections: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    saver: saver_pb2.SaverDef | None = None
    shell: meta_graph_pb2.MetaGraphDef = field(default_factory=meta_graph_pb2.MetaGraphDef)

    @property
    def tags(self) -> list[str]:
        return list(self.shell.meta_info_def.tags)

    @property
    def assets(self) -> list[meta_graph_pb2.AssetFileDef]:
        """Its asset files; TensorFlow 1 lists them in a collection instead of the field there is for them.

        Raises:
            GraphError: that collection holds something else.
        """
        listed = self.collections.get(GraphKeys.SAVED_MODEL_ASSETS, [])
        return list(self.shell.asset_file_def) or [_asset(item) for item in listed]


def _asset(item: Any) -> meta_graph_pb2.AssetFileDef:
    if isinstance(item, any_pb2.Any):
        with contextlib.suppress(DecodeError):
            return meta_graph_pb2.AssetFileDef.FromString(item.value)
    raise GraphError(f"the collection '{GraphKeys.SAVED_MODEL_ASSETS}' has an item that is no AssetFileDef")
