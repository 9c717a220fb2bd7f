"""Shapes of saving, restoring, reading, parsing, summaries."""

from __future__ import annotations

from toolkit.errors import GraphmillError
from toolkit.graph import opdefs
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, merge_dims, shape_function


@shape_function("SaveV2", "Save", "SaveSlices", "MergeV2Checkpoints", "WriteFile", "PrintV2")
def nothing(c: ShapeContext) -> list[Shape]:
    if c.node.op == "SaveV2":
        count = len(c.inputs) - 3
        c.rank(0, 0)
        for index in (1, 2):
            merge_dims(c.rank(index, 1)[0], count, "the number of names and of tensors")
    if c.node.op == "WriteFile":
        c.rank(0, 0)
        c.rank(1, 0)
    if c.node.op == "MergeV2Checkpoints":
        c.rank(0, 1)
        c.rank(1, 0)
    return []


@shape_function("RestoreV2")
def restore_v2(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    c.rank(1, 1).merge(c.rank(2, 1))
    slices = _strings(c, 2)
    count = c.node.num_outputs
    if slices is None or len(slices) != count:
        return [UNKNOWN] * count
    return [_slice_shape(text) for text in slices]


def _strings(c: ShapeContext, index: int) -> list[bytes] | None:
    node = c.node.inputs[index].node
    if node.op != "Const":
        return None
    proto = node.attr("value")
    values = list(proto.string_val)
    count = 1
    for d in proto.tensor_shape.dim:
        count *= d.size
    return values + values[-1:] * (count - len(values)) if values else None


def _slice_shape(text: bytes) -> Shape:
    """The shape in "4 3 0,2:-": full sizes, then start,length or - for each axis; unknown for ""."""
    words = text.decode().split()
    if len(words) < 2:
        return UNKNOWN
    full, parts = words[:-1], words[-1].split(":")
    if len(full) != len(parts):
        raise GraphmillError(f"'{text.decode()}' is not a slice: one extent per axis is expected")
    return Shape([int(f) if p == "-" else int(p.split(",")[1]) for f, p in zip(full, parts, strict=True)])


@shape_function("Restore")
def restore(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    c.rank(1, 0)
    return [UNKNOWN]


@shape_function("RestoreSlice")
def restore_slice(c: ShapeContext) -> list[Shape]:
    for index in range(3):
        c.rank(index, 0)
    slices = _strings(c, 2)
    return [_slice_shape(slices[0]) if slices else UNKNOWN]


@shape_function("ShardedFilename", "ShardedFilespec")
def sharded_name(c: ShapeContext) -> list[Shape]:
    for index in range(len(c.inputs)):
        c.rank(index, 0)
    return [SCALAR]


@shape_function("ReadFile")
def read_file(c: ShapeContext) -> list[Shape]:
    return [c.rank(0, 0)]


@shape_function("MatchingFiles")
def matching_files(c: ShapeContext) -> list[Shape]:
    c.rank_at_most(0, 1)
    return [Shape([None])]


@shape_function(
    "WholeFileReader", "TextLineReader", "FixedLengthRecordReader", "TFRecordReader", "IdentityReader", "LMDBReader"
)
def reader_ref(c: ShapeContext) -> list[Shape]:
    return [Shape([2])]


@shape_function(
    "WholeFileReaderV2", "TextLineReaderV2", "FixedLengthRecordReaderV2", "TFRecordReaderV2", "IdentityReaderV2",
    "SummaryWriter",
)  # fmt: skip
def reader_resource(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("ReaderRead", "ReaderReadV2")
def reader_read(c: ShapeContext) -> list[Shape]:
    return [SCALAR, SCALAR]


@shape_function("ReaderReadUpTo", "ReaderReadUpToV2")
def reader_read_up_to(c: ShapeContext) -> list[Shape]:
    return [Shape([None]), Shape([None])]


@shape_function(
    "ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompleted",
    "ReaderNumWorkUnitsCompletedV2", "ReaderSerializeState", "ReaderSerializeStateV2",
)  # fmt: skip
def reader_scalar(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("ReaderReset", "ReaderResetV2", "ReaderRestoreState", "ReaderRestoreStateV2")
def reader_nothing(c: ShapeContext) -> list[Shape]:
    return []


@shape_function(
    "ScalarSummary", "HistogramSummary", "ImageSummary", "AudioSummary", "AudioSummaryV2", "MergeSummary",
    "TensorSummary", "TensorSummaryV2",
)  # fmt: skip
def summary(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function(
    "CloseSummaryWriter", "CreateSummaryDbWriter", "CreateSummaryFileWriter", "FlushSummaryWriter", "ImportEvent",
    "WriteAudioSummary", "WriteGraphSummary", "WriteHistogramSummary", "WriteImageSummary",
    "WriteRawProtoSummary", "WriteScalarSummary", "WriteSummary",
)  # fmt: skip
def summary_writer(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("Print")
def print_(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("Timestamp")
def timestamp(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("GetSessionHandle", "GetSessionHandleV2")
def session_handle(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("GetSessionTensor")
def session_tensor(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    return [UNKNOWN]


@shape_function("DecodeRaw")
def decode_raw(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0].concatenate(Shape([None]))]


@shape_function("DecodePaddedRaw")
def decode_padded_raw(c: ShapeContext) -> list[Shape]:
    source, length = c.inputs[0], c.integer(1)
    size = c.attr("out_type").base.size
    if length is not None and (length <= 0 or length % size):
        raise GraphmillError(f"fixed_length must be a positive multiple of {size}; it is {length}")
    return [source.concatenate(Shape([None if length is None else length // size]))]


@shape_function("ParseTensor")
def parse_tensor(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


@shape_function("SerializeTensor")
def serialize_tensor(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("DecodeJSONExample", "DecodeCompressed")
def same_strings(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("DecodeCSV")
def decode_csv(c: ShapeContext) -> list[Shape]:
    for index in range(1, len(c.inputs)):
        default = c.rank_at_most(index, 1)
        size = default[0] if default.rank == 1 else None
        if size is not None and size > 1:
            raise GraphmillError(f"default {index - 1} must hold at most one value")
    return [c.inputs[0]] * (len(c.inputs) - 1)


def _sparse(prefix: Shape, count: int) -> list[Shape]:
    rank = None if prefix.rank is None else prefix.rank + 1
    return [Shape([None, rank])] * count + [Shape([None])] * count + [Shape([rank])] * count


@shape_function("ParseExample", "ParseExampleV2")
def parse_example(c: ShapeContext) -> list[Shape]:
    serialized = c.inputs[0]
    if c.node.op == "ParseExample":
        serialized = c.rank(0, 1)
    elif serialized.rank is not None and serialized.rank > 1:
        raise GraphmillError(f"'serialized' must be a scalar or a vector; it has shape {serialized}")
    count = c.attr("Nsparse" if c.node.op == "ParseExample" else "num_sparse")
    out = _sparse(serialized, count)
    dense = [serialized.concatenate(shape) for shape in c.attr("dense_shapes")]
    out += dense
    if c.node.op == "ParseExampleV2":
        ragged = len(c.attr("ragged_value_types"))
        out += [Shape([None])] * ragged
        rows: Dim = None
        size = serialized[0] if serialized.rank == 1 else None
        if size is not None:
            rows = size + 1
        out += [Shape([rows])] * ragged
    return out


#: attributes of ops that parse examples which say one number, or are as long: of the features of a kind
_COUNTS = (
    ("Nsparse", "sparse_types"),
    ("num_sparse", "sparse_keys", "sparse_types"),
    ("Ndense", "dense_keys", "Tdense", "dense_shapes"),
    ("ragged_value_types", "ragged_split_types"),
    ("Ncontext_sparse", "context_sparse_keys", "context_sparse_types"),
    ("Ncontext_dense", "context_dense_keys", "Tcontext_dense", "context_dense_shapes"),
    ("context_ragged_value_types", "context_ragged_split_types"),
    ("Nfeature_list_sparse", "feature_list_sparse_keys", "feature_list_sparse_types"),
    ("Nfeature_list_dense", "feature_list_dense_keys", "feature_list_dense_types", "feature_list_dense_shapes"),
    ("feature_list_ragged_value_types", "feature_list_ragged_split_types"),
)


def _check_counts(c: ShapeContext) -> None:
    """See that the attributes agree on how many features there are.

    Raises:
        GraphmillError: they do not.
    """
    declared = opdefs.get(c.node.op).attrs
    for names in _COUNTS:
        values = {name: c.attr(name) for name in names if name in declared}
        counts = {name: value if isinstance(value, int) else len(value) for name, value in values.items()}
        if len(set(counts.values())) > 1:
            raise GraphmillError("these must agree: " + ", ".join(f"{name} {n}" for name, n in counts.items()))


@shape_function("ParseSingleExample")
def parse_single_example(c: ShapeContext) -> list[Shape]:
    _check_counts(c)
    c.rank(0, 0)
    return [*_sparse(SCALAR, c.attr("num_sparse")), *c.attr("dense_shapes")]


@shape_function("ParseSingleSequenceExample")
def parse_single_sequence(c: ShapeContext) -> list[Shape]:
    _check_counts(c)
    c.rank(0, 0)
    out = _sparse(SCALAR, c.attr("Ncontext_sparse"))
    out += c.attr("context_dense_shapes")
    count = c.attr("Nfeature_list_sparse")
    out += [Shape([None, 2])] * count + [Shape([None])] * count + [Shape([2])] * count
    some = Shape([None])
    out += [some.concatenate(shape) for shape in c.attr("feature_list_dense_shapes")]
    return out


@shape_function("ParseSequenceExample", "ParseSequenceExampleV2")
def parse_sequence(c: ShapeContext) -> list[Shape]:
    _check_counts(c)
    serialized = c.inputs[0]
    v2 = c.node.op.endswith("V2")
    some = Shape([None])

    def sparse(count: int, extra: int) -> list[Shape]:
        rank = None if serialized.rank is None else serialized.rank + extra
        return [Shape([None, rank])] * count + [some] * count + [Shape([rank])] * count

    rows = some
    size = serialized[0] if serialized.rank == 1 else None
    if size is not None:
        rows = Shape([size + 1])
    out = sparse(c.attr("Ncontext_sparse"), 1)
    out += [serialized.concatenate(shape) for shape in c.attr("context_dense_shapes")]
    if v2:
        count = len(c.attr("context_ragged_value_types"))
        out += [some] * count + [rows] * count
    out += sparse(c.attr("Nfeature_list_sparse"), 2)
    steps = serialized.concatenate(some)
    out += [steps.concatenate(shape) for shape in c.attr("feature_list_dense_shapes")]
    out += [serialized] * c.attr("Nfeature_list_dense")
    if v2:
        count = len(c.attr("feature_list_ragged_value_types"))
        out += [some] * count + [rows] * count + [some] * count
    return out
