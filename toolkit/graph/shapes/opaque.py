"""Ops of whose results nothing but the rank, or nothing at all, is known before a step, and ops that give one number.

What a container or a variant holds is what was put there when a step ran.
"""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape
from toolkit.graph.shapes.registry import ShapeContext, shape_function


@shape_function(
    "AccumulatorTakeGradient", "CompositeTensorVariantToComponents", "MapPeek", "MapUnstage", "MapUnstageNoKey",
    "NearestNeighbors", "OrderedMapPeek", "OrderedMapUnstage", "OrderedMapUnstageNoKey",
    "ResourceAccumulatorTakeGradient", "SetSize", "SparseAccumulatorTakeGradient", "StagePeek", "TensorMapLookup",
    "TensorMapStackKeys", "Unstage",
)  # fmt: skip
def unknown(c: ShapeContext) -> list[Shape]:
    return c.unknown()


@shape_function(
    "CompositeTensorVariantFromComponents", "DummyMemoryCache", "DummySeedGenerator", "EncodeJpegVariableQuality",
    "ExperimentalDatasetCardinality", "GraphDefVersion",
)  # fmt: skip
def one(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("DatasetToTFRecord", "ExperimentalDatasetToTFRecord")
def nothing(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("DecodeProtoV2")
def decode_proto(c: ShapeContext) -> list[Shape]:
    """How many values each field has, in each message, and those values."""
    fields, messages = c.node.num_outputs - 1, c.inputs[0]
    return [messages.concatenate(Shape([fields])), *[messages.concatenate(Shape([None]))] * fields]


@shape_function("EncodeProto")
def encode_proto(c: ShapeContext) -> list[Shape]:
    """A message for each list of values."""
    messages = UNKNOWN
    for index in range(1, len(c.inputs)):
        messages = messages.merge(c.rank_at_least(index, 1).slice(0, -1))
    return [messages]


@shape_function("FFTND", "IFFTND", "RFFTND", "IRFFTND")
def transform(c: ShapeContext) -> list[Shape]:
    """The sizes along the axes of the transform follow from fft_length, not from the input."""
    source, axes = c.rank_at_least(0, 1), c.integers(2)
    if source.dims is None:
        return [UNKNOWN]
    rank = len(source.dims)
    if axes is None:
        return [Shape([None] * rank)]
    if any(not -rank <= axis < rank for axis in axes):
        raise GraphmillError(f"axes {axes} are not all among those of an input of rank {rank}")
    changed = {axis % rank for axis in axes}
    return [Shape([None if axis in changed else size for axis, size in enumerate(source.dims)])]


@shape_function("Mfcc")
def mfcc(c: ShapeContext) -> list[Shape]:
    """Of a spectrogram for each channel and time, so many coefficients."""
    source = c.rank(0, 3)
    c.rank(1, 0)
    count: int = c.attr("dct_coefficient_count")
    return [Shape([source[0], source[1], None if count == -1 else count])]


@shape_function("IsotonicRegression")
def isotonic(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0], c.inputs[0]]


@shape_function("_HostCast", "_TensorToHashBucketFast")
def elementwise(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]
