"""Sparse tensors as strings or variants, and kept for later in a map of the session."""

from __future__ import annotations

import itertools
import threading

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import GraphmillError, InvalidArgumentError
from toolkit.formats.arrays.tensor import to_array
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, require_vector, shape_text
from toolkit.kernels.cpu.sparse.basic import check_order
from toolkit.kernels.cpu.sparse.forms import check_countable, check_sparse
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources.handles import resource_name
from toolkit.kernels.types import Array

Triple = tuple[Array, Array, Array]


def _proto_bytes(value: Array, dtype: DType) -> bytes:
    """The TensorProto of an array with its elements as one block of bytes, however few they are."""
    proto = TensorProto(dtype=dtype.enum)  # type: ignore[arg-type]
    proto.tensor_shape.SetInParent()
    for size in value.shape:
        proto.tensor_shape.dim.add(size=size)
    if dtype.kind == "s":  # all the lengths, then all the bytes
        items: list[bytes] = value.reshape(-1).tolist()
        proto.tensor_content = b"".join([_varint(len(item)) for item in items] + items)
    else:
        proto.tensor_content = np.ascontiguousarray(value).tobytes()
    return proto.SerializeToString()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _encode(triple: Triple, dtype: DType, as_variant: bool) -> list[object]:
    if as_variant:
        return list(triple)
    kinds = (dtypes.int64, dtype, dtypes.int64)
    return [_proto_bytes(part, kind) for part, kind in zip(triple, kinds, strict=True)]


def _decode(row: Array, dtype: DType) -> Triple:
    parts: list[Array] = []
    for item in row:
        if isinstance(item, bytes):
            try:
                parts.append(np.asarray(to_array(TensorProto.FromString(item))))
            except (GraphmillError, ValueError) as error:  # protobuf's DecodeError is a ValueError
                raise InvalidArgumentError(f"Could not parse a serialized sparse tensor: {error}") from None
            except Exception as error:
                if type(error).__name__ != "DecodeError":
                    raise
                raise InvalidArgumentError("Could not parse a serialized sparse tensor: no TensorProto") from None
        else:
            parts.append(item)
    indices, values, shape = parts
    require(values.dtype == dtype.numpy, f"Requested SparseTensor of type {dtype} but the values are {values.dtype}")
    check_sparse(indices, values, shape)
    return indices, values, shape


def split_rows(indices: Array, values: Array, shape: Array) -> list[Triple]:
    """The sparse tensors of the first dimension's rows.

    Raises:
        InvalidArgumentError: parts do not fit together, or indices are out of order, repeated or out of bounds.
    """
    check_sparse(indices, values, shape)
    require(len(shape) > 1, f"Rank of input SparseTensor should be > 1, but saw rank: {len(shape)}")
    check_countable(shape)
    check_order(indices, shape)
    ends = np.searchsorted(indices[:, 0], np.arange(int(shape[0]) + 1))
    return [(indices[a:b, 1:], values[a:b], shape[1:]) for a, b in itertools.pairwise(ends)]


def stack_rows(rows: list[Triple], dtype: DType) -> Triple:
    """One sparse tensor with the given ones as its rows; its other sizes are the largest."""
    if not rows:
        return np.zeros((0, 1), np.int64), np.zeros(0, dtype.numpy), np.zeros(1, np.int64)
    rank = len(rows[0][2])
    for i, (_, _, shape) in enumerate(rows):
        require(
            len(shape) == rank,
            f"Inconsistent rank across SparseTensors: rank prior to SparseTensor[{i}] was: "
            f"{rank} but rank of SparseTensor[{i}] is: {len(shape)}",
        )
    lengths = [len(values) for _, values, _ in rows]
    first = np.repeat(np.arange(len(rows)), lengths)[:, None]
    indices = np.concatenate([first, np.concatenate([row[0] for row in rows])], axis=1)
    values = np.concatenate([row[1] for row in rows])
    shape = np.concatenate([[len(rows)], np.max([row[2] for row in rows], axis=0)])
    return indices.astype(np.int64), values, shape.astype(np.int64)


@kernel("SerializeSparse", "SerializeManySparse")
def serialize_sparse(op: KernelNode) -> Compute:
    """[3] strings or variants, or a row of them for each row of the input."""
    dtype, as_variant = op.input_types[1], op.output_types[0].kind == "v"
    many = op.op == "SerializeManySparse"

    def compute(indices: Array, values: Array, shape: Array) -> Array:
        for part, rank, what in ((indices, 2, "indices"), (values, 1, "values"), (shape, 1, "shape")):
            kind = "matrix" if rank == 2 else "vector"
            require(part.ndim == rank, f"Input {what} should be a {kind}, got shape {shape_text(part)}")
        # one is written as it is, whether its parts fit together or not: who reads it looks
        rows = split_rows(indices, values, shape) if many else [(indices, values, shape)]
        out = np.empty((len(rows), 3), object)
        for i, row in enumerate(rows):
            for j, part in enumerate(_encode(row, dtype, as_variant)):
                out[i, j] = part
        return out if many else out[0]

    return compute


@kernel("DeserializeSparse", "DeserializeManySparse")
def deserialize_sparse(op: KernelNode) -> Compute:
    """The inverse: the dimensions before the last of the input become the first of the result."""
    dtype = op.output_types[1]
    many = op.op == "DeserializeManySparse"

    def compute(serialized: Array) -> Triple:
        require(isinstance(serialized, np.ndarray), "Serialized sparse should have non-zero rank; it is one variant")
        require(serialized.ndim >= 1, f"Serialized sparse should have non-zero rank {shape_text(serialized)}")
        require(
            serialized.shape[-1] == 3, f"Serialized sparse should have 3 as the last dimension {shape_text(serialized)}"
        )
        if many:
            require(serialized.ndim == 2, f"Serialized sparse should be a matrix, got {shape_text(serialized)}")
        if serialized.ndim == 1:
            return _decode(serialized, dtype)
        outer = serialized.shape[:-1]
        require(0 not in outer, f"Serialized sparse has no rows: {shape_text(serialized)}")
        indices, values, shape = stack_rows([_decode(row, dtype) for row in serialized.reshape(-1, 3)], dtype)
        if len(outer) == 1:
            return indices, values, shape
        spread = np.stack(np.unravel_index(indices[:, 0], outer), axis=1)
        return (
            np.concatenate([spread, indices[:, 1:]], axis=1).astype(np.int64), values,
            np.concatenate([outer, shape[1:]]).astype(np.int64),
        )  # fmt: skip

    return compute


class SparseTensorsMap:
    """Sparse tensors of a session by number; each is taken once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0
        self._tensors: dict[int, Triple] = {}

    def add(self, triple: Triple) -> int:
        with self._lock:
            number = self._next
            self._next += 1
            self._tensors[number] = triple
            return number

    def take(self, numbers: list[int]) -> list[Triple]:
        """Raises InvalidArgumentError for a number that is not there."""
        with self._lock:
            for number in numbers:
                require(number in self._tensors, f"Unable to find SparseTensor: {number} in map")
            return [self._tensors.pop(number) for number in numbers]


@kernel("AddSparseToTensorsMap", "AddManySparseToTensorsMap", kind=Kind.STATEFUL)
def add_to_map(op: KernelNode) -> Compute:
    container, name = resource_name(op)
    many = op.op == "AddManySparseToTensorsMap"

    def compute(step: StepContext, indices: Array, values: Array, shape: Array) -> Array:
        check_sparse(indices, values, shape)
        check_countable(shape)
        rows = split_rows(indices, values, shape) if many else [(indices, values, shape)]
        store = step.resources.get_or_create(container, name, SparseTensorsMap, SparseTensorsMap)
        numbers = np.array([store.add(row) for row in rows], np.int64)
        return numbers if many else numbers.reshape(-1)[0].reshape(())

    return compute


@kernel("TakeManySparseFromTensorsMap", kind=Kind.STATEFUL)
def take_from_map(op: KernelNode) -> Compute:
    container, name = resource_name(op)
    dtype = op.output_types[1]

    def compute(step: StepContext, numbers: Array) -> Triple:
        require_vector(numbers, "sparse_handles")
        store = step.resources.get(container, name, SparseTensorsMap)
        rows = store.take(numbers.tolist())
        for row in rows:
            require(row[1].dtype == dtype.numpy, f"dtypes of the stored tensors are {row[1].dtype}, not {dtype}")
        return stack_rows(rows, dtype)

    return compute
