"""Gradients of variables, random ops and queues: where they stop, and reads of resources."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import IndexedSlices
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.graph import dtypes

no_gradient(
    "Variable", "VariableV2", "VarHandleOp", "Assign", "AssignAdd", "AssignSub", "AssignVariableOp",
    "AssignAddVariableOp", "AssignSubVariableOp", "IsVariableInitialized", "VarIsInitializedOp", "VariableShape",
    "CountUpTo", "ResourceCountUpTo", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterUpdate",
    "ScatterNdUpdate", "ScatterNdAdd", "ScatterNdSub", "TemporaryVariable", "DestroyTemporaryVariable",
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "ParameterizedTruncatedNormal",
    "RandomShuffle", "Multinomial", "RandomPoissonV2", "StatelessRandomUniform", "StatelessRandomNormal",
    "StatelessTruncatedNormal", "StatelessRandomUniformInt", "StatelessMultinomial",
    "FIFOQueue", "FIFOQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2", "QueueEnqueue", "QueueEnqueueV2",
    "QueueEnqueueMany", "QueueEnqueueManyV2", "QueueDequeue", "QueueDequeueV2", "QueueDequeueMany",
    "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2", "QueueClose", "QueueCloseV2", "QueueSize",
    "QueueSizeV2", "Stack", "StackV2", "StackPush", "StackPop", "StackClose", "ScalarSummary", "HistogramSummary",
    "ImageSummary", "AudioSummary", "MergeSummary", "TensorSummary", "TensorSummaryV2", "ParseExample",
    "ParseExampleV2", "ParseSingleExample", "DecodeRaw", "DecodeCSV", "StringToNumber", "HashTable", "HashTableV2",
    "LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2",
    "LookupTableInsert", "LookupTableInsertV2", "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile",
    "InitializeTableFromTextFileV2", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2",
    "StatelessRandomUniformV2", "StatelessRandomUniformIntV2", "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
    "StatelessRandomBinomial", "StatelessRandomPoisson", "RandomIndexShuffle",
    "ReaderRead", "ReaderReadUpTo", "ReaderReset", "ReaderNumRecordsProduced", "ReaderNumWorkUnitsCompleted",
    "ReaderRestoreState", "ReaderSerializeState", "WholeFileReader", "TextLineReader", "TFRecordReader",
    "IdentityReader", "FixedLengthRecordReader", "LMDBReader",
    "AudioSummaryV2", "AsString", "DecodeBase64", "EncodeBase64", "DecodePaddedRaw", "ParseTensor", "SerializeTensor",
    "StringJoin", "StringSplit", "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong",
    "RegexReplace", "ReduceJoin", "DecodeProtoV2", "EncodeProto", "ReduceDataset", "Timestamp",
    "CTCBeamSearchDecoder", "CTCGreedyDecoder", "PyFunc", "PyFuncStateless", "GetSessionHandle",
    "GetSessionHandleV2", "GetSessionTensor", "DeleteSessionTensor", "LoadAndRemapMatrix", "GenerateVocabRemapping",
    "SdcaOptimizer", "SdcaOptimizerV2", "SdcaFprint", "SdcaShrinkL1",
)  # fmt: skip


@gradient("ReadVariableOp")
def read_variable(op: Operation, grad: Gradient) -> Gradient:
    """A read passes its gradient to the resource handle, where the variable's gradients meet."""
    return grad


@gradient("ResourceGather")
def resource_gather(op: Operation, grad: Gradient) -> list[Gradient]:
    """The rows that were read, as IndexedSlices of the variable."""
    handle, indices = op.inputs
    sizes = ops.variable_shape(handle, out_type=dtypes.int32)
    count = array_ops.expand_dims(array_ops.size(indices), 0)
    values = array_ops.reshape(convert_to_tensor(grad), array_ops.concat([count, sizes[1:]], 0))
    return [IndexedSlices(values, array_ops.reshape(indices, count), sizes), None]


@gradient("ResourceGatherNd")
def resource_gather_nd(op: Operation, grad: Gradient) -> list[Gradient]:
    """The slices that were read: as IndexedSlices where they are rows, else added into zeros."""
    handle, indices = op.inputs
    sizes = ops.variable_shape(handle, out_type=indices.dtype.base)
    if indices.static_shape.rank == 2 and indices.static_shape[-1] == 1:
        return [IndexedSlices(convert_to_tensor(grad), array_ops.squeeze(indices, [-1]), sizes), None]
    return [ops.scatter_nd(indices, convert_to_tensor(grad), sizes), None]
