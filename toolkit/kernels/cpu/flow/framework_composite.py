"""Composite tensors (ragged, sparse) as one variant, and apart again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from schemas import struct_pb2
from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.registry import Compute, KernelNode, kernel


@dataclass(frozen=True, slots=True)
class CompositeTensor:
    """Tensors that belong together.

    Attributes:
        components: the tensors.
        metadata: a serialized CompositeTensorVariantMetadata, which says what they form.
    """

    components: tuple[Any, ...]
    metadata: bytes


@kernel("CompositeTensorVariantFromComponents")
def composite_from_components(op: KernelNode) -> Compute:
    metadata: bytes = op.attr("metadata")
    try:
        struct_pb2.CompositeTensorVariantMetadata.FromString(metadata)
    except DecodeError:
        raise InvalidArgumentError(
            "attribute 'metadata' is no serialized CompositeTensorVariantMetadata", node=op.name
        ) from None
    return lambda *components: CompositeTensor(components, metadata)


@kernel("CompositeTensorVariantToComponents")
def composite_to_components(op: KernelNode) -> Compute:
    types = op.output_types

    def compute(encoded: Any) -> list[Any]:
        if not isinstance(encoded, CompositeTensor):
            raise InvalidArgumentError(f"expected a composite tensor, got {type(encoded).__name__}")
        found = [dtypes.from_numpy(c.dtype) if hasattr(c, "dtype") else None for c in encoded.components]
        if len(found) != len(types):
            raise InvalidArgumentError(f"Encoded value has {len(found)} tensors; expected {len(types)}")
        for number, (given, wanted) in enumerate(zip(found, types, strict=True)):
            if given is not None and given.numpy != wanted.numpy:
                raise InvalidArgumentError(f"Encoded component {number} has dtype {given}; expected {wanted}")
        return list(encoded.components)

    return compute
