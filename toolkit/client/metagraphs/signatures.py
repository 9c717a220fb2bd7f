"""How the graph of a SavedModel is called: SignatureDef messages made of tensors, and tensors found by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas import meta_graph_pb2, types_pb2
from toolkit.client.construction.context import get_default_graph
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph.attrs import shape_to_proto
from toolkit.graph.shape import Shape

CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"
PREDICT = "tensorflow/serving/predict"
TRAIN = "tensorflow/supervised/training"
EVALUATE = "tensorflow/supervised/eval"
INPUTS, OUTPUTS, CLASSES, SCORES = "inputs", "outputs", "classes", "scores"

TensorInfo = meta_graph_pb2.TensorInfo
SignatureDef = meta_graph_pb2.SignatureDef


def build_tensor_info(tensor: Any) -> TensorInfo:
    """The message that names a tensor, variable or sparse tensor, with its type and static shape."""
    if isinstance(tensor, SparseTensor):
        info = TensorInfo(dtype=_enum(tensor), tensor_shape=shape_to_proto(tensor.static_shape))
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
        return info
    return TensorInfo(
        name=tensor.name, dtype=tensor.dtype.enum, tensor_shape=shape_to_proto(tensor.static_shape)
    )  # fmt: skip


def build_operation_info(op: Any) -> TensorInfo:
    """The message that names an operation where a tensor is expected; it has neither type nor shape."""
    return TensorInfo(name=op.name, dtype=types_pb2.DT_INVALID, tensor_shape=shape_to_proto(Shape(None)))


def tensor_of(tensor_info: TensorInfo, graph: Any = None, import_scope: str | None = None) -> Any:
    """The tensor or sparse tensor that a message names.

    Args:
        graph: where to look; default: the default graph.
        import_scope: into which the graph of the message was imported.

    Raises:
        ValueError: it names no tensor.
    """
    graph = graph or get_default_graph()
    prefix = import_scope.rstrip("/") + "/" if import_scope else ""

    def tensor(name: str) -> Any:
        return graph.get_tensor_by_name(prefix + name)

    match tensor_info.WhichOneof("encoding"):
        case "name":
            return tensor(tensor_info.name)
        case "coo_sparse":
            coo = tensor_info.coo_sparse
            parts = (coo.indices_tensor_name, coo.values_tensor_name, coo.dense_shape_tensor_name)
            return SparseTensor(*map(tensor, parts))
        case encoding:
            raise ValueError(f"the TensorInfo has the encoding '{encoding}'; expected 'name' or 'coo_sparse'")


def build_signature_def(
    inputs: Mapping[str, TensorInfo] | None = None,
    outputs: Mapping[str, TensorInfo] | None = None,
    method_name: str | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> SignatureDef:
    """A signature of messages that name tensors.

    Args:
        defaults: constants that stand for inputs which are not given.

    Raises:
        ValueError: one of them is no constant.
    """
    signature = SignatureDef(method_name=method_name or "")
    for key, info in (inputs or {}).items():
        signature.inputs[key].CopyFrom(info)
    for key, info in (outputs or {}).items():
        signature.outputs[key].CopyFrom(info)
    for key, tensor in (defaults or {}).items():
        op = getattr(tensor, "op", None)
        if op is None or op.type != "Const":
            raise ValueError(f"the default of '{key}' must be a constant; got {tensor!r}")
        signature.defaults[key].CopyFrom(op.node.attr_proto("value").tensor)
    return signature


def predict_signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> SignatureDef:
    """A signature of the Predict call.

    Raises:
        ValueError: there are no inputs or no outputs.
    """
    return _of_tensors(PREDICT, inputs, outputs)


def supervised_signature(method: str, inputs: Mapping[str, Any], *outputs: Mapping[str, Any] | None) -> SignatureDef:
    """A signature of training or evaluation: losses, predictions and metrics are its outputs."""
    if not inputs:
        raise ValueError(f"a signature of {method} has inputs; there are none")
    joined = {key: tensor for each in outputs for key, tensor in (each or {}).items()}
    return build_signature_def(_infos(inputs), _infos(joined), method)


def classification_signature(examples: Any, classes: Any, scores: Any) -> SignatureDef:
    """A signature of the Classify call: serialized examples to classes (strings), scores (floats) or both.

    Raises:
        ValueError: a tensor is of another type, or there is nothing to give.
    """
    if classes is None and scores is None:
        raise ValueError("a classification gives classes, scores or both; both are None")
    outputs: dict[str, TensorInfo] = {}
    if classes is not None:
        outputs[CLASSES] = _typed("the classes of a classification", classes, types_pb2.DT_STRING)
    if scores is not None:
        outputs[SCORES] = _typed("the scores of a classification", scores, types_pb2.DT_FLOAT)
    examples = _typed("the examples of a classification", examples, types_pb2.DT_STRING)
    return build_signature_def({INPUTS: examples}, outputs, CLASSIFY)


def regression_signature(examples: Any, predictions: Any) -> SignatureDef:
    """A signature of the Regress call: serialized examples to floats.

    Raises:
        ValueError: a tensor is missing or of another type.
    """
    given = _typed("the examples of a regression", examples, types_pb2.DT_STRING)
    found = _typed("the predictions of a regression", predictions, types_pb2.DT_FLOAT)
    return build_signature_def({INPUTS: given}, {OUTPUTS: found}, REGRESS)


def is_valid_signature(signature_def: SignatureDef | None) -> bool:
    """Whether a server can answer the call: inputs and outputs are those of its method, of the right types."""
    if signature_def is None:
        return False
    inputs = {key: info.dtype for key, info in signature_def.inputs.items()}
    outputs = {key: info.dtype for key, info in signature_def.outputs.items()}
    match signature_def.method_name:
        case "tensorflow/serving/predict":
            return bool(inputs and outputs)
        case "tensorflow/serving/regress":
            return inputs == {INPUTS: types_pb2.DT_STRING} and outputs == {OUTPUTS: types_pb2.DT_FLOAT}
        case "tensorflow/serving/classify":
            wanted = {CLASSES: types_pb2.DT_STRING, SCORES: types_pb2.DT_FLOAT}
            return (
                inputs == {INPUTS: types_pb2.DT_STRING} and bool(outputs)
                and all(wanted.get(key) == dtype for key, dtype in outputs.items())
            )  # fmt: skip
        case _:
            return False


def _of_tensors(method: str, inputs: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None) -> SignatureDef:
    for what, tensors in (("inputs", inputs), ("outputs", outputs)):
        if not tensors:
            raise ValueError(f"a signature of {method} has {what}; there are none")
    return build_signature_def(_infos(inputs or {}), _infos(outputs or {}), method)


def _enum(tensor: Any) -> Any:
    return tensor.dtype.enum


def _infos(tensors: Mapping[str, Any]) -> dict[str, TensorInfo]:
    return {key: build_tensor_info(tensor) for key, tensor in tensors.items()}


def _typed(what: str, tensor: Any, wanted: int) -> TensorInfo:
    name = types_pb2.DataType.Name(wanted)
    if tensor is None or not hasattr(tensor, "dtype"):
        raise ValueError(f"{what} must be a tensor of {name}; got {tensor!r}")
    info = build_tensor_info(tensor)
    if info.dtype != wanted:
        raise ValueError(f"{what} must be of {name}; '{tensor.name}' is of {types_pb2.DataType.Name(info.dtype)}")
    return info
