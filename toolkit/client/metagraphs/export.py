"""A graph that was made, as a MetaGraph for a file: collections as messages, signatures, the saver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import any_pb2

from schemas import saver_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.errors import GraphError
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature, TensorInfo

PREDICT_METHOD = "tensorflow/serving/predict"

#: collections whose members are written as messages; in all others, variables are written by name
_MESSAGE_COLLECTIONS = frozenset({
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES, GraphKeys.GLOBAL_STEP,
    GraphKeys.QUEUE_RUNNERS, GraphKeys.SAVERS, GraphKeys.COND_CONTEXT, GraphKeys.WHILE_CONTEXT,
})  # fmt: skip


def to_meta_graph(
    graph: Graph | None = None,
    signatures: Mapping[str, Signature] | None = None,
    saver_def: saver_pb2.SaverDef | None = None,
    add_shapes: bool = False,
    left_out: Callable[[str], None] | None = None,
) -> MetaGraph:
    """The MetaGraph of a graph (default: the default graph), sharing its nodes.

    Args:
        add_shapes: write the inferred shapes into the nodes as `_output_shapes`.
        left_out: told, in one line, of each collection that cannot be written, which is then left out.

    Raises:
        GraphError: a collection holds something that cannot be written, and `left_out` is not given.
    """
    graph = graph or get_default_graph()
    if add_shapes:
        for op in graph.get_operations():
            if op.outputs:
                op.set_attr("_output_shapes", [tensor.static_shape for tensor in op.outputs])
    collections: dict[str, list[Any]] = {}
    for key, items in graph.collections.items():
        try:
            written = _collection(key, items)
        except GraphError as error:
            if left_out is None:
                raise
            left_out(error.message)
            continue
        if written:
            collections[key] = written
    return MetaGraph(graph.core, dict(signatures or {}), collections, saver_def)


def _collection(key: str, items: list[Any]) -> list[Any]:
    return [_item(key, item) for item in items if _is_written(key, item)]


def _is_written(key: str, item: Any) -> bool:
    """Whether a file can hold it: what lives in this process alone, and savers that are not built, stay out."""
    if getattr(item, "in_process_only", False):
        return False
    return key != GraphKeys.SAVERS or not hasattr(item, "to_proto") or item.to_proto() is not None


def _item(key: str, item: Any) -> Any:
    if isinstance(item, str | bytes | int | float | any_pb2.Any):
        return item.encode() if isinstance(item, str) else item
    if key in _MESSAGE_COLLECTIONS and hasattr(item, "to_proto"):
        return item.to_proto().SerializeToString(deterministic=True)
    if isinstance(item, IndexedSlices):
        return item.values.name
    name = getattr(item, "name", None)
    if isinstance(name, str):
        return name
    raise GraphError(f"{item!r} in the collection '{key}' cannot be written; add tensors, operations or variables")


def tensor_info(tensor: Any) -> TensorInfo:
    """How a signature names a tensor (or variable): name, type without reference, static shape."""
    element = tensor.graph_element() if hasattr(tensor, "graph_element") else tensor
    if isinstance(element, Operation) or not isinstance(element, Tensor):
        raise GraphError(f"{tensor!r} is no tensor, so a signature cannot name it")
    return TensorInfo(element.name, element.dtype.base, element.static_shape)


def predict_signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str = PREDICT_METHOD) -> Signature:
    """A signature from tensors."""
    return Signature(
        {key: tensor_info(tensor) for key, tensor in inputs.items()},
        {key: tensor_info(tensor) for key, tensor in outputs.items()},
        method,
    )
