# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What tensors of features and labels are like, so that later ones can be compared and placeholders made."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client.arrays import array_ops
from toolkit.client.inputs.parsing import FixedLenFeature, VarLenFeature, parse_example
from toolkit.client.math import math_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes


class _Signature(NamedTuple):
    dtype: Any
    shape: Any
    is_sparse: bool


class TensorSignature(_Signature):
    """The type and shape of a tensor; of a sparse one the type alone."""

    def __new__(cls, tensor: Any) -> TensorSignature:
        if isinstance(tensor, SparseTensor):
            return super().__new__(cls, tensor.values.dtype, None, True)
        return super().__new__(cls, tensor.dtype, tensor.get_shape(), False)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor of the one may stand where one of the other did; batches may be of any size."""
        if self.is_sparse or other.is_sparse:
            return self.is_sparse and other.is_sparse and self.dtype.base == other.dtype.base
        if self.dtype.base != other.dtype.base:
            return False
        one, another = self.shape, other.shape
        if one.ndims is None or another.ndims is None:
            return True
        pairs = zip(one.as_list()[1:], another.as_list()[1:], strict=False)
        return one.ndims == another.ndims and all(a is None or b is None or a == b for a, b in pairs)

    def get_placeholder(self) -> Any:
        if self.is_sparse:
            return sparse_ops.placeholder(self.dtype)
        return array_ops.placeholder(self.dtype, [None, *self.shape.as_list()[1:]])

    def get_feature_spec(self) -> Any:
        """How it is read from examples, which know float32, int64 and strings."""
        dtype = {dtypes.int32: dtypes.int64, dtypes.float64: dtypes.float32}.get(self.dtype, self.dtype)
        return VarLenFeature(dtype) if self.is_sparse else FixedLenFeature(self.shape.as_list()[1:], dtype)


def tensors_compatible(tensors: Any, signatures: Any) -> bool:
    """Whether tensors, one or by name, are like signatures."""
    if tensors is None or signatures is None:
        return tensors is signatures
    if isinstance(tensors, dict) != isinstance(signatures, dict):
        return False
    if isinstance(tensors, dict):
        return all(
            key in tensors and TensorSignature(tensors[key]).is_compatible_with(each)
            for key, each in signatures.items()
        )
    return TensorSignature(tensors).is_compatible_with(signatures)


def create_signatures(tensors: Any) -> Any:
    """Signatures of tensors, one or by name."""
    if isinstance(tensors, dict):
        return {key: TensorSignature(tensor) for key, tensor in tensors.items()}
    return None if tensors is None else TensorSignature(tensors)


def create_placeholders_from_signatures(signatures: Any) -> Any:
    """Placeholders like the tensors that there were."""
    if signatures is None:
        return None
    if isinstance(signatures, dict):
        return {key: each.get_placeholder() for key, each in signatures.items()}
    return signatures.get_placeholder()


def create_example_parser_from_signatures(
    signatures: Any, examples_batch: Any, single_feature_name: str = "feature"
) -> Any:
    """Features out of serialized examples, of the types that there were."""
    by_name = signatures if isinstance(signatures, dict) else {single_feature_name: signatures}
    features = parse_example(examples_batch, {key: each.get_feature_spec() for key, each in by_name.items()})
    for key, each in by_name.items():
        if each.dtype.base != features[key].dtype.base:
            features[key] = math_ops.cast(features[key], each.dtype)
    return features if isinstance(signatures, dict) else features[single_feature_name]
