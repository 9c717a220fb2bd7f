"""Shapes of queues, tensor arrays, stacks, tables, staging areas, accumulators."""

from __future__ import annotations

from typing import Any

from toolkit.errors import GraphmillError
from toolkit.graph.shape import SCALAR, UNKNOWN, Dim, Shape
from toolkit.graph.shapes.registry import ShapeContext, listed, merge_dims, shape_function

_PAIR = Shape([2])  # old handles are string pairs


@shape_function(
    "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue", "FakeQueue", "Barrier", "HashTable",
    "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable", "ConditionalAccumulator",
    "SparseConditionalAccumulator", "ResourceConditionalAccumulator", "Stack", "TensorArray", "TensorArrayGrad",
)  # fmt: skip
def string_handle(c: ShapeContext) -> list[Shape]:
    return [_PAIR]


@shape_function("StackV2")
def stack_v2(c: ShapeContext) -> list[Shape]:
    return [_PAIR]


@shape_function(
    "FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "HashTableV2",
    "AnonymousHashTable",
    "AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", "BarrierReadySize", "BarrierIncompleteSize",
    "QueueIsClosed", "QueueIsClosedV2", "QueueSize", "LookupTableSize", "LookupTableSizeV2",
    "StageSize", "MapSize", "MapIncompleteSize", "OrderedMapSize", "OrderedMapIncompleteSize", "DeviceIndex",
    "IsResourceHandleRefCounting", "StubResourceHandleOp", "ResourceInitializedOp", "TensorMapSize",
    "TensorMapHasKey", "EmptyTensorMap", "TensorMapInsert", "TensorMapErase",
)  # fmt: skip
def scalar(c: ShapeContext) -> list[Shape]:
    return [SCALAR] * c.node.num_outputs


@shape_function(
    "QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2", "QueueClose", "QueueCloseV2",
    "BarrierInsertMany", "BarrierClose", "AccumulatorApplyGradient", "AccumulatorSetGlobalStep",
    "SparseAccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", "ResourceAccumulatorSetGlobalStep",
    "StackClose", "StackCloseV2", "TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3",
    "InitializeTable", "InitializeTableV2", "InitializeTableFromTextFile", "InitializeTableFromTextFileV2",
    "LookupTableInsert", "LookupTableInsertV2", "LookupTableImport", "LookupTableRemoveV2",
    "Stage", "StageClear", "MapStage", "MapClear", "OrderedMapStage", "OrderedMapClear", "_Send", "_HostSend",
)  # fmt: skip
def nothing(c: ShapeContext) -> list[Shape]:
    return []


@shape_function("_Recv", "_HostRecv")
def recv(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


def _component_shapes(c: ShapeContext) -> list[Shape] | None:
    """What the queue behind the handle says about its elements."""
    queue = c.node.inputs[0].node
    if "Queue" not in queue.op or "shapes" not in queue.op_def.attrs:
        return None
    shapes: list[Shape] = queue.attr("shapes")
    if queue.op.startswith("PriorityQueue"):
        shapes = [SCALAR, *shapes]
    return shapes if len(shapes) == c.node.num_outputs else None


@shape_function("QueueDequeue", "QueueDequeueV2")
def dequeue(c: ShapeContext) -> list[Shape]:
    return _component_shapes(c) or c.unknown()


@shape_function("QueueDequeueMany", "QueueDequeueManyV2")
def dequeue_many(c: ShapeContext) -> list[Shape]:
    shapes, count = _component_shapes(c), c.integer(1)
    return c.unknown() if shapes is None else [Shape([count]).concatenate(shape) for shape in shapes]


@shape_function("QueueDequeueUpTo", "QueueDequeueUpToV2")
def dequeue_up_to(c: ShapeContext) -> list[Shape]:
    shapes = _component_shapes(c)
    return c.unknown() if shapes is None else [Shape([None]).concatenate(shape) for shape in shapes]


@shape_function("BarrierTakeMany", "StackPop", "StackPopV2", "PyFunc", "PyFuncStateless", "EagerPyFunc")
def take_many(c: ShapeContext) -> list[Shape]:
    return c.unknown()


@shape_function("StackPush", "StackPushV2")
def push(c: ShapeContext) -> list[Shape]:
    return [c.inputs[1]]


@shape_function("TensorArrayV3", "TensorArrayV2")
def tensor_array(c: ShapeContext) -> list[Shape]:
    c.rank(0, 0)
    if c.node.op == "TensorArrayV2":
        return [_PAIR]
    c.output_handles[0] = [(c.attr("element_shape"), c.attr("dtype"))]
    return [_PAIR, SCALAR]


@shape_function("TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArrayGradV2")
def tensor_array_grad(c: ShapeContext) -> list[Shape]:
    if c.node.op == "TensorArrayGradV2":
        return [_PAIR]
    handle = c.handle(0)
    if handle and c.node.op == "TensorArrayGradV3":
        c.output_handles[0] = handle
    return [_PAIR, SCALAR]


@shape_function(
    "TensorArrayWriteV3", "TensorArrayWriteV2", "TensorArrayWrite", "TensorArrayScatterV3", "TensorArrayScatterV2",
    "TensorArrayScatter", "TensorArraySplitV3", "TensorArraySplitV2", "TensorArraySplit", "TensorArraySizeV3",
    "TensorArraySizeV2", "TensorArraySize", "TensorArrayUnpack",
)  # fmt: skip
def flow(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("TensorArrayReadV3")
def tensor_array_read(c: ShapeContext) -> list[Shape]:
    c.rank(2, 0)
    handle = c.handle(0)
    return [handle[0][0] if handle else UNKNOWN]


@shape_function("TensorArrayReadV2", "TensorArrayRead", "TensorArrayPack", "TensorArrayGather")
def tensor_array_unknown(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN]


@shape_function("TensorArrayGatherV3", "TensorArrayGatherV2")
def tensor_array_gather(c: ShapeContext) -> list[Shape]:
    indices = c.rank(1, 1)
    element: Shape = c.attr("element_shape")
    handle = c.handle(0)
    if handle:
        element = element.merge(handle[0][0])
    return [Shape([indices[0]]).concatenate(element)]


@shape_function("TensorArrayConcatV3", "TensorArrayConcatV2", "TensorArrayConcat")
def tensor_array_concat(c: ShapeContext) -> list[Shape]:
    return [UNKNOWN, Shape([None])]


@shape_function(
    "MutableHashTableV2", "MutableHashTableOfTensorsV2", "MutableDenseHashTableV2", "AnonymousMutableHashTable",
    "AnonymousMutableHashTableOfTensors", "AnonymousMutableDenseHashTable",
)  # fmt: skip
def mutable_table(c: ShapeContext) -> list[Shape]:
    c.output_handles[0] = [(UNKNOWN, c.attr("key_dtype")), (UNKNOWN, c.attr("value_dtype"))]
    return [SCALAR]


def _require_table(c: ShapeContext, key: str, value: str) -> None:
    """The table behind the handle must be of the types that two attributes say.

    Raises:
        GraphmillError: it is of others.
    """
    held = c.handle(0)
    if held is not None and len(held) == 2:
        for (_, dtype), attr, what in zip(held, (key, value), ("keys", "values"), strict=True):
            if dtype.base is not c.attr(attr).base:
                raise GraphmillError(f"attribute '{attr}' says {c.attr(attr)}; the {what} of the table are {dtype}")


@shape_function("LookupTableFind", "LookupTableFindV2")
def lookup(c: ShapeContext) -> list[Shape]:
    """One value per key, as far as the table is seen to hold scalars."""
    _require_table(c, "Tin", "Tout")
    table = c.node.inputs[0].node
    if c.node.op == "LookupTableFindV2" and table.op in ("HashTableV2", "MutableHashTableV2", "AnonymousHashTable"):
        return [c.inputs[1]]
    return [UNKNOWN]


@shape_function("LookupTableImportV2")
def lookup_import(c: ShapeContext) -> list[Shape]:
    merge_dims(c.rank(1, 1)[0], c.rank_at_least(2, 1)[0], "numbers of keys and values")
    return []


@shape_function("LookupTableExport", "LookupTableExportV2")
def lookup_export(c: ShapeContext) -> list[Shape]:
    _require_table(c, "Tkeys", "Tvalues")
    return [Shape([None]), UNKNOWN] if c.node.op == "LookupTableExport" else [UNKNOWN, UNKNOWN]


@shape_function("DynamicPartition")
def dynamic_partition(c: ShapeContext) -> list[Shape]:
    data, where = c.inputs[0], c.inputs[1]
    count = c.attr("num_partitions")
    if where.dims is None or data.dims is None:
        return [UNKNOWN] * count
    data.slice(0, len(where.dims)).merge(where)
    return [Shape([None]).concatenate(data.slice(len(where.dims)))] * count


@shape_function("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(c: ShapeContext) -> list[Shape]:
    count: int = c.attr("N")
    rest: Shape = UNKNOWN
    highest: Dim = 0
    for i in range(count):
        index, data = c.inputs[i], c.inputs[count + i]
        value = c.constant(i)
        if value is None or highest is None:
            highest = None
        else:
            flat = _flatten(value)
            known = [v for v in flat if v is not None]
            highest = None if len(known) < len(flat) else max([highest, *(v + 1 for v in known)])
        if index.dims is None or data.dims is None:
            continue
        data.slice(0, len(index.dims)).merge(index)
        rest = rest.merge(data.slice(len(index.dims)))
    return [Shape([highest]).concatenate(rest)]


def _flatten(value: Any) -> list[int | None]:
    parts = listed(value)
    return [value] if parts is None else [v for part in parts for v in _flatten(part)]


@shape_function("TensorListReserve", "EmptyTensorList")
def list_new(c: ShapeContext) -> list[Shape]:
    c.output_handles[0] = [(_element(c, 0), c.attr("element_dtype"))]
    return [SCALAR]


def _element(c: ShapeContext, index: int) -> Shape:
    """An element shape given as an input: a vector, or the scalar -1 for "any".

    Raises:
        GraphmillError: it is another scalar.
    """
    value = c.constant(index)
    if isinstance(value, int) and value != -1:
        raise GraphmillError(f"an element shape that is a scalar must be -1, for any; it is {value}")
    return UNKNOWN if isinstance(value, int) else c.constant_shape(index)


def _list_element(c: ShapeContext, index: int | None) -> Shape:
    """The shape of an element that is taken out; what a list was made of need not be what it holds by then."""
    element = UNKNOWN if index is None else _element(c, index)
    handle = c.handle(0)
    return element.merge(handle[0][0]) if handle and element.is_compatible_with(handle[0][0]) else element


def _keep_list(c: ShapeContext) -> None:
    handle = c.handle(0)
    if handle:
        c.output_handles[0] = handle


def _require_element(c: ShapeContext, index: int = 0) -> None:
    """The list at an input must hold elements of the type that the attribute says.

    Raises:
        GraphmillError: it holds others.
    """
    handle = c.handle(index)
    if handle and len(handle) == 1:
        wanted = c.attr("element_dtype")
        if handle[0][1].base is not wanted.base:
            raise GraphmillError(f"the list at input {index} has elements of {handle[0][1]}, not of {wanted}")


@shape_function("TensorListFromTensor")
def list_from_tensor(c: ShapeContext) -> list[Shape]:
    element = _element(c, 1).merge(c.inputs[0].slice(1))
    c.output_handles[0] = [(element, c.attr("element_dtype"))]
    return [SCALAR]


@shape_function("TensorListResize")
def list_resized(c: ShapeContext) -> list[Shape]:
    _keep_list(c)
    return [SCALAR]


@shape_function("TensorListSetItem")
def list_set(c: ShapeContext) -> list[Shape]:
    _keep_list(c)
    return [SCALAR]


@shape_function("TensorListPushBack", "TensorListScatterIntoExistingList")
def list_changed(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    _keep_list(c)
    return [SCALAR]


@shape_function("TensorListScatter", "TensorListScatterV2", "TensorListSplit")
def list_scattered(c: ShapeContext) -> list[Shape]:
    element = _element(c, 1 if c.node.op == "TensorListSplit" else 2)
    if c.node.op == "TensorListSplit":
        element.slice(1).merge(c.inputs[0].slice(1))  # of an element's length nothing is known: `lengths` says it
    c.output_handles[0] = [(element, c.attr("element_dtype"))]
    return [SCALAR]


@shape_function("TensorListConcatLists")
def list_concat_lists(c: ShapeContext) -> list[Shape]:
    for index in (0, 1):
        _require_element(c, index)
    first, second = c.handle(0), c.handle(1)
    if first and second:
        first[0][0].merge(second[0][0])
    _keep_list(c)
    return [c.inputs[0].merge(c.inputs[1])]


@shape_function("TensorListPushBackBatch")
def list_push_batch(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    _keep_list(c)
    return [c.rank_at_least(1, 1).slice(0, 1).merge(c.rank(0, 1))]


@shape_function("TensorListLength")
def list_length(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("TensorListElementShape")
def list_element_shape(c: ShapeContext) -> list[Shape]:
    handle = c.handle(0)
    rank = handle[0][0].rank if handle else None
    return [UNKNOWN if rank is None else Shape([rank])]


@shape_function("TensorListGetItem")
def list_get(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    return [_list_element(c, 2)]


@shape_function("TensorListPopBack")
def list_pop(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    _keep_list(c)
    return [SCALAR, _list_element(c, 1)]


@shape_function("TensorListStack")
def list_stack(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    count = c.attr("num_elements")
    return [Shape([None if count < 0 else count]).concatenate(_list_element(c, 1))]


@shape_function("TensorListGather")
def list_gather(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    return [c.inputs[1].concatenate(_list_element(c, 2))]


@shape_function("TensorListConcat", "TensorListConcatV2")
def list_concat(c: ShapeContext) -> list[Shape]:
    _require_element(c)
    if c.node.op == "TensorListConcat":
        element: Shape = c.attr("element_shape")
        handle = c.handle(0)
        element = element.merge(handle[0][0]) if handle else element
        return [Shape([None]).concatenate(element.slice(1)), Shape([None])]
    element = _element(c, 1)
    handle = c.handle(0)
    if handle:
        element = element.merge(handle[0][0])
    lengths = Shape([None])
    return [Shape([None]).concatenate(element.slice(1)), lengths]


@shape_function("OptionalNone", "OptionalHasValue")
def optional(c: ShapeContext) -> list[Shape]:
    return [SCALAR]


@shape_function("OptionalFromValue")
def optional_from(c: ShapeContext) -> list[Shape]:
    types = [t.base for t in c.node.input_types]
    c.output_handles[0] = list(zip(c.inputs, types, strict=True))
    return [SCALAR]


@shape_function("OptionalGetValue", "IteratorGetNext", "IteratorGetNextSync", "MultiDeviceIteratorGetNextFromShard")
def get_value(c: ShapeContext) -> list[Shape]:
    shapes: list[Shape] = c.attr("output_shapes")
    handle = c.handle(0)
    if handle and len(handle) == len(shapes) and c.node.op == "OptionalGetValue":
        return [shape.merge(known) for shape, (known, _) in zip(shapes, handle, strict=True)]
    return shapes


@shape_function("ReduceDataset", "DatasetToSingleElement", "GetElementAtIndex")
def dataset_value(c: ShapeContext) -> list[Shape]:
    shapes: list[Shape] = c.attr("output_shapes")
    if len(shapes) != c.node.num_outputs:
        raise GraphmillError(f"attribute 'output_shapes' has {len(shapes)} shapes for {c.node.num_outputs} output(s)")
    return shapes


@shape_function("QueueSizeV2", "DebugGradientIdentity", "DebugGradientRefIdentity")
def same(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("UnravelIndex")
def unravel_index(c: ShapeContext) -> list[Shape]:
    indices, dims = c.inputs[0], c.rank(1, 1)
    if indices.rank == 0:
        return [dims]
    if indices.rank is None:
        return [UNKNOWN]
    return [Shape([dims[0], indices.num_elements])]


@shape_function("Roll")
def roll(c: ShapeContext) -> list[Shape]:
    shift, axis = c.rank_at_most(1, 1), c.rank_at_most(2, 1)
    shift.merge(axis)
    return [c.rank_at_least(0, 1)]


@shape_function("Fingerprint")
def fingerprint(c: ShapeContext) -> list[Shape]:
    return [Shape([c.rank_at_least(0, 1)[0], None])]


@shape_function("DataFormatDimMap", "DataFormatVecPermute")
def data_format(c: ShapeContext) -> list[Shape]:
    return [c.inputs[0]]


@shape_function("GRUBlockCell")
def gru_block_cell(c: ShapeContext) -> list[Shape]:
    out = Shape([c.rank(0, 2)[0], c.rank(1, 2)[1]])
    return [out, out, out, out]


@shape_function("LSTMBlockCell")
def lstm_block_cell(c: ShapeContext) -> list[Shape]:
    out = Shape([c.rank(0, 2)[0], c.rank(1, 2)[1]])
    return [out] * 7


@shape_function("BlockLSTM", "BlockLSTMV2")
def block_lstm(c: ShapeContext) -> list[Shape]:
    x, bias = c.rank(1, 3), c.inputs[8]
    width = bias[0] if bias.rank == 1 else None
    return [Shape([x[0], x[1], None if width is None else width // 4])] * 7
