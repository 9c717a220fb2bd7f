"""Large tensors of a file that are left where they were read, as bytes, instead of in a message."""

from __future__ import annotations

from typing import NamedTuple

from schemas.tensor_pb2 import TensorProto

#: the attribute of constants that holds one
VALUE = "value"


class PackedTensor(NamedTuple):
    """A tensor whose elements lie packed.

    Attributes:
        head: its type and its shape, without `tensor_content`; do not change it.
        content: what `tensor_content` is; read-only.
    """

    head: TensorProto
    content: memoryview
